"""Depth, its recovery, and price changes after fills."""

import pandas as pd
import pytest

import toolkit as tk
from tests.plots.figures import list_texts


def test_resilience_label_has_half_life(market):
    found = market["resilience"]
    assert found["half_life"] == pytest.approx(30, rel=0.1)
    label = f"half-life {found['half_life']:.1f} s"
    assert any(text.startswith(label) for text in list_texts(found.plot().figure))


def test_profile_of_two_markets_is_refused(market):
    other = market["depth_profile"].assign(coin="ETH")
    with pytest.raises(ValueError, match="one market"):
        tk.plots.depth_profile(pd.concat([market["depth_profile"], other]))


def test_markout_of_many_groups_is_refused(market_frames):
    by_coin = tk.execution.markout(market_frames["fills"], horizons=["1h"], by="coin")
    with pytest.raises(ValueError, match="at most 6 groups"):
        by_coin.plot()
