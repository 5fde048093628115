"""Performance sheets and leaderboards of several accounts and months, by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import toolkit as tk
from toolkit.analysis.common.bootstrap import bootstrap_interval
from toolkit.analysis.performance.ratios import probabilistic_sharpe
from toolkit.errors import MissingColumns

START = pd.Timestamp("2025-09-30", tz="UTC")
RETURNS = {"0xb": [0.1, -0.2, 0.05, 0.3, -0.1], "0xa": [0.02, 0.01, -0.03, np.nan, 0.04]}


def days():
    """Return the returns of two accounts; only the second has leverage on some days."""
    leverage = {"0xb": [np.nan] * 5, "0xa": [2.0, 3.0, np.nan, 7.0, np.nan]}
    parts = [
        pd.DataFrame(
            {
                "user": user,
                "time": pd.date_range(START, periods=5),
                "return_": values,
                "capital": 1000.0 if user == "0xb" else 200.0,
                "leverage": leverage[user],
            }
        )
        for user, values in RETURNS.items()
    ]
    return pd.concat(parts, ignore_index=True)


def costs():
    rows = [
        ("0xb", START, 400.0, -1.0, -0.5, -0.25, 0.75, 3.0),
        ("0xb", START + pd.Timedelta(days=1), 600.0, -2.0, 0.0, 0.0, 0.0, -5.0),
        ("0xa", START + pd.Timedelta(days=1), 50.0, 0.0, 0.0, 0.0, 0.125, 1.5),
    ]
    names = ["user", "day", "volume", "trading_fee", "builder_fee", "deployer_fee", "rebate"]
    return pd.DataFrame(rows, columns=[*names, "funding"])


def trips():
    return pd.DataFrame(
        {"user": ["0xa", "0xb", "0xa"], "status": "closed", "net": [3.0, -2.0, 4.0],
         "duration_hours": [1.0, 2.0, 3.0], "closed": pd.date_range(START, periods=3)}
    )  # fmt: skip


def test_sheets_of_two_accounts_by_hand():
    sheet = tk.performance.sheet(days(), trips=trips(), costs=costs(), level=0.9, draws=99)
    rows = sheet.set_index(["user", "figure"])
    assert list(dict.fromkeys(sheet["user"])) == ["0xa", "0xb"]
    whole = 1.1 * 0.8 * 1.05 * 1.3 * 0.9
    yearly = whole**73 - 1
    first = rows.loc["0xb"]
    assert first.loc["total_return", "value"] == pytest.approx(whole - 1)
    assert first.loc["max_drawdown", "value"] == pytest.approx(-0.2)
    assert first.loc["calmar", "value"] == pytest.approx(yearly / 0.2)
    assert first.loc["best", "value"] == 0.3
    assert first.loc["worst", "value"] == -0.2
    above = np.array(RETURNS["0xb"])
    assert first.loc["probabilistic_sharpe", "value"] == probabilistic_sharpe(above)
    paid = {
        "volume": (1000, 2, "USD"),
        "fee_bps": (30, 2, "bps"),
        "turnover": (73, 2, "per year"),
        "fee_drag": (1e4 * 3 * 73 / 1000, 2, "bps"),
        "funding_drag": (1e4 * 2 * 73 / 1000, 2, "bps"),
    }
    for name, (value, n, unit) in paid.items():
        assert first.loc[name, "value"] == pytest.approx(value)
        assert first.loc[name, ["n", "unit", "basis"]].tolist() == [n, unit, "costs"]
    second = rows.loc["0xa"]
    assert second.loc["leverage", ["value", "n", "unit"]].tolist() == [4.0, 3, "ratio"]
    assert second.loc["max_leverage", ["value", "n", "unit"]].tolist() == [7.0, 3, "ratio"]
    assert "leverage" not in first.index
    assert second.loc["fee_bps", "value"] == pytest.approx(-25)
    assert second.loc["trips", ["value", "basis"]].tolist() == [2, "trips"]
    assert second.loc["expectancy", "value"] == 3.5
    assert first.loc["best_trip", "value"] == -2
    returned = second[second["basis"] == "returns"]
    assert set(returned["n"].drop(["leverage", "max_leverage"])) == {4}
    units = returned["unit"]
    of_ratio = ["sharpe", "sharpe_error", "sortino", "calmar", "leverage", "max_leverage"]
    assert units[units == "ratio"].index.tolist() == of_ratio
    assert units[units == "periods"].index.tolist() == ["drawdown_periods"]
    assert set(units) == {"share", "ratio", "periods"}
    facts = sheet.attrs["toolkit"]
    assert (facts["helper"], facts["by"], facts["level"]) == ("performance.sheet", None, 0.9)
    assert list(facts["inputs"]) == ["returns"]


def test_months_of_two_accounts_by_hand():
    """The first day is in September. An account without trips or costs in a month has 0 of them."""
    sheet = tk.performance.sheet(days(), trips=trips(), costs=costs(), by="month")
    assert sheet.attrs["toolkit"]["by"] == "month"
    rows = sheet.assign(month=sheet["month"].dt.month).set_index(["user", "month", "figure"])
    assert rows.loc[("0xb", 9, "total_return"), "value"] == pytest.approx(0.1)
    assert rows.loc[("0xb", 10, "total_return"), "value"] == pytest.approx(0.8 * 1.05 * 1.17 - 1)
    assert rows.loc[("0xa", 10, "total_return"), "n"] == 3
    assert rows.loc[("0xb", 9, "volume"), "value"] == 400
    assert rows.loc[("0xb", 9, "fee_bps"), "value"] == pytest.approx(1e4 * 1 / 400)
    assert rows.loc[("0xa", 9, "volume"), ["value", "n"]].tolist() == [0, 0]
    assert np.isnan(rows.loc[("0xa", 9, "fee_bps"), "value"])
    assert rows.loc[("0xb", 9, "trips"), "value"] == 0
    assert rows.loc[("0xa", 10, "trips"), "value"] == 1
    none = tk.performance.sheet(days().assign(return_=np.nan), trips=trips())
    empty = none[none["figure"] == "total_return"]
    assert empty[["n", "unit"]].values.tolist() == [[0, "share"]] * 2


def test_drags_need_capital_and_costs():
    bare = tk.performance.sheet(days().drop(columns="capital"), costs=costs())
    assert not {"turnover", "fee_drag", "funding_drag"} & set(bare["figure"])
    free = tk.performance.sheet(days(), costs=costs().assign(funding=np.nan))
    assert "fee_drag" in set(free["figure"])
    assert "funding_drag" not in set(free["figure"])
    poor = tk.performance.sheet(days().assign(capital=0.0), costs=costs())
    assert poor.loc[poor["figure"] == "turnover", "value"].isna().all()


def test_money_weighted_return_by_hand():
    """100 earn 10 %; 50 come at the second noon, and 135 USD on average lose 20 %."""
    rows = pd.DataFrame(
        {"time": pd.date_range(START, periods=2), "return_": [0.1, -0.2],
         "start": [100.0, 110.0], "flows": [0.0, 50.0], "capital": [100.0, 135.0]}
    )  # fmt: skip
    found = tk.performance.sheet(rows).set_index("figure")
    rate = found.loc["money_weighted_return", "value"]
    per_day = np.sqrt(1 + rate) - 1
    second = 100 * (1 + per_day)
    # The last equity is 110 + 50 - 0.2 * 135 = 133.
    assert second + 50 + per_day * (second + 25) == pytest.approx(133, rel=1e-12)
    ruin = rows[:1].assign(return_=-0.999)  # more than 99 % of it is lost
    none = tk.performance.sheet(ruin).set_index("figure")
    assert np.isnan(none.loc["money_weighted_return", "value"])
    for name in ("start", "flows", "capital"):
        unknown = tk.performance.sheet(rows.drop(columns=name)).set_index("figure")
        assert np.isnan(unknown.loc["money_weighted_return", "value"])


def money_weighted(rows):
    found = tk.performance.sheet(rows).set_index("figure").loc["money_weighted_return"]
    return found["value"], found["n"]


def test_money_weighted_return_after_period_without_capital():
    """100 earn 10 USD on the first day; on the second, 200 leave early, so its capital is -77.5.

    Then 110 earn 100 USD, so 10 remain. With g = 1 + r: 100 g - 200 + r (100 g - 187.5) = 10, so
    100 g**2 - 187.5 g - 22.5 = 0. With the third day, on which 10 earn 10 %:
    (100 g**2 - 187.5 g - 12.5) g = 11.
    """
    days = pd.DataFrame(
        {"time": pd.date_range(START, periods=3), "return_": [0.1, np.nan, 0.1],
         "start": [100.0, 110.0, 10.0], "flows": [0.0, -200.0, 0.0],
         "capital": [100.0, -77.5, 10.0], "gain": [10.0, 100.0, 1.0]}
    )  # fmt: skip
    value, n = money_weighted(days)
    assert n == 3
    growth = np.cbrt(1 + value)
    assert growth == pytest.approx(1.96698, abs=1e-5)
    assert (100 * growth**2 - 187.5 * growth - 12.5) * growth == pytest.approx(11)
    two = (187.5 + np.sqrt(187.5**2 + 4 * 100 * 22.5)) / 200
    assert money_weighted(days[:2]) == (pytest.approx(two**2 - 1), 2)
    nothing = days.assign(time=days["time"] - pd.Timedelta(days=3), return_=np.nan)
    nothing[["start", "flows", "capital", "gain"]] = 0.0
    assert money_weighted(pd.concat([nothing, days])) == (pytest.approx(value), 3)
    assert np.isnan(money_weighted(days[:2].drop(columns="gain"))[0])
    for name in ("start", "capital"):
        unknown = days.copy()
        unknown.loc[1, name] = np.nan
        assert np.isnan(money_weighted(unknown)[0])


def test_money_weighted_return_of_several_solutions_is_missing():
    """(100 g**2 - 230 g + 132) g = 2 holds near 0.02, 1.07 and 1.22."""
    days = pd.DataFrame(
        {"time": pd.date_range(START, periods=3), "return_": [0.2, np.nan, -0.9],
         "start": [100.0, 120.0, -112.0], "flows": [0.0, -230.0, 132.0],
         "capital": [100.0, -110.0, 20.0], "gain": [20.0, -2.0, -18.0]}
    )  # fmt: skip
    assert np.isnan(money_weighted(days)[0])


def cost_days(count):
    """Return days without returns and with a capital of 1,000, and costs of the first four."""
    times = pd.date_range(START, periods=count)
    returns = pd.DataFrame({"time": times, "return_": [0.01, -0.01] * (count // 2)})
    none = np.nan
    costs = pd.DataFrame(
        {"day": times[:4], "volume": [1000.0, 3000.0, 2000.0, 500.0],
         "trading_fee": [-1.0, none, none, -2.0], "builder_fee": [-0.5, none, none, none],
         "deployer_fee": [0.0, none, none, none], "rebate": [0.25, none, none, 0.0],
         "funding": [-2.0, none, none, none]}
    )  # fmt: skip
    return returns.assign(capital=1000.0), costs


def test_missing_costs_are_not_zero():
    """Fees of the first day are 1.25, of the fourth 2; funding is known on the first day.

    So the fees are 3.25 of 1,500. Of 4 days, fees are known on 2 and funding on 1.
    """
    returns, costs = cost_days(4)
    found = tk.performance.sheet(returns, costs=costs).set_index("figure")
    wanted = {
        "volume": (6500, 4),
        "fee_bps": (1e4 * 3.25 / 1500, 2),
        "turnover": (6.5 * 365 / 4, 4),
        "fee_drag": (1e4 * 3.25e-3 * 365 / 2, 2),
        "funding_drag": (1e4 * 2e-3 * 365, 1),
    }
    for name, row in wanted.items():
        assert found.loc[name, ["value", "n"]].tolist() == pytest.approx(row)


def test_missing_costs_leave_out_their_days_only():
    """Six more days have no row, so no costs. Only the capital of known days counts."""
    returns, costs = cost_days(10)
    returns["capital"] = [500.0, 9e9, 9e9, 1500.0, *[1250.0] * 6]
    rows = tk.performance.sheet(returns, costs=costs).set_index("figure")
    assert rows.loc["fee_drag", "value"] == pytest.approx(1e4 * 3.25 / (9500 / 8) * 365 / 8)
    unknown = costs[1:3]
    rows = tk.performance.sheet(returns, costs=unknown).set_index("figure")
    assert rows.loc[["fee_bps", "fee_drag"], "value"].isna().all()
    assert rows.loc[["fee_bps", "fee_drag", "volume"], "n"].tolist() == [0, 0, 2]


def test_missing_costs_of_other_periods():
    """Of two weeks the first has an unknown day; of four days in hours, two are unknown."""
    returns, costs = cost_days(10)
    weeks = returns[:2].assign(time=[START, START + pd.Timedelta(days=7)], capital=[800.0, 200.0])
    later = costs[:1].assign(day=START + pd.Timedelta(days=8), trading_fee=-4.0)
    given = pd.concat([costs, later])
    rows = tk.performance.sheet(weeks, costs=given).set_index("figure")
    drag = rows.loc["fee_drag", ["value", "n"]].tolist()
    assert drag == pytest.approx([1e4 * 4.25 / 200 * 365 / 7, 1])
    assert rows.loc["fee_bps", "n"] == 3
    hours = pd.DataFrame({"time": pd.date_range(START, periods=96, freq="h"), "return_": 0.0})
    hours["capital"] = np.repeat([500.0, 9e9, 9e9, 1500.0], 24)
    rows = tk.performance.sheet(hours, costs=costs).set_index("figure")
    drag = rows.loc["fee_drag", ["value", "n"]].tolist()
    assert drag == pytest.approx([1e4 * 3.25 / 1000 * 365 / 2, 2])


def test_month_with_one_week_by_hand():
    """Volume of 0.7 and 1.4 times the capital in a week, of which September has one."""
    weeks = pd.date_range("2025-09-29", periods=5, freq="7D", tz="UTC")
    returns = pd.DataFrame({"time": weeks, "return_": 0.01, "capital": 1000.0})
    costs = pd.DataFrame({"day": weeks, "volume": [700.0, *[1400.0] * 4]})
    costs = costs.assign(
        trading_fee=-costs["volume"] / 1000, builder_fee=0.0, deployer_fee=0.0, rebate=0.0
    )
    found = tk.performance.sheet(returns, costs=costs, by="month").set_index("figure")["value"]
    assert found["turnover"].tolist() == pytest.approx([0.7 * 365 / 7, 1.4 * 365 / 7])
    assert found["fee_drag"].tolist() == pytest.approx([365, 730])


def test_leaderboard_of_overlaps_by_hand():
    """0xd touches 0xb at 2; 0xe has no interval, and no volume; 0xa and 0xc have the same value."""
    rows = pd.DataFrame(
        [
            ("0xc", "sharpe", 1.0, 0.5, 1.5, 30),
            ("0xb", "sharpe", 3.0, 2.0, 4.0, 10),
            ("0xa", "sharpe", 1.0, 0.0, 0.25, 40),
            ("0xe", "sharpe", np.nan, np.nan, np.nan, 1),
            ("0xd", "sharpe", 1.75, 1.5, 2.0, 20),
            ("0xa", "volatility", 0.75, 0.5, 1.0, 40),
            ("0xb", "volatility", 0.25, 0.0, 0.5, 10),
            ("0xc", "trips", 7.0, np.nan, np.nan, 7),
        ],
        columns=["user", "figure", "value", "low", "high", "n"],
    )
    table = tk.performance.leaderboard(rows, show=["trips", "volatility", "sharpe", "alpha"])
    assert table["user"].tolist() == ["0xb", "0xd", "0xa", "0xc", "0xe"]
    assert table["rank"].tolist() == [1, 2, 3, 4, 5]
    assert table["overlaps"].tolist() == [1, 2, 0, 1, 0]
    assert table["n"].tolist() == [10, 20, 40, 30, 1]
    assert table["low"].tolist()[:4] == [2, 1.5, 0, 0.5]
    assert table["high"].tolist()[:4] == [4, 2, 0.25, 1.5]
    nan = np.nan
    assert table["volatility"].tolist() == pytest.approx([0.25, nan, 0.75, nan, nan], nan_ok=True)
    assert table["trips"].tolist() == pytest.approx([nan, nan, nan, 7, nan], nan_ok=True)
    assert table.columns.tolist() == [
        "rank", "user", "figure", "value", "low", "high", "n", "overlaps", "trips", "volatility",
    ]  # fmt: skip
    facts = table.attrs["toolkit"]
    assert (facts["helper"], facts["by"]) == ("performance.leaderboard", "sharpe")
    assert list(facts["inputs"]) == ["figures"]
    low = tk.performance.leaderboard(rows, by="volatility", ascending=True)
    assert low["user"].tolist() == ["0xb", "0xa"]
    assert low["figure"].tolist() == ["volatility"] * 2
    assert low["overlaps"].tolist() == [1, 1]
    assert len(tk.performance.leaderboard(rows[:0])) == 0
    few = tk.performance.leaderboard(rows.astype({"n": "int32"}), "sharpe")
    assert few.columns[8:].tolist() == ["volatility", "trips"]
    assert set(map(str, few[["n", "overlaps"]].dtypes)) == {"int64"}
    known = "total_return annual_return volatility sharpe max_drawdown win_rate profit_factor"
    known += " trips volume fee_bps"
    every = rows[:1].merge(pd.DataFrame({"figure": [*known.split(), "best"]}), how="cross")
    every = every.drop(columns="figure_x").rename(columns={"figure_y": "figure"})
    shown = tk.performance.leaderboard(every, "best").columns[8:]
    assert shown.tolist() == known.split()


# --- trips ---

NETS = {
    "0xb": [4.0, -2.0, 3.0, -1.0],
    "0xa": [5.0, 1.0, 2.0, 8.0, 3.0, -4.0, 6.0, 7.0, 2.0],
    "0xc": [6.0, 0.0, 2.5],
}


def three_accounts():
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
    table = tk.performance.trip_sheet(three_accounts(), level=0.8, draws=150, seed=3)
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
    table = tk.performance.trip_sheet(three_accounts(), level=0.8, draws=150, seed=3)
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
    months = tk.performance.trip_sheet(three_accounts(), by="month")
    counts = months[months["figure"] == "trips"]
    assert counts["user"].tolist() == ["0xa", "0xa", "0xb", "0xb", "0xc", "0xc"]
    assert counts["month"].dt.month.tolist() == [9, 10] * 3
    assert counts["value"].tolist() == [1, 8, 1, 3, 1, 2]
    alone = tk.performance.trip_sheet(three_accounts().drop(columns="user"), by=("month",))
    assert alone.columns[0] == "month"
    assert alone.loc[alone["figure"] == "worst_trip", "value"].tolist() == [4, -4]
    same = tk.performance.trip_sheet(three_accounts(), by="user")
    assert same.equals(tk.performance.trip_sheet(three_accounts()))
    opened = three_accounts().assign(opened=START + pd.to_timedelta(np.arange(16) % 3, unit="h"))
    opened.loc[[0, 5], "duration_hours"] = np.nan
    hours = tk.performance.trip_sheet(opened, by="hour")
    counts = hours[hours["figure"] == "trips"].set_index(["user", "hour"])["value"]
    assert counts["0xb"].to_dict() == {0: 2, 1: 1, 2: 1}
    assert counts["0xa"].to_dict() == {0: 3, 1: 3, 2: 3}
    medians = hours[hours["figure"] == "median_hours"].set_index(["user", "hour"])["n"]
    assert medians["0xb"].to_dict() == {0: 1, 1: 1, 2: 1}


def test_wrong_arguments_are_named():
    sheet, board = tk.performance.sheet, tk.performance.leaderboard
    figures = pd.DataFrame({"user": ["0xa"], "figure": "sharpe", "value": 1.0, "n": 3})
    figures = figures.assign(low=0.0, high=2.0)
    for error, named, call in (
        (MissingColumns, "^costs: .*volume", lambda: sheet(days(), costs=costs()[["user", "day"]])),
        (ValueError, "^draws", lambda: sheet(days(), draws=-1)),
        (MissingColumns, "^figures: .*low", lambda: board(figures.drop(columns="low"))),
        (ValueError, "'alpha'.*sharpe", lambda: board(figures, by="alpha")),
        (MissingColumns, "^trips: .*opened", lambda: tk.performance.trip_sheet(trips(), by="hour")),
    ):
        with pytest.raises(error, match=named):
            call()
