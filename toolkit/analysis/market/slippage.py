"""What it costs to trade a size at once, from sampled slippage."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import narwhals as nw

from toolkit.analysis.common import columns, grouping, ranks
from toolkit.analysis.common.repeated_rows import count_once
from toolkit.analysis.market.slippage_cost import capacity, cost
from toolkit.analysis.market.slippage_fit import NUMBERS, SIDES, SlippageFit, fit
from toolkit.analysis.market.slippage_sides import asymmetry
from toolkit.times import HOUR

__all__ = ["SlippageFit", "asymmetry", "capacity", "cost", "curve", "fit", "heatmap"]

_WEEK_HOURS = 168
_MONDAY = 72  # the epoch's hour of its week: it was a Thursday


def curve(
    samples: Any,
    quantiles: Sequence[float] = (0.1, 0.5, 0.9),
    by: str | Iterable[str] = ("coin", "amount_usd"),
) -> Any:
    """Give quantiles of slippage by size and side; too thin a book counts as infinitely dear.

    A sample is null where the book was too thin for the amount. Dropping those would make a thin
    market look cheap, so they stand at the upper end: a quantile that falls among them is
    missing.

    Parameters
    ----------
    samples : DataFrame
        As `tk.slippage_history` gives them, of one or many amounts and coins (pandas, Polars
        eager or lazy, DuckDB relation).
    quantiles : sequence of float, default (0.1, 0.5, 0.9)
        Between 0 and 1. Quantile q of n samples is the k-th smallest, k the least whole number
        of at least q * n and of at least 1: always a value that was sampled.
    by : str or list of str, default ("coin", "amount_usd")
        Groups, next to the side: these, ``dex``, ``hour``, ``day``, ``week`` (UTC) or any other
        column. ``amount_usd`` is float64 in the result, whatever it was.

    Returns
    -------
    DataFrame
        One row for each group and side, sorted: the columns of `by`, then

        - ``side``: ``buy`` or ``sell``;
        - ``n``, ``missing`` int64: samples, and those that the book was too thin for;
        - ``missing_share`` float64, ``missing / n``;
        - ``q10``, ``q50``, ``q90``, ... float64: slippage against mid, in basis points, missing
          where the quantile falls among the missing samples;
        - ``half_spread_bps`` float64: median over the same samples, by the same rule.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If a quantile is not between 0 and 1.

    Examples
    --------
    >>> import pandas as pd
    >>> samples = pd.DataFrame({
    ...     "coin": "XYZ", "amount_usd": 1e6, "half_spread_bps": 1.0,
    ...     "buy_slippage_bps": [2.0, 3.0, None, 4.0], "sell_slippage_bps": [2.0, 3.0, 5.0, 4.0]})
    >>> curve(samples, (0.5, 0.9))[["side", "n", "missing", "q50", "q90"]]
       side  n  missing  q50  q90
    0   buy  4        1  3.0  NaN
    1  sell  4        0  3.0  5.0
    """
    samples = count_once(samples, "samples")
    names = ranks.name_quantiles(list(quantiles))
    keys = grouping.list_keys(by)
    frame = columns.open_as_floats(samples, "samples", NUMBERS)
    columns.require_columns(frame, [k for k in keys if k not in grouping.CALENDAR], "samples")
    frame = grouping.add_calendar(frame, keys, time="timestamp")
    groups = [*keys, "side"]
    rows = columns.stack_frames([_side(frame, keys, side) for side in SIDES])
    result = _summary(rows, groups, names).sort(*groups)
    return columns.result_from_frame(result, {"samples": samples}, helper="slippage.curve", by=keys)


def heatmap(
    samples: Any,
    quantile: float = 0.5,
    by: str | Iterable[str] = ("coin", "amount_usd"),
) -> Any:
    """Give a quantile of slippage for each hour of the week; too thin a book is infinitely dear.

    Parameters
    ----------
    samples : DataFrame
        As `tk.slippage_history` gives them (pandas, Polars eager or lazy, DuckDB relation).
        Rows given twice count once.
    quantile : float, default 0.5
        Between 0 and 1, by rank as in `curve`.
    by : str or list of str, default ("coin", "amount_usd")
        Groups, next to hour and side.

    Returns
    -------
    DataFrame
        Of the engine of `samples`, sorted: the columns of `by`, then

        - ``hour_of_week`` int64: 0 is Monday 00:00 to 01:00 UTC, 167 the last of Sunday; hours
          without samples have no row;
        - ``weekday`` (0 is Monday), ``hour_of_day`` int64; ``side``;
        - ``n``, ``missing``, ``missing_share``, ``half_spread_bps`` as in `curve`;
        - ``bps`` float64: the quantile, missing where it falls among the missing samples.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If the quantile is not between 0 and 1.

    Examples
    --------
    >>> import pandas as pd
    >>> samples = pd.DataFrame({
    ...     "timestamp": pd.to_datetime([0, 3_600_000], unit="ms", utc=True), "coin": "XYZ",
    ...     "amount_usd": 1e6, "half_spread_bps": 1.0,
    ...     "buy_slippage_bps": [2.0, 3.0], "sell_slippage_bps": [2.0, None]})
    >>> heatmap(samples)[["hour_of_week", "weekday", "hour_of_day", "side", "bps"]]
       hour_of_week  weekday  hour_of_day  side  bps
    0            72        3            0   buy  2.0
    1            72        3            0  sell  2.0
    2            73        3            1   buy  3.0
    3            73        3            1  sell  NaN
    """
    samples = count_once(samples, "samples")
    if not 0 <= quantile <= 1:
        raise ValueError(f"the quantile must lie between 0 and 1: {quantile}")
    keys = grouping.list_keys(by)
    frame = columns.open_as_floats(samples, "samples", NUMBERS)
    columns.require_columns(frame, ["timestamp", *keys], "samples")
    frame = grouping.add_ms(frame, "timestamp")
    # Never the engines' own weekdays: they count from different days.
    hour = (nw.col("_ms") // HOUR + _MONDAY) % _WEEK_HOURS
    frame = frame.with_columns(hour_of_week=hour.cast(nw.Int64()))
    groups = [*keys, "hour_of_week", "side"]
    rows = columns.stack_frames([_side(frame, groups[:-1], side) for side in SIDES])
    made = _summary(rows, groups, {"bps": quantile}).sort(*groups)
    place = nw.col("hour_of_week")
    result = made.select(
        *keys,
        "hour_of_week",
        (place // 24).cast(nw.Int64()).alias("weekday"),
        (place % 24).cast(nw.Int64()).alias("hour_of_day"),
        "side",
        "n",
        "missing",
        "missing_share",
        "half_spread_bps",
        "bps",
    )
    return columns.result_from_frame(
        result, {"samples": samples}, helper="slippage.heatmap", by=keys, quantile=quantile
    )


def _side(frame: columns.Frame, keys: list[str], side: str) -> columns.Frame:
    """Give one side's samples with the missing ones as +infinity, which sorts and counts."""
    bps = nw.col(SIDES[side])
    lacking = bps.is_null() | bps.is_nan()
    spread = nw.col("half_spread_bps")
    return frame.select(
        *keys,
        side=nw.lit(side),
        bps=nw.when(lacking).then(nw.lit(math.inf)).otherwise(bps),
        lacking=nw.when(lacking).then(nw.lit(1)).otherwise(nw.lit(0)),
        spread=nw.when(spread.is_null() | spread.is_nan()).then(nw.lit(math.inf)).otherwise(spread),
    )


def _summary(rows: columns.Frame, groups: list[str], quantiles: dict[str, float]) -> columns.Frame:
    """Pick quantiles by rank: engines differ in what a group quantile interpolates."""
    rows = rows.with_columns(
        _n=nw.col("lacking").count().over(*groups).cast(nw.Float64()),
        _rank=ranks.rank_in_group("bps", groups),
        _spread_rank=ranks.rank_in_group("spread", groups),
    )
    picks = [
        ranks.value_at_rank("bps", "_rank", "_n", q).alias(name) for name, q in quantiles.items()
    ]
    picks.append(ranks.value_at_rank("spread", "_spread_rank", "_n", 0.5).alias("_half"))
    rows = rows.select(*groups, "lacking", *picks)
    grouped = rows.group_by(*groups).agg(
        nw.col("lacking").count().alias("n"),
        nw.col("lacking").sum().alias("missing"),
        *(nw.col(name).max() for name in (*quantiles, "_half")),
    )
    return grouped.select(
        *groups,
        nw.col("n").cast(nw.Int64()),
        nw.col("missing").cast(nw.Int64()),
        (nw.col("missing") / nw.col("n")).alias("missing_share"),
        *(ranks.finite_value(name).alias(name) for name in quantiles),
        ranks.finite_value("_half").alias("half_spread_bps"),
    )
