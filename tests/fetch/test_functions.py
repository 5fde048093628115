"""Every fetch function: its request, and the frames of its answer.

The answers are written by hand from the specification, one row of every kind, and travel as
bytes through a transport in this process.
"""

import inspect
import json
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest

from tests.fetch.wire import rows_of_request
from toolkit import fetch
from toolkit.client import connect, forget
from toolkit.contract.columns import table_columns
from toolkit.contract.operations import OPERATIONS
from toolkit.errors import BadRequest, Incomplete, IncompleteWarning, NotConnected
from toolkit.frames import column_dtype, provenance

# Orders of these days may be missing, which is a warning: tests/fetch/test_notices.py.
pytestmark = pytest.mark.filterwarnings("ignore::toolkit.errors.HistoryWarning")

NOW = 1_756_684_800_000
USER, BUILDER, VALIDATOR = ("0x" + digit * 40 for digit in "abc")
ZERO = "0x" + "0" * 64

AUCTION = {
    "startTimeSeconds": 1_756_684_800,
    "durationSeconds": 111_600,
    "startGas": "500.0",
    "currentGas": None,
    "endGas": "250.5",
}
FILL = {
    "coin": "flx:GOLD",
    "px": "3500.25",
    "sz": "0.1",
    "side": "B",
    "time": NOW,
    "startPosition": "-0.2",
    "dir": "Close Short",
    "closedPnl": "1.5",
    "hash": ZERO,
    "oid": 1,
    "crossed": True,
    "fee": "0.35",
    "tid": 2,
    "feeToken": "USDC",
    "twapId": None,
    "txIndex": 3,
}
ORDER = {
    "coin": "BTC",
    "side": "A",
    "limitPx": "100000.0",
    "sz": "0.0",
    "oid": 7,
    "timestamp": NOW,
    "triggerCondition": "N/A",
    "isTrigger": False,
    "triggerPx": "0.0",
    "children": [],
    "isPositionTpsl": False,
    "reduceOnly": False,
    "orderType": "Limit",
    "origSz": "0.5",
    "tif": "Gtc",
    "cloid": None,
}
STATUS = {"txIndex": 1, "status": "filled", "statusTimestamp": NOW, "order": ORDER}
ASSET = {"name": "BTC", "szDecimals": 5, "maxLeverage": 40, "onlyIsolated": False}
CONTEXT = {
    "funding": "0.0000125",
    "openInterest": "100.0",
    "prevDayPx": "99000.0",
    "dayNtlVlm": "1000000.0",
    "premium": None,
    "oraclePx": "100000.0",
    "markPx": "100001.0",
    "midPx": "100000.5",
    "impactPxs": ["100000.0", "100001.0"],
    "dayBaseVlm": "10.0",
}
SUMMARY = {
    "accountValue": "1000.0",
    "totalMarginUsed": "10.0",
    "totalNtlPos": "100.0",
    "totalRawUsd": "900.0",
    "withdrawable": "990.0",
}
POSITION = {
    "coin": "BTC",
    "entryPx": "99000.0",
    "leverage": {"type": "cross", "value": 20},
    "liquidationPx": "50000.0",
    "marginUsed": "5.0",
    "maxTradeSzs": ["1.0", "2.0"],
    "positionValue": "100.0",
    "returnOnEquity": "0.2",
    "szi": "0.001",
    "unrealizedPnl": "1.0",
}
STATE = {
    "marginSummary": SUMMARY,
    "crossMarginSummary": SUMMARY,
    "assetPositions": [{"type": "oneWay", "position": POSITION}],
    "time": NOW,
}
SNAPSHOT = {"snapshot_id": "20240915_state_123456789", "timestamp": 1_694_764_800}

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "slippageHistory": ("BTC", 1_000, NOW - 1),
    "perpDexLimits": ("flx",),
    "accountValueSnapshots": (["USDC"],),
    "perpTwapSnapshots": (["ALL"],),
    "userFills": (USER,),
    "userFillsByTime": (USER, NOW - 1),
    "builderApprovedFillsByTime": (BUILDER, NOW - 1),
    "builderApprovedFundingByTime": (BUILDER, NOW - 1),
    "builderOrdersByTime": (BUILDER, NOW - 1),
    "historicalOrders": (USER,),
    "userNonFundingLedgerUpdates": (USER,),
    "batchClearinghouseStates": ([USER, BUILDER],),
    "borrowLendUserState": (USER,),
    "delegations": (USER,),
    "validatorAprHistory": (VALIDATOR,),
}
ANSWERS: dict[str, Any] = {
    "spotPairDeployAuctionStatus": AUCTION | {"currentGas": "300.0", "endGas": None},
    "perpDeployAuctionStatus": AUCTION,
    "currentDepth": {
        "timestampMs": NOW,
        "data": [
            {
                "coin": "BTC",
                "dex": "main",
                "levels": [{"bps": 10, "bidDepthUsd": 1.5, "askDepthUsd": 2}],
            }
        ],
    },
    "slippageHistory": [
        {
            "timestamp": NOW,
            "dex": "main",
            "coin": "BTC",
            "halfSpreadBps": 0.5,
            "amountUsd": 1000,
            "buySlippageBps": 0.75,
            "sellSlippageBps": None,
        }
    ],
    "meta": {"universe": [ASSET]},
    "metaAndAssetCtxs": [{"universe": [ASSET]}, [CONTEXT]],
    "perpDexLimits": {
        "totalOiCap": "10000000.0",
        "oiSzCapPerPerp": "20000000000.0",
        "maxTransferNtl": "100000000.0",
        "coinToOiCap": [["flx:GOLD", "5000000.0"]],
    },
    "accountValueSnapshotTimestamp": SNAPSHOT,
    "perpTwapSnapshotTimestamp": SNAPSHOT,
    "userFills": [FILL | {"builder": None}],
    "userFillsByTime": [FILL | {"coin": "#1024", "venue": "AB"}],
    "builderApprovedFillsByTime": [FILL | {"builder": BUILDER, "user": USER}],
    "builderApprovedFundingByTime": [
        {
            "user": USER,
            "time": NOW,
            "hash": ZERO,
            "delta": {
                "type": "funding",
                "coin": "BTC",
                "usdc": "-0.5",
                "szi": "1.0",
                "fundingRate": "0.0000125",
            },
        }
    ],
    "builderOrdersByTime": [STATUS | {"user": USER, "builderFee": 10}],
    "historicalOrders": [STATUS | {"builder": BUILDER}],
    "userNonFundingLedgerUpdates": [
        {"time": NOW, "hash": ZERO, "delta": {"type": "deposit", "usdc": "100.0"}}
    ],
    "batchClearinghouseStates": {
        "successful_states": [[USER, STATE]],
        "failed_wallets": [BUILDER],
    },
    "borrowLendUserState": {
        "tokenToState": [
            [
                150,
                {
                    "borrow": {"basis": "0.0", "value": "0.0"},
                    "supply": {"basis": "10.0", "value": "10.5"},
                },
            ]
        ],
        "health": "healthy",
        "healthFactor": None,
    },
    "delegations": [{"validator": VALIDATOR, "amount": "12.5", "lockedUntilTimestamp": NOW}],
    "validatorAprHistory": [
        {"week": NOW, "netApr": 0.02, "grossApr": 0.025, "totalDelegatorRewards": "15.5"}
    ],
}
EMPTY: dict[str, Any] = {
    "currentDepth": {"timestampMs": NOW, "data": []},
    "meta": {"universe": []},
    "metaAndAssetCtxs": [{"universe": []}, []],
    "perpDexLimits": None,
    "batchClearinghouseStates": {"successful_states": [], "failed_wallets": [USER, BUILDER]},
}
JSON = {name: row for name, row in OPERATIONS.items() if not row.binary}
EVERY = pytest.mark.parametrize("row", JSON.values(), ids=list(JSON))


class Service:
    """A service that answers by type, page after page, and records its requests."""

    def __init__(self, answers):
        self.answers = answers
        self.asked: list[dict[str, Any]] = []

    def __call__(self, request):
        body = json.loads(request.content)
        self.asked.append(body)
        answer = self.answers[body["type"]]
        if OPERATIONS[body["type"]].paging != "none":
            answer = rows_of_request(answer, body)
        return httpx.Response(200, content=json.dumps(answer))

    def session(self):
        return connect(
            "https://service.example",
            "a-key",
            transport=httpx.MockTransport(self),
            now_ms=lambda: NOW,
            default=False,
        )


def function(row):
    found: Callable[..., Any] = getattr(fetch, row.function)
    return found


def call(row, answers, **named):
    service = Service(answers)
    answer = function(row)(*ARGUMENTS.get(row.type, ()), session=service.session(), **named)
    return service, answer


def frames_of(row, answer):
    assert isinstance(answer, pd.DataFrame) == (len(row.tables) == 1)
    return (answer,) if isinstance(answer, pd.DataFrame) else tuple(answer)


@EVERY
def test_function_sends_every_default(row):
    service, _ = call(row, ANSWERS)
    asked = service.asked[0]
    assert asked["type"] == row.type
    assert asked.keys() <= {"type", *row.by_wire}
    for parameter in row.parameters:
        if parameter.required:
            assert parameter.name in asked
        elif parameter.default is None:
            assert parameter.name not in asked
        else:
            assert asked.get(parameter.name, parameter.default) == parameter.default


@EVERY
@pytest.mark.parametrize("numbers", ["float", "exact", "text"])
def test_frames_have_fixed_dtypes(row, numbers):
    _, full = call(row, ANSWERS, numbers=numbers)
    empty = full
    if row.type in EMPTY or isinstance(ANSWERS[row.type], list):
        _, empty = call(row, {row.type: EMPTY.get(row.type, [])}, numbers=numbers)
        assert sum(map(len, frames_of(row, empty)[:2])) == 0  # the third has failed accounts
    for table, item, other in zip(
        row.tables, frames_of(row, full), frames_of(row, empty), strict=True
    ):
        expected = {column.name: column_dtype(column, numbers) for column in table_columns(table)}
        assert len(item) == 1
        assert dict(item.dtypes) == expected
        assert dict(other.dtypes) == expected
        assert list(item) == list(expected)


@EVERY
def test_frames_have_provenance(row):
    _, answer = call(row, ANSWERS)
    for frame in frames_of(row, answer):
        said = provenance(frame)
        assert said["operation"] == row.type
        assert said["complete"] == ("latest" if row.latest else "yes")
        assert said["rows"] == len(frame)
        assert "a-key" not in repr(said)


def test_fill_values_have_documented_types():
    _, frame = call(OPERATIONS["userFillsByTime"], ANSWERS)
    row = frame.iloc[0]
    assert (row["px"], row["sz"], row["start_position"]) == (3500.25, 0.1, -0.2)
    assert row["time"] == pd.Timestamp(NOW, unit="ms", tz="UTC")
    assert (row["venue"], row["oid"]) == ("AB", 1)
    assert frame["builder_fee"].isna().all()
    assert frame["twap_id"].isna().all()


def test_account_states_fill_three_frames():
    _, states = call(OPERATIONS["batchClearinghouseStates"], ANSWERS)
    assert states.accounts["user"].tolist() == [USER]
    assert states.positions["leverage_value"].tolist() == [20]
    assert states.failed["user"].tolist() == [BUILDER]


def test_missing_limits_are_empty_frames():
    _, limits = call(OPERATIONS["perpDexLimits"], {"perpDexLimits": None})
    assert (len(limits.dex), len(limits.coins)) == (0, 0)


@pytest.mark.parametrize("name", ["", "native", "main_dex", "main", "hyperliquid"])
def test_native_dex_is_translated(name):
    for row in (OPERATIONS["userFills"], OPERATIONS["userFillsByTime"]):
        assert call(row, ANSWERS, dex=name)[0].asked[0]["dex"] == "main_dex"
    for type_ in ("meta", "metaAndAssetCtxs", "batchClearinghouseStates"):
        assert call(OPERATIONS[type_], ANSWERS, dex=name)[0].asked[0].get("dex", "") == ""
    service = Service(ANSWERS)
    fetch.perp_dex_limits(name, session=service.session())
    assert service.asked[0]["dex"] == ""


def test_times_are_sent_as_milliseconds():
    service = Service(ANSWERS)
    fetch.user_fills_by_time(USER, "7d", "2025-09-01T12:00", session=service.session())
    assert service.asked[0]["startTime"] == NOW - 7 * 86_400_000
    assert service.asked[0]["endTime"] == NOW + 12 * 3_600_000


def test_cursor_replaces_start():
    service = Service(ANSWERS)
    fetch.user_fills_by_time(USER, NOW, cursor=f"{NOW - 1}_1", session=service.session())
    assert service.asked[0]["cursor"] == f"{NOW - 1}_1"
    assert "startTime" not in service.asked[0]


PAGED = [row for row in JSON.values() if row.paging != "none"]


def make_row_after(row, wire):
    """Return a row that can follow another one: of another coin, or of the next time."""
    after: dict[str, Any] = json.loads(json.dumps(wire))
    if row.grid is None:
        part = after.get("delta", after.get("order", after))
        part, name = (part, "coin") if "coin" in part else (after, "hash")
        part[name] = "XRP"
        return after
    (time,) = {"timestamp", "week"} & after.keys()
    after[time] += row.grid.step * (-1 if row.paging == "backward" else 1)
    return after


@pytest.mark.parametrize("row", PAGED, ids=[row.type for row in PAGED])
def test_max_rows_limits_total(row):
    (first,) = ANSWERS[row.type]
    two = [first, make_row_after(row, first)]
    _, frame = call(row, {row.type: two}, max_rows=1)
    assert len(frame) == 1
    assert provenance(frame)["complete"] == "first 1 row"
    _, whole = call(row, {row.type: two})
    assert len(whole) == 2
    assert provenance(whole)["complete"] == "yes"


@pytest.mark.parametrize("row", PAGED, ids=[row.type for row in PAGED])
@pytest.mark.parametrize("one", [1.0, np.int64(1), np.float64(1)], ids=repr)
def test_max_rows_is_read_in_any_form(row, one):
    (first,) = ANSWERS[row.type]
    _, frame = call(row, {row.type: [first, make_row_after(row, first)]}, max_rows=one)
    assert len(frame) == 1
    assert provenance(frame)["complete"] == "first 1 row"


@pytest.mark.parametrize("row", PAGED, ids=[row.type for row in PAGED])
@pytest.mark.parametrize("bad", [0, -1, 1.5, "10", True, float("nan"), float("inf")])
def test_invalid_max_rows_is_refused(row, bad):
    with pytest.raises(ValueError, match="max_rows"):
        call(row, ANSWERS, max_rows=bad)


@EVERY
def test_unknown_choices_are_refused(row):
    with pytest.raises(ValueError, match="numbers must be 'float' or 'exact' or 'text'"):
        call(row, ANSWERS, numbers="decimal")
    if row.paging != "none":
        with pytest.raises(ValueError, match="on_incomplete must be 'raise' or 'warn'"):
            call(row, ANSWERS, on_incomplete="ignore")


@EVERY
def test_malformed_arguments_are_not_sent(row):
    required = [
        parameter for parameter in row.parameters if parameter.required and not parameter.unless
    ]
    if not required:
        return
    service = Service(ANSWERS)
    named: dict[str, Any] = {required[0].python: 5} | {
        parameter.python: NOW for parameter in row.parameters if parameter.python == "start"
    }
    rest = inspect.signature(function(row)).parameters
    for item in required[1:]:
        named.setdefault(item.python, 1_000 if item.python == "amount" else "x")
    with pytest.raises((BadRequest, TypeError)):
        function(row)(**{k: v for k, v in named.items() if k in rest}, session=service.session())
    assert service.asked == []


def test_missing_start_is_refused():
    with pytest.raises(BadRequest, match="startTime parameter is required"):
        fetch.user_fills_by_time(USER, session=Service(ANSWERS).session())


def test_full_page_of_one_key_raises():
    service = Service({"userFillsByTime": [FILL] * 2000})
    with pytest.raises(Incomplete) as caught:
        fetch.user_fills_by_time(USER, 0, session=service.session())
    assert isinstance(caught.value.rows, pd.DataFrame)
    assert "rows" in str(caught.value)


def test_on_incomplete_warn_returns_rows():
    service = Service({"userFillsByTime": [FILL] * 2000})
    with pytest.warns(IncompleteWarning, match="incomplete"):
        frame = fetch.user_fills_by_time(USER, 0, on_incomplete="warn", session=service.session())
    assert provenance(frame)["complete"] == "no"


def test_missing_session_has_advice(monkeypatch):
    monkeypatch.delenv("TOOLKIT_BASE_URL", raising=False)
    forget()
    with pytest.raises(NotConnected, match=r"tk\.local\(\)"):
        fetch.meta()
