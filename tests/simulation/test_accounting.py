"""The exchange's books balance: exactly, for every account, from the wire records alone."""

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction

from msgspec import UNSET

from toolkit.contract.records import Fill, LedgerDelta
from toolkit.simulation import World

MICRO = Decimal("0.000001")


def by_user(rows: Iterable[tuple[str, object]]) -> dict[str, list]:
    kept = defaultdict(list)
    for user, row in rows:
        kept[user].append(row)
    return kept


def signed(fill: Fill) -> Decimal:
    return Decimal(fill.sz) if fill.side == "B" else -Decimal(fill.sz)


def flow(user: str, delta: LedgerDelta) -> Decimal:
    """What a ledger update brings to the perp account, over all its dexes."""
    fee = Decimal(0) if delta.fee is UNSET else Decimal(delta.fee)
    match delta.type:
        case "deposit":
            return Decimal(delta.usdc)
        case "withdraw":
            return -Decimal(delta.usdc) - fee
        case "internalTransfer" | "subAccountTransfer":
            return -Decimal(delta.usdc) - fee if delta.user == user else Decimal(delta.usdc)
        case "accountClassTransfer":
            return Decimal(delta.usdc) if delta.to_perp else -Decimal(delta.usdc)
        case "send":
            assert delta.user == delta.destination
            return -fee
    raise AssertionError(delta.type)


def test_positions_chain(any_world: World) -> None:
    held: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for user, fill in any_world.sources.fills:
        assert Decimal(fill.start_position) == held[user, fill.coin]
        held[user, fill.coin] += signed(fill)


def test_closed_pnl_follows_the_rule(any_world: World) -> None:
    """The rule again, in fractions and in the words of the clarifications."""
    places = {
        asset.name: 6 - asset.sz_decimals
        for meta in any_world.sources.metas.values()
        for asset in meta.universe
    }
    state: dict[tuple[str, str], tuple[Fraction, Fraction]] = {}
    for user, fill in any_world.sources.fills:
        size, notional = state.get((user, fill.coin), (Fraction(0), Fraction(0)))
        change, px = Fraction(signed(fill)), Fraction(fill.px)
        closing = min(abs(change), abs(size)) if size * change < 0 else Fraction(0)
        closed = Fraction(0)
        if closing:
            step = 10 ** places[fill.coin]
            entry = Fraction(notional / abs(size) * step // 1, step)
            closed = closing * (px - entry) * (1 if size > 0 else -1)
            notional -= notional * closing / abs(size)
        notional += (abs(change) - closing) * px
        assert Fraction(fill.closed_pnl) == closed
        state[user, fill.coin] = (size + change, notional)


def test_every_trade_has_two_sides(any_world: World) -> None:
    trades: dict[int, list[Fill]] = defaultdict(list)
    for _, fill in any_world.sources.fills:
        trades[fill.tid].append(fill)
    for maker, taker in trades.values():
        assert (maker.crossed, taker.crossed) == (False, True)
        assert signed(maker) == -signed(taker)
        for name in ("coin", "px", "time", "hash", "tx_index"):
            assert getattr(maker, name) == getattr(taker, name)


def test_funding_sums_to_zero(any_world: World) -> None:
    paid: dict[tuple[str, int], Decimal] = defaultdict(Decimal)
    for row in any_world.sources.funding:
        paid[row.delta.coin, row.time] += Decimal(row.delta.usdc)
    assert paid
    assert set(paid.values()) == {Decimal(0)}


def test_funding_implies_one_oracle_price(any_world: World) -> None:
    """usdc = -szi * oracle * rate: one price must explain all rows, to their rounding."""
    low: dict[tuple[str, int], Fraction] = {}
    high: dict[tuple[str, int], Fraction] = {}
    for row in any_world.sources.funding:
        slope = -Fraction(row.delta.szi) * Fraction(row.delta.funding_rate)
        if not slope:
            continue
        key = (row.delta.coin, row.time)
        ends = sorted(
            (Fraction(row.delta.usdc) + edge * Fraction(MICRO)) / slope for edge in (-1, 1)
        )
        low[key] = max(low.get(key, ends[0]), ends[0])
        high[key] = min(high.get(key, ends[1]), ends[1])
    assert all(low[key] < high[key] for key in low)


def test_funding_rows_cover_every_position_and_hour(any_world: World) -> None:
    hour = 3_600_000
    sources = any_world.sources
    held: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    rows = {(row.time, row.user, row.delta.coin): row.delta.szi for row in sources.funding}
    fills = iter([*sources.fills, None])
    entry = next(fills)
    expected = {}
    for time in range(sources.start_ms + hour, sources.now_ms + 1, hour):
        while entry is not None and entry[1].time <= time:
            user, fill = entry
            held[user, fill.coin] += signed(fill)
            entry = next(fills)
        expected |= {(time, *key): size for key, size in held.items() if size}
    assert {key: Decimal(szi) for key, szi in rows.items()} == expected


def test_equity_is_what_the_tables_say(any_world: World) -> None:
    sources = any_world.sources
    fills, ledger = by_user(sources.fills), by_user(sources.ledger)
    funding = by_user((row.user, row) for row in sources.funding)
    for user, truth in any_world.truth.items():
        closed = sum((Decimal(fill.closed_pnl) for fill in fills[user]), Decimal(0))
        fees = sum((Decimal(fill.fee) for fill in fills[user]), Decimal(0))
        funded = sum((Decimal(row.delta.usdc) for row in funding[user]), Decimal(0))
        flows = sum((flow(user, update.delta) for update in ledger[user]), Decimal(0))
        assert (closed, fees, funded, flows) == (
            truth.closed_pnl,
            truth.fees,
            truth.funding,
            truth.ledger,
        )
        assert truth.equity_end == flows + closed + funded - fees + truth.unrealised


def test_fee_contains_builder_and_deployer_fee(any_world: World) -> None:
    for _, fill in any_world.sources.fills:
        assert (fill.deployer_fee is not UNSET) == (":" in fill.coin)
        assert (fill.builder_fee is not UNSET) == (fill.builder is not UNSET)
        parts = [part for part in (fill.builder_fee, fill.deployer_fee) if part is not UNSET]
        if parts and fill.crossed:
            assert Decimal(fill.fee) > sum(map(Decimal, parts), Decimal(0)) - MICRO


def test_orders_are_routed_only_while_the_builder_is_approved(any_world: World) -> None:
    sources = any_world.sources
    changes = [((a.time, -1), a) for a in sources.approvals]
    routed = [((f.time, 0), (u, f)) for u, f in sources.fills if f.builder is not UNSET]
    active: set[tuple[str, str]] = set()
    for _, what in sorted(changes + routed, key=lambda pair: pair[0]):
        if isinstance(what, tuple):
            assert (what[0], what[1].builder) in active
        elif what.approved:
            active.add((what.user, what.builder))
        else:
            active.discard((what.user, what.builder))
    assert routed
