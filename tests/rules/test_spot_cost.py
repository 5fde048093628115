"""Cost basis of spot and outcome tokens, by hand and compared with fractions."""

from fractions import Fraction

import hypothesis.strategies as st
from hypothesis import given

from tests.rules.reference import replay_spot_fills
from toolkit.rules.spot_cost import FLAT, CostBasis, adjust_balance, apply_spot_fill, swap_tokens

sizes = st.integers(1, 10**9)
prices = st.integers(1, 10**8)
moves = st.lists(st.tuples(st.sampled_from(["buy", "sell", "gap"]), sizes, prices), max_size=40)


def replay_in_fractions(rows):
    """Return closed PnL by section 3, in fractions, if no cost is unknown."""
    closed, held, cost = [], Fraction(0), Fraction(0)
    for start, change, px, fee in rows:
        if start < held:
            cost *= start / held
        held = Fraction(start)
        gain = Fraction(0)
        if change > 0:
            cost += change * px
        else:
            gain = -change * (px - cost / held)
            cost -= cost * -change / held
        held += change - fee
        closed.append(gain)
    return closed


def make_rows(drawn, *, unknown):
    """Return fills from draws: sells and gaps never take more than the balance."""
    rows, held = [], 0
    for kind, size, px in drawn:
        if kind == "gap":
            held = held + size if unknown else held * (size % 7) // 7
        elif kind == "buy":
            fee = size // 1000
            rows.append((held, size, px, fee))
            held += size - fee
        elif held:
            sold = held if size % 5 == 0 else 1 + size % held
            rows.append((held, -sold, px, 0))
            held -= sold
    return rows


def test_recorded_example_by_hand():
    """99.93 * (11 - 1000 / 99.93) = 99.23, and cash -1000 + 1099.23 is the same."""
    closed, basis = apply_spot_fill(FLAT, 10_000, 100, fee=7)
    assert (closed, basis) == (0, CostBasis(9_993, 1_000_000, 0))
    assert apply_spot_fill(basis, -9_993, 110) == (99_230, FLAT)


def test_partial_sell_keeps_average():
    """7 cost 10 + 12 + 13 + 4 * 9 = 71: three sold at 11 cost 213 / 7 = 30.43, counted as 30."""
    basis = FLAT
    for change, px in ((1, 10), (1, 12), (1, 13), (4, 9)):
        _, basis = apply_spot_fill(basis, change, px)
    assert apply_spot_fill(basis, -3, 11) == (33 - 30, CostBasis(4, 41, 0))
    assert apply_spot_fill(basis, -3, 11, unit=20) == (33 - 40, CostBasis(4, 31, 0))


def test_leaving_tokens_take_share_of_cost():
    """A quarter of the tokens leaves with a quarter of the cost, without proceeds."""
    assert adjust_balance(CostBasis(40, 100, 8), 30) == (25, CostBasis(30, 75, 6))


def test_unknown_tokens_are_rounded_down():
    """Of three tokens, two of unknown cost, one leaves: 4 / 3 of the rest are unknown."""
    assert adjust_balance(CostBasis(3, 30, 2), 1, tolerance=0) == (20, CostBasis(1, 10, 0))
    assert adjust_balance(CostBasis(3, 30, 2), 2, tolerance=0) == (10, CostBasis(2, 20, 1))


def test_gap_in_has_unknown_cost():
    disposed, basis = adjust_balance(CostBasis(40, 100, 0), 50)
    assert (disposed, basis) == (0, CostBasis(50, 100, 10))
    assert not basis.is_known


def test_sell_of_partly_unknown_tokens_by_hand():
    """Average of the bought is 2.5; 25 of 50 sold at 4 close 25 * 1.5, half rounds up."""
    assert apply_spot_fill(CostBasis(50, 100, 10), -25, 4) == (37, CostBasis(25, 50, 5))


def test_sell_of_unknown_tokens_has_no_pnl():
    assert apply_spot_fill(CostBasis(50, 0, 50), -20, 4) == (None, CostBasis(30, 0, 30))


def test_rounding_gap_keeps_cost():
    assert adjust_balance(CostBasis(40, 100, 0), 39) == (0, CostBasis(39, 100, 0))
    assert adjust_balance(CostBasis(40, 100, 0), 41) == (0, CostBasis(41, 100, 0))
    assert adjust_balance(CostBasis(40, 100, 0), 38)[0] == 5
    assert adjust_balance(CostBasis(40, 100, 0), 36, tolerance=4)[0] == 0
    assert adjust_balance(CostBasis(1, 3, 0), 0) == (3, FLAT)


def test_first_balance_is_unknown():
    """The cost of a balance before the first fill is unknown, even of one unit."""
    assert adjust_balance(FLAT, 1) == (0, CostBasis(1, 0, 1))


def test_negation_moves_cost():
    """Half of the No tokens leave with half of their cost; three legs share 31 as 11, 10, 10."""
    left, came = swap_tokens(
        [(CostBasis(20, 62, 4), 10)], [(FLAT, 10), (CostBasis(5, 2, 1), 10), (FLAT, 10)]
    )
    assert left == [CostBasis(10, 31, 2)]
    assert came == [CostBasis(10, 10, 2), CostBasis(15, 13, 3), CostBasis(10, 10, 2)]


def test_swap_beyond_balance_is_partly_unknown():
    """The cost of four or nine of ten is known: the rest of the new tokens is of unknown cost."""
    for held, cost in ((4, 12), (9, 27)):
        left, came = swap_tokens([(CostBasis(held, cost, 0), 10)], [(FLAT, 10)])
        assert (left, came) == ([FLAT], [CostBasis(10, cost, 10 - held)])
    assert swap_tokens([], [(CostBasis(2, 8, 0), 5)]) == ([], [CostBasis(7, 8, 5)])


@given(moves)
def test_closed_pnl_matches_fractions(drawn):
    """The unit of money is so fine that rounding is far below one; the tolerance is 0."""
    fine = 10**12
    rows = [(a, b, px * fine, fee) for a, b, px, fee in make_rows(drawn, unknown=False)]
    for result, exact in zip(
        replay_spot_fills(rows, tolerance=0), replay_in_fractions(rows), strict=True
    ):
        assert result is not None
        assert abs(result - exact) < fine


@given(moves, st.sampled_from([1, 10, 1_000]))
def test_cash_is_closed_pnl_less_costs(drawn, unit):
    """Cash = closed PnL - disposed cost + cost of unknown tokens - remaining cost, exactly."""
    cash, closed, disposed, basis = 0, 0, 0, FLAT
    for start, change, px, fee in make_rows(drawn, unknown=False):
        gone, basis = adjust_balance(basis, start, 0, unit)
        gain, basis = apply_spot_fill(basis, change, px, fee, unit)
        cash -= change * px
        closed += gain or 0
        disposed += gone
    assert cash == closed - disposed - basis.cost


@given(moves)
def test_cost_basis_is_never_negative(drawn):
    basis = FLAT
    for start, change, px, fee in make_rows(drawn, unknown=True):
        _, basis = adjust_balance(basis, start)
        assert basis.size == start
        _, basis = apply_spot_fill(basis, change, px, fee)
        assert 0 <= basis.unknown <= basis.size
        assert basis.cost >= 0
        assert bool(basis.cost) <= (basis.size > basis.unknown)


@given(st.lists(st.tuples(sizes, st.integers(0, 10**12)), min_size=1, max_size=4), sizes)
def test_negation_keeps_cost(legs, size):
    sources = [(CostBasis(held, cost, held // 3), 1 + size % held) for held, cost in legs]
    left, came = swap_tokens(sources, [(FLAT, size), (CostBasis(7, 5, 1), size + 3)])
    before = sum(cost for _, cost in legs) + 5
    assert sum(basis.cost for basis in left + came) == before


def test_rounding_is_limited_to_cost():
    """Two thirds of 8 round to 10 in tens: only 8 can leave."""
    assert apply_spot_fill(CostBasis(3, 8, 0), -2, 7, unit=10) == (14 - 8, CostBasis(1, 0, 0))


def test_swap_sums_sources():
    """30 tokens leave with a cost of 70; 5 of them are of unknown cost."""
    left, came = swap_tokens([(CostBasis(10, 30, 5), 10), (CostBasis(20, 40, 0), 20)], [(FLAT, 30)])
    assert left == [FLAT, FLAT]
    assert came == [CostBasis(30, 70, 5)]


def test_swap_rounds_unknown_down():
    """One of three tokens that leave is of unknown cost: 3 of 10 that come in, not 3.33."""
    (came,) = swap_tokens([(CostBasis(3, 6, 1), 3)], [(FLAT, 10)])[1]
    assert came == CostBasis(10, 6, 3)
    assert isinstance(came.unknown, int)


def test_last_target_gets_rest_of_cost():
    """A cost of 7 in units of 5 is not rounded if one token gets all of it."""
    assert swap_tokens([(CostBasis(10, 7, 0), 10)], [(FLAT, 10)], unit=5)[1] == [
        CostBasis(10, 7, 0)
    ]
    came = swap_tokens([(CostBasis(10, 17, 0), 10)], [(FLAT, 4), (FLAT, 6)], unit=5)[1]
    assert came == [CostBasis(4, 5, 0), CostBasis(6, 12, 0)]  # 6.8 rounds to 5


def test_one_token_beyond_balance_is_unknown():
    """Four cost 40, and a fifth came from elsewhere: it counts at their average of 10."""
    assert apply_spot_fill(CostBasis(4, 40, 0), -5, 12) == (60 - 50, FLAT)
    assert swap_tokens([(CostBasis(4, 40, 0), 5)], [(FLAT, 10)]) == ([FLAT], [CostBasis(10, 40, 2)])
