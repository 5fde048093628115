"""Cases of ``tk.execution``."""

import numpy as np
import pandas as pd

from tests.analysis.examples import DAY, MONDAY, times
from tests.scale.case import Case, Frames, twice

NEEDED = {
    "fills": ("coin", "px", "sz", "side", "time", "crossed"),
    "prices": ("coin", "time", "mid_px"),
}


def trades(n: int) -> Frames:
    """Every hour a buy of 2 at 101; the mid is 100 a second before it and 102 a minute after."""
    at = MONDAY + 3_600_000 * np.arange(n)
    around = np.concatenate([at - 1000, at + 60_000])
    return {
        "fills": pd.DataFrame(
            {
                "coin": pd.array(["XYZ"] * n, dtype="str"),
                "px": 101.0,
                "sz": 2.0,
                "side": pd.array(["B"] * n, dtype="str"),
                "time": times(at),
                "crossed": np.arange(n) % 2 == 0,
            }
        ),
        "prices": pd.DataFrame(
            {
                "coin": pd.array(["XYZ"] * 2 * n, dtype="str"),
                "time": times(around),
                "mid_px": np.repeat([100.0, 102.0], n),
            }
        ),
    }


def quality_at_scale(frames: Frames, result: pd.DataFrame) -> None:
    """Each loses 1 USD on each of 2: 100 bps."""
    assert result["improvement_usd"].sum() == -2.0 * len(frames["fills"])
    assert np.allclose(result["improvement_bps"], -100)
    assert (result["covered"] == 1).all()


def markout_at_scale(frames: Frames, result: pd.DataFrame) -> None:
    """(102 - 101) / 101 a minute later; nothing is known ten seconds after."""
    assert result["n"].tolist() == [0, len(frames["fills"]) // 2] * 2
    assert np.allclose(result["estimate"].dropna(), 1e4 / 101)
    assert result["clusters"].max() == 1 + (len(frames["fills"]) - 1) * 3_600_000 // DAY


def spreads_at_scale(frames: Frames, result: pd.DataFrame) -> None:
    assert result["name"].tolist() == ["effective", "realised", "impact"] * 2
    assert np.allclose(result["estimate"], [100, -100, 200] * 2)


CASES = [
    Case(
        helper="execution.fill_quality",
        frames=trades,
        at_scale=quality_at_scale,
        needed=NEEDED,
        doubled=twice("fills", "volume_usd", "priced", "improvement_usd"),
        gives="pandas",
    ),
    Case(
        helper="execution.markout",
        frames=trades,
        arguments={"horizons": ["10s", "1m"]},
        at_scale=markout_at_scale,
        needed=NEEDED,
        doubled=twice("n", "missing", "usd"),
        gives="pandas",
        table=lambda result: result.params,
    ),
    Case(
        helper="execution.spreads",
        frames=trades,
        arguments={"horizon": "1m"},
        at_scale=spreads_at_scale,
        needed=NEEDED,
        doubled=twice("n", "missing", "usd"),
        gives="pandas",
        table=lambda result: result.params,
    ),
]
