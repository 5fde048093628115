"""What rests in the books: depth by distance, its balance, how fast it comes back.

Frames as `tk.current_depth` gives them, of one batch or of many put under each other: an archive
of them, or what a poll collected.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import narwhals as nw

from toolkit.analysis.common import columns, grouping, ranks
from toolkit.analysis.common.repeated_rows import count_once
from toolkit.analysis.market.depth_bounds import consistency
from toolkit.analysis.market.depth_recovery import Resilience, resilience

__all__ = ["Resilience", "consistency", "imbalance", "profile", "resilience"]

TIME = "timestamp_ms"
SIDES = {"bid": "bid_depth_usd", "ask": "ask_depth_usd"}
MARKET = ("dex", "coin")


def profile(
    depth: Any,
    quantiles: Sequence[float] = (0.1, 0.5, 0.9),
    by: str | Iterable[str] = MARKET,
) -> Any:
    """Give depth by distance from mid: how much rests within each band, over the batches.

    Parameters
    ----------
    depth : DataFrame
        As `tk.current_depth` gives it, one batch or many (pandas, Polars eager or lazy, DuckDB
        relation). Rows given twice count once.
    quantiles : sequence of float, default (0.1, 0.5, 0.9)
        Between 0 and 1, by rank: always a value that was there.
    by : str or list of str, default ("dex", "coin")
        Groups, next to band and side: these, ``hour``, ``day``, ``week`` (UTC) or any other
        column. One coin may exist on several dexes.

    Returns
    -------
    DataFrame
        Of the engine of `depth`, sorted: the columns of `by`, then

        - ``side``, ``ask`` (what a buyer meets) or ``bid``; ``bps``: width of the band;
        - ``n`` int64: batches with a value;
        - ``mean_usd``, ``q10``, ``q50``, ``q90``, ... float64: cumulative depth within the band,
          USD;
        - ``missing`` int64: rows without one. A depth of 0 is a value.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If a quantile is not between 0 and 1.

    Examples
    --------
    >>> import pandas as pd
    >>> batch = pd.DataFrame({"dex": "hyperliquid", "coin": "XYZ", "bps": [10, 25],
    ...     "timestamp_ms": pd.to_datetime([0, 0], unit="ms", utc=True),
    ...     "bid_depth_usd": [1e3, 3e3], "ask_depth_usd": [2e3, 4e3]})
    >>> profile(batch, [0.5])[["side", "bps", "n", "mean_usd", "q50"]]
      side  bps  n  mean_usd     q50
    0  ask   10  1    2000.0  2000.0
    1  ask   25  1    4000.0  4000.0
    2  bid   10  1    1000.0  1000.0
    3  bid   25  1    3000.0  3000.0
    """
    depth = count_once(depth, "depth")
    names = ranks.name_quantiles(list(quantiles))
    keys = grouping.list_keys(by, ("bps", *SIDES.values()))
    frame = columns.open_as_floats(depth, "depth", tuple(SIDES.values()))
    columns.require_columns(
        frame, ["bps", *(k for k in keys if k not in grouping.CALENDAR)], "depth"
    )
    if any(key in grouping.CALENDAR for key in keys):
        columns.require_columns(frame, [TIME], "depth")
        frame = grouping.add_calendar(frame, keys, time=TIME)
    groups = [*keys, "side", "bps"]
    rows = columns.stack_frames([_side(frame, keys, side) for side in SIDES])
    result = _summary(rows, groups, names).sort(*groups)
    return columns.result_from_frame(result, {"depth": depth}, helper="depth.profile", by=keys)


def _side(frame: columns.Frame, keys: list[str], side: str) -> columns.Frame:
    usd = nw.col(SIDES[side])
    lacking = usd.is_null() | usd.is_nan()
    return frame.select(
        *keys,
        "bps",
        side=nw.lit(side),
        usd=nw.when(lacking).then(nw.lit(math.inf)).otherwise(usd),
        known=nw.when(lacking).then(nw.lit(0.0)).otherwise(nw.lit(1.0)),
        amount=nw.when(lacking).then(nw.lit(0.0)).otherwise(usd),
    )


def _summary(rows: columns.Frame, groups: list[str], names: dict[str, float]) -> columns.Frame:
    rows = rows.with_columns(
        _n=nw.col("known").sum().over(*groups), _rank=ranks.rank_in_group("usd", groups)
    )
    picks = [ranks.value_at_rank("usd", "_rank", "_n", q).alias(name) for name, q in names.items()]
    grouped = (
        rows.select(*groups, "known", "amount", *picks)
        .group_by(*groups)
        .agg(
            nw.col("known").sum().alias("_known"),
            nw.col("known").count().alias("_rows"),
            nw.col("amount").sum(),
            *(nw.col(name).max() for name in names),
        )
    )
    known = nw.col("_known")
    return grouped.select(
        *groups,
        known.cast(nw.Int64()).alias("n"),
        nw.when(known > 0).then(nw.col("amount") / known).alias("mean_usd"),
        *(ranks.finite_value(name).alias(name) for name in names),
        (nw.col("_rows") - known).cast(nw.Int64()).alias("missing"),
    )


def imbalance(depth: Any) -> Any:
    """Say for each batch, market and band which side holds more.

    Parameters
    ----------
    depth : DataFrame
        As `tk.current_depth` gives it, one batch or many (pandas, Polars eager or lazy, DuckDB
        relation). Rows given twice stand once.

    Returns
    -------
    DataFrame
        Of the engine of `depth`, one row for each of its rows, sorted by time, market and band:
        ``timestamp_ms``, ``dex``, ``coin``, ``bps``, then

        - ``total_usd`` float64: both sides together;
        - ``imbalance`` float64: ``(bid - ask) / (bid + ask)``, 1 where only bids rest, -1 where
          only asks do; missing where nothing does, or a side is not known.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.

    Examples
    --------
    >>> import pandas as pd
    >>> batch = pd.DataFrame({"dex": "hyperliquid", "coin": "XYZ", "bps": [10, 25],
    ...     "timestamp_ms": pd.to_datetime([0, 0], unit="ms", utc=True),
    ...     "bid_depth_usd": [1e3, 3e3], "ask_depth_usd": [3e3, 3e3]})
    >>> imbalance(batch)[["bps", "total_usd", "imbalance"]]
       bps  total_usd  imbalance
    0   10     4000.0       -0.5
    1   25     6000.0        0.0
    """
    depth = count_once(depth, "depth")
    frame = columns.open_as_floats(depth, "depth", tuple(SIDES.values()))
    place = [TIME, *MARKET, "bps"]
    columns.require_columns(frame, place, "depth")
    bid, ask = (nw.col(name) for name in SIDES.values())
    bare = bid.is_null() | bid.is_nan() | ask.is_null() | ask.is_nan()
    frame = frame.select(*place, total_usd=nw.when(~bare).then(bid + ask), _gap=bid - ask)
    total = nw.col("total_usd")
    result = frame.select(
        *place, "total_usd", imbalance=nw.when(total > 0).then(nw.col("_gap") / total)
    ).sort(*place, "imbalance")
    return columns.result_from_frame(result, {"depth": depth}, helper="depth.imbalance")
