"""Everything that the specification allows occurs: every branch of every record, every value."""

import types
import typing
from collections import defaultdict
from functools import cache
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from tests.reality.spot_chains import chains
from toolkit.contract.order_states import GROUPS
from toolkit.contract.records import DELTA_FIELDS, Fill, Order, OrderStatus

NEVER = {
    ("Fill", "user"): "the service adds it",
    ("Fill", "liquidation_mark_px"): "only old answers have it there",
    ("OrderStatus", "user"): "the service adds it",
}
"""Optional fields that stay absent."""

ALWAYS = {
    ("Fill", "fee_token"): "only recordings of 2023 lack it",
    ("MarginSummary", "withdrawable"): "only old answers lack it",
    ("AssetContext", "day_base_vlm"): "only older answers lack it",
    ("Order", "cloid"): "the live service always writes the key",
    ("PerpAsset", "margin_table_id"): "the live service always has it",
    ("Meta", "margin_tables"): "the live service always has it",
    ("Meta", "collateral_token"): "the live service always has it",
    ("MarginTier", "lower_bound"): "the live service always has it",
    ("MarginTier", "max_leverage"): "the live service always has it",
    ("MarginTable", "description"): "empty where there is none",
    ("ClearinghouseState", "withdrawable"): "the live service has it there, too",
    ("ClearinghouseState", "cross_maintenance_margin_used"): "the live service always has it",
    ("Position", "max_leverage"): "the live service always has it",
    ("Position", "cum_funding"): "the live service always has it",
}
"""Optional fields that always exist."""

NEVER_NULL = {
    ("Fill", "builder"): "the service writes null where builderApprovedFillsByTime asks for it",
    ("Fill", "tid"): "only recordings of 2023 lack it",
    ("Position", "entry_px"): "an open position has one",
    ("TwapRow", "next_slice_time"): "a TWAP that is over is not in a snapshot",
}
ALWAYS_NULL = {
    ("TwapRow", "market_name"): "specification: always null on perps",
    ("TwapRow", "market_readable"): "specification: always null on perps",
}

DIRECTIONS = {
    "Open Long", "Open Short", "Close Long", "Close Short", "Long > Short", "Short > Long",
    "Buy", "Sell", "Liquidated Cross Long", "Liquidated Cross Short", "Liquidated Isolated Long",
    "Liquidated Isolated Short", "Auto-Deleveraging",
    "Settlement", "Net Child Vaults", "Spot Dust Conversion",
    "Split Outcome", "Merge Outcome", "Negate Outcome", "Merge Question",
}  # fmt: skip
ORDER_TYPES = {
    "Market", "Limit", "Stop Market", "Stop Limit", "Take Profit Market", "Take Profit Limit",
    "Twap Slice", "Vault Close", "Spot Dust Conversion",
}  # fmt: skip
TIFS = {"Gtc", "Ioc", "Alo", "FrontendMarket", "LiquidationMarket", None, UNSET}


def tables(world):
    """The records of each table."""
    sources = world.sources
    yield from (
        (fill for _, fill in sources.fills),
        sources.funding,
        (update for _, update in sources.ledger),
        (event for _, event in sources.orders),
        sources.slippage,
        sources.metas.values(),
        (context for contexts in sources.contexts.values() for context in contexts),
        (state for states in sources.states.values() for state in states.values()),
        sources.limits.values(),
        (row for s in sources.account_snapshots for rows in s.values.values() for row in rows),
        (row for s in sources.twap_snapshots for rows in s.twaps.values() for row in rows),
        sources.borrow_lend.values(),
        sources.spot_states.values(),
        (row for rows in sources.delegations.values() for row in rows),
    )


SCALARS = {str, int, float, bool, types.NoneType, UnsetType}


@cache
def fields_with_records(kind):
    """Return the fields of a record whose type allows more than text, numbers and flags."""
    return [
        name
        for name, hint in typing.get_type_hints(kind).items()
        if not {*(typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,))}
        <= SCALARS
    ]


def iterate_nested_records(value):
    if isinstance(value, msgspec.Struct):
        yield value
        for name in fields_with_records(type(value)):
            yield from iterate_nested_records(getattr(value, name))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from iterate_nested_records(part)


def allowed_forms(kind):
    """Return field -> the forms that its type allows: present, absent, null."""
    hints = typing.get_type_hints(kind)
    forms = {}
    for name, hint in hints.items():
        parts = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
        allowed = {"there"}
        if UnsetType in parts:
            allowed.add("absent")
        if types.NoneType in parts or hint is Any:
            allowed.add("null")
        key = (kind.__name__, name)
        allowed -= {"there"} if key in NEVER or key in ALWAYS_NULL else set()
        allowed -= {"absent"} if key in ALWAYS else set()
        allowed -= {"null"} if key in NEVER_NULL else set()
        forms[name] = allowed
    return forms


def form_of(value):
    return "absent" if value is UNSET else "null" if value is None else "there"


PLAIN_NUMBERS = {"total_sz", "executed_sz", "remaining_sz", "executed_ntl", "progress_pct"}


def missing_branches(rows):
    """Return the branches that occur in no record; stop early if all have occurred."""
    wanted: dict[type, dict[str, set[str]]] = {}
    for number, row in enumerate(rows):
        for record in iterate_nested_records(row):
            kind = type(record)
            if kind not in wanted:
                wanted[kind] = {
                    n: f for n, f in allowed_forms(kind).items() if n not in PLAIN_NUMBERS
                }
            for name in [name for name, forms in wanted[kind].items() if forms]:
                wanted[kind][name].discard(form_of(getattr(record, name)))
        if number % 1_000 == 999 and not any(any(fields.values()) for fields in wanted.values()):
            break
    return {
        f"{kind.__name__}.{name}": forms
        for kind, fields in wanted.items()
        for name, forms in fields.items()
        if forms
    }


def test_every_record_branch_occurs(world):
    assert [missing for table in tables(world) if (missing := missing_branches(table))] == []


def test_coverage_exceptions_are_never_refuted(world):
    """Remove an entry of NEVER, ALWAYS, NEVER_NULL or ALWAYS_NULL when its branch occurs."""
    refuted = {
        **{(*key, "there"): "NEVER" for key in NEVER},
        **{(*key, "absent"): "ALWAYS" for key in ALWAYS},
        **{(*key, "null"): "NEVER_NULL" for key in NEVER_NULL},
        **{(*key, "there"): "ALWAYS_NULL" for key in ALWAYS_NULL},
    }
    watched = defaultdict(list)
    for kind, name, _ in refuted:
        watched[kind].append(name)
    occurring = {
        (kind, name, form_of(getattr(record, name)))
        for table in tables(world)
        for row in table
        for record in iterate_nested_records(row)
        if (kind := type(record).__name__) in watched
        for name in watched[kind]
    }
    assert {key: refuted[key] for key in occurring & refuted.keys()} == {}


def test_every_order_status_occurs(world):
    events: list[OrderStatus] = [event for _, event in world.sources.orders]
    orders: list[Order] = [event.order for event in events]
    listed = {status for statuses in GROUPS.values() for status in statuses}
    assert {event.status for event in events} == listed
    assert {order.order_type for order in orders} == ORDER_TYPES
    assert {order.tif for order in orders} == TIFS
    for flag in ("is_trigger", "is_position_tpsl", "reduce_only"):
        assert {getattr(order, flag) for order in orders} == {True, False}
    assert {bool(order.children) for order in orders} == {True, False}


def test_every_fill_direction_occurs(world):
    fills: list[Fill] = [fill for _, fill in world.sources.fills]
    assert {fill.dir for fill in fills} >= DIRECTIONS
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


def test_ledger_types_have_their_fields(world):
    seen = set()
    for _, update in world.sources.ledger:
        wire = msgspec.to_builtins(update.delta)
        seen.add(wire.pop("type"))
        assert set(wire) == set(DELTA_FIELDS[update.delta.type])
    assert seen == set(DELTA_FIELDS)


def test_every_health_state_occurs(world):
    sources = world.sources
    health = {state.health for state in sources.borrow_lend.values()}
    assert health == {"healthy", "atRisk", "marketLiquidatable", "backstopLiquidatable"}
    modes = {
        row.account_mode
        for snapshot in sources.account_snapshots
        for rows in snapshot.values.values()
        for row in rows
    }
    assert modes == {0, 1, 2, 3}
    leverages = {
        row.position.leverage.type
        for states in sources.states.values()
        for state in states.values()
        for row in state.asset_positions
    }
    assert leverages == {"cross", "isolated"}


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


def test_auctions_run_and_end(world):
    now = world.sources.now_ms // 1000
    for kind in ("spot", "perp"):
        rounds = [a for a in world.sources.auctions if a.kind == kind and a.start_seconds <= now]
        assert {auction.end_gas is None for auction in rounds} == {True, False}
        assert (rounds[-1].end_gas is None) == (kind == "spot")


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
