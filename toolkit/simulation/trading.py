"""What drives the exchange: takers' intents, drawn in time, pursued by each one's manner."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolkit.simulation.accounts import Account
from toolkit.simulation.brackets import add_bracket
from toolkit.simulation.builders import FEES_BPS
from toolkit.simulation.dealing import affordable, deal, perp_ticket, wait_far
from toolkit.simulation.draws import stream
from toolkit.simulation.exchange import Exchange
from toolkit.simulation.floor import Floor
from toolkit.simulation.markets import NATIVE_TOKEN, PERPS
from toolkit.simulation.orders import Ticket
from toolkit.simulation.prices import MINUTES_AN_HOUR, Prices
from toolkit.simulation.roles import DORMANT
from toolkit.times import HOUR, MINUTE

__all__ = ["Intent", "draw_intents"]

Ints = NDArray[np.int64]

_LOOK_BACK = 4 * MINUTES_AN_HOUR
_SMALLEST = 10_000_000  # ten dollars, the exchange's smallest order
_SAME_BLOCK = 0.04
_BRACKETS = 0.05
_WAITING = 0.2
_VISITS = 4
_MOST_GAS = 90_000  # units of 1e-8 of the native token
_BUSY_HOURS = (2, 2, 2, 2, 2, 2, 2, 3, 4, 4, 4, 4, 5, 7, 8, 8, 7, 6, 5, 4, 4, 3, 3, 2)


@dataclass(frozen=True, slots=True)
class Intent:
    """A taker looks at a market.

    Parameters
    ----------
    time : int
        When, in milliseconds.
    account, coin : int
        Who, and which perp.
    bid, ask : int
        The best prices then.
    trend : int
        1 where the price has risen over the last hours, -1 where it has fallen.
    """

    time: int
    account: int
    coin: int
    bid: int
    ask: int
    trend: int

    def happen(self, floor: Floor) -> None:
        """Trade towards the position that the taker's manner wants."""
        exchange = floor.exchange
        account = exchange.accounts[self.account]
        if floor.is_delisted(self.coin):
            return
        change = _wanted(exchange, account, self)
        px = self.ask if change > 0 else self.bid
        if abs(change) * px < _SMALLEST:
            return
        ticket = perp_ticket(exchange, account, self.coin, change, px, self.time)
        _dress(floor, ticket)
        wants = exchange.luck.random() < _BRACKETS and account.activity
        if wants and affordable(exchange, self.coin, ticket, px, self.time):
            add_bracket(floor, self.coin, ticket)
        deal(floor, exchange.transaction(self.time), self.coin, ticket)
        if account.is_vault and exchange.luck.random() < _WAITING:
            wait_far(floor, account, self.coin, self.time)


def draw_intents(
    seed: int, start_ms: int, hours: int, count: int, accounts: list[Account], prices: Prices
) -> Iterator[Intent]:
    """Draw when who looks at what; the first hour is left for deposits."""
    rng = stream(seed, "intents")
    times, who = _visits(seed, accounts, _times(rng, hours, count), _who(rng, accounts, count))
    coin = _coin(rng, accounts, who)
    minute = times // MINUTE
    before = np.maximum(minute - _LOOK_BACK, 0)
    trend = np.sign(prices.mid[coin, minute] - prices.mid[coin, before]).astype(np.int64)
    columns = (
        (times + start_ms).tolist(),
        who.tolist(),
        coin.tolist(),
        prices.bid[coin, minute].tolist(),
        prices.ask[coin, minute].tolist(),
        trend.tolist(),
    )
    return map(Intent, *columns)


def _dress(floor: Floor, ticket: Ticket) -> None:
    """Give an order its name, its time in force, its builder and its priority."""
    account, luck = ticket.account, floor.exchange.luck
    if luck.random() < 0.8:
        ticket.cloid = account.cloid(ticket.oid)
    if luck.random() < 0.3:
        ticket.kind, ticket.tif = "Limit", "Ioc"
    if account.builder in floor.exchange.approved[account.number] and luck.random() < 0.9:
        ticket.builder = floor.builders[account.builder]
        ticket.builder_bps = FEES_BPS[account.builder % len(FEES_BPS)]
    tank = floor.exchange.wallets[account.number][NATIVE_TOKEN].balance
    if account.pays_priority and tank > _MOST_GAS and luck.random() < 0.5:
        ticket.priority_gas = 100 + int(luck.random() * (_MOST_GAS - 100))


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


def _who(rng: np.random.Generator, accounts: list[Account], count: int) -> Ints:
    weights = np.cumsum(np.array([account.activity for account in accounts]))
    chosen = np.searchsorted(weights, rng.random(count) * weights[-1], side="right")
    return np.asarray(np.minimum(chosen, len(accounts) - 1))


def _visits(seed: int, accounts: list[Account], times: Ints, who: Ints) -> tuple[Ints, Ints]:
    """Add the few looks that those take who are dormant afterwards."""
    dormant = [account.number for account in accounts if account.manner == DORMANT] * _VISITS
    early = stream(seed, "visits").integers(HOUR, 12 * HOUR, len(dormant))
    times = np.concatenate([times, early])
    order = np.argsort(times, kind="stable")
    return times[order], np.concatenate([who, np.array(dormant, dtype=np.int64)])[order]


def _coin(rng: np.random.Generator, accounts: list[Account], who: Ints) -> Ints:
    """Choose among each taker's perps, its first ones (the most liquid) more often."""
    luck = rng.random(len(who))
    luck = luck * (0.5 + 0.5 * luck)
    pairs = zip(who.tolist(), luck.tolist(), strict=True)
    return np.array([accounts[w].coins[int(u * len(accounts[w].coins))] for w, u in pairs])
