"""Funding rows that sum several payments: how many payments, and for how many hours.

A row with ``n_samples`` = n sums n payments: ``usdc = -szi * oracle price * rate * n``, with the
rate of one payment (docs/live_service.md, section 5). Today a payment is for one hour. Payments of
2023 were for eight hours, and a row of three payments was for a day.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import narwhals as nw
import numpy as np
import pandas as pd

from toolkit.arrays import Floats
from toolkit.times import HOUR

SAMPLES: Final = "n_samples"
EIGHT_HOURS: Final = 8
"""The hours that a payment was for in 2023."""

_HOURLY_FROM: Final = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp() * 1000)


def sample_count(column_names: Sequence[str]) -> nw.Expr:
    """Return how many payments each row sums, as a float: 1 if the row has no count."""
    if SAMPLES not in column_names:
        return nw.col(column_names[0]).is_null().cast(nw.Float64()) * 0.0 + 1.0
    count = nw.col(SAMPLES).cast(nw.Float64())
    return nw.when(count >= 1).then(count).otherwise(nw.lit(1.0))


# ASSUMED: If a funding row from before 2024 sums several payments, each payment is for eight hours,
# the same as in the recorded rows of 2023.
def span_hours(column_names: Sequence[str]) -> nw.Expr:
    """Return how many hours each row is for; the frame has its time in milliseconds as `_ms`."""
    count = sample_count(column_names)
    is_old = (nw.col("_ms") < _HOURLY_FROM) & (count > 1)
    return nw.when(is_old).then(count * EIGHT_HOURS).otherwise(count)


def interval_hours(rows: pd.DataFrame) -> int:
    """Return how many hours one payment is for, from rows of before 2024.

    It is eight, unless rows of a coin follow each other sooner than their payments allow. If no row
    sums several payments and no coin has two rows, it is one.

    - ``rows``: ``coin``, ``hour`` (since the epoch), ``samples``
    """
    each = rows.drop_duplicates(["coin", "hour"]).sort_values(["coin", "hour"])
    gap = each.groupby("coin")["hour"].diff() / each["samples"]
    if gap.notna().any():
        return EIGHT_HOURS if gap.min() >= EIGHT_HOURS else 1
    return EIGHT_HOURS if (each["samples"] > 1).any() else 1


def spread_hours(rows: pd.DataFrame, interval: float | None = None) -> pd.DataFrame:
    """Return one row for each hour that a row is for, with the rate by the hour.

    - ``rows``: ``coin``, ``hour`` (since the epoch), ``samples``, ``rate`` (of one payment)
    - ``interval``: hours that one payment is for. Without it, 1 hour from 2024 on, and the result
      of `interval_hours` before.

    Returns: ``coin``, ``hour``, ``rate``. The last hour of a row is the hour of the row itself.
    """
    old = (rows["hour"] * HOUR < _HOURLY_FROM).to_numpy(dtype=bool)
    hours: Floats = np.ones(len(rows))
    if interval is not None:
        hours[:] = interval
    elif old.any():
        hours[old] = interval_hours(rows[old])
    span = np.maximum(np.rint(hours * rows["samples"].to_numpy(dtype="float64")), 1).astype("int64")
    hourly = pd.DataFrame({"coin": rows["coin"], "hour": rows["hour"]})
    hourly["rate"] = rows["rate"] / hours
    if (span == 1).all():
        return hourly
    place = np.repeat(np.arange(len(rows)), span)
    back = np.concatenate([np.arange(hours_of_row) for hours_of_row in span])
    spread = hourly.iloc[place].reset_index(drop=True)
    spread["hour"] -= back
    return spread
