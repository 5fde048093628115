"""Clearinghouse states: what an account has on a dex, with sums that agree to the last digit."""

from toolkit.contract.records import (
    AssetPosition,
    ClearinghouseState,
    Leverage,
    MarginSummary,
    Position,
)
from toolkit.simulation.dealing import mark_price
from toolkit.simulation.exchange import Exchange
from toolkit.simulation.liquidation import maintenance
from toolkit.simulation.markets import DEXES, PERPS
from toolkit.simulation.quantities import MICRO, rounded_share, text

__all__ = ["clearinghouse_states", "margin_used"]


def clearinghouse_states(exchange: Exchange) -> dict[str, dict[str, ClearinghouseState]]:
    """Give the states of all accounts at the end of history, by dex."""
    return {
        dex: {
            account.address: _state(exchange, account.number, number)
            for account in exchange.accounts
        }
        for number, dex in enumerate(DEXES)
    }


def margin_used(notional: int, leverage: int) -> int:
    """Give the margin of a position: its notional over its leverage, to the micro-dollar."""
    return rounded_share(notional, 1, leverage)


def _state(exchange: Exchange, who: int, dex: int) -> ClearinghouseState:
    """Give one state."""
    # ASSUMED: an account's cash on a dex stands behind all its positions, isolated ones too.
    time = exchange.end_ms
    equity = exchange.balances[who][dex] + exchange.unrealised(who, dex)
    held = list(exchange.held(who, dex))
    crossed = [row for row in held if not PERPS[row[0]].only_isolated]
    isolated = _margin(exchange, who, [row for row in held if PERPS[row[0]].only_isolated])
    needed = sum(
        maintenance(abs(size) * mark_price(exchange, coin, time), PERPS[coin].max_leverage)
        for coin, size, _ in held
    )
    positions = [
        _position(exchange, who, coin, size, entry, equity - needed) for coin, size, entry in held
    ]
    return ClearinghouseState(
        margin_summary=_summary(exchange, who, held, equity),
        cross_margin_summary=_summary(exchange, who, crossed, equity - isolated),
        asset_positions=[AssetPosition(type="oneWay", position=row) for row in positions],
        time=time,
    )


def _leverage(exchange: Exchange, who: int, coin: int) -> int:
    """Give the leverage that an account has set for a perp: 3 to 10, as far as it goes."""
    return min(PERPS[coin].max_leverage, 3 + exchange.accounts[who].number % 8)


def _margin(exchange: Exchange, who: int, held: list[tuple[int, int, int]]) -> int:
    return sum(
        margin_used(
            abs(size) * mark_price(exchange, coin, exchange.end_ms), _leverage(exchange, who, coin)
        )
        for coin, size, _ in held
    )


def _summary(
    exchange: Exchange, who: int, held: list[tuple[int, int, int]], equity: int
) -> MarginSummary:
    values = [size * mark_price(exchange, coin, exchange.end_ms) for coin, size, _ in held]
    margin = _margin(exchange, who, held)
    # ASSUMED: totalRawUsd is the account value less signed notionals, to the last digit; what
    # truncated entry prices leave over stands in it.
    return MarginSummary(
        account_value=text(equity, MICRO),
        total_margin_used=text(margin, MICRO),
        total_ntl_pos=text(sum(map(abs, values)), MICRO),
        total_raw_usd=text(equity - sum(values), MICRO),
        withdrawable=text(max(0, equity - margin), MICRO),
    )


def _position(
    exchange: Exchange, who: int, coin: int, size: int, entry: int, cushion: int
) -> Position:
    perp = PERPS[coin]
    mark = mark_price(exchange, coin, exchange.end_ms)
    leverage = _leverage(exchange, who, coin)
    notional, gain = abs(size) * mark, size * (mark - entry)
    margin = margin_used(notional, leverage)
    most = text(max(0, cushion) * leverage // mark, perp.sz_decimals)
    return Position(
        coin=perp.coin,
        entry_px=text(entry, perp.px_decimals),
        leverage=Leverage(type="isolated" if perp.only_isolated else "cross", value=leverage),
        liquidation_px=_liquidation_px(perp.px_decimals, size, mark, cushion),
        margin_used=text(margin, MICRO),
        max_trade_szs=[most, most],
        position_value=text(notional, MICRO),
        return_on_equity=text(rounded_share(gain, 10**8, margin) if margin else 0, 8),
        szi=text(size, perp.sz_decimals),
        unrealized_pnl=text(gain, MICRO),
    )


def _liquidation_px(px_decimals: int, size: int, mark: int, cushion: int) -> str | None:
    """Give the mark price that would use up the cushion, None where no price above zero does."""
    # ASSUMED: a liquidation price takes the maintenance margin as it stands at the mark price.
    px = mark - cushion // size
    return text(px, px_decimals) if 0 < px < 1_000 * mark else None
