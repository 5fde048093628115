"""Cases of ``tk.depth``."""

import numpy as np

from tests.analysis.examples import MONDAY, times
from tests.scale.case import Case, table

BANDS = np.array([10, 25, 50, 100, 200, 500])
QUARTER = 900_000


def depth(n, time, band, bids, asks):
    return table(
        n,
        timestamp_ms=times(time),
        coin="XYZ",
        dex="hyperliquid",
        bps=band,
        bid_depth_usd=bids,
        ask_depth_usd=asks,
    )


def batches(n):
    """Return rows: row k is band k mod 6 of batch k div 6; every 60th batch loses 3/4.

    Batches are ten seconds apart. Bids then regain half of the missing depth in 40 seconds; asks
    stay at twice the full bids.
    """
    k = np.arange(n)
    batch, band = k // 6, BANDS[k % 6]
    left = np.where(batch < 60, 0.0, 0.75 * 2.0 ** (-(batch % 60) * 10 / 40))
    bids = (1e4 * band * (1 - left)).round(4)
    return {"depth": depth(n, MONDAY + 10_000 * batch, band, bids, 2e4 * band)}


def profile_at_scale(frames, result):
    rows = result[(result["side"] == "ask")]
    assert rows["bps"].tolist() == BANDS.tolist()
    assert rows["q50"].tolist() == rows["mean_usd"].tolist() == (2e4 * BANDS).tolist()
    assert result["n"].sum() == 2 * len(frames["depth"])


def sampled(n):
    """Return depth of 1000 USD for each basis point; 3000 USD cost 3 to 4 bps."""
    k = np.arange(n)
    band = BANDS[k % 6]
    count = max(1, n // 6) if n else 0
    samples = table(
        count,
        timestamp=times(MONDAY + QUARTER * np.arange(count)),
        coin="XYZ",
        half_spread_bps=1.0,
        amount_usd=3e4,
        buy_slippage_bps=15.0,
        sell_slippage_bps=np.where(np.arange(count) % 2 == 0, 15.0, 40.0),
    )
    books = depth(n, MONDAY + QUARTER * (k // 6), band, 1e3 * band, 1e3 * band)
    return {"depth": books, "samples": samples}


PROFILE = "dex coin bps bid_depth_usd ask_depth_usd"
DEPTH = f"timestamp_ms {PROFILE}"
SAMPLES = "timestamp coin amount_usd half_spread_bps buy_slippage_bps sell_slippage_bps"
CASES = [
    Case("depth.profile", batches, {"depth": PROFILE}, at_scale=profile_at_scale),
    Case("depth.imbalance", batches, {"depth": DEPTH}),
    Case("depth.resilience", batches, {"depth": DEPTH}, arguments={"bps": 10}, rows=1200),
    Case("depth.consistency", sampled, {"depth": DEPTH, "samples": SAMPLES}),
]
