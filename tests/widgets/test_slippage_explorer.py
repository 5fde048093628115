"""The slippage explorer: the curve, what it says in words, the cell that reproduces it."""

from dataclasses import replace
from functools import partial

import pandas as pd
import pytest

from tests.widgets.fetchers import CannedFetcher, run_on_thread
from toolkit.contract.requests import AMOUNTS
from toolkit.errors import ServiceDown
from toolkit.fetch.market import slippage_history
from toolkit.widgets.slippage_explorer import (
    SlippageExplorer,
    SlippageRequest,
    slippage_explorer,
    slippage_view,
)

NOW = 1_759_276_800_000  # 2025-10-01


def samples(coin, amount, *_, **__):
    """Give four samples: buying costs 1, 2, 3, 4 bps at 10,000 USD; selling lacks one."""
    scale = amount / 10_000
    sell = [2.0, 4.0, 6.0, None if amount >= 1e6 else 8.0]
    return pd.DataFrame(
        {
            "timestamp": pd.to_datetime([NOW - 900_000 * n for n in range(4)], unit="ms", utc=True),
            "dex": "main",
            "coin": coin,
            "half_spread_bps": 0.5,
            "amount_usd": float(amount),
            "buy_slippage_bps": [scale * cost for cost in (1.0, 2.0, 3.0, 4.0)],
            "sell_slippage_bps": sell,
        }
    )


@pytest.fixture
def canned():
    return CannedFetcher({"slippage_history": samples})


def fetcher(canned):
    return partial(canned, slippage_history)


@pytest.fixture
def explorer(canned):
    with SlippageExplorer(SlippageRequest("BTC"), ["BTC", "ETH"], fetcher(canned), NOW) as result:
        yield result


def test_view_has_every_size(canned):
    view = slippage_view(SlippageRequest("BTC", 10_000, "buy", "1d"), fetcher(canned), NOW)
    assert view.curve["amount_usd"].tolist() == [float(amount) for amount in AMOUNTS]
    # Ranks of four samples: q50 is the 2nd of 1, 2, 3, 4 bps; q90 the 4th. 2 bps of 10,000 is 2.
    assert view.headline == (
        "Buying 10k USD of BTC at once costs 2.00 bps in the median, 2.00 USD; "
        "in one of ten samples more than 4.00 bps."
    )
    assert [(arguments, named) for _, arguments, named in canned.asked] == [
        (("BTC", amount, NOW - 86_400_000, NOW), {"page_size": 2000}) for amount in AMOUNTS
    ]


def test_headline_names_thin_book(canned):
    view = slippage_view(SlippageRequest("BTC", 1_000_000, "sell"), fetcher(canned), NOW)
    # Three of four samples have a cost, so the 90 % quantile falls among the missing.
    assert view.headline == (
        "Selling 1M USD of BTC at once costs 4.00 bps in the median, 400.00 USD. "
        "The book was too thin in 25.0 % of 4 samples."
    )


def test_headline_says_no_samples(canned):
    canned.answers["slippage_history"] = samples("BTC", 1e4)[:0]
    view = slippage_view(SlippageRequest("BTC"), fetcher(canned), NOW)
    assert view.headline == "There are no samples of 10k USD of BTC in this period."
    assert "no samples" in view.html


@pytest.mark.parametrize("side", ["both", "sell"])
def test_code_reproduces_view(default, side):
    explorer = slippage_explorer("eqx:TSLA", 50_000, side=side, period="1d")
    opened = f"'eqx:TSLA', 50_000, side='{side}', period='1d'"
    assert repr(explorer) == f"tk.widgets.slippage_explorer({opened})" or side == "both"
    cell: dict[str, object] = {}
    exec(explorer.code, cell)
    pd.testing.assert_frame_equal(cell["curve"], explorer.view.curve)
    pd.testing.assert_frame_equal(cell["params"], explorer.view.params)


def test_change_on_thread_is_shown(explorer):
    def change():
        explorer._side.value = "sell"
        explorer._amount.value = 1e6
        return explorer.settle(20)

    assert run_on_thread(change)
    assert explorer.view.request == SlippageRequest("BTC", 1e6, "sell")
    assert "BTC, by size" in explorer._shown.value
    assert "tk.slippage_history" in explorer._code.value
    assert explorer.view.curve["side"].unique().tolist() == ["sell"]


def test_same_samples_are_fetched_once(explorer, canned):
    explorer.set(coin="ETH")
    asked = len(canned.asked)
    explorer.set(coin="BTC").set(amount=1_000.0, side="buy").set(coin="ETH")
    assert len(canned.asked) == asked == 2 * len(AMOUNTS)


def test_error_is_shown_and_cleared(explorer, canned):
    canned.answers["slippage_history"] = ServiceDown("upstream <failed>", operation="x")
    explorer.set(coin="ETH")
    assert isinstance(explorer.error, ServiceDown)
    assert explorer.view.request.coin == "BTC"
    said = explorer._state.value
    assert "upstream &lt;failed&gt; (status 500)" in said
    assert "The view below is of an earlier request." in said
    canned.answers["slippage_history"] = samples
    explorer.set(period="3d")
    assert explorer.error is None
    assert explorer.view.request == replace(SlippageRequest("ETH"), period="3d")
    assert "upstream" not in explorer._state.value
    canned.answers["slippage_history"] = ZeroDivisionError("of samples")
    explorer.set(coin="BTC", period="1d")
    assert "ZeroDivisionError: of samples" in explorer._state.value


def test_unknown_choice_is_refused(explorer):
    with pytest.raises(ValueError, match=r"unknown amount 777; choose one of 1000, .* 1000000"):
        explorer.set(amount=777)
    with pytest.raises(ValueError, match="unknown side 'bid'; choose one of both, buy, sell"):
        SlippageRequest("BTC", side="bid")
