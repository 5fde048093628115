"""The waterfall, and cumulative PnL."""

import pandas as pd
import pytest

import toolkit as tk
from tests.plots.figures import list_texts, render_png
from toolkit import pnl
from toolkit.plots import alt


def test_waterfall_labels_do_not_overlap(profit):
    ax = tk.plots.waterfall(profit["waterfall"])
    render_png(ax.figure)
    boxes = [text.get_window_extent() for text in ax.texts]
    boxes += [label.get_window_extent() for label in ax.get_xticklabels()]
    pairs = [(a, b) for i, a in enumerate(boxes) for b in boxes[i + 1 :]]
    assert not any(a.overlaps(b) for a, b in pairs)


def test_waterfall_without_funding(fills):
    ax = tk.plots.waterfall(pnl.attribution(fills))
    assert "not\ncovered" in list_texts(ax.figure)
    assert "net, without\nfunding" in list_texts(ax.figure)
    assert "funding not covered" in alt(ax)


def test_cumulative_pnl_without_funding(fills):
    ax = tk.plots.cumulative_pnl(pnl.attribution(fills, by="hour"))
    assert not any("funding" in text for text in list_texts(ax.figure))


def test_waterfall_of_two_rows_is_refused(profit):
    with pytest.raises(ValueError, match="not 2 rows"):
        tk.plots.waterfall(pd.concat([profit["waterfall"]] * 2))


def test_plot_over_time_needs_periods(profit):
    for draw in (tk.plots.cumulative_pnl, tk.plots.funding_over_time):
        with pytest.raises(ValueError, match="by="):
            draw(profit["funding_by_coin"])
