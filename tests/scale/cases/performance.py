"""Cases of ``tk.performance``."""

import numpy as np
import pandas as pd

from tests.analysis.examples import ME, MONDAY, times
from tests.scale.case import Case, same

HOUR = 3_600_000
DAY = 24 * HOUR


def curve(n):
    """Return an hourly curve that earns 1 USD an hour, with a deposit of 24 each midnight."""
    k = np.arange(n)
    flows = 1000.0 + 24.0 * (k // 24)
    return pd.DataFrame(
        {"time": times(MONDAY + HOUR * (k + 1)), "flows": flows, "equity": flows + k + 1.0}
    )


def returns_at_scale(frames, result):
    n = len(frames["curve"])
    assert len(result) == -(-n // 24)
    assert result["gain"].sum() == n
    assert result["flows"].sum() == 1000.0 + 24.0 * ((n - 1) // 24)
    assert (result["gain"].iloc[1:-1] == 24.0).all()


def daily(n):
    """Return days that alternate between 2 % and -1 %."""
    k = np.arange(n)
    return pd.DataFrame({"time": times(DAY * k), "return_": np.where(k % 2 == 0, 0.02, -0.01)})


def sheet_at_scale(frames, result):
    n = len(frames["returns"])
    found = result.set_index("figure")["value"]
    spread = 0.015 * np.sqrt(n / (n - 1))
    assert np.isclose(found["volatility"], spread * np.sqrt(365))
    assert np.isclose(found["sharpe"], 0.005 / spread * np.sqrt(365))
    assert np.isclose(found["max_drawdown"], -0.01)
    assert found["positive"] == 0.5
    assert (result["n"] == n).all()


def trips(n):
    """Return trips that win 3 and lose 1 USD by turns."""
    k = np.arange(n)
    return pd.DataFrame(
        {
            "user": pd.array([ME] * n, dtype="str"),
            "status": pd.array(["closed"] * n, dtype="str"),
            "net": np.where(k % 2 == 0, 3.0, -1.0),
            "duration_hours": 1.0 + k % 3,
            "opened": times(MONDAY + HOUR * k),
            "closed": times(MONDAY + HOUR * (k + 1)),
        }
    )


def trips_at_scale(frames, result):
    found = result.set_index("figure")["value"]
    assert found["trips"] == len(frames["trips"])
    assert found["win_rate"] == 0.5
    assert found["payoff_ratio"] == found["profit_factor"] == 3.0
    assert np.isclose(found["expectancy"], 1.0)
    assert found["median_hours"] == 2.0


def figures(n):
    """Return one figure of n accounts, the last one the best."""
    k = np.arange(n)
    return pd.DataFrame(
        {
            "user": pd.array([f"0x{each:040x}" for each in k], dtype="str"),
            "figure": pd.array(["sharpe"] * n, dtype="str"),
            "value": 1.0 * k,
            "low": k - 0.25,
            "high": k + 0.25,
            "n": 30,
        }
    )


def two_halves(n):
    """Return 40 days of n // 40 accounts: account k earns k basis points a day, plus noise."""
    count = -(-n // 40)
    k, day = np.divmod(np.arange(n), 40)
    return pd.DataFrame(
        {
            "user": pd.array([f"0x{each:040x}" for each in k], dtype="str"),
            "time": times(DAY * day),
            "return_": np.where(day % 2 == 0, 0.01, -0.01) + 1e-4 * k / max(count, 1),
        }
    )


def skill_at_scale(frames, result):
    n = len(frames["returns"]) // 40
    assert (result["rank"] == np.arange(1, n + 1)).all()
    assert (result["n"] == 40).all()
    assert (result["value"].diff().dropna() < 0).all()
    assert result["user"].iloc[0] == f"0x{n - 1:040x}"


def leaderboard_at_scale(frames, result):
    n = len(frames["figures"])
    assert result["value"].tolist() == [1.0 * each for each in range(n - 1, -1, -1)]
    assert (result["rank"] == np.arange(1, n + 1)).all()
    assert (result["overlaps"] == 0).all()


CASES = [
    Case(
        helper="performance.returns",
        frames=lambda n: {"curve": curve(n)},
        at_scale=returns_at_scale,
        needed={"curve": ("time", "flows", "equity")},
        doubled=same,
    ),
    Case(
        helper="performance.sheet",
        frames=lambda n: {"returns": daily(n)},
        arguments={"draws": 20},
        at_scale=sheet_at_scale,
        needed={"returns": ("time", "return_")},
        doubled=same,
        most=100_000,
    ),
    Case(
        helper="performance.trip_sheet",
        frames=lambda n: {"trips": trips(n)},
        arguments={"draws": 20},
        at_scale=trips_at_scale,
        needed={"trips": ("status", "net", "duration_hours", "closed")},
        doubled=same,
        most=100_000,
    ),
    Case(
        helper="performance.leaderboard",
        frames=lambda n: {"figures": figures(n)},
        at_scale=leaderboard_at_scale,
        needed={"figures": ("user", "figure", "value", "low", "high", "n")},
        doubled=same,
        most=2_000,
    ),
    Case(
        helper="performance.skill",
        frames=lambda n: {"returns": two_halves(n)},
        at_scale=skill_at_scale,
        needed={"returns": ("user", "time", "return_")},
        doubled=same,
        gives="pandas",
        table=lambda result: result.accounts,
        rows=240,
        most=100_000,
    ),
]
