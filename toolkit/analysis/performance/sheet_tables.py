"""Rows and tables that the sheets share: complete trips, months, groups, the result."""

from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np
import pandas as pd
import pyarrow as pa
from narwhals.typing import IntoFrame

from toolkit.analysis.common import frame_access, memory_frames
from toolkit.analysis.common.repeated_rows import drop_repeated_rows
from toolkit.analysis.performance.ratios import Figure
from toolkit.display import count_text
from toolkit.errors import HistoryWarning, warn_caller
from toolkit.times import DAY

YEAR = 365 * DAY
"""Milliseconds of a year, for figures per year."""

_COMPLETE = ("closed", "liquidated")
_COLUMNS = ("figure", "value", "low", "high", "n", "unit", "basis", "method")


def complete_trips(trips: IntoFrame, more: Sequence[str] = ()) -> pd.DataFrame:
    """Return the complete trips, and warn of the others; `more` names further columns."""
    needed = ("status", "net", "duration_hours", "closed", *more)
    trips = drop_repeated_rows(trips, "trips")
    rows = frame_access.pandas_columns(trips, "trips", needed, ("user",), ("net", "duration_hours"))
    complete = rows["status"].isin(_COMPLETE) & rows["net"].notna()
    if missing := int((~complete).sum()):
        warn_caller(
            f"trips: {missing:,} of {count_text(len(rows), 'trip')} "
            f"{'is not complete, and does' if missing == 1 else 'are not complete, and do'} not "
            "count. The column status says why",
            HistoryWarning,
        )
    # Bootstrap draws depend on the order, so rows in any order must come in the same one.
    keys = ["closed", "net", "duration_hours"]
    return rows[complete].sort_values(keys, kind="stable", ignore_index=True)


def add_month(rows: pd.DataFrame, time: str) -> pd.DataFrame:
    """Add the start of the month of a time, UTC."""
    stamps = (
        rows[time].dt.tz_convert("UTC") if rows[time].dt.tz else rows[time].dt.tz_localize("UTC")
    )
    start = stamps.dt.normalize() - pd.to_timedelta(stamps.dt.day - 1, unit="D")
    return rows.assign(month=start.astype("datetime64[ms, UTC]"))


def periods_per_year(rows: pd.DataFrame) -> float:
    """Return how many periods a year has, from the distance of the rows; days if unknown."""
    keys = ["user"] if "user" in rows.columns else [np.zeros(len(rows))]
    gaps = rows.sort_values("time").groupby(keys)["time"].diff().dropna()
    if gaps.empty:
        return YEAR / DAY
    return YEAR / float(gaps.min() / pd.Timedelta(milliseconds=1))


def iterate_groups(
    rows: pd.DataFrame, keys: Sequence[str]
) -> Iterator[tuple[tuple[object, ...], pd.DataFrame]]:
    """Yield the groups of rows, sorted; without keys all rows are one group."""
    if not keys:
        yield (), rows
        return
    yield from rows.groupby(list(keys), sort=True)


def figure_table(
    made: Sequence[tuple[tuple[object, ...], str, Figure]], keys: Sequence[str]
) -> pa.Table:
    """Return figures as a table: the keys of the group, its basis, and the figure."""
    groups = {
        key: _key_column(key, [group[place] for group, _, _ in made])
        for place, key in enumerate(keys)
    }
    figures = [figure for _, _, figure in made]
    numbers = {
        name: pa.array(
            [getattr(figure, name) for figure in figures], pa.float64(), from_pandas=True
        )
        for name in ("value", "low", "high")
    }
    basis = memory_frames.text_column([basis for _, basis, _ in made])
    texts = {
        name: memory_frames.text_column([getattr(figure, attribute) for figure in figures])
        for name, attribute in (("figure", "name"), ("unit", "unit"), ("method", "method"))
    }
    count = pa.array([figure.n for figure in figures], type=pa.int64())
    parts = {**texts, **numbers, "n": count, "basis": basis}
    return pa.table({**groups, **{name: parts[name] for name in _COLUMNS}})


def _key_column(key: str, values: Sequence[object]) -> pa.Array:
    """Return the column of a key, which has the same type if it is empty."""
    if key == "month":
        stamps = [cast("pd.Timestamp", value) for value in values]
        return memory_frames.utc_times([int(stamp.timestamp() * 1000) for stamp in stamps])
    if key in ("hour", "forced"):
        return pa.array(values, type=pa.int64() if key == "hour" else pa.bool_())
    return memory_frames.text_column([str(value) for value in values])
