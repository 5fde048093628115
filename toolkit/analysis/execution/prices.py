"""The price of a coin at a moment: the last known one, and its age."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from narwhals.typing import IntoFrame

from toolkit.analysis.common import frame_access, timestamps
from toolkit.arrays import Floats
from toolkit.errors import MissingColumns
from toolkit.times import SECOND, to_ms

SOURCES = ("mid_px", "mark_px", "px", "oracle_px")
"""Columns that can serve as prices, the one that is taken first in front."""

_COINS = ("coin", "name")
_TIMES = ("time", "timestamp", "timestamp_ms")


@dataclass(frozen=True)
class PriceHistory:
    """Prices by coin, in the order of time.

    - ``source``: column of the prices
    - ``by_coin``: coin -> times in milliseconds, and prices
    - ``quotes``: the frame of the prices, if these are mids, which may be estimated
    """

    source: str
    by_coin: dict[str, tuple[Floats, Floats]]
    quotes: IntoFrame | None = None

    def last_at(self, coins: pd.Series, ms: Floats) -> tuple[Floats, Floats]:
        """Return the last price at or before each moment, and its time; NaN if there is none."""
        px, when = np.full(len(ms), np.nan), np.full(len(ms), np.nan)
        for coin, places in coins.groupby(coins).indices.items():
            if str(coin) not in self.by_coin:
                continue
            times, prices = self.by_coin[str(coin)]
            last = np.searchsorted(times, ms[places], side="right") - 1
            there = last >= 0
            px[places[there]] = prices[last[there]]
            when[places[there]] = times[last[there]]
        return px, when


def read_prices(prices: IntoFrame, price: str | None = None, what: str = "prices") -> PriceHistory:
    """Read prices: archived asset contexts, quotes, or fills of any account.

    Prices of one coin and millisecond become one: their mean, weighted by `sz` if that column
    exists, so that the order of rows does not matter.

    Raise MissingColumns if there is no coin, time or price.
    """
    import narwhals as nw

    column_names = nw.from_native(prices).columns
    source = price or next((name for name in SOURCES if name in column_names), SOURCES[0])
    coin = next((name for name in _COINS if name in column_names), _COINS[0])
    time = next((name for name in _TIMES if name in column_names), _TIMES[0])
    if time not in column_names:
        raise MissingColumns(
            f"{what}: the column time is missing. The frame has {', '.join(column_names)}. "
            "Add the time of each batch: "
            'frame.assign(time=pd.Timestamp(tk.provenance(frame)["asked_at"]))'
        )
    rows = frame_access.pandas_columns(prices, what, (coin, time, source), ("sz",), (source, "sz"))
    weight = rows["sz"] if "sz" in rows else pd.Series(1.0, index=rows.index)
    table = pd.DataFrame(
        {
            "coin": rows[coin].astype("str"),
            "ms": timestamps.ms_from_times(rows[time]),
            "px": rows[source],
        }
    )
    table["weight"] = weight
    table = table[table["px"].notna() & (table["weight"] > 0)]
    table["value"] = table["px"] * table["weight"]
    sums = table.groupby(["coin", "ms"], sort=True)[["value", "weight"]].sum()
    mean = (sums["value"] / sums["weight"]).reset_index(name="px")
    by_coin = {
        str(name): (group["ms"].to_numpy(dtype="float64"), group["px"].to_numpy(dtype="float64"))
        for name, group in mean.groupby("coin")
    }
    return PriceHistory(source, by_coin)


def list_spans(spans: Sequence[str | float], name: str) -> list[int]:
    """Return spans of time in milliseconds, ascending and each once."""
    if isinstance(spans, str | int | float):
        raise TypeError(f"{name} must be a list of time spans, such as [{spans!r}], not {spans!r}")
    return sorted({span_ms(span, f"each of {name}") for span in spans})


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
