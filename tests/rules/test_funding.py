"""Funding payments in whole numbers."""

from fractions import Fraction

import hypothesis.strategies as st
import pytest
from hypothesis import given

from toolkit.rules.funding import implied_oracle, payment

sizes = st.integers(-(10**9), 10**9)
prices = st.integers(1, 10**9)
rates = st.integers(-(10**7), 10**7)


def test_longs_pay_a_positive_rate() -> None:
    """10 long at 2000 and 0.01 % an hour pay 2 USD."""
    assert payment(10, 2000, 1, 4) == -2_000_000
    assert payment(-10, 2000, 1, 4) == 2_000_000
    assert payment(10, 2000, -1, 4) == 2_000_000
    assert payment(0, 2000, 1, 4) == 0


@given(sizes, prices, rates)
def test_both_sides_pay_and_receive_the_same(szi: int, oracle: int, rate: int) -> None:
    assert payment(szi, oracle, rate, 12) == -payment(-szi, oracle, rate, 12)


@given(sizes, prices, rates, st.integers(0, 16))
def test_nearest_millionth(szi: int, oracle: int, rate: int, decimals: int) -> None:
    owed = -Fraction(szi * oracle * rate, 10**decimals) * 10**6
    assert abs(payment(szi, oracle, rate, decimals) - owed) <= Fraction(1, 2)


@given(sizes.filter(bool), prices, rates.filter(bool))
def test_implied_oracle_holds_the_oracle(szi: int, oracle: int, rate: int) -> None:
    usdc = Fraction(payment(szi, oracle, rate, 12), 10**6)
    low, high = implied_oracle(usdc, Fraction(szi, 10**3), Fraction(rate, 10**7))
    assert low <= Fraction(oracle, 10**2) <= high


def test_no_position_implies_no_price() -> None:
    with pytest.raises(ValueError, match="no price"):
        implied_oracle(Fraction(0), Fraction(0), Fraction(1))
