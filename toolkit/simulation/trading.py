"""What drives the exchange: takers' intents, in time, with everything that falls between."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolkit.simulation.accounts import Account
from toolkit.simulation.books import Books
from toolkit.simulation.builders import FEES_BPS
from toolkit.simulation.draws import stream
from toolkit.simulation.exchange import Exchange, Leg
from toolkit.simulation.markets import PERPS
from toolkit.simulation.prices import MINUTES_AN_HOUR, Prices
from toolkit.times import HOUR, MINUTE

__all__ = ["Intent", "draw_intents", "pursue"]

Ints = NDArray[np.int64]

_LOOK_BACK = 4 * MINUTES_AN_HOUR
_SMALLEST = 10_000_000  # ten dollars, the exchange's smallest order
_SAME_BLOCK = 0.04
_BUSY_HOURS = (2, 2, 2, 2, 2, 2, 2, 3, 4, 4, 4, 4, 5, 7, 8, 8, 7, 6, 5, 4, 4, 3, 3, 2)


@dataclass(frozen=True, slots=True)
class Intent:
    """A taker looks at a market.

    Parameters
    ----------
    time, tx_index : int
        When, and where in the block.
    account, coin : int
        Who, and which perp.
    bid, ask : int
        The best prices then.
    trend : int
        1 where the price has risen over the last hours, -1 where it has fallen.
    """

    time: int
    tx_index: int
    account: int
    coin: int
    bid: int
    ask: int
    trend: int


def draw_intents(
    seed: int, start_ms: int, hours: int, count: int, accounts: list[Account], prices: Prices
) -> Iterator[Intent]:
    """Draw when who looks at what; the first hour is left for deposits."""
    rng = stream(seed, "intents")
    times = _times(rng, hours, count)
    who = _who(rng, accounts, count)
    coin = _coin(rng, accounts, who)
    minute = times // MINUTE
    before = np.maximum(minute - _LOOK_BACK, 0)
    trend = np.sign(prices.mid[coin, minute] - prices.mid[coin, before]).astype(np.int64)
    columns = (
        (times + start_ms).tolist(),
        _tx_indices(rng, times),
        who.tolist(),
        coin.tolist(),
        prices.bid[coin, minute].tolist(),
        prices.ask[coin, minute].tolist(),
        trend.tolist(),
    )
    return map(Intent, *columns)


def pursue(exchange: Exchange, books: Books, builders: list[str], intent: Intent) -> None:
    """Let a taker trade towards the position that its manner wants."""
    account = exchange.accounts[intent.account]
    luck = exchange.luck
    change = _wanted(exchange, account, intent)
    px = intent.ask if change > 0 else intent.bid
    if abs(change) * px < _SMALLEST:
        return
    leg = Leg(account, exchange.next_oid(), None, crossed=True)
    if account.names_orders and luck.random() < 0.8:
        leg.cloid = f"0x{leg.oid * 7919:032x}"
    if account.builder in exchange.approved[account.number] and luck.random() < 0.9:
        leg.builder = builders[account.builder]
        leg.builder_bps = FEES_BPS[account.builder % len(FEES_BPS)]
    if account.pays_priority and luck.random() < 0.5:
        leg.priority_gas = f"0.{1 + int(luck.random() * 900):06d}".rstrip("0")
    tx = exchange.transaction(intent.time, intent.tx_index)
    books.take(tx, intent.coin, leg, change, px)


def _wanted(exchange: Exchange, account: Account, intent: Intent) -> int:
    """Give the signed size to trade: towards a target, at most one order's worth."""
    luck = exchange.luck
    perp = PERPS[intent.coin]
    usual = account.funds * account.leverage / len(account.coins)
    most = min(usual, perp.depth_usd * 40e6)
    target = int(most * _signal(account.manner, intent.trend, luck.random(), luck.random()))
    held = exchange.position(intent.coin, account.number)
    change = target // intent.bid - held
    largest = int(min(most * (0.05 + luck.random()), perp.depth_usd * 6e6)) // intent.bid
    return max(-largest, min(largest, change))


def _signal(manner: str, trend: int, kind: float, strength: float) -> float:
    """Give the wanted position, from -1 to 1; often flat."""
    if kind < 0.3:
        return 0.0
    if manner == "trend":
        return trend * strength
    if manner == "reversion":
        return -trend * strength
    if manner == "hedger":
        return -0.6 - 0.3 * strength
    return 2.0 * strength - 1.0


def _times(rng: np.random.Generator, hours: int, count: int) -> Ints:
    """Draw times since the start: more in the busy hours, some together in one block."""
    tickets = np.array([h for h in range(1, hours) for _ in range(_BUSY_HOURS[h % 24])])
    hour = tickets[rng.integers(0, len(tickets), count)]
    times = np.sort(hour * HOUR + rng.integers(1, HOUR, count))
    same = rng.random(count) < _SAME_BLOCK
    same[0] = False
    leader = np.maximum.accumulate(np.where(same, 0, np.arange(count)))
    return np.asarray(times[leader])


def _tx_indices(rng: np.random.Generator, times: Ints) -> list[int]:
    """Give each transaction its index: it rises within a block."""
    steps = rng.integers(1, 40, len(times)).tolist()
    indices: list[int] = []
    last = -1
    for time, step in zip(times.tolist(), steps, strict=True):
        indices.append(indices[-1] + step if time == last else step)
        last = time
    return indices


def _who(rng: np.random.Generator, accounts: list[Account], count: int) -> Ints:
    weights = np.cumsum(np.array([account.activity for account in accounts]))
    chosen = np.searchsorted(weights, rng.random(count) * weights[-1], side="right")
    return np.asarray(np.minimum(chosen, len(accounts) - 1))


def _coin(rng: np.random.Generator, accounts: list[Account], who: Ints) -> Ints:
    """Choose among each taker's perps, its first ones (the most liquid) more often."""
    luck = rng.random(len(who))
    luck = luck * (0.5 + 0.5 * luck)
    pairs = zip(who.tolist(), luck.tolist(), strict=True)
    return np.array([accounts[w].coins[int(u * len(accounts[w].coins))] for w, u in pairs])
