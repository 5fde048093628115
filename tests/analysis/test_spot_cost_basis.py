"""Cost basis along spot fills of two accounts, with swaps and gaps, in whole numbers by hand."""

from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from toolkit.analysis.pnl.execution_sequence import IntegerFills
from toolkit.analysis.pnl.spot_cost_basis import (
    SpotResults,
    Swaps,
    find_swaps,
    spot_rows,
    take_legs,
    walk_spot_fills,
)
from toolkit.rules.spot_cost import FLAT, CostBasis

from .examples import times

SWAP = "Negate Outcome"
A, B, C, SPOT, PERP, COINS = 0, 1, 2, 3, 4, 5
#  user coin start change px fee ms dir   hash  basis after       closed gap
ROWS: list[tuple[Any, ...]] = [
    (0, SPOT, 0, 10, 3, 1, 1, "Buy", "s", CostBasis(9, 30, 0), 0, None),
    (0, SPOT, 9, -3, 5, 0, 2, "Sell", "s", CostBasis(6, 20, 0), 15 - 10, None),
    # 4 tokens of unknown cost came: 2 of the 5 that are sold.
    (0, SPOT, 10, -5, 4, 0, 5, "Sell", "s", CostBasis(5, 10, 2), None, 4),
    # One is within the tolerance.
    (0, SPOT, 4, 1, 7, 0, 6, "Buy", "s", CostBasis(5, 17, 2), 0, None),
    # 3 left, with the share 3 / 5 of the cost, rounded half up: 10.
    (0, SPOT, 2, 1, 9, 0, 7, "Buy", "s", CostBasis(3, 16, 0), 0, -3),
    (1, SPOT, 0, 6, 2, 0, 2, "Buy", "s", CostBasis(6, 12, 0), 0, None),
    (1, SPOT, 6, -6, 3, 0, 3, "Sell", "s", FLAT, 18 - 12, None),
    # 4 of A become 1 of B and 3 of C: the prices have no meaning.
    (0, A, 0, 10, 4, 0, 1, "Buy", "s", CostBasis(10, 40, 0), 0, None),
    (0, A, 10, -4, 99, 0, 3, SWAP, "a", CostBasis(6, 24, 0), 0, None),
    (0, B, 0, 1, 77, 0, 3, SWAP, "a", CostBasis(1, 4, 0), 0, None),
    (0, C, 0, 3, 88, 0, 3, SWAP, "a", CostBasis(3, 12, 0), 0, None),
    (0, B, 1, -1, 6, 0, 4, "Sell", "s", FLAT, 6 - 4, None),
    # The other account swaps twice in the same millisecond; its 3 of B are of unknown cost.
    (1, A, 0, 8, 5, 0, 1, "Buy", "s", CostBasis(8, 40, 0), 0, None),
    (1, A, 8, -2, 99, 0, 3, SWAP, "b", CostBasis(6, 30, 0), 0, None),
    (1, B, 3, 2, 99, 0, 3, SWAP, "b", CostBasis(5, 10, 3), 0, None),
    (1, A, 6, -1, 99, 0, 3, SWAP, "c", CostBasis(5, 25, 0), 0, None),
    (1, B, 5, 1, 99, 0, 3, SWAP, "c", CostBasis(6, 15, 3), 0, None),
    (1, B, 6, -6, 3, 0, 4, "Sell", "s", FLAT, None, None),
    (0, PERP, 0, 5, 3, 0, 1, SWAP, "a", None, None, None),
]
# By account and coin, as the fills of a chain follow each other; B before A.
ORDER = [9, 11, 7, 8, 10, 0, 1, 2, 3, 4, 18, 14, 16, 17, 12, 13, 15, 5, 6]


def integer_rows(rows, *, decimals=4):
    users, coins, start, change, px, fee, *_ = (list(part) for part in zip(*rows, strict=True))
    none = [0] * len(rows)
    chain = np.array(users) * COINS + np.array(coins)
    return IntegerFills(
        chain=chain,
        px=px,
        start=start,
        change=change,
        end=none,
        tick=none,
        closed=none,
        unit=1,
        decimals=8,
        px_decimals=4,
        size_decimals=decimals,
        token_fee=fee,
        spot=[coin != PERP for coin in coins],
        tolerance=[1] * len(rows),
        coins=COINS,
    )


def frame_of(rows):
    made = pd.DataFrame({"dir": [row[7] for row in rows], "hash": [row[8] for row in rows]})
    return nw.from_native(made.assign(time=times(row[6] for row in rows)))


def test_basis_of_two_accounts_by_hand():
    read, frame = integer_rows(ROWS), frame_of(ROWS)
    walk = walk_spot_fills(read, ORDER, find_swaps(frame, read))
    spot = range(len(ROWS) - 1)
    assert [walk.basis[row] for row in spot] == [ROWS[row][9] for row in spot]
    assert [walk.expected[row] for row in spot] == [ROWS[row][10] for row in spot]
    assert walk.gap == {row: gap for row, (*_, gap) in enumerate(ROWS) if gap is not None}
    assert set(walk.basis) == set(walk.expected) == set(spot)


def test_swap_legs_are_grouped():
    """Without hashes, the swaps of an account in one millisecond are one."""
    read, frame = integer_rows(ROWS), frame_of(ROWS)
    swaps = find_swaps(frame, read)
    first, second, third = [8, 9, 10], [13, 14], [15, 16]
    assert swaps.groups == {row: legs for legs in (first, second, third) for row in legs}
    assert swaps.ms == [row[6] for row in ROWS]
    bare = find_swaps(frame.drop("hash"), read)
    assert bare.groups[13] == bare.groups[16] == second + third
    assert bare.groups[8] == first
    done = {9}
    assert list(take_legs(8, swaps, done)) == [8, 10]
    assert (done, list(take_legs(10, swaps, done))) == ({8, 9, 10}, [])
    assert find_swaps(frame.drop("dir"), read) == Swaps({}, [])
    assert find_swaps(frame_of(ROWS[:7]), integer_rows(ROWS[:7])) == Swaps({}, [])
    assert find_swaps(frame_of(ROWS[-1:]), integer_rows(ROWS[-1:])) == Swaps({}, [])


def test_order_of_spot_rows():
    """Swaps connect chains: then rows are sorted by time, and keep their order in one."""
    read = integer_rows(ROWS)
    perp = len(ROWS) - 1
    assert spot_rows(read, ORDER, Swaps({}, [])) == [row for row in ORDER if row != perp]
    assert spot_rows(read, ORDER, find_swaps(frame_of(ROWS), read)) == [
        7, 0, 12, 1, 5, 9, 8, 10, 14, 16, 13, 15, 6, 11, 17, 2, 3, 4,
    ]  # fmt: skip
    only = integer_rows(ROWS[-1:])
    assert walk_spot_fills(only, [0], Swaps({}, [])) == SpotResults()


def test_cost_is_rounded_to_money_unit():
    """The numbers have one decimal more than money: costs that leave are multiples of 10."""
    rows: list[tuple[Any, ...]] = [
        (0, SPOT, 0, 3, 7, 0, 1, "Buy", "s"),
        (0, SPOT, 3, -1, 9, 0, 2, "Sell", "s"),
        (1, SPOT, 0, 3, 7, 0, 1, "Buy", "s"),
        (1, SPOT, 1, 1, 5, 0, 2, "Buy", "s"),
        (0, A, 0, 3, 7, 0, 1, "Buy", "s"),
        (0, A, 3, -1, 9, 0, 2, SWAP, "a"),
        (0, B, 0, 1, 9, 0, 2, SWAP, "a"),
    ]
    read = integer_rows(rows, decimals=5)
    walk = walk_spot_fills(read, range(len(rows)), find_swaps(frame_of(rows), read))
    assert walk.basis[1] == CostBasis(2, 11, 0)
    assert walk.expected[1] == 9 - 10
    assert walk.basis[3] == CostBasis(2, 21 - 10 + 5, 0)
    assert (walk.basis[5], walk.basis[6]) == (CostBasis(2, 11, 0), CostBasis(1, 10, 0))
    assert walk.gap == {3: -2}
