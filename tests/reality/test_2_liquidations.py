"""Liquidations of the simulated exchange: docs/live_service.md, section 2."""

from collections import defaultdict
from decimal import Decimal

import pytest
from msgspec import UNSET

from tests.worlds import world_of
from toolkit.contract.records import Liquidation

SEEDS = (1, 2, 7)


@pytest.fixture(scope="module", params=SEEDS)
def world(request):
    return world_of("tiny", request.param)


@pytest.fixture(scope="module")
def trades():
    """Return maker and taker with their accounts, of the liquidation trades of three worlds."""
    kept = defaultdict(list)
    for seed in SEEDS:
        for user, fill in world_of("tiny", seed).sources.fills:
            if fill.liquidation is not UNSET:
                kept[seed, fill.tid].append((user, fill))
    return list(kept.values())


def test_both_sides_name_one_liquidation(trades):
    """The taker is liquidated; the other side has the direction of an ordinary trade."""
    methods, words = set(), set()
    for (other, maker), (user, taker) in trades:
        theirs, own = maker.liquidation, taker.liquidation
        assert (theirs.liquidated_user, theirs.method) == (user, own.method)
        assert other != user
        assert theirs.mark_px == own.mark_px
        assert abs(Decimal(taker.px) / Decimal(own.mark_px) - 1) < Decimal("0.05")
        assert own.liquidated_user == user or taker.dir.startswith("Liquidated Isolated")
        assert taker.crossed
        assert not maker.crossed
        backstop = taker.dir.startswith("Liquidated ")
        assert (own.method == "backstop") == backstop
        assert backstop or taker.dir in {"Close Long", "Close Short"}
        assert not maker.dir.startswith(("Liquidated", "Auto"))
        methods.add(own.method)
        words.add(maker.dir)
    assert methods == {"market", "backstop"}
    assert len(words) > 2


def test_liquidations_have_orders_and_ledger_rows(world):
    taken = [
        (user, fill)
        for user, fill in world.sources.fills
        if fill.liquidation is not UNSET and fill.crossed
    ]
    oids = {fill.oid for _, fill in taken}
    tifs = {event.order.tif for _, event in world.sources.orders if event.order.oid in oids}
    assert tifs == {"LiquidationMarket"}
    ledger = world.sources.ledger
    rows = {(user, row.hash) for user, row in ledger if row.delta.type == "liquidation"}
    assert {(user, fill.hash) for user, fill in taken} <= rows


def test_deleveraging_is_no_liquidation(world):
    rows = [(user, fill) for user, fill in world.sources.fills if fill.dir == "Auto-Deleveraging"]
    assert all(fill.liquidation is UNSET for _, fill in rows)
    assert world.examples["DELEVERAGED"] in {user for user, _ in rows}


def test_example_accounts_are_liquidated_as_described(world):
    """The backstop liquidates LIQUIDATED and SQUEEZED, market orders close all of SOLD.

    Of TRIMMED, a part is sold by market; the rest remains.
    """
    found, left = defaultdict(set), defaultdict(dict)
    for user, fill in world.sources.fills:
        if isinstance(fill.liquidation, Liquidation) and fill.crossed:
            found[user].add((fill.dir, fill.liquidation.method))
            change = Decimal(fill.sz) if fill.side == "B" else -Decimal(fill.sz)
            left[user][fill.coin, fill.time] = Decimal(fill.start_position) + change
    examples, states = world.examples, world.sources.states[""]
    assert found[examples["LIQUIDATED"]] == {("Liquidated Cross Long", "backstop")}
    assert found[examples["SQUEEZED"]] == {("Liquidated Cross Short", "backstop")}
    assert found[examples["SOLD"]] == {("Close Long", "market")}
    assert not states[examples["SOLD"]].asset_positions
    assert 0 in left[examples["SOLD"]].values()
    assert all(left[examples["TRIMMED"]].values())
    coins = {coin for coin, _ in left[examples["TRIMMED"]]}
    assert {row.position.coin for row in states[examples["TRIMMED"]].asset_positions} == coins
