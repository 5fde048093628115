"""Arguments that name a coin of a frame take every spelling of it."""

import pandas as pd
import pytest

import toolkit as tk


def test_slippage_cost_takes_any_spelling():
    session = tk.local(seed=7, size="tiny", default=False)
    samples = tk.concat(
        [tk.slippage_history(coin, 10_000, "1d", session=session) for coin in ("BTC", "ETH")]
    )
    one = tk.slippage.cost(samples, 10_000, coin="ETH")
    for name in ("eth", "$ETH", "ETH-PERP"):
        pd.testing.assert_frame_equal(tk.slippage.cost(samples, 10_000, coin=name), one)
    with pytest.raises(ValueError, match="'nope'"):
        tk.slippage.cost(samples, 10_000, coin="nope")


def test_cascade_takes_any_spelling():
    held = {"coin": "kX", "position_value": 1e5, "leverage_type": "cross", "margin_used": 0.0}
    rows = pd.DataFrame({"user": ["a", "b"], "szi": [1_000.0, 1_000.0]}).assign(**held)
    owners = pd.DataFrame({"user": ["a", "b"], "cross_account_value": [12e3, 25e3]})
    sides = {side: [5e4, 1e5] for side in ("bid_depth_usd", "ask_depth_usd")}
    depth = pd.DataFrame({"bps": [15, 30], **sides}).assign(
        coin="kX", timestamp_ms=pd.Timestamp(0, unit="ms", tz="UTC")
    )
    estimates = {
        tk.liquidations.cascade(rows, owners, depth, name, [-0.1], max_leverage={"kX": 10})
        .params["estimate"]
        .iloc[0]
        for name in ("kX", "KX-PERP")
    }
    assert [round(estimate, 5) for estimate in estimates] == [-0.10243]
