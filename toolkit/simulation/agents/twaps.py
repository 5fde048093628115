"""TWAP users: a TWAP order trades a slice every half minute until it ends."""

import numpy as np

from toolkit.rules.twaps import SLICE_MS, SLICE_TYPE
from toolkit.simulation.engine import books
from toolkit.simulation.engine.accounts import Account
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.engine.orders import Twap
from toolkit.simulation.markets import PERPS
from toolkit.simulation.random_draws import random_stream
from toolkit.times import HOUR, MINUTE

_LATE_TWAPS = 8
"""TWAPs that start so late that they still run at the end of history."""


def start_twap(exchange: Exchange, time: int, twap: Twap) -> None:
    """Register a TWAP and schedule its first slice.

    A reduce-only TWAP closes a position that is large enough for all its slices. If its account
    has no such position, the TWAP moves to the next account that has one.
    """
    if twap.reduce_only:
        users = [account for account in exchange.accounts if account.activity]
        first = next(place for place, account in enumerate(users) if account is twap.account)
        taken = {
            (t.account.number, t.coin) for t in exchange.twaps if t.reduce_only and not t.ended
        }
        positions = (
            (account, coin, size)
            for account in (*users[first:], *users[:first])
            for coin in account.coins
            if abs(size := exchange.position_size(coin, account.number)) > twap.slice_count
            and (account.number, coin) not in taken
            and coin not in exchange.delisted
        )
        for twap.account, twap.coin, size in positions:
            twap.is_buy, twap.total = size < 0, abs(size)
            break
    exchange.twaps.append(twap)
    _schedule_slice(exchange, time, twap)


def trade_slice(exchange: Exchange, time: int, twap: Twap) -> None:
    """Trade one slice and schedule the next, or end the TWAP; a waiting one checks its trigger."""
    mark = exchange.mark_price(twap.coin, time)
    is_stopped = twap.stop_px and (mark - twap.stop_px) * (1 if twap.is_buy else -1) > 0
    if twap.waiting:
        twap.waiting = (mark < twap.trigger_px) == twap.trigger_above
    elif not is_stopped:
        size = _slice_size(exchange, twap)
        twap.slice_number += 1
        if size <= 0 or twap.coin in exchange.delisted:
            twap.ended = twap.reduce_only
        else:
            px = exchange.best_price(twap.coin, time, twap.is_buy)
            change = size if twap.is_buy else -size
            ticket = books.market_ticket(exchange, twap.account, twap.coin, change, px, time)
            ticket.kind, ticket.tif, ticket.twap_id = SLICE_TYPE, "Ioc", twap.number
            ticket.reduce_only = twap.reduce_only
            books.execute_order(exchange, exchange.next_transaction(time), twap.coin, ticket)
            twap.executed += ticket.size - ticket.left
            twap.executed_ntl += ticket.notional
    is_cancelled = bool(twap.cancel_at) and time >= twap.cancel_at
    twap.ended |= bool(is_stopped) or is_cancelled or twap.executed >= twap.total
    _schedule_slice(exchange, time, twap)


def draw_twaps(exchange: Exchange, count: int) -> None:
    """Draw TWAPs of every kind; the last ones still run, or wait, at the end."""
    rng = random_stream(exchange.seed, "twaps")
    users = [account for account in exchange.accounts if account.activity][::5]
    for number in range(count + _LATE_TWAPS):
        account = users[number % len(users)]
        coin = account.coins[int(rng.integers(0, len(account.coins)))]
        if PERPS[coin].delisted:
            continue
        is_late = number >= count
        if is_late:
            time = exchange.end_ms - int(rng.integers(2 * MINUTE, 25 * MINUTE))
        else:
            latest = (exchange.hours - 5) * HOUR
            time = exchange.start_ms + 2 * HOUR + int(rng.integers(0, latest))
        mark = exchange.mark_price(coin, time)
        twap = _draw_twap(rng, number, account, coin, time, mark, is_late)
        exchange.schedule(time, start_twap, twap)


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
        stop_px = books.round_to_tick(
            mark * (1000 + (distance if is_buy else -distance)) // 1000, coin
        )
    elif kind in {3, 4}:
        # The trigger price of late TWAPs is so far away that they still wait at the end.
        distance = 60 if is_late else 3
        move = distance if number % 2 == 0 else -distance
        trigger_px = books.round_to_tick(mark * (1000 + move) // 1000, coin)
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


def _schedule_slice(exchange: Exchange, time: int, twap: Twap) -> None:
    twap.next_slice = time + SLICE_MS
    if not twap.ended:
        exchange.schedule(twap.next_slice, trade_slice, twap)


def _slice_size(exchange: Exchange, twap: Twap) -> int:
    """Return this slice's size: an equal share of the rest, up to a fifth more or less."""
    size = twap.total - twap.executed
    slices_left = twap.slice_count - twap.slice_number
    if slices_left > 1:
        size = max(1, size // slices_left)
        if twap.randomize:
            size = size * (80 + int(exchange.rng.random() * 41)) // 100
    if twap.reduce_only:
        position = exchange.position_size(twap.coin, twap.account.number)
        size = min(size, max(0, -position if twap.is_buy else position))
    return size
