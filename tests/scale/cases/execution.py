"""Cases of ``tk.execution``."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from tests.analysis.examples import DAY, MONDAY, times
from tests.scale.case import Case, Frames, same

NEEDED = {
    "fills": ("coin", "px", "sz", "side", "time", "crossed"),
    "prices": ("coin", "time", "mid_px"),
}


def trades(n: int) -> Frames:
    """Return an hourly buy of 2 at 101, with mid 100 a second before and 102 a minute after."""
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
                "tid": 1 + np.arange(n),
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
    """Each fill loses 1 USD for each of 2: 100 bps."""
    assert result["improvement_usd"].sum() == -2.0 * len(frames["fills"])
    assert np.allclose(result["improvement_bps"], -100)
    assert (result["covered"] == 1).all()


def markout_at_scale(frames: Frames, result: pd.DataFrame) -> None:
    """The markout is (102 - 101) / 101 after a minute and missing after ten seconds."""
    assert result["n"].tolist() == [0, len(frames["fills"]) // 2] * 2
    assert np.allclose(result["estimate"].dropna(), 1e4 / 101)
    assert result["clusters"].max() == 1 + (len(frames["fills"]) - 1) * 3_600_000 // DAY


def spreads_at_scale(frames: Frames, result: pd.DataFrame) -> None:
    assert result["name"].tolist() == ["effective", "realised", "impact"] * 2
    assert np.allclose(result["estimate"], [100, -100, 200] * 2)


def tape(n: int) -> Frames:
    """Return a trade of 2 every second: two buys at 100.01, two sells at 99.99, and so on."""
    bought = np.arange(n) % 4 < 2
    return {
        "fills": pd.DataFrame(
            {
                "coin": pd.array(["XYZ"] * n, dtype="str"),
                "px": np.where(bought, 100.01, 99.99),
                "sz": 2.0,
                "side": pd.array(np.where(bought, "B", "A"), dtype="str"),
                "time": times(MONDAY + 1000 * np.arange(n)),
                "crossed": True,
                "tx_index": 3,
                "tid": 1 + np.arange(n),
            }
        )
    }


def tape_as(name: str) -> Callable[[int], Frames]:
    def made(n: int) -> Frames:
        return {name: tape(n)["fills"]}

    return made


def quotes_at_scale(frames: Frames, result: pd.DataFrame) -> None:
    assert len(result) == len(frames["tape"])
    assert np.allclose(result["mid_px"], 100, rtol=0, atol=1e-6)
    assert np.allclose(result["ask_px"], 100.01, rtol=0, atol=1e-6)
    assert result["sell_age_seconds"].max() == 2


def tape_at_scale(frames: Frames, result: pd.DataFrame) -> None:
    """The half spread is 1 bps, all of it transitory."""
    assert result["n"].tolist() == [len(frames["fills"]) - 1] * 3
    assert np.allclose(result["estimate"], [1, 1, 0], rtol=0, atol=1e-6)


TAPE = ("coin", "px", "sz", "side", "time", "crossed")
CASES = [
    Case(
        helper="execution.quotes",
        frames=tape_as("tape"),
        at_scale=quotes_at_scale,
        needed={"tape": TAPE},
        doubled=same,
        gives="pandas",
    ),
    Case(
        helper="execution.spreads",
        frames=tape_as("fills"),
        at_scale=tape_at_scale,
        needed={"fills": TAPE},
        doubled=same,
        gives="pandas",
        table=lambda result: result.params,
        note="of the tape",
    ),
    Case(
        helper="execution.fill_quality",
        frames=trades,
        at_scale=quality_at_scale,
        needed=NEEDED,
        doubled=same,
        gives="pandas",
    ),
    Case(
        helper="execution.markout",
        frames=trades,
        arguments={"horizons": ["10s", "1m"]},
        at_scale=markout_at_scale,
        needed=NEEDED,
        doubled=same,
        gives="pandas",
        table=lambda result: result.params,
    ),
    Case(
        helper="execution.spreads",
        frames=trades,
        arguments={"horizon": "1m"},
        at_scale=spreads_at_scale,
        needed=NEEDED,
        doubled=same,
        gives="pandas",
        table=lambda result: result.params,
    ),
]
