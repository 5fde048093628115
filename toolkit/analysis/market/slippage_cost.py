"""What the sampled sizes say: the cost of a size, the size of a cost."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from toolkit.analysis.common.bootstrap import bootstrap_interval
from toolkit.analysis.market.slippage_fit import SlippageFit, fit
from toolkit.analysis.market.slippage_means import (
    Floats,
    Means,
    blocks_at,
    expected,
    largest,
    place,
)

_COST = {
    "coin": "str", "side": "str", "amount_usd": "float64", "cost_bps": "float64",
    "low": "float64", "high": "float64", "cost_usd": "float64", "range": "str",
    "too_thin": "float64", "n": "int64",
}  # fmt: skip
_CAPACITY = {
    "coin": "str", "side": "str", "bps": "float64", "capacity_usd": "float64",
    "low": "float64", "high": "float64", "range": "str", "smallest_usd": "float64",
    "largest_usd": "float64", "n": "int64",
}  # fmt: skip


def cost(
    samples: Any,
    usd: float | Sequence[float],
    *,
    coin: str | None = None,
    side: str | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Give the expected cost of a market order, and how far to trust it.

    Parameters
    ----------
    samples : DataFrame or SlippageFit
        As `tk.slippage_history` gives them (rows given twice count once), or what `fit` made of
        them: both give the same.
    usd : float or list of float
        Notional of the order.
    coin, side : str, optional
        Of this coin or side (``buy``, ``sell``) only.
    level : float, default 0.95
        Of the intervals.
    seed : int, default 0
        Of the resamples, where samples are given.

    Returns
    -------
    DataFrame
        pandas, one row for each coin, side and size:

        - ``amount_usd``; ``cost_bps`` against mid, with ``low`` and ``high``: of the mean cost,
          not of one order's, by drawing whole days (UTC) again; missing for a single day;
          ``cost_usd``, the same in USD: positive is paid;
        - ``range``: ``sampled``, the mean of the samples of this size; ``between`` two sampled
          sizes; ``below`` or ``above`` all of them, where the curve is carried on and nothing was
          seen. Where the cost is missing, why: ``one size`` alone was filled, and another is asked
          for; ``never filled``, no size; ``no law``, none could be fitted to carry the curve on;
        - ``too_thin``: share of the samples of the next sampled size (this one or larger) that
          the book could not fill; missing above the largest. If it is not 0, `cost_bps` is a
          lower bound: such orders count as the least they can have cost, or cannot be had;
        - ``n``: samples that the curve rests on.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If a size is not positive, or there is no such coin or side.

    Notes
    -----
    Of samples nearly all the time is that of `fit` (a million take seconds): fit once, ask often.
    No law of cost is assumed among the sampled sizes, since books can be flat and then rise: at a
    size it is the sample mean, between two a straight line in the logarithms of size and cost (a
    mean of 0 counts as 0.005 bps there, half the last decimal). Beyond them it goes on as
    ``half_spread + a * (Q / 100,000)**k`` of `fit`, scaled to meet the mean of the outermost size.
    The least that an order costs follows from the smaller sizes of the same book. A size that was
    never filled is not one of the sampled.

    Examples
    --------
    >>> usd = pd.Series([1e3, 1e4, 1e5, 1e6])
    >>> rows = pd.DataFrame({
    ...     "timestamp": pd.to_datetime([0] * 4, unit="ms", utc=True), "coin": "XYZ",
    ...     "amount_usd": usd, "half_spread_bps": 1.0,
    ...     "buy_slippage_bps": (1 + 10 * (usd / 1e5) ** 0.5).round(2),
    ...     "sell_slippage_bps": None}).astype({"sell_slippage_bps": "float64"})
    >>> cost(rows, [1e5, 4e5, 4e6], side="buy")[["amount_usd", "cost_bps", "range"]].round(0)
       amount_usd  cost_bps    range
    0    100000.0      11.0  sampled
    1    400000.0      21.0  between
    2   4000000.0      64.0    above
    """
    sizes = _positive(usd, "a size is a positive number of USD")
    fitted = _fitted(samples, level, seed)
    rows = []
    for group, means in _chosen(fitted, coin, side):
        for size in sizes:
            values = expected(means, size)
            low, high = _around(values, blocks_at(means, size), level, positive=True)
            where = place(means, size) if np.isfinite(values[0]) else _reason(means)
            thin = _too_thin(fitted.samples, group, size)
            paid = values[0] / 1e4 * size
            name = (group.coin, group.side, size)
            rows.append((*name, values[0], low, high, paid, where, thin, group.n))
    return _framed(rows, _COST, fitted, "slippage.cost")


def capacity(
    samples: Any,
    bps: float | Sequence[float],
    *,
    coin: str | None = None,
    side: str | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Give the largest size whose expected cost is within a bound.

    Parameters
    ----------
    samples : DataFrame or SlippageFit
        As for `cost`; rows given twice count once.
    bps : float or list of float
        What a market order may cost against mid.
    coin, side : str, optional
        Of this coin or side (``buy``, ``sell``) only.
    level : float, default 0.95
        Of the intervals.
    seed : int, default 0
        Of the resamples, where samples are given.

    Returns
    -------
    DataFrame
        pandas, one row for each coin, side and bound: ``bps``; ``capacity_usd`` with ``low`` and
        ``high``: 0 where the smallest order costs more, missing where that lies beyond the
        sampled sizes and no curve could be fitted or it does not rise; ``range`` (as for `cost`);
        ``smallest_usd``, ``largest_usd``: the sampled sizes that were filled; and ``n``. Where
        the capacity is missing, ``range`` says why, as for `cost`. Where
        ``range`` is ``above`` nothing of that size was seen: say "more than ``largest_usd``", as
        the reports do. Where books were too thin for the size the cost is a lower bound and the
        capacity an upper one: see ``too_thin`` of `cost`.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If a bound is not positive, or there is no such coin or side.

    Notes
    -----
    Of samples nearly all the time is that of `fit` (a million take seconds): fit once, ask often.

    Examples
    --------
    >>> usd = pd.Series([1e3, 1e4, 1e5, 1e6])
    >>> rows = pd.DataFrame({
    ...     "timestamp": pd.to_datetime([0] * 4, unit="ms", utc=True), "coin": "XYZ",
    ...     "amount_usd": usd, "half_spread_bps": 1.0,
    ...     "buy_slippage_bps": (1 + 10 * (usd / 1e5) ** 0.5).round(2),
    ...     "sell_slippage_bps": None}).astype({"sell_slippage_bps": "float64"})
    >>> capacity(rows, [0.5, 11.0, 21.0], side="buy")[["capacity_usd", "range"]].round(-4)
       capacity_usd    range
    0           0.0    below
    1      100000.0  sampled
    2      390000.0  between
    """
    bounds = _positive(bps, "a bound is a positive number of basis points")
    fitted = _fitted(samples, level, seed)
    rows = []
    for group, means in _chosen(fitted, coin, side):
        for bound in bounds:
            values = largest(means, bound)
            low, high = _around(values, blocks_at(means, float(values[0])), level)
            low = max(low, 0.0)
            where = place(means, float(values[0])) if np.isfinite(values[0]) else _reason(means)
            ends = (means.sizes[0], means.sizes[-1]) if len(means.sizes) else (np.nan, np.nan)
            name = (group.coin, group.side, bound)
            rows.append((*name, values[0], low, high, where, *ends, group.n))
    return _framed(rows, _CAPACITY, fitted, "slippage.capacity")


def _around(
    values: Floats, clusters: int, level: float, *, positive: bool = False
) -> tuple[float, float]:
    """Return the interval of draws, widened to hold the estimate, which is the first value.

    Where all draws are alike, rounding alone would put the interval beside the estimate.
    """
    low, high = bootstrap_interval(values[1:], clusters, level, positive=positive)
    estimate = float(values[0])
    return min(low, estimate), max(high, estimate)


def _positive(given: float | Sequence[float], rule: str) -> list[float]:
    """Give one number or several as a list, if all are above 0."""
    made: list[float] = np.atleast_1d(np.asarray(given, dtype=np.float64)).tolist()
    if not all(one > 0 for one in made):
        raise ValueError(f"{rule}: {given!r}")
    return made


def _fitted(samples: Any, level: float, seed: int) -> SlippageFit:
    return samples if isinstance(samples, SlippageFit) else fit(samples, level=level, seed=seed)


def _chosen(fitted: SlippageFit, coin: str | None, side: str | None) -> list[tuple[Any, Means]]:
    groups = fitted.groups
    for name, wanted in (("coin", coin), ("side", side)):
        if wanted is None:
            continue
        have = sorted(groups[name].unique())
        if wanted not in have:
            raise ValueError(f"no {name} {wanted!r} among the samples: {', '.join(have) or 'none'}")
        groups = groups[groups[name] == wanted]
    rows: list[Any] = list(groups.itertuples(index=False))
    return [(one, fitted.means[one.coin, one.side]) for one in rows]


def _reason(means: Means) -> str:
    """Say why there is no answer."""
    return {0: "never filled", 1: "one size"}.get(len(means.sizes), "no law")


def _too_thin(samples: pd.DataFrame, group: Any, usd: float) -> float:
    mine = (samples["coin"] == group.coin) & (samples["side"] == group.side)
    larger = samples[mine & (samples["amount_usd"] >= usd)]
    if larger.empty:
        return float("nan")
    next_size = larger.sort_values("amount_usd").iloc[0]
    return float(next_size["missing"] / next_size["n"])


def _framed(
    rows: list[tuple[Any, ...]], dtypes: dict[str, str], fitted: SlippageFit, helper: str
) -> pd.DataFrame:
    made = pd.DataFrame(rows, columns=list(dtypes)).astype(dtypes)
    made.attrs["toolkit"] = {**fitted.groups.attrs["toolkit"], "helper": helper}
    return made
