"""Analyses compared with common recipes in pandas, and performance figures compared with empyrical.

The recipes group and add columns of floats, and compute only the main figures of the helper. The
helper does more: it finds rows that come twice, orders the fills of a millisecond by their
positions, splits fees, and states what is not covered. Figures before December 2026 are of helpers
that computed in exact integers. empyrical computes nine figures. The sheet computes these and
others, with intervals.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import toolkit as tk
from tests.benchmarks.history import USER, history_end, history_session, history_store
from tests.benchmarks.side_by_side import side_by_side
from tests.scale.cases.funding import payments

ROWS = 200_000
EMPYRICAL = Path(__file__).parents[2] / ".venv/clients/ccxt"


@pytest.fixture(scope="module")
def fills(tmp_path_factory):
    store = history_store(tmp_path_factory.mktemp("recipes") / "history.db", ROWS)
    with history_session(store) as session:
        return tk.user_fills_by_time(USER, 0, history_end(ROWS), session=session)


def test_profit_by_day_beside_pandas(fills, report):
    def recipe():
        days = fills.groupby([fills["time"].dt.floor("D"), "coin"])[["closed_pnl", "fee"]].sum()
        return days.assign(net=days["closed_pnl"] - days["fee"])

    def helper():
        return tk.pnl.attribution(fills, by=["day", "coin"])

    assert recipe()["net"].sum() == pytest.approx(helper()["net"].sum())
    what = f"PnL of {ROWS:,} fills by day and coin"
    report(side_by_side(what, "pandas", recipe, "pnl.attribution", helper, rounds=5))


def test_round_trips_beside_pandas(fills, report):
    def recipe():
        rows = fills.sort_values(["coin", "time"])
        signed = rows["sz"].where(rows["side"] == "B", -rows["sz"])
        flat = signed.groupby(rows["coin"]).cumsum().abs() < 1e-9
        trip = flat.groupby(rows["coin"]).transform(lambda column: column.shift().cumsum())
        groups = rows.groupby([rows["coin"], trip.fillna(0)])
        return groups.agg(
            start=("time", "first"),
            end=("time", "last"),
            pnl=("closed_pnl", "sum"),
            fees=("fee", "sum"),
        )

    def helper():
        return tk.pnl.round_trips(fills)

    assert len(recipe()) == len(helper()) == ROWS // 2
    what = f"round trips of {ROWS:,} fills"
    report(side_by_side(what, "pandas", recipe, "pnl.round_trips", helper, rounds=3))


def test_funding_sums_beside_pandas(report):
    funding = payments(1_000_000)["funding"]

    def recipe():
        received = funding["usdc"].clip(lower=0)
        paid = funding["usdc"].clip(upper=0)
        return funding.assign(received=received, paid=paid).groupby("coin").sum(numeric_only=True)

    def helper():
        return tk.funding.sums(funding)

    assert recipe()["usdc"].sum() == pytest.approx(helper()["net"].sum())
    what = f"funding of {len(funding):,} payments by coin"
    report(side_by_side(what, "pandas", recipe, "funding.sums", helper, rounds=5))


def test_performance_figures_beside_empyrical(report):
    if not (EMPYRICAL / "empyrical").is_dir():
        report("empyrical is not installed; `make test` installs it")
        return
    sys.path.append(str(EMPYRICAL))
    import empyrical

    days = 1_000
    values = np.random.default_rng(7).normal(0.001, 0.03, days)
    returns = pd.Series(values, index=pd.date_range("2025-01-01", periods=days, tz="UTC"))
    frame = pd.DataFrame({"time": returns.index, "return_": values})
    year = {"annualization": 365}

    def recipe():
        return [
            empyrical.cum_returns_final(returns),
            empyrical.annual_return(returns, **year),
            empyrical.annual_volatility(returns, **year),
            empyrical.sharpe_ratio(returns, **year),
            empyrical.sortino_ratio(returns, **year),
            empyrical.max_drawdown(returns),
            empyrical.calmar_ratio(returns, **year),
            empyrical.value_at_risk(returns),
            empyrical.conditional_value_at_risk(returns),
        ]

    def helper():
        return tk.performance.sheet(frame)

    assert helper().set_index("figure").loc["sharpe", "value"] == pytest.approx(recipe()[3])
    what = f"performance figures of {days:,} days"
    report(side_by_side(what, "empyrical", recipe, "performance.sheet", helper, rounds=9))
