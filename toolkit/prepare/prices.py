"""The price of a coin at a moment: the last known one, and its age."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pandas as pd

from toolkit.arrays import Floats, Ints
from toolkit.errors import MissingColumns
from toolkit.prepare.door import NO_TIME, Frame, Names, Table
from toolkit.times import SECOND, to_ms

SOURCES = ("mid_px", "mark_px", "px", "oracle_px", "close")
"""Columns that can serve as prices, the one that is taken first in front."""

LATEST: Final = (1 << 43) - 2
"""The last moment that has a price, in milliseconds: the year 2248."""

QUOTES: Final = ("sell_px", "buy_px", "sell_age_seconds", "buy_age_seconds")
"""Columns that only quotes of a tape have, as `tk.execution.quotes` estimates them."""

_COINS = ("coin", "name")
_TIMES = ("time", "timestamp", "timestamp_ms", "end_time", "hour")


@dataclass(frozen=True)
class PriceHistory:
    """Prices in the order of coins and time.

    - ``source``: column of the prices
    - ``coins``: coin -> its number
    - ``keys``: number of the coin and time of each price, as one number. The first is below all.
    - ``px``: the prices; the first is NaN
    - ``quotes``: the frame of the prices, if these are mids, which may be estimated
    - ``is_tape``: whether these are the quotes of a tape
    - ``until``: quotes hold until the next one, the last ones until this moment; None for prices
      that are known only at their own moments
    """

    source: str
    coins: dict[str, int]
    keys: Ints
    px: Floats
    quotes: pd.DataFrame | None = None
    is_tape: bool = False
    until: int | None = None

    def last_at(
        self, coin: Names, ms: Ints, max_age_ms: int | Ints = LATEST
    ) -> tuple[Floats, Floats]:
        """Return the last price at or before each moment, and its age in seconds; or NaN."""
        number = np.array([self.coins.get(name, -1) for name in coin.values])[coin.codes]
        wanted = _price_keys(number, ms)
        place = np.searchsorted(self.keys, wanted, side="right") - 1
        age = wanted - self.keys[place]
        found = (self.keys[place] >> 43 == number) & (age <= max_age_ms)
        return np.where(found, self.px[place], np.nan), np.where(found, age / SECOND, np.nan)

    def last_ms(self) -> int:
        """Return the time of the last price; 0 without prices."""
        return int((self.keys[1:] & ((1 << 43) - 1)).max(initial=1)) - 1

    def before(self, coin: Names, ms: Ints, max_age_ms: int) -> tuple[Floats, Floats]:
        """Return the last price before each moment's own millisecond, and its age in seconds."""
        px, age = self.last_at(coin, ms - 1, max_age_ms - 1)
        return px, age + 1 / SECOND

    def after(
        self, coin: Names, ms: Ints, horizon_ms: int, max_age_ms: int
    ) -> tuple[Floats, Floats]:
        """Return the price at the horizon after each moment, and its age then, in seconds.

        A price from before the moment does not show what came after it. But a quote holds until the
        next one, so it counts if it was fresh at the moment: else only fills would count that
        another trade follows.
        """
        if horizon_ms < 0:
            return self.last_at(coin, ms + horizon_ms, max_age_ms)
        if self.until is None:
            return self.last_at(coin, ms + horizon_ms, min(max_age_ms, horizon_ms))
        px, age = self.last_at(coin, ms + horizon_ms, max_age_ms + horizon_ms)
        is_known = ms + horizon_ms <= self.until + max_age_ms
        return np.where(is_known, px, np.nan), np.where(is_known, age, np.nan)


def _price_keys(coin: Ints, ms: Ints) -> Ints:
    return (coin << 43) + np.clip(ms, -1, LATEST) + 1


def make_history(
    source: str, coin: Names, ms: Ints, px: Floats, weight: Floats | None = None
) -> PriceHistory:
    """Return prices in order. Several of one coin and millisecond become their weighted mean."""
    known = (ms != NO_TIME) & ~np.isnan(px) & coin.facts(bool)
    weight = np.ones(len(px)) if weight is None else weight
    known &= weight > 0
    keys, px, weight = _price_keys(coin.codes, ms)[known], px[known], weight[known]
    order = np.argsort(keys, kind="stable")
    keys, px, weight = keys[order], px[order], weight[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    if len(first) < len(keys):
        px = np.add.reduceat(px * weight, first) / np.add.reduceat(weight, first)
        keys = keys[first]
    below_all = np.iinfo(np.int64).min
    return PriceHistory(
        source,
        {name: code for code, name in enumerate(coin.values)},
        np.concatenate([[below_all], keys]),
        np.concatenate([[np.nan], px]),
    )


def read_prices(prices: Frame, price: str | None = None) -> PriceHistory:
    """Read prices: archived asset contexts, quotes, or fills of any account.

    Prices of one coin and millisecond become one: their mean, weighted by `sz` if that column
    exists, so that the order of rows does not matter. Mids with ``bid_px`` and ``ask_px`` are
    quotes.

    Raise MissingColumns if there is no coin, time or price.
    """
    table = Table(prices, "prices")
    coin, time, source = (
        next(filter(table.has, names), names[0]) for names in (_COINS, _TIMES, SOURCES)
    )
    source = price or source
    if not table.has(time):
        raise MissingColumns(
            f"prices: the column time is missing. The frame has {', '.join(table.frame.columns)}. "
            "Add the time of each batch: "
            'frame.assign(time=pd.Timestamp(tk.provenance(frame)["asked_at"]))'
        )
    table.require((coin, source))
    weight = table.number("sz") if table.has("sz") else None
    ms = table.ms(time)
    history = make_history(source, table.text(coin), ms, table.number(source), weight)
    if source != "mid_px":
        return history
    holds = table.has("bid_px") and table.has("ask_px")
    until = int(ms.max(initial=NO_TIME)) if holds else None
    is_tape = all(map(table.has, QUOTES))
    return replace(history, quotes=table.frame, is_tape=is_tape, until=until)


def list_spans(spans: Sequence[str | float], name: str, *, signed: bool = False) -> list[int]:
    """Return spans of time in milliseconds, ascending and each once; negative ones if `signed`."""
    if isinstance(spans, str | int | float):
        raise TypeError(f"{name} must be a list of time spans, such as [{spans!r}], not {spans!r}")
    found = set()
    for span in spans:
        sign = -1 if signed and str(span).startswith("-") else 1
        size = span if sign > 0 else span[1:] if isinstance(span, str) else -span
        found.add(sign * span_ms(size, f"each of {name}"))
    return sorted(found)


def span_ms(span: str | float, name: str) -> int:
    """Return a span of time in milliseconds: ``"30s"``, ``"5m"``, or seconds.

    Raise ValueError if it is not a span, or not positive.
    """
    try:
        ms = -to_ms(span, now_ms=0) if isinstance(span, str) else round(float(span) * SECOND)
    except (TypeError, ValueError, OverflowError):
        ms = 0
    if ms <= 0:
        raise ValueError(f"{name} must be a span of time such as '30s', or seconds, not {span!r}")
    return ms
