"""Figures of one short series of returns, computed again from their definitions."""

from math import comb, exp, log, sqrt

import numpy as np
import pytest
from scipy import stats

from toolkit.analysis.common.bootstrap import bootstrap_interval, draw_blocks
from toolkit.analysis.performance import ratios

R = np.array([0.02, -0.01, 0.03, 0.005, -0.04, 0.01, 0.0, 0.015, -0.02])
N, MEAN = 9, 0.01 / 9
LEVEL, YEAR = 0.9, 365.0
T = stats.t.ppf(0.95, N - 1)
NAN = float("nan")
NONE = np.array([])


def error_of(terms, lags):
    """Return the error of Newey and West (1987) of a mean, with weights 1 - lag / (lags + 1)."""
    n, mean = len(terms), sum(terms) / len(terms)
    off = [term - mean for term in terms]
    total = sum(x * x for x in off)
    for lag in range(1, lags + 1):
        pairs = sum(x * y for x, y in zip(off, off[lag:], strict=False))
        total += 2 * (1 - lag / (lags + 1)) * pairs
    return sqrt(total / n / (n - 1))


def checked(figure, name, unit, method, n=N):
    """Return value, low and high of a figure after a check of its texts."""
    assert (figure.name, figure.unit, figure.method, figure.n) == (name, unit, method, n)
    return [figure.value, figure.low, figure.high]


def around(value, reach):
    return pytest.approx([value, value - reach, value + reach], rel=1e-9)


def missing(value=NAN):
    return pytest.approx([value, NAN, NAN], nan_ok=True)


def test_chained_returns_and_drawdown_by_hand():
    assert ratios.chain_returns(np.array([0.1, -0.5, -1.5, 2.0])).tolist() == pytest.approx(
        [1.1, 0.55, 0.0, 0.0]
    )
    both = ratios.chain_returns(np.array([[0.1, 0.1], [0.5, -0.2]]))
    assert both == pytest.approx(np.array([[1.1, 1.21], [1.5, 1.2]]))
    deepest = 1 - 0.96 * 1.01 * 1.015 * 0.98  # from the high after 0.005
    assert ratios.deepest_drawdown(R) == (pytest.approx(-max(0.04, deepest)), 5)
    assert ratios.deepest_drawdown(np.array([0.1, -0.1, 0.2])) == (pytest.approx(-0.1), 2)
    assert ratios.deepest_drawdown(np.array([0.1, 0.0, 0.2])) == (0, 0)
    assert ratios.deepest_drawdown(np.array([-0.1])) == (pytest.approx(-0.1), 1)
    assert ratios.deepest_drawdown(NONE) == (0, 0)


def test_sharpe_and_its_errors():
    spread = sqrt(sum((r - MEAN) ** 2 for r in R) / (N - 1))
    ratio = MEAN / spread
    assert ratios.sharpe_ratio(np.array([R, R * 2])) == pytest.approx([ratio, ratio])
    assert ratios.sharpe_error(R) == pytest.approx(sqrt((1 + ratio**2 / 2) / N))
    assert ratios.sharpe_error(R[:2]) == pytest.approx(
        sqrt((1 + (0.005 / (0.03 / sqrt(2))) ** 2 / 2) / 2)
    )
    whole = sqrt(sum((r - MEAN) ** 2 for r in R) / N)
    z = [(r - MEAN) / whole for r in R]
    skew, kurtosis = sum(x**3 for x in z) / N, sum(x**4 for x in z) / N
    width = sqrt(1 - skew * ratio + (kurtosis - 1) / 4 * ratio**2)
    for benchmark in (0.0, 0.1):
        wanted = stats.norm.cdf((ratio - benchmark) * sqrt(N - 1) / width)
        assert ratios.probabilistic_sharpe(R, benchmark) == pytest.approx(wanted)
    terms = [x - ratio / 2 * (x**2 - 1) for x in z]
    reach = T * error_of(terms, 2) * sqrt(YEAR)
    found = checked(ratios.sharpe_figure(R, YEAR, LEVEL), "sharpe", "ratio", "Newey-West")
    assert found == around(ratio * sqrt(YEAR), reach)
    assert 0.5 < ratios.probabilistic_sharpe(np.array([0.02, -0.01])) < 1
    pair = ratios.sharpe_figure(R[:2], YEAR, LEVEL)
    assert pair.value == pytest.approx(0.005 / (0.03 / sqrt(2)) * sqrt(YEAR))
    flat = ratios.sharpe_figure(np.zeros(4), YEAR, LEVEL)
    assert checked(flat, "sharpe", "ratio", "Newey-West", 4) == missing()
    assert np.isnan(ratios.sharpe_ratio(np.zeros(3)))
    for few in (R[:1], np.full(4, 0.01), np.zeros(3)):
        assert np.isnan(ratios.probabilistic_sharpe(few))
    assert np.isnan(ratios.sharpe_error(R[:1]))


def test_long_run_error_by_hand():
    assert ratios.long_run_error(R) == pytest.approx(error_of(R.tolist(), 2))
    assert ratios.long_run_error(R[:3]) == pytest.approx(error_of(R[:3].tolist(), 1))
    assert np.isnan(ratios.long_run_error(R[:2]))
    many = np.sin(np.arange(273.0) ** 2)  # the fewest with five lags
    assert ratios.long_run_error(many) == pytest.approx(error_of(many.tolist(), 5))
    turns = [1.0, -1.0] * 6
    assert ratios.long_run_error(np.array(turns)) == pytest.approx(error_of(turns, 2))
    assert ratios.interval_half_width(0.5, N, LEVEL) == pytest.approx(T / 2)
    assert ratios.interval_half_width(0.5, 2, LEVEL) == pytest.approx(stats.t.ppf(0.95, 1) / 2)
    assert np.isnan([ratios.interval_half_width(0.5, n, LEVEL) for n in (0, 1)]).all()


def test_annual_return_and_volatility_by_hand():
    growth = float(np.prod(1 + R))
    logs = [log(1 + r) for r in R]
    reach = T * error_of(logs, 2)
    middle = sum(logs) / N
    figure = ratios.annual_return_figure(R, YEAR, LEVEL)
    wanted = [growth ** (YEAR / N), exp(YEAR * (middle - reach)), exp(YEAR * (middle + reach))]
    found = checked(figure, "annual_return", "share", "Newey-West")
    assert found == pytest.approx([each - 1 for each in wanted])
    lost = ratios.annual_return_figure(np.array([0.1, -1.0]), YEAR, LEVEL)
    assert [lost.value, lost.low, lost.high] == missing(-1.0)
    spread = sqrt(sum((r - MEAN) ** 2 for r in R) / (N - 1)) * sqrt(YEAR)
    squares = [(r - MEAN) ** 2 for r in R]
    terms = [square / (sum(squares) / N) / 2 for square in squares]
    factor = exp(T * error_of(terms, 2))
    found = checked(ratios.volatility_figure(R, YEAR, LEVEL), "volatility", "share", "Newey-West")
    assert found == pytest.approx([spread, spread / factor, spread * factor])
    wide = ratios.volatility_figure(R[:3], YEAR, 1 - 1e-9)
    assert (wide.low, wide.high) == (0, float("inf"))
    flat = ratios.volatility_figure(np.zeros(4), YEAR, LEVEL)
    assert checked(flat, "volatility", "share", "Newey-West", 4) == missing(0.0)
    single = ratios.volatility_figure(R[:1], YEAR, LEVEL)
    assert checked(single, "volatility", "share", "Newey-West", 1) == missing()
    pair = ratios.volatility_figure(R[:2], YEAR, LEVEL)
    assert pair.value == pytest.approx(0.03 / sqrt(2) * sqrt(YEAR))


def test_sortino_figure_by_hand():
    down = sqrt((0.01**2 + 0.04**2 + 0.02**2) / N)
    ratio = MEAN / down
    terms = [r / down - ratio / 2 * (min(r, 0) ** 2 / down**2 - 1) for r in R]
    reach = T * error_of(terms, 2) * sqrt(YEAR)
    found = checked(ratios.sortino_figure(R, YEAR, LEVEL), "sortino", "ratio", "Newey-West")
    assert found == around(ratio * sqrt(YEAR), reach)
    never = ratios.sortino_figure(np.array([0.0, 0.1]), YEAR, LEVEL)
    assert checked(never, "sortino", "ratio", "Newey-West", 2) == missing()


def test_value_at_risk_is_between_ranks():
    values = np.arange(200.0)[::-1] / 1000 - 0.1
    figure = ratios.value_at_risk_figure(values, LEVEL)
    ranks = sorted(values)
    below = sum(comb(200, k) * 0.05**k * 0.95 ** (200 - k) for k in range(6))
    assert below >= 0.05 > below - comb(200, 5) * 0.05**5 * 0.95**195  # 5 is the 5 % quantile
    wanted = [float(np.quantile(values, 0.05)), ranks[4], ranks[15]]
    assert checked(figure, "value_at_risk", "share", "ranks", 200) == pytest.approx(wanted)
    few = ratios.value_at_risk_figure(R, LEVEL)
    assert [few.value, few.low, few.high] == missing(float(np.quantile(R, 0.05)))
    whole = ratios.value_at_risk_figure(R, 0.98, 0.5)
    assert [whole.low, whole.high] == [-0.04, 0.03]
    half = ratios.value_at_risk_figure(R, 0.8, 0.5)
    assert [half.value, half.low, half.high] == pytest.approx([0.005, sorted(R)[2], sorted(R)[6]])


def test_expected_shortfall_by_hand():
    how = ratios.IntervalSettings(LEVEL, 200, 3)
    few = ratios.expected_shortfall_figure(R, how, 2)
    assert checked(few, "expected_shortfall", "share", "bootstrap") == missing(-0.04)
    assert ratios.expected_shortfall_figure(R, how, 2, 0.25).value == pytest.approx(-0.07 / 3)
    values = np.sin(np.arange(981.0)) / 50
    assert ratios.expected_shortfall_figure(values[:980], how, 2).high != few.high
    assert np.isnan(ratios.expected_shortfall_figure(values[:980], how, 2).low)
    many = ratios.expected_shortfall_figure(values, how, 2)
    worst = float(np.sort(values)[:50].mean())
    assert many.value == pytest.approx(worst)
    places = draw_blocks(np.random.default_rng(3), 200, 981, 2)
    draws = np.sort(values[places], axis=1)[:, :50].mean(axis=1)
    assert (many.low, many.high) == bootstrap_interval(draws, 491, LEVEL)
    assert many.low < worst < many.high
    assert checked(many, "expected_shortfall", "share", "bootstrap", 981)[0] == many.value


def test_resampled_interval_equals_bootstrap():
    how = ratios.IntervalSettings(LEVEL, 400, 3)

    def largest(values):
        return values.max(axis=-1)

    found = ratios.resample_figure("top", "USD", R, largest, how, block=3)
    assert checked(found, "top", "USD", "bootstrap")[0] == 0.03
    again = ratios.resample_figure("top", "USD", R, largest, how, block=3)
    other = ratios.resample_figure("top", "USD", R, largest, how._replace(seed=4), block=3)
    assert found == again
    assert found.low < 0.03
    assert other.n == N
    places = draw_blocks(np.random.default_rng(3), 400, N, 4)
    for positive in (False, True):
        each = ratios.resample_figure("t", "", R + 1, largest, how, block=4, positive=positive)
        draws = largest((R + 1)[places])
        assert (each.low, each.high) == bootstrap_interval(draws, 3, LEVEL, positive=positive)
    nothing = ratios.resample_figure("top", "USD", NONE, largest, how)
    assert checked(nothing, "top", "USD", "bootstrap", 0) == missing()


def test_share_median_and_mean_by_hand():
    z = stats.norm.ppf(0.95)
    share = 3 / 8
    middle = (share + z**2 / 16) / (1 + z**2 / 8)
    half = z / (1 + z**2 / 8) * sqrt(share * (1 - share) / 8 + z**2 / 256)
    found = checked(ratios.share_figure("wins", 3, 8, LEVEL), "wins", "share", "Wilson", 8)
    assert found == pytest.approx([share, middle - half, middle + half])
    assert checked(ratios.share_figure("w", 0, 0, LEVEL), "w", "share", "Wilson", 0) == missing()
    # P(X <= 1) of 9 halves is 0.0195 and P(X <= 2) 0.0898: ranks 2 and 8 cover 96 %.
    found = checked(ratios.median_figure("mid", R, "USD", LEVEL), "mid", "USD", "ranks")
    assert found == [0.005, -0.02, 0.02]
    for level, ends in ((0.8, (-0.01, 0.015)), (0.98, (-0.04, 0.03))):
        other = ratios.median_figure("mid", R, "USD", level)
        assert (other.low, other.high) == ends
    few = ratios.median_figure("mid", R[:3], "USD", LEVEL)
    assert [few.value, few.low, few.high] == missing(0.02)
    assert checked(ratios.median_figure("m", NONE, "h", LEVEL), "m", "h", "ranks", 0) == missing()
    reach = T * sqrt(sum((r - MEAN) ** 2 for r in R) / (N - 1)) / sqrt(N)
    found = checked(ratios.mean_figure("mean", R, "USD", LEVEL), "mean", "USD", "Student")
    assert found == around(MEAN, reach)
    single = ratios.mean_figure("mean", R[:1], "USD", LEVEL)
    assert checked(single, "mean", "USD", "Student", 1) == missing(0.02)
    assert checked(ratios.mean_figure("m", NONE, "h", LEVEL), "m", "h", "Student", 0) == missing()
    pair = ratios.mean_figure("mean", R[:2], "USD", LEVEL)
    assert pair.high - pair.value == pytest.approx(stats.t.ppf(0.95, 1) * 0.03 / sqrt(2) / sqrt(2))
    assert checked(ratios.plain_figure("f", 3, 4, "USD"), "f", "USD", "fact", 4) == missing(3.0)
