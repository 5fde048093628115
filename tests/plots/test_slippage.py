"""Slippage: curves, fits and heatmaps."""

import numpy as np
import pandas as pd
import pytest

import toolkit as tk
from tests.plots.figures import HOSTILE_NAME, render_png
from toolkit.plots import alt


def test_curve_of_five_coins_is_refused(profit):
    curve = profit["slippage_curve"]
    many = pd.concat([curve.assign(coin=f"C{n}") for n in range(5)])
    with pytest.raises(ValueError, match="at most 4 coins"):
        tk.plots.slippage_curve(many)


def test_curve_shows_thin_books(profit):
    curve = profit["slippage_curve"]
    assert (curve["missing_share"] == 1).any()
    figure = tk.plots.slippage_curve(curve)
    bars = [patch.get_height() for patch in figure.axes[1].patches]
    assert bars == curve.sort_values(["side", "amount_usd"])["missing_share"].tolist()
    assert "too thin in at most 100%" in alt(figure)


def test_curve_without_thin_books_has_one_panel(profit):
    figure = tk.plots.slippage_curve(profit["slippage_curve"].assign(missing_share=0.0))
    assert [ax.get_xlabel() for ax in figure.axes] == ["size, USD"]


def test_markup_in_fit_name_is_text(market_frames):
    samples = market_frames["samples"].assign(coin=HOSTILE_NAME)
    assert render_png(tk.plots.slippage_fit(tk.slippage.fit(samples, draws=9)))


def test_fit_line_is_power_law(market):
    fit = market["slippage_fit"]
    half, a, k, _ = fit.params.loc[fit.params["side"] == "buy", "estimate"]
    lines = fit.plot().axes[0].get_lines()
    law = next(line for line in lines if str(line.get_label()).startswith("buy: exponent"))
    usd, bps = law.get_xdata(), law.get_ydata()
    np.testing.assert_allclose(bps, half + a * (np.asarray(usd) / 1e5) ** k)
    # The largest sizes have no median since the books were too thin; triangles mark them.
    without_median = fit.samples[(fit.samples["side"] == "buy") & fit.samples["q50"].isna()]
    triangles = [line for line in lines if line.get_marker() == "^"]
    assert len(triangles[0].get_xdata()) == len(without_median) > 0


def test_fit_of_five_coins_is_refused(market_frames):
    many = [market_frames["samples"].assign(coin=f"C{number}") for number in range(5)]
    with pytest.raises(ValueError, match="at most 4 coins"):
        tk.slippage.fit(pd.concat(many), draws=2).plot()


def test_heatmap_of_several_coins_is_refused(market, market_frames):
    with pytest.raises(ValueError, match="one coin and amount"):
        tk.plots.slippage_heatmap(tk.slippage.heatmap(market_frames["samples"]))
    with pytest.raises(ValueError, match="side"):
        tk.plots.slippage_heatmap(market["slippage_heatmap"], side="both")
