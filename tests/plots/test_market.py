"""Figures of fits, hours, depth, execution, accrual tell the truth."""

import numpy as np
import pandas as pd
import pytest

import toolkit as tk
from tests.plots.figures import HOSTILE, png, texts


def test_names_are_text_not_mathematics(market_frames, market):
    for name in ("depth_profile", "funding_accrual", "slippage_heatmap"):
        figure = getattr(tk.plots, name)(market[name].assign(coin=HOSTILE))
        assert png(figure)
        assert any(HOSTILE in text for text in texts(figure))
    samples = market_frames["samples"].assign(coin=HOSTILE)
    assert png(tk.plots.slippage_fit(tk.slippage.fit(samples, draws=9)))


def test_the_fitted_line_is_the_law(market):
    fit = market["slippage_fit"]
    half, a, k, _ = fit.params.loc[fit.params["side"] == "buy", "estimate"]
    lines = fit.plot().axes[0].get_lines()
    line = next(one for one in lines if str(one.get_label()).startswith("buy: exponent"))
    usd, bps = line.get_xdata(), line.get_ydata()
    np.testing.assert_allclose(bps, half + a * (np.asarray(usd) / 1e5) ** k)
    # The largest sizes had no median: the books were too thin, and triangles say so.
    lost = fit.samples[(fit.samples["side"] == "buy") & fit.samples["q50"].isna()]
    thin = [one for one in lines if one.get_marker() == "^"]
    assert len(thin[0].get_xdata()) == len(lost) > 0


def test_the_half_life_stands_in_the_figure(market):
    found = market["resilience"]
    assert found["half_life"] == pytest.approx(30, rel=0.1)
    label = f"half-life {found['half_life']:.1f} s"
    assert any(text.startswith(label) for text in texts(found.plot()))


def test_too_much_for_one_figure_is_refused(market, market_frames):
    other = market["depth_profile"].assign(coin="ETH")
    two = pd.concat([market["depth_profile"], other])
    with pytest.raises(ValueError, match="one market"):
        tk.plots.depth_profile(two)
    with pytest.raises(ValueError, match="one coin and amount"):
        tk.plots.slippage_heatmap(tk.slippage.heatmap(market_frames["samples"]))
    with pytest.raises(ValueError, match="side"):
        tk.plots.slippage_heatmap(market["slippage_heatmap"], side="both")
    many = [market_frames["samples"].assign(coin=f"C{number}") for number in range(5)]
    with pytest.raises(ValueError, match="at most 4 coins"):
        tk.slippage.fit(pd.concat(many), draws=2).plot()
    by_coin = tk.execution.markout(market_frames["fills"], horizons=["1h"], by="coin")
    with pytest.raises(ValueError, match="at most 6 groups"):
        by_coin.plot()
