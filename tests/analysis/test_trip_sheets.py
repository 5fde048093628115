"""Sheets of trips of several accounts, by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import toolkit as tk
from toolkit.analysis.common.bootstrap import bootstrap_interval
from toolkit.errors import MissingColumns

START = pd.Timestamp("2025-09-30", tz="UTC")
NETS = {
    "0xb": [4.0, -2.0, 3.0, -1.0],
    "0xa": [5.0, 1.0, 2.0, 8.0, 3.0, -4.0, 6.0, 7.0, 2.0],
    "0xc": [6.0, 0.0, 2.5],
}


def trips():
    """Return trips of three accounts; the third has no loss."""
    parts = [
        pd.DataFrame(
            {
                "user": user,
                "status": "closed",
                "net": net,
                "duration_hours": np.arange(1.0, len(net) + 1) ** 2,
                "closed": pd.date_range(START, periods=len(net)),
            }
        )
        for user, net in NETS.items()
    ]
    return pd.concat(parts, ignore_index=True)


def ratios(net):
    """Return the payoff ratio and the profit factor of each row."""
    gains, losses = np.where(net > 0, net, 0).sum(axis=1), -np.where(net < 0, net, 0).sum(axis=1)
    wins, lost = (net > 0).sum(axis=1), (net < 0).sum(axis=1)
    with np.errstate(all="ignore"):
        return {"profit_factor": gains / losses, "payoff_ratio": (gains / wins) / (losses / lost)}


def test_sheet_of_three_accounts_by_hand():
    table = tk.performance.trip_sheet(trips(), level=0.8, draws=150, seed=3)
    assert list(dict.fromkeys(table["user"])) == ["0xa", "0xb", "0xc"]
    rows = table.set_index(["user", "figure"])
    wanted = {
        "0xb": [4, 0.5, 3.5 / 1.5, 7 / 3, 1, (4 + 9) / 2, 4, -2],
        "0xa": [9, 8 / 9, 34 / 8 / 4, 34 / 4, 30 / 9, 25, 8, -4],
        "0xc": [3, 2 / 3, np.nan, np.nan, 8.5 / 3, 4, 6, 0],
    }
    for user, values in wanted.items():
        assert rows.loc[user, "value"].tolist() == pytest.approx(values, nan_ok=True)
    units = ["count", "share", "ratio", "ratio", "USD", "hours", "USD", "USD"]
    assert rows.loc["0xa", "unit"].tolist() == units
    assert set(table["basis"]) == {"trips"}
    facts = table.attrs["toolkit"]
    assert (facts["helper"], facts["level"]) == ("performance.trip_sheet", 0.8)
    assert list(facts["inputs"]) == ["trips"]


def test_intervals_of_trips_by_hand():
    """Trips are drawn again; the mean has Student's interval, and no loss leaves no interval."""
    table = tk.performance.trip_sheet(trips(), level=0.8, draws=150, seed=3)
    rows = table.set_index(["user", "figure"])
    for user in ("0xb", "0xa"):
        net = np.array(NETS[user])
        places = np.random.default_rng(3).integers(0, len(net), (150, len(net)))
        for name, drawn in ratios(net[places]).items():
            ends = bootstrap_interval(drawn, len(net), 0.8, positive=True)
            assert rows.loc[(user, name), ["low", "high"]].tolist() == pytest.approx(ends)
        mean = stats.t.interval(0.8, len(net) - 1, net.mean(), stats.sem(net))
        assert rows.loc[(user, "expectancy"), ["low", "high"]].tolist() == pytest.approx(mean)
    without_loss = rows.loc["0xc"].loc[["payoff_ratio", "profit_factor"], ["low", "high"]]
    assert without_loss.isna().all(axis=None)


def test_groups_of_trips_by_hand():
    """The first trip of each account closes in September; a trip may lack its duration."""
    months = tk.performance.trip_sheet(trips(), by="month")
    counts = months[months["figure"] == "trips"]
    assert counts["user"].tolist() == ["0xa", "0xa", "0xb", "0xb", "0xc", "0xc"]
    assert counts["month"].dt.month.tolist() == [9, 10] * 3
    assert counts["value"].tolist() == [1, 8, 1, 3, 1, 2]
    alone = tk.performance.trip_sheet(trips().drop(columns="user"), by=("month",))
    assert alone.columns[0] == "month"
    assert alone.loc[alone["figure"] == "worst_trip", "value"].tolist() == [4, -4]
    same = tk.performance.trip_sheet(trips(), by="user")
    assert same.equals(tk.performance.trip_sheet(trips()))
    opened = trips().assign(opened=START + pd.to_timedelta(np.arange(16) % 3, unit="h"))
    opened.loc[[0, 5], "duration_hours"] = np.nan
    hours = tk.performance.trip_sheet(opened, by="hour")
    counts = hours[hours["figure"] == "trips"].set_index(["user", "hour"])["value"]
    assert counts["0xb"].to_dict() == {0: 2, 1: 1, 2: 1}
    assert counts["0xa"].to_dict() == {0: 3, 1: 3, 2: 3}
    medians = hours[hours["figure"] == "median_hours"].set_index(["user", "hour"])["n"]
    assert medians["0xb"].to_dict() == {0: 1, 1: 1, 2: 1}
    with pytest.raises(MissingColumns, match=r"^trips: .*opened"):
        tk.performance.trip_sheet(trips(), by="hour")
