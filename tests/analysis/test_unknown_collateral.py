"""Figures of risk from incomplete states: what is not known is missing, and a warning names it."""

import numpy as np
import pandas as pd
import pytest

import toolkit as tk
from toolkit.errors import MissingColumns

DEPTH = pd.DataFrame(
    {"coin": "X", "bps": [20, 40], "bid_depth_usd": [1e5, 2e5], "ask_depth_usd": [1e5, 2e5],
     "timestamp_ms": pd.Timestamp(0, tz="UTC")}
)  # fmt: skip


def positions(*rows):
    frame = pd.DataFrame(rows, columns=["user", "coin", "szi", "position_value"])
    return frame.assign(
        leverage_type="cross", margin_used=0.0, liquidation_px=np.nan, entry_px=50.0
    )


def accounts(*rows):
    frame = pd.DataFrame(rows, columns=["user", "cross_account_value"])
    return frame.assign(account_value=frame["cross_account_value"])


def test_collateral_in_spot_wallet_is_unknown():
    """0xb has 30,000 for 40,000 long: 30,000 - 40,000 d = 2,000 (1 - d)."""
    rows = positions(("0xa", "X", 800.0, 4e4), ("0xb", "X", 800.0, 4e4))
    owners = accounts(("0xa", 0.0), ("0xb", 3e4)).assign(account_mode=[3, 0])
    limits = {"X": 10}
    with pytest.warns(UserWarning, match="1 account with unified or portfolio margin .0xa."):
        distance = tk.liquidations.buffers(owners, rows, limits)["distance"]
    assert distance.tolist() == pytest.approx([np.nan, 28 / 38], nan_ok=True)
    with pytest.warns(UserWarning, match="0xa"):
        bins = tk.liquidations.levels(rows, accounts=owners, max_leverage=limits, reach=0.9)
    assert bins[["notional", "unplaced", "unmeasured"]].values.tolist() == [[4e4, 0.0, 4e4]]
    named = r"1 account of 2 \(0xa\) cannot be measured"
    with pytest.warns(UserWarning, match="spot wallet"), pytest.warns(UserWarning, match=named):
        made = tk.liquidations.cascade(rows, owners, DEPTH, "X", [-0.1], max_leverage=limits)
    assert made.params[["accounts", "forced_usd", "deficit_usd"]].values.tolist() == [[0, 0, 0]]
    with pytest.warns(UserWarning, match="0xa"):
        sizes = tk.accounts.positioning(rows, owners)
    assert sizes["size"].tolist() == ["all", "10k to 100k", "unknown"]
    # A snapshot's value has the spot wallet in it.
    whole = owners.drop(columns="cross_account_value").assign(account_value=[5e5, 3e4])
    assert "unknown" not in tk.accounts.positioning(rows, whole)["size"].tolist()


def test_states_without_mode_show_who_has_no_cash():
    """0xa has only its gain of 3,000; 0xc is far below its margin, 0xd a little, 0xb is rich."""
    rows = positions(*((user, "X", 800.0, 4e4) for user in ("0xa", "0xb", "0xc", "0xd")))
    rows["unrealized_pnl"] = 3e3
    owners = accounts(("0xa", 3e3), ("0xb", 3e4), ("0xc", 1e3), ("0xd", 1.5e3))
    limits = {"X": 10}  # a maintenance margin of 2,000 each
    with pytest.warns(UserWarning, match=r"2 accounts .*0xa, 0xc.*account_mode is not known"):
        distance = tk.liquidations.buffers(owners, rows, limits)["distance"]
    assert distance.tolist() == pytest.approx([np.nan, 28 / 38, np.nan, -0.5 / 38], nan_ok=True)
    with pytest.warns(UserWarning, match=r"1 account .*0xa"):  # here no margin is known
        sizes = tk.accounts.positioning(rows.assign(entry_px=46.25), owners, edges=[2e3])
    assert sizes[["size", "accounts"]].values.tolist() == [
        ["all", 4], ["below 2k", 2], ["2k and more", 1], ["unknown", 1]
    ]  # fmt: skip
    # With the modes, the state of a standard account is what it says.
    named = owners.assign(account_mode=0)
    assert tk.liquidations.buffers(named, rows, limits)["equity"].tolist() == [3e3, 3e4, 1e3, 1.5e3]


def test_snapshot_measures_accounts_with_their_spot_wallet():
    """Unified 0xa shares 9,000 USDC over two dexes; 0xb has 5,000 as portfolio margin.

    0xa is long 40,000 X and 20,000 pre:X, with an isolated position of 1,000 apart:
    8,000 - 60,000 d = 3,000 (1 - d). 0xb needs 0.3 * 5,000 = 1,500, its tiers 1,000:
    5,000 - 1,500 - 20,000 d = -1,000 d.
    """
    rows = pd.concat([
        positions(("0xa", "X", 800.0, 4e4), ("0xa", "pre:X", 400.0, 2e4), ("0xb", "X", 400.0, 2e4),
                  ("0xc", "X", 10.0, 500.0)),
        positions(("0xa", "Y", 10.0, 500.0)).assign(leverage_type="isolated", margin_used=1e3),
    ])  # fmt: skip
    snapshot = pd.DataFrame(
        [("0xa", "native:USDC", 8.5e3, 2, np.nan, np.nan),
         ("0xa", "pre:USDC", 5e2, 2, np.nan, np.nan),
         ("0xb", "native:USDC", 4e3, 3, 0.3, 5e3), ("0xb", "pre:USDC", 4e3, 3, 0.3, 5e3),
         ("0xc", "native:USDC", 1e2, 0, np.nan, np.nan)],
        columns=["user", "collateral_token", "account_value", "account_mode", "pm_ratio",
                 "pm_total_account_value"],
    )  # fmt: skip
    limits = {"X": 10, "pre:X": 10, "Y": 10}
    made = tk.liquidations.buffers(snapshot, rows, limits)
    assert made[["user", "dex", "margin"]].values.tolist() == [
        ["0xa", "USDC", "cross"], ["0xa", "USDC", "isolated"], ["0xb", "all", "cross"],
        ["0xc", "hyperliquid", "cross"],
    ]  # fmt: skip
    assert made["equity"].tolist() == [8e3, 1e3, 5e3, 100]
    assert made["maintenance"].tolist() == [3e3, 25, 1.5e3, 25]
    assert made["distance"].tolist()[::2] == pytest.approx([5 / 57, 3.5 / 19])
    cascade = tk.liquidations.cascade(rows, snapshot, DEPTH, "X", [-0.2], max_leverage=limits)
    assert set(cascade.liquidated["user"]) == {"0xa", "0xb", "0xc"}
    bins = tk.liquidations.levels(rows, accounts=snapshot, max_leverage=limits)
    assert bins["unmeasured"].eq(0).all()


def test_accounts_that_are_not_measured_are_named():
    rows = positions(("0xa", "X", 8.0, 400.0), ("0xa", "Q", 1.0, 9.0), ("0xb", "X", 8.0, 400.0))
    owners = accounts(("0xa", 90.0), ("0xb", 90.0))
    with pytest.warns(UserWarning, match=r"1 account of 2 \(0xa\) .* leverage of Q\."):
        made = tk.liquidations.cascade(rows, owners, DEPTH, "X", [-0.3], max_leverage={"X": 10})
    assert made.liquidated["user"].tolist() == ["0xb"]


def test_position_without_size_is_refused():
    rows = positions(("0xa", "X", np.nan, 400.0), ("0xb", "X", 8.0, 400.0))
    with pytest.raises(MissingColumns, match="positions: column szi is missing in 1 of 2 rows"):
        tk.liquidations.levels(rows)


def test_stated_margin_counts_in_levels():
    """20 are needed by the tier and 60 stated: 120 - 40 - 400 d = 20 (1 - d), so d = 60 / 380."""
    rows = positions(("0xa", "X", 8.0, 400.0))
    owners = accounts(("0xa", 120.0)).assign(cross_maintenance_margin_used=60.0)
    distance = tk.liquidations.buffers(owners, rows, {"X": 10})["distance"].item()
    assert distance == pytest.approx(60 / 380)
    bins = tk.liquidations.levels(rows, accounts=owners, max_leverage={"X": 10})
    assert bins[["low", "high"]].values.tolist() == pytest.approx(np.array([[42.0, 42.5]]))


def test_account_without_dex_is_not_of_two_dexes():
    rows = positions(("0xa", "X", 8.0, 400.0), ("0xa", "pre:X", 8.0, 400.0))
    owners = accounts(("0xa", 500.0))
    with pytest.raises(ValueError, match=r"^accounts: .*0xa .*hyperliquid, pre"):
        tk.liquidations.buffers(owners, rows, {"X": 10, "pre:X": 10})
    only = rows.assign(leverage_type=["cross", "isolated"])
    assert len(tk.liquidations.buffers(owners, only, {"X": 10, "pre:X": 10})) == 2
