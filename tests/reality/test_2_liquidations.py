"""Liquidations of the simulated exchange: docs/live_service.md, section 2."""

from collections import defaultdict
from decimal import Decimal

import pytest
from msgspec import UNSET

from tests.worlds import ON_DEMO, world_of
from toolkit.contract.records import Fill, Liquidation


@pytest.fixture(
    scope="module", params=["tiny 1", "tiny 2", "tiny 7", pytest.param("demo 7", marks=ON_DEMO)]
)
def world(request):
    size, seed = request.param.split()
    return world_of(size, int(seed))


def liquidation_trades(world):
    """Return trade id -> maker and taker with their accounts, of trades with a liquidation."""
    kept: dict[int, list[tuple[str, Fill]]] = defaultdict(list)
    for user, fill in world.sources.fills:
        if fill.liquidation is not UNSET:
            kept[fill.tid].append((user, fill))
    return kept


def liquidation_of(fill):
    assert isinstance(fill.liquidation, Liquidation)
    return fill.liquidation


def test_both_sides_name_one_liquidation(world):
    """The taker is liquidated; the other side has the direction of an ordinary trade."""
    methods, words = set(), set()
    for (other, maker), (user, taker) in liquidation_trades(world).values():
        theirs, own = liquidation_of(maker), liquidation_of(taker)
        assert (theirs.liquidated_user, theirs.method) == (user, own.method)
        assert other != user
        assert theirs.mark_px == own.mark_px
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


def test_liquidation_mark_is_near_trade_price(world):
    for _, (_, taker) in liquidation_trades(world).values():
        mark = Decimal(liquidation_of(taker).mark_px)
        assert abs(Decimal(taker.px) / mark - 1) < Decimal("0.05")


def test_liquidation_orders_have_tif(world):
    oids = {taker.oid for _, (_, taker) in liquidation_trades(world).values()}
    tifs = {event.order.tif for _, event in world.sources.orders if event.order.oid in oids}
    assert tifs == {"LiquidationMarket"}


def test_some_liquidations_close_only_a_part(world):
    """A fifth of a large position is sold by market; the rest remains, or is sold later."""
    whole, part = set(), set()
    left: dict[tuple[str, str, int], Decimal] = {}
    for _, (user, taker) in liquidation_trades(world).values():
        change = Decimal(taker.sz) if taker.side == "B" else -Decimal(taker.sz)
        left[user, taker.coin, taker.time] = Decimal(taker.start_position) + change
    for (user, coin, time), size in left.items():
        (part if size else whole).add((user, coin, time))
    assert whole
    assert part
    mine = world.examples["TRIMMED"]
    assert {user for user, _, _ in part} >= {mine}
    states = world.sources.states[""][mine].asset_positions
    first = next(fill for user, fill in world.sources.fills if user == mine)
    assert [row.position.coin for row in states] == [first.coin]


def test_deleveraging_is_no_liquidation(world):
    rows = [(u, f) for u, f in world.sources.fills if f.dir == "Auto-Deleveraging"]
    assert all(fill.liquidation is UNSET for _, fill in rows)
    assert world.examples["DELEVERAGED"] in {user for user, _ in rows}


def test_liquidations_have_ledger_rows(world):
    rows = {
        (user, update.hash)
        for user, update in world.sources.ledger
        if update.delta.type == "liquidation"
    }
    assert {(user, taker.hash) for _, (user, taker) in liquidation_trades(world).values()} <= rows


def test_example_accounts_are_liquidated_as_described(world):
    """The backstop liquidates LIQUIDATED and SQUEEZED, market orders close all of SOLD."""
    found = defaultdict(set)
    for user, fill in world.sources.fills:
        if isinstance(fill.liquidation, Liquidation) and fill.crossed:
            found[user].add((fill.dir, fill.liquidation.method))
    assert found[world.examples["LIQUIDATED"]] == {("Liquidated Cross Long", "backstop")}
    assert found[world.examples["SQUEEZED"]] == {("Liquidated Cross Short", "backstop")}
    assert found[world.examples["SOLD"]] == {("Close Long", "market")}
    assert not world.sources.states[""][world.examples["SOLD"]].asset_positions
