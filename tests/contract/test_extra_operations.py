"""The operations beyond the specification: table, requests, columns."""

from typing import Any

import pytest

from toolkit.contract.answers import answer_rows, decode
from toolkit.contract.columns import table_columns
from toolkit.contract.extra_operations import EXTRA_OPERATIONS, find_operation
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.requests import check_request, request_body
from toolkit.errors import BadRequest

EVERY = pytest.mark.parametrize("operation", EXTRA_OPERATIONS.values(), ids=list(EXTRA_OPERATIONS))
USER = "0x" + "0a" * 20
GIVEN: dict[str, Any] = {
    "user": USER,
    "coin": "BTC",
    "interval": "1h",
    "start": 1_000,
    "end": 2_000,
    "dex": "flx",
    "oid": 7,
    "n_sig_figs": 5,
    "mantissa": 2,
}


def test_extra_operations_are_not_in_specification():
    assert not OPERATIONS.keys() & EXTRA_OPERATIONS.keys()
    assert len(OPERATIONS) == 22
    assert len(EXTRA_OPERATIONS) == 31


@EVERY
def test_extra_requests_round_trip(operation):
    given = {parameter.python: GIVEN[parameter.python] for parameter in operation.parameters}
    assert check_request(operation, request_body(operation, given)) == given


@EVERY
def test_columns_have_unique_names(operation):
    for table in operation.tables:
        names = [column.name for column in table_columns(table)]
        assert len(set(names)) == len(names)


@EVERY
def test_strict_search_finds_no_extra_operation(operation):
    assert find_operation(operation.type) is operation
    assert find_operation(operation.type, strict=True) is None


def test_unknown_operation_is_not_found():
    assert find_operation("nothing") is None
    assert find_operation("meta", strict=True) is OPERATIONS["meta"]


def test_candle_request_nests_its_parameters():
    asked = {"coin": "BTC", "interval": "1h", "start": 5}
    assert request_body(EXTRA_OPERATIONS["candleSnapshot"], asked) == {
        "type": "candleSnapshot",
        "req": {"coin": "BTC", "interval": "1h", "startTime": 5},
    }


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({}, "coin parameter is required"),
        ({"req": 5}, "req must be an object"),
        ({"req": {"coin": "BTC", "interval": "2m", "startTime": 0}}, "interval must be one of"),
        ({"req": {"coin": "BTC", "interval": "1h"}}, "startTime parameter is required"),
    ],
)
def test_invalid_candle_request_is_refused(request_, message):
    with pytest.raises(BadRequest, match=message):
        check_request(EXTRA_OPERATIONS["candleSnapshot"], request_)


@pytest.mark.parametrize(
    ("oid", "read"), [(17, 17), (17.0, 17), ("0x" + "AB" * 16, "0x" + "ab" * 16)]
)
def test_order_id_is_number_or_client_id(oid, read):
    asked = {"user": USER, "oid": oid}
    assert check_request(EXTRA_OPERATIONS["orderStatus"], asked)["oid"] == read


@pytest.mark.parametrize("oid", ["17", "0x12", 1.5, True, []])
def test_invalid_order_id_is_refused(oid):
    with pytest.raises(BadRequest):
        check_request(EXTRA_OPERATIONS["orderStatus"], {"user": USER, "oid": oid})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"nSigFigs": 6}, "nSigFigs must be from 2 to 5"),
        ({"nSigFigs": 1}, "nSigFigs must be from 2 to 5"),
        ({"nSigFigs": 4, "mantissa": 2}, "mantissa needs nSigFigs 5"),
        ({"mantissa": 1}, "mantissa needs nSigFigs 5"),
        ({"nSigFigs": 5, "mantissa": 3}, "mantissa must be 1, 2 or 5"),
    ],
)
def test_invalid_book_request_is_refused(given, message):
    with pytest.raises(BadRequest, match=message):
        check_request(EXTRA_OPERATIONS["l2Book"], {"coin": "BTC", **given})


def test_book_becomes_rows():
    wire = (
        b'{"coin":"BTC","time":5,"levels":[[{"px":"99","sz":"2","n":3},{"px":"98","sz":"1","n":1}],'
        b'[{"px":"101","sz":"4","n":2}]]}'
    )
    operation = EXTRA_OPERATIONS["l2Book"]
    [result] = answer_rows(operation, decode(operation, 200, {}, wire), {})
    assert [(row.side, row.level, row.px, row.sz, row.orders) for row in result] == [
        ("B", 1, "99", "2", 3),
        ("B", 2, "98", "1", 1),
        ("A", 1, "101", "4", 2),
    ]
    [none] = answer_rows(operation, decode(operation, 200, {}, b"null"), {})
    assert list(none) == []


def test_candle_fields_have_full_names():
    wire = (
        b'[{"t":60000,"T":119999,"s":"BTC","i":"1m","o":"1.5","c":"2","h":"3","l":"1",'
        b'"v":"10","n":4}]'
    )
    [candle] = decode(EXTRA_OPERATIONS["candleSnapshot"], 200, {}, wire)
    assert (candle.start_time, candle.end_time, candle.coin, candle.interval) == (
        60_000,
        119_999,
        "BTC",
        "1m",
    )
    assert (candle.open, candle.close, candle.high, candle.low) == ("1.5", "2", "3", "1")
    assert (candle.volume, candle.trades) == ("10", 4)


def test_portfolio_becomes_rows():
    wire = (
        b'[["day",{"accountValueHistory":[[1,"10"],[2,"13"]],"pnlHistory":[[1,"0"],[2,"-4"]],'
        b'"vlm":"99"}]]'
    )
    operation = EXTRA_OPERATIONS["portfolio"]
    [result] = answer_rows(operation, decode(operation, 200, {}, wire), {})
    assert [(row.period, row.time, row.account_value, row.pnl, row.vlm) for row in result] == [
        ("day", 1, "10", "0", "99"),
        ("day", 2, "13", "-4", "99"),
    ]


def test_perp_dexes_skip_null():
    wire = (
        b'[null,{"name":"flx","fullName":"F","deployer":"0x01","oracleUpdater":null,'
        b'"feeRecipient":null}]'
    )
    operation = EXTRA_OPERATIONS["perpDexs"]
    [result] = answer_rows(operation, decode(operation, 200, {}, wire), {})
    assert [row.name for row in result] == ["flx"]


@pytest.mark.parametrize(
    ("wire", "found"), [(b'{"status":"unknownOid"}', 0), (b'{"status":"order","order":null}', 0)]
)
def test_unknown_order_has_no_row(wire, found):
    operation = EXTRA_OPERATIONS["orderStatus"]
    [result] = answer_rows(operation, decode(operation, 200, {}, wire), {})
    assert len(result) == found
