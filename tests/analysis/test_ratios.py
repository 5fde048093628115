"""Figures of one short series of returns, computed again from their definitions."""

from itertools import pairwise
from math import comb, exp, log, sqrt

import numpy as np
import pytest
from scipy import stats

from toolkit.performance import _ratios as ratios
from toolkit.statistics import Sampling, bootstrap_interval, draw_blocks

R = np.array([0.02, -0.01, 0.03, 0.005, -0.04, 0.01, 0.0, 0.015, -0.02])
N, MEAN = 9, 0.01 / 9
LEVEL, YEAR = 0.9, 365.0
T = stats.t.ppf(0.95, N - 1)
NAN = float("nan")
NONE = np.array([])


def error_of(terms):
    """Return the error of a mean of an autoregression, at least that of independent terms."""
    n, mean = len(terms), sum(terms) / len(terms)
    off = [term - mean for term in terms]
    total = sum(x * x for x in off)
    found = sum(x * y for x, y in pairwise(off)) / total
    r = min(max(found + (1 + 3 * found) / n, 0), 0.9)
    rest = [y - r * x for x, y in pairwise(off)]
    centre = sum(rest) / (n - 1)
    left = sum((x - centre) ** 2 for x in rest) / (n - 2) / (1 - r) ** 2
    return sqrt(max(total / (n - 1), left) / n)


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
    deepest = 1 - 0.96 * 1.01 * 1.015 * 0.98  # from the high after 0.005

    def deepest_of(values, lengths=None):
        lengths = np.ones(len(values)) if lengths is None else np.array(lengths)
        falls, below = ratios.drawdowns(np.array(values), np.append(0.0, np.cumsum(lengths)))
        return falls.min(initial=0), below.max(initial=0)

    assert deepest_of(R) == (pytest.approx(-max(0.04, deepest)), 5)
    assert deepest_of([0.1, -0.1, 0.2]) == (pytest.approx(-0.1), 2)
    assert deepest_of([0.1, -0.1, 0.2], [3, 5, 20]) == (pytest.approx(-0.1), 25)
    assert deepest_of([0.1, 0.0, 0.2]) == (0, 0)
    assert deepest_of([-0.1]) == (pytest.approx(-0.1), 1)
    assert deepest_of([]) == (0, 0)


def test_sharpe_and_its_errors():
    spread = sqrt(sum((r - MEAN) ** 2 for r in R) / (N - 1))
    ratio = MEAN / spread
    assert ratios.sharpe_ratio(R) == pytest.approx(ratio)
    whole = sqrt(sum((r - MEAN) ** 2 for r in R) / N)
    z = [(r - MEAN) / whole for r in R]
    error = error_of([x - ratio / 2 * (x**2 - 1) for x in z])
    assert ratios.sharpe_error(R) == pytest.approx(error)
    found = checked(ratios.sharpe_figure(R, YEAR, LEVEL), "sharpe", "ratio", "AR(1)")
    assert found == around(ratio * sqrt(YEAR), T * error * sqrt(YEAR))
    pair = ratios.sharpe_figure(R[:2], YEAR, LEVEL)
    assert pair.value == pytest.approx(0.005 / (0.03 / sqrt(2)) * sqrt(YEAR))
    # Equal returns have no ratio, also if they differ by rounding.
    for same in (np.zeros(4), np.full(4, 0.004), 0.004 + 1e-11 * R[:4]):
        flat = ratios.sharpe_figure(same, YEAR, LEVEL)
        assert checked(flat, "sharpe", "ratio", "AR(1)", 4) == missing()
        assert ratios.volatility_figure(same, YEAR, LEVEL).value == 0
    assert np.isnan([ratios.sharpe_error(R[:1]), ratios.sharpe_ratio(R[:1])]).all()


def test_luck_by_hand():
    """Gains are 0.08 and losses 0.07; there are three losses."""
    terms = [max(r, 0) * N / 0.08 - max(-r, 0) * N / 0.07 for r in R]
    log_ratio, error, degrees = ratios.gains_over_losses(R)
    assert (log_ratio, degrees) == (pytest.approx(log(8 / 7)), 3)
    assert error == pytest.approx(error_of(terms))
    p = stats.t.sf(log(8 / 7) / error_of(terms), 3)
    assert ratios.luck_probability(R) == pytest.approx(p)
    assert ratios.luck_probability(-R) == pytest.approx(1 - p)
    for unknown in (np.abs(R), -np.abs(R), R[:2], NONE):
        assert np.isnan(ratios.luck_probability(unknown))


def test_long_run_error_by_hand():
    for values in (R, R[:3], np.sin(np.arange(273.0)), np.cumsum(R), np.tile([1.0, -1.0], 6)):
        assert ratios.long_run_error(values) == pytest.approx(error_of(values.tolist()))
    assert np.isnan(ratios.long_run_error(R[:2]))
    assert ratios.long_run_error(np.ones(5)) == 0


def test_annual_return_and_volatility_by_hand():
    growth = float(np.prod(1 + R))
    logs = [log(1 + r) for r in R]
    reach = T * error_of(logs)
    middle = sum(logs) / N
    years = np.full(N, 1 / YEAR)
    figure = ratios.annual_return_figure(R, years, LEVEL)
    wanted = [growth ** (YEAR / N), exp(YEAR * (middle - reach)), exp(YEAR * (middle + reach))]
    found = checked(figure, "annual_return", "share", "AR(1)")
    assert found == pytest.approx([each - 1 for each in wanted])
    part = ratios.annual_return_figure(R[:2], np.array([0.25, 0.5]), LEVEL)
    assert part.value == pytest.approx((1.02 * 0.99) ** (1 / 0.75) - 1)
    lost = ratios.annual_return_figure(np.array([0.1, -1.0]), years[:2], LEVEL)
    assert [lost.value, lost.low, lost.high] == missing(-1.0)
    spread = sqrt(sum((r - MEAN) ** 2 for r in R) / (N - 1)) * sqrt(YEAR)
    squares = [(r - MEAN) ** 2 for r in R]
    terms = [square / (sum(squares) / N) / 2 for square in squares]
    factor = exp(T * error_of(terms))
    found = checked(ratios.volatility_figure(R, YEAR, LEVEL), "volatility", "share", "AR(1)")
    assert found == pytest.approx([spread, spread / factor, spread * factor])
    wide = ratios.volatility_figure(R[:3], YEAR, 1 - 1e-9)
    assert (wide.low, wide.high) == (0, float("inf"))
    flat = ratios.volatility_figure(np.zeros(4), YEAR, LEVEL)
    assert checked(flat, "volatility", "share", "AR(1)", 4) == missing(0.0)
    single = ratios.volatility_figure(R[:1], YEAR, LEVEL)
    assert checked(single, "volatility", "share", "AR(1)", 1) == missing()
    pair = ratios.volatility_figure(R[:2], YEAR, LEVEL)
    assert pair.value == pytest.approx(0.03 / sqrt(2) * sqrt(YEAR))


def test_sortino_figure_by_hand():
    down = sqrt((0.01**2 + 0.04**2 + 0.02**2) / N)
    ratio = MEAN / down
    terms = [r / down - ratio / 2 * (min(r, 0) ** 2 / down**2 - 1) for r in R]
    reach = T * error_of(terms) * sqrt(YEAR)
    found = checked(ratios.sortino_figure(R, YEAR, LEVEL), "sortino", "ratio", "AR(1)")
    assert found == around(ratio * sqrt(YEAR), reach)
    never = ratios.sortino_figure(np.array([0.0, 0.1]), YEAR, LEVEL)
    assert checked(never, "sortino", "ratio", "AR(1)", 2) == missing()


def test_value_at_risk_is_between_ranks():
    values = np.arange(200.0)[::-1] / 1000 - 0.1
    figure = ratios.quantile_figure("value_at_risk", values, 0.05, "share", LEVEL)
    ranks = sorted(values)
    below = sum(comb(200, k) * 0.05**k * 0.95 ** (200 - k) for k in range(6))
    assert below >= 0.05 > below - comb(200, 5) * 0.05**5 * 0.95**195  # 5 is the 5 % quantile
    wanted = [float(np.quantile(values, 0.05)), ranks[4], ranks[15]]
    assert checked(figure, "value_at_risk", "share", "ranks", 200) == pytest.approx(wanted)
    few = ratios.quantile_figure("value_at_risk", R, 0.05, "share", LEVEL)
    assert [few.value, few.low, few.high] == missing(float(np.quantile(R, 0.05)))
    whole = ratios.quantile_figure("middle", R, 0.5, "share", 0.98)
    assert [whole.low, whole.high] == [-0.04, 0.03]
    half = ratios.quantile_figure("middle", R, 0.5, "share", 0.8)
    assert [half.value, half.low, half.high] == pytest.approx([0.005, sorted(R)[2], sorted(R)[6]])


def test_expected_shortfall_by_hand():
    how = Sampling(LEVEL, 200, 3)
    few = ratios.expected_shortfall_figure(R, how)
    assert checked(few, "expected_shortfall", "share", "bootstrap") == missing(-0.04)
    assert ratios.expected_shortfall_figure(R, how, 0.25).value == pytest.approx(-0.07 / 3)
    values = np.sin(np.arange(981.0)) / 50
    assert ratios.expected_shortfall_figure(values[:980], how).high != few.high
    assert np.isnan(ratios.expected_shortfall_figure(values[:980], how).low)
    many = ratios.expected_shortfall_figure(values, how)
    worst = float(np.sort(values)[:50].mean())
    assert many.value == pytest.approx(worst)
    places = draw_blocks(np.random.default_rng(3), 200, 981, 10)
    draws = np.sort(values[places], axis=1)[:, :50].mean(axis=1)
    assert (many.low, many.high) == bootstrap_interval(draws, 99, LEVEL)
    assert many.low < worst < many.high
    assert checked(many, "expected_shortfall", "share", "bootstrap", 981)[0] == many.value


def test_share_and_median_by_hand():
    z = stats.norm.ppf(0.95)
    share = 3 / 8
    middle = (share + z**2 / 16) / (1 + z**2 / 8)
    half = z / (1 + z**2 / 8) * sqrt(share * (1 - share) / 8 + z**2 / 256)
    found = checked(ratios.share_figure("wins", 3, 8, LEVEL), "wins", "share", "Wilson", 8)
    assert found == pytest.approx([share, middle - half, middle + half])
    assert checked(ratios.share_figure("w", 0, 0, LEVEL), "w", "share", "Wilson", 0) == missing()
    # P(X <= 1) of 9 halves is 0.0195 and P(X <= 2) 0.0898: ranks 2 and 8 cover 96 %.
    found = checked(ratios.quantile_figure("mid", R, 0.5, "USD", LEVEL), "mid", "USD", "ranks")
    assert found == [0.005, -0.02, 0.02]
    for level, ends in ((0.8, (-0.01, 0.015)), (0.98, (-0.04, 0.03))):
        other = ratios.quantile_figure("mid", R, 0.5, "USD", level)
        assert (other.low, other.high) == ends
    few = ratios.quantile_figure("mid", R[:3], 0.5, "USD", LEVEL)
    assert [few.value, few.low, few.high] == missing(0.02)
    assert (
        checked(ratios.quantile_figure("m", NONE, 0.5, "h", LEVEL), "m", "h", "ranks", 0)
        == missing()
    )
    assert checked(ratios.plain_figure("f", 3, 4, "USD"), "f", "USD", "fact", 4) == missing(3.0)
