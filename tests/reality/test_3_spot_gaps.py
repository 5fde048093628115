"""Section 3: tokens that move without a fill do not change the cost of the others."""

import pandas as pd
import pytest

from tests.analysis.examples import HOUR, MONDAY, times
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


def listed(column):
    return [None if pd.isna(value) else float(value) for value in column]


def test_gap_keeps_remaining_cost():
    """After 2 left, the other 8 still cost 4 each; the new tokens have no known cost."""
    walked = pnl.positions(FILLS, {})
    assert listed(walked["entry_px"]) == [4.0, 4.0, None]
    assert listed(walked["gap"]) == [0.0, -2.0, 5.0]
    assert walked["chain_break"].tolist() == [False, True, True]
    audited = pnl.audit(FILLS, {})
    assert listed(audited["expected_closed_pnl"]) == [0.0, 9.0, None]


def test_rounding_is_no_gap():
    """A balance recorded with two decimals may differ by one unit of the last decimal."""
    rounded = FILLS.head(2).assign(fee=[0.006, 0.25], start_position=[0.0, 9.99], sz=[10.0, 9.99])
    walked = pnl.positions(rounded, {})
    assert walked["chain_break"].tolist() == [False, False]
    assert walked["expected_closed_pnl"].iloc[1] == pytest.approx(9.99 * 7 - 40)
    more = rounded.assign(start_position=[0.0, 9.95])
    assert pnl.positions(more, {})["chain_break"].tolist() == [False, True]


def test_sell_slightly_above_balance_closes_trip():
    """A sell of 8.00000001 from a balance of 8 closes the trip; one of 8.5 opens a short trip."""
    over = FILLS.head(2).assign(sz=[8.0, 8.00000001], start_position=[0.0, 8.0])
    later = FILLS.tail(1).assign(side="B", sz=[5.0], start_position=[0.0], closed_pnl=[0.0])
    trips = pnl.round_trips(pd.concat([over, later]))
    assert trips["status"].tolist() == ["closed", "open"]
    assert trips["side"].tolist() == ["long", "long"]
    assert trips[["size", "fills"]].to_numpy().tolist() == [[8.0, 2.0], [5.0, 1.0]]
    assert trips[["fees", "gross"]].iloc[0].tolist() == [-0.25, 9.0]
    far = over.assign(sz=[8.0, 8.5])
    assert pnl.round_trips(far)["side"].tolist() == ["long", "short"]
