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


def vault_history(n):
    """Return the hours of a vault that gains 1 USD on 100 by turns and pays it out."""
    k = np.arange(n)
    rows = table(
        n, period="allTime", time=times(HOUR * k), account_value=100.0 + k % 2, pnl=(k + 1) // 2
    )
    return {"portfolio": rows}


def vault_flows(n):
    """Return deposits of 1 USD an hour into one vault, which are worth 10 % more now."""
    return {
        "ledger": table(
            n,
            type="vaultDeposit",
            time=times(HOUR * np.arange(n)),
            vault=ME,
            usdc=1.0,
            hash=addresses(np.arange(n)),
        ),
        "followers": table(1, user=addresses([7]), vault_equity=1.1 * n),
        "vault": table(1, vault_address=ME, leader=addresses([8])),
    }


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
        "performance.trip_sheet", trips, {"trips": "status net duration_hours closed"}, most=100_000
    ),
    Case(
        "performance.vault_shares",
        vault_history,
        {"portfolio": "period time account_value pnl"},
        has_identity=False,
        at_scale=lambda frames, result: np.testing.assert_allclose(
            result["growth"].iloc[-1], 1.01 ** (len(result) // 2)
        ),
        most=100_000,
    ),
    Case(
        "performance.vault_depositors",
        vault_flows,
        {
            "ledger": "type time vault usdc",
            "followers": "user vault_equity",
            "vault": "vault_address leader",
        },
        arguments={"account": addresses([7])[0], "at": HOUR * 100_000},
        most=20_000,
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
