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


# General rules.


def test_general_1__post_info(hand):
    """Every operation answers; the type of a request is required and must be known."""
    statuses = {type: hand.post({"type": type, **GOOD[type]}).status_code for type in GOOD}
    assert set(statuses.values()) == {200}, statuses
    wrong = [{"type": type} for type in ("nothing", "", "Meta", "meta ", 7, None, ["meta"], {})]
    for body in [{"user": ALICE}, *wrong]:
        assert read_error(hand.post(body))[0] == 400, body


def test_general_2__invalid_json_is_400(hand):
    wrong = [b"", b"{", b"[]", b'"meta"', b"null", b"7", b"\xff\xfe", b"{'a':1}", b'{"type":"meta"']
    nested = [b'{"type":' + b"[" * depth + b"]" * depth + b"}" for depth in (100, 100_000)]
    for body in [*wrong, *nested]:
        assert read_error(hand.post(body))[0] == 400, body


def test_general_4__address_case_is_ignored(hand):
    upper = ALICE.upper().replace("X", "x")
    assert hand.ask("userFills", user=upper) == hand.ask("userFills", user=ALICE) != []


ADDRESSES = [
    *((type, "user") for type in ("userFills", "userFillsByTime", "historicalOrders")),
    *((type, "user") for type in ("userNonFundingLedgerUpdates", "borrowLendUserState")),
    ("delegations", "user"),
    ("builderApprovedFillsByTime", "builder"),
    ("builderApprovedFundingByTime", "builder"),
    ("builderOrdersByTime", "builder"),
    ("validatorAprHistory", "validator"),
]


def test_errors__invalid_address_is_named(hand):
    malformed = ["", "0x", "0x12", ALICE[:-1], ALICE + "0", ALICE[2:], "0x" + 40 * "g"]
    for type, field in ADDRESSES:
        for wrong in [*malformed, "0X" + ALICE[2:]]:
            got = hand.refuse(type, **GOOD[type] | {field: wrong})
            assert got == (400, f"Invalid Ethereum address: {wrong}"), type


def test_endpoints__missing_required_field_is_400(hand):
    optional = {("userNonFundingLedgerUpdates", "startTime")}
    got = {
        (type, field): hand.post(
            {"type": type, **{name: GOOD[type][name] for name in GOOD[type] if name != field}}
        ).status_code
        for type in GOOD
        for field in GOOD[type]
    }
    assert got == dict.fromkeys(got, 400) | dict.fromkeys(optional, 200)


FILLS = ("userFills", "userFillsByTime")
NO_NAMES: list[Any] = [None, "ALL", [], [7], [None], [""], {}, {"a": 1}]
NO_WHOLE: list[Any] = [1.5, 1e300, "1", "2025-09-01", True, False, [], [5], {}]
WRONG: list[tuple[str, str, list[Any]]] = [
    *((type, field, [7]) for type, field in ADDRESSES),
    *((type, "aggregateByTime", ["true", 1, []]) for type in FILLS),
    *(("userFillsByTime", field, NO_WHOLE) for field in ("startTime", "endTime", "limit")),
    ("userFills", "dex", [7]),
    ("userFills", "limit", ["10"]),
    ("userFillsByTime", "venue", [12]),
    ("userFillsByTime", "cursor", [12]),
    ("slippageHistory", "coin", [7]),
    ("slippageHistory", "startTime", ["0", [0]]),
    ("meta", "dex", [7]),
    ("currentDepth", "dex", [{}]),
    ("metaAndAssetCtxs", "dex", [[]]),
    ("perpDexLimits", "dex", [0]),
    ("accountValueSnapshots", "collateral_tokens", NO_NAMES),
    ("perpTwapSnapshots", "market_names", NO_NAMES),
    ("batchClearinghouseStates", "users", [None, ALICE, [7], {}]),
    ("batchClearinghouseStates", "dex", [7]),
    ("validatorAprHistory", "startTime", ["0"]),
]


def test_errors__wrong_parameter_type_is_400(hand):
    got = [
        (type, field, value, hand.refuse(type, **GOOD[type] | {field: value})[0])
        for type, field, values in WRONG
        for value in values
    ]
    assert [row for row in got if row[3] != 400] == []


def test_errors__whole_number_in_any_form(hand):
    """Alice's first fills were made 20 hours before now."""
    rows = hand.ask("userFillsByTime", user=ALICE, startTime=0, endTime=NOW)
    for start, end in [
        ("0", "1759320000000"),
        ("0.0", "1759320000000.0"),
        ("0e0", "1.75932e12"),
        ("1759248000000.0", "1759320000000"),
        ("1.759248e12", "1759320000000"),
    ]:
        body = f'{{"type":"userFillsByTime","user":"{ALICE}","startTime":{start},"endTime":{end}}}'
        assert hand.post(body.encode()).json() == rows
    for limit in ("3", "3.0", "0.3e1"):
        body = f'{{"type":"userFills","user":"{ALICE}","limit":{limit}}}'
        assert len(hand.post(body.encode()).json()) == 3


def test_errors__start_after_end_is_empty(hand):
    reversed_range = {"startTime": NOW, "endTime": NOW - 1}
    for type in ("userFillsByTime", "slippageHistory", "userNonFundingLedgerUpdates"):
        assert hand.ask(type, **GOOD[type] | reversed_range) == []
    for type, field in ADDRESSES:
        if field == "builder":
            assert hand.ask(type, builder=B1, **reversed_range) == []


def test_errors__unknown_account_has_no_rows(hand):
    nobody = mini.NOBODY
    for type, field in ADDRESSES:
        answer = hand.ask(type, **GOOD[type] | {field: nobody})
        if type != "borrowLendUserState":
            assert answer == []
    assert hand.ask("userFillsByTime", user=nobody, cursor="5_0") == []


def test_errors__other_methods_are_405(hand):
    headers = {"Authorization": f"Bearer {hand.secret}"}
    for method in ("GET", "PUT", "PATCH", "DELETE", "OPTIONS"):
        got = hand.client.request(method, f"{hand.address}/info", headers=headers)
        assert read_error(got)[0] == 405


def test_errors__too_large_body_is_413(hand):
    body = json.dumps(META).encode()
    largest = body + b" " * (2**20 - len(body))
    assert hand.post(largest).status_code == 200
    assert read_error(hand.post(largest + b" "))[0] == 413


HOSTILE: list[Any] = [
    *(None, True, -1, 0.5, 2**53, 2**64, 10**400, 1e308, "", " ", "'; DROP TABLE fill; --"),
    *("\u0000", "\ud83d\ude00" * 50, "9" * 400, "1_1", f"1_{ALICE}_BTC", "9" * 16 + "_" + "9" * 16),
    *("ALL_DEXES", ":", "::::", "%", [], [[]], [ALICE] * 3, ["ALL:", ":ALL", ":"], {}),
    {"a": {"b": [None]}},
]


@pytest.mark.parametrize("type", GOOD)
def test_errors__bad_input_never_500(hand, type):
    for field in sorted({*GOOD[type], *OPTIONAL.get(type, "").split()}):
        for value in HOSTILE:
            got = hand.post({"type": type, **GOOD[type], field: value})
            assert got.status_code in (200, 400, 404), (field, value, got.text)
            if got.status_code != 200:
                read_error(got)


# Compression of JSON answers.


def test_encoding__compressed_as_accepted(tiny):
    plain = tiny.ask("metaAndAssetCtxs")
    opened = {
        "gzip": gzip.decompress,
        "zstd": zstandard.ZstdDecompressor().decompressobj().decompress,
        "identity": bytes,
    }
    for name, read in opened.items():
        _, headers, content = tiny.raw({"type": "metaAndAssetCtxs"}, **{"Accept-Encoding": name})
        assert headers.get("content-encoding", "identity") == name
        assert json.loads(read(content)) == plain
