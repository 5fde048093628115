"""The map of liquidation prices."""

import numpy as np
import pandas as pd
import pytest

from tests.plots.figures import draw_figure
from toolkit.plots import alt


def test_bars_sum_to_notional(results):
    levels = results["liquidation_map"]
    figure = draw_figure("liquidation_map", levels)
    assert sum(patch.get_height() for patch in figure.axes[0].patches) == pytest.approx(
        levels["notional"].sum()
    )
    assert "of open interest" not in alt(figure)
    assert "covers" in alt(figure)


def test_lines_step_at_bin_ends():
    """Bins of 5 %: longs from 0 to -5 and from -20 to -25, shorts from 10 to 15."""
    rows = pd.DataFrame(
        {"coin": "X", "side": ["long", "long", "short"], "distance": [0.0, -0.2, 0.1]}
        | {"low": [95.0, 75.0, 110.0], "high": [100.0, 80.0, 115.0], "unplaced": 0.0}
        | {"notional": [1e3, 2e3, 5e3], "cumulative": [1e3, 3e3, 5e3], "covered": 1.0}
    )
    longs, shorts = draw_figure("liquidation_map", rows).axes[0].lines[:2]
    assert np.column_stack(longs.get_data()) == pytest.approx(
        np.array([[0, 0], [-5, 1e3], [-25, 3e3]])
    )
    assert [line.get_label() for line in (longs, shorts)] == [
        "longs up to here",
        "shorts up to here",
    ]
    assert np.column_stack(shorts.get_data()) == pytest.approx(np.array([[0, 0], [15, 5e3]]))


def test_trip_returns_mark_liquidations():
    trips = pd.DataFrame(
        {"side": ["long", "short"], "status": ["closed", "liquidated"], "forced": [False, True]}
        | {"duration_hours": [2.0, 5.0], "return_": [0.01, -0.3], "net": [5.0, -90.0]}
    )
    figure = draw_figure("trip_returns", trips)
    forced = figure.axes[0].lines[2]
    assert forced.get_label() == "closed by the exchange (1)"
    assert np.column_stack(forced.get_data()) == pytest.approx(np.array([[5, -30]]))
    assert "The exchange closed 1 of them." in alt(figure)
    plain = draw_figure("trip_returns", trips.drop(columns="forced"))
    assert "exchange" not in alt(plain)
