"""Fills without a side: no helper of the execution counts them as buys or as sells."""

import numpy as np
import pandas as pd
import pytest

from toolkit import execution

from .examples import MONDAY, times


def at(*seconds):
    return times(MONDAY + round(1000 * second) for second in seconds)


def sides(*names):
    return pd.Series(names, dtype="str")


MIDS = pd.DataFrame({"coin": "XYZ", "mid_px": [100.0, 104.0], "time": at(0, 10)})
# A buy of 2 at 101, a sale of 1 at 103, and 4 at 99 without a side.
FILLS = pd.DataFrame(
    {"coin": "XYZ", "px": [101.0, 103.0, 99.0], "sz": [2.0, 1.0, 4.0], "crossed": True,
     "side": sides("B", "A", None), "time": at(1, 2, 3), "oid": [1, 2, 3], "tid": [11, 12, 13],
     "user": "0xa", "dir": "Open Long"}
)  # fmt: skip


def test_fill_quality_without_side():
    """Against 100: -2 for the buy, +3 for the sale."""
    (row,) = execution.fill_quality(FILLS, MIDS, by=None).to_dict("records")
    assert (row["fills"], row["priced"], row["volume_usd"]) == (3, 2, 701.0)
    assert row["covered"] == pytest.approx(305 / 701)
    assert row["improvement_usd"] == 1.0
    by_side = execution.fill_quality(FILLS, MIDS, by="side")
    assert by_side["priced"].tolist() == [1, 1, 0]
    assert by_side["side"].isna().tolist() == [False, False, True]
    assert by_side["improvement_usd"].isna().tolist() == [False, False, True]


def test_markout_without_side():
    """Against 104: 2 * 3 for the buy, -1 for the sale."""
    found = execution.markout(FILLS, MIDS, ["10s"], by=None).params
    assert found[["usd", "n", "missing"]].values.tolist() == [[5.0, 2, 1]]
    assert found["estimate"].item() == pytest.approx(1e4 * 5 / 305)


def test_spreads_without_side():
    """Effective: 2 * 1 - 3. Realised: -2 * 3 + 1."""
    found = execution.spreads(FILLS, MIDS, horizon="10s", by=None).params
    assert found.set_index("name")["usd"].to_dict() == {
        "effective": -1.0, "realised": -5.0, "impact": 4.0,
    }  # fmt: skip
    assert found["missing"].tolist() == [1, 1, 1]


def test_copy_trading_without_side():
    (row,) = execution.copy_trading(FILLS, MIDS, ["10s"], by=None).to_dict("records")
    assert (row["fills"], row["priced"], row["own_usd"], row["delay_usd"]) == (3, 2, 5.0, -5.0)


def test_flow_without_side():
    ranked = execution.toxicity(FILLS, MIDS, "10s")
    assert ranked[["fills", "priced", "gain_usd"]].values.tolist() == [[3, 2, 5.0]]
    pairs = execution.counterparties(FILLS, MIDS, "10s")
    assert pairs[["trades", "priced", "gain_usd"]].values.tolist() == [[3, 2, 5.0]]


def test_quotes_without_side():
    """A fill without a side is no trade of the tape; neither is its moment."""
    tape = pd.DataFrame(
        {"coin": "XYZ", "side": sides(*"BBAABBAA"), "crossed": True, "sz": 1.0,
         "px": [100.1, 100.1, 99.9, 99.9] * 2, "time": at(*range(8)), "dir": "Buy"}
    )  # fmt: skip
    odd = tape.iloc[[3]].assign(side=sides(None).array, px=90.0, time=at(3.5).array)
    both = pd.concat([tape, odd], ignore_index=True)
    pd.testing.assert_frame_equal(execution.quotes(both), execution.quotes(tape), check_freq=False)
    assert execution.spreads(both, by=None).n == 8


def test_impact_without_side():
    found = execution.impact(FILLS, MIDS, horizon="10s", volume={"XYZ": 1e4})
    assert found.parents["impact_bps"].fillna(-1).round(6).tolist() == [400.0, -400.0, -1.0]
    assert found.params["n"].tolist() == [2] * 3
    assert found.params["missing"].tolist() == [1] * 3
    assert found.lags.query("lag == 1")["n"].item() == 1


def test_shortfall_without_side():
    """The buy of order 1 loses 1 on each of 2; nobody knows what order 3 wanted."""
    orders = pd.DataFrame(
        {"oid": [1, 3], "coin": "XYZ", "side": sides("B", None), "orig_sz": [2.0, 4.0],
         "status": "filled", "sz": 0.0, "timestamp": at(0.5, 0.5),
         "status_timestamp": at(1, 3), "order_type": "Limit", "is_trigger": False}
    )  # fmt: skip
    rows = FILLS.iloc[[0, 2]].assign(fee=0.25, fee_token="USDC")
    found = execution.shortfall(orders, rows, MIDS)
    trading = found.orders.set_index("parent")["trading"]
    assert trading[1] == -2.0
    assert np.isnan(trading[3])
    assert set(found.params["n"]) == {1}
    assert set(found.params["missing"]) == {1}
