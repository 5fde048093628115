"""Simulated markets resemble real ones, within wide bands."""

import numpy as np
import pytest

from tests.worlds import SLIPPAGE_EXPONENT
from toolkit.contract.requests import AMOUNTS
from toolkit.rules.slippage import average_prices
from toolkit.simulation.agents.population import draw_accounts
from toolkit.simulation.engine.prices import simulate_prices
from toolkit.simulation.markets import PERPS
from toolkit.simulation.output.depth import draw_books

HOURS = 720


@pytest.fixture(scope="module", params=[7, 8])
def prices(request):
    return simulate_prices(request.param, HOURS)


@pytest.fixture(scope="module")
def hourly_returns(prices):
    """Return hourly returns, with one row for each perp."""
    return np.diff(np.log(prices.mid[:, ::60]), axis=1)


def lagged_correlation(series, lag):
    return float(np.corrcoef(series[lag:], series[:-lag])[0, 1])


def test_returns_have_fat_tails(hourly_returns):
    centred = hourly_returns - hourly_returns.mean(axis=1, keepdims=True)
    kurtosis = (centred**4).mean(axis=1) / (centred**2).mean(axis=1) ** 2
    assert 4 < np.median(kurtosis) < 40
    assert (kurtosis > 3).mean() > 0.9


def test_only_volatility_clusters(hourly_returns):
    sizes = np.mean(
        [[lagged_correlation(np.abs(row), lag) for lag in range(1, 6)] for row in hourly_returns]
    )
    signs = np.mean(
        [[lagged_correlation(row, lag) for lag in range(1, 6)] for row in hourly_returns]
    )
    assert sizes > 0.08
    assert abs(signs) < 0.05


def test_coins_move_together(hourly_returns):
    native = [number for number, perp in enumerate(PERPS) if not perp.dex][:8]
    together = np.corrcoef(hourly_returns[native])
    assert 0.25 < np.median(together[np.triu_indices(len(native), 1)]) < 0.9


def test_thin_markets_have_wider_spreads(prices):
    depth = np.array([perp.depth_usd for perp in PERPS])
    order = np.argsort(depth)
    spreads = prices.half_spread_bps.mean(axis=1)[order]
    ranks = np.argsort(np.argsort(spreads))
    assert np.corrcoef(ranks, np.arange(len(ranks)))[0, 1] < -0.9


def test_spreads_widen_in_stress(prices):
    for spread, stress in zip(prices.half_spread_bps, prices.stress, strict=True):
        assert np.corrcoef(spread, stress)[0, 1] > 0.5
    night = np.arange(HOURS + 1) % 24 < 6
    assert (
        prices.half_spread_bps[:, night].mean(axis=1)
        > prices.half_spread_bps[:, ~night].mean(axis=1)
    ).mean() > 0.8


def test_slippage_is_concave_in_size(prices):
    """Beyond the half spread, the cost grows like size to the power of `SLIPPAGE_EXPONENT`."""
    minutes = np.arange(0, HOURS * 60, 240)
    exponents = []
    for coin in range(8):
        books = draw_books(7, prices, coin, minutes)
        usd = [size for size in AMOUNTS if size > PERPS[coin].depth_usd]
        prices_paid = [average_prices(books.ask_px, books.ask_sz, size) for size in usd]
        costs = [float(np.nanmean(px / books.ask_px[:, 0])) - 1 for px in prices_paid]
        if len(usd) > 2:
            exponents.append(float(np.polyfit(np.log(usd), np.log(costs), 1)[0]))
    assert np.median(exponents) == pytest.approx(SLIPPAGE_EXPONENT, abs=0.1)
    assert max(exponents) < 1


def test_funding_is_mostly_positive(prices):
    rates = prices.rate / 1e10
    assert 0.55 < (rates > 0).mean() < 0.99
    assert np.abs(rates).max() <= 0.005
    assert len(np.unique(rates)) > 1_000


def test_deposits_have_pareto_tail():
    """Hill's estimate from the largest fifth of first deposits, drawn with exponent 4/3."""
    funds = np.concatenate(
        [[a.funds for a in draw_accounts(seed, 0, 242, 5)] for seed in range(8)]
    ).astype(float)
    tail = np.sort(funds)[-len(funds) // 5 :]
    assert 1.0 < 1 / np.log(tail / tail[0])[1:].mean() < 1.8
