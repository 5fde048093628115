"""Skill of seven accounts, by hand."""

import numpy as np
import pandas as pd
import pytest

import toolkit as tk
from toolkit.performance._ratios import long_run_error, luck_probability, sharpe_error, sharpe_ratio
from toolkit.statistics import shrink_estimates

START = pd.Timestamp("2025-09-01", tz="UTC")
MEANS = {"0xa": (1, 2), "0xe": (5, 4), "0xb": (2, 1), "0xc": (3, 3), "0xd": (4, 5)}
"""Means of the first and the second half, in 1/1024."""


def series():
    noise = np.tile([1 / 64, -1 / 64], 6)
    return {
        user: np.concatenate([noise + first / 1024, noise + second / 1024])
        for user, (first, second) in MEANS.items()
    }


def returns():
    """Return 24 days of five accounts, of one without risk and of one with few days, unsorted."""
    rows = {**series(), "0xf": [0.25] * 24, "0x9": [0.5, -0.25] * 9}
    parts = [
        pd.DataFrame(
            {"user": user, "time": pd.date_range(START, periods=len(values)), "return_": values}
        )
        for user, values in rows.items()
    ]
    return pd.concat(parts, ignore_index=True).sample(frac=1.0, random_state=1)


def test_means_of_accounts_by_hand():
    found = tk.performance.skill(returns(), measure="mean", level=0.9)
    table = found.accounts
    assert table["user"].tolist() == ["0xd", "0xe", "0xc", "0xa", "0xb", "0x9", "0xf"]
    assert table["rank"].tolist()[:5] == [1, 1, 3, 4, 4]
    assert table["rank"].isna().tolist() == [False] * 5 + [True] * 2
    assert table["n"].tolist() == [24] * 5 + [18, 24]
    assert found.n == 5
    own = series()
    known = table[:5]
    values = [365 * float(own[user].mean()) for user in known["user"]]
    errors = [365 * long_run_error(own[user]) for user in known["user"]]
    assert known["value"].tolist() == pytest.approx(values)
    assert known["error"].tolist() == pytest.approx(errors)
    p = [luck_probability(own[user]) for user in known["user"]]
    assert known["p"].tolist() == pytest.approx(p)
    # Benjamini and Hochberg: p * 5 / place, at most that of the next larger p.
    shares = np.sort(p) * 5 / np.arange(1, 6)
    expected = np.minimum.accumulate(shares[::-1])[::-1]
    assert sorted(known["q"]) == pytest.approx(expected)
    shrunk = shrink_estimates(np.array(values), np.array(errors), 0.9)
    for name, wanted in (("shrunk", shrunk.values), ("low", shrunk.low), ("high", shrunk.high)):
        assert known[name].tolist() == pytest.approx(wanted)
    assert table[["value", "error", "shrunk", "low", "high", "p", "q"]][5:].isna().all(axis=None)
    halves = {user: (365 * a / 1024, 365 * b / 1024) for user, (a, b) in MEANS.items()}
    assert known["first_half"].tolist() == pytest.approx([halves[u][0] for u in known["user"]])
    assert known["second_half"].tolist() == pytest.approx([halves[u][1] for u in known["user"]])
    params = found.params.set_index("name")
    assert params.loc["mean"].tolist() == pytest.approx(shrunk.mean)
    assert params.loc["spread"].tolist() == pytest.approx(shrunk.spread)


def test_persistence_of_five_accounts_by_hand():
    """Ranks 1 2 3 4 5 and 2 1 3 5 4: 1 - 6 * 4 / (5 * 24) = 0.8."""
    found = tk.performance.skill(returns(), measure="mean", level=0.9).params.set_index("name")
    reach = 1.6448536269514722 * np.sqrt((1 + 0.8**2 / 2) / 2)
    ends = np.tanh(np.arctanh(0.8) + np.array([-reach, reach]))
    assert found.loc["persistence"].tolist() == pytest.approx([0.8, *ends])
    rows = returns()
    four = tk.performance.skill(rows[rows["user"] != "0xc"], measure="mean")
    assert four.params[["estimate", "low", "high"]].isna().all(axis=None)
    assert four.accounts["user"].tolist()[:2] == ["0xd", "0xe"]
    assert four.accounts["rank"].tolist()[:4] == [1, 1, 3, 3]


def test_sharpe_ratios_of_accounts_by_hand():
    """A missing return is none, and a half needs half of the returns."""
    rows = returns()
    gone = (rows["user"] == "0xa") & (rows["time"] < START + pd.Timedelta(days=3))
    rows.loc[gone, "return_"] = np.nan
    found = tk.performance.skill(rows, min_periods=20)
    table = found.accounts.set_index("user")
    own = {**series(), "0xa": series()["0xa"][3:]}
    for user, values in own.items():
        year = np.sqrt(365)
        assert table.loc[user, "value"] == pytest.approx(sharpe_ratio(values) * year)
        assert table.loc[user, "error"] == pytest.approx(sharpe_error(values) * year)
    assert table.loc["0xa", "n"] == 21
    assert np.isnan(table.loc["0xa", "first_half"])  # 9 of 10
    second = sharpe_ratio(own["0xa"][-12:]) * np.sqrt(365)
    assert table.loc["0xa", "second_half"] == pytest.approx(second)
    odd = tk.performance.skill(rows, min_periods=17).accounts.set_index("user")
    assert np.isfinite(odd.loc["0xa", "first_half"])  # 9 of 8.5
    assert np.isfinite(odd.loc["0x9", "value"])
    assert found.params.attrs["toolkit"]["measure"] == "sharpe"
    assert found.method.startswith("sharpe per year; shrinkage of Morris (1983); p of a mean above")


def test_ruin_and_certainty_do_not_spoil_the_others():
    """0xr gained, then lost everything; 0xf earns the same but for rounding; 0xg never loses.

    Of 0xg nobody knows how large a loss would be: it has a value, no p, and counts as 1 in q.
    """
    dates = pd.date_range(START, periods=24)
    odd = {
        "0xr": [0.5] * 23 + [-1.0],
        "0xf": 0.25 + 1e-12 * np.arange(24),
        "0xg": [0.001, 0.003] * 12,
    }
    rows = returns()[lambda rows: rows["user"].isin(list(MEANS))]
    parts = [pd.DataFrame({"user": u, "time": dates, "return_": r}) for u, r in odd.items()]
    table = tk.performance.skill(pd.concat([rows, *parts])).accounts.set_index("user")
    assert table.loc["0xr", ["p", "q"]].tolist() == [1, 1]
    assert table.loc[["0xr", "0xf"], ["value", "shrunk", "rank"]].isna().all(axis=None)
    assert np.isnan(table.loc["0xg", ["p", "q"]].astype(float)).all()
    known = list(MEANS)
    assert table.loc[known, ["value", "shrunk", "low", "high"]].notna().all(axis=None)
    before = tk.performance.skill(rows).accounts.set_index("user").loc[known, "q"]
    assert (table.loc[known, "q"] >= before - 1e-12).all()


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match=r"min_periods .* 2$"):
        tk.performance.skill(returns(), min_periods=2)
    least = returns()[lambda rows: rows["time"] < START + pd.Timedelta(days=3)]
    assert tk.performance.skill(least, min_periods=3).n == 6
    empty = tk.performance.skill(returns()[:0])
    assert (empty.n, len(empty.accounts)) == (0, 0)
