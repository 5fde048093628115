"""Cases of ``tk.slippage``."""

import numpy as np

from tests.analysis.examples import MONDAY, times
from tests.scale.case import Case, table

QUARTER = 900_000


def book_rows(n, at, spread, usd, buy, sell):
    rows = table(
        n,
        timestamp=times(MONDAY + QUARTER * at),
        dex="hyperliquid",
        coin="XYZ",
        half_spread_bps=spread,
        amount_usd=usd,
        buy_slippage_bps=buy,
        sell_slippage_bps=sell,
    )
    return {"samples": rows}


def samples(n):
    """Return samples of two sizes: 1 to 10 bps in turn; every tenth book is too thin to buy."""
    k = np.arange(n)
    bps = 1.0 + k // 2 % 10
    usd = np.where(k % 2 == 0, 1e3, 1e6)
    return book_rows(n, k // 2, 0.5, usd, np.where(bps == 10, np.nan, bps), bps)


def curve_at_scale(frames, result):
    each = len(frames["samples"]) // 2
    assert (result["n"] == each).all()
    assert result["missing"].tolist() == [each // 10, 0] * 2
    assert result["q50"].tolist() == [5.0] * 4
    assert result["q90"].tolist() == [9.0] * 4


def books(n):
    """Return quarter-hourly books: half spread 1, 10 bps at 100,000 USD, exponent 1/2.

    Buying costs as much, 10 % more or 10 % less in turn; selling always twice the buyer's impact.
    Every tenth book is too thin to buy the largest size.
    """
    k = np.arange(n)
    book, usd = k // 4, np.array([1e3, 1e4, 1e5, 1e6])[k % 4]
    cost = 1 + 10 * np.sqrt(usd / 1e5) * (0.9 + 0.1 * (book % 3))
    thin = (book % 10 == 9) & (usd == 1e6)
    buy = np.where(thin, np.nan, cost.round(2))
    return book_rows(n, book, 1.0, usd, buy, (2 * cost - 1).round(2))


def fit_at_scale(frames, result):
    found = result.set_index(["side", "name"])["estimate"]
    assert abs(found["sell", "k"] - 0.5) < 0.01
    assert abs(found["sell", "a"] - 20) < 0.3
    assert abs(found["buy", "a"] - 10) < 0.3
    assert found["buy", "half_spread"] == 1


def cost_at_scale(frames, result):
    """In logarithms the size is log10(4) = 0.602 of the way from 100,000 to a million.

    Selling costs 21 and 1 + 20 * 10**0.5 = 64.2, so 21 * (64.2 / 21)**0.602 = 41.2. Buying costs 11
    and, in nine of ten books, 32.6. The other books cost at least 11.7, because 100,000 cost 11 and
    10,000 of them 4.16 (the next 90,000 cost 11.76 each). The mean is 30.5, and
    11 * (30.5 / 11)**0.602 = 20.3.
    """
    assert np.allclose(result["cost_bps"], [20.3, 41.2], rtol=0.005)
    assert np.allclose(result["too_thin"], [0.1, 0], atol=1e-4)


def capacity_at_scale(frames, result):
    """21 bps are ln(21 / 11) / ln(30.5 / 11) = 0.634 of the way from 100,000; selling: 100,000."""
    assert np.allclose(result["capacity_usd"], [10**5.634, 1e5], rtol=0.02)


def heatmap_at_scale(frames, result):
    n = len(frames["samples"])
    assert result["n"].sum() == 2 * n
    assert sorted(result["hour_of_week"].unique()) == list(range(168))
    usd, side = result["amount_usd"], result["side"]
    cheap = result[(usd == 1e3) & (side == "buy")]
    assert cheap["bps"].between(1.9, 2.1).all()


def asymmetry_at_scale(frames, result):
    """Selling costs more by the buyer's impact: sqrt(Q / 100,000) * 10 on average."""
    assert np.allclose(result["difference_bps"], [-1, -3.16, -10, -31.6], rtol=0.01)
    assert result["buy_dearer"].tolist() == [0.0] * 4
    assert result["buy_missing"].tolist()[:3] == [0] * 3


def case(helper, frames, at_scale, needed="timestamp", **more):
    needed = f"coin amount_usd half_spread_bps buy_slippage_bps sell_slippage_bps {needed}"
    return Case(f"slippage.{helper}", frames, at_scale, {"samples": needed}, **more)


FITTED = {"rows": 800}
CASES = [
    case("curve", samples, curve_at_scale, ""),
    case("fit", books, fit_at_scale, **FITTED),
    case("cost", books, cost_at_scale, arguments={"usd": 4e5}, **FITTED),
    case("capacity", books, capacity_at_scale, arguments={"bps": 21}, **FITTED),
    case("heatmap", books, heatmap_at_scale),
    case("asymmetry", books, asymmetry_at_scale),
]
