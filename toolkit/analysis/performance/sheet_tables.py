"""Rows and tables that the sheets share: complete trips, months, periods, the result."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from toolkit.analysis.performance.ratios import Figure
from toolkit.arrays import Ints
from toolkit.display import count_text
from toolkit.errors import HistoryWarning, warn_caller
from toolkit.prepare.door import NO_TIME, Frame, Table, utc_times
from toolkit.times import DAY

YEAR = 365 * DAY
"""Milliseconds of a year, for figures per year."""

Group = tuple[object, ...]
"""The values of the keys of a group."""

_COMPLETE = ("closed", "liquidated")
_DTYPES = {
    "figure": "str", "value": "float64", "low": "float64", "high": "float64", "n": "int64",
    "unit": "str", "basis": "str", "method": "str",
}  # fmt: skip
_KEY_DTYPES = {"month": "datetime64[ms, UTC]", "hour": "int64", "forced": "bool"}


def complete_trips(trips: Frame, more: Sequence[str] = ()) -> pd.DataFrame:
    """Return the complete trips with the month in which they closed, and warn of the others.

    `more` names further columns.
    """
    table = Table(trips, "trips")
    needed = ("status", "net", "duration_hours", "closed", *more)
    rows = table.columns(needed, ("user",), ("net", "duration_hours"))
    rows["month"] = month_start(table.ms("closed"))
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


def month_start(ms: Ints) -> pd.DatetimeIndex:
    """Return the start of the month of each time, UTC."""
    return utc_times(ms.view("M8[ms]").astype("M8[M]").astype("M8[ms]").view(np.int64))


def periods_per_year(table: Table) -> pd.Series:
    """Return how many periods a year has in each row: by the smallest distance of its account.

    Days if no distance is known; an account with one row has the distance of the others.
    """
    ms = table.ms("time")
    user = table.text("user").codes if table.has("user") else np.zeros(len(ms), np.int64)
    order = np.lexsort((ms, user))
    gap = np.diff(ms[order])
    is_known = (np.diff(user[order]) == 0) & (ms[order][:-1] != NO_TIME) & (gap > 0)
    least = pd.Series(gap[is_known]).groupby(user[order][1:][is_known]).min()
    usual = least.min() if len(least) else DAY
    return YEAR / pd.Series(user).map(least).fillna(usual).astype("float64")


def iterate_groups(rows: pd.DataFrame, keys: Sequence[str]) -> Iterator[tuple[Group, pd.DataFrame]]:
    """Yield the groups of rows, sorted; without keys all rows are one group."""
    if not keys:
        yield (), rows
        return
    yield from rows.groupby(list(keys), sort=True)


def figure_table(made: Sequence[tuple[Group, str, Figure]], keys: Sequence[str]) -> pd.DataFrame:
    """Return figures as a table: the keys of the group, its basis, and the figure."""
    figures = [figure for _, _, figure in made]
    columns = {name: [getattr(figure, name) for figure in figures] for name in Figure._fields}
    columns |= {"figure": columns["name"], "basis": [basis for _, basis, _ in made]}
    columns |= {key: [group[place] for group, _, _ in made] for place, key in enumerate(keys)}
    dtypes = {key: _KEY_DTYPES.get(key, "str") for key in keys} | _DTYPES
    return pd.DataFrame({n: pd.Series(columns[n], dtype=dtype) for n, dtype in dtypes.items()})
