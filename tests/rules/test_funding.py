"""Funding payments: rounding, and the oracle prices that they imply."""

from fractions import Fraction

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tests.rules.reference import exact_oracle_range, funding_payment
from toolkit.rules.funding import LAST_DIGIT, implied_range, round_payments

sizes = st.integers(-(10**9), 10**9)
prices = st.integers(1, 10**9)
rates = st.integers(-(10**7), 10**7)


@given(st.lists(st.integers(-(10**20), 10**20), min_size=1, max_size=20))
def test_rounded_payments_sum_to_zero(amounts):
    """Each payment is less than one millionth of a USD from the exact one."""
    due = dict(enumerate([*amounts, -sum(amounts)]))
    rounded = round_payments(due, 16)
    assert sum(rounded.values()) == 0
    for account, exact in due.items():
        assert abs(rounded[account] - Fraction(exact, 10**10)) < 1


@given(sizes.filter(bool), prices, rates.filter(bool))
def test_implied_range_contains_oracle(szi, oracle, rate):
    usdc = Fraction(funding_payment(szi, oracle, rate, 12), 10**6)
    low, high = exact_oracle_range(usdc, Fraction(szi, 10**3), Fraction(rate, 10**7))
    assert low <= Fraction(oracle, 10**2) <= high


def test_largest_remainder_gets_missing_unit():
    """0.9, 10.1 and -11 units: the 0.9 lost most by rounding down, not the largest payment."""
    assert round_payments({1: 9, 2: 101, 3: -110}, 7) == {1: 1, 2: 10, 3: -11}
    assert round_payments({1: 5, 2: 5, 3: -10}, 7) == {1: 1, 2: 0, 3: -1}  # a tie: by account


def test_implied_range_is_two_digits_wide():
    """A payment of 4 USD for 0.02 may have been 3.999999 to 4.000001 USD."""
    low, high = implied_range(4.0, 0.02, LAST_DIGIT)
    assert low == pytest.approx(199.99995, rel=1e-12)
    assert high == pytest.approx(200.00005, rel=1e-12)
