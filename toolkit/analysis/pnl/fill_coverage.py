"""Time range of fills: funding outside it is counted separately.

Funding of a week together with fills of a day would look like a very good or a very bad day.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import narwhals as nw
import pandas as pd

from toolkit.analysis.common import frame_access, grouping
from toolkit.analysis.common.frame_access import Frame
from toolkit.analysis.common.provenance import frame_provenance
from toolkit.analysis.common.row_owners import lower_address
from toolkit.display import count_text
from toolkit.errors import MissingColumns
from toolkit.times import HOUR, Time, to_ms

NEEDED = ("coin", "side", "sz", "start_position")
_UNIT = 1e6  # sizes of perps have at most six decimals


class CoveredPeriod(NamedTuple):
    """A time range in milliseconds, both ends included; None is unbounded.

    - ``start``, ``end``: the range
    - ``is_observed``: whether the range is only derived from the fills: from the first fill to the
      full hour after the last one. Then a payment outside the range counts, too, if the fills show
      its position.
    - ``earliest``, ``latest``: the bounds that the caller passes, or None. A payment outside the
      range must be between them to count.
    """

    start: int | None
    end: int | None
    is_observed: bool = False
    earliest: int | None = None
    latest: int | None = None


def covered_period(
    fills: Any, start_time: Time | None = None, end_time: Time | None = None
) -> CoveredPeriod | None:
    """Return the time range that fills cover.

    - ``fills``: fills with a column ``time``
    - ``start_time``, ``end_time``: the bounds that the caller knows; each replaces its side

    Returns: the bounds of the caller; otherwise the requested range, if the frame is complete and
    unchanged since the fetch; otherwise the time from the first fill to the full hour after the
    last one. None if there are neither fills nor bounds.
    """
    start, end = _optional_ms(start_time), _optional_ms(end_time)
    if start is not None and end is not None:
        return CoveredPeriod(start, end)
    known = _requested_period(fills) or _observed_period(fills)
    if known is None:
        return None if start is None and end is None else CoveredPeriod(start, end)
    return CoveredPeriod(
        known.start if start is None else start,
        known.end if end is None else end,
        known.is_observed,
        start,
        end,
    )


def mark_inside(funding: Any, fills: Any, period: CoveredPeriod | None) -> Any:
    """Add `_inside` to funding rows: whether they are inside the time of the fills."""
    frame: Frame = nw.from_native(frame_access.normalise_frame(funding))
    if period is None or period[:2] == (None, None):
        made = frame.with_columns(_inside=~nw.col("time").is_null())
        return _restore_provenance(made, funding)
    within = _is_between(period.start, period.end)
    column_names = nw.from_native(fills).columns
    if period.is_observed and all(name in column_names for name in NEEDED):
        frame = _add_shown(frame, fills)
        bounds = _is_between(period.earliest, period.latest)
        made = frame.with_columns(_inside=within | (nw.col("_shown") & bounds))
        return _restore_provenance(made.drop("_ms", "_shown"), funding)
    made = grouping.add_ms(frame).with_columns(_inside=within)
    return _restore_provenance(made.drop("_ms"), funding)


def rows_inside(marked: Any) -> Any:
    """Return the rows that `mark_inside` marked as inside."""
    frame: Frame = nw.from_native(marked)
    return _restore_provenance(frame.filter(nw.col("_inside")).drop("_inside"), marked)


def _restore_provenance(frame: Frame, native: Any) -> Any:
    made = nw.to_native(frame)
    if isinstance(made, pd.DataFrame) and isinstance(native, pd.DataFrame):
        made.attrs = native.attrs
    return made


def _is_between(start: int | None, end: int | None) -> nw.Expr:
    within = ~nw.col("_ms").is_null()
    if start is not None:
        within = within & (nw.col("_ms") >= start)
    return within if end is None else within & (nw.col("_ms") <= end)


def _add_shown(frame: Frame, fills: Any) -> Frame:
    """Add `_ms`, and `_shown`: whether the first or last fill of a coin shows the position."""
    names = frame.columns
    split = "user" in names and "user" in nw.from_native(fills).columns
    ends = _end_positions(fills, split=split)
    sized = "szi" in names
    size = _integer_size(nw.col("szi").cast(nw.Float64())) if sized else nw.lit(0)
    frame = grouping.add_ms(frame).with_columns(
        _size=size,
        _coin=nw.col("coin").cast(nw.String()),
        _user=lower_address("user") if split else nw.col("coin").cast(nw.String()),
    )
    keys = ["_user", "_coin"]
    joined = frame_access.join_frames(frame, ends, keys)
    before = nw.col("_ms") <= nw.col("_first")
    at = nw.when(before).then(nw.col("_start")).otherwise(nw.col("_end"))
    same = at != 0
    if sized:  # a row without a size requires only an open position
        same = (nw.col("_size") == at) | (nw.col("_size").is_null() & same)
    beyond = before | (nw.col("_ms") > nw.col("_last"))
    joined = joined.with_columns(_shown=(same & beyond).fill_null(False))
    return joined.drop(*keys, "_size", "_first", "_last", "_start", "_end")


def _end_positions(fills: Any, *, split: bool) -> Frame:
    """Return the position before the first and after the last fill of each coin.

    The order of fills in one millisecond is not known. The last position is the end from which no
    other fill starts; the first one is the start at which no other fill ends.
    """
    few = frame_access.keep_columns(fills, (*NEEDED, "time", "user"))
    frame = frame_access.open_as_floats(few, "fills", ("sz", "start_position"))
    coin = nw.col("coin").cast(nw.String())
    sign = nw.when(nw.col("side") == "B").then(nw.lit(1.0)).otherwise(nw.lit(-1.0))
    rows = grouping.add_ms(frame).select(
        "_ms",
        _coin=coin,
        _user=lower_address("user") if split else coin,
        _start=_integer_size(nw.col("start_position")),
        _end=_integer_size(nw.col("start_position") + sign * nw.col("sz")),
    )
    keys = ["_user", "_coin"]
    rows = rows.with_columns(
        _first=nw.col("_ms").min().over(*keys), _last=nw.col("_ms").max().over(*keys)
    )
    # Starts and ends inside the millisecond cancel, which leaves the two ends of the chain.
    start = rows.filter(nw.col("_ms") == nw.col("_first"))
    end = rows.filter(nw.col("_ms") == nw.col("_last"))
    first = _chain_end(start, keys, "_start", "_end", "_first")
    last = _chain_end(end, keys, "_end", "_start", "_last")
    return frame_access.join_frames(first, last, keys, keep_left=False)


def _chain_end(rows: Frame, keys: list[str], wanted: str, other: str, time: str) -> Frame:
    """Return the position that is in `wanted` and not in `other`; if there is none, any."""
    plus, minus = nw.lit(1).cast(nw.Int64()), nw.lit(-1).cast(nw.Int64())
    edges = frame_access.stack_frames(
        [
            rows.select(*keys, time, _at=nw.col(wanted), _net=plus),
            rows.select(*keys, time, _at=nw.col(other), _net=minus),
        ]
    )
    nets = edges.group_by(*keys, time, "_at").agg(nw.col("_net").sum())
    best = nets.filter(nw.col("_net") == nw.col("_net").max().over(*keys))
    found = best.group_by(*keys, time).agg(nw.col("_at").max())
    return found.rename({"_at": wanted})


def _integer_size(size: nw.Expr) -> nw.Expr:
    known = ~(size.is_null() | size.is_nan())
    return (nw.when(known).then(size) * _UNIT).round(0).cast(nw.Int64())


def _requested_period(fills: Any) -> CoveredPeriod | None:
    """Return the requested time range, if the frame is complete and unchanged."""
    facts = frame_provenance(fills)
    if facts.get("complete") != "yes":
        return None
    parameters, asked_at = facts.get("parameters"), facts.get("asked_at")
    if not isinstance(parameters, Mapping) or not isinstance(asked_at, str):
        return None
    if facts.get("rows") != len(fills):  # the user removed rows, perhaps at the ends
        return None
    start, end = parameters.get("start"), parameters.get("end")
    now = (datetime.fromisoformat(asked_at) - _EPOCH) // timedelta(milliseconds=1)
    return CoveredPeriod(
        start if isinstance(start, int) else None, end if isinstance(end, int) else now
    )


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _observed_period(fills: Any) -> CoveredPeriod | None:
    """Return the time from the first fill to the full hour after the last fill."""
    frame_access.require_columns(nw.from_native(fills), ("time",), "fills")
    few = frame_access.keep_columns(fills, ("time",))
    frame: Frame = nw.from_native(frame_access.normalise_frame(few))
    gone = frame.select(gone=nw.col("time").is_null().cast(nw.Int64()).sum())
    missing = gone.lazy().collect("pyarrow").to_arrow().to_pylist()[0]["gone"]
    if missing:
        raise MissingColumns(
            f"fills: column time has {count_text(missing, 'missing value')}, so it is not known "
            "which funding belongs to the fills. Fill the times in, or remove these rows"
        )
    times = grouping.add_ms(frame.select("time"))
    ends = times.select(first=nw.col("_ms").min(), last=nw.col("_ms").max())
    row = ends.lazy().collect("pyarrow").to_arrow().to_pylist()[0]
    if row["first"] is None or row["first"] != row["first"]:
        return None
    # The payment at the full hour after the last fill is for the position after this fill. Its time
    # is some milliseconds after the full hour.
    last = int(row["last"]) // HOUR
    return CoveredPeriod(int(row["first"]), (last + 2) * HOUR - 1, is_observed=True)


def _optional_ms(time: Time | None) -> int | None:
    """Return milliseconds; integers are always milliseconds."""
    return time if time is None or isinstance(time, int) else to_ms(time)
