"""When a frame was asked for: what runs, or is not over yet, needs a present."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from toolkit.times import Time, to_ms


def present_ms(native: Any, at: Time | None, what: str, name: str = "at") -> int:
    """Give the present in milliseconds: `at`, or when the frame was fetched.

    Raises
    ------
    ValueError
        If neither is known.
    """
    if at is not None:
        return to_ms(at)
    facts = native.attrs.get("toolkit") if isinstance(native, pd.DataFrame) else None
    asked = facts.get("asked_at") if isinstance(facts, Mapping) else None
    if asked is None:
        raise ValueError(f"{what} does not say when it was fetched: name the time ({name}=)")
    return to_ms(asked)


def timestamps_from_ms(ms: Any) -> Any:
    """Give whole milliseconds as times in UTC; missing stays missing."""
    rounded = pd.Series(ms, dtype="float64").round().astype("Int64")
    plain = rounded.astype("int64") if not rounded.isna().any() else rounded.fillna(0)
    times = pd.Series(plain.astype("int64").to_numpy().view("M8[ms]"), index=rounded.index)
    made: pd.Series = times.where(~rounded.isna()).dt.tz_localize("UTC")
    return made


def ms_from_times(times: pd.Series, whole: int = 1) -> pd.Series:
    """Give times as milliseconds in floats; whole numbers count in units of `whole` of them."""
    if pd.api.types.is_numeric_dtype(times.dtype):
        return times.astype("float64") * whole
    utc = times if times.dt.tz is not None else times.dt.tz_localize("UTC")
    naive = utc.dt.tz_convert("UTC").dt.tz_localize(None)
    made: pd.Series = (naive - pd.Timestamp(0)) / pd.Timedelta(milliseconds=1)
    return made.astype("float64")
