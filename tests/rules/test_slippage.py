"""The least cost of a size, from two smaller sizes of the same book."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from tests.rules.reference import walk_bps
from toolkit.rules.slippage import average_prices, least_beyond_bps

LEVELS = st.lists(st.tuples(st.floats(0, 80), st.floats(10, 1000)), min_size=1, max_size=10)


def book_side(steps, sign):
    away = 1 + np.cumsum([bps for bps, _ in steps])
    px = 100 * (1 + sign * away / 1e4)
    return np.stack([px, np.array([usd for _, usd in steps]) / px], axis=1)


@pytest.mark.parametrize("sign", [1, -1])
@given(LEVELS, st.floats(0.05, 0.9), st.floats(0.05, 0.9))
def test_lower_bound_is_at_most_cost(sign, steps, one, two):
    """It holds for any book, up to rounding to two decimals, which matters more for close sizes."""
    book = book_side(steps, sign)
    whole = float((book[:, 0] * book[:, 1]).sum()) * (1 - 1e-9)
    larger = whole * two
    smaller = larger * one
    costs = [walk_bps(book, usd, 100.0) for usd in (smaller, larger, whole)]
    assert None not in costs
    pairs = [
        (np.array([usd]), np.array([bps])) for usd, bps in ((larger, costs[1]), (smaller, costs[0]))
    ]
    least = float(least_beyond_bps(np.array([whole]), *pairs, sign)[0])
    rounding = 0.005 + 0.01 * (whole - larger) / (larger - smaller)
    assert least <= costs[2] + 2 * rounding


def test_bound_from_one_size_is_its_cost():
    nothing = (np.array([0.0]), np.array([0.0]))
    known = (np.array([1000.0]), np.array([20.0]))
    for sign in (1, -1):
        found = least_beyond_bps(np.array([5000.0]), known, nothing, sign)
        assert found == pytest.approx(20.0)


def test_average_price_by_hand():
    """500 USD take 1 at 100 and 4 at 100; 600 USD another 100 USD at 110."""
    px, sz = np.array([[100.0, 110.0, 120.0]] * 2), np.array([[5.0, 2.0, 1.0], [5.0, 0.5, 0.0]])
    assert average_prices(px, sz, 500.0) == pytest.approx([100.0, 100.0])
    assert average_prices(px, sz, 600.0)[0] == pytest.approx(600 / (5 + 100 / 110))
    assert np.isnan(average_prices(px, sz, 600.0)[1])
    assert average_prices(px, sz, 840.0)[0] == pytest.approx(840 / 8)  # all of the book
    assert np.isnan(average_prices(px, sz, 840.5)[0])


def test_bound_from_two_sizes_by_hand():
    """1,000 USD buy 1,000 / 1.02 of mid and 3,000 / 1.05: the sizes at mid, to the last digit."""
    large, small = (np.array([3000.0]), np.array([500.0])), (np.array([1000.0]), np.array([200.0]))
    rate = (3000 / 1.05 - 1000 / 1.02) / 2000
    cost = (4000 / (3000 / 1.05 + 1000 * rate) - 1) * 1e4
    found = least_beyond_bps(np.array([4000.0]), large, small, 1)
    assert found == pytest.approx(cost, rel=1e-12)
