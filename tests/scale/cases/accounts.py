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


def values_at_scale(frames, result):
    n = len(frames["snapshot"])
    assert result["value"].sum() == n * (n + 1) / 2
    assert result["mode"].value_counts().eq(n / 4).all()


def spread_at_scale(frames, result):
    """For values 1..n, Gini is (n - 1) / 3 n, the sum of squares n (n + 1) (2 n + 1) / 6."""
    n = len(frames["snapshot"])
    row = result.iloc[0]
    assert row["gini"] == pytest.approx((n - 1) / (3 * n))
    assert row["hhi"] == pytest.approx(2 * (2 * n + 1) / (3 * n * (n + 1)))


def lorenz_at_scale(frames, result):
    """The poorest half of 1..n has about a quarter."""
    assert result["value"].iloc[50] == pytest.approx(0.25, abs=1 / len(frames["snapshot"]))


def leverage_at_scale(frames, result):
    assert result["leverage"].eq(1.0).all()
    assert result["net"].eq(1.0).all()
    assert result["exposed"].sum() == len(frames["snapshot"])


def migration_at_scale(frames, result):
    same_class = result["from_class"] == result["to_class"]
    assert result["accounts"].sum() == len(frames["start"])
    assert result.loc[same_class, "accounts"].sum() == len(frames["start"])


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


def positioning_at_scale(frames, result):
    """Half of the notional is net long; the longs gain 10 %, the shorts lose as much."""
    assert result["size"].tolist() == ["all", "below 1k"] * 10
    assert result["accounts"].eq(len(frames["positions"]) // 10).all()
    assert np.allclose(result["net_share"], 0.5)
    assert np.allclose(result["gain_bps"], 500)


VALUED = "user account_value"
EXPOSED = f"{VALUED} account_mode total_long_notional total_short_notional"
CASES = [
    Case("accounts.values", one_snapshot, values_at_scale, {"snapshot": VALUED}),
    Case("accounts.concentration", one_snapshot, spread_at_scale, {"snapshot": VALUED}),
    Case("accounts.lorenz", one_snapshot, lorenz_at_scale, {"snapshot": VALUED}),
    Case("accounts.leverage", one_snapshot, leverage_at_scale, {"snapshot": EXPOSED}),
    Case(
        "accounts.migration",
        lambda n: {"start": snapshot(n), "end": snapshot(n)},
        migration_at_scale,
        {"start": VALUED, "end": VALUED},
    ),
    Case(
        "accounts.positioning",
        positions_and_owners,
        positioning_at_scale,
        {"positions": "user coin szi position_value entry_px", "accounts": VALUED},
        arguments={"edges": [1e3]},
    ),
]
