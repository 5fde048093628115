"""Cases of ``tk.performance``."""

import numpy as np

from tests.analysis.examples import DAY, HOUR, ME, MONDAY, times
from tests.scale.case import Case, addresses, table


def curve(n):
    """Return an hourly curve that earns 1 USD an hour, with a deposit of 24 each midnight."""
    k = np.arange(n)
    flows = 1000.0 + 24.0 * (k // 24)
    rows = table(n, time=times(MONDAY + HOUR * (k + 1)), flows=flows, equity=flows + k + 1.0)
    return {"curve": rows}


def returns_at_scale(frames, result):
    n = len(frames["curve"])
    assert len(result) == -(-n // 24)
    assert result["gain"].sum() == n
    assert result["flows"].sum() == 1000.0 + 24.0 * ((n - 1) // 24)
    assert (result["gain"].iloc[1:-1] == 24.0).all()


def daily(n):
    """Return days that alternate between 2 % and -1 %."""
    k = np.arange(n)
    rows = table(n, time=times(DAY * k), return_=np.where(k % 2 == 0, 0.02, -0.01))
    return {"returns": rows}


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
    rows = table(
        n,
        user=ME,
        status="closed",
        net=np.where(k % 2 == 0, 3.0, -1.0),
        duration_hours=1.0 + k % 3,
        opened=times(MONDAY + HOUR * k),
        closed=times(MONDAY + HOUR * (k + 1)),
    )
    return {"trips": rows}


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
    rows = table(
        n, user=addresses(k), figure="sharpe", value=1.0 * k, low=k - 0.25, high=k + 0.25, n=30
    )
    return {"figures": rows}


def leaderboard_at_scale(frames, result):
    n = len(frames["figures"])
    assert result["value"].tolist() == [1.0 * each for each in range(n - 1, -1, -1)]
    assert (result["rank"] == np.arange(1, n + 1)).all()
    assert (result["overlaps"] == 0).all()


def two_halves(n):
    """Return 40 days of n // 40 accounts: account k earns k basis points a day, plus noise."""
    count = -(-n // 40)
    k, day = np.divmod(np.arange(n), 40)
    gain = np.where(day % 2 == 0, 0.01, -0.01) + 1e-4 * k / max(count, 1)
    return {"returns": table(n, user=addresses(k), time=times(DAY * day), return_=gain)}


def skill_at_scale(frames, result):
    n = len(frames["returns"]) // 40
    assert (result["rank"] == np.arange(1, n + 1)).all()
    assert (result["n"] == 40).all()
    assert (result["value"].diff().dropna() < 0).all()
    assert result["user"].iloc[0] == f"0x{n - 1:040x}"


CASES = [
    Case("performance.returns", curve, returns_at_scale, {"curve": "time flows equity"}),
    Case(
        "performance.sheet",
        daily,
        sheet_at_scale,
        {"returns": "time return_"},
        arguments={"draws": 20},
        most=100_000,
    ),
    Case(
        "performance.trip_sheet",
        trips,
        trips_at_scale,
        {"trips": "status net duration_hours closed"},
        arguments={"draws": 20},
        most=100_000,
    ),
    Case(
        "performance.leaderboard",
        figures,
        leaderboard_at_scale,
        {"figures": "user figure value low high n"},
        most=2_000,
    ),
    Case(
        "performance.skill",
        two_halves,
        skill_at_scale,
        {"returns": "user time return_"},
        table=lambda result: result.accounts,
        rows=240,
        most=100_000,
    ),
]
