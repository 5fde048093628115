"""Builders: routing, cohorts, and the revenue from a user."""

import numpy as np
import pandas as pd
import pytest

import toolkit as tk
from tests.analysis.examples import DAY, MONDAY, times
from tests.plots.figures import list_texts, render_png
from toolkit import builders, plots

BUILDER = "0x" + "b" * 40


def fills_of(users, stamps, builder_fee):
    return pd.DataFrame(
        {"user": users, "coin": "BTC", "px": 100.0, "sz": 1.0, "side": "B", "fee": 1.0}
        | {"time": times(stamps), "builder": BUILDER, "builder_fee": builder_fee}
    )


def test_wide_interval_does_not_flatten_curve():
    """One of two users paid 1 USD and one nothing: the interval reaches thousands of USD."""
    fills = fills_of(["u", "v"], [MONDAY, MONDAY], [1.0, 0.0])
    value = builders.lifetime_value(fills, BUILDER, weeks=1, until="2025-10-20")
    assert value.params["high"].item() > 1000
    assert plots.lifetime_value(value).get_ylim() == (0, 3 * 0.5)


def test_bars_sum_to_volume(results):
    bars = [bar.get_width() for bar in tk.plots.builder_routing(results["builder_routing"]).patches]
    assert sum(bars) == pytest.approx(results["builder_routing"]["volume"].sum())


def test_unfinished_week_is_hatched():
    fills = fills_of(["a", "b"], [MONDAY, MONDAY + 7 * DAY], 0.1)
    cohorts = tk.builders.cohorts(fills, BUILDER, until=MONDAY + 8 * DAY)
    ax = tk.plots.builder_cohorts(cohorts)
    render_png(ax.figure)
    hatched = [patch for patch in ax.patches if patch.get_hatch()]
    assert len(hatched) == (~cohorts["complete"]).sum() == 2
    shades = np.ma.getmaskarray(ax.images[0].get_array())
    assert shades.sum() == 3  # two weeks that are not over, and one that has not begun
    assert "100%" in list_texts(ax.figure)
    assert "0%" not in list_texts(ax.figure)


def test_activity_hides_shares_of_many_days():
    days = pd.date_range("2025-09-01", periods=30, tz="UTC")
    counts = {"builder": "0xb", "new": 1, "returning": 2, "retention": 0.5, "volume_share": 0.5}
    rows = pd.DataFrame({"time": days, **counts, "complete": True})
    ax = tk.plots.builder_activity(rows)
    assert (ax.get_ylabel(), len(ax.texts)) == ("active users", 0)
    assert "share" in tk.plots.builder_activity(rows.head(5)).get_ylabel()
