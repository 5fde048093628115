"""Totals of all trades: candles by the minute, volumes by account and day, builder fees.

They are counted while the store is built, so no request reads every fill again.
"""

import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Final

import msgspec
import numpy as np
from msgspec import UNSET

from toolkit.contract.dexes import is_perp_coin
from toolkit.contract.records import Candle, Fill, Liquidation, OpenInterest
from toolkit.contract.requests import INTERVALS
from toolkit.rules.directions import BORROW_LIQUIDATIONS, LIQUIDATED, NOT_TRADED
from toolkit.service.decimals import format_decimal
from toolkit.times import DAY, MINUTE, WEEK, week_begin

_CONVERSION: Final = frozenset(NOT_TRADED)

_MOST_CANDLES: Final = 5_000


class MinuteCandle(msgspec.Struct, array_like=True):
    """The trades of one coin in one minute.

    `first` and `last` are the (time, transaction) of the first and the last trade.
    """

    minute: int
    first: tuple[int, int]
    last: tuple[int, int]
    open: str
    close: str
    high: str
    low: str
    volume: Decimal
    trades: int


class TradeTotals:
    """Totals of the fills that pass through `count_fills`.

    Parameters
    ----------
    span : int
        The length of a minute: its milliseconds, or those of a shorter time.

    Attributes
    ----------
    minutes : dict of str to dict of int to MinuteCandle
        Coin -> number of the minute -> its trades. Each trade counts once.
    volumes : dict of (str, int) to list of Decimal
        (Account, day) -> its volume in USD as taker and as maker.
    builder_fees : dict of str to Decimal
        Builder -> the fees that its users paid to it.
    interest : dict of str to dict of int to Decimal
        Perp -> number of the minute -> the change of its open interest, longs plus shorts. Minute
        0 has the positions from before the first fill of each account.
    """

    def __init__(self, span: int = MINUTE) -> None:
        self._span = span
        self.minutes: defaultdict[str, dict[int, MinuteCandle]] = defaultdict(dict)
        self.volumes: defaultdict[tuple[str, int], list[Decimal]] = defaultdict(
            lambda: [Decimal(0), Decimal(0)]
        )
        self.builder_fees: defaultdict[str, Decimal] = defaultdict(Decimal)
        self.interest: defaultdict[str, defaultdict[int, Decimal]] = defaultdict(
            lambda: defaultdict(Decimal)
        )
        self._seen: set[tuple[str, str]] = set()
        self._is_perp = functools.cache(is_perp_coin)

    def count_fills(self, fills: Iterable[tuple[str, Fill]]) -> Iterator[tuple[str, Fill]]:
        """Count fills in the order of execution, and yield them unchanged."""
        for user, fill in fills:
            # Recorded fills may have no price or size.
            if fill.dir not in _CONVERSION and fill.px and fill.sz:
                self._count_fill(user, fill)
            if self._is_perp(fill.coin) and fill.start_position and fill.sz:
                start, size = Decimal(fill.start_position), Decimal(fill.sz)
                changes = self.interest[fill.coin]
                if (user, fill.coin) not in self._seen:
                    self._seen.add((user, fill.coin))
                    changes[0] += abs(start)
                end = start + (size if fill.side == "B" else -size)
                changes[fill.time // MINUTE] += abs(end) - abs(start)
            if isinstance(fill.builder, str) and isinstance(fill.builder_fee, str):
                self.builder_fees[fill.builder] += Decimal(fill.builder_fee)
            yield user, fill

    def _count_fill(self, user: str, fill: Fill) -> None:
        sz, px = Decimal(fill.sz), fill.px
        self.volumes[user, fill.time // DAY][0 if fill.crossed else 1] += sz * Decimal(px)
        if not fill.crossed:
            return  # the fill on the other side counts the trade
        minutes, number = self.minutes[fill.coin], fill.time // self._span
        key = (fill.time, fill.tx_index or 0)
        if (minute := minutes.get(number)) is None:
            minutes[number] = MinuteCandle(number, key, key, px, px, px, px, sz, 1)
            return
        minute.last, minute.close = key, px
        minute.volume += sz
        minute.trades += 1
        if px not in (minute.high, minute.low):  # the older one stays if they are equal
            minute.high = max(minute.high, px, key=Decimal)
            minute.low = min(minute.low, px, key=Decimal)


def is_liquidated(user: str, fill: Fill) -> bool:
    """Return whether a fill liquidates its own account (docs/live_service.md, section 2)."""
    if isinstance(fill.liquidation, Liquidation):
        liquidated = fill.liquidation.liquidated_user
        return bool(fill.crossed) if liquidated is UNSET else liquidated == user
    words = fill.dir or ""
    side, sign = ("A", 1) if words.endswith("Long") else ("B", -1)
    is_closed = fill.side == side and sign * Decimal(fill.start_position or 0) > 0
    return words in BORROW_LIQUIDATIONS or (words.startswith(LIQUIDATED) and is_closed)


def merge_minutes(minutes: Iterable[MinuteCandle]) -> MinuteCandle:
    """Return one candle of several minutes, or of several parts of one minute.

    Examples
    --------
    >>> first = MinuteCandle(0, (5, 1), (9, 1), "10", "11", "11", "9", Decimal("1.5"), 3)
    >>> second = MinuteCandle(1, (61, 1), (61, 1), "8", "8", "8", "8", Decimal(2), 1)
    >>> both = merge_minutes([second, first])
    >>> both.open, both.close, both.high, both.low, str(both.volume), both.trades
    ('10', '8', '11', '8', '3.5', 4)
    """
    parts = list(minutes)
    first = min(parts, key=lambda part: part.first)
    last = max(parts, key=lambda part: part.last)
    return MinuteCandle(
        first.minute,
        first.first,
        last.last,
        first.open,
        last.close,
        max((part.high for part in parts), key=Decimal),
        min((part.low for part in parts), key=Decimal),
        sum((part.volume for part in parts), Decimal(0)),
        sum(part.trades for part in parts),
    )


def make_candles(
    minutes: Iterable[MinuteCandle],
    coin: str,
    interval: str,
    start: int,
    end: int,
    span: int = MINUTE,
) -> list[Candle]:
    """Return the candles whose intervals overlap a time range, the latest 5,000 of them.

    Parameters
    ----------
    minutes : iterable of MinuteCandle
        The trades of the coin, in any order.
    span : int
        The length of a minute, as in `TradeTotals`.
    coin : str
        Name of the coin.
    interval : str
        One of `toolkit.contract.requests.INTERVALS`.
    start, end : int
        The time range in Unix milliseconds, both ends inclusive.
    """
    # ASSUMED: An interval without trades has no candle. A week begins on Monday.
    by_begin: defaultdict[int, list[MinuteCandle]] = defaultdict(list)
    for minute in minutes:
        by_begin[interval_begin(minute.minute * span, interval)].append(minute)
    begins = [b for b in sorted(by_begin) if b <= end and interval_end(b, interval) >= start]
    totals = {begin: merge_minutes(by_begin[begin]) for begin in begins[-_MOST_CANDLES:]}
    return [
        Candle(
            start_time=begin,
            end_time=interval_end(begin, interval),
            coin=coin,
            interval=interval,
            open=total.open,
            close=total.close,
            high=total.high,
            low=total.low,
            volume=format_decimal(total.volume),
            trades=total.trades,
        )
        for begin, total in totals.items()
    ]


def open_interest(
    changes: Mapping[int, Decimal],
    minutes: Iterable[MinuteCandle],
    interval: str,
    start: int,
    end: int,
) -> list[OpenInterest]:
    """Return the open interest of a perp in each interval that overlaps a time range.

    Parameters
    ----------
    changes : mapping
        Number of the minute -> the change of the open interest, as in `TradeTotals.interest`.
    minutes : iterable of MinuteCandle
        The trades of the perp, in any order.
    interval : str
        One of `toolkit.contract.requests.INTERVALS`, from a minute on.
    start, end : int
        The time range in Unix milliseconds, both ends inclusive.
    """
    # ASSUMED: The open interest in USD is that of the last moment at the price of the last trade.
    prices = {minute: part.close for minute, part in sorted((m.minute, m) for m in minutes)}
    first = min((minute for minute in changes if minute), default=None)
    if first is None:
        return []
    steps = iter(sorted({**dict.fromkeys(prices, Decimal(0)), **changes}.items()))
    step, level, price = next(steps, None), Decimal(0), ""
    rows, begin = [], interval_begin(max(start, first * MINUTE), interval)
    while begin <= end:
        last = interval_end(begin, interval)
        while step and step[0] * MINUTE < begin:
            level, price, step = level + step[1], prices.get(step[0], price), next(steps, None)
        levels = [level]
        while step and step[0] * MINUTE <= last:
            level, price, step = level + step[1], prices.get(step[0], price), next(steps, None)
            levels.append(level)
        rows.append(
            OpenInterest(
                time=begin,
                oi_open=format_decimal(levels[0]),
                oi_high=format_decimal(max(levels)),
                oi_low=format_decimal(min(levels)),
                oi_close=format_decimal(level),
                oi_usd=format_decimal(level * Decimal(price)) if price else None,
            )
        )
        begin = last + 1
    return rows


def interval_begin(time: int, interval: str) -> int:
    """Return the first moment of the interval that has a time."""
    if interval == "1M":
        return int(np.datetime64(time, "ms").astype("M8[M]").astype("M8[ms]").astype(int))
    length = INTERVALS[interval]
    return week_begin(time) if length == WEEK else time // length * length


def interval_end(begin: int, interval: str) -> int:
    """Return the last moment of the interval that begins at a time."""
    longest = 32 * DAY if interval == "1M" else INTERVALS[interval]
    return interval_begin(begin + longest, interval) - 1
