"""Cases of ``tk.accounts``."""

import numpy as np
import pytest

from tests.analysis.examples import HOUR, MONDAY, times
from tests.scale.case import Case, addresses, table


def snapshot(n):
    """Return accounts with values 1, 2, 3, ..., of every mode in turn, long by their value."""
    k = np.arange(n)
    return table(
        n,
        snapshot_id="s",
        collateral_token="hyperliquid:USDC",
        user=addresses(k),
        account_value=1.0 + k,
        total_long_notional=1.0 + k,
        total_short_notional=0.0,
        is_unified=k % 4 == 2,
        account_mode=k % 4,
    )


def one_snapshot(n):
    return {"snapshot": snapshot(n)}


def spread_at_scale(frames, result):
    """For values 1..n, Gini is (n - 1) / 3 n, the sum of squares n (n + 1) (2 n + 1) / 6."""
    n = len(frames["snapshot"])
    row = result.iloc[0]
    assert row["gini"] == pytest.approx((n - 1) / (3 * n))
    assert row["hhi"] == pytest.approx(2 * (2 * n + 1) / (3 * n * (n + 1)))


def held(n):
    """Return positions of 1 at 110 since 100, three of four long, at 10 moments."""
    k = np.arange(n)
    return table(
        n,
        user=addresses(k),
        coin="BTC",
        szi=np.where(k // 10 % 4 < 3, 1.0, -1.0),
        position_value=110.0,
        entry_px=100.0,
        time=times(MONDAY + HOUR * (k % 10)),
    )


def positions_and_owners(n):
    positions = held(n)
    return {
        "positions": positions,
        "accounts": positions[["user", "time"]].assign(account_value=50.0),
    }


VALUED = "user account_value"
EXPOSED = f"{VALUED} account_mode total_long_notional total_short_notional"
CASES = [
    Case("accounts.values", one_snapshot, {"snapshot": VALUED}),
    Case("accounts.concentration", one_snapshot, {"snapshot": VALUED}, at_scale=spread_at_scale),
    Case("accounts.lorenz", one_snapshot, {"snapshot": VALUED}),
    Case("accounts.leverage", one_snapshot, {"snapshot": EXPOSED}),
    Case(
        "accounts.migration",
        lambda n: {"start": snapshot(n), "end": snapshot(n)},
        {"start": VALUED, "end": VALUED},
    ),
    Case(
        "accounts.positioning",
        positions_and_owners,
        {"positions": "user coin szi position_value entry_px", "accounts": VALUED},
        arguments={"edges": [1e3]},
    ),
]
