"""Groups of rows: by their own columns, by dex, by hour, day or week.

Calendar groups are computed in integer milliseconds, so that they are equal on every engine. DuckDB
and Spark need SQL here: narwhals has no epoch milliseconds for them, and they truncate days in the
time zone of the session.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import narwhals as nw

from toolkit.analysis.common.frame_access import Frame, column_dtypes
from toolkit.analysis.common.markets import dex_of
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


def own_columns(keys: Iterable[str]) -> list[str]:
    """Return the keys that must be columns of the frame."""
    return [key for key in keys if key not in DERIVED_GROUPS]


def add_groups(frame: Frame, keys: Iterable[str], *, time: str = "time") -> Frame:
    """Add the derived groups that are among the keys."""
    keys = list(keys)
    if "dex" in keys:
        frame = frame.with_columns(dex=dex_of(nw.col("coin")))
    return add_calendar(frame, keys, time)


def add_calendar(frame: Frame, names: Iterable[str], time: str = "time") -> Frame:
    """Add the start (UTC) of each row's hour, day or week, for the periods among `names`."""
    wanted = {name: CALENDAR[name] for name in names if name in CALENDAR}
    if not wanted:
        return frame
    is_integer = column_dtypes(frame)[time].is_integer()
    if frame.implementation.is_duckdb():
        ms = f'"{time}"' if is_integer else f'epoch_ms("{time}")'
        return _add_sql(frame, _sql_periods(ms, wanted, "make_timestamptz(({}) * 1000)"))
    if frame.implementation.is_spark_like():
        ms = f"`{time}`" if is_integer else f"unix_millis(`{time}`)"
        return _add_sql(frame, _sql_periods(ms, wanted, "timestamp_millis({})"))
    moment = nw.col(time) if is_integer else nw.col(time).dt.timestamp("ms")
    return frame.with_columns(
        **{
            name: (moment - (moment + into) % length).cast(nw.Datetime("ms", "UTC"))
            for name, (length, into) in wanted.items()
        }
    )


def add_ms(frame: Frame, time: str = "time", name: str = "_ms") -> Frame:
    """Add each row's time in integer milliseconds, by default as `_ms`."""
    if column_dtypes(frame)[time].is_integer():
        return frame.with_columns(nw.col(time).cast(nw.Int64()).alias(name))
    if frame.implementation.is_duckdb():
        return _add_sql(frame, {name: f'epoch_ms("{time}")'})
    if frame.implementation.is_spark_like():
        return _add_sql(frame, {name: f"unix_millis(`{time}`)"})
    return frame.with_columns(nw.col(time).dt.timestamp("ms").cast(nw.Int64()).alias(name))


def _sql_periods(ms: str, wanted: Mapping[str, tuple[int, int]], as_time: str) -> Mapping[str, str]:
    """Return the SQL of the start of each period; `as_time` converts milliseconds to a time."""
    # The remainder in SQL has the sign of the dividend; this form is never negative.
    return {
        name: as_time.format(f"{ms} - (({ms} + {into}) % {length} + {length}) % {length}")
        for name, (length, into) in wanted.items()
    }


def _add_sql(frame: Frame, expressions: Mapping[str, str]) -> Frame:
    """Add columns to a frame of DuckDB or Spark: name -> expression in SQL."""
    native: Any = nw.to_native(frame)
    if frame.implementation.is_duckdb():
        made = ", ".join(f'{sql} AS "{name}"' for name, sql in expressions.items())
        native = native.project(f"*, {made}")
    else:
        native = native.selectExpr("*", *(f"{sql} AS `{n}`" for n, sql in expressions.items()))
    added: Frame = nw.from_native(native)
    return added
