"""Cases of ``tk.slippage``."""

import numpy as np
import pandas as pd

from tests.analysis.examples import MONDAY, times
from tests.scale.case import Case, Frames, twice

QUARTER = 900_000


def samples(n: int) -> Frames:
    """Row k: 1 to 10 bps in turn for each of two sizes; the tenth is too thin to buy."""
    k = np.arange(n)
    bps = 1.0 + k // 2 % 10
    return {
        "samples": pd.DataFrame(
            {
                "timestamp": times(MONDAY + QUARTER * (k // 2)),
                "dex": pd.array(["main"] * n, dtype="str"),
                "coin": pd.array(["XYZ"] * n, dtype="str"),
                "half_spread_bps": 0.5,
                "amount_usd": np.where(k % 2 == 0, 1e3, 1e6),
                "buy_slippage_bps": np.where(bps == 10, np.nan, bps),
                "sell_slippage_bps": bps,
            }
        )
    }


def curve_at_scale(frames: Frames, result: pd.DataFrame) -> None:
    each = len(frames["samples"]) // 2
    assert (result["n"] == each).all()
    assert result["missing"].tolist() == [each // 10, 0] * 2
    assert result["q50"].tolist() == [5.0] * 4
    assert result["q90"].tolist() == [9.0] * 4


CASES = [
    Case(
        helper="slippage.curve",
        frames=samples,
        at_scale=curve_at_scale,
        needed={
            "samples": (
                "coin",
                "amount_usd",
                "half_spread_bps",
                "buy_slippage_bps",
                "sell_slippage_bps",
            )
        },
        doubled=twice("n", "missing"),
    ),
]
