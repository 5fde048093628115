"""Arguments that name a coin of a frame take every spelling of it."""

import pandas as pd
import pytest

import toolkit as tk
from tests.analysis.interval_coverage import books, held, owners


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
    """One of two longs of 100,000 falls: -10 % of the shock, and the impact of its 90,000."""
    rows, depth = held(("a", "kX", 1e5), ("b", "kX", 1e5)), books(0.003, 1.0, ["kX"])
    for name in ("kX", "KX-PERP"):
        made = tk.liquidations.cascade(
            rows, owners(a=12e3, b=25e3), depth, name, [-0.1], max_leverage={"kX": 10}
        )
        assert made.params["estimate"].item() == pytest.approx(0.9 * (1 - 0.0027) - 1)
