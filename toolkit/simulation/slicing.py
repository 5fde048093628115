"""TWAP orders as they run: a slice every half minute, until done, stopped or cancelled."""

from dataclasses import dataclass

import numpy as np

from toolkit.simulation.accounts import Account
from toolkit.simulation.dealing import best_price, deal, mark_price, on_tick, perp_ticket
from toolkit.simulation.draws import stream
from toolkit.simulation.floor import Floor
from toolkit.simulation.markets import PERPS
from toolkit.simulation.orders import SLICE
from toolkit.simulation.prices import Prices
from toolkit.simulation.twaps import SLICE_MS, Twap
from toolkit.times import HOUR, MINUTE

__all__ = ["Registration", "Slice", "draw_twaps"]

_LATE = 8
"""TWAPs that start so late that they still run at the end of history."""


@dataclass(frozen=True, slots=True)
class Registration:
    """The moment when a TWAP is placed."""

    time: int
    twap: Twap

    def happen(self, floor: Floor) -> None:
        """Put it on the list and plan its first slice."""
        if self.twap.reduce_only:
            _aim(floor, self.twap)
        floor.twaps.append(self.twap)
        self.twap.next_slice = self.time + SLICE_MS
        floor.plan(Slice(self.twap.next_slice, self.twap))


@dataclass(frozen=True, slots=True)
class Slice:
    """The moment of a TWAP's next slice, or of its next look at the trigger price."""

    time: int
    twap: Twap

    def happen(self, floor: Floor) -> None:
        """Trade one slice and plan the next, or end it."""
        twap = self.twap
        mark = mark_price(floor.exchange, twap.coin, self.time)
        stopped = twap.stop_px and (mark - twap.stop_px) * (1 if twap.is_buy else -1) > 0
        if twap.waiting:
            twap.waiting = (mark < twap.trigger_px) == twap.trigger_above
        elif not stopped:
            _trade(floor, twap, self.time)
        given_up = bool(twap.cancel_at) and self.time >= twap.cancel_at
        twap.ended = twap.ended or bool(stopped) or given_up or twap.executed >= twap.total
        twap.next_slice = self.time + SLICE_MS
        if not twap.ended:
            floor.plan(Slice(twap.next_slice, twap))


def draw_twaps(
    seed: int, start_ms: int, hours: int, count: int, accounts: list[Account], prices: Prices
) -> list[Registration]:
    """Draw TWAPs of every kind, by time; the last ones still run, or wait, at the end."""
    rng = stream(seed, "twaps")
    users = [account for account in accounts if account.activity][::5]
    end_ms = start_ms + hours * HOUR
    drawn = []
    for number in range(count + _LATE):
        account = users[number % len(users)]
        coin = account.coins[int(rng.integers(0, len(account.coins)))]
        if PERPS[coin].delisted:
            continue
        if number < count:
            time = start_ms + 2 * HOUR + int(rng.integers(0, (hours - 5) * HOUR))
        else:
            time = end_ms - int(rng.integers(2 * MINUTE, 25 * MINUTE))
        drawn.append(_twap(rng, number, account, coin, time, prices, start_ms, number >= count))
    return [Registration(twap.start, twap) for twap in sorted(drawn, key=_start)]


def _twap(
    rng: np.random.Generator,
    number: int,
    account: Account,
    coin: int,
    time: int,
    prices: Prices,
    start_ms: int,
    late: bool,
) -> Twap:
    """Draw one TWAP; its number decides which kind it is, so that no kind is missing."""
    perp = PERPS[coin]
    mark = int(prices.mark[coin, (time - start_ms) // MINUTE])
    funds = account.funds * (0.1 + 0.3 * float(rng.random()))
    total = max(int(min(funds, perp.depth_usd * 30e6)) // mark, 1_000)
    minutes = int(rng.integers(30, 90)) if late else int(rng.integers(10, 60))
    is_buy = bool(rng.integers(0, 2))
    kind = number % 6
    away = 1 if is_buy else -1
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
        stop_px=on_tick(mark * (1000 + away * (30 if late else 2)) // 1000, coin)
        if kind == 2
        else 0,
        trigger_px=on_tick(mark * (1000 + _trigger_move(number, late)) // 1000, coin)
        if kind in {3, 4}
        else 0,
        trigger_above=number % 2 == 0,
        waiting=kind in {3, 4},
        cancel_at=time + minutes * MINUTE // 2 if kind == 5 and not late else 0,
    )


def _aim(floor: Floor, twap: Twap) -> None:
    """Let a TWAP that may only reduce close a position that lasts for all its slices.

    If its account has no such position, the TWAP belongs to the next account that has one.
    """
    accounts = [account for account in floor.exchange.accounts if account.activity]
    first = next(i for i, account in enumerate(accounts) if account is twap.account)
    aimed = {(t.account.number, t.coin) for t in floor.twaps if t.reduce_only and not t.ended}
    for account in (*accounts[first:], *accounts[:first]):
        for coin in account.coins:
            held = floor.exchange.position(coin, account.number)
            is_free = (account.number, coin) not in aimed and not floor.is_delisted(coin)
            if abs(held) > twap.slices and is_free:
                twap.account = account
                twap.coin, twap.is_buy, twap.total = coin, held < 0, abs(held)
                return


def _trigger_move(number: int, late: bool) -> int:
    """Give the distance of a trigger price in thousandths: late ones stay out of reach."""
    distance = 60 if late else 3
    return distance if number % 2 == 0 else -distance


def _trade(floor: Floor, twap: Twap, time: int) -> None:
    exchange = floor.exchange
    size = _size(floor, twap)
    twap.slice_number += 1
    if size <= 0 or floor.is_delisted(twap.coin):
        twap.ended = twap.reduce_only
        return
    change = size if twap.is_buy else -size
    px = best_price(exchange, twap.coin, time, twap.is_buy)
    ticket = perp_ticket(exchange, twap.account, twap.coin, change, px, time)
    ticket.kind, ticket.tif, ticket.twap_id = SLICE, "Ioc", twap.number
    ticket.reduce_only = twap.reduce_only
    deal(floor, exchange.transaction(time), twap.coin, ticket)
    twap.executed += ticket.size - ticket.left
    twap.executed_ntl += ticket.notional


def _size(floor: Floor, twap: Twap) -> int:
    """Give this slice's size: an equal share of the rest, a fifth more or less at random."""
    size = twap.total - twap.executed
    to_go = twap.slices - twap.slice_number
    if to_go > 1:
        size = max(1, size // to_go)
        if twap.randomize:
            size = size * (80 + int(floor.exchange.luck.random() * 41)) // 100
    if twap.reduce_only:
        held = floor.exchange.position(twap.coin, twap.account.number)
        size = min(size, max(0, -held if twap.is_buy else held))
    return size


def _start(twap: Twap) -> int:
    return twap.start
