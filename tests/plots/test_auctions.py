"""Deploy auctions whose lines lie on each other."""

import pandas as pd

import toolkit as tk


def test_equal_lines_have_own_legend():
    stamps = pd.to_datetime(["2025-09-30", "2025-10-01"], utc=True)
    rows = pd.DataFrame(
        {"start": stamps[0], "end": stamps[1], "start_gas": 600.0, "floor_gas": 500.0}
        | {"gas": [575.0, 550.0], "elapsed": [0.25, 1.0], "over": [False, True]}
    )
    ax = tk.plots.auction_line(rows)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["running: from 600.00, now 575.00", "over: from 600.00, paid 550.00"]
    widths = [line.get_linewidth() for line in ax.lines if line.get_linestyle() == "-"]
    assert widths[0] > widths[1]
    named = tk.plots.auction_line(rows.assign(auction=["perp", "spot"]))
    assert named.get_legend().get_texts()[1].get_text().startswith("spot: ")
