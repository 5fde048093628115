"""Groups of rows: by their own columns, by dex, by hour, day or week in whole milliseconds."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit.arrays import Flags, Floats, Ints
from toolkit.prepare.door import ADDRESSES, NO_TIME, Names, Table, utc_times
from toolkit.prepare.money import dex_of
from toolkit.times import DAY, FIRST_MONDAY, HOUR, WEEK

Value = TypeVar("Value", bound=np.generic)

CALENDAR: Mapping[str, tuple[int, int]] = {
    # name: (length, offset of the epoch in its period), in milliseconds; weeks begin on Monday
    "hour": (HOUR, 0),
    "day": (DAY, 0),
    "week": (WEEK, WEEK - FIRST_MONDAY),
}
_TEXTS = ("coin", "dir", "side", *ADDRESSES)
DERIVED_GROUPS = ("dex", *CALENDAR)
"""Groups that are derived from other columns: from the coin and from the time."""


def list_keys(by: str | Iterable[str] | None, taken: Iterable[str] = ()) -> list[str]:
    """Return `by` as a list without repeats.

    Raise ValueError if `by` names a column of `taken`: these are aggregated. Also raise it for
    ``requested_builder``: a fill of several answers counts once, in only one of these groups. Raise
    TypeError if `by` is neither text nor a list of texts.
    """
    if by is not None and not isinstance(by, Iterable):
        raise TypeError(f"by must be a column, a list of columns or None, not {by!r}")
    keys = [] if by is None else [by] if isinstance(by, str) else list(dict.fromkeys(by))
    if "requested_builder" in keys:
        raise ValueError(
            "cannot group by 'requested_builder': a fill can be in the answers of several "
            "builders, and counts once. Call the helper for each builder, with "
            "fills[fills['requested_builder'] == builder]"
        )
    if wrong := [key for key in keys if key in set(taken)]:
        raise ValueError(
            f"cannot group by {wrong[0]!r}: it is an aggregated column. Use 'hour', 'day' or "
            "'week' for time"
        )
    return keys


def period_start(ms: Ints, name: str) -> Ints:
    """Return the start of the hour, day or week of each time; a missing time stays missing."""
    length, into = CALENDAR[name]
    return np.where(ms == NO_TIME, NO_TIME, ms - (ms + into) % length)


def group_columns(
    table: Table, keys: Iterable[str], time: str = "time", rows: Ints | None = None
) -> pd.DataFrame:
    """Return the columns by which rows are grouped, without index.

    The dex is the frame's own column if it has one, else it is derived from the coin. Raise
    `MissingColumns` if a key is neither a column of the frame nor a derived group.

    - ``rows``: the rows of the result; all by default
    """
    rows = np.arange(len(table)) if rows is None else rows
    return _take_rows(_read_keys(table, keys, time), rows)


def group_rows(
    table: Table, keys: Iterable[str], rows: Ints | None = None, time: str = "time"
) -> tuple[Ints, pd.DataFrame]:
    """Return the number of each row's group, from 0, and the sorted groups, one row each.

    A missing value is the last group. Without keys there is one group, also of no rows.

    - ``rows``: the rows to group; all by default
    """
    columns, places = _read_keys(table, keys, time), list[Ints]()
    rows = np.arange(len(table)) if rows is None else rows
    if not columns:
        return np.zeros(len(rows), dtype=np.int64), pd.DataFrame(index=range(1))
    for key, column in columns.items():
        if isinstance(column, Names):
            names = sorted(set(column.values), key=lambda name: (not name, name))
            each = column.facts({name: place for place, name in enumerate(names)}.__getitem__)[rows]
        elif isinstance(column, pd.Series):
            each, values = pd.factorize(column, sort=True)
            each = np.where(each < 0, len(values), each)[rows]
        else:
            (length, into), ms = CALENDAR[key], column[rows]
            each = (ms + into) // length
            each = np.where(ms != NO_TIME, each, each.max(initial=0) + 1)
            each = each - each.min(initial=each.max(initial=0))
        places.append(each)
    codes, first = _number_places(places)
    return codes, _take_rows(columns, rows[first])


def _read_keys(table: Table, keys: Iterable[str], time: str) -> dict[str, Names | Ints | pd.Series]:
    """Return the column of each key: texts, the milliseconds of a part of the calendar, or any."""
    keys = list(keys)
    hint = f"by= takes columns of the {table.what}, or {', '.join(DERIVED_GROUPS)}"
    table.require([key for key in keys if key not in DERIVED_GROUPS], hint)
    made: dict[str, Names | Ints | pd.Series] = {}
    for key in keys:
        if key in CALENDAR:
            made[key] = table.ms(time)
        elif key == "dex" and not table.has(key):
            made[key] = table.text("coin").renamed(dex_of)
        elif key in _TEXTS or isinstance(
            table.column(key).dtype, pd.CategoricalDtype | pd.StringDtype
        ):
            made[key] = table.text(key)
        else:
            made[key] = table.columns([key])[key]
    return made


def _take_rows(columns: Mapping[str, Names | Ints | pd.Series], rows: Ints) -> pd.DataFrame:
    """Return rows of the columns of keys, without index."""
    made: dict[str, object] = {}
    for key, column in columns.items():
        if isinstance(column, Names):
            made[key] = column.texts(rows)
        elif isinstance(column, pd.Series):
            made[key] = column.iloc[rows].reset_index(drop=True)
        else:
            made[key] = utc_times(period_start(column[rows], key))
    return pd.DataFrame(made, index=range(len(rows)), copy=False)


def number_groups(
    columns: pd.DataFrame, *, missing_last: bool = False
) -> tuple[Ints, pd.DataFrame]:
    """Return the group of each row of a frame, from 0, and the sorted groups, one row each.

    A missing value is a group of its own and comes first, or last if `missing_last`. Without
    columns, all rows are one group.

    >>> codes, groups = number_groups(pd.DataFrame({"coin": ["ETH", "BTC", "ETH"]}))
    >>> codes.tolist(), groups["coin"].tolist()
    ([1, 0, 1], ['BTC', 'ETH'])
    """
    all_places = [np.zeros(len(columns), dtype=np.int64)]
    for name in columns:
        places, values = pd.factorize(columns[name], sort=True)  # -1 is missing
        all_places.append(np.where(places < 0, len(values), places) if missing_last else places + 1)
    codes, first = _number_places(all_places)
    return codes, columns.iloc[first].reset_index(drop=True)


def _number_places(columns: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Return the group of each row, from 0 in the order of several columns, and its first row."""
    codes = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        codes = codes * (int(column.max(initial=0)) + 1) + column
        most = int(codes.max(initial=0))
        if most > 4 * len(codes) + 1_000:
            codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
        elif not (present := np.bincount(codes, minlength=most + 1) > 0).all():
            codes = (np.cumsum(present) - 1)[codes]
    first = np.zeros(int(codes.max(initial=-1)) + 1, dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return codes, first


def split_groups(codes: Ints, count: int) -> list[Ints]:
    """Return the rows of each group, in their order.

    - ``codes``: the group of each row, from 0
    - ``count``: the number of groups

    >>> [rows.tolist() for rows in split_groups(np.array([1, 0, 1]), 2)]
    [[1], [0, 2]]
    """
    order = np.argsort(codes, kind="stable")
    last = np.cumsum(np.bincount(codes, minlength=count))
    return np.split(order, last[:-1]) if count else []


def starts_group(*columns: Any) -> Flags:
    """Return whether each row differs from the row before in one of several arrays."""
    starts = np.zeros(len(columns[0]), dtype=bool)
    starts[:1] = True
    for column in columns:
        starts[1:] |= column[1:] != column[:-1]
    return starts


def row_before(values: npt.NDArray[Value], first: Any = 0) -> npt.NDArray[Value]:
    """Return the value of the row before each one, and `first` for the first row."""
    made = np.empty_like(values)
    made[:1], made[1:] = first, values[:-1]
    return made


def number_rows(*columns: Any) -> Ints:
    """Return the number of each row's group, in the order of several arrays.

    >>> number_rows(np.array([2, 1, 2]), np.array([5, 7, 5])).tolist()
    [1, 0, 1]
    """
    order = np.lexsort(columns[::-1])
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.cumsum(starts_group(*(column[order] for column in columns))) - 1
    return number


def sum_groups(codes: Ints, values: Floats | Ints | Flags, count: int) -> Floats:
    """Return the sum of the values of each of `count` groups; 0 without values.

    >>> sum_groups(np.array([1, 0, 1]), np.array([2.0, 5.0, 0.5]), 3).tolist()
    [5.0, 2.5, 0.0]
    """
    weights = None if values.dtype == np.bool_ and values.all() else values
    return np.bincount(codes, weights, count).astype(np.float64, copy=False)


def ratio(above: Any, below: Any) -> Floats:
    """Return the ratio of two arrays; NaN where the second one is not above 0."""
    unknown = np.full(np.shape(below), np.nan)
    return np.asarray(np.divide(above, below, out=unknown, where=below > 0))
