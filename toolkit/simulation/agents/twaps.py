"""TWAP users: a TWAP order trades a slice every half minute until it ends."""

from toolkit.rules.twaps import SLICE_MS, SLICE_TYPE
from toolkit.simulation.engine import books
from toolkit.simulation.engine.accounts import Twap
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.exact import random_stream
from toolkit.simulation.markets import PERPS
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
    twap.next_slice = time + SLICE_MS
    exchange.schedule(twap.next_slice, trade_slice, twap)


def trade_slice(exchange: Exchange, time: int, twap: Twap) -> None:
    """Trade one slice and schedule the next, or end the TWAP; a waiting one checks its trigger."""
    mark = exchange.mark_price(twap.coin, time)
    is_stopped = twap.stop_px and (mark - twap.stop_px) * (1 if twap.is_buy else -1) > 0
    if twap.waiting:
        twap.waiting = (mark < twap.trigger_px) == twap.trigger_above
    elif not is_stopped:
        # An equal share of the rest, up to a fifth more or less:
        size, slices_left = twap.total - twap.executed, twap.slice_count - twap.slice_number
        if slices_left > 1:
            size = max(1, size // slices_left)
            if twap.randomize:
                size = size * (80 + int(exchange.rng.random() * 41)) // 100
        if twap.reduce_only:
            position = exchange.position_size(twap.coin, twap.account.number)
            size = min(size, max(0, -position if twap.is_buy else position))
        twap.slice_number += 1
        if size <= 0 or twap.coin in exchange.delisted:
            twap.ended = twap.reduce_only
        else:
            px = exchange.best_price(twap.coin, time, twap.is_buy)
            change = size if twap.is_buy else -size
            fields = {"kind": SLICE_TYPE, "tif": "Ioc", "twap_id": twap.number}
            fields["reduce_only"] = twap.reduce_only
            ticket = books.trade_market(
                exchange, time, twap.account, twap.coin, change, px, **fields
            )
            twap.executed += ticket.size - ticket.left
            twap.executed_ntl += ticket.notional
    is_cancelled = bool(twap.cancel_at) and time >= twap.cancel_at
    twap.ended |= bool(is_stopped) or is_cancelled or twap.executed >= twap.total
    twap.next_slice = time + SLICE_MS
    if not twap.ended:
        exchange.schedule(twap.next_slice, trade_slice, twap)


def draw_twaps(exchange: Exchange, count: int) -> None:
    """Draw TWAPs of every kind, by number; the last ones still run, or wait, at the end."""
    rng, end_ms = random_stream(exchange.seed, "twaps"), exchange.end_ms
    users = [account for account in exchange.accounts if account.activity][::5]
    for number in range(count + _LATE_TWAPS):
        account = users[number % len(users)]
        coin = account.coins[int(rng.integers(0, len(account.coins)))]
        if PERPS[coin].delisted:
            continue
        kind, is_even, is_late = number % 6, number % 2 == 0, number >= count
        if is_late:
            time = end_ms - int(rng.integers(2 * MINUTE, 25 * MINUTE))
        else:
            latest = (exchange.hours - 5) * HOUR
            time = exchange.start_ms + 2 * HOUR + int(rng.integers(0, latest))
        mark = exchange.mark_price(coin, time)
        funds = account.funds * (0.1 + 0.3 * float(rng.random()))
        total = max(int(min(funds, PERPS[coin].depth_usd * 30e6)) // mark, 1_000)
        minutes = int(rng.integers(30, 90)) if is_late else int(rng.integers(10, 60))
        is_buy, waits = bool(rng.integers(0, 2)), kind in {3, 4}
        # The trigger price of late TWAPs is so far away that they still wait at the end.
        distance = (60 if is_late else 3) if waits else 30 if is_late else 2  # in thousandths
        move = distance if (is_even if waits else is_buy) else -distance
        px = books.round_to_tick(mark * (1000 + move) // 1000, coin)
        twap = Twap(
            number=40_000 + number,
            account=account,
            coin=coin,
            is_buy=is_buy,
            total=total,
            duration_secs=minutes * 60,
            start=time,
            reduce_only=kind == 1,
            randomize=is_even,
            stop_px=px if kind == 2 else 0,
            trigger_px=px if waits else 0,
            trigger_above=is_even,
            waiting=waits,
            cancel_at=time + minutes * MINUTE // 2 if kind == 5 and not is_late else 0,
        )
        exchange.schedule(time, start_twap, twap)
