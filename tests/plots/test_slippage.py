"""Slippage: curves, fits and heatmaps."""

import numpy as np

import toolkit as tk
from tests.plots.figures import HOSTILE_NAME, render_png
from toolkit.plots import alt


def test_curve_shows_thin_books(results):
    curve = results["slippage_curve"]
    assert (curve["missing_share"] == 1).any()
    figure = tk.plots.slippage_curve(curve)
    bars = [patch.get_height() for patch in figure.axes[1].patches]
    assert bars == curve.sort_values(["side", "amount_usd"])["missing_share"].tolist()
    assert "too thin in at most 100%" in alt(figure)


def test_curve_without_thin_books_has_one_panel(results):
    figure = tk.plots.slippage_curve(results["slippage_curve"].assign(missing_share=0.0))
    assert [ax.get_xlabel() for ax in figure.axes] == ["size, USD"]


def test_markup_in_fit_name_is_text(market_frames):
    samples = market_frames["samples"].assign(coin=HOSTILE_NAME)
    assert render_png(tk.plots.slippage_fit(tk.slippage.fit(samples, draws=9)))


def test_fit_line_is_power_law(results):
    fit = results["slippage_fit"]
    half, a, k, _ = fit.params.loc[fit.params["side"] == "buy", "estimate"]
    lines = fit.plot().axes[0].get_lines()
    law = next(line for line in lines if str(line.get_label()).startswith("buy: exponent"))
    usd, bps = law.get_xdata(), law.get_ydata()
    np.testing.assert_allclose(bps, half + a * (np.asarray(usd) / 1e5) ** k)
    # The largest sizes have no median since the books were too thin; triangles mark them.
    without_median = fit.samples[(fit.samples["side"] == "buy") & fit.samples["q50"].isna()]
    triangles = [line for line in lines if line.get_marker() == "^"]
    assert len(triangles[0].get_xdata()) == len(without_median) > 0
