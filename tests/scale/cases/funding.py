"""Cases of ``tk.funding``."""

import numpy as np
import pandas as pd

from tests.analysis.examples import HOUR, MONDAY, times
from tests.scale.case import Case, Frames, twice


def payments(n: int) -> Frames:
    """Row k pays coin k mod 3: +1, -2, +3 hundredths in turn, one an hour."""
    k = np.arange(n)
    return {
        "funding": pd.DataFrame(
            {
                "user": pd.array(np.array(["0xa", "0xb"])[k % 2], dtype="str"),
                "coin": pd.array(np.array(["BTC", "ETH", "flx:TSLA"])[k % 3], dtype="str"),
                "time": times(MONDAY + HOUR * (k % 24)),
                "usdc": np.array([0.01, -0.02, 0.03])[k % 3],
            }
        )
    }


def sums_at_scale(frames: Frames, result: pd.DataFrame) -> None:
    n = len(frames["funding"])
    rows = result.set_index("coin")
    for place, (coin, each) in enumerate((("BTC", 0.01), ("ETH", -0.02), ("flx:TSLA", 0.03))):
        count = (n - place + 2) // 3
        assert rows.loc[coin, "payments"] == count
        assert abs(rows.loc[coin, "net"] - each * count) < 1e-6


CASES = [
    Case(
        helper="funding.sums",
        frames=payments,
        at_scale=sums_at_scale,
        needed={"funding": ("coin", "time", "usdc")},
        doubled=twice("paid", "received", "net", "payments"),
    ),
    Case(
        helper="funding.sums",
        note="by day and dex",
        arguments={"by": ["day", "dex"]},
        frames=payments,
        at_scale=lambda frames, result: _all_rows(frames["funding"], result),
        needed={"funding": ("coin", "time", "usdc")},
        doubled=twice("paid", "received", "net", "payments"),
    ),
]


def _all_rows(rows: pd.DataFrame, result: pd.DataFrame) -> None:
    assert result["payments"].sum() == len(rows)
