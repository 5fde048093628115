"""What rows are grouped by: columns of their own, their dex, their hour, day or week.

The calendar is cut in whole milliseconds, so that it is the same on every engine. DuckDB has no
epoch milliseconds in narwhals and cuts days in the session's time zone: its columns are SQL.
"""

from collections.abc import Iterable, Mapping

import narwhals as nw

from toolkit.analysis.common.columns import Frame
from toolkit.analysis.common.markets import dex_of
from toolkit.times import DAY, HOUR

CALENDAR: Mapping[str, tuple[int, int]] = {
    # name: (length, how far into one the epoch was), in milliseconds; weeks begin on Monday
    "hour": (HOUR, 0),
    "day": (DAY, 0),
    "week": (7 * DAY, 3 * DAY),
}
DERIVED_GROUPS = ("dex", *CALENDAR)
"""Groups that are made of other columns: of the coin and of the time."""


def list_keys(by: str | Iterable[str] | None, taken: Iterable[str] = ()) -> list[str]:
    """Give `by` as a list without repeats; names in `taken` are summed, not grouped by.

    Raises
    ------
    ValueError
        If `by` names one of them.
    """
    keys = [] if by is None else [by] if isinstance(by, str) else list(dict.fromkeys(by))
    if wrong := [key for key in keys if key in set(taken)]:
        raise ValueError(
            f"by={wrong[0]!r}: that is measured, not grouped by; for times take hour, day or week"
        )
    return keys


def own_columns(keys: Iterable[str]) -> list[str]:
    """Give the keys that a frame must have as columns of its own."""
    return [key for key in keys if key not in DERIVED_GROUPS]


def add_groups(frame: Frame, keys: Iterable[str], *, time: str = "time") -> Frame:
    """Add those of `DERIVED_GROUPS` that are among the keys."""
    keys = list(keys)
    if "dex" in keys:
        frame = frame.with_columns(dex=dex_of(nw.col("coin")))
    return add_calendar(frame, keys, time)


def add_calendar(frame: Frame, names: Iterable[str], time: str = "time") -> Frame:
    """Add the start (UTC) of each row's hour, day or Monday week, for those of `names`."""
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
    """Add each row's time in whole milliseconds, as `_ms`."""
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
    # Its remainder has the sign of the dividend: added and taken again, it is never negative.
    cut = ", ".join(
        f"make_timestamptz(({ms} - (({ms} + {into}) % {length} + {length}) % {length}) * 1000)"
        f' AS "{name}"'
        for name, (length, into) in wanted.items()
    )
    added: Frame = nw.from_native(nw.to_native(frame).project(f"*, {cut}"))
    return added
