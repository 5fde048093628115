"""Depth of order books: by distance, its imbalance, and its consistency with slippage.

The frames come from `tk.current_depth`: one batch, or many below each other from an archive or a
poll.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from toolkit.prepare import groups
from toolkit.prepare.door import Frame, Table, utc_times
from toolkit.prepare.money import join_names
from toolkit.prepare.provenance import finish
from toolkit.rules.depth import slippage_bounds
from toolkit.statistics import name_quantiles, rank_quantiles
from toolkit.times import SECOND

TIME = "timestamp_ms"
SIDES = {"ask": "ask_depth_usd", "bid": "bid_depth_usd"}
MARKET = ("dex", "coin")
_TAKERS = {
    # side of the taker: (column of the cost, column of the depth that it takes, sign)
    "buy": ("buy_slippage_bps", "ask_depth_usd", 1),
    "sell": ("sell_slippage_bps", "bid_depth_usd", -1),
}
_SAMPLE = ("amount_usd", "half_spread_bps", "buy_slippage_bps", "sell_slippage_bps")
_ROUNDING_BPS = 0.01  # bps: half spread and slippage have two decimals


def profile(
    depth: Frame, quantiles: Sequence[float] = (0.1, 0.5, 0.9), by: str | Iterable[str] = MARKET
) -> pd.DataFrame:
    """Compute the depth within each band around mid, over the batches.

    Parameters
    ----------
    depth : DataFrame
        `tk.current_depth`, one batch or many. Repeated rows count once.
    quantiles : sequence of float, default (0.1, 0.5, 0.9)
        Between 0 and 1, by rank: a quantile is always one of the values.
    by : str or list of str, default ("dex", "coin")
        Groups next to band and side: these, ``hour``, ``day``, ``week`` (UTC) or any other column.
        One coin may exist on several dexes.

    Returns
    -------
    DataFrame
        Sorted: the columns of `by`, then

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
    names = name_quantiles(quantiles)
    keys = groups.list_keys(by, ("bps", *SIDES.values()))
    table = Table(depth, "depth")
    # Coins of depth rows do not name their dex.
    table.require((*SIDES.values(), "bps", *(key for key in keys if key == "dex")))
    columns = groups.group_columns(table, keys, TIME).assign(bps=table.columns(["bps"])["bps"])
    codes, cells = groups.number_groups(columns)
    sides = []
    for side, name in SIDES.items():
        usd = table.number(name)
        missing = np.bincount(codes, np.isnan(usd), len(cells)).astype(np.int64)
        n = np.bincount(codes, minlength=len(cells)) - missing
        sums = np.bincount(codes, np.nan_to_num(usd), len(cells))
        mean = groups.ratio(sums, n)
        picks = dict(zip(names, rank_quantiles(usd, codes, n, names.values()), strict=True))
        sides.append(cells.assign(side=side, n=n, mean_usd=mean, **picks, missing=missing))
    rows = pd.concat(sides, ignore_index=True)
    rows.insert(len(keys), "side", rows.pop("side"))
    # The cells are sorted by group and band. The sides stand between the two.
    group_of_cell = groups.number_groups(cells[keys])[0]
    result = rows.iloc[np.argsort(np.tile(group_of_cell, len(SIDES)), kind="stable")]
    return finish(result, {"depth": table.frame}, helper="depth.profile", by=keys)


def imbalance(depth: Frame) -> pd.DataFrame:
    """Compute which side has more depth, for each batch, market and band.

    Parameters
    ----------
    depth : DataFrame
        `tk.current_depth`, one batch or many. Repeated rows count once.

    Returns
    -------
    DataFrame
        One row for each row of `depth`, sorted by time, market and band:

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
    table = Table(depth, "depth")
    place = [TIME, *MARKET, "bps"]
    table.require((*SIDES.values(), *place))
    ask, bid = (table.number(name) for name in SIDES.values())
    total = bid + ask
    share = groups.ratio(bid - ask, total)
    result = table.columns(place).assign(total_usd=total, imbalance=share)
    dex, coin = (table.text(name).sorted().codes for name in MARKET)
    order = np.lexsort((share, table.number("bps"), coin, dex, table.ms(TIME)))
    return finish(result.iloc[order], {"depth": table.frame}, helper="depth.imbalance")


def consistency(
    depth: Frame, samples: Frame, *, max_age: float = 1.0, slack: float = 0.0
) -> pd.DataFrame:
    """Check slippage samples against the bounds that the depth of the same time sets.

    If the book has the size within 10 bps, an order costs at most 10 bps. Of a larger order, the
    part beyond this depth costs at least 10 bps. A size that fits into the widest band cannot be
    missing because of a thin book.

    Parameters
    ----------
    depth : DataFrame
        Batches of `tk.current_depth`. Repeated rows count once.
    samples : DataFrame
        `tk.slippage_history`. Repeated rows count once.
    max_age : float, default 1
        Largest time between batch and sample, before or after, in seconds.
    slack : float, default 0
        Share by which the depth may have changed in between.

    Returns
    -------
    DataFrame
        One row for each sample and side, sorted by time, coin, size and side:

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
    if not max_age >= 0:
        raise ValueError(f"max_age must be 0 or more, not {max_age!r}")
    if not 0 <= slack < 1:
        raise ValueError(f"slack must be 0 or more and below 1, not {slack!r}")
    table, batches = Table(samples, "samples"), Table(depth, "depth")
    table.require(("timestamp", "coin", *_SAMPLE))
    batches.require((TIME, *MARKET, "bps", *SIDES.values()))
    coin, ms = table.text("coin"), table.ms("timestamp")
    # One key for each market and moment, and one book for each key.
    markets = join_names(*(batches.text(name) for name in MARKET))
    keys, book = np.unique((markets.codes << 43) + batches.ms(TIME), return_inverse=True)
    widths, band = np.unique(batches.number("bps"), return_inverse=True)
    wanted = (coin.among(markets) << 43) + ms
    parts = []
    for side, (cost, column, sign) in _TAKERS.items():
        books = np.full((len(keys), len(widths)), np.nan)
        books[book[::-1], band[::-1]] = batches.number(column)[::-1]  # the first of equal ones
        is_whole = ~np.isnan(books).any(axis=1)
        moments = keys[is_whole]
        usd, half, bps = (table.number(name) for name in ("amount_usd", "half_spread_bps", cost))
        after = np.searchsorted(moments, wanted)
        places = np.stack([after - 1, after])
        at = np.append(moments, np.iinfo(np.int64).max)[places]
        gaps = np.where(at >> 43 == wanted >> 43, (wanted - at) / SECOND, np.inf)
        nearest = np.abs(gaps).argmin(axis=0)  # of two equally near ones the earlier
        age, place = np.choose(nearest, gaps), np.choose(nearest, places)
        near = (np.abs(age) <= max_age) & np.isfinite(age)
        least, most = bounds = np.full((2, len(wanted)), np.nan)
        around = books[is_whole][place[near]]
        for end, share in enumerate((1 + slack, 1 - slack)):
            found = slippage_bounds(usd[near], share * around, widths, half[near], sign)
            bounds[end, near] = found[end]
        beyond = np.maximum(least - _ROUNDING_BPS - bps, bps - most - _ROUNDING_BPS)
        thin = np.where(np.isinf(most), 0.0, np.inf)
        outside = np.where(np.isnan(bps), thin, np.maximum(beyond, 0.0))
        known = near & ~np.isnan(half)
        rows = pd.DataFrame(
            {
                "timestamp": utc_times(ms),
                "coin": coin.texts(),
                "side": side,
                "amount_usd": usd,
                "half_spread_bps": half,
                "slippage_bps": bps,
                "least_bps": np.where(known, least, np.nan),
                "most_bps": np.where(known, most, np.nan),
                "age_seconds": np.where(near, age, np.nan),
                "consistent": pd.arrays.BooleanArray(outside == 0, ~known),
                "outside_bps": np.where(known, outside, np.nan),
            }
        )
        parts.append(rows)
    order = ["timestamp", "coin", "amount_usd", "side", "slippage_bps"]
    result = pd.concat(parts).sort_values(order, kind="stable")
    inputs = {"depth": batches.frame, "samples": table.frame}
    return finish(result, inputs, helper="depth.consistency")
