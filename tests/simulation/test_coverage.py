"""Every word and kind of row occurs; the samples show every branch of every record."""

from collections import defaultdict

from msgspec import UNSET

from tests.reality.spot_chains import chains
from toolkit.contract.records import Fill

DIRECTIONS = {
    "Open Long", "Open Short", "Close Long", "Close Short", "Long > Short", "Short > Long",
    "Buy", "Sell", "Liquidated Cross Long", "Liquidated Cross Short", "Liquidated Isolated Long",
    "Liquidated Isolated Short", "Auto-Deleveraging",
    "Settlement", "Net Child Vaults", "Spot Dust Conversion",
    "Split Outcome", "Merge Outcome", "Negate Outcome", "Merge Question",
}  # fmt: skip


def test_every_order_flag_occurs(world):
    orders = [event.order for _, event in world.sources.orders]
    for flag in ("is_trigger", "is_position_tpsl", "reduce_only"):
        assert {getattr(order, flag) for order in orders} == {True, False}
    assert {bool(order.children) for order in orders} == {True, False}


def test_every_kind_of_fill_occurs(world):
    fills: list[Fill] = [fill for _, fill in world.sources.fills]
    assert {fill.fee_token for fill in fills} >= {"USDC", "HYPE", "PURR"}
    assert {fill.venue for fill in fills} == {"PMX", "KX", UNSET}
    assert any(fill.fee.startswith("-") for fill in fills)
    assert {fill.tid == 0 for fill in fills} == {True, False}
    assert any(fill.coin.startswith("#") and fill.venue is UNSET for fill in fills)


def test_every_direction_and_spot_cost_occurs_with_every_seed(any_world):
    """Spot pairs and outcomes have gaps in and out, and known, partly known and unknown cost."""
    assert {fill.dir for _, fill in any_world.sources.fills} >= DIRECTIONS
    kinds = set()
    for (_, coin), chain in chains(any_world.sources.fills).items():
        market = "outcome" if coin.startswith("#") else "spot"
        for row in chain:
            kinds.add(("in" if row.gap > 0 else "out" if row.gap else "no gap", market))
            if row.change < 0 and row.cash:
                known = row.before.size - row.before.unknown
                part = "all" if known == row.before.size else "some" if known else "none"
                kinds.add((part, market))
    assert kinds >= {(kind, "spot") for kind in ("in", "out", "no gap", "all", "some")}
    assert {kind for kind, market in kinds if market == "outcome"} == {"no gap", "all"}


def test_snapshots_show_every_twap_kind(world):
    sources = world.sources
    for table in (sources.account_snapshots, sources.twap_snapshots):
        ids = [snapshot.snapshot_id for snapshot in table]
        assert len(set(ids)) == len(ids) == 3
    keys = {key for snapshot in sources.account_snapshots for key in snapshot.values}
    assert keys == {("", "USDC"), ("eqx", "USDC"), ("pre", "USDH")}
    rows = [r for s in sources.twap_snapshots for twaps in s.twaps.values() for r in twaps]
    for flag in ("is_buy", "reduce_only", "randomize", "waiting"):
        assert {getattr(row, flag) for row in rows} == {True, False}
    assert {row.trigger_above for row in rows} == {True, False, None}
    markets = {name for snapshot in sources.twap_snapshots for name in snapshot.twaps}
    assert any(":" in name for name in markets)
    assert any(":" not in name for name in markets)


def test_thin_markets_reject_large_sizes(world):
    missing = defaultdict(set)
    for sample in world.sources.slippage:
        missing[sample.coin].add(sample.buy_slippage_bps is None)
    assert missing["BTC"] == {False}
    assert missing["PURR"] == {True, False}


def test_builder_approvals_are_revoked_and_repeated(world):
    changes = defaultdict(list)
    builders = defaultdict(set)
    for approval in world.sources.approvals:
        changes[approval.user, approval.builder].append(approval.approved)
        builders[approval.user].add(approval.builder)
    patterns = {tuple(pattern) for pattern in changes.values()}
    assert patterns >= {(True,), (True, False), (True, False, True)}
    assert any(len(named) > 1 for named in builders.values())
