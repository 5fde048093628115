"""Returns, performance sheets and leaderboards: hand-worked values, identities, intervals."""

import warnings
from math import sqrt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolkit as tk
from toolkit.errors import HistoryWarning, MissingAmounts, MissingColumns

START = pd.Timestamp("2025-09-01", tz="UTC")


def curve_of(values, flows, hours=24.0):
    """Return an equity curve: one point per step, flows cumulated."""
    times = START + pd.to_timedelta(hours * np.arange(1, len(values) + 1), unit="h")
    return pd.DataFrame({"time": times, "equity": values, "flows": np.cumsum(flows)})


def days_of(returns, user=""):
    rows = pd.DataFrame({"time": pd.date_range(START, periods=len(returns)), "return_": returns})
    return rows.assign(user=user) if user else rows


def figures_of(frame):
    return frame.set_index("figure")["value"]


def test_first_period_begins_with_deposit():
    values = [0.0] * 20 + [1000.0, 1010.0, 1010.0, 1010.0]
    returns = tk.performance.returns(curve_of(values, [0.0] * 20 + [1000.0, 0, 0, 0], hours=1.0))
    assert returns["capital"].tolist() == [1005.0]  # of two hours 1,000, of two 1,010
    assert returns["return_"].tolist() == pytest.approx([0.01])


def test_realised_value_is_known_without_positions():
    """A position is open at the second point, and from the fourth on: no day may hide its loss."""
    curve = curve_of([np.nan] * 4, [100.0, 0, 0, 0]).assign(realised=[5.0, 6.0, 10.0, 12.0])
    curve["unrealised"] = [0.0, np.nan, 0.0, np.nan]
    closed = tk.performance.returns(curve[:3], value="realised")
    assert closed["end"].tolist() == pytest.approx([105.0, np.nan, 110.0], nan_ok=True)
    assert closed["return_"].tolist() == pytest.approx([0.05, np.nan, 5 / 105], nan_ok=True)
    assert closed["hours"].tolist() == pytest.approx([24, np.nan, 48], nan_ok=True)
    with pytest.warns(HistoryWarning, match="open without mark prices"):
        returns = tk.performance.returns(curve, value="realised")
    assert returns["return_"].isna().tolist() == [True] * 4


def test_two_accounts_by_hand():
    """Points of a are linked over its deposit and withdrawal; b has 0 before its deposit."""
    nan = float("nan")
    rows = [
        ("b", 48, 900.0, 1000.0, 0.0, 0.0),
        ("b", 24, 0.0, 0.0, 0.0, 0.0),
        ("b", 36, 1000.0, 1000.0, 0.0, 0.0),
        ("a", 24, 160.0, 50.0, 160.0, 0.0),
        ("a", 12, 110.0, 0.0, 330.0, 110.0),
        ("a", 72, 150.0, 30.0, nan, 10.0),
    ]
    names = ["user", "hour", "equity", "flows", "long", "short"]
    curve = pd.DataFrame(rows, columns=names)
    curve["time"] = START + pd.to_timedelta(curve.pop("hour"), unit="h")
    result = tk.performance.returns(curve, start={"a": 100.0})
    assert result["user"].tolist() == ["a", "a", "a", "b"]
    assert [time.day for time in result["time"]] == [1, 2, 3, 2]
    assert list(result.columns[2:]) == [
        "start", "end", "flows", "gain", "capital", "return_", "growth", "drawdown",
        "leverage", "net_leverage", "leverage_hours", "hours", "below_hours",
    ]  # fmt: skip
    # Of a, 30 hours before the first point have 100, and 12 after it 110 + 50.
    mean = (30 * 100 + 12 * 160) / 42
    wanted = [
        [100, 160, 50, 10, mean, 0.1, 1.1, 0, 2.5, 1.5, 24, 42, 0],
        [nan, nan, nan, nan, nan, nan, 1.1, 0, nan, nan, nan, nan, nan],
        [160, 150, -20, 10, 160, 1 / 16, 1.1 * 17 / 16, 0, nan, nan, nan, 48, 0],
        [0, 900, 1000, -100, 1000, -0.1, 0.9, -0.1, 0, 0, 24, 24, 12],
    ]
    assert result.iloc[:, 2:].to_numpy() == pytest.approx(np.array(wanted), nan_ok=True)
    facts = result.attrs["toolkit"]
    assert (facts["by"], facts["value"]) == ("day", "equity")
    weeks = tk.performance.returns(curve, by="week", start={"a": 100.0, "b": 7.0})
    assert weeks[["start", "end"]].to_numpy().tolist() == [[100, 150], [7, 900]]
    assert weeks["time"].tolist() == [START, START]  # a Monday
    # 7 USD of b are lost before its deposit.
    assert weeks["return_"].tolist() == pytest.approx([1.1 * 17 / 16 - 1, -1])
    assert weeks["leverage"].tolist() == [2.5, 0]
    hours = tk.performance.returns(curve[curve["user"] == "a"].tail(1), by="hour", start=5.0)
    assert hours["time"].tolist() == [START + pd.Timedelta(hours=71)]
    assert hours[["start", "flows", "capital"]].to_numpy().tolist() == [[5, 30, 35]]
    few = tk.performance.returns(curve_of([0.6], [0.0]), start=0.5)
    assert few["return_"].tolist() == pytest.approx([0.2])
    assert list(few.columns) == list(result.columns)[1:]


def test_no_returns_after_unknown_flow():
    """A deposit of unknown amount on the third day: a has two returns, and b has all three.

    The last day of a is missing, not left out.
    """
    curve = curve_of([110.0, 99.0, 500.0], [0.0] * 3).assign(user="a", unknown_flows=[0, 0, 2])
    known = curve.assign(user="b", unknown_flows=pd.array([None, 0, 0], dtype="Int64"))
    with pytest.warns(MissingAmounts, match=r"^curve: 2 ledger flows"):
        returns = tk.performance.returns(pd.concat([curve, known]), start=100.0)
    assert returns["user"].tolist() == ["a", "a", "a", "b", "b", "b"]
    wanted = [0.1, -0.1, np.nan, 0.1, -0.1, 401 / 99]
    assert returns["return_"].tolist() == pytest.approx(wanted, nan_ok=True)


def test_days_after_the_last_known_value_are_missing():
    """Equity of one's own that ends early; a curve that says why would lack an open loser."""
    curve = curve_of([110.0, 99.0, np.nan, np.nan], [0.0] * 4)
    returns = tk.performance.returns(curve, start=100.0)
    wanted = [0.1, -0.1, np.nan, np.nan]
    assert returns["return_"].tolist() == pytest.approx(wanted, nan_ok=True)
    assert returns["growth"].tolist() == pytest.approx([1.1, 0.99, 0.99, 0.99])
    assert figures_of(tk.performance.sheet(returns))["total_return"] == pytest.approx(-0.01)
    with pytest.warns(HistoryWarning, match="value is not known"):
        unpriced = tk.performance.returns(curve.assign(unrealised=curve["equity"]), start=100.0)
    assert unpriced[["return_", "growth", "drawdown"]].isna().all(axis=None)


def test_missing_gains_are_stated():
    curve = curve_of([110.0, 99.0], [0.0] * 2).assign(unpriced_fees=[0, 1], missing_amounts=[2, 3])
    with pytest.warns(MissingAmounts, match=r"^curve: .* 1 fee .* 3 funding rows"):
        returns = tk.performance.returns(curve, start=100.0)
    assert returns["return_"].tolist() == pytest.approx([0.1, -0.1])


def test_leverage_weighs_hours():
    """A day at leverage 1, then one hour at 10: 34 / 25, and not (1 + 10) / 2."""
    hours = np.arange(1, 26)
    curve = curve_of([100.0] * 25, [0.0] * 25, hours=1.0)
    gross = np.where(hours > 24, 1000.0, 100.0)
    returns = tk.performance.returns(curve.assign(long=gross, short=0.0), start=100.0)
    assert returns["leverage"].tolist() == pytest.approx([1.0, 10.0])
    assert returns["leverage_hours"].tolist() == [24.0, 1.0]
    found = figures_of(tk.performance.sheet(returns))
    assert found["leverage"] == pytest.approx(34 / 25)
    assert found["max_leverage"] == pytest.approx(10.0)
    alike = figures_of(tk.performance.sheet(returns.drop(columns="leverage_hours")))
    assert alike["leverage"] == pytest.approx(11 / 2)


def test_leverage_weighs_unequal_points():
    """6 hours at 2, then 18 hours at 8; a point without equity has no hours."""
    at = START + pd.to_timedelta([6, 24, 30, 54], unit="h")
    curve = pd.DataFrame({"time": at, "equity": [100.0, 100.0, np.nan, 100.0], "flows": 0.0})
    curve = curve.assign(long=[150.0, 700.0, 100.0, 300.0], short=[50.0, 100.0, 0.0, 0.0])
    returns = tk.performance.returns(curve, start=100.0)
    assert returns["leverage"].tolist() == pytest.approx(
        [(6 * 2 + 18 * 8) / 24, np.nan, 3.0], nan_ok=True
    )
    assert returns["net_leverage"].iloc[0] == pytest.approx((6 * 1 + 18 * 6) / 24)
    # The third day is known from its first hour to 06:00.
    assert returns["leverage_hours"].tolist() == pytest.approx([24, np.nan, 6], nan_ok=True)


@given(
    st.lists(st.floats(-0.2, 0.2), min_size=1, max_size=12),
    st.lists(st.floats(-40, 400), min_size=12, max_size=12),
)
def test_deposits_change_no_return(rates, deposits):
    """Points around each deposit are linked, so each day's return is known."""
    value, values, flows, times = 100.0, [], [], []
    for day, rate in enumerate(rates):
        end = START + pd.Timedelta(days=day + 1)
        value *= 1 + rate
        hours = [end - pd.Timedelta(hours=hour) for hour in range(23, 0, -1)]
        times += [*hours, end - pd.Timedelta(milliseconds=2), end]
        flows += [0.0] * 24 + [deposits[day]]
        values += [value] * 24 + [value + deposits[day]]
        value += deposits[day]
        if value <= 1:
            return
    curve = pd.DataFrame({"time": times, "equity": values, "flows": np.cumsum(flows)})
    returns = tk.performance.returns(curve, start=100.0)
    assert returns["return_"].tolist() == pytest.approx(rates, abs=1e-9)
    assert returns["growth"].iloc[-1] == pytest.approx(np.prod([1 + r for r in rates]), rel=1e-9)
    assert returns["gain"].sum() == pytest.approx(value - 100 - sum(flows), abs=1e-6)


def hourly(changes, start, flows=()):
    """Return an hourly curve of two days; `changes` and `flows` by hour."""
    gain, moved = np.zeros(48), np.zeros(48)
    for each, pairs in ((gain, changes), (moved, flows)):
        for hour, amount in pairs:
            each[hour] += amount
    return curve_of(start + np.cumsum(gain + moved), moved, hours=1.0)


def test_flows_inside_a_day_change_no_return():
    """80 on 2,000, then all leaves; 30 % of 500 lost, then all leaves; 300 of 9,000 + 600 lost."""
    for curve, start, wanted in (
        (hourly([(5, 80)], 2000, [(7, -2080)]), 2000.0, 0.04),
        (hourly([(5, -150)], 500, [(6, -350)]), 500.0, -0.3),
        (hourly([(23, -300), (40, 465)], 600, [(22, 9000)]), 600.0, 9300 / 9600 * 9765 / 9300 - 1),
    ):
        found = figures_of(tk.performance.sheet(tk.performance.returns(curve, start=start)))
        assert found["total_return"] == pytest.approx(wanted)


def test_drawdown_has_every_point_and_elapsed_time():
    """From the sixth to the twentieth hour 20 % are gone: 15 hours from high to high."""
    curve = hourly([(5, -400), (20, 400), (30, 20)], 2000)
    returns = tk.performance.returns(curve, start=2000.0)
    assert returns["drawdown"].tolist() == pytest.approx([-0.2, 0])
    assert returns["below_hours"].tolist() == [16, 0]
    found = figures_of(tk.performance.sheet(returns))
    assert found["max_drawdown"] == pytest.approx(-0.2)
    assert found["drawdown_periods"] == pytest.approx(16 / 24)
    days = [0.1, -0.1, np.nan, np.nan, 0.0, 0.0, 0.2, 0.01]
    own = figures_of(tk.performance.sheet(days_of(days)))
    assert own["drawdown_periods"] == 6  # from the end of the first day to that of the seventh


def test_period_is_as_long_as_its_times_say():
    """Equity on each tenth day; business days; a Saturday, a week and two days by week."""
    values = 1000 * np.cumprod([1.03, 0.98, 1.03, 0.98])
    curve = curve_of([1000.0, *np.ravel([[np.nan] * 9 + [value] for value in values])], [0.0] * 41)
    returns = tk.performance.returns(curve)
    assert returns["hours"].dropna().tolist() == [240] * 4
    found = figures_of(tk.performance.sheet(returns))
    spread, year = 0.025 * sqrt(4 / 3), sqrt(36.5)
    assert found["volatility"] == pytest.approx(spread * year)
    assert found["sharpe"] == pytest.approx(0.005 / spread * year)
    assert found["annual_return"] == pytest.approx((1.03 * 0.98) ** (2 * 365 / 40) - 1)
    time = pd.bdate_range("2025-09-01", periods=50, tz="UTC")
    rows = pd.DataFrame({"time": time, "return_": [0.004, -0.002] * 25})
    found = tk.performance.sheet(rows).set_index("figure")
    assert found.loc["volatility", "value"] == pytest.approx(0.003 * sqrt(50 / 49 * 365 * 5 / 7))
    assert found.loc["volatility", ["low", "high"]].isna().all()  # all deviations are as large
    assert found.loc["annual_return", "value"] == pytest.approx(
        (1.004 * 0.998) ** (25 * 365 / 70) - 1
    )
    ten = 1000 * 1.02 ** np.arange(1, 11)
    curve = curve_of(ten, [0.0] * 10).assign(time=pd.date_range("2025-09-07", periods=10, tz="UTC"))
    weeks = tk.performance.returns(curve, by="week", start=1000.0)
    assert weeks["hours"].tolist() == [48, 168, 24]
    found = figures_of(tk.performance.sheet(weeks))
    assert found["annual_return"] == pytest.approx(1.02**365 - 1)
    assert np.isnan(found["volatility"])  # of one whole week


def test_capital_outside_of_a_curve_is_not_zero():
    """Gains of 2 a day before any capital: no returns, and with 400 given the return of 400."""
    pnl = 2.0 * np.arange(1, 6)
    for flows in ([0.0] * 5, [0, 0, 50.0, 0, 0], [0, 0, 0, -30.0, 0]):
        curve = curve_of(np.cumsum(flows) + pnl, flows).assign(pnl=pnl)
        with pytest.warns(HistoryWarning, match="gains before any capital .* start="):
            returns = tk.performance.returns(curve)
        assert returns["return_"].isna().all()
        assert figures_of(tk.performance.sheet(returns))[["total_return", "sharpe"]].isna().all()
        known = tk.performance.returns(curve, start=400.0)["return_"]
        base = 400 + pnl - 2 + np.cumsum(flows) - np.minimum(flows, 0)
        assert known.tolist() == pytest.approx((2 / base).tolist())
    begun = curve_of([1000.0, 1010.0], [0.0, 0.0])  # a curve that begins with its own first value
    assert tk.performance.returns(begun)["return_"].tolist() == pytest.approx([0.01])


def test_returns_of_the_value_of_an_account():
    """Flows of `tk.pnl.value` are at their time: 1,000 come, 50 are gained, and 1,050 leave."""
    hour = START + pd.to_timedelta([0, 1, 2, 3], unit="h")
    value = pd.DataFrame({"time": hour, "value": [0.0, 1000, 1050, 0], "unmarked": 0})
    value["flows"] = [0.0, 1000, 0, -1050]
    assert tk.performance.returns(value)["return_"].tolist() == pytest.approx([0.05])
    open_loser = value.assign(value=[0.0, 1000, np.nan, np.nan], unmarked=[0, 0, 1, 1])
    open_loser = open_loser.assign(flows=[0.0, 1000, 0, 0], reason=["", "", "no price", "no price"])
    with pytest.warns(HistoryWarning, match="its value is not known: no price$"):
        returns = tk.performance.returns(open_loser)
    assert returns["return_"].isna().all()


def test_wrong_times_are_named():
    sheet, skill = tk.performance.sheet, tk.performance.skill
    rows = days_of([0.02, -0.01, 0.03], user="a")
    texts = rows.assign(time=rows["time"].dt.strftime("%Y-%m-%d"))
    ms = rows.assign(time=rows["time"].dt.as_unit("ms").astype("int64"))
    for other in (texts, ms):
        assert sheet(other)["value"].equals(sheet(rows)["value"])
    doubled = pd.concat([rows, rows.head(1).assign(return_=0.5)])
    for helper in (sheet, skill):
        with pytest.raises(ValueError, match="2025-09-01"):
            helper(doubled)
        with pytest.raises(MissingColumns, match="column time is missing in 3 of 3"):
            helper(rows.assign(time=pd.NaT))
        with pytest.raises(MissingColumns, match="return_ is infinite in 1 row"):
            helper(rows.assign(return_=[0.01, np.inf, 0.0]))
    curve = curve_of([1.0, 2.0], [0.0, 0.0])
    curve = pd.concat([curve, curve.head(1).assign(equity=3.0)])
    with pytest.raises(ValueError, match=r"curve: .*2025-09-02"):
        tk.performance.returns(curve)


def test_sharpe_ratio_uses_rate():
    values = [0.02, -0.01, 0.03, -0.02]
    found = figures_of(tk.performance.sheet(days_of(values), risk_free=0.005 * 365))
    assert found["sharpe"] == pytest.approx(0.0, abs=1e-12)


def test_costs_without_capital_are_left_out():
    """After ten days the capital is unknown, or returns end: later costs do not count."""
    capital = np.where(np.arange(20) < 10, 1000.0, np.nan)
    returns = days_of([0.0] * 20).assign(capital=capital)
    costs = returns[["time"]].rename(columns={"time": "day"})
    costs = costs.assign(volume=100.0, funding=-1.0, trading_fee=-2.0, builder_fee=0.0)
    costs = costs.assign(deployer_fee=0.0, rebate=0.0)
    for known in (returns, returns.head(10)):
        sheet = tk.performance.sheet(known, costs=costs).set_index("figure")
        shares = sheet.loc[["turnover", "fee_drag", "funding_drag"]]
        assert shares["value"].tolist() == pytest.approx([36.5, 7300.0, 3650.0])
        assert shares["n"].tolist() == [10, 10, 10]
        assert sheet.loc["volume", "value"] == 2000.0


def test_wrong_arguments_of_returns_and_sheets_are_named():
    curve, day = curve_of([1.0, 2.0], [0.0, 0.0]), days_of([0.1], user="a")
    figures = pd.DataFrame({"user": ["a"] * 2, "figure": "sharpe", "value": [1.0, 2.0], "n": 3})
    figures = figures.assign(low=0.0, high=3.0)
    returns, sheet = tk.performance.returns, tk.performance.sheet
    for error, named, call in (
        (MissingColumns, "^curve: .*realised", lambda: returns(curve, value="realised")),
        (MissingColumns, "^curve: .*time", lambda: returns(curve.assign(time=pd.NaT))),
        (MissingColumns, "flows", lambda: returns(curve.assign(flows=[0.0, np.nan]))),
        (ValueError, "hour, day, week", lambda: returns(curve, by="month")),
        (ValueError, "'equity' or 'realised'", lambda: returns(curve, value="pnl")),
        (ValueError, "'month' or None", lambda: sheet(day, by="day")),
        (ValueError, "several rows", lambda: tk.performance.leaderboard(figures)),
        (ValueError, "'sharpe' or 'mean'", lambda: tk.performance.skill(day, measure="sortino")),
    ):
        with pytest.raises(error, match=named):
            call()


def test_intervals_hold_known_figures():
    """Series with known figures give them back inside the intervals at the stated rate."""
    mean, spread, days, worlds = 0.002, 0.02, 250, 200
    year = sqrt(365)
    truth = {
        "annual_return": np.expm1(365 * (np.log1p(mean) - spread**2 / 2 / (1 + mean) ** 2)),
        "volatility": spread * year,
        "sharpe": mean / spread * year,
        "value_at_risk": mean - 1.6448536269514722 * spread,
        "positive": 0.539827837277029,
    }
    rng = np.random.default_rng(12)
    held = dict.fromkeys(truth, 0)
    for _ in range(worlds):
        sheet = tk.performance.sheet(days_of((mean + spread * rng.standard_normal(days)).tolist()))
        rows = sheet.set_index("figure")
        for name, value in truth.items():
            held[name] += bool(rows.loc[name, "low"] <= value <= rows.loc[name, "high"])
    shares = {name: count / worlds for name, count in held.items()}
    # Three standard errors of 200 worlds around 95 % are 90.4 % and 99.6 %.
    assert all(0.904 <= share <= 0.996 for share in shares.values()), shares


def test_gains_of_days_sum_to_pnl():
    session = tk.local(seed=7, size="tiny")
    user = tk.reports.example_account()
    builder = tk.user_fills(user, session=session)["builder"].dropna().iloc[0]
    funding = tk.builder_approved_funding_by_time(builder, "30d", session=session)
    fills = tk.user_fills_by_time(user, "30d", session=session)
    ledger = tk.user_non_funding_ledger_updates(user, "30d", session=session)
    marks = tk.funding.implied_oracle(funding)
    own = funding[funding["user"] == user]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HistoryWarning)
        curve = tk.pnl.equity(fills, own, ledger, marks=marks, sz_decimals=tk.meta(session=session))
    returns = tk.performance.returns(curve)
    last = curve[curve["pnl"].notna()].iloc[-1]
    assert returns["gain"].sum() == pytest.approx(last["pnl"], rel=1e-9)
    assert returns["flows"].sum() == pytest.approx(last["flows"])
    assert returns["growth"].iloc[-1] == pytest.approx(np.prod(1 + returns["return_"].dropna()))


def accounts_of(values):
    """Return daily returns, one row of `values` per account."""
    return pd.concat([days_of(list(row), user=f"0x{k:02d}") for k, row in enumerate(values)])


def test_luck_alone_gives_few_discoveries():
    """Without skill a discovery at q <= 0.1 happens in at most 10 % of worlds."""
    rng = np.random.default_rng(2)
    found = [tk.performance.skill(accounts_of(rng.normal(0, 0.02, (15, 60)))) for _ in range(40)]
    assert np.mean([(each.accounts["q"] <= 0.1).any() for each in found]) <= 0.2
    around = [each.params.set_index("name").loc["persistence"] for each in found]
    assert 0.9 <= np.mean([row["low"] <= 0 <= row["high"] for row in around]) <= 1.0


def test_intervals_hold_planted_skill():
    """Planted mean returns are inside 92 to 98 % of the shrunk intervals."""
    rng = np.random.default_rng(4)
    held, spreads = [], []
    for _ in range(40):
        truth = 0.001 + 0.004 * rng.normal(size=15)
        values = truth[:, None] + rng.normal(0, 0.02, (15, 60))
        found = tk.performance.skill(accounts_of(values), measure="mean")
        rows = found.accounts.sort_values("user")
        yearly = 365 * truth
        held += list((rows["low"].to_numpy() <= yearly) & (yearly <= rows["high"].to_numpy()))
        row = found.params.set_index("name").loc["spread"]
        spreads.append(row["low"] <= 365 * 0.004 <= row["high"])
    assert 0.92 <= np.mean(held) <= 0.98
    assert np.mean(spreads) >= 0.87
