"""Estimates of many accounts, drawn towards their common mean by how uncertain each one is.

The model: the true values of the accounts are normal with mean `mean` and standard deviation
`spread`, and each estimate is normal around the true value with its own standard error.
"""

from typing import NamedTuple

import numpy as np

from toolkit.arrays import Floats
from toolkit.statistics.quantiles import normal, scipy_part, student

MIN_ACCOUNTS = 5
"""With fewer accounts the spread of the true values cannot be estimated."""


class Shrinkage(NamedTuple):
    """Estimates after shrinkage, and the two parameters of the model with their intervals."""

    values: Floats
    low: Floats
    high: Floats
    mean: tuple[float, float, float]
    """Mean of the true values: estimate, low, high."""
    spread: tuple[float, float, float]
    """Standard deviation of the true values: estimate, low, high."""


def shrink_estimates(values: Floats, errors: Floats, level: float) -> Shrinkage:
    """Shrink estimates with known standard errors; NaN with fewer than `MIN_ACCOUNTS` estimates.

    The spread is that of Paule and Mandel (1982), its interval the Q-profile (Viechtbauer, 2007).
    The shrunk values and their intervals are those of Morris (1983), which count that mean and
    spread are estimates, too.
    """
    k = len(values)
    if k < MIN_ACCOUNTS:
        unknown = np.full(k, np.nan)
        return Shrinkage(unknown, unknown, unknown, (np.nan,) * 3, (np.nan,) * 3)
    variances = errors**2
    between = _solve_spread(values, variances, k - 1)
    weights = 1 / (variances + between)
    mean = float(weights @ values / weights.sum())
    factor = (k - 3) / (k - 1) * variances * weights
    made = values - factor * (values - mean)
    typical = float(weights @ variances / weights.sum()) + between
    surprise = 2 / (k - 3) * factor**2 * typical * weights * (values - mean) ** 2
    half = normal(level) * np.sqrt(variances * (1 - (k - 1) / k * factor) + surprise)
    # Standard error of the weighted mean by Hartung and Knapp (2001).
    mismatch = float(weights @ (values - mean) ** 2) / (k - 1)
    reach = float(student(level, k - 1) * np.sqrt(mismatch / weights.sum()))
    ends = (
        _solve_spread(values, variances, scipy_part("special").chdtri(k - 1, 1 - share))
        for share in ((1 + level) / 2, (1 - level) / 2)
    )
    low, high = (float(np.sqrt(end)) for end in ends)
    return Shrinkage(
        made,
        made - half,
        made + half,
        (mean, mean - reach, mean + reach),
        (float(np.sqrt(between)), low, high),
    )


def _solve_spread(values: Floats, variances: Floats, wanted: float) -> float:
    """Return the variance between accounts at which the weighted squares sum to `wanted`; or 0."""

    def excess(between: float) -> float:
        weights = 1 / (variances + between)
        mean = weights @ values / weights.sum()
        return float(weights @ (values - mean) ** 2) - wanted

    if excess(0.0) <= 0:
        return 0.0
    top = float(values.var()) + float(variances.max())
    while excess(top) > 0:
        top *= 4
    return float(scipy_part("optimize").brentq(excess, 0.0, top, xtol=1e-12 * top, rtol=1e-12))
