"""Funding by coin."""

import pandas as pd

import toolkit as tk


def test_smallest_coins_share_one_bar(results):
    row = results["funding_by_coin"].iloc[:1]
    many = pd.concat([row.assign(coin=f"C{n}", net=n - 20.0) for n in range(40)])
    ax = tk.plots.funding_by_coin(many)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert len(names) == 16
    assert "25 others" in names


def test_basis_of_one_snapshot_has_no_half_life():
    snapshot = pd.DataFrame(
        {"name": ["BTC", "ETH"], "mark_px": [100.1, 50.0], "oracle_px": [100.0, 50.0],
         "funding": 1e-5, "open_interest": 5.0, "time": pd.Timestamp("2025-09-01", tz="UTC")}
    )  # fmt: skip
    figure = tk.plots.basis(tk.funding.basis(snapshot))
    half_lives, means, _ = figure.axes
    assert "half-life not known" in half_lives.texts[0].get_text()
    assert [label.get_text() for label in means.get_yticklabels()] == ["BTC", "ETH"]
    assert "half-life not known" in tk.plots.alt(figure)
