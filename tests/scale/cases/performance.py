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


def figures(n):
    """Return one figure of n accounts, the last one the best."""
    k = np.arange(n)
    rows = table(
        n, user=addresses(k), figure="sharpe", value=1.0 * k, low=k - 0.25, high=k + 0.25, n=30
    )
    return {"figures": rows}


def two_halves(n):
    """Return 40 days of n // 40 accounts: account k earns k basis points a day, plus noise."""
    count = -(-n // 40)
    k, day = np.divmod(np.arange(n), 40)
    gain = np.where(day % 2 == 0, 0.01, -0.01) + 1e-4 * k / max(count, 1)
    return {"returns": table(n, user=addresses(k), time=times(DAY * day), return_=gain)}


CASES = [
    Case("performance.returns", curve, {"curve": "time flows equity"}, at_scale=returns_at_scale),
    Case(
        "performance.sheet",
        daily,
        {"returns": "time return_"},
        arguments={"draws": 20},
        most=100_000,
    ),
    Case(
        "performance.trip_sheet",
        trips,
        {"trips": "status net duration_hours closed"},
        most=100_000,
    ),
    Case(
        "performance.leaderboard", figures, {"figures": "user figure value low high n"}, most=2_000
    ),
    Case(
        "performance.skill",
        two_halves,
        {"returns": "user time return_"},
        table=lambda result: result.accounts,
        rows=240,
        most=100_000,
    ),
]
