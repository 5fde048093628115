"""What all fills together say: candles by the minute, and volumes by account and day.

They are counted while the store is built, so that nobody has to read every fill again.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, Final

import msgspec

from toolkit.contract.records import Fill
from toolkit.rules.directions import NOT_TRADED
from toolkit.times import DAY, MINUTE

__all__ = ["Minute", "Tape", "merge_minutes"]

_CONVERSION: Final = frozenset(NOT_TRADED)


class Minute(msgspec.Struct, array_like=True):
    """The trades of one coin in one minute: times are those of the first and the last trade."""

    minute: int
    first: tuple[int, int]
    last: tuple[int, int]
    open: str
    close: str
    high: str
    low: str
    volume: Decimal
    trades: int


class Tape:
    """Counts fills as they pass.

    Attributes
    ----------
    minutes : dict of str to dict of int to Minute
        Coin -> number of the minute -> its trades, each counted once.
    volumes : dict of (str, int) to list of Decimal
        (Account, day) -> its volume in USD as taker and as maker.
    builder_fees : dict of str to Decimal
        Builder -> what its users paid it.
    """

    def __init__(self) -> None:
        self.minutes: defaultdict[str, dict[int, Minute]] = defaultdict(dict)
        self.volumes: defaultdict[tuple[str, int], list[Decimal]] = defaultdict(_nothing)
        self.builder_fees: defaultdict[str, Decimal] = defaultdict(Decimal)

    def watch(self, fills: Iterable[tuple[str, Fill]]) -> Iterator[tuple[str, Fill]]:
        """Yield fills in the order of execution, and count them."""
        for user, fill in fills:
            if fill.dir not in _CONVERSION and fill.px and fill.sz:  # recorded rows may lack them
                self._count(user, fill)
            if isinstance(fill.builder, str) and isinstance(fill.builder_fee, str):
                self.builder_fees[fill.builder] += Decimal(fill.builder_fee)
            yield user, fill

    def _count(self, user: str, fill: Fill) -> None:
        sz = Decimal(fill.sz)
        day = self.volumes[user, fill.time // DAY]
        day[0 if fill.crossed else 1] += sz * Decimal(fill.px)
        if not fill.crossed:
            return  # the other side of the same trade counts it
        minutes, number = self.minutes[fill.coin], fill.time // MINUTE
        key = (fill.time, fill.tx_index or 0)
        px = fill.px
        minute = minutes.get(number)
        if minute is None:
            minutes[number] = Minute(number, key, key, px, px, px, px, sz, 1)
            return
        minute.last, minute.close = key, px
        minute.volume += sz
        minute.trades += 1
        if px not in (minute.high, minute.low):
            value = Decimal(px)
            if value > Decimal(minute.high):
                minute.high = px
            elif value < Decimal(minute.low):
                minute.low = px


def _nothing() -> list[Decimal]:
    return [Decimal(0), Decimal(0)]


def merge_minutes(minutes: Iterable[Minute]) -> Minute:
    """Return one candle of several minutes, or of parts of one minute.

    Examples
    --------
    >>> one = Minute(0, (5, 1), (9, 1), "10", "11", "11", "9", Decimal("1.5"), 3)
    >>> two = Minute(1, (61, 1), (61, 1), "8", "8", "8", "8", Decimal(2), 1)
    >>> both = merge_minutes([two, one])
    >>> both.open, both.close, both.high, both.low, str(both.volume), both.trades
    ('10', '8', '11', '8', '3.5', 4)
    """
    parts = list(minutes)
    first = min(parts, key=_first)
    last = max(parts, key=_last)
    return Minute(
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


def _first(part: Minute) -> Any:
    return part.first


def _last(part: Minute) -> Any:
    return part.last
