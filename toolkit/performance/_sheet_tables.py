"""Rows and tables that the sheets share: returns, complete trips, months, the result."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from toolkit.arrays import Flags, Floats, Ints
from toolkit.display import count_text
from toolkit.errors import HistoryWarning, warn_caller
from toolkit.performance._ratios import NAN, Figure
from toolkit.prepare.door import Frame, Table, utc_times
from toolkit.prepare.groups import split_groups
from toolkit.times import DAY, HOUR

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
            f"{'does' if missing == 1 else 'do'} not count: not complete, or without a known net. "
            "The columns status and funded_hours say why",
            HistoryWarning,
        )
    # Rows in any order must come in the same one, for the dependence between neighbours.
    keys = ["closed", "net", "duration_hours"]
    return rows[complete].sort_values(keys, kind="stable", ignore_index=True)


def month_start(ms: Ints) -> pd.DatetimeIndex:
    """Return the start of the month of each time, UTC."""
    return utc_times(ms.view("M8[ms]").astype("M8[M]").astype("M8[ms]").view(np.int64))


Columns = dict[str, Any]
"""Columns of returns as arrays, sorted by account and time."""


def read_returns(
    returns: Frame, needed: Sequence[str] = (), optional: Sequence[str] = ()
) -> tuple[Table, Columns, list[str]]:
    """Return the table of returns, its columns by account and time, and the accounts.

    ``ms`` is the start of a period, ``user`` the number of the account; ``step`` and ``usual`` are
    the distances of all rows and of those with a known return, in milliseconds: those of the other
    accounts for an account with one row, and a day if no distance is known.
    """
    table = Table(returns, "returns")
    table.require(("time", "return_", *needed))
    users, ms = table.text("user", blank=True).sorted(), table.known_ms()
    order = np.lexsort((ms, users.codes))
    refuse_repeated_times(table, users.codes[order], ms[order])
    numbers = ["return_", *(name for name in ("hours", *optional) if table.has(name))]
    columns = {name: table.number(name)[order] for name in numbers}
    ms, user = ms[order], users.codes[order]
    known, (step, usual) = ~np.isnan(columns["return_"]), np.zeros((2, len(ms)))
    for mine in split_groups(user, len(users.values)):
        step[mine] = np.diff(ms[mine]).min() if len(mine) > 1 else 0
        usual[mine] = usual_length(ms[mine[known[mine]]], weekdays=not table.has("hours"))
    for each in (step, usual):
        each[each == 0] = each[each > 0].min() if each.any() else DAY
    return table, columns | {"ms": ms, "user": user, "step": step, "usual": usual}, users.values


def usual_length(ms: Ints, *, weekdays: bool) -> float:
    """Return the usual distance of sorted times in milliseconds, without gaps; 0 for one time.

    With `weekdays`, days without weekends stand for 7 / 5 days each.
    """
    gaps = np.diff(ms)
    if not len(gaps):
        return 0.0
    usual = float(np.median(gaps))
    is_weekday = (ms // DAY + 3) % 7 < 5  # 1970-01-01 was a Thursday
    if weekdays and usual == DAY and ms[-1] - ms[0] >= 7 * DAY and is_weekday.all():
        return 7 / 5 * DAY
    return float(gaps[gaps <= 1.5 * usual].mean())


def known_returns(rows: Columns) -> tuple[Floats, Ints, Floats, Flags, float, float]:
    """Return the known returns of one account, and how many of its periods are in a year.

    - returns, and the begins and lengths of their periods in milliseconds
    - whether each period is whole; the first and the last one may not be
    - usual length of a period in milliseconds, and whole periods in a year
    """
    known = ~np.isnan(rows["return_"])
    returns, begins, usual = (rows[name][known] for name in ("return_", "ms", "usual"))
    lengths, is_whole, length = usual, np.ones(len(returns), dtype=bool), float(DAY)
    if "hours" in rows:
        hours = rows["hours"][known]
        lengths = np.where(hours > 0, hours * HOUR, usual)
        for edge in (slice(0, 1), slice(-1, None)):
            is_whole[edge] = (lengths >= 0.9 * usual)[edge]
    if len(usual):
        length = float(usual[0])
    whole = lengths[is_whole]
    periods = YEAR / float(whole.mean() if len(whole) else length)
    return returns, begins, lengths, is_whole, length, periods


def refuse_repeated_times(table: Table, users: Ints, ms: Ints) -> None:
    """Raise ValueError if an account has two rows at a time; rows are by account and time."""
    repeated = np.flatnonzero((np.diff(ms) == 0) & (np.diff(users) == 0))
    if len(repeated):
        raise ValueError(
            f"{table.what}: an account has two different rows at {utc_times(ms[repeated])[0]}. "
            "Keep one row for each time. Rows of several accounts need a column user"
        )


def figure_table(made: Sequence[tuple[Group, str, Figure]], keys: Sequence[str]) -> pd.DataFrame:
    """Return figures as a table: the keys of the group, its basis, and the figure.

    An interval without width is missing: it would claim to be certain.
    """
    rows = [(*group, basis, *figure) for group, basis, figure in made]
    names = [*keys, "basis", "figure", *Figure._fields[1:]]
    columns = dict(zip(names, zip(*rows, strict=True) if rows else [()] * len(names), strict=True))
    dtypes = {key: _KEY_DTYPES.get(key, "str") for key in keys} | _DTYPES
    table = pd.DataFrame({n: pd.Series(columns[n], dtype=dtype) for n, dtype in dtypes.items()})
    low, high = table["low"].to_numpy(), table["high"].to_numpy()
    with np.errstate(invalid="ignore"):
        has_width = high - low > 1e-6 * np.abs(high)
    return table.assign(low=np.where(has_width, low, NAN), high=np.where(has_width, high, NAN))
