"""TWAP orders: outstanding sizes, and progress against schedule."""

from itertools import pairwise

import pandas as pd

import toolkit as tk
from toolkit.plots import alt


def test_adherence_points_show_progress(results):
    rows = results["twap_adherence"].dropna(subset="elapsed")
    lines = tk.plots.twap_adherence(results["twap_adherence"]).lines[1:]
    points = sorted(point for line in lines for point in line.get_xydata().tolist())
    assert points == sorted(rows[["elapsed", "progress"]].to_numpy().tolist())


def test_pressure_label_names_unpriced_markets(trading_frames):
    unpriced = tk.twaps.pressure(trading_frames["twaps"], trading_frames["marks"].iloc[:0])
    assert "no data" in alt(tk.plots.twap_pressure(unpriced))
    priced = tk.twaps.pressure(trading_frames["twaps"], trading_frames["marks"])
    market = priced.loc[priced["orders"] > 0, "market"].iloc[0]
    marks = trading_frames["marks"][trading_frames["marks"]["name"] != market]
    ax = tk.plots.twap_pressure(tk.twaps.pressure(trading_frames["twaps"], marks))
    assert f"without a price: {market}" in ax.get_xlabel()
    assert "1 without a price" in alt(ax)


def test_names_of_orders_do_not_collide():
    rows = pd.DataFrame({"market": list("ABCDEF"), "is_buy": True, "elapsed": 0.5, "progress": 0.4})
    texts = tk.plots.twap_adherence(rows).texts
    heights = sorted(text.get_position()[1] for text in texts if text.get_text() in "ABCDEF")
    assert len(heights) == 6
    assert min(upper - lower for lower, upper in pairwise(heights)) > 0.04


def test_names_of_orders_stay_in_the_figure():
    """An order ahead of its schedule has its name at the left, except near the axis."""
    rows = pd.DataFrame(
        {"market": ["eqx:GOLD", "BTC"], "is_buy": True, "elapsed": [0.03, 0.6],
         "progress": [0.04, 0.7]}
    )  # fmt: skip
    places = {
        text.get_text(): text.get_position()[0] for text in tk.plots.twap_adherence(rows).texts
    }
    assert places["eqx:GOLD"] > 0.03
    assert places["BTC"] < 0.6


def test_rounded_zero_has_no_sign():
    names = ("vs_vwap_bps", "vs_twap_bps", "vs_arrival_bps")
    rows = pd.DataFrame({name: [-0.01] for name in names})
    texts = [text.get_text() for text in tk.plots.twap_quality(rows).texts]
    assert texts == ["0.0"] * 3
