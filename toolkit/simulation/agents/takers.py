"""Takers of perps: when they look at a market, what they trade, and their bracket orders.

A bracket is a take-profit and a stop-loss order that are placed with their parent order. When
the price reaches one of them, the other is cancelled.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from toolkit.arrays import Ints
from toolkit.simulation.agents.builders import FEES_BPS
from toolkit.simulation.engine.accounts import DORMANT, Account
from toolkit.simulation.engine.books import market_ticket, round_to_tick
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.engine.orders import Ticket
from toolkit.simulation.engine.prices import MINUTES_AN_HOUR, Prices
from toolkit.simulation.engine.state import SimulationState
from toolkit.simulation.markets import NATIVE_TOKEN, PERPS
from toolkit.simulation.quantities import decimal_text
from toolkit.simulation.random_draws import random_stream
from toolkit.times import HOUR, MINUTE

_TREND_MINUTES = 4 * MINUTES_AN_HOUR
_SMALLEST_ORDER = 10_000_000  # ten dollars, the exchange's smallest order
_SAME_BLOCK_SHARE = 0.04
_BRACKET_SHARE = 0.05
_FAR_ORDER_SHARE = 0.2
_DORMANT_VISITS = 4
_LARGEST_GAS = 90_000  # units of 1e-8 of the native token
_BUSY_HOURS = (2, 2, 2, 2, 2, 2, 2, 3, 4, 4, 4, 4, 5, 7, 8, 8, 7, 6, 5, 4, 4, 3, 3, 2)

_BRACKET_CANCEL_SHARE = 0.2
_LIMIT_SHARE = 0.4
_WHOLE_POSITION_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class PerpIntent:
    """A possible trade of a perp by a taker, with what the taker sees.

    - ``time``: in milliseconds
    - ``account``, ``coin``: the account and the perp
    - ``bid``, ``ask``: the best prices at this time
    - ``trend``: 1 if the price has risen over the last hours, -1 if it has fallen
    """

    time: int
    account: int
    coin: int
    bid: int
    ask: int
    trend: int

    def apply(self, state: SimulationState) -> None:
        """Trade towards the position that the taker's strategy targets."""
        exchange = state.exchange
        account = exchange.accounts[self.account]
        if state.is_delisted(self.coin):
            return
        change = self._size_change(exchange, account)
        px = self.ask if change > 0 else self.bid
        if abs(change) * px < _SMALLEST_ORDER:
            return
        ticket = market_ticket(exchange, account, self.coin, change, px, self.time)
        _add_options(state, ticket)
        is_bracketed = exchange.rng.random() < _BRACKET_SHARE and account.activity
        if is_bracketed and exchange.has_margin(self.coin, ticket, px, self.time):
            _add_bracket(state, self.coin, ticket)
        state.books.execute_order(exchange.next_transaction(self.time), self.coin, ticket)
        if account.is_vault and exchange.rng.random() < _FAR_ORDER_SHARE:
            state.books.place_far_order(account, self.coin, self.time)

    def _size_change(self, exchange: Exchange, account: Account) -> int:
        """Return the signed size to trade: towards a target, limited to one order."""
        rng = exchange.rng
        perp = PERPS[self.coin]
        usual = account.funds * account.leverage / len(account.coins)
        largest_position = min(usual, perp.depth_usd * 40e6)
        signal = _target_signal(account.strategy, self.trend, rng.random(), rng.random())
        target = int(largest_position * signal)
        change = target // self.bid - exchange.position_size(self.coin, account.number)
        notional = min(largest_position * (0.05 + rng.random()), perp.depth_usd * 6e6)
        largest = int(notional) // self.bid
        return max(-largest, min(largest, change))


@dataclass(frozen=True, slots=True)
class BracketTrigger:
    """The price reaches one of two child orders, or their owner cancels both."""

    time: int
    coin: int
    reached: Ticket
    sibling: Ticket
    is_cancelled: bool

    def apply(self, state: SimulationState) -> None:
        """Trigger the order, or cancel both if there is no position to close."""
        exchange = state.exchange
        journal = exchange.journal
        tx = exchange.next_transaction(self.time)
        position = exchange.position_size(self.coin, self.reached.account.number)
        is_closable = position * self.reached.sign < 0
        if self.is_cancelled or not is_closable or state.is_delisted(self.coin):
            status = "canceled" if self.is_cancelled else "reduceOnlyCanceled"
            for child in (self.reached, self.sibling):
                journal.record_status(child, status, tx.time, tx.index)
            return
        journal.record_status(self.reached, "triggered", tx.time, tx.index)
        time = self.time + 1 + int(exchange.rng.random() * 900)
        state.schedule_event(BracketExecution(time, self.coin, self.reached, self.sibling))


@dataclass(frozen=True, slots=True)
class BracketExecution:
    """The block after a trigger: the order is filled as far as it reduces the position."""

    time: int
    coin: int
    reached: Ticket
    sibling: Ticket

    def apply(self, state: SimulationState) -> None:
        """Fill the order and cancel its sibling."""
        journal = state.exchange.journal
        tx = state.exchange.next_transaction(self.time)
        position = state.exchange.position_size(self.coin, self.reached.account.number)
        if position * self.reached.sign >= 0:
            for child in (self.reached, self.sibling):
                journal.record_status(child, "reduceOnlyCanceled", self.time, tx.index)
            return
        # ASSUMED: If a reduce-only order is larger than the position, it shrinks to the size of the
        # position before it fills.
        self.reached.size = self.reached.left = min(self.reached.left, abs(position))
        state.books.execute_order(tx, self.coin, self.reached)
        journal.record_status(self.sibling, "siblingFilledCanceled", self.time, tx.index)


def draw_perp_intents(
    seed: int, start_ms: int, hours: int, count: int, accounts: list[Account], prices: Prices
) -> Iterator[PerpIntent]:
    """Draw who looks at which perp and when; the first hour is reserved for deposits."""
    rng = random_stream(seed, "intents")
    times = _draw_times(rng, hours, count)
    times, takers = _add_dormant_visits(seed, accounts, times, _draw_takers(rng, accounts, count))
    coin = _draw_coins(rng, accounts, takers)
    minute = times // MINUTE
    before = np.maximum(minute - _TREND_MINUTES, 0)
    trend = np.sign(prices.mid[coin, minute] - prices.mid[coin, before]).astype(np.int64)
    columns = (
        (times + start_ms).tolist(),
        takers.tolist(),
        coin.tolist(),
        prices.bid[coin, minute].tolist(),
        prices.ask[coin, minute].tolist(),
        trend.tolist(),
    )
    return map(PerpIntent, *columns)


def _add_options(state: SimulationState, ticket: Ticket) -> None:
    """Add a client order id, a time in force, a builder and priority gas to an order."""
    account, rng = ticket.account, state.exchange.rng
    if rng.random() < 0.8:
        ticket.cloid = account.make_cloid(ticket.oid)
    if rng.random() < 0.3:
        ticket.kind, ticket.tif = "Limit", "Ioc"
    if account.builder in state.exchange.approved[account.number] and rng.random() < 0.9:
        ticket.builder = state.builders[account.builder]
        ticket.builder_bps = FEES_BPS[account.builder % len(FEES_BPS)]
    native = state.exchange.wallets[account.number][NATIVE_TOKEN].balance
    if account.pays_priority and native > _LARGEST_GAS and rng.random() < 0.5:
        ticket.priority_gas = 100 + int(rng.random() * (_LARGEST_GAS - 100))


def _target_signal(strategy: str, trend: int, kind: float, strength: float) -> float:
    """Return the target position as a share of the largest, from -1 to 1; often 0."""
    if kind < 0.3:
        return 0.0
    if strategy == "trend":
        return trend * strength
    if strategy == "reversion":
        return -trend * strength
    return 2.0 * strength - 1.0


def _draw_times(rng: np.random.Generator, hours: int, count: int) -> Ints:
    """Draw times since the start: more in the busy hours, some together in one block."""
    tickets = np.array([h for h in range(1, hours) for _ in range(_BUSY_HOURS[h % 24])])
    hour = tickets[rng.integers(0, len(tickets), count)]
    times = np.sort(hour * HOUR + rng.integers(1, HOUR, count))
    is_same_block = rng.random(count) < _SAME_BLOCK_SHARE
    is_same_block[0] = False
    leader = np.maximum.accumulate(np.where(is_same_block, 0, np.arange(count)))
    return np.asarray(times[leader])


def _draw_takers(rng: np.random.Generator, accounts: list[Account], count: int) -> Ints:
    weights = np.cumsum(np.array([account.activity for account in accounts]))
    takers = np.searchsorted(weights, rng.random(count) * weights[-1], side="right")
    return np.asarray(np.minimum(takers, len(accounts) - 1))


def _add_dormant_visits(
    seed: int, accounts: list[Account], times: Ints, takers: Ints
) -> tuple[Ints, Ints]:
    """Add the few early visits of accounts that are dormant afterwards."""
    dormant = [account.number for account in accounts if account.strategy == DORMANT]
    dormant *= _DORMANT_VISITS
    early = random_stream(seed, "visits").integers(HOUR, 12 * HOUR, len(dormant))
    times = np.concatenate([times, early])
    order = np.argsort(times, kind="stable")
    return times[order], np.concatenate([takers, np.array(dormant, dtype=np.int64)])[order]


def _draw_coins(rng: np.random.Generator, accounts: list[Account], takers: Ints) -> Ints:
    """Draw one of each taker's perps, its first ones (the most liquid) more often."""
    draws = rng.random(len(takers))
    draws = draws * (0.5 + 0.5 * draws)
    coins = []
    for taker, draw in zip(takers.tolist(), draws.tolist(), strict=True):
        choices = accounts[taker].coins
        coins.append(choices[int(draw * len(choices))])
    return np.array(coins)


def _add_bracket(state: SimulationState, coin: int, parent: Ticket) -> None:
    """Add a take-profit and a stop-loss child to an order, and schedule their trigger.

    The child that will be reached gets the mark price of that moment, so that orders and prices
    agree.
    """
    exchange = state.exchange
    rng = exchange.rng
    time = parent.time + 10 * MINUTE + int(rng.random() * 20 * HOUR)
    if time >= exchange.end_ms - MINUTE:
        return
    now = exchange.best_price(coin, parent.time, parent.is_buy)
    then = exchange.mark_price(coin, time)
    is_profit = (then - now) * parent.sign > 0
    distance = max(abs(then - now), now // 200)
    opposite = now - distance * (1 if then > now else -1)
    reached = _make_child(exchange, coin, parent, then, is_profit)
    sibling = _make_child(exchange, coin, parent, opposite, not is_profit)
    parent.children = [reached, sibling] if is_profit else [sibling, reached]
    for child in parent.children:
        exchange.journal.record_status(child, "open", parent.time, 60)
    is_cancelled = rng.random() < _BRACKET_CANCEL_SHARE
    state.schedule_event(BracketTrigger(time, coin, reached, sibling, is_cancelled))


def _make_child(exchange: Exchange, coin: int, parent: Ticket, px: int, is_profit: bool) -> Ticket:
    rng = exchange.rng
    perp = PERPS[coin]
    trigger_px = round_to_tick(px, coin)
    is_limit = rng.random() < _LIMIT_SHARE
    oid = exchange.next_oid()
    percent = 99 if parent.is_buy else 101 if is_limit else 103
    side = "above" if is_profit == parent.is_buy else "below"
    return Ticket(
        account=parent.account,
        market=perp,
        oid=oid,
        is_buy=not parent.is_buy,
        px=round_to_tick(trigger_px * percent // 100, coin),
        size=parent.size,
        left=parent.size,
        time=parent.time,
        kind=f"{'Take Profit' if is_profit else 'Stop'} {'Limit' if is_limit else 'Market'}",
        tif="Gtc" if is_limit else None,
        reduce_only=True,
        is_position_tpsl=rng.random() < _WHOLE_POSITION_SHARE,
        trigger_px=trigger_px,
        trigger_condition=f"Price {side} {decimal_text(trigger_px, perp.px_decimals)}",
        cloid=parent.cloid and f"{parent.cloid[:-1]}{'a' if is_profit else 'b'}",
    )
