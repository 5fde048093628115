"""Figures of equity, positions, trips, accounts and liquidations tell the truth."""

import numpy as np
import pandas as pd
import pytest

import toolkit as tk
from tests.analysis.examples import HOUR, MONDAY, times
from tests.plots.figures import HOSTILE, drawn, png
from toolkit.errors import MissingColumns
from toolkit.plots import alt


def test_every_axis_is_named(accounts):
    for name, result in accounts.items():
        figure = drawn(name, result)
        assert all(ax.get_ylabel() for ax in figure.axes)
        assert figure.axes[-1].get_xlabel()


@pytest.mark.parametrize("name", ["positions_over_time", "liquidation_map"])
def test_names_are_text_not_mathematics(name, accounts):
    figure = drawn(name, accounts[name].assign(coin=HOSTILE))
    assert png(figure)
    assert HOSTILE in alt(figure)


def test_several_at_once_are_refused(accounts):
    for name in ("equity_curve", "positions_over_time"):
        two = pd.concat([accounts[name].assign(user="a"), accounts[name].assign(user="b")])
        with pytest.raises(ValueError, match="pick one"):
            drawn(name, two)
    many = pd.concat([accounts["positions_over_time"].assign(coin=f"C{n}") for n in range(7)])
    with pytest.raises(ValueError, match="at most 6"):
        drawn("positions_over_time", many)
    two = pd.concat([accounts["liquidation_map"], accounts["liquidation_map"].assign(coin="ODD")])
    with pytest.raises(ValueError, match="one coin"):
        drawn("liquidation_map", two)


def test_a_gap_is_not_drawn_as_zero():
    rows = pd.DataFrame(
        {"time": times(MONDAY + n * HOUR for n in range(3)), "realised": [1.0, 2.0, 3.0]}
        | {"pnl": [1.0, np.nan, 5.0]}
    )
    figure = drawn("equity_curve", tk.pnl.drawdown(rows))
    whole = figure.axes[0].lines[0].get_ydata()
    assert np.isnan(whole[1])
    assert "ends at +5.00" in alt(figure)
    assert len(figure.axes) == 2


def test_without_marks_the_drawdown_is_that_of_what_was_realised():
    """Up to 4, down to 1, up to 2: 3 below the height, then 2; the account began at 0."""
    rows = pd.DataFrame(
        {"time": times(MONDAY + n * HOUR for n in range(4)), "realised": [-1.0, 4.0, 1.0, 2.0]}
        | {"pnl": np.nan}
    )
    for given in (rows, tk.pnl.drawdown(rows), tk.pnl.drawdown(rows, of="realised")):
        figure = drawn("equity_curve", given)
        lower = figure.axes[1]
        assert lower.get_ylabel() == "drawdown of\nrealised, USD"
        assert lower.lines[0].get_ydata().tolist() == [-1, 0, -3, -2]
        assert "the deepest drawdown of what was realised is \N{MINUS SIGN}3.00" in alt(figure)
    known = drawn("equity_curve", rows.assign(pnl=[1.0, 5.0, np.nan, 3.0]))
    assert known.axes[1].get_ylabel() == "drawdown, USD"
    falls = known.axes[1].lines[0].get_ydata()
    assert np.isnan(falls[2])
    assert falls[[0, 1, 3]].tolist() == [0, 0, -2]


def test_a_curve_without_its_columns_is_refused_in_words():
    rows = pd.DataFrame({"time": times([MONDAY]), "equity": [1.0]})
    with pytest.raises(
        MissingColumns, match=r"curve: columns realised, pnl missing; give .*equity"
    ):
        drawn("equity_curve", rows)


def test_bars_are_the_notional(accounts):
    levels = accounts["liquidation_map"]
    figure = drawn("liquidation_map", levels)
    assert sum(patch.get_height() for patch in figure.axes[0].patches) == pytest.approx(
        levels["notional"].sum()
    )
    assert "of open interest" not in alt(figure)
    assert "covers" in alt(figure)


def test_lines_reach_a_bin_s_notional_where_the_bin_ends():
    """Bins of 5 %: longs from 0 to -5 and from -20 to -25, shorts from 10 to 15."""
    rows = pd.DataFrame(
        {"coin": "X", "side": ["long", "long", "short"], "distance": [0.0, -0.2, 0.1]}
        | {"low": [95.0, 75.0, 110.0], "high": [100.0, 80.0, 115.0], "unplaced": 0.0}
        | {"notional": [1e3, 2e3, 5e3], "cumulative": [1e3, 3e3, 5e3], "covered": 1.0}
    )
    longs, shorts = drawn("liquidation_map", rows).axes[0].lines[:2]
    assert np.column_stack(longs.get_data()) == pytest.approx(
        np.array([[0, 0], [-5, 1e3], [-25, 3e3]])
    )
    assert np.column_stack(shorts.get_data()) == pytest.approx(np.array([[0, 0], [15, 5e3]]))
