"""Figures of a series of returns or of trips, each with its interval.

Every function takes an array without missing values. An interval that needs more values than there
are is NaN. Facts, such as the return of the period, have no interval.
"""

from math import ceil, sqrt
from typing import Any, NamedTuple

import numpy as np

from toolkit import statistics
from toolkit.arrays import Floats
from toolkit.statistics import Sampling

NAN = float("nan")
_MIN_TAIL = 50
_DUST = 1e-12  # what is left of a fall of 0 by rounding
_SAME = 1e-5  # returns that differ by less, as a share of their mean, are the same number


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


def plain_figure(name: str, value: float, n: int, unit: str) -> Figure:
    """Return a figure that describes what happened, without an interval."""
    return Figure(name, float(value), NAN, NAN, n, unit, "fact")


def chain_returns(returns: Floats) -> Floats:
    """Return the value of 1 after each return; 0 from a return of -100 % or less on."""
    return np.asarray(np.maximum(1 + returns, 0.0).cumprod(axis=-1))


def drawdowns(returns: Floats, times: Any) -> tuple[Floats, Floats]:
    """Return how far the value after each return is below the highest so far, and for how long.

    The fall is a share, at most 0. The time is that since the last high, also for a value that
    reaches the high again; it is 0 where a high follows a high.

    - ``times``: time before the first return, and after each one
    """
    growth = np.append(1.0, chain_returns(returns))
    fall = growth / np.maximum.accumulate(growth) - 1
    fall[fall > -_DUST] = 0.0
    is_high = fall == 0
    high = np.maximum.accumulate(np.where(is_high, times, times[:1]))
    return fall[1:], np.where(is_high[1:] & is_high[:-1], 0.0, times[1:] - high[:-1])


def is_constant(returns: Floats) -> bool:
    """Return whether all returns are the same number, but for rounding."""
    return not float(returns.std()) > _SAME * abs(float(returns.mean()))


def sharpe_ratio(returns: Floats) -> float:
    """Return mean / standard deviation (with n - 1), per period; NaN of the same returns."""
    if len(returns) < 2 or is_constant(returns):
        return NAN
    return float(returns.mean() / returns.std(ddof=1))


def sharpe_error(returns: Floats) -> float:
    """Return the standard error of the Sharpe ratio per period.

    Lo (2002), "The statistics of Sharpe ratios", section "Non-IID returns": the error of the mean
    of the influence of each return on the ratio.
    """
    ratio = sharpe_ratio(returns)
    if np.isnan(ratio):
        return NAN
    z = (returns - returns.mean()) / returns.std()
    return long_run_error(z - ratio / 2 * (z**2 - 1))


def long_run_error(terms: Floats) -> float:
    """Return the standard error of a mean whose terms may depend on their neighbours.

    The terms are observations, or the influence of each observation on a figure; then the error
    is that of the figure. They follow ``x[t] = r * x[t - 1] + e[t]``: the error is that of e,
    divided by 1 - r, and at least that of independent terms. r is corrected for its bias (Kendall
    1954), and between 0 and 0.9.
    """
    n = len(terms)
    if n < 3:
        return NAN
    off = terms - terms.mean()
    squares = float(off @ off)
    r = float(off[1:] @ off[:-1]) / squares if squares else 0.0
    r = min(max(r + (1 + 3 * r) / n, 0.0), 0.9)
    rest = off[1:] - r * off[:-1]
    return sqrt(max(squares / (n - 1), float(rest.var(ddof=1)) / (1 - r) ** 2) / n)


def gains_over_losses(values: Floats) -> tuple[float, float, int]:
    """Return the logarithm of sum of gains / sum of losses, its standard error, and its freedom.

    The degrees of freedom are the number of gains or of losses, whichever is smaller: a few losses
    do not tell how large losses are. All are missing without a gain or a loss.
    """
    gains, losses = np.maximum(values, 0.0), np.maximum(-values, 0.0)
    degrees = min(int(np.count_nonzero(gains)), int(np.count_nonzero(losses)))
    if not degrees:
        return NAN, NAN, 0
    above, below = float(gains.mean()), float(losses.mean())
    return float(np.log(above / below)), long_run_error(gains / above - losses / below), degrees


def luck_probability(returns: Floats) -> float:
    """Return the probability of returns as good as these, or better, if their true mean is 0.

    One-sided, of the logarithm of gains / losses, which is above 0 if the mean is: it is less
    skewed than the mean, so rare large losses do not mislead it. NaN without a gain or a loss:
    a sample without a loss cannot know how large losses are.
    """
    ratio, error, degrees = gains_over_losses(returns)
    if not error > 0:
        return NAN
    return float(statistics.scipy_part("special").stdtr(degrees, -ratio / error))


def annual_return_figure(returns: Floats, years: Floats, level: float) -> Figure:
    """Return the geometric return per year: growth ** (1 / years) - 1.

    Its interval is that of ``sum(log(1 + return)) / sum(years)``.
    """
    n, total = len(returns), float(years.sum())
    grown = float(chain_returns(returns)[-1])
    with np.errstate(over="ignore"):
        value = float(np.float64(grown) ** (1 / total) - 1)
    low = high = NAN
    if n > 1 and (returns > -1).all():
        logs = np.log1p(returns)
        rate = float(logs.sum()) / total
        error = long_run_error(logs - rate * years) * n / total
        low, high = (end - 1 for end in _around(rate, error, n - 1, level))
    return Figure("annual_return", value, low, high, n, "share", "AR(1)")


def volatility_figure(returns: Floats, periods: float, level: float) -> Figure:
    """Return the standard deviation (with n - 1) per year, with the interval of its logarithm."""
    n = len(returns)
    value = NAN if n < 2 else 0.0 if is_constant(returns) else float(returns.std(ddof=1))
    value, low, high = value * sqrt(periods), NAN, NAN
    if value > 0:
        squares = np.square(returns - returns.mean())
        error = long_run_error(squares / squares.mean() / 2)
        low, high = _around(float(np.log(value)), error, n - 1, level)
    return Figure("volatility", value, low, high, n, "share", "AR(1)")


def sharpe_figure(returns: Floats, periods: float, level: float) -> Figure:
    """Return the Sharpe ratio per year; its interval is for dependent returns, too."""
    figure = sharpe_ratio(returns), sharpe_error(returns)
    return _per_year("sharpe", figure, len(returns), periods, level)


def sortino_figure(returns: Floats, periods: float, level: float) -> Figure:
    """Return mean / root of the mean square of negative returns, per year."""
    squares, ratio, error = np.square(np.minimum(returns, 0.0)), NAN, NAN
    down = sqrt(float(squares.mean())) if len(returns) else 0.0
    if down:
        ratio = float(returns.mean()) / down
        error = long_run_error(returns / down - ratio / 2 * (squares / down**2 - 1))
    return _per_year("sortino", (ratio, error), len(returns), periods, level)


def _per_year(
    name: str, figure: tuple[float, float], n: int, periods: float, level: float
) -> Figure:
    """Return a ratio per period, and its error, per year."""
    (ratio, error), scale = figure, sqrt(periods)
    reach = float(statistics.student(level, n - 1)) * error if n > 1 else NAN
    low, high = scale * (ratio - reach), scale * (ratio + reach)
    return Figure(name, scale * ratio, low, high, n, "ratio", "AR(1)")


def quantile_figure(name: str, values: Floats, share: float, unit: str, level: float) -> Figure:
    """Return a quantile; its interval lies between two ranks (exact, by the binomial law)."""
    n, tail, low, high = len(values), (1 - level) / 2, NAN, NAN
    chances = statistics.scipy_part("special").bdtr(np.arange(n + 1), n, share)
    # The smallest number of values below, whose probability, or that of fewer, is at least a tail.
    lower, upper = np.searchsorted(chances, [tail, 1 - tail]).tolist()
    if lower >= 1 and upper < n:
        low, high = np.sort(values)[[lower - 1, upper]].tolist()
    value = float(np.quantile(values, share)) if n else NAN
    return Figure(name, value, low, high, n, unit, "ranks")


def expected_shortfall_figure(returns: Floats, how: Sampling, share: float = 0.05) -> Figure:
    """Return the mean of the worst returns, the ``floor((n - 1) * share) + 1`` lowest ones.

    The bootstrap needs many returns in the tail: with fewer than 50 the interval is missing. It
    draws the cube root of n neighbours together, because they may depend on each other.
    """
    n = len(returns)
    count = int((n - 1) * share) + 1
    value = float(np.sort(returns)[:count].mean()) if n else NAN
    low = high = NAN
    if count >= _MIN_TAIL and n:
        block = max(1, round(n ** (1 / 3)))
        places = statistics.draw_blocks(np.random.default_rng(how.seed), how.draws, n, block)
        drawn = np.partition(returns[places], count - 1, axis=-1)[:, :count].mean(axis=-1)
        low, high = statistics.bootstrap_interval(drawn, ceil(n / block), how.level)
    return Figure("expected_shortfall", value, low, high, n, "share", "bootstrap")


def share_figure(name: str, hits: int, n: int, level: float) -> Figure:
    """Return a share with its interval by Wilson (1927)."""
    share = hits / n if n else NAN
    low, high = statistics.wilson_interval(share, n or 1, statistics.normal(level))
    return Figure(name, share, low, high, n, "share", "Wilson")


def gain_figures(values: Floats, level: float) -> list[Figure]:
    """Return mean gain / mean loss, sum of gains / sum of losses, and the mean of values.

    The first two have Student's interval of their logarithm. That of the mean joins the intervals
    of the gains and the losses (Zou and Donner, 2008), each of its logarithm. Two gains and two
    losses are needed: fewer do not tell how large they are.
    """
    n, is_gain, is_loss = len(values), values > 0, values < 0
    wins, losses = int(is_gain.sum()), int(is_loss.sum())
    mean = float(values.mean()) if n else NAN
    ratio, error, degrees = gains_over_losses(values)
    odds = wins / losses if degrees else NAN
    method = "Student of logarithms" if degrees >= 2 else "needs two gains and two losses"
    ends = [(NAN, NAN)] * 3
    if degrees >= 2:
        sides = [np.where(which, np.abs(values), 0.0) for which in (is_gain, is_loss)]
        cases = [side[side > 0] for side in sides]
        spread = sqrt(sum(side.var(ddof=1) / side.mean() ** 2 / len(side) for side in cases))
        ends[0] = _around(ratio - np.log(odds), spread, degrees - 1, level)
        ends[1] = _around(ratio, error, degrees, level)
        ends[2] = _difference(sides, (wins, losses), level)
    return [
        Figure("payoff_ratio", float(np.exp(ratio)) / odds, *ends[0], n, "ratio", method),
        Figure("profit_factor", float(np.exp(ratio)), *ends[1], n, "ratio", method),
        Figure("expectancy", mean, *ends[2], n, "USD", method),
    ]


def _around(log: float, error: float, degrees: int, level: float) -> tuple[float, float]:
    """Return Student's interval of a logarithm as numbers."""
    reach = float(statistics.student(level, degrees)) * error
    with np.errstate(over="ignore"):
        return float(np.exp(log - reach)), float(np.exp(log + reach))


def _difference(sides: list[Floats], counts: tuple[int, int], level: float) -> tuple[float, float]:
    """Return the interval of the difference of two means of the same observations."""
    first, second = (float(side.mean()) for side in sides)
    errors = [float(side.std(ddof=1)) / sqrt(len(side)) for side in sides]
    (low, high), (least, most) = (
        _around(float(np.log(mean)), error / mean, count, level)
        for mean, error, count in zip((first, second), errors, counts, strict=True)
    )
    n = len(sides[0])
    together = -first * second / (n - 1) / (errors[0] * errors[1])  # no value has both sides

    def reach(one: float, other: float) -> float:
        return sqrt(one**2 + other**2 - 2 * together * one * other)

    middle = first - second
    return middle - reach(first - low, most - second), middle + reach(high - first, second - least)
