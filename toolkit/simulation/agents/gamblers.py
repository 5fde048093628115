"""Accounts with a story: gamblers whose bets lose at a known time, and large positions.

Prices are drawn before anybody trades. A story can therefore look ahead for a price move that is
large enough. The account opens at the largest leverage just before this move.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from toolkit.simulation.engine import books
from toolkit.simulation.engine.accounts import Account
from toolkit.simulation.engine.exchange import DEX_INDEX, Exchange
from toolkit.simulation.engine.positions import MARGIN_CHECK_MS
from toolkit.simulation.engine.prices import MINUTES_AN_HOUR, Prices
from toolkit.simulation.markets import COINS, PERPS
from toolkit.times import HOUR, MINUTE

_LOOK_AHEAD_HOURS = 24
_FIRST_HOUR = 3
"""The first hour at which a bet may begin. Earlier, some deposits have not arrived yet."""

_LIQUIDATION_LOSS, _LARGEST_LOSS = 0.5, 0.9
"""Shares of the margin: a loss that leads to liquidation, and the largest loss of a bet."""

_OPENING_MINUTE = 30
_CHECK_MINUTE = MARGIN_CHECK_MS // MINUTE

Bet = tuple[tuple[str, ...], float]
"""Candidate perps, and the position's size relative to its market's depth."""

_LIQUID: Bet = (("SOL", "HYPE", "XRP", "DOGE", "BNB", "SUI"), 0.5)
_SMALL: Bet = (_LIQUID[0], 0.2)
_ISOLATED: Bet = (("PURR",), 6.0)
_LARGER: Bet = ((*_LIQUID[0], "ETH", "LINK", "AVAX"), 1.6)

_PARTIAL_LOSS, _REMAINING_LOSS = (0.51, 0.56), 0.48
"""Shares of the margin: the loss at a partial liquidation, and the largest loss afterwards."""

_SMALLEST_PARTIAL, _LARGEST_PARTIAL = 110_000, 190_000
"""Smallest and largest size, in USD, of a position that is liquidated in part.

Smaller positions are liquidated as a whole. Larger positions may leave the first margin tier."""

_PIECES, _PIECE_MS, _BUILD_START, _BUILD_LEVERAGE = 60, 20 * MINUTE, 0.55, 4
"""Positions built piece by piece: number, interval, start as a share of history, leverage."""


@dataclass(frozen=True, slots=True)
class Story:
    """A kind of gambler.

    - ``name``: the name of the account in `tk.example`
    - ``bets``: its bets, each on the other side than the one before
    - ``side``: 1 if the first bet is long, -1 if it is short, 0 for either
    - ``uses_isolated``: whether each bet has its own margin
    - ``liquidated_by``: ``market`` or ``backstop``; empty if the remaining margin decides
    - ``is_partial``: whether the first bet is liquidated in part and the rest survives
    - ``built``: perps and USD of positions that are built piece by piece, and kept
    """

    name: str
    bets: tuple[Bet, ...] = ()
    side: int = 0
    uses_isolated: bool = False
    liquidated_by: str = ""
    is_partial: bool = False
    built: tuple[tuple[str, int], ...] = ()


STORIES = (
    Story("LIQUIDATED", (_LIQUID,), side=1, liquidated_by="backstop"),
    Story("SQUEEZED", (_LIQUID,), side=-1, liquidated_by="backstop"),
    Story("ISOLATED", (_ISOLATED, _LIQUID, _LIQUID), uses_isolated=True, liquidated_by="backstop"),
    Story("DELEVERAGED", ((("ARB", "kPEPE"), 12.0),)),
    Story("SOLD", (_SMALL,), side=1, liquidated_by="market"),
    Story("TRIMMED", (_LARGER,), liquidated_by="market", is_partial=True),
    Story("LARGE", built=(("BTC", 2_400_000), ("ETH", 900_000), ("BNB", 360_000))),
)
"""One account each, so that every kind of liquidation occurs with every seed."""


Gamble = tuple[int, int, int, int, int]
"""Time, account, perp, side (1 or -1), and largest notional of a position that opens."""


def gamble(exchange: Exchange, time: int, number: int, coin: int, sign: int, largest: int) -> None:
    """Open a position at the largest leverage, as far as the money allows."""
    account = exchange.accounts[number]
    px = exchange.best_price(coin, time, sign > 0)
    free = exchange.free_collateral(number, DEX_INDEX[coin], time)
    change = sign * (min(largest, free * PERPS[coin].max_leverage) // px)
    books.trade_market(exchange, time, account, coin, change, px)
    books.place_far_order(exchange, time, account, coin)


def draw_gambles(start_ms: int, accounts: list[Account], prices: Prices) -> list[Gamble]:
    """Return all gambles, and fund each story's account for them."""
    gamblers = [account for account in accounts if account.has_story]
    gambles: list[Gamble] = []
    last = prices.mark.shape[1] - 1
    first = int(last * _BUILD_START)
    for account, story in zip(gamblers, STORIES, strict=True):
        account.uses_isolated, account.coins, account.funds = story.uses_isolated, [], 0
        account.liquidated_by = story.liquidated_by
        for name, usd in story.built:  # piece by piece, on the side that gains
            coin = COINS.index(name)
            sign = 1 if prices.mark[coin, last] >= prices.mark[coin, first] else -1
            account.coins.append(coin)
            account.funds += usd * 10**6 // _BUILD_LEVERAGE
            time = start_ms + first * MINUTE + len(account.coins) * MINUTE
            gambles += [
                (time + number * _PIECE_MS, account.number, coin, sign, usd * 10**6 // _PIECES)
                for number in range(_PIECES)
            ]
        side = story.side
        for names, depths in story.bets:
            coins = [COINS.index(name) for name in names]
            coins = [coin for coin in coins if coin not in account.coins]
            coin, hour, sign = _find_bet(coins, side, story.is_partial, prices)
            side = -sign
            size_usd = PERPS[coin].depth_usd * depths
            if story.is_partial:
                size_usd = min(max(size_usd, _SMALLEST_PARTIAL), _LARGEST_PARTIAL)
            notional = int(size_usd * 1e6)
            account.coins.append(coin)
            account.funds += notional // PERPS[coin].max_leverage
            time = start_ms + hour * HOUR + _OPENING_MINUTE * MINUTE
            gambles.append((time, account.number, coin, sign, notional))
    return gambles


def _find_bet(coins: list[int], side: int, is_partial: bool, prices: Prices) -> tuple[int, ...]:
    """Return the bet with the largest loss at the first margin check that liquidates it.

    The loss is smaller than the margin, so that the position is sold and not deleveraged. A partial
    bet has a slightly too large loss at one check, and the rest survives all later checks.

    Returns: the perp, the hour and the side.
    """
    worst = (0.0, 0, 0, 1)  # the loss as a share of the margin at the largest leverage, and the bet
    for coin, sign in product(coins, (side,) if side else (1, -1)):
        opening = prices.mark[coin, _OPENING_MINUTE::MINUTES_AN_HOUR]
        checks = prices.mark[coin, _CHECK_MINUTE::MINUTES_AN_HOUR]
        leverage = -sign * PERPS[coin].max_leverage
        for hour in range(_FIRST_HOUR, len(opening)) if is_partial else ():
            losses = leverage * (checks[hour + 1 :] / opening[hour] - 1.0)
            over = np.flatnonzero(losses >= _REMAINING_LOSS)
            if not over.size:
                continue
            first, later = float(losses[over[0]]), losses[over[0] + 1 :]
            least, most = _PARTIAL_LOSS
            if least <= first <= most and later.size and float(later.max()) < _REMAINING_LOSS:
                worst = max(worst, (first, coin, hour, sign))
        is_open = np.arange(len(opening)) >= _FIRST_HOUR
        for hours in () if is_partial else range(1, _LOOK_AHEAD_HOURS):
            losses = leverage * (checks[hours:] / opening[:-hours] - 1.0)
            is_still_open = is_open[: len(losses)]
            candidates = np.where(is_still_open & (losses < _LARGEST_LOSS), losses, 0.0)
            hour = int(np.argmax(candidates))
            worst = max(worst, (float(candidates[hour]), coin, hour, sign))
            is_still_open &= losses < _LIQUIDATION_LOSS
    return worst[1:]
