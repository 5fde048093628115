"""Accounts and liquidations: examples by hand, identities, and the simulated exchange."""

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

import toolkit as tk
from toolkit.accounts import concentration, leverage, lorenz, migration, values
from toolkit.errors import MissingColumns, RepeatedRows
from toolkit.liquidations import buffers, levels

from .examples import records, wrong_errors

NAN = float("nan")
LONG_SHORT = ["total_long_notional", "total_short_notional"]


def snapshot():
    """Return a standard account on two dexes, a unified, a portfolio-margin and a negative one."""
    rows = [
        ("0xA", "hyperliquid:USDC", 60.0, 120.0, 0.0, 0, None),
        ("0xa", "pre:USDH", 40.0, 0.0, 80.0, 0, None),
        ("0xb", "hyperliquid:USDC", 300.0, 0.0, 0.0, 2, None),
        ("0xc", "hyperliquid:USDC", 500.0, 100.0, 100.0, 3, 600.0),
        ("0xc", "pre:USDH", 100.0, 0.0, 0.0, 3, 600.0),
        ("0xd", "hyperliquid:USDC", -5.0, 10.0, 0.0, 1, None),
    ]
    names = ["user", "collateral_token", "account_value", "total_long_notional"]
    names += ["total_short_notional", "account_mode", "pm_total_account_value"]
    return pd.DataFrame(rows, columns=names)


def test_portfolio_margin_total_counts_once():
    """The repeated total of portfolio margin is not part of the sum."""
    rows = values(snapshot())
    assert rows["value"].tolist() == [100, 300, 600, -5]
    assert rows["mode"].tolist() == ["standard", "unified", "portfolio margin", "dex abstraction"]
    assert rows["long"].tolist() == [120, 0, 100, 10]
    tokens = values(snapshot(), by="token").set_index(["user", "token"])["value"]
    assert tokens.to_dict() == {
        ("0xa", "USDC"): 60, ("0xa", "USDH"): 40, ("0xb", "USDC"): 300,
        ("0xc", "USDC"): 500, ("0xc", "USDH"): 100, ("0xd", "USDC"): -5,
    }  # fmt: skip
    assert values(snapshot(), by="dex")["dex"].tolist()[:2] == ["hyperliquid", "pre"]


def test_missing_value_is_not_zero():
    gone = snapshot()
    gone.loc[1, "account_value"] = np.nan
    assert np.isnan(values(gone)["value"].iloc[0])
    row = concentration(gone).iloc[0]
    assert (row["accounts"], row["not_positive"], row["missing"]) == (2, 1, 1)


def test_concentration_by_hand():
    """Values 100, 300, 600: Gini (-2 * 100 + 2 * 600) / 3000 = 1/3, HHI 0.01 + 0.09 + 0.36."""
    row = concentration(snapshot(), shares=[1 / 3, 0.5]).iloc[0]
    assert row["gini"] == pytest.approx(1 / 3)
    assert row["hhi"] == pytest.approx(0.46)
    assert row["effective"] == pytest.approx(1 / 0.46)
    assert row["top_33.3333"] == pytest.approx(0.6)
    assert row["top_50"] == pytest.approx(0.9)  # two of three
    one = concentration(snapshot(), shares=[1e-12]).iloc[0]
    assert one["top_1e-10"] == pytest.approx(0.6)  # at least one account
    by = concentration(snapshot(), by="mode").set_index("mode")
    assert by.loc["unified", "gini"] == 0
    assert np.isnan(by.loc["dex abstraction", "gini"])


positive = st.lists(st.integers(1, 10**6), min_size=1, max_size=50)


def worths(*values_):
    users = [f"0x{place}" for place in range(len(values_))]
    return pd.DataFrame({"user": users, "account_value": list(values_)})


def test_top_shares_round_up():
    """A quarter of five accounts is 1.25, so the two largest count: 10 and 4 of 20."""
    row = concentration(worths(4.0, 1.0, 10.0, 2.0, 3.0), shares=[0.25, 0.2, 0.21]).iloc[0]
    assert row[["top_25", "top_20", "top_21"]].tolist() == pytest.approx([0.7, 0.5, 0.7])
    many = concentration(worths(*range(1, 101)), shares=[0.07]).iloc[0]
    assert many["top_7"] == pytest.approx(sum(range(94, 101)) / 5050)


def test_lorenz_skips_zero_and_debt():
    """Accounts of 1 and 3 USD count; an account of 0 and one in debt do not."""
    rows = lorenz(worths(0.0, 3.0, -2.0, 1.0), points=5)
    assert rows["value"].tolist() == pytest.approx([0, 0.125, 0.25, 0.625, 1])
    assert len(lorenz(worths(0.0, -1.0))) == 0


@given(positive)
def test_gini_from_lorenz_curve(worth):
    frame = pd.DataFrame({"user": [f"u{n}" for n in range(len(worth))], "account_value": worth})
    frame = frame.astype({"account_value": float})
    row = concentration(frame).iloc[0]
    curve = lorenz(frame, points=len(worth) + 1)
    area = np.trapezoid(curve["value"], curve["accounts"])
    assert row["gini"] == pytest.approx(1 - 2 * area, abs=1e-9)
    assert 0 <= row["gini"] < 1
    assert 1 / len(worth) <= row["hhi"] * (1 + 1e-12) <= 1 + 1e-9
    same = concentration(frame.assign(account_value=7.0)).iloc[0]
    assert same["gini"] == pytest.approx(0, abs=1e-12)


def test_leverage_of_groups_by_hand():
    """Users come in any order; 0xc has an unknown mode, 0xa none, and 0xb no value on one dex."""
    rows = [
        ("0xb", "hyperliquid:USDC", 10.0, 0.0, 30.0, 1),
        ("0xb", "pre:USDH", np.nan, 5.0, 0.0, 1),
        ("0xc", "pre:USDH", 50.0, 0.5, 0.0, 7),
        ("0xa", "USDC", 20.0, 70.0, 10.0, None),
    ]
    names = ["user", "collateral_token", "account_value", *LONG_SHORT, "account_mode"]
    given = pd.DataFrame(rows, columns=names)
    by_user = values(given)
    assert by_user["user"].tolist() == ["0xa", "0xb", "0xc"]
    assert by_user["value"].tolist() == pytest.approx([20, np.nan, 50], nan_ok=True)
    assert by_user["mode"].tolist()[1:] == ["dex abstraction", "mode 7"]
    assert by_user["mode"].isna()[0]
    whole = leverage(snapshot(), by=None).iloc[0]
    assert whole[["accounts", "exposed"]].tolist() == [4, 3]
    assert whole["median_leverage"] == pytest.approx((2 + 200 / 600) / 2)
    assert leverage(snapshot())["leverage"].tolist() == pytest.approx(
        [NAN, 200 / 600, 2, 0], nan_ok=True
    )
    modes = leverage(given)
    assert modes["mode"].tolist()[:2] == ["dex abstraction", "mode 7"]
    assert modes["mode"].isna()[2]
    assert modes["leverage"].tolist() == pytest.approx([np.nan, 0.01, 4.0], nan_ok=True)
    assert modes["net"].tolist() == pytest.approx([np.nan, 1, 0.75], nan_ok=True)
    assert modes["median_leverage"].tolist() == pytest.approx([np.nan, 0.01, 4.0], nan_ok=True)
    counts = ["accounts", "exposed", "missing"]
    assert modes[counts].values.tolist() == [[0, 0, 1], [1, 1, 0], [1, 1, 0]]
    dexes = leverage(given, by="dex")
    assert dexes["dex"].tolist() == ["all", "hyperliquid", "pre"]
    assert dexes[["value", "long", "short"]].values.tolist() == [
        [20, 70, 10], [10, 0, 30], [50, 0.5, 0],
    ]  # fmt: skip
    spread = concentration(given, by=["dex"])
    assert spread["dex"].tolist() == ["all", "hyperliquid", "pre"]
    assert spread["value"].tolist() == [20, 10, 50]
    tokens = concentration(given, by="token").set_index("token")
    assert tokens.loc["USDC", "gini"] == pytest.approx((20 - 10) / (2 * 30))


def test_values_of_states_by_dex():
    """States have the dex as a column, and no mode; a table of values is read again as it is."""
    states = pd.DataFrame(
        {"user": ["0xb", "0xa", "0xa"], "dex": ["pre", "pre", "hyperliquid"],
         "account_value": [3.0, 2.0, -1.0]}
    )  # fmt: skip
    by_dex = values(states, by="dex")
    assert list(by_dex) == ["user", "dex", "mode", "value", "long", "short"]
    assert by_dex["dex"].tolist() == ["hyperliquid", "pre", "pre"]
    assert by_dex["value"].tolist() == [-1, 2, 3]
    assert by_dex["mode"].isna().all()
    three = values(states)[["user", "mode", "value"]]
    assert three["value"].tolist() == [1, 3]
    assert concentration(three)["gini"].item() == pytest.approx((3 - 1) / (2 * 4))


def test_split_values_count_each_account_once():
    """0xa has 70 USDC and 30 USDH, 0xb has 300 USDC: values of 100 and 300.

    Gini (300 - 100) / (2 * 400), HHI 0.0625 + 0.5625; the poorer half has a quarter. 0xa has
    leverage (80 + 40) / 100.
    """
    rows = [
        ("0xb", "hyperliquid:USDC", 300.0, 0.0, 0.0, 2),
        ("0xa", "hyperliquid:USDC", 70.0, 80.0, 0.0, 0),
        ("0xa", "eqx:USDH", 30.0, 0.0, 40.0, 0),
    ]
    names = ["user", "collateral_token", "account_value", *LONG_SHORT, "account_mode"]
    frame = pd.DataFrame(rows, columns=names)
    for by in ("token", ["token", "dex"], "dex"):
        split = values(frame, by)
        assert len(records(split)) == 3
        whole = records(concentration(split))[0]
        assert (whole["accounts"], whole["value"]) == (2, 400)
        assert (whole["gini"], whole["hhi"]) == pytest.approx((0.25, 0.625))
        assert [row["value"] for row in records(lorenz(split, 3))] == pytest.approx([0, 0.25, 1])
        modes = records(leverage(split))
        assert [row["accounts"] for row in modes] == [1, 1]
        assert [row["exposed"] for row in modes] == [1, 0]
        assert modes[0]["median_leverage"] == pytest.approx(1.2)
        moved = [row for row in records(migration(split, frame, [0, 100])) if row["accounts"]]
        assert [row["accounts"] for row in moved] == [2]
        assert moved[0]["to_class"] == "100 and more"
        assert records(values(split)) == records(values(frame))
    both = records(concentration(values(frame, ["token", "dex"]), by="token"))
    assert [(row["token"], row["accounts"], row["value"]) for row in both] == [
        ("USDC", 2, 370), ("USDH", 1, 30),
    ]  # fmt: skip


def test_split_values_keep_missing_part_and_own_columns():
    """Without the value of its USDH, 0xa has no known value; two days stay apart."""
    split = values(snapshot(), by="token")
    split.loc[split["token"] == "USDH", "value"] = [np.nan, 100.0]
    row = concentration(split).iloc[0]
    assert (row["accounts"], row["not_positive"], row["missing"]) == (2, 1, 1)
    days = pd.concat([split.assign(day="1"), split[split["user"] == "0xc"].assign(day="2")])
    spread = concentration(days, by="day").set_index("day")
    assert spread["accounts"].tolist() == [2, 1]
    assert spread["value"].tolist() == [900, 600]


def test_migration_by_hand():
    """0xa falls a class, 0xb stays, 0xc leaves, 0xd goes missing, 0xe is new."""
    after = pd.DataFrame(
        {"user": ["0xa", "0xb", "0xd", "0xe"], "account_value": [99.0, 300.0, np.nan, 1e4]}
    )
    rows = migration(snapshot(), after, edges=[0, 100, 1e3])
    moved = rows[rows["accounts"] > 0].set_index(["from_class", "to_class"])
    assert moved["accounts"].to_dict() == {
        ("below 0", "unknown"): 1,
        ("100 to 1k", "0 to 100"): 1,
        ("100 to 1k", "100 to 1k"): 1,
        ("100 to 1k", "absent"): 1,
        ("absent", "1k and more"): 1,
    }
    assert moved.loc[("100 to 1k", "0 to 100"), "share"] == pytest.approx(1 / 3)
    assert moved.loc[("100 to 1k", "0 to 100"), "value_change"] == -1
    assert len(rows) == 6 * 6


def test_errors_of_accounts():
    full = snapshot()
    tokenless = full.drop(columns="collateral_token")
    table = [
        (lambda: values(tokenless, "dex"), MissingColumns, "collateral_token"),
        (lambda: values(tokenless, "token"), MissingColumns, "collateral_token"),
        (lambda: leverage(full, by="size"), ValueError, "'size'"),
        (lambda: values(full, by="mode"), ValueError, "token or dex"),
        (lambda: values(full.assign(snapshot_id=list("aaaabb"))), ValueError, "several snapshots"),
        (lambda: concentration(full, shares=[0]), ValueError, "shares"),
        (lambda: lorenz(full, points=1), ValueError, "points"),
        (lambda: migration(full, full, edges=[2, 1]), ValueError, "edges"),
        (lambda: levels(held(), width=0), ValueError, "width"),
        (lambda: levels(held(), reach=0), ValueError, "reach"),
    ]
    assert wrong_errors(table) == []
    with pytest.warns(RepeatedRows, match="^end: 1 of 7 rows"):
        migration(full, pd.concat([full, full[:1]]))


def test_simulated_unified_accounts_have_value(tables, world):
    """Snapshot values equal the perp value, plus the wallet's USDC from mode 2 on."""
    rows = values(tables.snapshots[-1]).set_index("user")
    for user, truth in (world.expected | world.expected_mixed).items():
        wallet = truth.tokens["USDC"].balance if "USDC" in truth.tokens else 0
        whole = truth.equity_end + wallet * (
            rows.loc[user, "mode"] in ("unified", "portfolio margin")
        )
        assert rows.loc[user, "value"] == pytest.approx(float(whole), abs=1e-6)
    assert (rows.loc[rows["mode"] == "unified", "value"] > 0).all()


# ---------------------------------------------------------------- liquidations


def held():
    """Return positions at 100: longs to 94.5, 90 and no price, a short to 112, an isolated one."""
    rows = [
        ("0xa", 10.0, 1000.0, 94.5, "cross", 100.0),
        ("0xb", 20.0, 2000.0, 90.0, "cross", 200.0),
        ("0xc", 1.0, 100.0, None, "cross", 100.0),
        ("0xd", -5.0, 500.0, 112.0, "cross", 50.0),
        ("0xe", 2.0, 200.0, 94.1, "isolated", 20.0),
    ]
    names = ["user", "szi", "position_value", "liquidation_px", "leverage_type", "margin_used"]
    return pd.DataFrame(rows, columns=names).assign(coin="X", dex="native")


def test_levels_computed_from_other_margins():
    """The equity behind a cross position is the account's less the margin of its other positions.

    0xa has 100, and X and Y use 25 each: 75 + 10 (p - 100) = 0.25 p, 75 - 5 (p - 100) = 0.25 p, and
    on the other dex 40 + 2 (p - 40) = 0.2 p. W is isolated: 10 + (p - 100) = 0.05 p. So is 0xb:
    45 + 3 (p - 100) = 0.15 p and 60 - 4 (p - 100) = 0.1 p. Three prices are stated. Nothing is
    known of 0xd. V is closed.
    """
    rows = [
        ("0xa", "", "V", 0.0, 0.0, None, "cross", 0.0),
        ("0xa", "", "X", 10.0, 1000.0, None, "cross", 50.0),
        ("0xa", "", "W", 1.0, 100.0, None, "isolated", 10.0),
        ("0xa", "", "Y", -5.0, 500.0, None, "cross", 50.0),
        ("0xe", "", "Y", -1.0, 100.0, 100.4, "isolated", 1.0),
        ("0xd", "", "U", 1.0, 70.0, None, "cross", 5.0),
        ("0xa", "flx", "flx:Z", 2.0, 80.0, None, "cross", 16.0),
        ("0xb", "", "Y", 3.0, 300.0, None, "isolated", 45.0),
        ("0xb", "", "X", -4.0, 400.0, None, "isolated", 60.0),
        ("0xc", "", "X", 2.0, 200.0, 94.2, "isolated", 20.0),
        ("0xd", "", "X", 1.0, 100.0, None, "cross", 5.0),
        ("0xe", "", "X", 5.0, 500.0, 91.0, "cross", 25.0),
    ]
    names = ["user", "dex", "coin", "szi", "position_value", "liquidation_px", "leverage_type"]
    positions = pd.DataFrame(rows, columns=[*names, "margin_used"])
    positions["liquidation_px"] = positions["liquidation_px"].astype("float64")
    values = [("0xb", "", 500.0), ("0xa", "flx", 40.0), ("0xa", "", 100.0)]
    accounts = pd.DataFrame(values, columns=["user", "dex", "cross_account_value"])
    interest = {"name": ["Y", "X", "W", "flx:Z"], "open_interest": [10.0, 36.0, 1.0, 0.0]}
    contexts = pd.DataFrame(interest)
    leverage = {"X": 20, "Y": 10, "flx:Z": 5, "U": 3, "V": 3, "W": 10}
    made = levels(positions, contexts, accounts=accounts, max_leverage=leverage)
    none = float("nan")
    expected = [
        ("U", "long", none, none, none, 0, 0, 0, 0, none, 0, none, none),
        ("W", "long", -0.05, 94, 95, 1, 1, 100, 100, 0, 0, 1, 1),
        ("X", "long", -0.08, 91, 92, 1, 1, 500, 1700, 1, 0, 0.5, 17 / 36),
        ("X", "long", -0.05, 94, 95, 2, 2, 1200, 1200, 1000 / 1200, 0, 0.5, 17 / 36),
        ("X", "short", 0.12, 112, 113, 1, 1, 400, 400, 0, 0, 4 / 36, 4 / 36),
        ("Y", "long", -0.1, 89, 90, 1, 1, 300, 300, 0, 0, 0.3, 0.3),
        ("Y", "short", 0, 100, 101, 1, 1, 100, 100, 0, 0, 0.6, 0.6),
        ("Y", "short", 0.09, 109, 110, 1, 1, 500, 600, 1, 0, 0.6, 0.6),
        ("flx:Z", "long", -0.44, 22, 22.4, 1, 1, 80, 80, 1, 0, none, none),
    ]
    rows = made.to_numpy().tolist()
    assert [row[:2] for row in rows] == [list(row[:2]) for row in expected]
    for row, wanted in zip(rows, expected, strict=True):
        assert row[2:-1] == pytest.approx(wanted[2:], nan_ok=True)
    # The account of the position in U, and of one in X, is not known.
    assert made.groupby(["coin", "side"])["unmeasured"].first().tolist() == [70, 0, 100, *[0] * 4]
    assert made.index.tolist() == list(range(len(expected)))
    near = levels(held(), reach=0.06)  # 90 is farther, and one has no price
    assert near[near["side"] == "long"]["unplaced"].tolist() == [2100]
    assert near["known"].isna().all()


def test_levels_add_up_to_notional(tables):
    """Every notional is in a bin or unplaced, and the full open interest is known on each side."""
    positions = tables.states.positions
    rows = levels(positions, tables.contexts)
    sides = rows.groupby(["coin", "side"]).agg(
        notional=("notional", "sum"), unplaced=("unplaced", "first"), known=("known", "first")
    )
    assert sides["known"].to_numpy() == pytest.approx(1)
    whole = float(positions["position_value"].sum())
    assert sides["notional"].sum() + sides["unplaced"].sum() == pytest.approx(whole)
    assert (sides["notional"] > 0).any()
    assert rows["accounts"].sum() <= len(positions)


def test_buffers_of_two_dexes_by_hand():
    """Cross: 100 - 1500 d = 50 - 25 d + 25 d; with a stated 9 for 8: 39 - 80 d = 8 - 8 d.

    Isolated: 60 - 400 d = 10 + 10 d for the short, 45 - 300 d = 15 - 15 d for the long.
    """
    rows = [
        ("0xb", "", "Y", 3.0, 300.0, "isolated", 45.0),
        ("0xb", "", "X", -4.0, 400.0, "isolated", 60.0),
        ("0xa", "flx", "flx:Z", 2.0, 80.0, "cross", 9.0),
        ("0xa", "", "X", 10.0, 1000.0, "cross", 50.0),
        ("0xa", "", "Y", -5.0, 500.0, "cross", 50.0),
        ("0xa", "", "W", 0.0, 0.0, "cross", 0.0),
    ]
    names = ["user", "dex", "coin", "szi", "position_value", "leverage_type", "margin_used"]
    positions = pd.DataFrame(rows, columns=names)
    accounts = pd.DataFrame(
        {
            "user": ["0xb", "0xa", "0xa"],
            "dex": ["", "flx", ""],
            "cross_account_value": [500.0, 40.0, 100.0],
            # The one of 0xb is of no cross position.
            "cross_maintenance_margin_used": [3.0, 9.0, np.nan],
        }
    )
    result = buffers(accounts, positions, {"X": 20, "Y": 10, "flx:Z": 5})
    money = result[["equity", "notional", "maintenance", "buffer", "distance"]]
    wanted = [
        [40, 80, 9, 31, 31 / 72], [100, 1500, 50, 50, 50 / 1500], [60, 400, 10, 50, 50 / 410],
        [45, 300, 15, 30, 30 / 285],
    ]  # fmt: skip
    assert money.to_numpy() == pytest.approx(np.array(wanted))
    named = result[["user", "margin", "coin", "positions"]].fillna("-").to_numpy().tolist()
    assert named == [
        ["0xa", "cross", "-", 1], ["0xa", "cross", "-", 2], ["0xb", "isolated", "X", 1],
        ["0xb", "isolated", "Y", 1],
    ]  # fmt: skip
    stated = "one tier for each coin; maintenance as stated for 1 of 2 cross accounts"
    assert result.attrs["toolkit"]["margin"] == stated
    alone = positions[positions["dex"] == ""].drop(columns="dex")
    own = accounts[accounts["dex"] == ""].drop(columns="dex")
    few = buffers(own, alone, {"X": 20, "Y": 10})
    assert few["distance"].tolist() == pytest.approx([50 / 1500, 50 / 410, 30 / 285])
    assert few.attrs["toolkit"]["margin"] == "one tier for each coin"
    only = ["user", "cross_account_value"]
    assert buffers(own[only], alone, {"X": 20, "Y": 10})["equity"].tolist() == [100, 60, 45]
    part = buffers(own, alone, {"X": 20})
    assert part["maintenance"].fillna(-1).tolist() == [-1, 10, -1]
    assert part["notional"].tolist() == [1500, 400, 300]
    nobody = buffers(own.iloc[:0], alone, {"X": 20, "Y": 10})
    assert nobody["equity"].fillna(-1).tolist() == [-1, 60, 45]


def test_dex_of_positions_is_that_of_their_coin():
    """Cross: 100 - 1000 d = 25 - 25 d on the native dex, 40 - 80 d = 8 - 8 d on flx.

    X falls from 100 to 92.3, Z from 40 to 22.2. For 0xb, 7 - 90 d = 4.5 - 4.5 d.
    """
    rows = [
        ("0xb", "Y", 3.0, 90.0, 9.0), ("0xa", "flx:Z", 2.0, 80.0, 16.0),
        ("0xa", "X", 10.0, 1000.0, 50.0),
    ]  # fmt: skip
    positions = pd.DataFrame(rows, columns=["user", "coin", "szi", "position_value", "margin_used"])
    positions = positions.assign(leverage_type="cross", liquidation_px=np.nan)
    accounts = pd.DataFrame(
        {"user": ["0xa", "0xb", "0xa"], "dex": ["flx", "hyperliquid", "native"],
         "cross_account_value": [40.0, 7.0, 100.0]}
    )  # fmt: skip
    limits = {"X": 20, "Y": 10, "flx:Z": 5}
    made = records(buffers(accounts, positions, limits))
    assert [(row["user"], row["dex"]) for row in made] == [
        ("0xa", "flx"), ("0xa", "hyperliquid"), ("0xb", "hyperliquid"),
    ]  # fmt: skip
    assert [row["equity"] for row in made] == [40, 100, 7]
    assert [row["distance"] for row in made] == pytest.approx([32 / 72, 75 / 975, 2.5 / 85.5])
    placed = records(levels(positions, accounts=accounts, max_leverage=limits))
    assert [(row["coin"], row["distance"], row["notional"]) for row in placed] == [
        ("X", -0.07, 1000), ("Y", -0.02, 90), ("flx:Z", -0.44, 80),
    ]  # fmt: skip


def test_accounts_paid_in_full_have_no_distance():
    """0xa has 300 for 100 long and 100 short: 200 - 100 d = 5 (1 + d). 0xb has 200 for 100 long.

    For the long of 0xc, 0.99 - d = 0.05 (1 - d). 0xd has 150 behind an isolated long of 100.
    `levels` places the long of 0xc, and the short of 0xa: its other margin is 5, so
    295 - 100 d = 5 (1 + d). No price liquidates the other longs.
    """
    accounts = pd.DataFrame(
        {"user": ["0xa", "0xb", "0xc"], "cross_account_value": [300, 200, 99.0]}
    )
    rows = [
        ("0xa", "X", 1.0, "cross", 10.0), ("0xa", "Y", -1.0, "cross", 10.0),
        ("0xb", "X", 1.0, "cross", 10.0), ("0xc", "X", 1.0, "cross", 10.0),
        ("0xd", "X", 1.0, "isolated", 150.0),
    ]  # fmt: skip
    names = ["user", "coin", "szi", "leverage_type", "margin_used"]
    positions = pd.DataFrame(rows, columns=names)
    positions = positions.assign(position_value=100.0, liquidation_px=np.nan)
    limits = {"X": 10, "Y": 10}
    made = records(buffers(accounts, positions, limits))
    wanted = [195 / 105, None, 94 / 95, None]
    assert [row["distance"] for row in made] == pytest.approx(wanted)
    placed = records(levels(positions, accounts=accounts, max_leverage=limits, reach=3))
    assert [(row["side"], row["distance"], row["unplaced"]) for row in placed] == [
        ("long", -0.98, 300), ("short", 2.76, 0),
    ]  # fmt: skip


def test_liquidation_history_counts_each_position_once():
    """0xa's long is sold at 97 and 98, mark 100; 0xv takes over 0xb's short and passes it on."""
    method = ["market"] * 3 + ["backstop"] * 4 + [None]
    rows = pd.DataFrame(
        {
            "user": ["0xa", "0xc", "0xa", "0xb", "0xv", "0xv", "0xd", "0xe"],
            "coin": "X",
            "px": [97.0, 97.0, 98.0, 110.0, 110.0, 112.0, 112.0, 50.0],
            "sz": [2.0, 2.0, 1.0, 4.0, 4.0, 4.0, 4.0, 9.0],
            "side": list("ABABABAB"),
            "dir": ["Close Long", "Open Long", "Close Long", "Liquidated Cross Short",
                    "Liquidated Cross Short", "Auto-Deleveraging", "Auto-Deleveraging",
                    "Open Long"],
            "liquidated_user": ["0xa", "0xa", "0xa", "0xb", "0xb", "0xv", "0xv", None],
            "liquidation_method": method,
            "liquidation_mark_px": [100.0, 100.0, None, 109.0, 109.0, None, None, None],
            "closed_pnl": [-6.0, 0.0, -2.0, -40.0, 0.0, -8.0, 30.0, 0.0],
            "time": pd.to_datetime([0, 0, 59, 61, 61, 70, 70, 1], unit="m", utc=True),
        }
    )  # fmt: skip
    made = tk.liquidations.history(rows)
    names = ["method", "side", "fills", "accounts", "notional", "closed_pnl", "marked"]
    assert made[names].values.tolist() == [
        ["market", "long", 2, 1, 292, -8, 194],
        ["backstop", "short", 1, 1, 440, -40, 440],
        ["deleveraging", "long", 1, 1, 448, 30, 0],
        ["deleveraging", "short", 1, 1, 448, -8, 0],
    ]
    assert made["time"].dt.hour.tolist() == [0, 1, 1, 1]
    assert made["slippage_bps"].tolist() == pytest.approx(
        [300, 1e4 / 109, np.nan, np.nan], nan_ok=True
    )
    by_coin = tk.liquidations.history(rows, "day", "coin")
    assert by_coin["notional"].sum() == made["notional"].sum()
    one = tk.liquidations.history(rows[rows["user"] == "0xa"].drop(columns="user"), account="0xa")
    assert one[["accounts", "notional"]].values.tolist() == [[1, 292]]
    with pytest.raises(ValueError, match="month"):
        tk.liquidations.history(rows, "month")
    with pytest.raises(MissingColumns, match="liquidated_user"):
        tk.liquidations.history(rows[["time", "coin", "px", "sz", "side"]])
