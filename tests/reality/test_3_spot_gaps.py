"""Section 3: tokens that move without a fill do not change the cost of the others."""

import pandas as pd
import pytest

from tests.analysis.examples import HOUR, MONDAY, as_numbers, times
from toolkit import pnl

# Buy 10 at 4; 2 leave (priority gas); 3 sold at 7; 5 come in; 10 sold at 6.
FILLS = pd.DataFrame(
    {
        "coin": pd.array(["@107"] * 3, dtype="str"),
        "px": [4.0, 7.0, 6.0],
        "sz": [10.0, 3.0, 10.0],
        "side": pd.array(["B", "A", "A"], dtype="str"),
        "time": times(MONDAY + n * HOUR for n in range(3)),
        "start_position": [0.0, 8.0, 10.0],
        "closed_pnl": [0.0, 9.0, 10.0],
        "fee": [0.0, 0.25, 0.5],
        "fee_token": pd.array(["HYPE", "USDC", "USDC"], dtype="str"),
    }
)


def rounded_values(column):
    return [None if pd.isna(value) else float(value) for value in column]


@pytest.mark.parametrize("kind", ["float", "exact"])
def test_gap_keeps_remaining_cost(kind):
    """After 2 left, the other 8 still cost 4 each; the new tokens have no known cost."""
    fills = as_numbers(FILLS, kind)
    walked = pnl.positions(fills, {})
    assert rounded_values(walked["entry_px"]) == [4.0, 4.0, None]
    assert rounded_values(walked["gap"]) == [0.0, -2.0, 5.0]
    assert walked["chain_break"].tolist() == [False, True, True]
    audited = pnl.audit(fills, {})
    assert rounded_values(audited["expected_closed_pnl"]) == [0.0, 9.0, None]


@pytest.mark.parametrize("kind", ["float", "exact"])
def test_gap_gives_lots_without_price(kind):
    """First in first out: 2 leave, 3 are sold at 7, the other 5 at 6, and 5 of unknown cost."""
    lots = pnl.lots(as_numbers(FILLS, kind))
    assert rounded_values(lots["size"]) == [2.0, 3.0, 5.0, 5.0]
    assert rounded_values(lots["entry_px"]) == [4.0, 4.0, 4.0, None]
    assert rounded_values(lots["exit_px"]) == [None, 7.0, 6.0, 6.0]
    assert rounded_values(lots["realised"]) == [None, 9.0, 10.0, None]


def test_average_lots_separate_unknown_tokens():
    """The average method takes from known and unknown tokens and separates them."""
    lots = pnl.lots(FILLS, "average")
    assert rounded_values(lots["realised"]) == [None, 9.0, 10.0, None]
    assert rounded_values(lots["size"]) == [2.0, 3.0, 5.0, 5.0]


def test_round_trip_with_gap_has_no_return(engine):
    row = engine.take(pnl.round_trips(engine.give(FILLS)))[0]
    assert (row["status"], row["gross"], row["fees"]) == ("moved", 19.0, -0.75)
    assert row["return_"] is None or row["return_"] != row["return_"]


def test_gap_hides_entry_or_exit_price(engine):
    """If tokens leave, the trip has no exit price; if tokens come in, it has no entry price."""
    left = FILLS.head(2).assign(sz=[10.0, 8.0])  # 10 at 4; 2 leave; 8 at 7
    came = FILLS.head(2).assign(sz=[10.0, 15.0], start_position=[0.0, 15.0])  # 5 come in
    rows = [engine.take(pnl.round_trips(engine.give(frame)))[0] for frame in (left, came)]
    assert [row["status"] for row in rows] == ["moved", "moved"]
    found = [rounded_values(pd.Series([row["entry_px"], row["exit_px"]])) for row in rows]
    assert found == [[4.0, None], [None, 7.0]]


def test_rounding_is_no_gap(engine):
    """A balance recorded with two decimals may differ by one unit of the last decimal."""
    rounded = FILLS.head(2).assign(fee=[0.006, 0.25], start_position=[0.0, 9.99], sz=[10.0, 9.99])
    rows = engine.take(pnl.positions(engine.give(rounded), {}))
    assert [row["chain_break"] for row in rows] == [False, False]
    assert rows[1]["expected_closed_pnl"] == pytest.approx(9.99 * 7 - 40)
    more = rounded.assign(start_position=[0.0, 9.95])
    rows = engine.take(pnl.positions(engine.give(more), {}))
    assert [row["chain_break"] for row in rows] == [False, True]


def test_sell_slightly_above_balance_closes_trip(engine):
    """A sell of 8.00000001 from a balance of 8 closes the trip and opens no short trip."""
    over = FILLS.head(2).assign(sz=[8.0, 8.00000001], start_position=[0.0, 8.0])
    later = FILLS.tail(1).assign(side="B", sz=[5.0], start_position=[0.0], closed_pnl=[0.0])
    rows = engine.take(pnl.round_trips(engine.give(pd.concat([over, later]))))
    told = [(row["status"], row["side"], float(row["size"]), row["fills"]) for row in rows]
    assert told == [("closed", "long", 8.0, 2), ("open", "long", 5.0, 1)]
    assert float(rows[0]["fees"]) == -0.25
    assert float(rows[0]["gross"]) == 9.0


def test_sell_far_above_balance_opens_short():
    """A difference larger than rounding is visible."""
    over = FILLS.head(2).assign(sz=[8.0, 8.5], start_position=[0.0, 8.0])
    assert pnl.round_trips(over)["side"].tolist() == ["long", "short"]
