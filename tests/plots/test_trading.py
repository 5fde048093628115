"""Figures of TWAPs, orders, builders, staking, auctions tell the truth."""

import numpy as np
import pandas as pd
import pytest

import toolkit as tk
from tests.analysis.examples import DAY, MONDAY, times
from tests.plots.figures import HOSTILE, png, texts
from toolkit.plots import alt

BUILDER = "0x" + "b" * 40


def test_names_are_text_not_mathematics(trading):
    for name, column in (
        ("order_mix", "status"),
        ("twap_pressure", "market"),
        ("validator_yields", "validator"),
        ("builder_routing", "user"),
    ):
        figure = getattr(tk.plots, name)(trading[name].iloc[:1].assign(**{column: HOSTILE}))
        assert png(figure)
        assert HOSTILE in texts(figure)


def test_marks_stand_where_the_figures_say(trading):
    rows = trading["twap_adherence"].dropna(subset="elapsed")
    lines = tk.plots.twap_adherence(trading["twap_adherence"]).axes[0].lines[1:]
    drawn = sorted(point for line in lines for point in line.get_xydata().tolist())
    assert drawn == sorted(rows[["elapsed", "progress"]].to_numpy().tolist())
    bars = [
        bar.get_width()
        for bar in tk.plots.builder_routing(trading["builder_routing"]).axes[0].patches
    ]
    assert sum(bars) == pytest.approx(trading["builder_routing"]["volume"].sum())


def test_a_week_that_is_not_over_is_hatched_not_zero():
    fills = pd.DataFrame(
        {
            "user": ["a", "b"],
            "coin": "BTC",
            "px": 100.0,
            "sz": 1.0,
            "side": "B",
            "time": times([MONDAY, MONDAY + 7 * DAY]),
            "fee": 0.2,
            "builder": BUILDER,
            "builder_fee": 0.1,
        }
    )
    made = tk.builders.cohorts(fills, BUILDER, until=MONDAY + 8 * DAY)
    figure = tk.plots.builder_cohorts(made)
    png(figure)
    hatched = [patch for patch in figure.axes[0].patches if patch.get_hatch()]
    assert len(hatched) == (~made["complete"]).sum() == 2
    shades = np.ma.getmaskarray(figure.axes[0].images[0].get_array())
    assert shades.sum() == 3  # two weeks that are not over, and one that has not begun
    assert "100%" in texts(figure)
    assert "0%" not in texts(figure)


def test_one_matrix_at_a_time(trading_frames):
    rows = trading_frames["orders"]
    with pytest.raises(ValueError, match="one matrix can be drawn"):
        tk.plots.order_transitions(tk.orders.transitions(rows, by="coin"))
    with pytest.raises(ValueError, match="one mix can be drawn"):
        tk.plots.order_mix(tk.orders.mix(rows, by="coin"))


def test_what_has_no_price_is_named_not_drawn(trading_frames):
    made = tk.twaps.pressure(trading_frames["twaps"], trading_frames["marks"].iloc[:0])
    assert "no data" in alt(tk.plots.twap_pressure(made))
    whole = tk.twaps.pressure(trading_frames["twaps"], trading_frames["marks"])
    lost = whole.loc[whole["orders"] > 0, "market"].iloc[0]
    rest = trading_frames["marks"][trading_frames["marks"]["name"] != lost]
    some = tk.twaps.pressure(trading_frames["twaps"], rest)
    figure = tk.plots.twap_pressure(some)
    assert f"without a price: {lost}" in figure.axes[0].get_xlabel()
    assert "1 without a price" in alt(figure)
