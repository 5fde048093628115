"""Order events agree with fills."""

from collections import defaultdict
from decimal import Decimal

import pytest

from toolkit.contract.order_states import order_state_group
from toolkit.contract.records import OrderStatus
from toolkit.rules.directions import CONVERSIONS


@pytest.fixture(scope="module")
def stories(each_world):
    """Return the events of every order, by time."""
    told: dict[int, list[OrderStatus]] = defaultdict(list)
    for _, event in each_world.sources.orders:
        told[event.order.oid].append(event)
    return told


def filled_sizes(each_world):
    sizes: dict[int, Decimal] = defaultdict(Decimal)
    for _, fill in each_world.sources.fills:
        sizes[fill.oid] += Decimal(fill.sz)
    return sizes


def test_events_are_sorted(each_world):
    keys = [(event.status_timestamp, event.tx_index) for _, event in each_world.sources.orders]
    assert keys == sorted(keys)
    assert keys[-1][0] <= each_world.sources.now_ms
    assert all(e.order.timestamp <= e.status_timestamp for _, e in each_world.sources.orders)


def test_order_has_one_final_event(stories):
    for events in stories.values():
        ends = [event for event in events if order_state_group(event.status) != "active"]
        assert len(ends) <= 1
        assert not ends or ends[0] is events[-1]


def test_filled_orders_have_fills(each_world, stories):
    """Original size = filled size + the open size of the last event."""
    sizes = filled_sizes(each_world)
    for oid, events in stories.items():
        order = events[-1].order
        filled = sizes.get(oid, Decimal(0))
        if order.order_type == "Spot Dust Conversion":
            continue
        if events[-1].status == "filled":
            assert Decimal(order.sz) == 0
            assert Decimal(order.orig_sz) == filled
        elif order_state_group(events[-1].status) != "active":
            assert Decimal(order.orig_sz) - Decimal(order.sz) == filled


def test_fills_have_orders(each_world, stories):
    for user, fill in each_world.sources.fills:
        if fill.dir not in {"Settlement", *CONVERSIONS}:
            order = stories[fill.oid][0].order
            assert (order.coin, order.side) == (fill.coin, fill.side)
            assert user


def test_children_match_their_parent(stories):
    parents = [e.order for events in stories.values() for e in events if e.order.children]
    assert parents
    for parent in parents:
        for child in parent.children:
            assert child.oid in stories
            assert child.is_trigger
            assert child.reduce_only
            assert child.side != parent.side
            assert child.trigger_condition.startswith("Price ")


def test_twap_fills_equal_executed_size(each_world):
    executed: dict[tuple[str, int], Decimal] = defaultdict(Decimal)
    for user, fill in each_world.sources.fills:
        if fill.twap_id is not None:
            executed[user, fill.twap_id] += Decimal(fill.sz)
    latest = each_world.sources.twap_snapshots[-1]
    rows = [row for market in latest.twaps.values() for row in market]
    assert rows
    for row in rows:
        assert float(executed[row.address, row.twap_id]) == pytest.approx(row.executed_sz)
        assert row.total_sz == pytest.approx(row.executed_sz + row.remaining_sz)
