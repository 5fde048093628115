"""Accounts with a story: gamblers who are sure to be on the wrong side at the wrong time.

Prices are drawn before anybody trades, so a story can look ahead for a move that is large
enough: the account then opens at the largest leverage just before it.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from toolkit.simulation.accounts import Account
from toolkit.simulation.dealing import best_price, deal, perp_ticket, wait_far
from toolkit.simulation.exchange import DEX_OF
from toolkit.simulation.floor import Floor
from toolkit.simulation.margins import MARGIN_CHECK_MS
from toolkit.simulation.markets import PERPS
from toolkit.simulation.prices import MINUTES_AN_HOUR, Prices
from toolkit.times import HOUR, MINUTE

__all__ = ["STORIES", "Gamble", "draw_gambles"]

_COINS = [perp.coin for perp in PERPS]
_LOOK_AHEAD = 24
_FIRST_HOURS = 3
"""Nobody bets before, for deposits are still to come."""

_LIQUIDATED, _MOST = 0.5, 0.9
"""Shares of a margin: who has lost the one is liquidated; nobody shall lose more than the other."""

_OPENED = 30  # minutes past the hour
_LOOKED_AT = MARGIN_CHECK_MS // MINUTE

Bet = tuple[tuple[str, ...], float]
"""Perps to choose the worst move from, and the position's size relative to its market's depth."""

_LIQUID: Bet = (("SOL", "HYPE", "XRP", "DOGE", "BNB", "SUI"), 0.5)
_SMALL: Bet = (_LIQUID[0], 0.2)
_LARGER: Bet = ((*_LIQUID[0], "ETH", "LINK", "AVAX"), 1.6)

_TRIMMED, _LASTS = (0.51, 0.56), 0.48
"""Shares of a margin: lost when a part is liquidated, and at most lost later on."""

_LOWEST, _HIGHEST = 110_000, 190_000
"""USD of a position that is liquidated in part: large enough for that, and in its first tier."""

_PIECES, _PIECE_MS, _BUILT_AT, _COVERED = 60, 20 * MINUTE, 0.55, 4
"""How positions are built up: in pieces, from this share of history on, at this leverage."""


@dataclass(frozen=True, slots=True)
class Story:
    """A kind of gambler.

    Parameters
    ----------
    name : str
        How `tk.example` calls the account.
    bets : tuple of Bet
        What it bets on, each on the other side than the one before.
    side : int
        1 where the first bet is long, -1 where it is short, 0 where either will do.
    isolated : bool
        Whether each bet has a margin of its own.
    liquidated_by : str
        ``market`` or ``backstop``; empty where the margin that is left decides.
    in_part : bool
        Whether what is left of the first bet after a liquidation shall last.
    built : tuple of (str, int)
        Perps and USD of positions that are built up piece by piece, and kept.
    """

    name: str
    bets: tuple[Bet, ...] = ()
    side: int = 0
    isolated: bool = False
    liquidated_by: str = ""
    in_part: bool = False
    built: tuple[tuple[str, int], ...] = ()


STORIES = (
    Story("LIQUIDATED", (_LIQUID,), side=1, liquidated_by="backstop"),
    Story("SQUEEZED", (_LIQUID,), side=-1, liquidated_by="backstop"),
    Story(
        "ISOLATED", ((("PURR",), 6.0), _LIQUID, _LIQUID), isolated=True, liquidated_by="backstop"
    ),
    Story("DELEVERAGED", ((("ARB", "kPEPE"), 12.0),)),
    Story("SOLD", (_SMALL,), side=1, liquidated_by="market"),
    Story("TRIMMED", (_LARGER,), liquidated_by="market", in_part=True),
    Story("LARGE", built=(("BTC", 2_400_000), ("ETH", 900_000), ("BNB", 360_000))),
)
"""One account each: every kind of liquidation occurs, whatever the seed."""


@dataclass(frozen=True, slots=True)
class Gamble:
    """A gambler opens at the largest leverage."""

    time: int
    account: int
    coin: int
    sign: int
    notional: int

    def happen(self, floor: Floor) -> None:
        """Open the position, as far as the money goes."""
        exchange = floor.exchange
        account = exchange.accounts[self.account]
        px = best_price(exchange, self.coin, self.time, self.sign > 0)
        most = exchange.free(self.account, DEX_OF[self.coin], self.time)
        notional = min(self.notional, most * PERPS[self.coin].max_leverage)
        change = self.sign * (notional // px)
        ticket = perp_ticket(exchange, account, self.coin, change, px, self.time)
        deal(floor, exchange.transaction(self.time), self.coin, ticket)
        wait_far(floor, account, self.coin, self.time)


def draw_gambles(start_ms: int, accounts: list[Account], prices: Prices) -> list[Gamble]:
    """Fund each story's account to the size of its gambles, and say when they open."""
    gamblers = [account for account in accounts if account.story]
    gambles: list[Gamble] = []
    for account, story in zip(gamblers, STORIES, strict=True):
        account.isolated, account.coins, account.funds = story.isolated, [], 0
        account.liquidated_by = story.liquidated_by
        gambles += _built(start_ms, account, story, prices)
        side = story.side
        for coins, depths in story.bets:
            open_to = [_COINS.index(name) for name in coins]
            open_to = [coin for coin in open_to if coin not in account.coins]
            find = _trimmed if story.in_part else _worst
            _, coin, hour, sign = find(open_to, side, prices)
            side = -sign
            usd = PERPS[coin].depth_usd * depths
            usd = min(max(usd, _LOWEST), _HIGHEST) if story.in_part else usd
            notional = int(usd * 1e6)
            account.coins.append(coin)
            account.funds += notional // PERPS[coin].max_leverage
            time = start_ms + hour * HOUR + _OPENED * MINUTE
            gambles.append(Gamble(time, account.number, coin, sign, notional))
    return sorted(gambles, key=_time)


def _worst(coins: list[int], side: int, prices: Prices) -> tuple[float, int, int, int]:
    """Find the perp, the hour and the side that lose most of a margin when it is first too little.

    The first number is that loss, as a share of the margin at the largest leverage: less than
    all of it, so that the position is sold, not deleveraged.
    """
    found = (0.0, 0, 0, 1)
    for coin in coins:
        opened = prices.mark[coin, _OPENED::MINUTES_AN_HOUR]
        looked = prices.mark[coin, _LOOKED_AT::MINUTES_AN_HOUR]
        for sign in (side,) if side else (1, -1):
            standing = np.arange(len(opened)) >= _FIRST_HOURS
            for ahead in range(1, _LOOK_AHEAD):
                moves = looked[ahead:] / opened[:-ahead] - 1.0
                losses = -sign * PERPS[coin].max_leverage * moves
                here = standing[: len(losses)]
                losses_here = np.where(here & (losses < _MOST), losses, 0.0)
                hour = int(np.argmax(losses_here))
                found = max(found, (float(losses_here[hour]), coin, hour, sign))
                here &= losses < _LIQUIDATED
    return found


def _trimmed(coins: list[int], side: int, prices: Prices) -> tuple[float, int, int, int]:
    """Find a bet that loses just too much once, and less than that ever after.

    So that a part of it is liquidated, and the rest stands at the end of history.
    """
    found = (0.0, 0, 0, 1)
    for coin in coins:
        opened = prices.mark[coin, _OPENED::MINUTES_AN_HOUR]
        looked = prices.mark[coin, _LOOKED_AT::MINUTES_AN_HOUR]
        for hour, sign in product(range(_FIRST_HOURS, len(opened)), (side,) if side else (1, -1)):
            moves = looked[hour + 1 :] / opened[hour] - 1.0
            losses = -sign * PERPS[coin].max_leverage * moves
            over = np.flatnonzero(losses >= _LASTS)
            if not over.size:
                continue
            first, later = float(losses[over[0]]), losses[over[0] + 1 :]
            least, most = _TRIMMED
            if least <= first <= most and later.size and float(later.max()) < _LASTS:
                found = max(found, (first, coin, hour, sign))
    return found


def _built(start_ms: int, account: Account, story: Story, prices: Prices) -> list[Gamble]:
    """Return the pieces of the positions that a story builds up, on the side that gains."""
    last = prices.mark.shape[1] - 1
    first = int(last * _BUILT_AT)
    pieces = []
    for name, usd in story.built:
        coin = _COINS.index(name)
        sign = 1 if prices.mark[coin, last] >= prices.mark[coin, first] else -1
        account.coins.append(coin)
        account.funds += usd * 10**6 // _COVERED
        time = start_ms + first * MINUTE + len(account.coins) * MINUTE
        pieces += [
            Gamble(time + number * _PIECE_MS, account.number, coin, sign, usd * 10**6 // _PIECES)
            for number in range(_PIECES)
        ]
    return pieces


def _time(gamble: Gamble) -> int:
    return gamble.time
