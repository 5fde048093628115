"""Figures of a series of returns or of trips, each with its interval.

Every function takes an array without missing values. An interval that needs more values than there
are is NaN. Facts, such as the return of the period, have no interval.
"""

from collections.abc import Callable
from math import ceil, sqrt
from typing import NamedTuple

import numpy as np

from toolkit.analysis.common.bootstrap import bootstrap_interval, draw_blocks
from toolkit.analysis.common.estimate import wilson_interval
from toolkit.arrays import Floats
from toolkit.installation import explain_missing

NAN = float("nan")
_MIN_TAIL = 50


class Figure(NamedTuple):
    """One figure of a performance sheet."""

    name: str
    value: float
    low: float
    high: float
    n: int
    unit: str
    method: str
    """How the interval is computed; "fact" if the figure is no estimate."""


class IntervalSettings(NamedTuple):
    """How intervals are computed."""

    level: float
    draws: int
    seed: int


def plain_figure(name: str, value: float, n: int, unit: str) -> Figure:
    """Return a figure that describes what happened, without an interval."""
    return Figure(name, float(value), NAN, NAN, n, unit, "fact")


def chain_returns(returns: Floats) -> Floats:
    """Return the value of 1 after each return; 0 from a return of -100 % or less on."""
    made: Floats = np.maximum(1 + returns, 0.0).cumprod(axis=-1)
    return made


def deepest_drawdown(returns: Floats) -> tuple[float, int]:
    """Return the deepest fall below the highest value so far, and the longest time below it.

    The fall is a share, at most 0. The time is the largest number of periods between a high and the
    next value that reaches it, or the end.
    """
    growth = np.concatenate([[1.0], chain_returns(returns)])
    top = np.maximum.accumulate(growth)
    highs = np.flatnonzero(growth >= top)
    longest = int(np.diff(np.append(highs, len(growth) - 1)).max())
    # A recovery takes as many periods as lie between two highs that are not neighbours.
    return float((growth / top - 1).min()), longest if longest > 1 or growth[-1] < top[-1] else 0


def sharpe_ratio(returns: Floats) -> Floats:
    """Return mean / standard deviation (with n - 1) of the last axis, per period."""
    with np.errstate(divide="ignore", invalid="ignore"):
        made: Floats = returns.mean(axis=-1) / returns.std(axis=-1, ddof=1)
    return made


def sharpe_error(returns: Floats) -> float:
    """Return the standard error of the Sharpe ratio per period for independent normal returns.

    Lo (2002), "The statistics of Sharpe ratios", equation 9: ``sqrt((1 + SR**2 / 2) / n)``.
    """
    n = len(returns)
    if n < 2:
        return NAN
    return sqrt((1 + float(sharpe_ratio(returns)) ** 2 / 2) / n)


def probabilistic_sharpe(returns: Floats, benchmark: float = 0.0) -> float:
    """Return the probability that the true Sharpe ratio per period is above a benchmark.

    Bailey and López de Prado (2012), "The Sharpe ratio efficient frontier", equation 11.
    """
    with explain_missing("analysis"):
        from scipy import stats

    n = len(returns)
    if n < 2:
        return NAN
    ratio = float(sharpe_ratio(returns))
    if not np.isfinite(ratio):
        return NAN
    z = (returns - returns.mean()) / returns.std()
    skew, kurtosis = float((z**3).mean()), float((z**4).mean())  # 0 and 3 for normal returns
    variance = 1 - skew * ratio + (kurtosis - 1) / 4 * ratio**2
    if variance <= 0:
        return NAN
    return float(stats.norm.cdf((ratio - benchmark) * sqrt(n - 1) / sqrt(variance)))


def long_run_error(influence: Floats) -> float:
    """Return the standard error of a mean whose terms may depend on their neighbours.

    Newey and West (1987), with ``floor(4 * (n / 100) ** (2 / 9))`` lags and the factor n / (n - 1).
    The terms are observations, or the influence of each observation on a figure; then the error
    is that of the figure (Lo 2002, section "Non-IID returns").
    """
    n = len(influence)
    if n < 3:
        return NAN
    terms = influence - influence.mean()
    lags = min(int(4 * (n / 100) ** (2 / 9)), n - 2)
    variance = float(terms @ terms)
    for lag in range(1, lags + 1):
        variance += 2 * (1 - lag / (lags + 1)) * float(terms[lag:] @ terms[:-lag])
    return sqrt(max(variance, 0.0) / n / (n - 1))


def interval_half_width(error: float, n: int, level: float) -> float:
    """Return half the length of Student's interval with a standard error; NaN for n below 2."""
    with explain_missing("analysis"):
        from scipy import stats

    return float(stats.t.ppf((1 + level) / 2, n - 1)) * error


def annual_return_figure(returns: Floats, periods: float, level: float) -> Figure:
    """Return the geometric return per year: growth ** (periods / n) - 1.

    Its interval is that of the mean of ``log(1 + return)``.
    """
    n = len(returns)
    value = float(chain_returns(returns)[-1] ** (periods / n) - 1)
    low = high = NAN
    if (returns > -1).all():
        logs = np.log1p(returns)
        reach = interval_half_width(long_run_error(logs), n, level)
        low, high = (_exp(periods * (float(logs.mean()) + side * reach)) - 1 for side in (-1, 1))
    return Figure("annual_return", value, low, high, n, "share", "Newey-West")


def volatility_figure(returns: Floats, periods: float, level: float) -> Figure:
    """Return the standard deviation (with n - 1) per year, with the interval of its logarithm."""
    n = len(returns)
    value = float(returns.std(ddof=1)) * sqrt(periods) if n > 1 else NAN
    if not value > 0:
        return Figure("volatility", value, NAN, NAN, n, "share", "Newey-West")
    squares = np.square(returns - returns.mean())
    factor = _exp(interval_half_width(long_run_error(squares / squares.mean() / 2), n, level))
    return Figure("volatility", value, value / factor, value * factor, n, "share", "Newey-West")


def sharpe_figure(returns: Floats, periods: float, level: float) -> Figure:
    """Return the Sharpe ratio per year; its interval is for dependent returns, too (Lo 2002)."""
    n = len(returns)
    ratio = float(sharpe_ratio(returns)) if n > 1 else NAN
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (returns - returns.mean()) / returns.std()
        reach = interval_half_width(long_run_error(z - ratio / 2 * (z**2 - 1)), n, level)
    return _scaled("sharpe", ratio, reach, sqrt(periods), n)


def sortino_figure(returns: Floats, periods: float, level: float) -> Figure:
    """Return mean / root of the mean square of negative returns, per year."""
    n = len(returns)
    squares = np.square(np.minimum(returns, 0.0))
    down = sqrt(float(squares.mean()))
    if not down:
        return Figure("sortino", NAN, NAN, NAN, n, "ratio", "Newey-West")
    ratio = float(returns.mean()) / down
    influence = returns / down - ratio / 2 * (squares / down**2 - 1)
    reach = interval_half_width(long_run_error(influence), n, level)
    return _scaled("sortino", ratio, reach, sqrt(periods), n)


def _scaled(name: str, ratio: float, reach: float, scale: float, n: int) -> Figure:
    low, high = scale * (ratio - reach), scale * (ratio + reach)
    return Figure(name, scale * ratio, low, high, n, "ratio", "Newey-West")


def _exp(value: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.exp(value))


def value_at_risk_figure(returns: Floats, level: float, share: float = 0.05) -> Figure:
    """Return a quantile of returns; its interval lies between two ranks, by the binomial law."""
    with explain_missing("analysis"):
        from scipy import stats

    n, ranks = len(returns), np.sort(returns)
    tail = (1 - level) / 2
    lower = int(stats.binom.ppf(tail, n, share))
    upper = int(stats.binom.ppf(1 - tail, n, share)) + 1
    low, high = NAN, NAN
    if lower >= 1 and upper <= n:
        low, high = float(ranks[lower - 1]), float(ranks[upper - 1])
    value = float(np.quantile(returns, share))
    return Figure("value_at_risk", value, low, high, n, "share", "ranks")


def expected_shortfall_figure(
    returns: Floats, how: IntervalSettings, block: int, share: float = 0.05
) -> Figure:
    """Return the mean of the worst returns, the ``floor((n - 1) * share) + 1`` lowest ones.

    The bootstrap needs many returns in the tail: with fewer than 50 the interval is missing.
    """
    count = int((len(returns) - 1) * share) + 1
    name, unit = "expected_shortfall", "share"
    if count < _MIN_TAIL:
        worst = float(np.sort(returns)[:count].mean())
        return Figure(name, worst, NAN, NAN, len(returns), unit, "bootstrap")

    def mean_of_worst(each: Floats) -> Floats:
        made: Floats = np.sort(each, axis=-1)[..., :count].mean(axis=-1)
        return made

    return resample_figure(name, unit, returns, mean_of_worst, how, block=block)


def resample_figure(
    name: str, unit: str, values: Floats, figure: Callable[[Floats], Floats], how: IntervalSettings,
    *, block: int = 1, positive: bool = False,
) -> Figure:  # fmt: skip
    """Return a figure of a series with its bootstrap interval.

    `block` neighbours are drawn together, because neighbouring returns may be dependent.
    """
    n = len(values)
    if not n:
        return Figure(name, NAN, NAN, NAN, 0, unit, "bootstrap")
    drawn = figure(values[draw_blocks(np.random.default_rng(how.seed), how.draws, n, block)])
    low, high = bootstrap_interval(drawn, ceil(n / block), how.level, positive=positive)
    return Figure(name, float(figure(values)), low, high, n, unit, "bootstrap")


def share_figure(name: str, hits: int, n: int, level: float) -> Figure:
    """Return a share with its interval by Wilson (1927)."""
    with explain_missing("analysis"):
        from scipy import stats

    if not n:
        return Figure(name, NAN, NAN, NAN, 0, "share", "Wilson")
    z = float(stats.norm.ppf((1 + level) / 2))
    share = hits / n
    low, high = wilson_interval(share, n, z)
    return Figure(name, share, low, high, n, "share", "Wilson")


def median_figure(name: str, values: Floats, unit: str, level: float) -> Figure:
    """Return a median with the interval between two ranks (exact, by the binomial law)."""
    with explain_missing("analysis"):
        from scipy import stats

    n = len(values)
    if not n:
        return Figure(name, NAN, NAN, NAN, 0, unit, "ranks")
    ranks, tail = np.sort(values), (1 - level) / 2
    below = int(stats.binom.ppf(tail, n, 0.5))  # 1-based rank of the lower end
    low, high = (ranks[below - 1], ranks[n - below]) if below else (NAN, NAN)
    return Figure(name, float(np.median(values)), float(low), float(high), n, unit, "ranks")


def mean_figure(name: str, values: Floats, unit: str, level: float) -> Figure:
    """Return a mean with Student's interval."""
    with explain_missing("analysis"):
        from scipy import stats

    n = len(values)
    if n < 2:
        return Figure(name, float(values.mean()) if n else NAN, NAN, NAN, n, unit, "Student")
    half = float(stats.t.ppf((1 + level) / 2, n - 1)) * float(values.std(ddof=1)) / sqrt(n)
    middle = float(values.mean())
    return Figure(name, middle, middle - half, middle + half, n, unit, "Student")
