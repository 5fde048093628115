"""Clearinghouse states: what an account has on a dex, with sums that agree to the last digit."""

from dataclasses import dataclass

from toolkit.contract.records import (
    AssetPosition,
    ClearinghouseState,
    Leverage,
    MarginSummary,
    Position,
)
from toolkit.simulation.accounts import Account
from toolkit.simulation.dealing import mark_price
from toolkit.simulation.exchange import Exchange
from toolkit.simulation.margins import (
    is_isolated,
    leverage,
    liquidation_px,
    maintenance,
    margin_used,
)
from toolkit.simulation.markets import DEXES, PERPS, Perp
from toolkit.simulation.quantities import MICRO, rounded_share, text

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
    cushion = shared - sum(one.maintenance for one in crossed)
    free = max(0, exchange.free(who, dex, exchange.end_ms))
    return ClearinghouseState(
        margin_summary=_summary(held, equity),
        cross_margin_summary=_summary(crossed, shared),
        asset_positions=[
            AssetPosition(type="oneWay", position=_position(one, cushion, free)) for one in held
        ],
        time=exchange.end_ms,
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
        return maintenance(abs(self.value), self.perp.max_leverage)


def _held(exchange: Exchange, account: Account, coin: int, size: int, entry: int) -> _Held:
    mark = mark_price(exchange, coin, exchange.end_ms)
    times = leverage(account, coin)
    isolated = is_isolated(account, coin)
    margin = margin_used(abs(size) * mark, times)
    if isolated:
        margin = exchange.margins[coin][account.number] + size * (mark - entry)
    return _Held(PERPS[coin], size, entry, mark, times, isolated, margin)


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
    """Give a position that stands on a cushion with others, or on its own margin."""
    perp = one.perp
    if one.isolated:
        cushion = one.margin - one.maintenance
    px = liquidation_px(one.mark, one.size, cushion, perp.max_leverage)
    most = text(free * one.leverage // one.mark, perp.sz_decimals)
    share = rounded_share(one.gain, 10**8, one.margin) if one.margin > 0 else 0
    return Position(
        coin=perp.coin,
        entry_px=text(one.entry, perp.px_decimals),
        leverage=Leverage(type="isolated" if one.isolated else "cross", value=one.leverage),
        liquidation_px=None if px is None else text(px, perp.px_decimals),
        margin_used=text(one.margin, MICRO),
        max_trade_szs=[most, most],
        position_value=text(abs(one.value), MICRO),
        return_on_equity=text(share, 8),
        szi=text(one.size, perp.sz_decimals),
        unrealized_pnl=text(one.gain, MICRO),
    )
