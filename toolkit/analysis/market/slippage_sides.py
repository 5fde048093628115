"""Whether buying costs more than selling, in the same books at the same moments."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from toolkit.analysis.common import columns, grouping, timestamps
from toolkit.analysis.common.bootstrap import DRAWS, bootstrap_interval, bootstrap_ratio
from toolkit.analysis.common.estimate import check_count, check_level
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.common.repeated_rows import count_once
from toolkit.analysis.market.slippage_fit import NUMBERS
from toolkit.times import DAY

_FIGURES = {
    "n": "int64", "buy_missing": "int64", "sell_missing": "int64", "days": "int64",
    "buy_bps": "float64", "sell_bps": "float64", "difference_bps": "float64", "low": "float64",
    "high": "float64", "buy_dearer": "float64",
}  # fmt: skip
_TEXT = ("coin", "dex")


def asymmetry(
    samples: Any,
    by: str | Iterable[str] = ("coin", "amount_usd"),
    *,
    level: float = 0.95,
    block_days: int = 1,
    draws: int = DRAWS,
    seed: int = 0,
) -> pd.DataFrame:
    """Compare buying with selling: pairs of samples of the same book.

    Parameters
    ----------
    samples : DataFrame
        As `tk.slippage_history` gives them (pandas, Polars, DuckDB); rows given twice count once.
    by : str or list of str, default ("coin", "amount_usd")
        Groups: these or ``dex``.
    level : float, default 0.95
        Of the intervals.
    block_days, draws, seed : int
        How many days (UTC) are drawn together, as in `fit`; resamples; their seed.

    Returns
    -------
    DataFrame
        pandas, one row a group, sorted: the columns of `by`, then

        - ``n``: pairs that have both sides; ``buy_missing``, ``sell_missing``: samples whose
          book was too thin on that side: where these differ, that is the asymmetry, and the
          pairs do not show it; ``days``;
        - ``buy_bps``, ``sell_bps``: means over the pairs; ``difference_bps``, buy - sell:
          positive where buying is dearer, with ``low`` and ``high`` by drawing whole days
          (missing for a single day or block of days);
        - ``buy_dearer``: share of the pairs in which buying costs more, equal ones counted half.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If `level` is not between 0 and 1, or `block_days` below 1.

    Examples
    --------
    >>> rows = pd.DataFrame({
    ...     "timestamp": pd.to_datetime([0, 9e5, 18e5], unit="ms", utc=True), "coin": "XYZ",
    ...     "amount_usd": 1e4, "half_spread_bps": 1.0,
    ...     "buy_slippage_bps": [3.0, 4.0, None], "sell_slippage_bps": [2.0, 4.0, 5.0]})
    >>> asymmetry(rows)[["n", "buy_missing", "difference_bps", "buy_dearer"]]
       n  buy_missing  difference_bps  buy_dearer
    0  2            1             0.5        0.75
    """
    samples = count_once(samples, "samples")
    check_level(level)
    check_count(block_days, "block_days")
    keys = grouping.list_keys(by)
    needed = ("timestamp", "coin", *NUMBERS, *keys)
    rows = columns.pandas_columns(samples, "samples", needed, amounts=NUMBERS)
    order = [*needed]
    rows = rows.sort_values(order, kind="stable").drop_duplicates(
        ["timestamp", "coin", "amount_usd"], ignore_index=True
    )
    rows["_day"] = (timestamps.ms_from_times(rows["timestamp"]) // DAY).astype("int64")
    made = []
    for key, group in rows.groupby(keys, sort=True):
        made.append((*key, *_compared(group, level, block_days, draws, seed)))
    types = {k: "str" if k in _TEXT else rows[k].dtype for k in keys}
    result = pd.DataFrame(made, columns=[*keys, *_FIGURES]).astype({**types, **_FIGURES})
    facts = {"helper": "slippage.asymmetry", "by": keys, "level": level}
    result.attrs["toolkit"] = {**result_provenance({"samples": samples}), **facts}
    return result


def _compared(
    group: pd.DataFrame, level: float, block: int, draws: int, seed: int
) -> tuple[Any, ...]:
    buy, sell = group["buy_slippage_bps"], group["sell_slippage_bps"]
    both = (buy.notna() & sell.notna()).to_numpy()
    gap = (buy - sell).to_numpy()[both]
    day = group["_day"].to_numpy()[both]
    ones = np.ones(len(gap))
    mean, values, blocks = bootstrap_ratio(gap, ones, day, draws=draws, seed=seed, block=block)
    low, high = bootstrap_interval(values, blocks, level)
    # Two decimals: what is less than half of the last one apart is equal.
    dearer = float(((gap > 0.005) + 0.5 * (np.abs(gap) <= 0.005)).mean()) if len(gap) else np.nan
    missing = int(buy.isna().sum()), int(sell.isna().sum())
    means = buy.to_numpy()[both], sell.to_numpy()[both]
    buy_mean, sell_mean = (float(one.mean()) if len(one) else np.nan for one in means)
    return len(gap), *missing, len(np.unique(day)), buy_mean, sell_mean, mean, low, high, dearer
