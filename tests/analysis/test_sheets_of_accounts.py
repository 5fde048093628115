"""Sheets of returns and of trips, and leaderboards, of several accounts and months, by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from toolkit.errors import HistoryWarning, MissingColumns
from toolkit.performance import leaderboard, sheet, trip_sheet
from toolkit.performance._ratios import luck_probability

NAN = float("nan")
START = pd.Timestamp("2025-09-30", tz="UTC")
RETURNS = {"0xb": [0.1, -0.2, 0.05, 0.3, -0.1], "0xa": [0.02, 0.01, -0.03, NAN, 0.04]}
COSTS = ["volume", "trading_fee", "builder_fee", "deployer_fee", "rebate", "funding"]


def days():
    """Return the returns of two accounts; only the second has leverage on some days."""
    dates = pd.date_range(START, periods=5)
    first = pd.DataFrame({"user": "0xb", "time": dates, "return_": RETURNS["0xb"]})
    second = first.assign(user="0xa", return_=RETURNS["0xa"], capital=200.0)
    second["leverage"] = [2.0, 3.0, NAN, 7.0, NAN]
    return pd.concat([first.assign(capital=1000.0, leverage=NAN), second], ignore_index=True)


def costs():
    rows = [
        ("0xb", START, 400.0, -1.0, -0.5, -0.25, 0.75, 3.0),
        ("0xb", START + pd.Timedelta(days=1), 600.0, -2.0, 0.0, 0.0, 0.0, -5.0),
        ("0xa", START + pd.Timedelta(days=1), 50.0, 0.0, 0.0, 0.0, 0.125, 1.5),
    ]
    return pd.DataFrame(rows, columns=["user", "day", *COSTS])


def trips_of(nets):
    """Return one trip a day of each account."""
    parts = [pd.DataFrame({"user": user, "net": net}) for user, net in nets.items()]
    trips = pd.concat(parts, ignore_index=True).assign(status="closed")
    number = trips.groupby("user").cumcount()
    closed = START + pd.to_timedelta(number, unit="D")
    return trips.assign(closed=closed, duration_hours=(number + 1.0) ** 2)


TRIPS = trips_of({"0xb": [-2.0], "0xa": [3.0, 4.0]})


def test_sheets_of_two_accounts_by_hand():
    found = sheet(days(), trips=TRIPS, costs=costs(), level=0.9, draws=99)
    rows = found.set_index(["user", "figure"])
    assert list(dict.fromkeys(found["user"])) == ["0xa", "0xb"]
    whole = 1.1 * 0.8 * 1.05 * 1.3 * 0.9
    returned = {
        "total_return": (whole - 1, 5, "share"),
        "max_drawdown": (-0.2, 5, "share"),
        "calmar": ((whole**73 - 1) / 0.2, 5, "ratio"),
        "best": (0.3, 5, "share"),
        "worst": (-0.2, 5, "share"),
        "probabilistic_sharpe": (1 - luck_probability(np.array(RETURNS["0xb"])), 5, "share"),
    }
    paid = {
        "volume": (1000, 2, "USD"),
        "fee_bps": (30, 2, "bps"),
        "turnover": (73, 2, "per year"),
        "fee_drag": (1e4 * 3 * 73 / 1000, 2, "bps"),
        "funding_drag": (1e4 * 2 * 73 / 1000, 2, "bps"),
    }
    first, second = rows.loc["0xb"], rows.loc["0xa"]
    for basis, wanted in (("returns", returned), ("costs", paid)):
        for name, (value, n, unit) in wanted.items():
            assert first.loc[name, "value"] == pytest.approx(value)
            assert first.loc[name, ["n", "unit", "basis"]].tolist() == [n, unit, basis]
    assert second.loc["leverage", ["value", "n", "unit"]].tolist() == [4.0, 3, "ratio"]
    assert second.loc["max_leverage", ["value", "n", "unit"]].tolist() == [7.0, 3, "ratio"]
    assert "leverage" not in first.index
    assert second.loc["fee_bps", "value"] == pytest.approx(-25)
    assert second.loc["trips", ["value", "basis"]].tolist() == [2, "trips"]
    assert second.loc["expectancy", "value"] == 3.5
    assert first.loc["best_trip", "value"] == -2
    of_returns = second[second["basis"] == "returns"]
    assert set(of_returns["n"].drop(["leverage", "max_leverage"])) == {4}
    units = of_returns["unit"]
    of_ratio = ["sharpe", "sharpe_error", "sortino", "calmar", "leverage", "max_leverage"]
    assert units[units == "ratio"].index.tolist() == of_ratio
    assert units[units == "periods"].index.tolist() == ["drawdown_periods"]
    assert set(units) == {"share", "ratio", "periods"}
    assert found.attrs["toolkit"]["level"] == 0.9


def test_months_of_two_accounts_by_hand():
    """The first day is in September. An account without trips or costs in a month has 0 of them."""
    found = sheet(days(), trips=TRIPS, costs=costs(), by="month")
    assert found.attrs["toolkit"]["by"] == "month"
    rows = found.assign(month=found["month"].dt.month).set_index(["user", "month", "figure"])
    wanted = {
        ("0xb", 9, "total_return"): (0.1, 1),
        ("0xb", 10, "total_return"): (0.8 * 1.05 * 1.17 - 1, 4),
        ("0xa", 10, "total_return"): (1.01 * 0.97 * 1.04 - 1, 3),
        ("0xb", 9, "volume"): (400, 1),
        ("0xb", 9, "fee_bps"): (1e4 * 1 / 400, 1),
        ("0xa", 9, "volume"): (0, 0),
        ("0xa", 9, "fee_bps"): (NAN, 0),
        ("0xb", 10, "trips"): (0, 0),
        ("0xa", 10, "trips"): (1, 1),
    }
    for place, row in wanted.items():
        assert rows.loc[place, ["value", "n"]].tolist() == pytest.approx(row, nan_ok=True), place
    none = sheet(days().assign(return_=NAN), trips=TRIPS)
    empty = none[none["figure"] == "total_return"]
    assert empty[["n", "unit"]].values.tolist() == [[0, "share"]] * 2


def test_drags_need_capital_and_costs():
    bare = sheet(days().drop(columns="capital"), costs=costs())
    assert not {"turnover", "fee_drag", "funding_drag"} & set(bare["figure"])
    free = sheet(days(), costs=costs().assign(funding=NAN))
    assert "fee_drag" in set(free["figure"])
    assert "funding_drag" not in set(free["figure"])
    poor = sheet(days().assign(capital=0.0), costs=costs())
    assert poor.loc[poor["figure"] == "turnover", "value"].isna().all()


# --- money-weighted returns ---


def periods(**columns):
    names = {"time": pd.date_range(START, periods=len(columns["return_"]))}
    return pd.DataFrame(names | columns)


def money_weighted(rows):
    found = sheet(rows).set_index("figure").loc["money_weighted_return"]
    return found["value"], found["n"]


def test_money_weighted_return_by_hand():
    """100 earn 10 %; 50 come at the second noon, and 135 USD on average lose 20 %."""
    rows = periods(
        return_=[0.1, -0.2], start=[100.0, 110.0], flows=[0.0, 50.0], capital=[100.0, 135.0]
    )
    per_day = np.sqrt(1 + money_weighted(rows)[0]) - 1
    second = 100 * (1 + per_day)
    # The last equity is 110 + 50 - 0.2 * 135 = 133.
    assert second + 50 + per_day * (second + 25) == pytest.approx(133, rel=1e-12)
    ruin = rows[:1].assign(return_=-0.999)  # more than 99 % of it is lost
    unknown = [rows.drop(columns=name) for name in ("start", "flows", "capital")]
    assert np.isnan([money_weighted(given)[0] for given in (ruin, *unknown)]).all()


def test_money_weighted_return_after_period_without_capital():
    """100 earn 10 USD on the first day; on the second, 200 leave early, so its capital is -77.5.

    Then 110 earn 100 USD, so 10 remain. With g = 1 + r: 100 g - 200 + r (100 g - 187.5) = 10, so
    100 g**2 - 187.5 g - 22.5 = 0. With the third day, on which 10 earn 10 %:
    (100 g**2 - 187.5 g - 12.5) g = 11.
    """
    rows = periods(
        return_=[0.1, NAN, 0.1],
        start=[100.0, 110.0, 10.0],
        flows=[0.0, -200.0, 0.0],
        capital=[100.0, -77.5, 10.0],
        gain=[10.0, 100.0, 1.0],
    )
    value, n = money_weighted(rows)
    assert n == 3
    growth = np.cbrt(1 + value)
    assert growth == pytest.approx(1.96698, abs=1e-5)
    assert (100 * growth**2 - 187.5 * growth - 12.5) * growth == pytest.approx(11)
    two = (187.5 + np.sqrt(187.5**2 + 4 * 100 * 22.5)) / 200
    assert money_weighted(rows[:2]) == (pytest.approx(two**2 - 1), 2)
    nothing = rows.assign(time=rows["time"] - pd.Timedelta(days=3), return_=NAN)
    nothing[["start", "flows", "capital", "gain"]] = 0.0
    assert money_weighted(pd.concat([nothing, rows])) == (pytest.approx(value), 3)
    unknown = [rows[:2].drop(columns="gain")]
    unknown += [
        rows.assign(**{name: rows[name].mask(rows.index == 1)}) for name in ("start", "capital")
    ]
    assert np.isnan([money_weighted(given)[0] for given in unknown]).all()


def test_money_weighted_return_of_several_solutions_is_missing():
    """(100 g**2 - 230 g + 132) g = 2 holds near 0.02, 1.07 and 1.22."""
    rows = periods(
        return_=[0.2, NAN, -0.9],
        start=[100.0, 120.0, -112.0],
        flows=[0.0, -230.0, 132.0],
        capital=[100.0, -110.0, 20.0],
        gain=[20.0, -2.0, -18.0],
    )
    assert np.isnan(money_weighted(rows)[0])


# --- costs that are not known on some days ---


def cost_days(count):
    """Return days with a capital of 1,000, and costs of the first four."""
    returns = periods(return_=[0.01, -0.01] * (count // 2), capital=1000.0)
    rows = [
        (1000.0, -1.0, -0.5, 0.0, 0.25, -2.0),
        (3000.0, NAN, NAN, NAN, NAN, NAN),
        (2000.0, NAN, NAN, NAN, NAN, NAN),
        (500.0, -2.0, NAN, NAN, 0.0, NAN),
    ]
    return returns, pd.DataFrame(rows, columns=COSTS).assign(day=returns["time"][:4])


def figures(returns, costs):
    return sheet(returns, costs=costs).set_index("figure")[["value", "n"]]


def test_missing_costs_are_not_zero():
    """Fees of the first day are 1.25, of the fourth 2; funding is known on the first day.

    So the fees are 3.25 of 1,500. Of 4 days, fees are known on 2 and funding on 1.
    """
    found = figures(*cost_days(4))
    wanted = {
        "volume": (6500, 4),
        "fee_bps": (1e4 * 3.25 / 1500, 2),
        "turnover": (6.5 * 365 / 4, 4),
        "fee_drag": (1e4 * 3.25e-3 * 365 / 2, 2),
        "funding_drag": (1e4 * 2e-3 * 365, 1),
    }
    for name, row in wanted.items():
        assert found.loc[name].tolist() == pytest.approx(row)


def test_missing_costs_leave_out_their_days_only():
    """Six more days have no row, so no costs. Only the capital of known days counts."""
    returns, costs = cost_days(10)
    returns["capital"] = [500.0, 9e9, 9e9, 1500.0, *[1250.0] * 6]
    drag = figures(returns, costs).loc["fee_drag", "value"]
    assert drag == pytest.approx(1e4 * 3.25 / (9500 / 8) * 365 / 8)
    rows = figures(returns, costs[1:3]).loc[["fee_bps", "fee_drag", "volume"]]
    assert rows["value"].tolist() == pytest.approx([NAN, NAN, 5000], nan_ok=True)
    assert rows["n"].tolist() == [0, 0, 2]


def test_missing_costs_of_other_periods():
    """Of two weeks the first has an unknown day; of four days in hours, two are unknown."""
    returns, costs = cost_days(10)
    weeks = returns[:2].assign(time=[START, START + pd.Timedelta(days=7)], capital=[800.0, 200.0])
    later = costs[:1].assign(day=START + pd.Timedelta(days=8), trading_fee=-4.0)
    rows = figures(weeks, pd.concat([costs, later]))
    assert rows.loc["fee_drag"].tolist() == pytest.approx([1e4 * 4.25 / 200 * 365 / 7, 1])
    assert rows.loc["fee_bps", "n"] == 3
    hours = pd.DataFrame({"time": pd.date_range(START, periods=96, freq="h"), "return_": 0.0})
    hours["capital"] = np.repeat([500.0, 9e9, 9e9, 1500.0], 24)
    drag = figures(hours, costs).loc["fee_drag"].tolist()
    assert drag == pytest.approx([1e4 * 3.25 / 1000 * 365 / 2, 2])


def test_month_with_one_week_by_hand():
    """Volume of 0.7 and 1.4 times the capital in a week, of which September has one."""
    weeks = pd.date_range("2025-09-29", periods=5, freq="7D", tz="UTC")
    returns = pd.DataFrame({"time": weeks, "return_": 0.01, "capital": 1000.0})
    costs = pd.DataFrame({"day": weeks, "volume": [700.0, *[1400.0] * 4]})
    costs = costs.assign(builder_fee=0.0, deployer_fee=0.0, rebate=0.0)
    costs["trading_fee"] = -costs["volume"] / 1000
    found = sheet(returns, costs=costs, by="month").set_index("figure")["value"]
    assert found["turnover"].tolist() == pytest.approx([0.7 * 365 / 7, 1.4 * 365 / 7])
    assert found["fee_drag"].tolist() == pytest.approx([365, 730])


# --- leaderboards ---

FIGURES = pd.DataFrame(
    [
        ("0xc", "sharpe", 1.0, 0.5, 1.5, 30),
        ("0xb", "sharpe", 3.0, 2.0, 4.0, 10),
        ("0xa", "sharpe", 1.0, 0.0, 0.25, 40),
        ("0xe", "sharpe", NAN, NAN, NAN, 1),
        ("0xd", "sharpe", 1.75, 1.5, 2.0, 20),
        ("0xa", "volatility", 0.75, 0.5, 1.0, 40),
        ("0xb", "volatility", 0.25, 0.0, 0.5, 10),
        ("0xc", "trips", 7.0, NAN, NAN, 7),
    ],
    columns=["user", "figure", "value", "low", "high", "n"],
)


def test_leaderboard_of_overlaps_by_hand():
    """0xd touches 0xb at 2; 0xe has no interval, and no volume; 0xa and 0xc have the same value."""
    table = leaderboard(FIGURES, show=["trips", "volatility", "sharpe", "alpha"])
    names = ["rank", "user", "figure", "value", "low", "high", "n", "overlaps"]
    assert table.columns.tolist() == [*names, "trips", "volatility"]
    numbers = table.drop(columns=["user", "figure", "value"]).to_numpy(dtype=float, na_value=NAN)
    wanted = [
        [1, 2, 4, 10, 1, NAN, 0.25],
        [2, 1.5, 2, 20, 2, NAN, NAN],
        [3, 0, 0.25, 40, 0, NAN, 0.75],
        [4, 0.5, 1.5, 30, 1, 7, NAN],
        [5, NAN, NAN, 1, NAN, NAN, NAN],
    ]
    assert table["user"].tolist() == ["0xb", "0xd", "0xa", "0xc", "0xe"]
    assert numbers == pytest.approx(np.array(wanted), nan_ok=True)
    low = leaderboard(FIGURES, by="volatility")  # the lowest is the best
    assert low[["user", "figure", "overlaps"]].values.tolist() == [
        ["0xb", "volatility", 1],
        ["0xa", "volatility", 1],
    ]
    assert low.attrs["toolkit"]["ascending"]
    assert leaderboard(FIGURES, by="volatility", ascending=False)["user"].tolist() == ["0xa", "0xb"]
    assert leaderboard(FIGURES, by="trips")["overlaps"].isna().all()  # a fact has no interval


def test_ruin_ranks_last():
    """0xb lost everything, so its Sharpe ratio of 3 ranks no account; 0xe has none at all."""
    ruin = FIGURES[:1].assign(user="0xb", figure="total_return", value=-1.0)
    table = leaderboard(pd.concat([FIGURES, ruin]))
    assert table["user"].tolist() == ["0xd", "0xa", "0xc", "0xb", "0xe"]


def test_known_figures_of_every_leaderboard():
    assert leaderboard(FIGURES, "sharpe").columns[8:].tolist() == ["volatility", "trips"]
    known = "total_return annual_return volatility sharpe max_drawdown win_rate profit_factor"
    known += " trips volume fee_bps"
    every = pd.concat([FIGURES[:1].assign(figure=name) for name in [*known.split(), "best"]])
    assert leaderboard(every, "best").columns[8:].tolist() == known.split()


# --- trips ---

NETS = {
    "0xb": [4.0, -2.0, 3.0, -1.0],
    "0xa": [5.0, 1.0, 2.0, 8.0, 3.0, -4.0, 6.0, 7.0, 2.0],
    "0xc": [6.0, 0.0, 2.5],
}
"""Trips of three accounts; the third has no loss."""


def test_trips_of_three_accounts_by_hand():
    """Trips are drawn again; the mean has Student's interval, and no loss leaves no interval."""
    table = trip_sheet(trips_of(NETS), level=0.8)
    assert list(dict.fromkeys(table["user"])) == ["0xa", "0xb", "0xc"]
    rows = table.set_index(["user", "figure"])
    wanted = {
        "0xb": [4, 0.5, 3.5 / 1.5, 7 / 3, 1, (4 + 9) / 2, 4, -2],
        "0xa": [9, 8 / 9, 34 / 8 / 4, 34 / 4, 30 / 9, 25, 8, -4],
        "0xc": [3, 2 / 3, NAN, NAN, 8.5 / 3, 4, 6, 0],
    }
    for user, values in wanted.items():
        assert rows.loc[user, "value"].tolist() == pytest.approx(values, nan_ok=True)
    units = ["count", "share", "ratio", "ratio", "USD", "hours", "USD", "USD"]
    assert rows.loc["0xa", "unit"].tolist() == units
    assert set(table["basis"]) == {"trips"}
    net = np.array(NETS["0xb"])  # two gains and two losses: 2 degrees of freedom
    gains, losses = np.maximum(net, 0) / 1.75, np.maximum(-net, 0) / 0.75
    reach = stats.t.ppf(0.9, 2) * np.sqrt(((gains - losses) ** 2).sum() / 3 / 4)
    ends = 7 / 3 * np.exp([-reach, reach])
    assert rows.loc[("0xb", "profit_factor"), ["low", "high"]].tolist() == pytest.approx(ends)
    spread = np.sqrt(0.5 / 3.5**2 / 2 + 0.5 / 1.5**2 / 2)
    reach = stats.t.ppf(0.9, 1) * spread
    ends = 7 / 3 * np.exp([-reach, reach])
    assert rows.loc[("0xb", "payoff_ratio"), ["low", "high"]].tolist() == pytest.approx(ends)
    low, high = rows.loc[("0xb", "expectancy"), ["low", "high"]]
    assert low < 1 < high
    few = rows.loc[["0xa", "0xc"]].drop(index=["trips", "win_rate"], level=1)
    few = few[few["unit"] != "hours"]
    assert few[["low", "high"]].isna().all(axis=None)
    assert set(few["method"]) == {"needs two gains and two losses", "fact"}


def test_groups_of_trips_by_hand():
    """The first trip of each account closes in September; a trip may lack its duration."""
    trips = trips_of(NETS)
    months = trip_sheet(trips, by="month")
    counts = months[months["figure"] == "trips"]
    assert counts["user"].tolist() == ["0xa", "0xa", "0xb", "0xb", "0xc", "0xc"]
    assert counts["month"].dt.month.tolist() == [9, 10] * 3
    assert counts["value"].tolist() == [1, 8, 1, 3, 1, 2]
    alone = trip_sheet(trips.drop(columns="user"), by=("month",))
    assert alone.columns[0] == "month"
    assert alone.loc[alone["figure"] == "worst_trip", "value"].tolist() == [4, -4]
    assert trip_sheet(trips, by="user").equals(trip_sheet(trips))
    opened = trips.assign(opened=START + pd.to_timedelta(np.arange(16) % 3, unit="h"))
    opened.loc[[0, 5], "duration_hours"] = NAN
    hours = trip_sheet(opened, by="hour")
    counts = hours[hours["figure"] == "trips"].set_index(["user", "hour"])["value"]
    assert counts["0xb"].to_dict() == {0: 2, 1: 1, 2: 1}
    assert counts["0xa"].to_dict() == {0: 3, 1: 3, 2: 3}
    medians = hours[hours["figure"] == "median_hours"].set_index(["user", "hour"])["n"]
    assert medians["0xb"].to_dict() == {0: 1, 1: 1, 2: 1}


def test_incomplete_trips_warn():
    with pytest.warns(HistoryWarning, match="1 of 3 trips"):
        found = trip_sheet(TRIPS.assign(status=["closed", "late", "closed"]))
    assert found.loc[found["figure"] == "trips", "value"].tolist() == [1, 1]


def test_wrong_arguments_are_named():
    for error, named, call in (
        (MissingColumns, "^costs: .*volume", lambda: sheet(days(), costs=costs()[["user", "day"]])),
        (ValueError, "^draws", lambda: sheet(days(), draws=-1)),
        (ValueError, "'alpha'.*sharpe, trips", lambda: leaderboard(FIGURES, by="alpha")),
        (MissingColumns, "^trips: .*opened", lambda: trip_sheet(TRIPS, by="hour")),
        (ValueError, "^by ", lambda: trip_sheet(TRIPS, by="size")),
    ):
        with pytest.raises(error, match=named):
            call()


def test_periods_of_an_account_are_its_own():
    """Hourly returns of one account change no figure of another one with daily returns."""
    day = pd.DataFrame({"user": "0xa", "return_": RETURNS["0xb"]})
    day["time"] = pd.date_range(START, periods=5)
    hour = day.assign(user="0xb", time=pd.date_range(START, periods=5, freq="h"))
    both = sheet(pd.concat([day, hour])).set_index("user")
    alone = sheet(day).set_index("user")
    pd.testing.assert_frame_equal(both.loc[["0xa"]], alone)


def test_trips_and_costs_without_user_belong_to_nobody():
    for name, given in (("trips", TRIPS), ("costs", costs())):
        given = given.drop(columns="user", errors="ignore")
        with pytest.raises(MissingColumns, match=rf"^{name}: .*user.* 2 accounts"):
            sheet(days(), **{name: given})
        one = days().query("user == '0xb'")
        assert name in sheet(one, **{name: given})["basis"].tolist()
