"""The operations beyond the specification: table, requests, columns."""

from toolkit.contract.answers import answer_rows, decode
from toolkit.contract.extra_operations import EXTRA_OPERATIONS, find_operation
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.requests import check_request, request_body

USER = "0x" + "0a" * 20
GIVEN = {
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


def test_extra_requests_round_trip():
    wrong = []
    for operation in EXTRA_OPERATIONS.values():
        given = {parameter.python: GIVEN[parameter.python] for parameter in operation.parameters}
        if check_request(operation, request_body(operation, given)) != given:
            wrong.append(operation.type)
    assert wrong == []


def test_strict_search_finds_no_extra_operation():
    for operation in EXTRA_OPERATIONS.values():
        assert find_operation(operation.type) is operation
        assert find_operation(operation.type, strict=True) is None
    assert find_operation("nothing") is None
    assert find_operation("meta", strict=True) is OPERATIONS["meta"]


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


def test_unknown_order_has_no_row():
    operation = EXTRA_OPERATIONS["orderStatus"]
    for wire in (b'{"status":"unknownOid"}', b'{"status":"order","order":null}'):
        [result] = answer_rows(operation, decode(operation, 200, {}, wire), {})
        assert list(result) == []
