"""What a fitted curve says: the cost of a size, the size of a cost."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit.analysis.resampling import interval
from toolkit.analysis.slippage_fit import UNIT_USD, SlippageFit, fit

Floats = npt.NDArray[np.float64]
Curve = Callable[[Floats], Floats]

_COST = {
    "coin": "str", "side": "str", "amount_usd": "float64", "cost_bps": "float64",
    "low": "float64", "high": "float64", "cost_usd": "float64", "range": "str",
    "too_thin": "float64", "n": "int64",
}  # fmt: skip
_CAPACITY = {
    "coin": "str", "side": "str", "bps": "float64", "capacity_usd": "float64",
    "low": "float64", "high": "float64", "range": "str", "n": "int64",
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
        As `tk.slippage_history` gives them (fitted first: rows given twice count once), or what
        `fit` made of them.
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
          not of one order's; ``cost_usd``, the same in USD: positive is paid;
        - ``range``: ``within`` the sampled sizes, or ``below`` or ``above`` them, where the
          curve is carried on and nothing was seen;
        - ``too_thin``: share of the samples of the next sampled size (this one or larger) that
          the book could not fill; missing above the largest. Such an order costs more than
          `cost_bps`, or cannot be had;
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
    Mean of the fitted distribution: ``(half_spread + a * (Q / 100,000)**k) * exp(sigma**2 / 2)``.

    Examples
    --------
    >>> usd = pd.Series([1e3, 1e4, 1e5, 1e6])
    >>> rows = pd.DataFrame({
    ...     "timestamp": pd.to_datetime([0] * 4, unit="ms", utc=True), "coin": "XYZ",
    ...     "amount_usd": usd, "half_spread_bps": 1.0,
    ...     "buy_slippage_bps": (1 + 10 * (usd / 1e5) ** 0.5).round(2),
    ...     "sell_slippage_bps": None}).astype({"sell_slippage_bps": "float64"})
    >>> cost(rows, [4e5, 4e6], side="buy")[["amount_usd", "cost_bps", "range"]].round(0)
       amount_usd  cost_bps   range
    0    400000.0      21.0  within
    1   4000000.0      64.0   above
    """
    sizes = [usd] if np.isscalar(usd) else list(usd)  # type: ignore[arg-type]
    if not all(size > 0 for size in sizes):  # type: ignore[operator]
        raise ValueError(f"a size is a positive number of USD: {usd!r}")
    fitted = _fitted(samples, level, seed)
    rows = []
    for group in _chosen(fitted, coin, side):
        days, draws = fitted.draws[group.coin, group.side]
        for size in sizes:
            values = expected(draws, float(size))  # type: ignore[arg-type]
            low, high = interval(values[1:], days, level, positive=True)
            place = place_of(float(size), group)  # type: ignore[arg-type]
            thin = _too_thin(fitted.samples, group, float(size))  # type: ignore[arg-type]
            paid = values[0] / 1e4 * size
            name = (group.coin, group.side, size)
            rows.append((*name, values[0], low, high, paid, place, thin, group.n))
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
        ``high``: 0 where the half spread alone costs more, missing where no curve could be
        fitted or it does not rise; ``range`` (as for `cost`) and ``n``.

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
    >>> capacity(rows, [0.5, 21.0], side="buy")[["capacity_usd", "range"]].round(-3)
       capacity_usd   range
    0           0.0   below
    1      400000.0  within
    """
    bounds = [bps] if np.isscalar(bps) else list(bps)  # type: ignore[arg-type]
    if not all(bound > 0 for bound in bounds):  # type: ignore[operator]
        raise ValueError(f"a bound is a positive number of basis points: {bps!r}")
    fitted = _fitted(samples, level, seed)
    rows = []
    for group in _chosen(fitted, coin, side):
        days, draws = fitted.draws[group.coin, group.side]
        for bound in bounds:
            values = _largest(draws, float(bound))  # type: ignore[arg-type]
            low, high = interval(values[1:], days, level)
            low = max(low, 0.0)
            place = place_of(float(values[0]), group)
            rows.append((group.coin, group.side, bound, values[0], low, high, place, group.n))
    return _framed(rows, _CAPACITY, fitted, "slippage.capacity")


def _fitted(samples: Any, level: float, seed: int) -> SlippageFit:
    return samples if isinstance(samples, SlippageFit) else fit(samples, level=level, seed=seed)


def _chosen(fitted: SlippageFit, coin: str | None, side: str | None) -> list[Any]:
    groups = fitted.groups
    for name, wanted in (("coin", coin), ("side", side)):
        if wanted is None:
            continue
        have = sorted(groups[name].unique())
        if wanted not in have:
            raise ValueError(f"no {name} {wanted!r} among the samples: {', '.join(have) or 'none'}")
        groups = groups[groups[name] == wanted]
    return list(groups.itertuples(index=False))


def expected(draws: Floats, usd: float) -> Floats:
    """Give the mean cost of a size in bps, for each row of parameters."""
    half, a, k, sigma = draws.T
    return np.asarray((half + a * (usd / UNIT_USD) ** k) * np.exp(sigma**2 / 2))


def _largest(draws: Floats, bps: float) -> Floats:
    half, a, k, sigma = draws.T
    left = np.maximum(bps * np.exp(-(sigma**2) / 2) - half, 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        size = np.where(left > 0, UNIT_USD * (left / a) ** (1 / k), 0.0)
    return np.asarray(np.where(k > 0, size, np.nan))


def place_of(usd: float, group: Any) -> str:
    """Say whether a size lies within, below or above the sampled ones of a group."""
    if usd != usd:
        return ""
    if usd < group.smallest_usd:
        return "below"
    return "within" if usd <= group.largest_usd else "above"


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
