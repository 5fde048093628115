"""The contract decodes recorded answers of the exchange API, which some operations mirror.

They lie beside the project, not in it. Warnings are errors: no field is unknown or missing.
"""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from toolkit.contract import order_states
from toolkit.contract.records import DELTA_FIELDS, FundingRow
from toolkit.frames import frame

FOLDER = Path(__file__).parents[2].parent / "shared" / "recordings"


def recorded_rows(type_):
    path = FOLDER / f"{type_}.json"
    if not path.exists():
        pytest.skip(f"NOT CHECKED: no recording at {path}")
    return json.loads(path.read_text())


def test_every_row_is_kept():
    for type_ in ("userFills", "historicalOrders", "userNonFundingLedgerUpdates"):
        rows = recorded_rows(type_)["response"]
        for numbers in ("float", "exact", "text"):
            assert len(frame(type_, rows, numbers=numbers)) == len(rows) > 0


def test_fills_keep_every_digit():
    rows = recorded_rows("userFills")["response"]
    result = frame("userFills", rows, numbers="text")
    for wire, column in [("px", "px"), ("startPosition", "start_position"), ("fee", "fee")]:
        assert result[column].tolist() == [row[wire] for row in rows]
    assert result["time"].is_monotonic_decreasing
    exact = frame("userFills", rows, numbers="exact")
    assert exact["closed_pnl"].sum() == sum(Decimal(row["closedPnl"]) for row in rows)


def test_recorded_funding_has_missing_user():
    rows = recorded_rows("userFunding")["response"]
    result = frame(FundingRow, rows)
    assert len(result) == len(rows)
    assert result["user"].isna().all()
    assert (result["type"] == "funding").all()


def test_order_states_are_known():
    result = frame("historicalOrders", recorded_rows("historicalOrders")["response"])
    assert set(result["status"]) <= set(order_states.STATES)


def test_ledger_types_have_fields():
    for row in recorded_rows("userNonFundingLedgerUpdates")["response"]:
        delta = row["delta"]
        assert set(delta) - {"type"} == set(DELTA_FIELDS[delta["type"]])


def test_meta_lists_every_asset():
    answer = recorded_rows("meta")["response"]
    result = frame("meta", answer)
    assert result["name"].tolist() == [asset["name"] for asset in answer["universe"]]
    assert result["only_isolated"].dtype == bool


def test_recorded_state_adds_up_to_equity():
    state = recorded_rows("clearinghouseState")["response"]
    user = "0x" + "0" * 40
    answer = {"successful_states": [[user, state]], "failed_wallets": []}
    accounts, positions, failed = frame("batchClearinghouseStates", answer)
    assert (len(accounts), len(positions), len(failed)) == (1, len(state["assetPositions"]), 0)
    assert accounts["withdrawable"].tolist() == [float(state["withdrawable"])]
    signed = positions["position_value"].where(positions["szi"] > 0, -positions["position_value"])
    equity = accounts["total_raw_usd"][0] + signed.sum()
    assert accounts["account_value"][0] == pytest.approx(equity, abs=1e-6)
