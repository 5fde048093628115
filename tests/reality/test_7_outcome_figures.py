"""Section 7: conversions of outcome tokens are not trades, but change the cost basis."""

import pandas as pd
import pytest

import toolkit as tk
from toolkit.execution import fill_quality
from toolkit.pnl import attribution, lots, positions


def outcome_fills(*legs):
    """Return fills of coin, side, px, sz, start position, direction and time."""
    names = ("coin", "side", "px", "sz", "startPosition", "dir", "time")
    rows = [dict(zip(names, leg, strict=True)) for leg in legs]
    for row in rows:
        row |= {"tid": 0, "oid": row["time"], "hash": f"0x{row['time']:064x}", "crossed": True}
        row |= {"feeToken": "USDH", "fee": "0.0", "closedPnl": "0.0"}
    return tk.frame("userFills", rows)


def test_conversions_add_no_volume(examples):
    trade = {**examples["7_outcome_conversions"][0], "dir": "Buy", "tid": 9, "fee": "0.02"}
    fills = tk.frame("userFills", [trade, *examples["7_outcome_conversions"]])
    row = attribution(fills).iloc[0]
    assert (row["fills"], row["conversions"], row["volume"]) == (1, 4, 10.0)
    assert (row["trading_fee"], row["net"]) == pytest.approx((-0.02, -0.02))


def test_settlement_counts_as_volume(examples):
    """A settlement pays a real price, but execution excludes it because no order was filled."""
    bought = {**examples["7_outcome_conversions"][0], "dir": "Buy", "tid": 9, "px": "0.5"}
    bought |= {"side": "B", "sz": "20.0", "fee": "0.0"}
    later = {"time": bought["time"] + 60_000, "tid": 0, "closedPnl": "10.0"}
    settled = {**bought, **later, "dir": "Settlement", "px": "1.0", "side": "A"}
    fills = tk.frame("userFills", [bought, settled])
    row = attribution(fills).iloc[0]
    assert (row["fills"], row["conversions"], row["volume"]) == (2, 0, 30.0)
    assert row["closed_pnl"] == 10.0
    mids = pd.DataFrame({"coin": fills["coin"], "mid_px": 0.5, "time": fills["time"]}).head(1)
    assert fill_quality(fills, mids, by=None)["fills"].tolist() == [1]


def test_merged_leg_keeps_average_cost():
    """23 tokens cost 10.6: 12 merged at 0.5 close 12 * (0.5 - 10.6 / 23).

    Sizes are integers and prices have one decimal, so px * sz has at most one decimal.
    """
    fills = outcome_fills(
        ("#1231", "B", "0.5", "20.0", "0.0", "Split Outcome", 0),
        ("#1231", "B", "0.2", "3.0", "20.0", "Buy", 1),
        ("#1231", "A", "0.5", "12.0", "23.0", "Merge Outcome", 2),
        ("#1231", "A", "1.0", "11.0", "11.0", "Settlement", 3),
    )
    walked = positions(fills, {})
    assert walked["entry_px"].tolist()[1:3] == pytest.approx([10.6 / 23] * 2)
    closed = walked["expected_closed_pnl"].tolist()
    assert closed[2:] == pytest.approx([12 * (0.5 - 10.6 / 23), 11 * (1 - 10.6 / 23)])
    assert sum(closed) == pytest.approx(6.4)  # the cash: 6 + 11 - 10.6


def test_negated_lots_share_cost():
    """10 tokens that cost 3 become 10 of each of two others, at a cost of 1.5 each."""
    fills = outcome_fills(
        ("#10", "B", "0.3", "10.0", "0.0", "Buy", 0),
        ("#10", "A", "0.5", "10.0", "10.0", "Negate Outcome", 1),
        ("#20", "B", "0.5", "10.0", "0.0", "Negate Outcome", 1),
        ("#30", "B", "0.5", "10.0", "0.0", "Negate Outcome", 1),
        ("#20", "A", "0.6", "10.0", "10.0", "Sell", 2),
        ("#30", "A", "0.1", "10.0", "10.0", "Sell", 3),
    )
    sold = lots(fills).dropna(subset="realised").set_index("coin")["realised"]
    assert sold.to_dict() == pytest.approx({"#20": 4.5, "#30": -0.5})
