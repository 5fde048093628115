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


def case(helper, frames, needed="timestamp", **more):
    needed = f"coin amount_usd half_spread_bps buy_slippage_bps sell_slippage_bps {needed}"
    return Case(f"slippage.{helper}", frames, {"samples": needed}, **more)


CASES = [
    case("curve", samples, "", at_scale=curve_at_scale),
    case("fit", books, rows=800),
    case("cost", books, arguments={"usd": 4e5}, rows=800),
    case("capacity", books, arguments={"bps": 21}, rows=800),
    case("heatmap", books),
    case("asymmetry", books),
]
