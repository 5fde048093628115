"""Clearinghouse states: what an account has on a dex, with sums that agree to the last digit."""

from dataclasses import dataclass

from msgspec import UNSET

from toolkit.contract.records import (
    AssetPosition,
    ClearinghouseState,
    CumFunding,
    Leverage,
    MarginSummary,
    Position,
)
from toolkit.rules.margin import exact_maintenance
from toolkit.simulation.accounts import Account
from toolkit.simulation.dealing import mark_price
from toolkit.simulation.exchange import Exchange
from toolkit.simulation.holdings import Funded
from toolkit.simulation.margins import is_isolated, leverage, liquidation_px, margin_used
from toolkit.simulation.markets import DEXES, PERPS, Perp
from toolkit.simulation.quantities import MICRO, money, rounded_share, text

__all__ = ["clearinghouse_states"]


def clearinghouse_states(exchange: Exchange) -> dict[str, dict[str, ClearinghouseState]]:
    """Give the states of all accounts at the end of history, by dex."""
    return {
        dex: {
            account.address: _state(exchange, account.number, number)
            for account in exchange.accounts
        }
        for number, dex in enumerate(DEXES)
    }


def _state(exchange: Exchange, who: int, dex: int) -> ClearinghouseState:
    """Give one state."""
    account = exchange.accounts[who]
    held = [_held(exchange, account, *row) for row in exchange.held(who, dex)]
    crossed = [one for one in held if not one.isolated]
    equity = exchange.balances[who][dex] + sum(one.gain for one in held)
    shared = equity - sum(one.margin for one in held if one.isolated)
    needed = sum(one.maintenance for one in crossed)
    cross = _summary(crossed, shared)
    free = max(0, exchange.free(who, dex, exchange.end_ms))
    return ClearinghouseState(
        margin_summary=_summary(held, equity),
        cross_margin_summary=cross,
        asset_positions=[
            AssetPosition(type="oneWay", position=_position(one, shared - needed, free))
            for one in held
        ],
        time=exchange.end_ms,
        withdrawable=cross.withdrawable,
        cross_maintenance_margin_used=money(needed),
    )


@dataclass(frozen=True, slots=True)
class _Held:
    """A position at the mark price, in whole numbers; `margin` of an isolated one is its equity."""

    perp: Perp
    size: int
    entry: int
    mark: int
    leverage: int
    isolated: bool
    margin: int
    funded: Funded

    @property
    def value(self) -> int:
        """Signed position value."""
        return self.size * self.mark

    @property
    def gain(self) -> int:
        """Unrealised PnL."""
        return self.size * (self.mark - self.entry)

    @property
    def maintenance(self) -> int:
        """Margin below which it is liquidated."""
        return exact_maintenance(abs(self.value), self.perp.tiers)


def _held(exchange: Exchange, account: Account, coin: int, size: int, entry: int) -> _Held:
    mark = mark_price(exchange, coin, exchange.end_ms)
    times = leverage(account, coin)
    isolated = is_isolated(account, coin)
    margin = margin_used(abs(size) * mark, times)
    if isolated:
        margin = exchange.margins[coin][account.number] + size * (mark - entry)
    funded = exchange.funded[coin][account.number]
    return _Held(PERPS[coin], size, entry, mark, times, isolated, margin, funded)


def _summary(held: list[_Held], equity: int) -> MarginSummary:
    margin = sum(one.margin for one in held)
    # ASSUMED: totalRawUsd is the account value less signed notionals, to the last digit; what
    # truncated entry prices leave over stands in it.
    return MarginSummary(
        account_value=text(equity, MICRO),
        total_margin_used=text(margin, MICRO),
        total_ntl_pos=text(sum(abs(one.value) for one in held), MICRO),
        total_raw_usd=text(equity - sum(one.value for one in held), MICRO),
        withdrawable=text(max(0, equity - margin), MICRO),
    )


def _position(one: _Held, cushion: int, free: int) -> Position:
    """Return a position that stands on a cushion with others, or on its own margin."""
    perp = one.perp
    equity = one.margin if one.isolated else cushion + one.maintenance
    px = liquidation_px(one.mark, one.size, equity, perp)
    most = text(free * one.leverage // one.mark, perp.sz_decimals)
    share = rounded_share(one.gain, 10**8, one.margin) if one.margin > 0 else 0
    return Position(
        coin=perp.coin,
        entry_px=text(one.entry, perp.px_decimals),
        leverage=Leverage(
            type="isolated" if one.isolated else "cross",
            value=one.leverage,
            raw_usd=money(one.margin - one.value) if one.isolated else UNSET,
        ),
        liquidation_px=None if px is None else text(px, perp.px_decimals),
        margin_used=text(one.margin, MICRO),
        max_trade_szs=[most, most],
        position_value=text(abs(one.value), MICRO),
        return_on_equity=text(share, 8),
        szi=text(one.size, perp.sz_decimals),
        unrealized_pnl=text(one.gain, MICRO),
        max_leverage=perp.max_leverage,
        cum_funding=_cum_funding(one.funded),
    )


def _cum_funding(funded: Funded) -> CumFunding:
    # ASSUMED: cumulative funding counts what was paid; what was received is negative.
    return CumFunding(
        all_time=money(-funded.all_time),
        since_open=money(-funded.since_open),
        since_change=money(-funded.since_change),
    )
