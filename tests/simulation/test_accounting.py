"""The accounts of the exchange balance exactly, computed only from wire records."""

from collections import defaultdict
from decimal import Decimal
from fractions import Fraction

from msgspec import UNSET

from tests.simulation.test_dexes import is_perp, number
from toolkit.contract.dexes import coin_dex
from toolkit.contract.records import Fill
from toolkit.rules.directions import NOT_TRADED
from toolkit.rules.spot_cost import SWAPS
from toolkit.simulation.engine.positions import OUTAGE, OUTAGE_DEX

MICRO = Decimal("0.000001")


def group_by_user(rows):
    kept = defaultdict(list)
    for user, row in rows:
        kept[user].append(row)
    return kept


def signed_size(fill):
    return Decimal(fill.sz) if fill.side == "B" else -Decimal(fill.sz)


def is_perp_pair(pair):
    return is_perp(pair[1])


PERP_FLOWS = {
    "deposit": "in",
    "vaultLeaderCommission": "in",
    "withdraw": "out",
    "internalTransfer": "between",
    "subAccountTransfer": "between",
    "accountClassTransfer": "class",
    "perpDexClassTransfer": "class",
    "vaultCreate": "into vault",
    "vaultDeposit": "into vault",
    "vaultDistribution": "out of vault",
    "vaultWithdraw": "out of vault",
    "send": "send",
}
TOKEN_FLOWS = {
    "accountClassTransfer": "class",
    "perpDexClassTransfer": "class",
    "spotTransfer": "between",
    "send": "send",
    "spotGenesis": "in",
    "rewardsClaim": "in",
    "deployGasAuction": "out",
    "accountActivationGas": "out",
    "cStakingTransfer": "staking",
    "borrowLend": "lending",
}


def send_sides(user, delta, wallet):
    """Return whether a `send` entered this user's perps or spot wallet, or left it."""

    def here(dex):
        return (dex == "spot") == (wallet == "spot")

    came = delta.destination == user and here(delta.destination_dex)
    return came - (delta.user == user and here(delta.source_dex))


def perp_flow(user, delta):
    """Return what a ledger update adds to the perp account, over all its dexes."""
    amount, fee = number(delta.usdc) or number(delta.amount), number(delta.fee)
    paid = number(delta.net_withdrawn_usd) or amount
    owns_vault = delta.vault == user
    flows = {
        "in": amount,
        "out": -amount - fee,
        "between": -amount - fee if delta.user == user else amount,
        "class": amount if delta.to_perp else -amount,
        "into vault": amount if owns_vault else -amount - fee,
        "out of vault": -paid - number(delta.commission) if owns_vault else paid,
        "send": amount * send_sides(user, delta, "perps"),
    }
    return flows.get(PERP_FLOWS.get(delta.type, ""), Decimal(0))


def token_flow(user, delta):
    """Return what a ledger update adds to the spot wallet: token and amount."""
    amount, interest = number(delta.usdc) or number(delta.amount), number(delta.interest_amount)
    lending = {
        "borrow": amount,
        "withdraw": amount + interest,
        "supply": -amount,
        "repay": -amount - interest,
    }
    flows = {
        "in": amount,
        "out": -amount,
        "between": -amount if delta.user == user else amount,
        "class": -amount if delta.to_perp else amount,
        "send": amount * send_sides(user, delta, "spot"),
        "staking": -amount if delta.is_deposit else amount,
        "lending": lending.get(str(delta.operation), Decimal(0)),
    }
    token = delta.token if isinstance(delta.token, str) else "USDC"
    return token, flows.get(TOKEN_FLOWS.get(delta.type, ""), Decimal(0))


def test_positions_form_chains(any_world):
    held: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for user, fill in any_world.sources.fills:
        if is_perp(fill):
            assert Decimal(fill.start_position) == held[user, fill.coin]
            held[user, fill.coin] += signed_size(fill)


def test_closed_pnl_follows_rule(any_world):
    """The test repeats the rule of the clarifications, in fractions."""
    places = {
        asset.name: 6 - asset.sz_decimals
        for meta in any_world.sources.metas.values()
        for asset in meta.universe
    }
    state: dict[tuple[str, str], tuple[Fraction, Fraction]] = {}
    for user, fill in filter(is_perp_pair, any_world.sources.fills):
        size, notional = state.get((user, fill.coin), (Fraction(0), Fraction(0)))
        change, px = Fraction(signed_size(fill)), Fraction(fill.px)
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


def test_trades_have_maker_and_taker(any_world):
    trades: dict[int, list[Fill]] = defaultdict(list)
    for _, fill in any_world.sources.fills:
        if fill.dir not in NOT_TRADED:
            trades[fill.tid].append(fill)
    for maker, taker in trades.values():
        assert (maker.crossed, taker.crossed) == (False, True)
        assert signed_size(maker) == -signed_size(taker)
        for name in ("coin", "px", "time", "hash", "tx_index"):
            assert getattr(maker, name) == getattr(taker, name)


def test_funding_sums_to_zero(any_world):
    paid: dict[tuple[str, int], Decimal] = defaultdict(Decimal)
    for row in any_world.sources.funding:
        paid[row.delta.coin, row.time] += Decimal(row.delta.usdc)
    assert paid
    assert set(paid.values()) == {Decimal(0)}


def test_funding_covers_all_positions(any_world):
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
            held[user, fill.coin] += signed_size(fill) if is_perp(fill) else 0
            entry = next(fills)
        missed = (time - sources.start_ms) // hour in OUTAGE[:-1]
        expected |= {
            (time, user, coin): size
            for (user, coin), size in held.items()
            if size and not (missed and coin_dex(coin) == OUTAGE_DEX)
        }
    assert {key: Decimal(szi) for key, szi in rows.items()} == expected


def test_settlements_close_all_positions(any_world):
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for _, fill in any_world.sources.fills:
        if fill.dir == "Settlement" and is_perp(fill):
            assert Decimal(fill.start_position) == -signed_size(fill)
            sums[fill.coin] += signed_size(fill)
    assert set(sums.values()) == {Decimal(0)}


def test_equity_equals_table_sums(any_world):
    sources = any_world.sources
    fills, ledger = group_by_user(sources.fills), group_by_user(sources.ledger)
    funding = group_by_user((row.user, row) for row in sources.funding)
    for user, truth in {**any_world.expected, **any_world.expected_mixed}.items():
        perps = [fill for fill in fills[user] if is_perp(fill)]
        closed = sum((Decimal(fill.closed_pnl) for fill in perps), Decimal(0))
        fees = sum((Decimal(fill.fee) for fill in perps), Decimal(0))
        funded = sum((Decimal(row.delta.usdc) for row in funding[user]), Decimal(0))
        flows = sum((perp_flow(user, update.delta) for update in ledger[user]), Decimal(0))
        assert (closed, fees, funded, flows) == (
            truth.closed_pnl,
            truth.fees,
            truth.funding,
            truth.ledger,
        )
        assert truth.equity_end == flows + closed + funded - fees + truth.unrealised


def test_states_agree_with_equity(any_world):
    """Account values over all dexes, with collateral in the spot wallet, equal the equity."""
    for user, truth in {**any_world.expected, **any_world.expected_mixed}.items():
        states = [states[user] for states in any_world.sources.states.values()]
        values = [Decimal(state.margin_summary.account_value) for state in states]
        for row in any_world.sources.spot_states[user].balances:
            values.append(Decimal(row.total))
        wallet = sum((kept.balance for kept in truth.tokens.values()), Decimal(0))
        assert sum(values, Decimal(0)) == truth.equity_end + wallet
        gains = Decimal(0)
        for state in states:
            summary = state.margin_summary
            held = [row.position for row in state.asset_positions]
            signs = [1 if Decimal(row.szi) > 0 else -1 for row in held]
            notional = [Decimal(row.position_value) for row in held]
            assert Decimal(summary.total_ntl_pos) == sum(notional)
            assert Decimal(summary.total_margin_used) == sum(Decimal(p.margin_used) for p in held)
            worth = sum(sign * value for sign, value in zip(signs, notional, strict=True))
            assert Decimal(summary.account_value) == Decimal(summary.total_raw_usd) + worth
            gains += sum(Decimal(row.unrealized_pnl) for row in held)
            cross = state.cross_margin_summary
            for sums in (summary, cross):
                free = Decimal(sums.account_value) - Decimal(sums.total_margin_used)
                assert Decimal(sums.withdrawable) == max(free, Decimal(0))
        assert gains == truth.unrealised


def test_wallets_equal_table_sums(any_world):
    """Spot balances add up by token, and each spot fill starts from the balance before it."""
    held: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    staked: dict[str, Decimal] = defaultdict(Decimal)
    bases = {"PURR/USDC": "PURR", "@107": "HYPE", "@142": "UBTC"}
    rows = [(update.time, 0, user, update) for user, update in any_world.sources.ledger]
    rows += [(fill.time, 1, user, fill) for user, fill in any_world.sources.fills]
    for _, _, user, row in sorted(rows, key=lambda entry: entry[:2]):
        if not isinstance(row, Fill):
            token, amount = token_flow(user, row.delta)
            held[user, token] += amount
            if row.delta.type == "cStakingTransfer":
                staked[user] -= amount
            continue
        held[user, "HYPE"] -= number(row.priority_gas)
        if is_perp(row):
            continue
        base = bases.get(row.coin, "+" + row.coin[1:])
        assert Decimal(row.start_position) == held[user, base]
        held[user, base] += signed_size(row)
        if row.dir in SWAPS:
            continue
        value = Decimal(row.sz) * Decimal(row.px)
        dollars = value.quantize(Decimal("1e-8"), "ROUND_DOWN") if row.tid == 0 else value
        held[user, "USDC"] += -dollars if row.side == "B" else dollars
        held[user, row.fee_token] -= Decimal(row.fee)
    for user, truth in {**any_world.expected, **any_world.expected_mixed}.items():
        assert {token: held[user, token] for token in truth.tokens} == {
            token: kept.balance for token, kept in truth.tokens.items()
        }
        assert all(kept.balance >= 0 for kept in truth.tokens.values())
        rows = any_world.sources.delegations.get(user, [])
        assert sum(Decimal(row.amount) for row in rows) == staked[user]


def test_fee_includes_its_parts(any_world):
    for _, fill in any_world.sources.fills:
        assert (fill.deployer_fee is not UNSET) == (":" in fill.coin)
        assert (fill.builder_fee is not UNSET) == isinstance(fill.builder, str)
        parts = [part for part in (fill.builder_fee, fill.deployer_fee) if part is not UNSET]
        if parts and fill.crossed:
            assert Decimal(fill.fee) > sum(map(Decimal, parts), Decimal(0)) - MICRO


def test_routing_needs_builder_approval(any_world):
    sources = any_world.sources
    changes = [((a.time, -1), a) for a in sources.approvals]
    routed = [((f.time, 0), (u, f)) for u, f in sources.fills if isinstance(f.builder, str)]
    active: set[tuple[str, str]] = set()
    for _, what in sorted(changes + routed, key=lambda pair: pair[0]):
        if isinstance(what, tuple):
            assert (what[0], what[1].builder) in active
        elif what.approved:
            active.add((what.user, what.builder))
        else:
            active.discard((what.user, what.builder))
    assert routed
