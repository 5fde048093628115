"""Cases of ``tk.depth``."""

import numpy as np
import pandas as pd

from tests.analysis.examples import MONDAY, times
from tests.scale.case import Case, same

BANDS = np.array([10, 25, 50, 100, 200, 500])
EVERY = ("pandas", "polars", "polars lazy", "duckdb")
DEPTH = ("timestamp_ms", "dex", "coin", "bps", "bid_depth_usd", "ask_depth_usd")
QUARTER = 900_000


def batches(n):
    """Return rows: row k is band k mod 6 of batch k div 6; every 60th batch loses 3/4.

    Batches are ten seconds apart. Bids then regain half of the missing depth in 40 seconds; asks
    stay at twice the full bids.
    """
    k = np.arange(n)
    batch, band = k // 6, BANDS[k % 6]
    left = np.where(batch < 60, 0.0, 0.75 * 2.0 ** (-(batch % 60) * 10 / 40))
    return {
        "depth": pd.DataFrame(
            {
                "timestamp_ms": times(MONDAY + 10_000 * batch),
                "coin": pd.array(["XYZ"] * n, dtype="str"),
                "dex": pd.array(["hyperliquid"] * n, dtype="str"),
                "bps": band,
                "bid_depth_usd": (1e4 * band * (1 - left)).round(4),
                "ask_depth_usd": 2e4 * band,
            }
        )
    }


def profile_at_scale(frames, result):
    rows = result[(result["side"] == "ask")]
    assert rows["bps"].tolist() == BANDS.tolist()
    assert rows["q50"].tolist() == rows["mean_usd"].tolist() == (2e4 * BANDS).tolist()
    assert result["n"].sum() == 2 * len(frames["depth"])


def imbalance_at_scale(frames, result):
    """A full book has (1 - 2) / 3, the lowest one (1/4 - 2) / (9/4)."""
    assert len(result) == len(frames["depth"])
    assert abs(result["imbalance"].max() + 1 / 3) < 1e-6
    assert abs(result["imbalance"].min() + 7 / 9) < 1e-6


def resilience_at_scale(frames, result):
    row = result.set_index("name")
    assert abs(row.loc["half_life", "estimate"] - 40) < 0.1
    assert abs(row.loc["taken", "estimate"] - 0.75) < 0.01


def sampled(n):
    """Return depth of 1000 USD for each basis point; 3000 USD cost 3 to 4 bps."""
    k = np.arange(n)
    batch = k // 6
    moments = MONDAY + QUARTER * np.arange(max(1, n // 6) if n else 0)
    count = len(moments)
    return {
        "depth": pd.DataFrame(
            {
                "timestamp_ms": times(MONDAY + QUARTER * batch),
                "coin": pd.array(["XYZ"] * n, dtype="str"),
                "dex": pd.array(["hyperliquid"] * n, dtype="str"),
                "bps": BANDS[k % 6],
                "bid_depth_usd": 1e3 * BANDS[k % 6],
                "ask_depth_usd": 1e3 * BANDS[k % 6],
            }
        ),
        "samples": pd.DataFrame(
            {
                "timestamp": times(moments),
                "coin": pd.array(["XYZ"] * count, dtype="str"),
                "half_spread_bps": 1.0,
                "amount_usd": 3e4,
                "buy_slippage_bps": 15.0,
                "sell_slippage_bps": np.where(np.arange(count) % 2 == 0, 15.0, 40.0),
            }
        ),
    }


def consistency_at_scale(frames, result):
    """30,000 cost at most 24.2 bps: 10,000 at 10, 15,000 at 25, 5,000 at 50; 40 is impossible."""
    count = len(frames["samples"])
    assert len(result) == 2 * count
    assert (~result["consistent"]).sum() == count // 2
    assert abs(result["most_bps"].max() - 24.2) < 0.1


CASES = [
    Case(
        helper="depth.profile",
        frames=batches,
        at_scale=profile_at_scale,
        needed={"depth": ("dex", "coin", "bps", "bid_depth_usd", "ask_depth_usd")},
        doubled=same,
    ),
    Case(
        helper="depth.imbalance",
        frames=batches,
        at_scale=imbalance_at_scale,
        needed={"depth": DEPTH},
        doubled=same,
    ),
    Case(
        helper="depth.resilience",
        frames=batches,
        arguments={"bps": 10},
        at_scale=resilience_at_scale,
        needed={"depth": DEPTH},
        doubled=same,
        gives="pandas",
        table=lambda result: result.params,
        rows=1200,
    ),
    Case(
        helper="depth.consistency",
        frames=sampled,
        at_scale=consistency_at_scale,
        needed={
            "depth": DEPTH,
            "samples": (
                "timestamp",
                "coin",
                "amount_usd",
                "half_spread_bps",
                "buy_slippage_bps",
                "sell_slippage_bps",
            ),
        },
        doubled=same,
        gives="pandas",
    ),
]
