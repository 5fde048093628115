"""Funding by coin."""

import pandas as pd

import toolkit as tk


def test_smallest_coins_share_one_bar(profit):
    row = profit["funding_by_coin"].iloc[:1]
    many = pd.concat([row.assign(coin=f"C{n}", net=n - 20.0) for n in range(40)])
    ax = tk.plots.funding_by_coin(many)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert len(names) == 16
    assert "25 others" in names
