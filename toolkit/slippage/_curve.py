"""Sampled slippage: quantiles by size, by hour of the week, and buying against selling."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from toolkit.prepare import groups
from toolkit.prepare.door import Frame, Table
from toolkit.prepare.provenance import finish
from toolkit.slippage._fit import NUMBERS, SIDES
from toolkit.statistics import DRAWS, Sampling, check_count, name_quantiles, rank_quantiles
from toolkit.times import DAY, FIRST_MONDAY, HOUR, WEEK

_PAIRS = ("n", "buy_missing", "sell_missing", "days")
_MEANS = ("buy_bps", "sell_bps", "difference_bps", "low", "high", "buy_dearer")


def curve(
    samples: Frame,
    quantiles: Sequence[float] = (0.1, 0.5, 0.9),
    by: str | Iterable[str] = ("coin", "amount_usd"),
) -> pd.DataFrame:
    """Compute quantiles of slippage by size and side; a missing sample counts as infinite.

    A sample is missing if the book was too thin for the amount. Without these samples a thin market
    would look cheap. They count as infinite slippage, so a quantile that falls among them is
    missing.

    Parameters
    ----------
    samples : DataFrame
        `tk.slippage_history` of one or many amounts and coins.
        Repeated rows count once.
    quantiles : sequence of float, default (0.1, 0.5, 0.9)
        Between 0 and 1. Quantile q of n samples is the k-th smallest, with k the smallest whole
        number that is at least q * n and at least 1. It is always a sampled value.
    by : str or list of str, default ("coin", "amount_usd")
        Groups next to the side: these, ``dex``, ``hour``, ``day``, ``week`` (UTC) or any other
        column. ``amount_usd`` is float64 in the result.

    Returns
    -------
    DataFrame
        One row for each group and side, sorted: the columns of `by`, then

        - ``side``: ``buy`` or ``sell``.
        - ``n``: number of samples.
        - ``missing``: number of samples for which the book was too thin.
        - ``missing_share``: ``missing / n``.
        - ``qN``: N % quantile of slippage against mid, in basis points, one column for each of
          `quantiles`; missing if the quantile falls among the missing samples.
        - ``half_spread_bps``: median half spread of the samples, in basis points.

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
    names = name_quantiles(quantiles)
    table = Table(samples, "samples")
    table.require(NUMBERS)
    keys = groups.list_keys(by)
    result = _group_quantiles(table, groups.group_columns(table, keys, "timestamp"), names)
    return finish(result, {"samples": table.frame}, helper="slippage.curve", by=keys)


def heatmap(
    samples: Frame, quantile: float = 0.5, by: str | Iterable[str] = ("coin", "amount_usd")
) -> pd.DataFrame:
    """Compute a quantile of slippage for each hour of the week.

    A missing sample counts as infinite, as in `curve`.

    Parameters
    ----------
    samples : DataFrame
        `tk.slippage_history`. Repeated rows count once.
    quantile : float, default 0.5
        Between 0 and 1, as for `curve`.
    by : str or list of str, default ("coin", "amount_usd")
        Groups next to hour and side.

    Returns
    -------
    DataFrame
        Sorted: the columns of `by`, then

        - ``hour_of_week``: hour of the week in UTC, int64: 0 is Monday 00:00 to 01:00, 167 is the
          last hour of Sunday. Hours without samples have no row.
        - ``weekday``: day of the week; 0 is Monday.
        - ``hour_of_day``: hour of the day, int64, UTC.
        - ``side``: ``buy`` or ``sell``.
        - ``n``: number of samples.
        - ``missing``: number of samples for which the book was too thin.
        - ``missing_share``: ``missing / n``.
        - ``half_spread_bps``: median half spread of the samples, in basis points.
        - ``bps``: the quantile of slippage against mid, in basis points; missing if it falls among
          the missing samples.

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
    table = Table(samples, "samples")
    if not 0 <= quantile <= 1:
        raise ValueError(f"the quantile must be between 0 and 1: {quantile}")
    table.require(NUMBERS)
    keys = groups.list_keys(by)
    hour = (table.ms("timestamp") + WEEK - FIRST_MONDAY) % WEEK // HOUR
    columns = groups.group_columns(table, keys, "timestamp").assign(hour_of_week=hour)
    result = _group_quantiles(table, columns, {"bps": quantile})
    result.insert(len(keys) + 1, "weekday", result["hour_of_week"] // 24)
    result.insert(len(keys) + 2, "hour_of_day", result["hour_of_week"] % 24)
    result["bps"] = result.pop("bps")
    return finish(
        result, {"samples": table.frame}, helper="slippage.heatmap", by=keys, quantile=quantile
    )


def _group_quantiles(
    table: Table, columns: pd.DataFrame, quantiles: Mapping[str, float]
) -> pd.DataFrame:
    """Return the counts and quantiles of each group, a row for each side."""
    sizes = {"amount_usd": table.number("amount_usd")} if "amount_usd" in columns else {}
    codes, found = groups.number_groups(columns.assign(**sizes))
    n = np.bincount(codes, minlength=len(found))
    half = rank_quantiles(table.number("half_spread_bps"), codes, n, [0.5])[0]
    sides = []
    for side, name in SIDES.items():
        bps = table.number(name)
        missing = np.bincount(codes, np.isnan(bps), len(found)).astype(np.int64)
        picks = rank_quantiles(bps, codes, n, quantiles.values())
        figures = dict(zip(quantiles, picks, strict=True))
        counts = {"n": n, "missing": missing, "missing_share": missing / n}
        sides.append(found.assign(side=side, **counts, **figures, half_spread_bps=half))
    return pd.concat(sides).sort_index(kind="stable")


def asymmetry(
    samples: Frame,
    by: str | Iterable[str] = ("coin", "amount_usd"),
    *,
    level: float = 0.95,
    block_days: int = 1,
    draws: int = DRAWS,
    seed: int = 0,
) -> pd.DataFrame:
    """Compare the cost of buying with the cost of selling, in pairs of samples of the same book.

    Parameters
    ----------
    samples : DataFrame
        `tk.slippage_history`. Repeated rows count once.
    by : str or list of str, default ("coin", "amount_usd")
        Groups: these or ``dex``.
    level : float, default 0.95
        Level of the intervals.
    block_days, draws, seed : int
        How many days (UTC) are drawn together, as for `fit`; number of resamples; their seed.

    Returns
    -------
    DataFrame
        One row for each group, sorted: the columns of `by`, then

        - ``n``: number of pairs with both sides.
        - ``buy_missing``: number of samples for which the book was too thin to buy. If it differs
          from `sell_missing`, the book is asymmetric, and the pairs do not show that.
        - ``sell_missing``: number of samples for which the book was too thin to sell.
        - ``days``: number of days (UTC) with pairs.
        - ``buy_bps``: mean slippage of buying over the pairs, in basis points.
        - ``sell_bps``: mean slippage of selling over the pairs, in basis points.
        - ``difference_bps``: buying less selling, in basis points; positive if buying costs more.
        - ``low``: lower end of the interval of the difference, from resampled days; missing for a
          single day or block of days.
        - ``high``: upper end of the interval of the difference.
        - ``buy_dearer``: share of the pairs in which buying costs more; equal ones count half.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If `level` is not between 0 and 1, or `block_days` is below 1.

    Notes
    -----
    In simulated samples of 30 days, with gaps that scatter by day and by book, intervals of 95 %
    contained the true difference in 94 % of cases. If neighbouring days are similar, set
    `block_days`.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({
    ...     "timestamp": pd.to_datetime([0, 9e5, 18e5], unit="ms", utc=True), "coin": "XYZ",
    ...     "amount_usd": 1e4, "half_spread_bps": 1.0,
    ...     "buy_slippage_bps": [3.0, 4.0, None], "sell_slippage_bps": [2.0, 4.0, 5.0]})
    >>> asymmetry(rows)[["n", "buy_missing", "difference_bps", "buy_dearer"]]
       n  buy_missing  difference_bps  buy_dearer
    0  2            1             0.5        0.75
    """
    how = Sampling(level, draws, seed, check_count(block_days, "block_days"))
    table = Table(samples, "samples")
    keys = groups.list_keys(by)
    needed = ["timestamp", "coin", *NUMBERS, *keys]
    rows = table.columns(needed, amounts=NUMBERS).assign(_day=table.ms("timestamp") // DAY)
    rows = rows.sort_values(needed, kind="stable")
    rows = rows.drop_duplicates(["timestamp", "coin", "amount_usd"], ignore_index=True)
    codes, result = groups.number_groups(rows[keys])
    buy, sell = rows["buy_slippage_bps"].to_numpy(), rows["sell_slippage_bps"].to_numpy()
    gap, day, count = buy - sell, rows["_day"].to_numpy(), len(result)
    # The values have two decimals, so a difference below half of the last one is none.
    dearer = (gap > 0.005) + 0.5 * (np.abs(gap) <= 0.005)
    figures = []
    for own in groups.split_groups(codes, count):
        pairs = own[~np.isnan(gap[own])]
        means = [values[pairs].mean() if len(pairs) else np.nan for values in (buy, sell, dearer)]
        interval = how.ratio(gap[pairs], np.ones(len(pairs)), day[pairs])[:3]
        missing = [np.isnan(values[own]).sum() for values in (buy, sell)]
        figures.append(
            (len(pairs), *missing, len(set(day[pairs])), *means[:2], *interval, means[2])
        )
    types = dict.fromkeys(_PAIRS, "int64") | dict.fromkeys(_MEANS, "float64")
    made = pd.DataFrame(figures, columns=list(types)).astype(types)
    texts = {name: "str" for name in ("coin", "dex") if name in keys}
    result = result.astype(texts).join(made)
    return finish(
        result, {"samples": table.frame}, helper="slippage.asymmetry", by=keys, level=level
    )
