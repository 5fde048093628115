"""TWAP users: a TWAP order trades a slice every half minute until it ends."""

from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from toolkit.rules.twaps import SLICE_MS, SLICE_TYPE
from toolkit.simulation.engine.accounts import Account
from toolkit.simulation.engine.books import market_ticket, round_to_tick
from toolkit.simulation.engine.orders import Twap
from toolkit.simulation.engine.prices import Prices
from toolkit.simulation.engine.state import SimulationState
from toolkit.simulation.markets import PERPS
from toolkit.simulation.random_draws import random_stream
from toolkit.times import HOUR, MINUTE

_LATE_TWAPS = 8
"""TWAPs that start so late that they still run at the end of history."""


@dataclass(frozen=True, slots=True)
class TwapStart:
    """The registration of a TWAP."""

    time: int
    twap: Twap

    def apply(self, state: SimulationState) -> None:
        """Register the TWAP and schedule its first slice."""
        if self.twap.reduce_only:
            _aim_at_position(state, self.twap)
        state.twaps.append(self.twap)
        self.twap.next_slice = self.time + SLICE_MS
        state.schedule_event(TwapSlice(self.twap.next_slice, self.twap))


@dataclass(frozen=True, slots=True)
class TwapSlice:
    """The next slice of a TWAP, or the next check of its trigger price."""

    time: int
    twap: Twap

    def apply(self, state: SimulationState) -> None:
        """Trade one slice and schedule the next, or end the TWAP."""
        twap = self.twap
        mark = state.exchange.mark_price(twap.coin, self.time)
        is_stopped = twap.stop_px and (mark - twap.stop_px) * (1 if twap.is_buy else -1) > 0
        if twap.waiting:
            twap.waiting = (mark < twap.trigger_px) == twap.trigger_above
        elif not is_stopped:
            self._trade_slice(state)
        is_cancelled = bool(twap.cancel_at) and self.time >= twap.cancel_at
        is_complete = twap.executed >= twap.total
        twap.ended = twap.ended or bool(is_stopped) or is_cancelled or is_complete
        twap.next_slice = self.time + SLICE_MS
        if not twap.ended:
            state.schedule_event(TwapSlice(twap.next_slice, twap))

    def _trade_slice(self, state: SimulationState) -> None:
        exchange, twap = state.exchange, self.twap
        size = _slice_size(state, twap)
        twap.slice_number += 1
        if size <= 0 or state.is_delisted(twap.coin):
            twap.ended = twap.reduce_only
            return
        change = size if twap.is_buy else -size
        px = exchange.best_price(twap.coin, self.time, twap.is_buy)
        ticket = market_ticket(exchange, twap.account, twap.coin, change, px, self.time)
        ticket.kind, ticket.tif, ticket.twap_id = SLICE_TYPE, "Ioc", twap.number
        ticket.reduce_only = twap.reduce_only
        state.books.execute_order(exchange.next_transaction(self.time), twap.coin, ticket)
        twap.executed += ticket.size - ticket.left
        twap.executed_ntl += ticket.notional


def draw_twaps(
    seed: int, start_ms: int, hours: int, count: int, accounts: list[Account], prices: Prices
) -> list[TwapStart]:
    """Draw TWAPs of every kind, by time; the last ones still run, or wait, at the end."""
    rng = random_stream(seed, "twaps")
    users = [account for account in accounts if account.activity][::5]
    end_ms = start_ms + hours * HOUR
    twaps = []
    for number in range(count + _LATE_TWAPS):
        account = users[number % len(users)]
        coin = account.coins[int(rng.integers(0, len(account.coins)))]
        if PERPS[coin].delisted:
            continue
        is_late = number >= count
        if is_late:
            time = end_ms - int(rng.integers(2 * MINUTE, 25 * MINUTE))
        else:
            time = start_ms + 2 * HOUR + int(rng.integers(0, (hours - 5) * HOUR))
        mark = int(prices.mark[coin, (time - start_ms) // MINUTE])
        twaps.append(_draw_twap(rng, number, account, coin, time, mark, is_late))
    return [TwapStart(twap.start, twap) for twap in sorted(twaps, key=attrgetter("start"))]


def _draw_twap(
    rng: np.random.Generator,
    number: int,
    account: Account,
    coin: int,
    time: int,
    mark: int,
    is_late: bool,
) -> Twap:
    """Draw one TWAP; its number determines its kind, so that every kind occurs."""
    perp = PERPS[coin]
    funds = account.funds * (0.1 + 0.3 * float(rng.random()))
    total = max(int(min(funds, perp.depth_usd * 30e6)) // mark, 1_000)
    minutes = int(rng.integers(30, 90)) if is_late else int(rng.integers(10, 60))
    is_buy = bool(rng.integers(0, 2))
    kind = number % 6
    stop_px = trigger_px = 0
    if kind == 2:
        distance = 30 if is_late else 2  # in thousandths
        stop_px = round_to_tick(mark * (1000 + (distance if is_buy else -distance)) // 1000, coin)
    elif kind in {3, 4}:
        # The trigger price of late TWAPs is so far away that they still wait at the end.
        distance = 60 if is_late else 3
        move = distance if number % 2 == 0 else -distance
        trigger_px = round_to_tick(mark * (1000 + move) // 1000, coin)
    return Twap(
        number=40_000 + number,
        account=account,
        coin=coin,
        is_buy=is_buy,
        total=total,
        duration_secs=minutes * 60,
        start=time,
        reduce_only=kind == 1,
        randomize=number % 2 == 0,
        stop_px=stop_px,
        trigger_px=trigger_px,
        trigger_above=number % 2 == 0,
        waiting=kind in {3, 4},
        cancel_at=time + minutes * MINUTE // 2 if kind == 5 and not is_late else 0,
    )


def _aim_at_position(state: SimulationState, twap: Twap) -> None:
    """Let a reduce-only TWAP close a position that is large enough for all its slices.

    If its account has no such position, the TWAP moves to the next account that has one.
    """
    accounts = [account for account in state.exchange.accounts if account.activity]
    first = next(i for i, account in enumerate(accounts) if account is twap.account)
    targets = {(t.account.number, t.coin) for t in state.twaps if t.reduce_only and not t.ended}
    for account in (*accounts[first:], *accounts[:first]):
        for coin in account.coins:
            size = state.exchange.position_size(coin, account.number)
            is_free = (account.number, coin) not in targets and not state.is_delisted(coin)
            if abs(size) > twap.slice_count and is_free:
                twap.account = account
                twap.coin, twap.is_buy, twap.total = coin, size < 0, abs(size)
                return


def _slice_size(state: SimulationState, twap: Twap) -> int:
    """Return this slice's size: an equal share of the rest, up to a fifth more or less."""
    size = twap.total - twap.executed
    slices_left = twap.slice_count - twap.slice_number
    if slices_left > 1:
        size = max(1, size // slices_left)
        if twap.randomize:
            size = size * (80 + int(state.exchange.rng.random() * 41)) // 100
    if twap.reduce_only:
        position = state.exchange.position_size(twap.coin, twap.account.number)
        size = min(size, max(0, -position if twap.is_buy else position))
    return size
