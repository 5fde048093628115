"""Accounts with a story: gamblers who are sure to be on the wrong side at the wrong time.

Prices are drawn before anybody trades, so a story can look ahead for a move that is large
enough: the account then opens near its largest leverage just before it.
"""

from dataclasses import dataclass

import numpy as np

from toolkit.simulation.accounts import Account
from toolkit.simulation.dealing import best_price, deal, perp_ticket, wait_far
from toolkit.simulation.floor import Floor
from toolkit.simulation.markets import PERPS
from toolkit.simulation.prices import MINUTES_AN_HOUR, Prices
from toolkit.times import HOUR, MINUTE

__all__ = ["STORIES", "Gamble", "draw_gambles"]

_LOOK_AHEAD = 24
_USED = 0.9
"""Share of the largest leverage that a gamble uses; all of it where no move is large."""

_LARGE = 0.8
"""A move that takes so much of what a position at the largest leverage can bear."""


@dataclass(frozen=True, slots=True)
class Story:
    """A kind of gambler.

    Parameters
    ----------
    name : str
        How `tk.example` calls the account.
    coins : tuple of str
        Perps to choose the worst move from.
    depths : float
        Size of the position, relative to the depth of its market.
    """

    name: str
    coins: tuple[str, ...]
    depths: float


STORIES = (
    Story("LIQUIDATED", ("SOL", "HYPE", "XRP", "DOGE", "BNB", "SUI"), 0.5),
    Story("ISOLATED", ("PURR",), 6.0),
    Story("DELEVERAGED", ("ARB", "kPEPE"), 12.0),
)
"""One account each: liquidated cross, liquidated isolated, deleveraged."""


@dataclass(frozen=True, slots=True)
class Gamble:
    """A gambler opens near the largest leverage."""

    time: int
    account: int
    coin: int
    sign: int
    used: float

    def happen(self, floor: Floor) -> None:
        """Open the position."""
        exchange = floor.exchange
        account = exchange.accounts[self.account]
        px = best_price(exchange, self.coin, self.time, self.sign > 0)
        notional = int(account.funds * PERPS[self.coin].max_leverage * self.used)
        change = self.sign * (notional // px)
        ticket = perp_ticket(exchange, account, self.coin, change, px, self.time)
        deal(floor, exchange.transaction(self.time), self.coin, ticket)
        wait_far(floor, account, self.coin, self.time)


def draw_gambles(start_ms: int, accounts: list[Account], prices: Prices) -> list[Gamble]:
    """Fund each story's account to the size of its gamble, and say when it opens."""
    gamblers = [account for account in accounts if account.story]
    gambles = []
    for account, story in zip(gamblers, STORIES, strict=True):
        move, coin, hour, sign = _worst(story, prices)
        perp = PERPS[coin]
        used = _USED if move > _LARGE else 1.0
        cents = int(perp.depth_usd * story.depths * 100.0 / (perp.max_leverage * used))
        account.coins = [coin]
        account.funds = cents * 10**4
        time = start_ms + hour * HOUR + 30 * MINUTE
        gambles.append(Gamble(time, account.number, coin, sign, used))
    return sorted(gambles, key=_time)


def _worst(story: Story, prices: Prices) -> tuple[float, int, int, int]:
    """Find the perp, the hour and the side that lose most, relative to what they can bear.

    The first number is that loss.
    """
    found = (0.0, 0, 0, 1)
    for coin, perp in enumerate(PERPS):
        if perp.coin not in story.coins:
            continue
        marks = prices.mid[coin, 30::MINUTES_AN_HOUR]
        for ahead in range(2, _LOOK_AHEAD):
            moves = (marks[ahead:] / marks[:-ahead] - 1.0) * perp.max_leverage
            moves[:3] = 0.0  # the first hours are left for deposits
            hour = int(np.argmax(np.abs(moves)))
            sign = -1 if moves[hour] > 0 else 1
            found = max(found, (float(abs(moves[hour])), coin, hour, sign))
    return found


def _time(gamble: Gamble) -> int:
    return gamble.time
