"""Maintenance margin by tiers, by hand and compared with its definition."""

from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given

from toolkit.rules.margin import (
    exact_liquidation_price,
    exact_maintenance,
    liquidation_price,
    maintenance,
    pad_tiers,
    tiered_adverse_move,
)

THREE = ((0, 40), (150_000, 20), (400_000, 5))
"""Rates 1/80, 1/40, 1/10; deductions 0, 150,000/80 = 1,875 and 1,875 + 400,000 * 3/40 = 31,875."""


@st.composite
def tables(draw):
    """Draw a table of one to five tiers with falling leverages."""
    count = draw(st.integers(1, 5))
    bounds = draw(st.lists(st.integers(1, 10**6), min_size=count, max_size=count, unique=True))
    most = draw(st.lists(st.integers(1, 50), min_size=count, max_size=count, unique=True))
    return list(zip([0, *sorted(bounds)[1:]], sorted(most, reverse=True), strict=True))


def margin_by_definition(notional, tiers):
    """Return the margin by docs/live_service.md, section 4."""
    rates = [Fraction(1, 2 * most) for _, most in tiers]
    deduction, margin = Fraction(0), notional * rates[0]
    for place in range(1, len(tiers)):
        bound = tiers[place][0]
        deduction += bound * (rates[place] - rates[place - 1])
        if notional >= bound:
            margin = notional * rates[place] - deduction
    return margin


def test_three_tiers_by_hand():
    notional = [100_000, 150_000, 200_000, 400_000, 500_000]
    margin = [1_250, 1_875, 3_125, 8_125, 18_125]
    assert maintenance(notional, *pad_tiers([THREE] * 5)).tolist() == margin
    assert [exact_maintenance(usd, THREE) for usd in notional] == margin


@given(tables(), st.integers(0, 2 * 10**6))
def test_margin_follows_definition(tiers, notional):
    expected = margin_by_definition(Fraction(notional), tiers)
    most, low = pad_tiers([tiers, [(0, 3)]])
    result = maintenance([notional, notional], most, low)
    assert result[0] == pytest.approx(float(expected), rel=1e-12)
    assert result[1] == notional / 6
    assert exact_maintenance(notional, tiers) == expected.__floor__()


@given(tables())
def test_margin_rises_without_jumps(tiers):
    for bound, _ in tiers[1:]:
        below, at = (
            margin_by_definition(Fraction(bound) - gap, tiers) for gap in (Fraction(1, 10**9), 0)
        )
        assert 0 < at - below < Fraction(1, 10**9)
    grid = sorted([0, 10**6, *(bound + step for bound, _ in tiers for step in (-1, 0, 1))])
    most, low = pad_tiers([tiers] * len(grid))
    result = maintenance(grid, most, low)
    assert all(after >= before for before, after in pairwise(result))
    exact = [exact_maintenance(max(0, notional), tiers) for notional in grid]
    assert exact == sorted(exact)


def test_one_tier_equals_leverage_alone():
    notional = np.array([0.0, 7.0, 1e9, np.nan, -8.0])
    plain = maintenance(notional, [3, 10, 40, 40, 40])
    tiered = maintenance(notional, [[3], [10], [40], [40], [40]], [[0]] * 5)
    np.testing.assert_array_equal(plain, tiered)
    assert plain[2] == 1e9 / 80


def test_unknown_table_gives_nan():
    most, low = pad_tiers([[]])
    assert low.tolist() == [[0.0]]
    assert np.isnan(most).tolist() == [[True]]
    assert [part.shape for part in pad_tiers([])] == [(0, 1)] * 2
    most, low = pad_tiers([[], THREE])
    result = maintenance([1000.0, 1000.0], most, low)
    assert np.isnan(result[0])
    assert result[1] == 12.5
    moves = tiered_adverse_move([500.0, 500.0], [0, 1], [1000.0, 1000.0], most, low)
    assert np.isnan(moves[0])
    assert moves[1] == pytest.approx(487.5 / 987.5)


def test_unordered_tiers_raise():
    for table in ([(5, 10)], [(0, 10), (0, 5)], [(0, 10), (7, 5), (6, 3)]):
        with pytest.raises(ValueError, match="begin at 0"):
            pad_tiers([table])


def test_adverse_move_crosses_tier():
    """500,000 long on 181,875: at 300,000 the margin is 5,625 and the equity -18,125.

    In the second tier: 181,875 - d * 500,000 = 500,000 (1 - d) / 40 - 1,875, so
    d = 171,250 / 487,500. A short of the same size stays in the third tier:
    181,875 - d * 500,000 = 500,000 (1 + d) / 10 - 31,875, so d = 163,750 / 550,000.
    """
    most, low = pad_tiers([THREE, THREE])
    result = tiered_adverse_move([181_875.0] * 2, [0, 1], [5e5, -5e5], most, low)
    assert result == pytest.approx([171_250 / 487_500, 163_750 / 550_000], rel=1e-12)
    prices = liquidation_price([100.0] * 2, [5e3, -5e3], [181_875.0] * 2, most, low)
    assert prices == pytest.approx([100 * (1 - result[0]), 100 * (1 + result[1])])


def test_longs_lose_no_more_than_their_value():
    """Six accounts with positions at 10x, or at 10x and 5x from a notional of 300 on.

    - 300 behind 100 long and 100 short: 200 - 100 d = 5 (1 + d), so d = 195 / 105.
    - 200 behind 100 long: never.
    - 100 behind 100 long: at a price of 0 nothing is missing, so never.
    - 99 behind 100 long: 99 - 100 d = 5 (1 - d), so d = 94 / 95.
    - 500 behind 50 long and 200 short, which reaches the second tier at d = 0.5:
      450 - 200 d = 20 (1 + d) - 15, so d = 445 / 220.
    - 220 behind 200 short without a long: 220 - 200 d = 20 (1 + d) - 15, so d = 215 / 220.
    """
    owner = [0, 0, 1, 2, 3, 4, 4, 5]
    notional = [100.0, -100.0, 100.0, 100.0, 100.0, 50.0, -200.0, -200.0]
    two = [(0, 10), (300, 5)]
    most, low = pad_tiers([[(0, 10)]] * 5 + [two] * 3)
    equity = [300.0, 200.0, 100.0, 99.0, 500.0, 220.0]
    result = tiered_adverse_move(equity, owner, notional, most, low)
    wanted = [195 / 105, np.nan, np.nan, 94 / 95, 445 / 220, 215 / 220]
    assert result == pytest.approx(wanted, rel=1e-12, nan_ok=True)
    unknown, _ = pad_tiers([[], [(0, 10)]])
    moves = tiered_adverse_move([900.0], [0, 0], notional[:2], unknown, low[:2, :1])
    assert np.isnan(moves[0])


def test_adverse_moves_of_one_tier_by_hand():
    """Two accounts: one long and short of different leverage, one below its margin.

    The first: 100 - d * 550 = 4 (1 - d) + 7.5 (1 + d); the second: 4 - d * 90 = 9 (1 - d).
    """
    owner, notional = [0, 1, 0], [400.0, 90.0, -150.0]
    most, low = pad_tiers([[(0, 50)], [(0, 5)], [(0, 10)]])
    result = tiered_adverse_move([100.0, 4.0, 1.0], owner, notional, most, low)
    wanted = [88.5 / 553.5, -5 / 81, np.nan]
    assert result == pytest.approx(wanted, rel=1e-12, nan_ok=True)


@given(
    tables(), st.integers(1, 10**4), st.sampled_from([1, -1]), st.integers(1, 200),
    st.integers(-(10**5), 10**6),
)  # fmt: skip
def test_equity_equals_margin_at_liquidation(tiers, mark, sign, size, equity):
    px = exact_liquidation_price(mark, sign * size, equity, tiers)
    left = equity + sign * size * (px - mark)
    assume(px > 0)
    assert left == margin_by_definition(size * px, tiers)
    most, low = pad_tiers([tiers])
    result = liquidation_price([mark], [sign * size], [equity], most, low)
    assert result[0] == pytest.approx(float(px), rel=1e-9)


def test_adverse_moves_through_tiers_by_hand():
    """10,000 long fall to a notional in each tier, where the equity left is the margin."""
    tiers = [(0, 50), (1_000, 20), (2_000, 10), (3_000, 5), (4_000, 1)]
    ends = [200, 1_500, 2_600, 3_700, 4_800, 9_000, 11_000]
    equity = [float(margin_by_definition(Fraction(end), tiers)) + 10_000 - end for end in ends]
    most, low = pad_tiers([tiers] * len(ends))
    result = tiered_adverse_move(equity, range(len(ends)), [1e4] * len(ends), most, low)
    assert result == pytest.approx([1 - end / 10_000 for end in ends], rel=1e-13)
    for end, share in zip(ends, equity, strict=True):
        alone = tiered_adverse_move([share], [0], [1e4], most[:1], low[:1])
        assert alone == pytest.approx(1 - end / 10_000, rel=1e-13)


def test_margin_is_missing_without_leverage():
    """An unknown leverage comes as None; the second position has 10x, then 5x from 3,000 on."""
    margins = maintenance([1e4, 1e4], [[None, None], [10, 5]], [[0.0, 3e3], [0.0, 3e3]])
    assert np.isnan(margins[0])
    assert margins[1] == 3e3 / 20 + 7e3 / 10


def test_margin_accepts_decimals():
    assert maintenance([Decimal(1000)], [Decimal(50)]).dtype == np.float64
    assert maintenance(Decimal(3000), [[50.0, 5.0]], [[0, 2000]]).dtype == np.float64
    most, low = pad_tiers([[(0, 10)]] * 2)
    equity, size = [Decimal(20), Decimal(10)], [Decimal(100), Decimal(100)]
    moves = tiered_adverse_move(equity, np.array([1.0, 0.0]), size, most, low)
    assert moves == pytest.approx([15 / 95, 5 / 95])  # (equity - 5) / (100 - 5)
    prices = liquidation_price([Decimal(50)], [Decimal(2)], equity[:1], most[:1], low[:1])
    assert prices == pytest.approx([50 * 80 / 95])


def test_liquidation_price_at_zero_is_missing():
    """A long that is paid in full is liquidated at 0 or below, so at no price."""
    prices = liquidation_price([100.0] * 3, [1.0] * 3, [100.0, 150.0, 50.0], [[10]] * 3, [[0]] * 3)
    assert prices.dtype == np.float64
    assert np.isnan(prices[:2]).all()
    assert prices[2] == pytest.approx(50 / 0.95)


def test_liquidation_price_below_zero_uses_first_tier():
    """2,000 on a long of 1,000 at a rate of 1/80: (2,000 - 12.5) / (1 - 1/80) away."""
    away = Fraction(2000 * 80 - 1000, 79)
    assert exact_liquidation_price(1000, 1, 2000, THREE) == 1000 - away


def test_liquidation_price_of_cheap_coin_by_hand():
    """50 long on 10: (10 - 2.5) / (50 - 2.5) of 0.5 away."""
    price = liquidation_price([0.5], [100.0], [10.0], [[10]], [[0]])
    assert price == pytest.approx([0.5 * 40 / 47.5])
