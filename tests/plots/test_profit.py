"""Figures of profit, funding and the cost of sizes tell the truth."""

import pandas as pd
import pytest

import toolkit as tk
from tests.plots.figures import HOSTILE, drawn, png, texts
from toolkit import pnl
from toolkit.plots import alt, style
from toolkit.plots.texts import MINUS


@pytest.mark.parametrize("name", ["funding_by_coin", "slippage_curve"])
def test_names_are_text_not_mathematics(name, profit):
    result = profit[name].assign(coin=HOSTILE)
    figure = drawn(name, result)
    assert png(figure)
    assert HOSTILE in texts(figure)


def test_names_are_escaped_where_a_notebook_shows_them(profit):
    figure = tk.plots.funding_by_coin(profit["funding_by_coin"].assign(coin="<script>"))
    shown = figure._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


def test_labels_of_the_waterfall_do_not_overlap(profit):
    figure = tk.plots.waterfall(profit["waterfall"])
    png(figure)
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    boxes += [label.get_window_extent() for label in figure.axes[0].get_xticklabels()]
    pairs = [(a, b) for i, a in enumerate(boxes) for b in boxes[i + 1 :]]
    assert not any(a.overlaps(b) for a, b in pairs)


def test_what_is_not_covered_is_not_drawn_as_zero(fills):
    figure = tk.plots.waterfall(pnl.attribution(fills))
    assert "not\ncovered" in texts(figure)
    assert "net, without\nfunding" in texts(figure)
    assert "funding not covered" in alt(figure)


def test_without_funding_there_is_no_line_with_funding(fills):
    figure = tk.plots.cumulative_pnl(pnl.attribution(fills, by="hour"))
    assert not any("funding" in text for text in texts(figure))


def test_a_waterfall_shows_one_row(profit):
    with pytest.raises(ValueError, match="not 2 rows"):
        tk.plots.waterfall(pd.concat([profit["waterfall"]] * 2))


def test_time_needs_a_result_by_time(profit):
    for draw in (tk.plots.cumulative_pnl, tk.plots.funding_over_time):
        with pytest.raises(ValueError, match="by="):
            draw(profit["funding_by_coin"])


def test_many_coins_are_joined(profit):
    one = profit["funding_by_coin"].iloc[:1]
    many = pd.concat([one.assign(coin=f"C{n}", net=n - 20.0) for n in range(40)])
    figure = tk.plots.funding_by_coin(many)
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(names) == 16
    assert "25 others" in names


def test_too_many_curves_are_refused(profit):
    curve = profit["slippage_curve"]
    many = pd.concat([curve.assign(coin=f"C{n}") for n in range(5)])
    with pytest.raises(ValueError, match="at most 4 coins"):
        tk.plots.slippage_curve(many)


def test_thin_books_are_shown(profit):
    curve = profit["slippage_curve"]
    assert (curve["missing_share"] == 1).any()
    figure = tk.plots.slippage_curve(curve)
    bars = [patch.get_height() for patch in figure.axes[1].patches]
    assert bars == curve.sort_values(["side", "amount_usd"])["missing_share"].tolist()
    assert "too thin in at most 100%" in alt(figure)


@pytest.mark.parametrize(
    ("value", "signed", "written"),
    [
        (0, True, "0.00"),
        (-0.001, True, "0.00"),
        (1234.5, True, "+1,234.50"),
        (-1234.5, False, f"{MINUS}1,234.50"),
        (12_345.6, False, "12,346"),
    ],
)
def test_amounts_are_written_alike(value, signed, written):
    assert style.usd(value, signed=signed) == written
