"""Snapshots of account values and TWAPs, and valuations of accounts, taken during history.

Source of the shape of valuations: docs/live_service.md, section 9, ``portfolio``.
"""

from collections import defaultdict
from dataclasses import dataclass

from toolkit.contract.records import AccountValueRow, BranchMargin, TwapRow
from toolkit.contract.source_tables import AccountSnapshot, TwapSnapshot, Valuation
from toolkit.rules.closed_pnl import entry_price
from toolkit.rules.margin import exact_maintenance
from toolkit.rules.spot_cost import WEI
from toolkit.simulation.engine.accounts import PORTFOLIO_MARGIN, UNIFIED
from toolkit.simulation.engine.exchange import DEX_INDEX, Exchange
from toolkit.simulation.engine.orders import Twap
from toolkit.simulation.engine.state import SimulationState
from toolkit.simulation.markets import COLLATERAL, DEXES, FOLLOWED_PERPS, PERPS
from toolkit.simulation.quantities import MICRO, WEI_PER_MICRO, money_text
from toolkit.times import HOUR, MINUTE, SECOND, to_iso

SNAPSHOT_MS = 10 * MINUTE
"""Time between the snapshots at the end of history."""

VALUATION_MS = 3 * HOUR
"""Time between two valuations."""

_USD = 1e6
_Sums = dict[tuple[int, int], tuple[int, int, int, int]]
_NOTHING = (0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class SnapshotEvent:
    """The time of a snapshot."""

    time: int

    def apply(self, state: SimulationState) -> None:
        """Take both snapshots; they have the same time and id."""
        snapshot_id = snapshot_name(self.time)
        values = _account_values(state.exchange, snapshot_id, self.time)
        twaps: dict[str, list[TwapRow]] = {}
        for twap in state.twaps:
            if not twap.ended:
                row = _twap_row(twap, snapshot_id)
                twaps.setdefault(row.market, []).append(row)
        state.account_snapshots.append(AccountSnapshot(snapshot_id, self.time, values))
        state.twap_snapshots.append(TwapSnapshot(snapshot_id, self.time, twaps))


@dataclass(frozen=True, slots=True)
class ValuationEvent:
    """The time of a valuation."""

    time: int

    def apply(self, state: SimulationState) -> None:
        """Value every account."""
        exchange = state.exchange
        pnl_by_account = _unrealised_by_account(exchange, self.time)
        prices = {
            token: exchange.mark_price(coin, self.time)
            * int(10 ** (MICRO - PERPS[coin].px_decimals))
            for token, coin in FOLLOWED_PERPS.items()
        }
        for account in exchange.accounts:
            number = account.number
            totals = exchange.totals[number]
            unrealised = pnl_by_account[number]
            perps = sum(exchange.balances[number]) + unrealised
            perp_pnl = totals.closed + totals.funding - totals.fees + unrealised
            spot = _value_spot_wallet(state, number, prices)
            valuation = Valuation(
                time=self.time,
                account_value=money_text(perps + spot),
                pnl=money_text(perp_pnl + spot - state.spot_flows[number]),
                perp_value=money_text(perps),
                perp_pnl=money_text(perp_pnl),
            )
            state.valuations[number].append(valuation)


def valuations_by_user(state: SimulationState) -> dict[str, list[Valuation]]:
    """Return the valuations of every account, by time."""
    return {
        account.address: state.valuations[account.number] for account in state.exchange.accounts
    }


def snapshot_name(time: int) -> str:
    """Return the id of the snapshots of a time.

    >>> snapshot_name(1759276800000)
    '20251001_state_759276800'
    """
    day = to_iso(time)[:10].replace("-", "")
    return f"{day}_state_{700_000_000 + time // SECOND % 100_000_000}"


def portfolio_margin_ratio(required: float, value: int) -> float:
    """Return the maintenance margin as a share of an account's value.

    >>> portfolio_margin_ratio(500_000, 2_000_000)
    0.25
    """
    return round(required / value, 6) if value > 0 else 1.0


def branch_margins(value: int, notional: int) -> list[BranchMargin]:
    """Return the account value above the margin: all of it in USDC, half of it in USDH.

    >>> [branch.available for branch in branch_margins(2_000_000, 5_000_000)]
    [1.5, 0.75]
    """
    available = max(0, value - notional // 10)
    return [
        BranchMargin(token="USDC", available=available / _USD),
        BranchMargin(token="USDH", available=available // 2 / _USD),
    ]


def _account_values(
    exchange: Exchange, snapshot_id: str, time: int
) -> dict[tuple[str, str], list[AccountValueRow]]:
    sums = _position_sums(exchange, time)
    values: dict[tuple[str, str], list[AccountValueRow]] = {}
    for number, dex in enumerate(DEXES):
        values[dex, COLLATERAL[dex]] = [
            _value_row(exchange, snapshot_id, account.number, number, sums)
            for account in exchange.accounts
            if exchange.balances[account.number][number] or not dex
        ]
    return values


def _position_sums(exchange: Exchange, time: int) -> _Sums:
    """Return unrealised PnL, long and short notional, and margin by account and dex."""
    sums: _Sums = {}
    for coin, positions in enumerate(exchange.positions):
        mark, dex = exchange.mark_price(coin, time), DEX_INDEX[coin]
        for account, (size, entry) in positions.items():
            pnl, long, short, required = sums.get((account, dex), _NOTHING)
            pnl += size * (mark - entry_price(size, entry))
            notional = size * mark
            required += exact_maintenance(abs(notional), PERPS[coin].tiers)
            sums[account, dex] = pnl, long + max(notional, 0), short + max(-notional, 0), required
    return sums


def _value_row(
    exchange: Exchange,
    snapshot_id: str,
    number: int,
    dex: int,
    sums: _Sums,
) -> AccountValueRow:
    account = exchange.accounts[number]
    _, long, short, _ = sums.get((number, dex), _NOTHING)
    cash = exchange.wallets[number]["USDC"].balance
    token, is_portfolio = COLLATERAL[DEXES[dex]], account.mode == PORTFOLIO_MARGIN
    # ASSUMED: On the native dex, the account value of a unified account includes the USDC of its
    # spot wallet. That of a portfolio-margin account is the value of the token over all dexes.
    counted = [
        place
        for place, name in enumerate(DEXES)
        if place == dex or (is_portfolio and COLLATERAL[name] == token)
    ]
    perps = {
        place: exchange.balances[number][place] + sums.get((number, place), _NOTHING)[0]
        for place in range(len(DEXES))
    }
    has_wallet = account.mode >= UNIFIED and (token == "USDC" if is_portfolio else not DEXES[dex])
    wei = sum(perps[place] for place in counted) * WEI_PER_MICRO + cash * has_wallet
    value = wei // WEI_PER_MICRO
    row = AccountValueRow(
        snapshot_id=snapshot_id,
        collateral_token=COLLATERAL[DEXES[dex]],
        user=account.address,
        account_value=wei / (_USD * WEI_PER_MICRO),
        total_long_notional=long / _USD,
        total_short_notional=short / _USD,
        is_unified=account.mode == UNIFIED,
        account_mode=account.mode,
        pm_ratio=None,
        pm_avail_by_branch=None,
        pm_total_account_value=None,
    )
    if is_portfolio:
        # ASSUMED: The ratio of a portfolio-margin account is the maintenance margin of all its
        # positions divided by its total value.
        required = sum(sums.get((number, place), _NOTHING)[3] for place in perps)
        total = sum(perps.values()) * WEI_PER_MICRO + cash
        row.pm_ratio = portfolio_margin_ratio(required, total // WEI_PER_MICRO)
        row.pm_avail_by_branch = branch_margins(value, long + short)
        row.pm_total_account_value = total / (_USD * WEI_PER_MICRO)
    return row


def _twap_row(twap: Twap, snapshot_id: str) -> TwapRow:
    perp = PERPS[twap.coin]
    lots, ticks = float(10**perp.sz_decimals), float(10**perp.px_decimals)
    return TwapRow(
        snapshot_id=snapshot_id,
        market=perp.coin,
        address=twap.account.address,
        twap_id=twap.number,
        asset=perp.coin,
        is_buy=twap.is_buy,
        total_sz=twap.total / lots,
        executed_sz=twap.executed / lots,
        remaining_sz=(twap.total - twap.executed) / lots,
        executed_ntl=twap.executed_ntl / float(10**MICRO),
        progress_pct=100.0 * twap.executed / twap.total,
        duration_secs=twap.duration_secs,
        start_time_ms=twap.start,
        reduce_only=twap.reduce_only,
        randomize=twap.randomize,
        next_slice_time=to_iso(twap.next_slice),
        slice_number=twap.slice_number,
        market_name=None,
        market_readable=None,
        stop_px=twap.stop_px / ticks if twap.stop_px else None,
        trigger_px=twap.trigger_px / ticks if twap.waiting else None,
        trigger_above=twap.trigger_above if twap.waiting else None,
        waiting=twap.waiting,
    )


def _unrealised_by_account(exchange: Exchange, time: int) -> defaultdict[int, int]:
    """Return each account's unrealised PnL over all perps, in micro-dollars."""
    pnl: defaultdict[int, int] = defaultdict(int)
    for coin, positions in enumerate(exchange.positions):
        mark = exchange.mark_price(coin, time)
        for account, (size, entry) in positions.items():
            pnl[account] += size * (mark - entry_price(size, entry))
    return pnl


def _value_spot_wallet(state: SimulationState, account: int, prices: dict[str, int]) -> int:
    """Return the value of a spot wallet, and add what came in without a trade to its flows."""
    # ASSUMED: The operation `portfolio` values a token that came in without a trade at the price of
    # the next valuation. A stablecoin counts as one dollar. An outcome token counts as half a
    # dollar.
    value = 0
    for token, balance in state.exchange.wallets[account].items():
        px = 10**MICRO // 2 if token.startswith("+") else prices.get(token, 10**MICRO)
        value += balance.balance * px // 10**WEI
        moved = balance.ledger - state.valued_ledgers[account, token]
        if moved:
            state.valued_ledgers[account, token] = balance.ledger
            state.spot_flows[account] += moved * px // 10**WEI
    return value
