"""Equity, drawdown and positions over time."""

import numpy as np
import pandas as pd

import toolkit as tk
from tests.analysis.examples import HOUR, MONDAY, times
from tests.plots.figures import draw_figure, list_texts
from toolkit.plots import alt


def test_smallest_positions_are_left_out():
    """A row for each of 12 coins, each to its own scale; the first coin is the largest."""
    rows = pd.DataFrame(
        {"coin": [f"C{number}" for number in range(13)], "px": 1.0, "chain_break": False}
        | {"position": [float(13 - number) for number in range(13)], "time": times([MONDAY] * 13)}
    )
    ax = tk.plots.positions_over_time(rows)
    assert [text.get_text() for text in ax.get_yticklabels()] == [
        f"C{number}" for number in range(11, -1, -1)
    ]
    assert "1 smaller ones not drawn" in ax.get_xlabel()


def test_unknown_equity_says_what_to_pass():
    rows = pd.DataFrame(
        {"time": times([MONDAY]), "realised": [1.0], "pnl": np.nan, "equity": np.nan}
    )
    figure = draw_figure("equity_curve", rows, of="equity")
    assert "equity is not known: pass marks to tk.pnl.equity" in list_texts(figure)


def test_missing_pnl_breaks_line():
    rows = pd.DataFrame(
        {"time": times(MONDAY + n * HOUR for n in range(3)), "realised": [1.0, 2.0, 3.0]}
        | {"pnl": [1.0, np.nan, 5.0]}
    )
    figure = draw_figure("equity_curve", tk.pnl.drawdown(rows))
    pnl = figure.axes[0].lines[0].get_ydata()
    assert np.isnan(pnl[1])
    assert "ends at +5.00" in alt(figure)
    assert len(figure.axes) == 2


def test_drawdown_of_realised_without_pnl():
    """PnL is not known: the drawdown is 3 below the height of 4, then 2; PnL began at 0."""
    rows = pd.DataFrame(
        {"time": times(MONDAY + n * HOUR for n in range(4)), "realised": [-1.0, 4.0, 1.0, 2.0]}
        | {"pnl": np.nan}
    )
    for curve in (rows, tk.pnl.drawdown(rows), tk.pnl.drawdown(rows, of="realised")):
        figure = draw_figure("equity_curve", curve)
        lower = figure.axes[1]
        assert lower.get_ylabel() == "drawdown of\nrealised, USD"
        assert lower.lines[0].get_ydata().tolist() == [-1, 0, -3, -2]
        assert lower.lines[0].get_drawstyle() == "steps-post"
        assert "the deepest drawdown of realised PnL is \N{MINUS SIGN}3.00" in alt(figure)
    with_pnl = draw_figure("equity_curve", rows.assign(pnl=[1.0, 5.0, np.nan, 3.0]))
    assert with_pnl.axes[1].get_ylabel() == "drawdown, USD"
    drawdown = with_pnl.axes[1].lines[0].get_ydata()
    assert np.isnan(drawdown[2])
    assert drawdown[[0, 1, 3]].tolist() == [0, 0, -2]
