"""Groups of rows: by their own columns, by dex, by hour, day or week.

Calendar groups are computed in integer milliseconds, so that they are equal on every engine. DuckDB
needs SQL here: narwhals has no epoch milliseconds for it, and DuckDB truncates days in the time
zone of the session.
"""

from collections.abc import Iterable, Mapping

import narwhals as nw

from toolkit.analysis.common.columns import Frame
from toolkit.analysis.common.markets import dex_of
from toolkit.times import DAY, HOUR

CALENDAR: Mapping[str, tuple[int, int]] = {
    # name: (length, offset of the epoch in its period), in milliseconds; weeks begin on Monday
    "hour": (HOUR, 0),
    "day": (DAY, 0),
    "week": (7 * DAY, 3 * DAY),
}
DERIVED_GROUPS = ("dex", *CALENDAR)
"""Groups that are derived from other columns: from the coin and from the time."""


def list_keys(by: str | Iterable[str] | None, taken: Iterable[str] = ()) -> list[str]:
    """Return `by` as a list without repeats.

    Raise ValueError if `by` names a column of `taken`: these are aggregated.
    """
    keys = [] if by is None else [by] if isinstance(by, str) else list(dict.fromkeys(by))
    if wrong := [key for key in keys if key in set(taken)]:
        raise ValueError(
            f"Cannot group by {wrong[0]!r}: it is an aggregated column. Use 'hour', 'day' or "
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
    if frame.implementation.is_duckdb():
        return _duckdb_calendar(frame, wanted, time)
    ms = nw.col(time)
    if not frame.collect_schema()[time].is_integer():
        ms = ms.dt.timestamp("ms")
    return frame.with_columns(
        **{
            name: (ms - (ms + into) % length).cast(nw.Datetime("ms", "UTC"))
            for name, (length, into) in wanted.items()
        }
    )


def add_ms(frame: Frame, time: str = "time") -> Frame:
    """Add each row's time in integer milliseconds, as `_ms`."""
    if frame.collect_schema()[time].is_integer():
        return frame.with_columns(_ms=nw.col(time).cast(nw.Int64()))
    if frame.implementation.is_duckdb():
        added: Frame = nw.from_native(
            nw.to_native(frame).project(f'*, epoch_ms("{time}") AS "_ms"')
        )
        return added
    return frame.with_columns(_ms=nw.col(time).dt.timestamp("ms").cast(nw.Int64()))


def _duckdb_calendar(frame: Frame, wanted: Mapping[str, tuple[int, int]], time: str) -> Frame:
    whole = frame.collect_schema()[time].is_integer()
    ms = f'"{time}"' if whole else f'epoch_ms("{time}")'
    # The remainder in DuckDB has the sign of the dividend; this form is never negative.
    cut = ", ".join(
        f"make_timestamptz(({ms} - (({ms} + {into}) % {length} + {length}) % {length}) * 1000)"
        f' AS "{name}"'
        for name, (length, into) in wanted.items()
    )
    added: Frame = nw.from_native(nw.to_native(frame).project(f"*, {cut}"))
    return added
