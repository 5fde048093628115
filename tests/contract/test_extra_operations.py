"""The operations beyond the specification: table, requests, columns."""

from toolkit.contract.answers import answer_rows, decode
from toolkit.contract.operations import EXTRA_OPERATIONS, OPERATIONS, find_operation
from toolkit.contract.requests import check_request, request_body

USER = "0x" + "0a" * 20
GIVEN = {
    "user": USER,
    "vault_address": USER,
    "coin": "BTC",
    "sector": None,
    "interval": "1h",
    "start": 1_000,
    "end": 2_000,
    "dex": "flx",
    "days": 7,
    "oid": 7,
    "n_sig_figs": 5,
    "mantissa": 2,
    "builder": USER,
    "cursor": None,
    "page_size": 7,
}


def test_extra_operations_are_not_in_specification():
    assert not OPERATIONS.keys() & EXTRA_OPERATIONS.keys()
    assert len(OPERATIONS) == 22
    assert len(EXTRA_OPERATIONS) == 41


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


BOOK = """{"coin":"BTC","time":5,"levels":[[{"px":"99","sz":"2","n":3},{"px":"98","sz":"1","n":1}],
[{"px":"101","sz":"4","n":2}]]}"""
CANDLE = """[{"t":60000,"T":119999,"s":"BTC","i":"1m","o":"1.5","c":"2","h":"3","l":"1","v":"10",
"n":4}]"""
PORTFOLIO = """[["day",{"accountValueHistory":[[1,"10"],[2,"13"]],"pnlHistory":[[1,"0"],[2,"-4"]],
"vlm":"99"}]]"""
DEXES = """[null,{"name":"flx","fullName":"F","deployer":"0x01","oracleUpdater":null,
"feeRecipient":null}]"""
LEVEL, DAY = "side level px sz orders", "period time account_value pnl vlm"
ROWS = [
    # operation, answer, fields, and their values in each row
    (
        "l2Book",
        BOOK,
        LEVEL,
        ("B", 1, "99", "2", 3),
        ("B", 2, "98", "1", 1),
        ("A", 1, "101", "4", 2),
    ),
    ("l2Book", "null", LEVEL),
    ("candleSnapshot", CANDLE, "start_time end_time coin interval", (60_000, 119_999, "BTC", "1m")),
    ("candleSnapshot", CANDLE, "open close high low", ("1.5", "2", "3", "1")),
    ("candleSnapshot", CANDLE, "volume trades", ("10", 4)),
    ("portfolio", PORTFOLIO, DAY, ("day", 1, "10", "0", "99"), ("day", 2, "13", "-4", "99")),
    ("perpDexs", DEXES, "name full_name", ("flx", "F")),
    ("orderStatus", '{"status":"unknownOid"}', "status"),
    ("orderStatus", '{"status":"order","order":null}', "status"),
]


def test_answers_become_rows():
    wrong = []
    for type_, wire, fields, *expected in ROWS:
        operation = EXTRA_OPERATIONS[type_]
        [rows] = answer_rows(operation, decode(operation, 200, {}, wire.encode()), {})
        found = [tuple(getattr(row, name) for name in fields.split()) for row in rows]
        if found != expected:
            wrong.append((type_, found))
    assert wrong == []
