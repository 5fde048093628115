"""Depth and slippage of a book, by hand and on a recorded book."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.rules.reference import slippage_bps, walk_bps
from toolkit.contract.requests import AMOUNTS
from toolkit.rules.depth import BANDS_BPS, Book, depth_bands, mid_price, slippage_bounds
from toolkit.rules.slippage import average_prices

RECORDING = Path(__file__).parents[3] / "shared" / "recordings" / "l2Book.json"
NOTHING = np.empty((0, 2))


def book():
    return Book(
        bids=np.array([[99.9, 10.0], [99.0, 100.0]]),
        asks=np.array([[100.1, 5.0], [100.2, 10.0], [104.0, 50.0]]),
    )


@pytest.fixture
def recorded():
    if not RECORDING.exists():
        pytest.skip("no recordings")
    levels = json.loads(RECORDING.read_text())["response"]["levels"]
    sides = [
        np.array([[float(level["px"]), float(level["sz"])] for level in side]) for side in levels
    ]
    return Book(*sides)


def test_depth_and_slippage_by_hand():
    """1,502.5 USD buy all 5 at 100.1 and 10.0 at 100.2: 15 at 100.1667 on average."""
    assert mid_price(book()) == 100.0
    assert slippage_bps(book(), 1502.5) == (16.67, 40.34)
    assert depth_bands(book(), (10, 25, 100, 500)) == [
        (10, 999.0, 500.5),
        (25, 999.0, 1502.5),
        (100, 10899.0, 1502.5),
        (500, 10899.0, 6702.5),
    ]


def test_one_sided_book_has_no_mid():
    half = Book(bids=book().bids, asks=NOTHING)
    assert [width for width, *_ in depth_bands(half)] == [10, 25, 50, 100, 200, 500]
    assert mid_price(half) is None
    assert depth_bands(half, (10,)) == [(10, 0.0, 0.0)]


def test_prices_of_recorded_book_equal_its_walk(recorded):
    middle = mid_price(recorded)
    assert middle == pytest.approx((2.111 + 2.1124) / 2)
    for usd in AMOUNTS:
        for side in (recorded.bids, recorded.asks):
            px, sz = side.T[:, None]
            cost = walk_bps(side, usd, middle)
            found = average_prices(px, sz, float(usd))[0]
            bps = np.nan if cost is None else cost
            assert abs(found / middle - 1) * 1e4 == pytest.approx(bps, abs=0.0051, nan_ok=True)


def test_widest_band_has_total_depth(recorded):
    result = depth_bands(recorded)
    assert [width for width, _, _ in result] == list(BANDS_BPS)
    for side in (1, 2):
        depths = [row[side] for row in result]
        assert depths == sorted(depths)
    whole = float((recorded.asks[:, 0] * recorded.asks[:, 1]).sum())
    assert result[-1][2] == pytest.approx(whole)


def test_level_beyond_band_does_not_count():
    """The levels are 10.5 and 10 bps from a mid of 100."""
    far = Book(bids=np.array([[99.895, 1.0]]), asks=np.array([[100.105, 1.0]]))
    assert depth_bands(far, (10, 11)) == [(10, 0.0, 0.0), (11, 99.895, 100.105)]
    edge = Book(bids=np.array([[99.9, 1.0]]), asks=np.array([[100.1, 1.0]]))
    assert depth_bands(edge, (10,)) == [(10, 99.9, 100.1)]


@pytest.mark.parametrize("sign", [1, -1])
def test_slippage_bounds_by_hand(sign):
    """1,000 USD within 10 bps, 2,000 more within 25; the best price is 4 bps from mid."""
    orders = np.array([500.0, 1_000.0, 2_000.0, 3_000.0, 3_000.5])
    books, widths = np.array([[1_000.0, 3_000.0]] * 5), np.array([10.0, 25.0])
    least, most = slippage_bounds(orders, books, widths, np.full(5, 4.0), sign)

    def cost(*parts):
        size = sum(usd / (1 + sign * bps / 1e4) for usd, bps in parts)
        return sign * (sum(usd for usd, _ in parts) / size - 1) * 1e4

    thousand, beyond = (1_000, 4), (0.5, 25)
    part = cost(thousand, (1_000, 10))
    whole, more = (cost(thousand, (2_000, 10), *rest) for rest in ([], [beyond]))
    assert least == pytest.approx([4.0, 4.0, part, whole, more])
    wide = [10.0, 10.0, cost((1_000, 10), (1_000, 25)), cost((1_000, 10), (2_000, 25)), np.inf]
    assert most == pytest.approx(wide)


def test_bound_is_at_least_best_price():
    """Nothing lies within 10 bps: the best price is at 15."""
    args = np.array([[0.0, 3_000.0]]), np.array([10.0, 25.0]), np.array([15.0])
    least, most = slippage_bounds(np.array([1_000.0]), *args, 1)
    assert least == pytest.approx([15.0])
    assert most == pytest.approx([25.0])


def test_empty_book_has_no_upper_bound():
    """No depth is known: all of the order may lie beyond the widest band."""
    widths, spread = np.array([10.0, 25.0]), np.array([4.0, 4.0])
    least, most = slippage_bounds(np.array([1_000.0, 0.0]), np.zeros((2, 2)), widths, spread, 1)
    assert least[0] == pytest.approx(25.0)
    assert most[0] == np.inf
    assert np.isnan([least[1], most[1]]).all()
