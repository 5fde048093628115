"""Coverage of the half-life's interval on the simulated exchange."""

from dataclasses import replace

import msgspec
import numpy as np
import pandas as pd
from scipy import stats

from toolkit.depth import resilience
from toolkit.simulation.output import live_state

from .examples import times

LEVEL = 0.9
SEEDS = 40
COINS = ("BTC", "SUI")
BPS = 100


def batches(exchange, start, seconds, step):
    rows = [
        (
            batch.timestamp_ms,
            market.dex,
            market.coin,
            level.bps,
            level.bid_depth_usd,
            level.ask_depth_usd,
        )
        for second in range(0, seconds, step)
        for batch in [exchange.depth(start + 1000 * second)]
        for market in batch.data
        for level in market.levels
        if level.bps == BPS
    ]
    names = ["timestamp_ms", "dex", "coin", "bps", "bid_depth_usd", "ask_depth_usd"]
    frame = pd.DataFrame(rows, columns=names)
    return frame.assign(timestamp_ms=times(frame["timestamp_ms"]))


def test_half_life_interval_coverage(world):
    """An hour of two markets, with a batch every five seconds, has eleven shocks."""
    last = world.sources.depth
    few = msgspec.structs.replace(
        last, data=[market for market in last.data if market.coin in COINS]
    )
    sources = replace(world.sources, depth=few)
    hits, found = 0, []
    for seed in range(SEEDS):
        rows = batches(
            live_state.LiveExchange(seed, sources), sources.now_ms, 6 * live_state.SHOCK_SECONDS, 5
        )
        result = resilience(rows, BPS, level=LEVEL, draws=399)
        assert result.n == 11
        row = result.params.set_index("name").loc["half_life"]
        hits += row["low"] <= live_state.DEPTH_HALF_LIFE_SECONDS <= row["high"]
        found.append(row["estimate"])
    low, high = stats.binom.ppf([0.001, 0.999], SEEDS, LEVEL)
    assert low <= hits <= high, hits
    error = np.std(found) / np.sqrt(SEEDS)
    assert abs(np.mean(found) - live_state.DEPTH_HALF_LIFE_SECONDS) < 4 * error
