"""Positioning: by hand, an identity of the simulated exchange, and the interval."""

import numpy as np
import pandas as pd
import pytest

import toolkit as tk
from tests.analysis.examples import HOUR, MONDAY, times
from tests.analysis.interval_coverage import hold_share

ROWS = pd.DataFrame(
    {"user": ["a", "a", "b", "c"], "coin": ["X", "Y", "X", "X"], "szi": [2.0, -5.0, -1.0, 1.0],
     "position_value": [220.0, 500.0, 110.0, 110.0], "entry_px": [100.0, 100.0, 120.0, np.nan]}
)  # fmt: skip


def test_positioning_by_hand():
    made = tk.accounts.positioning(ROWS, edges=[200]).set_index(["coin", "size"])
    whole = made.loc["X", "all"]
    assert whole[["accounts", "positions"]].tolist() == [3, 3]
    assert whole[["long_usd", "short_usd"]].tolist() == [330, 110]
    assert whole["net_share"] == 0.5
    assert whole["long_accounts"] == pytest.approx(2 / 3)
    # a gained 20 of 200, b gained 10 of 120; the entry of c is not known.
    assert whole["gain_bps"] == pytest.approx(1e4 * 30 / 320)
    assert whole["crowded_side"] == "long"
    assert whole["effective_accounts"] == pytest.approx(330**2 / (220**2 + 110**2))
    assert whole["top_share"] == pytest.approx(2 / 3)
    # The size of a is the notional of both of its positions: 720.
    assert made.loc[("X", "200 and more"), "accounts"] == 1
    assert made.loc[("X", "below 200"), "net_share"] == 0.0
    assert made.loc[("X", "below 200"), "crowded_side"] == "even"


def test_net_share_interval_by_hand():
    """Two equal accounts: share 0, deviations +-100 of 200, error sqrt(2 * 2e4) / 200, t of 1."""
    rows = ROWS.iloc[[2, 3]]
    made = tk.accounts.positioning(rows, edges=[1e6], level=0.5).iloc[0]
    assert made["net_share"] == 0
    assert (made["low"], made["high"]) == (-1.0, 1.0)


def test_position_without_value_is_missing():
    rows = ROWS.assign(position_value=[np.nan, 500.0, 110.0, 110.0])
    whole = tk.accounts.positioning(rows).set_index(["coin", "size"]).loc[("X", "all")]
    assert whole[["accounts", "positions", "missing"]].tolist() == [2, 2, 1]
    assert whole["net_share"] == 0


def test_rows_without_user_or_dex_count():
    rows = ROWS.assign(user=["a", "a", None, "c"], dex=[None, "x", "x", "x"])
    made = tk.accounts.positioning(rows, by=["dex"])
    whole = made[made["size"] == "all"]
    assert whole["dex"].tolist() == ["hyperliquid", "x"]
    assert whole["accounts"].tolist() == [1, 3]
    assert whole[["long_usd", "short_usd"]].values.tolist() == [[220, 0], [110, 610]]


def test_states_of_one_batch_count_together():
    """Three batches: the second begins 20 s after the first, with the new account c.

    In the first, a has 100 + 200 long and 5,000 + 2e6 USD on two dexes, and b is 400 short. In the
    second, c is 50 long, and b is 150 short. After an hour only d has a position: 70 long.
    """
    second = 20_000
    rows = [
        ("a", "native", "BTC", 1.0, 100.0, 0),
        ("a", "flx", "flx:X", 2.0, 200.0, 3),
        ("b", "native", "BTC", -4.0, 400.0, 5),
        ("c", "native", "BTC", 0.5, 50.0, second),
        ("a", "flx", "flx:X", 2.0, 200.0, second + 2),
        ("b", "native", "BTC", -1.5, 150.0, second + 4),
        ("d", "native", "BTC", 0.7, 70.0, HOUR),
    ]
    names = ["user", "dex", "coin", "szi", "position_value", "time"]
    positions = pd.DataFrame(rows, columns=names).assign(entry_px=100.0)
    values = [
        ("a", "", 5e3, 0), ("a", "flx", 2e6, 3), ("b", "", 5e3, 5), ("c", "", 1e3, second),
        ("a", "", 4e3, second + 1), ("a", "flx", 9e3, second + 2), ("b", "", 7e6, second + 4),
        ("b", "flx", 8.0, second + 6), ("d", "", 8e6, HOUR),
    ]  # fmt: skip
    accounts = pd.DataFrame(values, columns=["user", "dex", "account_value", "time"])
    for frame in (positions, accounts):
        frame["time"] = times(MONDAY + frame["time"])
    figures = ["size", "accounts", "positions", "long_usd", "short_usd"]
    for held in (positions, positions.drop(columns="dex")):
        made = tk.accounts.positioning(held, accounts, edges=[1e4, 1e6], by=[])
        assert made[figures].to_numpy().tolist() == [
            ["all", 2, 3, 300, 400],
            ["below 10k", 1, 1, 0, 400],
            ["1M and more", 1, 2, 300, 0],
            ["all", 3, 3, 250, 150],
            ["below 10k", 1, 1, 50, 0],
            ["10k to 1M", 1, 1, 200, 0],
            ["1M and more", 1, 1, 0, 150],
            ["all", 1, 1, 70, 0],
            ["1M and more", 1, 1, 70, 0],
        ]
        moments = (made["time"] - times([MONDAY])[0]) // pd.Timedelta("1ms")
        assert moments.tolist() == [5] * 3 + [second + 4] * 4 + [HOUR] * 2


def test_states_a_minute_apart_are_two_batches():
    """a and b have one state each, 60.001 s apart; without a dex of b, 60 s are one batch."""
    rows = ROWS.iloc[[0, 2]].reset_index(drop=True)
    for gap, count in ((60_000, 1), (60_001, 2)):
        both = rows.assign(time=times([MONDAY, MONDAY + gap]), dex=["flx", None])
        made = tk.accounts.positioning(both, edges=[1e6])
        assert made["time"].nunique() == count
        assert made["long_usd"].iloc[0] == 220
    unknown = tk.accounts.positioning(rows.assign(time=None), edges=[1e6], by=[])
    assert unknown["accounts"].tolist() == [2, 2]


def test_partly_missing_value_has_unknown_size():
    """a has 5,000 USD on one dex and a missing value on the other; b has 70 USD."""
    owners = pd.DataFrame(
        {"user": ["a", "a", "b"], "dex": ["x", "y", "x"], "account_value": [5e3, np.nan, 70.0]}
    )
    made = tk.accounts.positioning(ROWS, owners, edges=[100], by=[])
    assert made[["size", "accounts", "long_usd"]].to_numpy().tolist() == [
        ["all", 3, 330], ["below 100", 1, 0], ["unknown", 2, 330],
    ]  # fmt: skip


def test_classes_add_up():
    rng = np.random.default_rng(2)
    rows = pd.DataFrame(
        {"user": rng.integers(0, 60, 200).astype(str), "coin": rng.choice(["X", "Y", "Z"], 200),
         "szi": rng.normal(size=200), "position_value": rng.lognormal(10, 2, 200),
         "entry_px": 1.0}
    ).drop_duplicates(["user", "coin"])  # fmt: skip
    made = tk.accounts.positioning(rows)
    sums = ["accounts", "positions", "long_usd", "short_usd"]
    parts = made[made["size"] != "all"].groupby("coin")[sums].sum()
    whole = made[made["size"] == "all"].set_index("coin")[sums]
    pd.testing.assert_frame_equal(parts, whole)
    net = parts["long_usd"] - parts["short_usd"]
    assert made.loc[made["size"] == "all", "net_share"].tolist() == pytest.approx(
        (net / (parts["long_usd"] + parts["short_usd"])).tolist()
    )


def test_longs_equal_shorts_in_simulated_exchange():
    session = tk.local(seed=7, size="tiny")
    users = session.world["users"]
    states = tk.batch_clearinghouse_states(users, dex="ALL_DEXES", session=session)
    snapshot = tk.account_value_snapshots(["ALL"], session=session)
    sized = tk.accounts.positioning(states.positions, snapshot)
    assert "unknown" not in set(sized["size"])
    with pytest.warns(UserWarning, match="spot wallet"):
        made = tk.accounts.positioning(states.positions, states.accounts)
    assert "unknown" in set(made["size"])
    whole = made[made["size"] == "all"]
    assert len(whole) > 10
    assert whole["net_share"].abs().max() < 1e-6
    gain = (whole["gain_bps"] / 1e4 * (whole["long_usd"] + whole["short_usd"])).abs()
    assert gain.max() > 0


def test_edges_must_rise():
    with pytest.raises(ValueError, match="edges"):
        tk.accounts.positioning(ROWS, edges=[2, 1])


def test_intervals_hold_planted_share():
    assert hold_share("positioning", 5) >= 0.88
