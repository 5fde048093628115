"""The waterfall, and cumulative PnL."""

import pandas as pd

import toolkit as tk
from tests.plots.figures import list_texts, render_png
from toolkit import pnl
from toolkit.plots import alt


def test_waterfall_labels_do_not_overlap(results):
    ax = tk.plots.waterfall(results["waterfall"])
    render_png(ax.figure)
    boxes = [text.get_window_extent() for text in ax.texts]
    boxes += [label.get_window_extent() for label in ax.get_xticklabels()]
    pairs = [(a, b) for i, a in enumerate(boxes) for b in boxes[i + 1 :]]
    assert not any(a.overlaps(b) for a, b in pairs)


def test_waterfall_says_funding_not_covered(fills):
    ax = tk.plots.waterfall(pnl.attribution(fills))
    assert "not\ncovered" in list_texts(ax.figure)
    assert "net, without\nfunding" in list_texts(ax.figure)
    assert "funding not covered" in alt(ax)


def test_cumulative_pnl_omits_absent_funding(fills):
    ax = tk.plots.cumulative_pnl(pnl.attribution(fills, by="hour"))
    assert not any("funding" in text for text in list_texts(ax.figure))


def test_cumulative_pnl_has_line_per_account():
    """Each account has one line, which ends at its net, fees and funding included."""
    times = pd.to_datetime([0, 3600, 7200], unit="s", utc=True)
    rows = pd.DataFrame(
        {
            "user": ["0x" + "a" * 40, "0x" + "b" * 40, "0x" + "a" * 40],
            "hour": times[[0, 1, 2]],
            "closed_pnl": [10.0, -7.0, 4.0],
            "funding": [1.0, None, -0.5],
            "trading_fee": [-2.0, -1.0, 0.0],
            "builder_fee": [0.0, 0.0, -0.25],
            "deployer_fee": 0.0,
            "rebate": 0.0,
        }
    )
    ax = tk.plots.cumulative_pnl(rows)
    labels = [line.get_label() for line in ax.lines[:2]]
    assert labels == ["0xaaaaaa…aaaa +12.25", "0xbbbbbb…bbbb \N{MINUS SIGN}8.00"]
    assert [line.get_ydata().tolist() for line in ax.lines[:2]] == [[0, 9, 12.25], [0, -8]]
    assert "lie between \N{MINUS SIGN}8.00 and 12.25" in alt(ax)
