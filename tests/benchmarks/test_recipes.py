"""Analyses compared with common recipes in pandas, and performance figures compared with empyrical.

Of each helper there are two recipes, which group and add columns of floats. One computes only the
main figures, the other nearly the columns that the helper returns. The helper does more: it finds
rows that come twice, orders the fills of a millisecond by their positions, splits fees, and states
what is not covered. The goals: at least as fast as the recipe of the same columns, and at most 2.5
times (equity: 4 times) as slow as that of the sums. empyrical computes nine figures. The sheet
computes these and others, with intervals.
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import toolkit as tk
from tests.benchmarks import recipes
from tests.benchmarks.side_by_side import side_by_side

ROWS = 200_000
EMPYRICAL = Path(__file__).parents[2] / ".venv/clients/ccxt"


@pytest.fixture(scope="module")
def fills():
    return recipes.make_fills(ROWS)


HELPERS = {
    "pnl.attribution by day, coin": (
        lambda fills: tk.pnl.attribution(fills, by=["day", "coin"]),
        recipes.attribution_sums,
        recipes.attribution_same,
    ),
    "pnl.round_trips": (tk.pnl.round_trips, recipes.round_trips_sums, recipes.round_trips_same),
    "pnl.positions": (
        lambda fills: tk.pnl.positions(fills, recipes.META),
        recipes.positions_sums,
        recipes.positions_same,
    ),
    "pnl.audit": (
        lambda fills: tk.pnl.audit(fills, recipes.META),
        recipes.positions_sums,
        recipes.positions_same,
    ),
    "pnl.equity": (tk.pnl.equity, recipes.equity_sums, None),
}


@pytest.mark.parametrize("name", HELPERS)
def test_helper_beside_recipes(name, fills, report):
    helper, sums, same = HELPERS[name]
    most = 4 if name == "pnl.equity" else 2.5
    what = f"{name}, {ROWS:,} fills"
    ways = [("pandas, sums only", sums, 1 / most)]
    if same is not None:
        ways.append(("pandas, same columns", same, 1))
    for slow, recipe, stated in ways:
        way = side_by_side(
            what,
            slow,
            partial(recipe, fills),
            name,
            partial(helper, fills),
            rounds=5,
            stated=stated,
        )
        report(way)


def test_few_rows(report):
    """What a call costs that has almost nothing to compute."""
    few, taken = recipes.make_fills(20, accounts=2), []
    for name, (helper, *_) in HELPERS.items():
        ways = ("pandas", partial(recipes.attribution_same, few), name, partial(helper, few))
        taken.append(f"{name} {side_by_side('20 rows', *ways, rounds=15).fast_ms:.1f} ms")
    report(f"20 fills: {', '.join(taken)}")


def test_funding_beside_recipe(fills, report):
    payments = recipes.make_payments(fills)
    found, wanted = tk.funding.sums(payments, by=["coin"]), recipes.funding_sums(payments)
    assert found["net"].to_numpy() == pytest.approx(wanted["net"].to_numpy())
    what = f"funding.sums by coin, {len(payments):,} payments"
    report(
        side_by_side(
            what,
            "pandas, sums only",
            lambda: recipes.funding_sums(payments),
            "funding.sums",
            lambda: tk.funding.sums(payments, by=["coin"]),
            rounds=5,
            stated=1 / 2.5,
        )
    )


def test_performance_figures_beside_empyrical(report):
    if not (EMPYRICAL / "empyrical").is_dir():
        report("empyrical is not installed; `make test` installs it")
        return
    sys.path.append(str(EMPYRICAL))
    import empyrical

    days = 365
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
    measured = side_by_side(
        what, "empyrical", recipe, "performance.sheet", helper, rounds=25, stated=1 / 5
    )
    report(measured)
