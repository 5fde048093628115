"""Funding payments in whole numbers."""

from fractions import Fraction

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tests.rules.reference import exact_oracle_range, funding_payment

sizes = st.integers(-(10**9), 10**9)
prices = st.integers(1, 10**9)
rates = st.integers(-(10**7), 10**7)


def test_longs_pay_a_positive_rate() -> None:
    """10 long at 2000 and 0.01 % an hour pay 2 USD."""
    assert funding_payment(10, 2000, 1, 4) == -2_000_000
    assert funding_payment(-10, 2000, 1, 4) == 2_000_000
    assert funding_payment(10, 2000, -1, 4) == 2_000_000
    assert funding_payment(0, 2000, 1, 4) == 0


def test_exact_halves_round_away_from_zero() -> None:
    """0.5, 1.5 and 2.5 millionths are 1, 2 and 3; to the even number they were 0, 2 and 2."""
    for owed, paid in ((5, 1), (15, 2), (25, 3), (35, 4), (4, 0), (14, 1), (26, 3)):
        assert funding_payment(1, owed, 1, 7) == -paid
        assert funding_payment(-1, owed, 1, 7) == paid
        assert funding_payment(1, owed, -1, 7) == paid
        assert funding_payment(-1, owed, -1, 7) == -paid


def test_samples_divide_the_oracle() -> None:
    low, high = exact_oracle_range(Fraction(-6), Fraction(2), Fraction(1, 100), 3)
    assert low < 100 < high
    assert high - low == 2 * Fraction(3, 10**6) / (2 * Fraction(1, 100) * 3)
    with pytest.raises(ValueError, match="samples"):
        exact_oracle_range(Fraction(-6), Fraction(2), Fraction(1, 100), 0)


@given(sizes, prices, rates)
def test_both_sides_pay_and_receive_the_same(szi: int, oracle: int, rate: int) -> None:
    assert funding_payment(szi, oracle, rate, 12) == -funding_payment(-szi, oracle, rate, 12)


@given(sizes, prices, rates, st.integers(0, 16))
def test_nearest_millionth(szi: int, oracle: int, rate: int, decimals: int) -> None:
    owed = -Fraction(szi * oracle * rate, 10**decimals) * 10**6
    assert abs(funding_payment(szi, oracle, rate, decimals) - owed) <= Fraction(1, 2)


@given(sizes.filter(bool), prices, rates.filter(bool))
def test_implied_oracle_holds_the_oracle(szi: int, oracle: int, rate: int) -> None:
    usdc = Fraction(funding_payment(szi, oracle, rate, 12), 10**6)
    low, high = exact_oracle_range(usdc, Fraction(szi, 10**3), Fraction(rate, 10**7))
    assert low <= Fraction(oracle, 10**2) <= high


def test_no_position_implies_no_price() -> None:
    with pytest.raises(ValueError, match="no price"):
        exact_oracle_range(Fraction(0), Fraction(0), Fraction(1))
