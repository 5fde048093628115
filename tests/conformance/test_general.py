"""Specification, "What the service does", "Errors"; clarifications, "Errors"."""

import gzip
import json
from typing import Any

import pytest
import zstandard

from tests.conformance import mini
from tests.conformance.conftest import GOOD, OPTIONAL, read_error

ALICE, B1, NOW = mini.ALICE, mini.B1, mini.NOW

META = {"type": "meta"}

by_operation = pytest.mark.parametrize("type", GOOD)


# General rules.


@by_operation
def test_general_1__post_info(hand, type):
    assert hand.post({"type": type, **GOOD[type]}).status_code == 200


def test_general_1__type_required(hand):
    assert read_error(hand.post({"user": ALICE}))[0] == 400


@pytest.mark.parametrize("type", ["nothing", "", "Meta", "meta ", 7, None, ["meta"], {}])
def test_general_1__unknown_type_is_400(hand, type):
    assert read_error(hand.post({"type": type}))[0] == 400


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'"meta"', b"null", b"7", b"\xff\xfe", b"{'a':1}", b'{"type":"meta"'],
)
def test_general_2__invalid_json_is_400(hand, body):
    assert read_error(hand.post(body))[0] == 400


@pytest.mark.parametrize("user", [ALICE.upper().replace("X", "x"), ALICE])
def test_general_4__address_case_is_ignored(hand, user):
    assert hand.ask("userFills", user=user) == hand.ask("userFills", user=ALICE) != []


ADDRESSES = [
    ("userFills", "user"),
    ("userFillsByTime", "user"),
    ("builderApprovedFillsByTime", "builder"),
    ("builderApprovedFundingByTime", "builder"),
    ("builderOrdersByTime", "builder"),
    ("historicalOrders", "user"),
    ("userNonFundingLedgerUpdates", "user"),
    ("borrowLendUserState", "user"),
    ("delegations", "user"),
    ("validatorAprHistory", "validator"),
]


MALFORMED = ["", "0x", "0x12", ALICE[:-1], ALICE + "0", ALICE[2:], "0x" + 40 * "g"]
MALFORMED += ["0X" + ALICE[2:]]


@pytest.mark.parametrize(("type", "field"), ADDRESSES)
def test_errors__invalid_address_is_named(hand, type, field):
    for wrong in MALFORMED:
        status, message = hand.refuse(type, **GOOD[type] | {field: wrong})
        assert (status, message) == (400, f"Invalid Ethereum address: {wrong}")


@pytest.mark.parametrize(
    ("type", "field"),
    [
        *ADDRESSES,
        ("userFillsByTime", "startTime"),
        ("builderApprovedFillsByTime", "startTime"),
        ("builderApprovedFundingByTime", "startTime"),
        ("builderOrdersByTime", "startTime"),
        ("slippageHistory", "coin"),
        ("slippageHistory", "amount"),
        ("slippageHistory", "startTime"),
        ("perpDexLimits", "dex"),
        ("accountValueSnapshots", "collateral_tokens"),
        ("perpTwapSnapshots", "market_names"),
        ("batchClearinghouseStates", "users"),
    ],
)
def test_endpoints__missing_required_field_is_400(hand, type, field):
    fields = {name: value for name, value in GOOD[type].items() if name != field}
    assert hand.refuse(type, **fields)[0] == 400


FILLS = ("userFills", "userFillsByTime")
NO_NAMES: list[Any] = [None, "ALL", [], [7], [None], [""], {}, {"a": 1}]
WRONG: list[tuple[str, str, Any]] = [
    *((type, field, 7) for type, field in ADDRESSES),
    *((type, "aggregateByTime", wrong) for type in FILLS for wrong in ("true", 1, [])),
    ("userFills", "dex", 7),
    ("userFills", "limit", "10"),
    ("userFillsByTime", "startTime", "0"),
    ("userFillsByTime", "endTime", True),
    ("userFillsByTime", "venue", 12),
    ("userFillsByTime", "cursor", 12),
    ("slippageHistory", "coin", 7),
    *(("slippageHistory", "startTime", wrong) for wrong in ("0", [0])),
    ("meta", "dex", 7),
    ("currentDepth", "dex", {}),
    ("metaAndAssetCtxs", "dex", []),
    ("perpDexLimits", "dex", 0),
    *(("accountValueSnapshots", "collateral_tokens", wrong) for wrong in NO_NAMES),
    *(("perpTwapSnapshots", "market_names", wrong) for wrong in NO_NAMES),
    *(("batchClearinghouseStates", "users", wrong) for wrong in (None, ALICE, [7], {})),
    ("batchClearinghouseStates", "dex", 7),
    ("validatorAprHistory", "startTime", "0"),
]


@pytest.mark.parametrize(("type", "field", "value"), WRONG)
def test_errors__wrong_parameter_type_is_400(hand, type, field, value):
    assert hand.refuse(type, **GOOD[type] | {field: value})[0] == 400


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("0", "1759320000000"),
        ("0.0", "1759320000000.0"),
        ("0e0", "1.75932e12"),
        ("1759248000000.0", "1759320000000"),
        ("1.759248e12", "1759320000000"),
    ],
)
def test_errors__whole_number_in_any_form(hand, start, end):
    """Alice's first fills were made 20 hours before now."""
    body = f'{{"type":"userFillsByTime","user":"{ALICE}","startTime":{start},"endTime":{end}}}'
    assert hand.post(body.encode()).json() == hand.ask(
        "userFillsByTime", user=ALICE, startTime=0, endTime=NOW
    )


@pytest.mark.parametrize("limit", ["3", "3.0", "0.3e1"])
def test_errors__whole_limit_in_any_form(hand, limit):
    body = f'{{"type":"userFills","user":"{ALICE}","limit":{limit}}}'
    assert len(hand.post(body.encode()).json()) == 3


@pytest.mark.parametrize("value", [1.5, 1e300, "1", "2025-09-01", True, False, [], [5], {}])
@pytest.mark.parametrize("field", ["startTime", "endTime", "limit"])
def test_errors__fraction_is_400(hand, field, value):
    fields = GOOD["userFillsByTime"] | {field: value}
    assert hand.refuse("userFillsByTime", **fields)[0] == 400


@pytest.mark.parametrize(
    "type", ["userFillsByTime", "slippageHistory", "userNonFundingLedgerUpdates"]
)
def test_errors__start_after_end_is_empty(hand, type):
    assert hand.ask(type, **GOOD[type] | {"startTime": NOW, "endTime": NOW - 1}) == []


@pytest.mark.parametrize(
    "type", ["builderApprovedFillsByTime", "builderApprovedFundingByTime", "builderOrdersByTime"]
)
def test_errors__builder_start_after_end_is_empty(hand, type):
    assert hand.ask(type, builder=B1, startTime=NOW, endTime=NOW - 1) == []


def test_errors__unknown_account_has_no_rows(hand):
    nobody = mini.NOBODY
    for type, field in ADDRESSES:
        answer = hand.ask(type, **GOOD[type] | {field: nobody})
        if type != "borrowLendUserState":
            assert answer == []
    assert hand.ask("userFillsByTime", user=nobody, cursor="5_0") == []


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_errors__other_methods_are_405(hand, method):
    headers = {"Authorization": f"Bearer {hand.secret}"}
    got = hand.client.request(method, f"{hand.address}/info", headers=headers)
    assert read_error(got)[0] == 405


def _padded(size):
    body = json.dumps(META).encode()
    return body + b" " * (size - len(body))


def test_errors__too_large_body_is_413(hand):
    assert read_error(hand.post(_padded(2**20 + 1)))[0] == 413


def test_errors__largest_body_is_accepted(hand):
    assert hand.post(_padded(2**20)).status_code == 200


HOSTILE: list[Any] = [
    None,
    True,
    -1,
    0.5,
    2**53,
    2**64,
    10**400,
    1e308,
    "",
    " ",
    "'; DROP TABLE fill; --",
    "\u0000",
    "\ud83d\ude00" * 50,
    "9" * 400,
    "1_1",
    f"1_{ALICE}_BTC",
    "9" * 16 + "_" + "9" * 16,
    "ALL_DEXES",
    ":",
    "::::",
    "%",
    [],
    [[]],
    [ALICE] * 3,
    ["ALL:", ":ALL", ":"],
    {},
    {"a": {"b": [None]}},
]


@by_operation
def test_errors__bad_input_never_500(hand, type):
    for field in sorted({*GOOD[type], *OPTIONAL.get(type, ())}):
        for value in HOSTILE:
            got = hand.post({"type": type, **GOOD[type], field: value})
            assert got.status_code in (200, 400, 404), (field, value, got.text)
            if got.status_code != 200:
                read_error(got)


@pytest.mark.parametrize("depth", [100, 100_000])
def test_errors__deep_nesting_is_400(hand, depth):
    assert read_error(hand.post(b'{"type":' + b"[" * depth + b"]" * depth + b"}"))[0] == 400


# Compression of JSON answers.


def test_encoding__gzip_if_accepted(tiny):
    _, headers, content = tiny.raw({"type": "metaAndAssetCtxs"}, **{"Accept-Encoding": "gzip"})
    assert headers["content-encoding"] == "gzip"
    assert json.loads(gzip.decompress(content)) == tiny.ask("metaAndAssetCtxs")


def test_encoding__zstd_if_accepted(tiny):
    _, headers, content = tiny.raw({"type": "metaAndAssetCtxs"}, **{"Accept-Encoding": "zstd"})
    assert headers["content-encoding"] == "zstd"
    plain = zstandard.ZstdDecompressor().decompressobj().decompress(content)
    assert json.loads(plain) == tiny.ask("metaAndAssetCtxs")


def test_encoding__uncompressed_without_accepted_encoding(tiny):
    _, headers, content = tiny.raw({"type": "metaAndAssetCtxs"}, **{"Accept-Encoding": "identity"})
    assert "content-encoding" not in headers
    assert json.loads(content) == tiny.ask("metaAndAssetCtxs")
