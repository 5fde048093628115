"""Depth of order books: by distance, its imbalance, and its consistency with slippage.

The frames come from `tk.current_depth`: one batch, or many below each other from an archive or a
poll.
"""

import math
from collections.abc import Iterable, Sequence

import narwhals as nw
import numpy as np
import pandas as pd
from narwhals.typing import IntoFrame, IntoFrameT

from toolkit.analysis.common import frame_access, grouping, rank_quantiles, timestamps
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.common.repeated_rows import drop_repeated_rows
from toolkit.arrays import Floats, Ints
from toolkit.contract.dexes import join_coin
from toolkit.rules.depth import slippage_bounds

TIME = "timestamp_ms"
SIDES = {"bid": "bid_depth_usd", "ask": "ask_depth_usd"}
MARKET = ("dex", "coin")
_TAKERS = {
    # side of the taker: (column of the cost, column of the depth that it takes, sign)
    "buy": ("buy_slippage_bps", "ask_depth_usd", 1),
    "sell": ("sell_slippage_bps", "bid_depth_usd", -1),
}
_DEPTH = ("timestamp_ms", "dex", "coin", "bps", "bid_depth_usd", "ask_depth_usd")
_SAMPLE = ("amount_usd", "half_spread_bps", "buy_slippage_bps", "sell_slippage_bps")
_ROUNDING_BPS = 0.01  # bps: half spread and slippage have two decimals
_CONSISTENCY = {
    "coin": "str", "side": "str", "amount_usd": "float64", "half_spread_bps": "float64",
    "slippage_bps": "float64", "least_bps": "float64", "most_bps": "float64",
    "age_seconds": "float64", "consistent": "boolean", "outside_bps": "float64",
}  # fmt: skip


def profile(
    depth: IntoFrameT,
    quantiles: Sequence[float] = (0.1, 0.5, 0.9),
    by: str | Iterable[str] = MARKET,
) -> IntoFrameT:
    """Compute the depth within each band around mid, over the batches.

    Parameters
    ----------
    depth : DataFrame
        `tk.current_depth`, one batch or many (pandas, Polars, DuckDB, PySpark).
        Repeated rows count once.
    quantiles : sequence of float, default (0.1, 0.5, 0.9)
        Between 0 and 1, by rank: a quantile is always one of the values.
    by : str or list of str, default ("dex", "coin")
        Groups next to band and side: these, ``hour``, ``day``, ``week`` (UTC) or any other column.
        One coin may exist on several dexes.

    Returns
    -------
    DataFrame
        The engine of `depth`, sorted: the columns of `by`, then

        - ``side``: ``ask`` (what a buyer meets) or ``bid``.
        - ``bps``: width of the band, in basis points.
        - ``n``: number of batches with a value. A depth of 0 is a value.
        - ``mean_usd``: mean cumulative depth within the band, in USD.
        - ``qN``: N % quantile of the cumulative depth within the band, in USD, one column for each
          of `quantiles`.
        - ``missing``: number of rows without a value.

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
    depth = drop_repeated_rows(depth, "depth")
    names = rank_quantiles.name_quantiles(list(quantiles))
    keys = grouping.list_keys(by, ("bps", *SIDES.values()))
    frame = frame_access.open_as_floats(depth, "depth", tuple(SIDES.values()))
    frame_access.require_columns(
        frame, ["bps", *(k for k in keys if k not in grouping.CALENDAR)], "depth"
    )
    if any(key in grouping.CALENDAR for key in keys):
        frame_access.require_columns(frame, [TIME], "depth")
        frame = grouping.add_calendar(frame, keys, time=TIME)
    groups = [*keys, "side", "bps"]
    rows = frame_access.stack_frames([_depth_of_side(frame, keys, side) for side in SIDES])
    result = _depth_quantiles(rows, groups, names).sort(*groups)
    return frame_access.result_from_frame(result, {"depth": depth}, helper="depth.profile", by=keys)


def _depth_of_side(frame: frame_access.Frame, keys: list[str], side: str) -> frame_access.Frame:
    usd = nw.col(SIDES[side])
    is_missing = usd.is_null() | usd.is_nan()
    return frame.select(
        *keys,
        "bps",
        side=nw.lit(side),
        usd=nw.when(is_missing).then(nw.lit(math.inf)).otherwise(usd),
        known=nw.when(is_missing).then(nw.lit(0.0)).otherwise(nw.lit(1.0)),
        amount=nw.when(is_missing).then(nw.lit(0.0)).otherwise(usd),
    )


def _depth_quantiles(
    rows: frame_access.Frame, groups: list[str], names: dict[str, float]
) -> frame_access.Frame:
    rows = rows.with_columns(
        _n=nw.col("known").sum().over(*groups), _rank=rank_quantiles.rank_in_group("usd", groups)
    )
    picks = [
        rank_quantiles.value_at_rank("usd", "_rank", "_n", q).alias(name)
        for name, q in names.items()
    ]
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
        *(rank_quantiles.finite_value(name).alias(name) for name in names),
        (nw.col("_rows") - known).cast(nw.Int64()).alias("missing"),
    )


def imbalance(depth: IntoFrameT) -> IntoFrameT:
    """Compute which side has more depth, for each batch, market and band.

    Parameters
    ----------
    depth : DataFrame
        `tk.current_depth`, one batch or many (pandas, Polars, DuckDB, PySpark).
        Repeated rows count once.

    Returns
    -------
    DataFrame
        The engine of `depth`, one row for each of its rows, sorted by time, market and band:

        - ``timestamp_ms``: time of the batch, UTC.
        - ``dex``: dex of the market.
        - ``coin``: coin of the market.
        - ``bps``: width of the band, in basis points.
        - ``total_usd``: depth of both sides together, in USD.
        - ``imbalance``: ``(bid - ask) / (bid + ask)``: 1 if there are only bids, -1 if there are
          only asks; missing if both are 0 or one is not known.

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
    depth = drop_repeated_rows(depth, "depth")
    frame = frame_access.open_as_floats(depth, "depth", tuple(SIDES.values()))
    place = [TIME, *MARKET, "bps"]
    frame_access.require_columns(frame, place, "depth")
    bid, ask = (nw.col(name) for name in SIDES.values())
    is_missing = bid.is_null() | bid.is_nan() | ask.is_null() | ask.is_nan()
    frame = frame.select(*place, total_usd=nw.when(~is_missing).then(bid + ask), _gap=bid - ask)
    total = nw.col("total_usd")
    result = frame.select(
        *place, "total_usd", imbalance=nw.when(total > 0).then(nw.col("_gap") / total)
    ).sort(*place, "imbalance")
    return frame_access.result_from_frame(result, {"depth": depth}, helper="depth.imbalance")


def consistency(
    depth: IntoFrame, samples: IntoFrame, *, max_age: float = 1.0, slack: float = 0.0
) -> pd.DataFrame:
    """Check slippage samples against the bounds that the depth of the same time sets.

    If the book has the size within 10 bps, an order costs at most 10 bps. Of a larger order, the
    part beyond this depth costs at least 10 bps. A size that fits into the widest band cannot be
    missing because of a thin book.

    Parameters
    ----------
    depth : DataFrame
        Batches of `tk.current_depth` (pandas, Polars, DuckDB, PySpark). Repeated rows count once.
    samples : DataFrame
        `tk.slippage_history`. Repeated rows count once.
    max_age : float, default 1
        Largest time between batch and sample, before or after, in seconds.
    slack : float, default 0
        Share by which the depth may have changed in between.

    Returns
    -------
    DataFrame
        pandas, one row for each sample and side, sorted by time, coin, size and side:

        - ``timestamp``: time of the sample, UTC.
        - ``coin``: coin of the sample.
        - ``side``: ``buy`` or ``sell``.
        - ``amount_usd``: size of the sample, in USD.
        - ``half_spread_bps``: half spread of the sample, in basis points.
        - ``slippage_bps``: slippage of the sample against mid, in basis points.
        - ``least_bps``: smallest slippage that the depth allows, in basis points.
        - ``most_bps``: largest slippage that the depth allows, in basis points; infinite if the
          size is larger than the depth of the widest band.
        - ``age_seconds``: age of the batch at the time of the sample, in seconds.
        - ``consistent``: whether the sample lies within the bounds, boolean; missing if no batch of
          the market is near enough in time.
        - ``outside_bps``: distance of the sample from the bounds beyond the rounding to two
          decimals, in basis points: 0 inside; infinite if the sample is missing but the depth could
          fill the size.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If `max_age` or `slack` is negative, or `slack` is not below 1.

    Notes
    -----
    `toolkit.rules.depth.slippage_bounds`; depth and slippage as the specification defines them.

    Examples
    --------
    >>> import pandas as pd
    >>> batch = pd.DataFrame({"dex": "hyperliquid", "coin": "XYZ", "bps": [10, 25],
    ...     "timestamp_ms": pd.to_datetime([0, 0], unit="ms", utc=True),
    ...     "bid_depth_usd": [1e3, 3e3], "ask_depth_usd": [1e3, 3e3]})
    >>> rows = pd.DataFrame({"timestamp": pd.to_datetime([0], unit="ms", utc=True),
    ...     "coin": "XYZ", "half_spread_bps": 2.0, "amount_usd": 2e3,
    ...     "buy_slippage_bps": 9.0, "sell_slippage_bps": 19.0})
    >>> names = ["side", "least_bps", "slippage_bps", "most_bps", "consistent", "outside_bps"]
    >>> consistency(batch, rows)[names].round(1)
       side  least_bps  slippage_bps  most_bps  consistent  outside_bps
    0   buy        6.0           9.0      17.5        True          0.0
    1  sell        6.0          19.0      17.5       False          1.5
    """
    samples = drop_repeated_rows(samples, "samples")
    depth = drop_repeated_rows(depth, "depth")
    if not max_age >= 0:
        raise ValueError(f"max_age must be 0 or more, not {max_age!r}")
    if not 0 <= slack < 1:
        raise ValueError(f"slack must be 0 or more and below 1, not {slack!r}")
    needed = ("timestamp", "coin", *_SAMPLE)
    rows = frame_access.pandas_columns(samples, "samples", needed, amounts=_SAMPLE)
    books = frame_access.pandas_columns(depth, "depth", _DEPTH, amounts=_DEPTH[-2:])
    books["_ms"] = timestamps.ms_from_times(books["timestamp_ms"])
    books = books.merge(_market_names(books), on=["dex", "coin"], how="left")
    rows["_market"] = rows["coin"].astype("str")
    rows["_ms"] = timestamps.ms_from_times(rows["timestamp"])
    parts = [_check_side(rows, _widen_bands(books, side), side, max_age, slack) for side in _TAKERS]
    result = pd.concat(parts, ignore_index=True).astype(_CONSISTENCY)
    order = ["timestamp", "coin", "amount_usd", "side", "slippage_bps"]
    result = result.sort_values(order, kind="stable", ignore_index=True)
    facts = result_provenance({"depth": depth, "samples": samples})
    result.attrs["toolkit"] = {**facts, "helper": "depth.consistency"}
    return result


def _market_names(books: pd.DataFrame) -> pd.DataFrame:
    """Return the market of each dex and coin, named as in samples."""
    pairs = books[["dex", "coin"]].drop_duplicates(ignore_index=True)
    names = [join_coin(*pair) for pair in zip(pairs["dex"], pairs["coin"], strict=True)]
    return pairs.assign(_market=pd.Series(names, dtype="str", index=pairs.index))


def _widen_bands(books: pd.DataFrame, side: str) -> pd.DataFrame:
    """Return one row for each market and moment, with one column for each band."""
    rows = books.drop_duplicates(["_market", "_ms", "bps"])
    books = rows.pivot(index=["_market", "_ms"], columns="bps", values=_TAKERS[side][1])
    return books.dropna().sort_index(axis=1)


def _check_side(
    rows: pd.DataFrame, books: pd.DataFrame, side: str, max_age: float, slack: float
) -> pd.DataFrame:
    """Return the samples of one side with the bounds from the depth."""
    column, _, sign = _TAKERS[side]
    place, age = _nearest_books(rows, books, max_age)
    there = place >= 0
    least, most = (np.full(len(rows), np.nan) for _ in range(2))
    usd, half = rows["amount_usd"].to_numpy(), rows["half_spread_bps"].to_numpy()
    widths = books.columns.to_numpy(dtype="float64")
    around = books.to_numpy(dtype="float64")[place[there]]
    ends = ((1 + slack, 0, least), (1 - slack, 1, most))
    for factor, which, out in ends:
        samples = usd[there], factor * around, widths, half[there]
        out[there] = slippage_bounds(*samples, sign)[which]
    bps = rows[column].to_numpy()
    known = there & ~np.isnan(half)
    outside = _distance_outside(bps, least, most)
    return pd.DataFrame(
        {
            "timestamp": rows["timestamp"],
            "coin": rows["coin"],
            "side": side,
            "amount_usd": usd,
            "half_spread_bps": half,
            "slippage_bps": bps,
            "least_bps": np.where(known, least, np.nan),
            "most_bps": np.where(known, most, np.nan),
            "age_seconds": age,
            "consistent": pd.array(outside == 0, dtype="boolean"),
            "outside_bps": np.where(known, outside, np.nan),
        }
    ).assign(consistent=lambda made: made["consistent"].mask(~known))


def _distance_outside(bps: Floats, least: Floats, most: Floats) -> Floats:
    beyond = np.maximum(least - _ROUNDING_BPS - bps, bps - most - _ROUNDING_BPS)
    thin = np.where(np.isinf(most), 0.0, np.inf)
    return np.where(np.isnan(bps), thin, np.maximum(beyond, 0.0))


def _nearest_books(rows: pd.DataFrame, books: pd.DataFrame, max_age: float) -> tuple[Ints, Floats]:
    """Return the row of the nearest book in time of the same market (or -1), and its age."""
    places = np.full(len(rows), -1, dtype=np.int64)
    ages = np.full(len(rows), np.nan)
    markets = books.index.get_level_values("_market").to_numpy()
    times = books.index.get_level_values("_ms").to_numpy(dtype="float64")
    starts = {m: np.flatnonzero(markets == m) for m in pd.unique(markets)}
    for market, group in rows.groupby("_market").indices.items():
        if market not in starts or not len(starts[market]):
            continue
        rows_of_market = starts[market]
        sample_ms, book_ms = rows["_ms"].to_numpy()[group], times[rows_of_market]
        after = np.clip(np.searchsorted(book_ms, sample_ms), 1, max(len(book_ms) - 1, 1))
        after = np.minimum(after, len(book_ms) - 1)
        before = np.maximum(after - 1, 0)
        nearer = np.where(sample_ms - book_ms[before] <= book_ms[after] - sample_ms, before, after)
        age = (sample_ms - book_ms[nearer]) / 1000
        near = np.abs(age) <= max_age
        places[group[near]] = rows_of_market[nearer[near]]
        ages[group[near]] = age[near]
    return places, ages
