"""Fills beside the price before them and prices after them."""

from collections.abc import Iterable
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit.analysis.common import columns, directions, grouping, markets, timestamps
from toolkit.analysis.common.repeated_rows import count_once
from toolkit.analysis.execution.marks import Marks
from toolkit.times import DAY

Floats = npt.NDArray[np.float64]

NEEDED = ("coin", "px", "sz", "side", "time")
LIQUIDITY = "liquidity"
_TEXT = (LIQUIDITY, "side", "coin", "dex", "user", "dir")


def read(fills: Any, keys: Iterable[str]) -> pd.DataFrame:
    """Return the trades among the fills with the columns to group by, `_ms`, `_sign`, `_usd`.

    Conversions, settlements, dust and vaults that net are no trades (docs/live_service.md,
    section 7).
    """
    fills = count_once(fills, "fills")
    made = {LIQUIDITY: "crossed", "dex": "coin", **dict.fromkeys(grouping.CALENDAR, "time")}
    needed = [*NEEDED, *(made.get(key, key) for key in keys)]
    rows = columns.pandas_columns(fills, "fills", needed, ("dir",), ("px", "sz"))
    frame = nw.from_native(rows, eager_only=True)
    directions.warn_missing_directions(frame, "fills")
    rows = (
        frame.filter(directions.is_market_trade(frame.columns)).to_native().reset_index(drop=True)
    )
    rows["_ms"] = timestamps.ms_from_times(rows["time"])
    rows["coin"] = rows["coin"].astype("str")
    rows["_sign"] = np.where(rows["side"] == "B", 1.0, -1.0)
    rows["_usd"] = rows["px"] * rows["sz"]
    for key in keys:
        if key == LIQUIDITY:
            taker = rows["crossed"].astype("boolean")
            words = taker.map({True: "taker", False: "maker"})
            rows[key] = words.astype("str")
        elif key == "dex":
            frame = nw.from_native(rows, eager_only=True)
            rows[key] = frame.select(dex=markets.dex_of(nw.col("coin"))).to_native()["dex"]
        elif key in grouping.CALENDAR:
            length, into = grouping.CALENDAR[key]
            rows[key] = timestamps.timestamps_from_ms(rows["_ms"] - (rows["_ms"] + into) % length)
    # Rows in a total order, so that sums do not depend on the one they came in.
    return rows.sort_values(["_ms", "coin", "px", "sz", "_sign"], kind="stable", ignore_index=True)


def before(rows: pd.DataFrame, marks: Marks, max_age_ms: int) -> tuple[Floats, Floats]:
    """Give the last price before each fill's own millisecond, and its age in seconds."""
    at = rows["_ms"].to_numpy()
    px, when = marks.at(rows["coin"], at - 1)
    return _fresh(px, at - when, max_age_ms)


def after(
    rows: pd.DataFrame, marks: Marks, horizon_ms: int, max_age_ms: int
) -> tuple[Floats, Floats]:
    """Give the last price up to a time after each fill, and its age then, in seconds.

    A price from before the fill, or of its millisecond, tells nothing of what came after it.
    """
    at = rows["_ms"].to_numpy()
    px, when = marks.at(rows["coin"], at + horizon_ms)
    return _fresh(np.where(when > at, px, np.nan), at + horizon_ms - when, max_age_ms)


def _fresh(px: Floats, age_ms: Floats, max_age_ms: int) -> tuple[Floats, Floats]:
    fresh = (age_ms <= max_age_ms) & ~np.isnan(px)
    return np.where(fresh, px, np.nan), np.where(fresh, age_ms / 1000, np.nan)


def groups(rows: pd.DataFrame, keys: list[str]) -> list[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Split the rows into groups, sorted; without keys all are one."""
    if not keys:
        return [((), rows)] if len(rows) else []
    split = rows.groupby(keys, sort=True, dropna=False)
    return [(key, group) for key, group in split]


def key_types(rows: pd.DataFrame, keys: list[str]) -> dict[str, Any]:
    """Give the dtypes of the columns to group by."""
    return {key: "str" if key in _TEXT else rows[key].dtype for key in keys}


def clusters(rows: pd.DataFrame, cluster: str) -> npt.NDArray[np.int64]:
    """Give each fill the number of its cluster."""
    names = rows["_ms"] // DAY if cluster == "day" else rows[cluster]
    return np.asarray(pd.factorize(names, sort=True)[0], dtype=np.int64)
