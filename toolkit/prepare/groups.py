"""Groups of rows: by their own columns, by dex, by hour, day or week in whole milliseconds."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from toolkit.arrays import Ints
from toolkit.prepare.door import NO_TIME, Table, utc_times
from toolkit.prepare.markets import dex_of
from toolkit.times import DAY, FIRST_MONDAY, HOUR, WEEK

CALENDAR: Mapping[str, tuple[int, int]] = {
    # name: (length, offset of the epoch in its period), in milliseconds; weeks begin on Monday
    "hour": (HOUR, 0),
    "day": (DAY, 0),
    "week": (WEEK, WEEK - FIRST_MONDAY),
}
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


def group_columns(table: Table, keys: Iterable[str], time: str = "time") -> pd.DataFrame:
    """Return the columns by which rows are grouped, without index.

    Raise `MissingColumns` if a key is neither a column of the frame nor a derived group.
    """
    keys = list(keys)
    derived = ", ".join(DERIVED_GROUPS)
    own = [key for key in keys if key not in DERIVED_GROUPS]
    table.require(own, f"by= takes columns of the {table.what}, or {derived}")
    made: dict[str, object] = {}
    for key in keys:
        if key in CALENDAR:
            made[key] = utc_times(period_start(table.ms(time), key))
        elif key == "dex":
            made[key] = table.text("coin").renamed(dex_of).texts()
        else:
            made[key] = table.columns([key])[key]
    return pd.DataFrame(made, index=range(len(table)))
