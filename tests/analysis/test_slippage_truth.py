"""Coverage of slippage intervals, on laws and on the simulated exchange.

In simulated books, depth grows with distance to the power of 3/2, so cost grows with size to the
power of `SLIPPAGE_EXPONENT` = 2/3. They have whole ticks, seventeen levels and an end, so a fit
without noise differs from that in the third decimal, by market and price path. The true value
here is therefore the mean over other books on the same prices.
"""

import numpy as np
import pandas as pd
from scipy import stats

from tests.analysis.interval_coverage import hold_share
from tests.worlds import SLIPPAGE_EXPONENT
from toolkit.contract.requests import AMOUNTS
from toolkit.rules.slippage import average_prices
from toolkit.simulation.engine.prices import simulate_prices
from toolkit.simulation.markets import PERPS
from toolkit.simulation.output.depth import draw_books
from toolkit.slippage import cost, fit

from .examples import DAY
from .test_slippage_fit import SIZES, books, samples_of

LEVEL = 0.9
SEEDS = 6
DAYS = 7
MINUTE = 60_000
COINS = ("FARTCOIN", "PURR")
"""Markets whose best price cannot fill the smallest sampled size; PURR misses the largest."""


def holds(hits, of, level=LEVEL):
    """Return whether the number of hits is within 99.8 % of the binomial distribution."""
    low, high = stats.binom.ppf([0.001, 0.999], of, level)
    return bool(low <= hits <= high)


def covered(params, name, truth):
    rows = params[params["name"] == name]
    return int(((rows["low"] <= truth) & (truth <= rows["high"])).sum())


def test_interval_coverage_of_laws():
    """The law has half spread 1, a 10, k 0.6; days and books scatter, and costs are rounded.

    They scatter by 0.2 each, so the mean cost is the law times exp(0.2**2 / 2) twice.
    """
    exponents = costs = 0
    seeds = 30
    truth = (1 + 10 * (SIZES[3] / 1e5) ** 0.6) * np.exp(0.2**2)
    for seed in range(seeds):
        rows = books(12, sigma=0.2, day_sigma=0.2, seed=seed).assign(sell_slippage_bps=np.nan)
        found = fit(rows, level=LEVEL, draws=299)
        exponents += covered(found.params[found.params["side"] == "buy"], "k", 0.6)
        paid = cost(found, SIZES[3], side="buy", level=LEVEL).iloc[0]
        costs += int(paid["low"] <= truth <= paid["high"])
    assert holds(exponents, seeds), exponents
    assert holds(costs, seeds), costs


def test_asymmetry_interval_coverage():
    """A planted difference of both sides, with days and books that scatter."""
    samples = 100
    assert holds(round(samples * hold_share("asymmetry", samples)), samples, level=0.95)


def alike(seed, days=120, kept=0.6):
    """Return one book for each day: half spread 1, a 10, k 0.6, times an autocorrelated factor.

    Its logarithm is 0.2 times a standard normal with autocorrelation `kept`.
    """
    rng = np.random.default_rng(seed)
    effect, effects = float(rng.normal()), []
    for shock in rng.normal(size=days) * np.sqrt(1 - kept**2):
        effect = kept * effect + shock
        effects.append(effect)
    sizes = np.array([1e3, 1e4, 1e5, 1e6])
    bps = np.exp(0.2 * np.array(effects))[:, None] * (1 + 10 * (sizes / 1e5) ** 0.6)
    ms = DAY * np.repeat(np.arange(days), len(sizes))
    return samples_of(ms, np.tile(sizes, days), bps.round(2).ravel(), np.nan)


def test_only_long_blocks_cover_similar_days():
    """With single days the coverage is far too low; with blocks of ten days it is as stated.

    The mean cost of 100,000 USD is 11 * exp(0.2**2 / 2).
    """
    seeds = 20
    held = {(block, what): 0 for block in (1, 10) for what in ("a", "cost")}
    for seed in range(seeds):
        rows = alike(seed)
        for block in (1, 10):
            fitted = fit(rows, level=LEVEL, draws=199, seed=seed, block_days=block)
            held[block, "a"] += covered(fitted.params, "a", 10.0)
            paid = cost(fitted, 1e5, side="buy", level=LEVEL)
            truth = 11 * np.exp(0.02)
            held[block, "cost"] += int(paid["low"].iloc[0] <= truth <= paid["high"].iloc[0])
    for what in ("a", "cost"):
        assert holds(held[10, what], seeds), held
        assert not holds(held[1, what], seeds), held


def samples(prices, seed, coin):
    """Return samples of a coin's books from the simulated exchange; `seed` draws the books."""
    index = [perp.coin for perp in PERPS].index(coin)
    minutes = np.arange(0, 24 * 60 * DAYS, 15)
    ladders = draw_books(seed, prices, index, minutes)
    half = hundredths(ladders.ask_px[:, 0] / ladders.mid - 1)
    frames = []
    for usd in AMOUNTS:
        buys = average_prices(ladders.ask_px, ladders.ask_sz, usd) / ladders.mid - 1
        sells = 1 - average_prices(ladders.bid_px, ladders.bid_sz, usd) / ladders.mid
        costs = hundredths(buys), hundredths(sells)
        frames.append(samples_of(MINUTE * minutes, float(usd), *costs, half, coin))
    return pd.concat(frames, ignore_index=True)


def hundredths(share):
    return np.floor(share * 1e6 + 0.5) / 100


def exponents(prices, seed, draws):
    rows = pd.concat([samples(prices, seed, coin) for coin in COINS], ignore_index=True)
    table = fit(rows, level=LEVEL, draws=draws).params
    return table[table["name"] == "k"].set_index(["coin", "side"])


def test_intervals_contain_simulated_exponents():
    hits, truths = 0, []
    for seed in range(SEEDS):
        prices = simulate_prices(seed, 24 * DAYS)
        found = exponents(prices, seed, 399)
        others = [exponents(prices, 1000 + 10 * seed + n, 1)["estimate"] for n in range(3)]
        truth = sum(others) / len(others)
        truths.append(truth)
        hits += int(((found["low"] <= truth) & (truth <= found["high"])).sum())
    assert holds(hits, SEEDS * 2 * len(COINS)), hits
    # The exponent of the simulation: two thirds.
    assert (abs(pd.concat(truths) - SLIPPAGE_EXPONENT) < 0.015).all()
