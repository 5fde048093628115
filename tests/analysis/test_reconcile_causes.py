"""Causes of a residual: chains of fills of two accounts and many coins, worked out by hand."""

import pandas as pd
import pytest

from toolkit.pnl import reconcile

from .examples import HOUR, ME, MONDAY, OTHER, as_numbers, times

Pair = tuple[pd.DataFrame, pd.DataFrame | None]
NONE = float("nan")
#   user  coin  hour start  change px    closed
FILLS = [
    # A fill without a start position is between the others: nothing is known to be missing.
    (ME, "BTC", 1, 0, 2, 10.0, 0.0), (ME, "BTC", 2, NONE, 1, 10.0, 0.0),
    (ME, "BTC", 3, 3, -1, 10.0, 0.0),
    # The same before the first fill; but the last fill ends at 7, and the state has 6.
    (ME, "ETH", 1, NONE, 5, 10.0, 0.0), (ME, "ETH", 2, 5, 2, 10.0, 0.0),
    # It ends at 0, and the state does not have it.
    (ME, "SOL", 1, 0, 1, 10.0, 0.0), (ME, "SOL", 2, 1, -1, 10.0, 0.0),
    # A fill without a price ends at 5, and the next one starts at 7.
    (ME, "DOGE", 1, 0, 5, NONE, NONE), (ME, "DOGE", 2, 7, 1, 10.0, 0.0),
    # A fill without a start position is in the millisecond of the next or of the last one.
    (ME, "XRP", 1, 0, 1, 10.0, 0.0), (ME, "XRP", 2, NONE, 4, 10.0, 0.0),
    (ME, "XRP", 2, 5, 1, 10.0, 0.0),
    (ME, "AVAX", 1, 0, 1, 10.0, 0.0), (ME, "AVAX", 1, NONE, 3, 10.0, 0.0),
    (ME, "AVAX", 3, 4, 1, 10.0, 0.0),
    # It is after the last one, or in its millisecond.
    (ME, "LINK", 1, 0, 1, 10.0, 0.0), (ME, "LINK", 2, NONE, 8, 10.0, 0.0),
    (ME, "UNI", 2, 0, 1, 10.0, 0.0), (ME, "UNI", 2, NONE, 1, 10.0, 0.0),
    # It is long before: 1 + 3 is 4, and not 9.
    (ME, "ARB", 1, NONE, 1, 10.0, 0.0), (ME, "ARB", 2, 1, 3, 10.0, 0.0),
    (ME, "ARB", 3, 9, 1, 10.0, 0.0),
    # Another account has the same coins; a short of 2.5 starts as one of 2.
    (OTHER, "BTC", 1, 0, 1, 10.0, 0.0), (OTHER, "ARB", 1, 0, -2.5, 10.0, 0.0),
    (OTHER, "ARB", 2, -2, 1, 10.0, 0.0),
]  # fmt: skip
SPOTS = [
    (ME, "@7", 1, 0, 4, NONE, 0.0), (OTHER, "@7", 1, 0, 4, NONE, 0.0),
    (OTHER, "@8", 2, 0, NONE, 10.0, 0.0), (OTHER, "@8", 3, 0, 1, 10.0, 0.0),
]  # fmt: skip
ENDS = [
    (ME, "BTC", 2), (ME, "ETH", 6), (ME, "DOGE", 8), (ME, "XRP", 6), (ME, "AVAX", 5),
    (ME, "LINK", 9), (ME, "UNI", 3), (ME, "ARB", 10), (OTHER, "BTC", 1), (OTHER, "ARB", -1),
    (OTHER, "ETH", 2), (OTHER, "OP", 0), ("0x" + "c" * 40, "BTC", 3),
]  # fmt: skip
ODD = "without an amount in USD"


def make_fills(rows):
    names = ["user", "coin", "time", "start_position", "change", "px", "closed_pnl"]
    frame = pd.DataFrame(rows, columns=names)
    change = frame.pop("change").astype(float)
    frame["time"] = times(MONDAY + hour * HOUR for hour in frame["time"])
    frame["start_position"] = frame["start_position"].astype(float)
    return frame.assign(side=change.map(lambda c: "A" if c < 0 else "B"), sz=change.abs(), fee=0.0)


def make_state(hour, kind, rows):
    values = pd.DataFrame({"user": [ME, OTHER], "account_value": 1000.0, "account_mode": [0, 2]})
    values["time"] = times([MONDAY + int(hour * HOUR)] * 2)
    if rows is None:
        return as_numbers(values, kind), None
    held = pd.DataFrame(rows, columns=["user", "coin", "szi"]).astype({"szi": float})
    return as_numbers(values, kind), as_numbers(held.assign(unrealized_pnl=0.0), kind)


def find(kind, start, end, fills):
    moved = pd.DataFrame({"account": [ME, ME, OTHER], "type": ["new", "new", "deposit"]})
    moved = moved.assign(usdc=[1.0, 2.0, 100.0], time=times([MONDAY + HOUR] * 3))
    given = [as_numbers(frame, kind) for frame in (fills, moved)]

    def pack(state):
        return state[0] if state[1] is None else state

    begin = None if start is None else pack(start)
    result = reconcile(begin, pack(end), given[0], None, given[1])
    causes: list[str] = result["causes"].tolist()
    return [text.replace(", funding not known", "") for text in causes]


@pytest.mark.parametrize("kind", ["float", "exact"])
def test_causes_of_two_accounts_by_hand(kind):
    """A chain with a fill whose position is not known proves nothing about the time of it."""
    end = make_state(9, kind, ENDS)
    mine = f"fills missing of ARB, DOGE, ETH, 3 fills, fees or flows {ODD}"
    assert find(kind, None, end, make_fills(FILLS)) == [mine, "fills missing of ARB, ETH"]
    empty = make_state(0.5, kind, [])
    assert find(kind, empty, end, make_fills(FILLS)) == [mine, "fills missing of ARB, ETH"]


@pytest.mark.parametrize("kind", ["float", "exact"])
def test_causes_without_stated_positions(kind):
    """Without the first positions, or the last ones, only fills are compared with each other."""
    fills = make_fills([*FILLS, (ME, "OP", 2, 6, 1, 10.0, 0.0)])
    lacks = "unrealised not known"
    both = f"fills missing of ARB, DOGE, 3 fills, fees or flows {ODD}, {lacks}"
    start, end = make_state(0.5, kind, None), make_state(9, kind, ENDS)
    assert find(kind, start, end, fills) == [both, f"fills missing of ARB, {lacks}"]
    # Before everything, all positions are 0: OP starts at 6.
    both = both.replace("DOGE", "DOGE, OP")
    bare = make_state(9, kind, None)
    assert find(kind, None, bare, fills) == [both, f"fills missing of ARB, {lacks}"]


@pytest.mark.parametrize("kind", ["float", "exact"])
def test_unpriced_spot_fills_count_if_unified(kind):
    """They count for the unified account only, whose value contains its USDC."""
    end = make_state(9, kind, [(ME, "BTC", 3), (OTHER, "ARB", -1)])
    fills = make_fills([*SPOTS, (ME, "BTC", 1, 0, 2, NONE, NONE), *FILLS[-2:]])
    words = [
        f"fills missing of BTC, 3 fills, fees or flows {ODD}",
        f"fills missing of ARB, 2 fills, fees or flows {ODD}, spot_cash not known",
    ]
    assert find(kind, None, end, fills) == words
