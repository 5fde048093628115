"""The cost of a size, and the size for a cost, from the sampled means."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from toolkit.arrays import Floats
from toolkit.contract.market_names import code_among
from toolkit.prepare.door import Frame
from toolkit.slippage._fit import LEAST_BPS, UNIT_USD, SizeMeans, SlippageFit, fit
from toolkit.statistics import bootstrap_interval

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
    samples: Frame | SlippageFit,
    usd: float | Sequence[float],
    *,
    coin: str | None = None,
    side: str | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Estimate the expected cost of a market order, with its confidence interval.

    Parameters
    ----------
    samples : DataFrame or SlippageFit
        `tk.slippage_history` (repeated rows count once), or the result of `fit`. Both give the same
        cost.
    usd : float or list of float
        Notional of the order.
    coin, side : str, optional
        Only this coin or side (``buy``, ``sell``).
    level : float, default 0.95
        Level of the intervals.
    seed : int, default 0
        Seed of the resamples, if samples are passed.

    Returns
    -------
    DataFrame
        pandas, one row for each coin, side and size:

        - ``coin``: coin of the samples.
        - ``side``: ``buy`` or ``sell``.
        - ``amount_usd``: notional of the order, in USD.
        - ``cost_bps``: expected cost against mid, in basis points.
        - ``low``: lower end of the interval of the mean cost (not of one order's), in basis points,
          from resampled days; missing for a single day.
        - ``high``: upper end of the interval of the mean cost, in basis points.
        - ``cost_usd``: expected cost in USD; positive is paid.
        - ``range``: position of the size: ``sampled`` if the cost is the mean of the samples of
          this size, ``between`` two sampled sizes, ``below`` or ``above`` all sampled sizes, where
          the curve is extrapolated. If the cost is missing, the reason: ``one size`` (only one size
          was filled, and you asked for another one), ``never filled`` (no size was filled), or
          ``no law`` (the fit failed).
        - ``too_thin``: share of samples that the book could not fill, at the smallest size in the
          samples that is not below `usd` (this size may never have been filled); missing if `usd`
          is above all sizes in the samples. If it is not 0 and `range` is ``sampled`` or
          ``between``, `cost_bps` is a lower bound, because such orders count with their smallest
          possible cost.
        - ``n``: number of samples behind the curve.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If a size is not positive, or there is no such coin or side.

    Notes
    -----
    If samples are passed, nearly all the time is that of `fit` (seconds for a million samples):
    call `fit` once and pass its result. No law of cost is assumed among the sampled sizes, since
    the cost can be flat and then rise. At a sampled size the cost is the sample mean; between two
    sizes it is a straight line in the logarithms of size and cost (a mean of 0 counts as 0.005 bps
    there, half the last decimal). Beyond them it is ``half_spread + a * (Q / 100,000)**k`` of
    `fit`, scaled to meet the mean of the outermost size. If the book could not fill an order, its
    smallest possible cost is computed from the smaller sizes of that book. A size that was never
    filled is not a sampled size.

    Examples
    --------
    >>> import pandas as pd
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
    sizes = _positive_numbers(usd, "usd: each size must be above 0 USD")
    fitted = samples if isinstance(samples, SlippageFit) else fit(samples, level=level, seed=seed)
    rows = []
    for group, means in _choose_groups(fitted, coin, side):
        of_side = (fitted.samples["coin"] == group.coin) & (fitted.samples["side"] == group.side)
        sampled = fitted.samples[of_side]
        for size in sizes:
            values, blocks, place = expected_cost(means, size)
            interval = _interval_around(values, blocks, level, positive=True)
            larger = sampled[sampled["amount_usd"] >= size].head(1)
            thin = (larger["missing"] / larger["n"]).max()
            figures = (values[0], *interval, values[0] / 1e4 * size, place, thin)
            rows.append((group.coin, group.side, size, *figures, group.n))
    return _result_frame(rows, _COST, fitted, "slippage.cost")


def capacity(
    samples: Frame | SlippageFit,
    bps: float | Sequence[float],
    *,
    coin: str | None = None,
    side: str | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Estimate the largest size whose expected cost stays below a limit.

    Parameters
    ----------
    samples : DataFrame or SlippageFit
        As for `cost`. Repeated rows count once.
    bps : float or list of float
        Largest cost of a market order against mid, in basis points.
    coin, side : str, optional
        Only this coin or side (``buy``, ``sell``).
    level : float, default 0.95
        Level of the intervals.
    seed : int, default 0
        Seed of the resamples, if samples are passed.

    Returns
    -------
    DataFrame
        pandas, one row for each coin, side and bound:

        - ``coin``: coin of the samples.
        - ``side``: ``buy`` or ``sell``.
        - ``bps``: the bound, in basis points.
        - ``capacity_usd``: largest size within the bound, in USD: 0 if the smallest order costs
          more; missing if only one size was filled, or if the size lies beyond the sampled sizes
          and no rising curve could be fitted. If books were too thin for the size and it is among
          the sampled sizes, it is an upper bound: see ``too_thin`` of `cost`.
        - ``low``: lower end of the interval, in USD; missing for a single day.
        - ``high``: upper end of the interval, in USD; missing for a single day.
        - ``range``: position of the size among the sampled sizes, as for `cost`. If it is
          ``above``, no order of that size was sampled: report "more than ``largest_usd``". If the
          capacity is missing, the reason.
        - ``smallest_usd``: smallest sampled size that was filled, in USD.
        - ``largest_usd``: largest sampled size that was filled, in USD.
        - ``n``: number of samples behind the curve.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If a bound is not positive, or there is no such coin or side.

    Notes
    -----
    If samples are passed, nearly all the time is that of `fit`: call `fit` once and pass its
    result.

    Examples
    --------
    >>> import pandas as pd
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
    bounds = _positive_numbers(bps, "bps: each bound must be above 0 basis points")
    fitted = samples if isinstance(samples, SlippageFit) else fit(samples, level=level, seed=seed)
    rows = []
    for group, means in _choose_groups(fitted, coin, side):
        ends = (means.sizes[0], means.sizes[-1]) if len(means.sizes) else (np.nan, np.nan)
        for bound in bounds:
            values = _largest_size(means, bound)
            _, blocks, place = expected_cost(means, values[0])
            low, high = _interval_around(values, blocks, level)
            figures = (values[0], max(low, 0.0), high, place, *ends)
            rows.append((group.coin, group.side, bound, *figures, group.n))
    return _result_frame(rows, _CAPACITY, fitted, "slippage.capacity")


def expected_cost(means: SizeMeans, usd: float) -> tuple[Floats, int, str]:
    """Return the mean cost of a size in bps, the blocks of days behind it, and the size's place.

    The cost is that of the samples and of each draw. At a sampled size it is the mean itself.
    Between two sampled sizes it is on a straight line in the logarithms of size and cost. Beyond
    the sampled sizes it follows the law, scaled so that it equals the mean of the outermost size
    there. The place is the reason if there is no estimate.
    """
    sizes, many = means.sizes, len(means.sizes)
    reason = {0: "never filled", 1: "one size"}.get(many, "no law")
    if not many or np.isnan(usd):
        return np.full(len(means.law), np.nan), 0, reason
    right = int(np.searchsorted(sizes, usd))
    if usd in sizes:
        return means.bps[:, right], int(means.blocks[right]), "sampled"
    around, paid = slice(max(right - 1, 0), right + 1), np.maximum(means.bps, LEAST_BPS)
    if 0 < right < many:
        share = np.interp(np.log(usd), np.log(sizes[around]), [0.0, 1.0])
        small, large = np.log(paid[:, around]).T
        values, place = np.exp(small * (1 - share) + large * share), "between"
    else:
        edge, place = (0, "below") if right == 0 else (many - 1, "above")
        half, a, k, _ = means.law.T
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            at_size, at_edge = (half + a * (each / UNIT_USD) ** k for each in (usd, sizes[edge]))
            values = paid[:, edge] * (at_size / at_edge)
    blocks = int(means.blocks[around].min())  # the smaller number of the two
    return values, blocks, place if np.isfinite(values[0]) else reason


def _largest_size(means: SizeMeans, bps: float) -> Floats:
    """Return the largest size whose mean cost is within a bound: the inverse of `expected_cost`."""
    many = len(means.sizes)
    if not many:
        return np.full(len(means.law), np.nan)
    costs, sizes = np.log(np.maximum(means.bps, LEAST_BPS)), np.log(means.sizes)
    # The sizes below and above the sampled ones at which the scaled law reaches the bound; 0 if
    # every size costs more.
    (half, a, k, _), ends = means.law.T[:, :, None], [0, many - 1]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scale = np.exp(costs[:, ends]) / (half + a * (means.sizes[ends] / UNIT_USD) ** k)
        left = bps / scale - half
        beyond = np.where(left > 0, UNIT_USD * (np.maximum(left, 0.0) / a) ** (1 / k), 0.0)
    below, above = np.where((k > 0) & np.isfinite(scale), beyond, np.nan).T
    within = costs <= np.log(bps)
    # The largest size within the bound. Smaller sizes may cost more, if other books were sampled.
    last = many - 1 - np.argmax(within[:, ::-1], axis=1)
    found = np.where(within.any(axis=1), above, np.minimum(below, means.sizes[0]))
    inner = within.any(axis=1) & (last < many - 1)
    row, low = np.flatnonzero(inner), last[inner]
    small, large = costs[row, low], costs[row, low + 1]
    share = (np.log(bps) - small) / (large - small)
    found[inner] = np.exp(sizes[low] + share * (sizes[low + 1] - sizes[low]))
    found[inner] = np.where(share == 0, means.sizes[low], found[inner])
    return np.asarray(np.where(np.isnan(costs).any(axis=1), np.nan, found))


def _interval_around(
    values: Floats, blocks: int, level: float, *, positive: bool = False
) -> tuple[float, float]:
    """Return the interval of the draws, extended to contain the estimate, which is the first value.

    If all draws are equal, rounding alone could place the interval beside the estimate.
    """
    low, high = bootstrap_interval(values[1:], blocks, level, positive=positive)
    return min(low, values[0]), max(high, values[0])


def _positive_numbers(numbers: float | Sequence[float], rule: str) -> list[float]:
    """Return one number or several as a list. Raise ValueError if one is not above 0."""
    values: list[float] = np.atleast_1d(np.asarray(numbers, dtype=np.float64)).tolist()
    if not all(value > 0 for value in values):
        raise ValueError(f"{rule}, not {numbers!r}")
    return values


def _choose_groups(
    fitted: SlippageFit, coin: str | None, side: str | None
) -> list[tuple[Any, SizeMeans]]:
    groups = fitted.groups
    for name, wanted in (("coin", coin), ("side", side)):
        if wanted is None:
            continue
        have = sorted(groups[name].unique())
        wanted = code_among(wanted, have)
        if wanted not in have:
            advice = f"Choose one of {', '.join(have)}" if have else "There are no samples"
            raise ValueError(f"the samples have no {name} {wanted!r}. {advice}")
        groups = groups[groups[name] == wanted]
    rows: Iterable[Any] = groups.itertuples(index=False)
    return [(group, fitted.means[group.coin, group.side]) for group in rows]


def _result_frame(
    rows: list[tuple[Any, ...]], dtypes: dict[str, str], fitted: SlippageFit, helper: str
) -> pd.DataFrame:
    result = pd.DataFrame(rows, columns=list(dtypes)).astype(dtypes)
    result.attrs["toolkit"] = {**fitted.groups.attrs["toolkit"], "helper": helper}
    return result
