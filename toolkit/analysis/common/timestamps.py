"""Times of rows in milliseconds and back, and the time at which a frame was fetched."""

from typing import Any

import pandas as pd

from toolkit.analysis.common.provenance import frame_provenance
from toolkit.times import Time, to_ms


def present_ms(native: Any, at: Time | None, what: str, name: str = "at") -> int:
    """Return the present in milliseconds: `at`, or the time at which the frame was fetched.

    Raise ValueError if neither is known.
    """
    if at is not None:
        return to_ms(at)
    fetched_at = frame_provenance(native).get("asked_at")
    if fetched_at is None:
        raise ValueError(f"{what}: the time of the fetch is not known. Pass {name}=")
    return to_ms(fetched_at)


def aware_ms(at: Any) -> int:
    """Return a time that has a time zone in milliseconds."""
    stamp = pd.Timestamp(at)
    if stamp.tzinfo is None:
        raise ValueError(f"at: {at!r} has no time zone. Use milliseconds, or a time in UTC")
    return int(stamp.value // 10**6)


def timestamps_from_ms(ms: Any) -> Any:
    """Return milliseconds as times in UTC; missing stays missing."""
    rounded = pd.Series(ms, dtype="float64").round().astype("Int64")
    plain = rounded.astype("int64") if not rounded.isna().any() else rounded.fillna(0)
    times = pd.Series(plain.astype("int64").to_numpy().view("M8[ms]"), index=rounded.index)
    made: pd.Series = times.where(~rounded.isna()).dt.tz_localize("UTC")
    return made


def ms_from_times(times: pd.Series, whole: int = 1) -> pd.Series:
    """Return times as milliseconds (float64); integers are in units of `whole` milliseconds."""
    if pd.api.types.is_numeric_dtype(times.dtype):
        return times.astype("float64") * whole
    utc = times if times.dt.tz is not None else times.dt.tz_localize("UTC")
    # Whole milliseconds: a division of times would leave fractions.
    whole_ms = utc.astype("datetime64[ms, UTC]").astype("int64").astype("float64")
    made: pd.Series = whole_ms.where(utc.notna())
    return made
