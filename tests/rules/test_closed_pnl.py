"""Closed PnL by the exchange's rule, by hand and compared with fractions."""

from fractions import Fraction

import hypothesis.strategies as st
from hypothesis import given

from tests.rules.reference import replay_perp_fills
from toolkit.rules import closed_pnl

fills = st.lists(
    st.tuples(st.integers(-50, 50).filter(bool), st.integers(1, 1_000)), min_size=1, max_size=40
)
long_fills = st.lists(
    st.tuples(st.integers(-(10**9), 10**9).filter(bool), st.integers(1, 10**9)),
    min_size=60,
    max_size=120,
)


def replay_in_fractions(chain, tick=1):
    """Return closed PnL by the clarifications, in fractions."""
    closed, size, notional = [], 0, Fraction(0)
    for change, px in chain:
        closing = min(abs(change), abs(size)) if size * change < 0 else 0
        gain = Fraction(0)
        if closing:
            entry = notional / abs(size) // tick * tick
            gain = closing * (px - entry) * (1 if size > 0 else -1)
            notional -= notional * Fraction(closing, abs(size))
        notional += (abs(change) - closing) * px
        closed.append(gain)
        size += change
    return closed


@given(fills, st.sampled_from([1, 10, 7]))
def test_replay_equals_fractions(chain, tick):
    assert replay_perp_fills(chain, tick) == replay_in_fractions(chain, tick)


@given(long_fills)
def test_long_replay_equals_fractions(chain):
    assert replay_perp_fills(chain) == replay_in_fractions(chain)


def test_closed_pnl_by_hand():
    """15 bought for 1505: the average of 100.33 counts as 100; the rest keeps the average."""
    size, entry = 0, 0
    seen = []
    for change, px in ((10, 100), (5, 101), (-9, 110), (-6, 90)):
        closed, size, entry = closed_pnl.apply_perp_fill(size, entry, change, px)
        seen.append((closed, size, closed_pnl.entry_price(size, entry)))
    assert seen == [(0, 10, 100), (0, 15, 100), (90, 6, 100), (-60, 0, 0)]
    assert entry == 0


REPLAYS = [
    ([(-4, 50), (1, 40), (3, 60)], [0, 10, -30]),  # a short gains when prices fall
    ([(3, 100), (-5, 110), (2, 105)], [0, 30, 10]),  # a flip closes and opens
    # One lot of 3 is left, at the old entry price: 2 * 7, then 1 * 12; a short loses as much.
    ([(3, 100), (-2, 107), (-1, 112)], [0, 14, 12]),
    ([(-3, 100), (2, 107), (1, 112)], [0, -14, -12]),
    ([(3, 100), (-4, 107), (1, 112)], [0, 21, -5]),
    ([(-3, 100), (4, 107), (-1, 112)], [0, -21, 5]),
    ([(1, 100), (-3, 107), (2, 112)], [0, 7, -10]),  # a flip of one lot
    ([(-1, 100), (3, 107), (-2, 112)], [0, -7, 10]),
]


def test_replays_by_hand():
    assert [(fills, replay_perp_fills(fills)) for fills, _ in REPLAYS] == REPLAYS


@given(fills)
def test_opening_realises_nothing(chain):
    size = 0
    for (change, _), closed in zip(chain, replay_perp_fills(chain), strict=True):
        if size * change >= 0:
            assert closed == 0
        size += change


@given(st.integers(1, 10**12), st.integers(1, 10**9), st.lists(st.integers(1, 99), max_size=60))
def test_partial_closes_keep_entry_price(lots, px, shares):
    """Any sequence of partial closes keeps the entry price of a single purchase price."""
    size, entry = 0, 0
    _, size, entry = closed_pnl.apply_perp_fill(size, entry, lots, px)
    for share in shares:
        cut = size * share // 100
        if cut:
            closed, size, entry = closed_pnl.apply_perp_fill(size, entry, -cut, px)
            assert closed == 0
    assert closed_pnl.entry_price(size, entry) == px


def test_closed_pnl_is_truncated_to_ticks():
    assert replay_perp_fills([(1, 1019), (-1, 1020)], tick=10) == [0, 10]


def test_perp_price_decimals_follow_size_decimals():
    assert [closed_pnl.price_decimals(sz_decimals) for sz_decimals in (0, 5, 6, 8)] == [6, 1, 0, 0]


RULE_OF_2023 = [  # position and entry price before, the fill, closed PnL and position after
    ((0, 0), (10, 105, 10), (0, 10, 105)),  # the first price is not truncated
    ((10, 100), (5, 103, 1), (0, 15, 101)),  # 1,515 / 15
    ((10, 100), (5, 133, 10), (0, 15, 110)),  # 1,665 / 15 = 111
    ((-10, 100), (-5, 103, 1), (0, -15, 101)),
    ((10, 100), (-4, 110, 1), (40, 6, 102)),  # a close moves the mean: 1,440 / 14
    ((-10, 100), (4, 91, 1), (36, -6, 97)),  # 1,364 / 14
    ((10, 100), (-10, 105, 1), (50, 0, 0)),
    ((-10, 100), (10, 105, 1), (-50, 0, 0)),
    ((10, 100), (-15, 110, 1), (100, -5, 110)),
    ((-10, 100), (15, 110, 1), (100, 5, 110)),  # a flip has no sign
    ((1, 100), (-1, 110, 1), (10, 0, 0)),
    ((1, 100), (1, 110, 1), (0, 2, 105)),
    ((1, 100), (-3, 110, 1), (10, -2, 110)),
    ((-10, 100), (11, 110, 1), (100, 1, 110)),
]


def test_rule_of_2023_by_hand():
    found = [
        (before, fill, closed_pnl.apply_perp_fill_2023(*before, *fill))
        for before, fill, _ in RULE_OF_2023
    ]
    assert found == RULE_OF_2023
    assert all(isinstance(number, int) for *_, after in found for number in after)
