"""Requests: `check_request` inverts `request_body`, and invalid parameters have clear messages."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.contract.dexes import ALL_DEXES
from toolkit.contract.extra_operations import EXTRA_OPERATIONS
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.requests import (
    AMOUNTS,
    check_request,
    make_cursor,
    parse_cursor,
    request_body,
    request_points,
)
from toolkit.errors import BadRequest

EVERY = pytest.mark.parametrize("row", OPERATIONS.values(), ids=list(OPERATIONS))
USER = "0x" + "ab" * 20

addresses = st.text("0123456789abcdef", min_size=40, max_size=40).map("0x{}".format)
times = st.integers(0, 4_000_000_000_000)
coins = st.from_regex(r"([a-z]{2,4}:)?[A-Z@#_]{1,6}[0-9]{0,3}", fullmatch=True)
KEY_PARTS = {
    "time": times,
    "status_timestamp": times,
    "tx_index": st.integers(0, 100_000),
    "user": addresses,
    "delta.coin": coins,
}


def cursor_keys(row):
    return st.tuples(*(KEY_PARTS[path] for path in row.key))


def parameter_values(row, parameter):
    most = parameter.most or 2**53 - 1
    return {
        "address": addresses,
        "addresses": st.lists(addresses, max_size=5, unique=True),
        "text": st.text(min_size=1, max_size=8),
        "texts": st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=5, unique=True),
        "whole": st.integers(parameter.least or 0, most),
        "time": times,
        "usd": st.sampled_from(AMOUNTS).map(float),
        "flag": st.booleans(),
        "cursor": cursor_keys(row).map(make_cursor) if parameter.kind == "cursor" else st.none(),
        "venue": st.from_regex(r"[A-Za-z]{2,4}", fullmatch=True),
    }[parameter.kind]


@st.composite
def valid_requests(draw):
    """Return an operation and valid parameters with all defaults."""
    row = draw(st.sampled_from(list(OPERATIONS.values())))
    drawn = {}
    for parameter in row.parameters:
        value = parameter_values(row, parameter)
        if not (parameter.required and not parameter.unless):
            value = st.just(parameter.default) | value
        drawn[parameter.python] = draw(value)
    if "cursor" in drawn:  # a cursor goes before a start; one of them must be there
        if drawn["cursor"] is not None:
            drawn["start"] = None
        elif drawn["start"] is None:
            drawn["start"] = draw(times)
    if row.type == "validatorAprHistory" and None not in (drawn["start"], drawn["end"]):
        drawn["start"], drawn["end"] = sorted((drawn["start"], drawn["end"]))
    return row, drawn


def _example_value(parameter):
    return {
        "address": USER,
        "addresses": [USER],
        "text": "BTC",
        "texts": ["ALL"],
        "time": 1_756_684_800_000,
        "usd": 1_000.0,
    }[parameter.kind]


@given(valid_requests())
def test_check_request_inverts_request_body(request_):
    row, parameters = request_
    sent = request_body(row, parameters)
    assert check_request(row, sent) == parameters
    assert check_request(row, json.loads(json.dumps(sent))) == parameters
    assert next(iter(sent)) == "type"
    assert None not in sent.values()


@EVERY
def test_every_operation_round_trips(row):
    least = {
        parameter.python: _example_value(parameter)
        for parameter in row.parameters
        if parameter.required
    }
    checked = check_request(row, request_body(row, least))
    assert {name: checked[name] for name in least} == least
    defaults = {
        parameter.python: parameter.default
        for parameter in row.parameters
        if not parameter.required
    }
    assert {name: checked[name] for name in defaults} == defaults


def smallest_request(row):
    """Return the smallest valid request of an operation, as on the wire."""
    return {
        parameter.name: _example_value(parameter)
        for parameter in row.parameters
        if parameter.required
    }


WHOLE = [
    (row, parameter)
    for row in OPERATIONS.values()
    for parameter in row.parameters
    if parameter.kind in ("whole", "time")
]
EVERY_WHOLE = pytest.mark.parametrize(
    ("row", "parameter"), WHOLE, ids=[f"{row.type}.{parameter.name}" for row, parameter in WHOLE]
)


@EVERY_WHOLE
@pytest.mark.parametrize("text", ["1756684800000", "1756684800000.0", "1.7566848e12"])
def test_whole_numbers_are_read_in_any_form(row, parameter, text):
    if parameter.kind == "whole":
        text = text.replace("1756684800000", "12").replace("1.7566848e12", "1.2e1")
    request = {"startTime": 0} | smallest_request(row) | {parameter.name: json.loads(text)}
    if parameter.name == "endTime":
        request["startTime"] = 0
    checked = check_request(row, request)[parameter.python]
    assert checked == float(text)
    assert type(checked) is int


@EVERY_WHOLE
@pytest.mark.parametrize(
    "value", [1.5, "1756684800000", True, False, [], {}, float("nan"), float("inf"), 1e300]
)
def test_invalid_whole_numbers_are_refused(row, parameter, value):
    with pytest.raises(BadRequest, match=f"{parameter.name} must be a whole number") as caught:
        check_request(row, smallest_request(row) | {parameter.name: value})
    assert caught.value.status is None  # the service's answer has one: 400
    assert caught.value.operation == row.type


@pytest.mark.parametrize("number", [int, float, np.int64, np.uint16, np.float64, np.float32])
def test_numbers_are_sent_as_int(number):
    fills = {"user": USER, "start": number(0), "page_size": number(100)}
    samples = {"coin": "BTC", "amount": number(5_000), "start": number(0)}
    order = {"user": USER, "oid": number(100)}
    bodies = [
        request_body(OPERATIONS["userFillsByTime"], fills),
        request_body(OPERATIONS["slippageHistory"], samples),
        request_body(EXTRA_OPERATIONS["orderStatus"], order),
    ]
    assert [bodies[0]["limit"], bodies[1]["amount"], bodies[2]["oid"]] == [100, 5_000, 100]
    for body in bodies:
        assert json.loads(json.dumps(body)) == body
        assert {type(value) for value in body.values()} <= {int, str}


@pytest.mark.parametrize("value", [np.float64(2.5), np.bool_(True), np.timedelta64(2), "2"])
def test_other_values_are_no_numbers(value):
    parameters = {"user": USER, "start": 0, "page_size": value}
    with pytest.raises(BadRequest, match="limit must be a whole number"):
        request_body(OPERATIONS["userFillsByTime"], parameters)


LIMITED = [row for row in OPERATIONS.values() if row.page is not None]


@pytest.mark.parametrize("row", LIMITED, ids=[row.type for row in LIMITED])
def test_page_size_outside_limits_is_refused(row):
    assert row.page is not None
    assert row.page.most is not None
    for good in (1, row.page.most):
        assert check_request(row, smallest_request(row) | {"limit": good})[row.page.python] == good
    for bad in (0, -1, row.page.most + 1):
        with pytest.raises(BadRequest, match=f"limit must be from 1 to {row.page.most}"):
            check_request(row, smallest_request(row) | {"limit": bad})


ADDRESSES = [
    (row, parameter)
    for row in OPERATIONS.values()
    for parameter in row.parameters
    if parameter.kind in ("address", "addresses")
]


@pytest.mark.parametrize(
    ("row", "parameter"),
    ADDRESSES,
    ids=[f"{row.type}.{parameter.name}" for row, parameter in ADDRESSES],
)
@pytest.mark.parametrize(
    "value", ["", "0x", "0x12", "ab" * 21, USER + "0", USER[:-1] + "g", " " + USER, USER + "\n", 12]
)
def test_malformed_addresses_are_refused(row, parameter, value):
    given_ = [USER, value] if parameter.kind == "addresses" else value
    with pytest.raises(BadRequest, match="Invalid Ethereum address: ") as caught:
        check_request(row, smallest_request(row) | {parameter.name: given_})
    assert caught.value.message == f"Invalid Ethereum address: {value}"


@pytest.mark.parametrize(
    ("type", "parameters", "hint"),
    [
        ("userFills", {"user": "0x12"}, "An address is 0x and 40 hex digits"),
        ("userFills", {"user": [USER, USER]}, "Pass one address; tk.many fetches several"),
        (
            "userFills",
            {"user": USER, "max_rows": 0},
            "limit is the argument max_rows of the fetch function",
        ),
        (
            "userFillsByTime",
            {"user": USER},
            "startTime is the argument start of the fetch function",
        ),
        ("userFills", {}, ""),
        ("batchClearinghouseStates", {"users": 5}, "Write users as a list, even for"),
        ("perpTwapSnapshots", {"market_names": {}}, "Write market_names as a list"),
    ],
)
def test_refusals_have_hints(type, parameters, hint):
    with pytest.raises(BadRequest) as caught:
        request_body(OPERATIONS[type], parameters)
    assert caught.value.hint.startswith(hint)
    assert str(caught.value).endswith(caught.value.hint or caught.value.message)


@given(addresses)
def test_addresses_become_lower_case(address):
    row = OPERATIONS["delegations"]
    upper = "0x" + address[2:].upper()
    assert check_request(row, {"user": upper}) == {"user": address}
    assert request_body(row, {"user": upper}) == {"type": "delegations", "user": address}


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("coin", "coin parameter is required"),
        ("amount", "amount parameter is required (positive USD notional)"),
        ("startTime", "startTime parameter is required"),
    ],
)
def test_slippage_history_requires_its_parameters(missing, words):
    row = OPERATIONS["slippageHistory"]
    request = smallest_request(row)
    del request[missing]
    for absent in (request, request | {missing: None}):
        with pytest.raises(BadRequest) as caught:
            check_request(row, absent)
        assert caught.value.message == words


@pytest.mark.parametrize("amount", [0, -1_000, "1000", True, float("nan"), float("inf"), [], 0.0])
def test_slippage_history_refuses_invalid_amounts(amount):
    row = OPERATIONS["slippageHistory"]
    with pytest.raises(BadRequest) as caught:
        check_request(row, smallest_request(row) | {"amount": amount})
    assert caught.value.message == "amount parameter is required (positive USD notional)"


def test_slippage_history_refuses_empty_coin():
    row = OPERATIONS["slippageHistory"]
    with pytest.raises(BadRequest, match="coin parameter is required"):
        check_request(row, smallest_request(row) | {"coin": ""})


@pytest.mark.parametrize("type_", ["userFills", "userFillsByTime"])
@pytest.mark.parametrize("value", ["", "0x12", 5, False, [], {}])
def test_invalid_builder_filter_is_refused(type_, value):
    row = OPERATIONS[type_]
    with pytest.raises(BadRequest):
        check_request(row, smallest_request(row) | {"builder": value})
    assert check_request(row, smallest_request(row) | {"builder": None})["builder"] is None


PAGED = [row for row in OPERATIONS.values() if "cursor" in row.by_wire]
EVERY_PAGED = pytest.mark.parametrize("row", PAGED, ids=[row.type for row in PAGED])


@EVERY_PAGED
def test_start_is_ignored_with_a_cursor(row):
    cursor = "1756684800000_" + (f"{USER}_BTC" if len(row.key) == 3 else "7")
    request = smallest_request(row) | {"cursor": cursor, "startTime": "no time"}
    checked = check_request(row, request)
    assert checked["cursor"] == cursor
    assert checked["start"] is None


@EVERY_PAGED
def test_start_or_cursor_is_required(row):
    request = smallest_request(row)
    del request["startTime"]
    with pytest.raises(BadRequest, match=r"startTime parameter is required \(or cursor\)"):
        check_request(row, request)


@EVERY_PAGED
@given(data=st.data())
def test_cursors_round_trip(row, data):
    key = data.draw(cursor_keys(row))
    assert parse_cursor(row, make_cursor(key)) == key


@EVERY_PAGED
@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "_",
        "1",
        "1_",
        "_1",
        "a_1",
        "-1_1",
        "1.5_1",
        "1_x",
        "1__2",
        "\u0661_1",
        "9" * 30 + "_1",
        "9" * 17 + "_1",
        7,
        [],
    ],
)
def test_malformed_cursors_are_refused(row, cursor):
    with pytest.raises(BadRequest, match="Invalid cursor"):
        check_request(row, smallest_request(row) | {"cursor": cursor})


def test_cursor_after_year_9999_is_refused():
    row = OPERATIONS["userFillsByTime"]
    assert parse_cursor(row, "253402300799999_3") == (253_402_300_799_999, 3)
    with pytest.raises(BadRequest, match=r"1757000000000000 ms is after the year 9999\. A cursor"):
        parse_cursor(row, "1757000000000000_3")


def test_funding_cursor_has_user_and_coin():
    row = OPERATIONS["builderApprovedFundingByTime"]
    assert parse_cursor(row, f"1_{USER}_flx:A_B") == (1, USER, "flx:A_B")
    for wrong in ("1_2", f"1_{USER}", f"1_{USER}_", "1_0x12_BTC"):
        with pytest.raises(BadRequest, match="Invalid cursor"):
            parse_cursor(row, wrong)


@pytest.mark.parametrize("venue", ["A", "ABCDE", "A1", "", "ÄB", 12])
def test_venues_are_2_to_4_letters(venue):
    row = OPERATIONS["userFillsByTime"]
    with pytest.raises(BadRequest, match="venue must be 2 to 4 letters"):
        check_request(row, smallest_request(row) | {"venue": venue})


@pytest.mark.parametrize(
    ("count", "dex", "fits"),
    [(1000, "", True), (1001, "", False), (100, ALL_DEXES, True), (101, ALL_DEXES, False)],
)
def test_too_many_users_are_refused(count, dex, fits):
    row = OPERATIONS["batchClearinghouseStates"]
    request = {"users": [USER] * count, "dex": dex}
    if fits:
        assert len(check_request(row, request)["users"]) == count
    else:
        with pytest.raises(BadRequest, match="users must have at most"):
            check_request(row, request)


def test_reversed_weeks_are_refused():
    row = OPERATIONS["validatorAprHistory"]
    with pytest.raises(BadRequest, match="endTime must be at or after startTime"):
        check_request(row, {"validator": USER, "startTime": 2, "endTime": 1})
    assert check_request(row, {"validator": USER, "startTime": 1, "endTime": 1})["end"] == 1
    fills = OPERATIONS["userFillsByTime"]
    assert check_request(fills, {"user": USER, "startTime": 2, "endTime": 1})["start"] == 2


@pytest.mark.parametrize(
    ("type_", "name"),
    [("accountValueSnapshots", "collateral_tokens"), ("perpTwapSnapshots", "market_names")],
)
@pytest.mark.parametrize("value", ["ALL", [], [""], [1], {}, None])
def test_invalid_lists_are_refused(type_, name, value):
    with pytest.raises(BadRequest, match=name):
        check_request(OPERATIONS[type_], {name: value})


TEXTS = [
    (row, parameter)
    for row in OPERATIONS.values()
    for parameter in row.parameters
    if parameter.kind == "text"
]


@pytest.mark.parametrize(
    ("row", "parameter"), TEXTS, ids=[f"{row.type}.{parameter.name}" for row, parameter in TEXTS]
)
@pytest.mark.parametrize("value", [5, True, [], {}])
def test_invalid_texts_are_refused(row, parameter, value):
    with pytest.raises(BadRequest, match=f"{parameter.name} must be a string"):
        check_request(row, smallest_request(row) | {parameter.name: value})


@pytest.mark.parametrize("type_", ["userFills", "userFillsByTime"])
@pytest.mark.parametrize("value", [0, 1, "true", []])
def test_invalid_flags_are_refused(type_, value):
    row = OPERATIONS[type_]
    with pytest.raises(BadRequest, match="aggregateByTime must be a boolean"):
        check_request(row, smallest_request(row) | {"aggregateByTime": value})


@EVERY
def test_unknown_and_null_fields_are_ignored(row):
    plain = check_request(row, smallest_request(row))
    absent = {parameter.name: None for parameter in row.parameters if not parameter.required}
    assert (
        check_request(row, {"type": row.type, "nonsense": 1} | absent | smallest_request(row))
        == plain
    )


@EVERY
@given(
    junk=st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
        ),
        max_leaves=4,
    )
)
def test_any_json_is_checked_or_refused(row, junk):
    for parameter in row.parameters:
        try:
            checked = check_request(row, smallest_request(row) | {parameter.name: junk})
        except BadRequest:
            continue
        assert set(checked) == {each.python for each in row.parameters}


def test_request_body_refuses_unknown_names():
    with pytest.raises(TypeError, match="delegations has no parameter usr; it has user"):
        request_body(OPERATIONS["delegations"], {"usr": USER})
    with pytest.raises(TypeError, match="has no parameter dex; it has none"):
        request_body(OPERATIONS["perpDeployAuctionStatus"], {"dex": ""})


def test_request_body_accepts_sequences():
    row = OPERATIONS["batchClearinghouseStates"]
    assert request_body(row, {"users": (USER,)})["users"] == [USER]
    with pytest.raises(BadRequest, match="users must be an array"):
        check_request(row, {"users": USER})  # the service itself wants a list


@pytest.mark.parametrize(
    ("type_", "name", "value"),
    [
        ("batchClearinghouseStates", "users", USER),
        ("perpTwapSnapshots", "market_names", "ALL:ALL_DEXES"),
        ("accountValueSnapshots", "collateral_tokens", "USDC"),
    ],
)
def test_request_body_wraps_single_value(type_, name, value):
    assert request_body(OPERATIONS[type_], {name: value})[name] == [value]


@pytest.mark.parametrize("alias", ["", "native", "main", "main_dex", "hyperliquid"])
@pytest.mark.parametrize(
    ("type_", "name", "form", "sent"),
    [
        ("currentDepth", "dex", "{}", "hyperliquid"),
        ("meta", "dex", "{}", ""),
        ("perpDexLimits", "dex", "{}", ""),
        ("batchClearinghouseStates", "dex", "{}", ""),
        ("userFills", "dex", "{}", "main_dex"),
        ("slippageHistory", "coin", "{}:BTC", "BTC"),
        ("accountValueSnapshots", "collateral_tokens", "{}:USDC", ["hyperliquid:USDC"]),
        ("perpTwapSnapshots", "market_names", "ALL:{}", ["ALL"]),
        ("perpTwapSnapshots", "market_names", "{}:BTC", ["BTC"]),
    ],
)
def test_request_body_writes_native_name(alias, type_, name, form, sent):
    row = OPERATIONS[type_]
    needed = {
        parameter.python: _example_value(parameter)
        for parameter in row.parameters
        if parameter.required
    }
    assert request_body(row, needed | {name: form.format(alias)})[name] == sent


def test_request_body_keeps_other_dexes():
    tokens = ["flx:USDH", "USDC", "ALL"]
    asked = {"collateral_tokens": tokens}
    assert request_body(OPERATIONS["accountValueSnapshots"], asked)["collateral_tokens"] == tokens
    markets = ["ALL:flx", "flx:TSLA", "ALL:ALL_DEXES", "BTC"]
    assert (
        request_body(OPERATIONS["perpTwapSnapshots"], {"market_names": markets})["market_names"]
        == markets
    )
    assert request_body(OPERATIONS["currentDepth"], {"dex": "flx"})["dex"] == "flx"


def test_refusal_before_sending_has_no_status():
    with pytest.raises(BadRequest) as caught:
        request_body(OPERATIONS["userFills"], {"user": "0x12"})
    assert caught.value.status is None
    assert "status" not in str(caught.value)


BATCH = OPERATIONS["batchClearinghouseStates"]


@pytest.mark.parametrize(
    ("request_", "points"),
    [
        ({"users": [USER] * 3}, 6),
        ({"users": [USER] * 49}, 98),
        ({"users": [USER] * 51}, 100),
        ({"users": [USER] * 3, "dex": ALL_DEXES}, 24),
        ({"users": [USER] * 60, "dex": ALL_DEXES}, 400),
        ({"users": [USER] * 3, "dex": "flx"}, 6),
        ({"users": []}, 2),
        ({"users": USER}, 2),
        ({}, 2),
        ({"dex": ALL_DEXES}, 8),
    ],
)
def test_batch_points_depend_on_users_and_dexes(request_, points):
    """Two points for each user, at most 100, times the dexes: here four with the native one."""
    assert request_points(BATCH, request_, dexes=4) == points


def test_points_of_other_operations_ignore_users():
    assert request_points(OPERATIONS["userFills"], {"users": [USER] * 3, "dex": ALL_DEXES}) == 10


def test_addresses_in_lists_become_lower_case():
    assert request_body(BATCH, {"users": ["0x" + "AB" * 20]})["users"] == [USER]


def test_repeated_list_values_are_sent_once():
    other = "0x" + "0" * 40
    body = request_body(BATCH, {"users": [USER, other, "0x" + "AB" * 20, USER]})
    assert body["users"] == [USER, other]
    assert request_points(BATCH, body) == 4
    tokens = request_body(
        OPERATIONS["accountValueSnapshots"],
        {"collateral_tokens": ["native:USDC", "USDC", "main:USDC"]},
    )
    assert tokens["collateral_tokens"] == ["hyperliquid:USDC", "USDC"]


def test_argument_of_same_name_needs_no_hint():
    with pytest.raises(BadRequest, match="user parameter is required") as missing:
        check_request(OPERATIONS["userFills"], {})
    assert missing.value.hint == ""


def test_empty_list_of_users_is_valid():
    assert request_body(BATCH, {"users": []}) == {"type": BATCH.type, "users": []}


def test_whole_numbers_of_2_to_53_are_refused():
    """JSON readers that use floats confuse larger ones with their neighbours."""
    operation = OPERATIONS["userFillsByTime"]
    request = {"user": USER, "startTime": 2**53 - 1}
    assert check_request(operation, request)["start"] == 2**53 - 1
    with pytest.raises(BadRequest, match="startTime must be a whole number of Unix milliseconds"):
        check_request(operation, request | {"startTime": 2**53})
    with pytest.raises(BadRequest) as refused:
        check_request(operation, request | {"limit": 2**53})
    assert refused.value.message == "limit must be a whole number"


@pytest.mark.parametrize("length", [80, 81])
def test_long_values_are_echoed_shortened(length):
    cursor = "x" * length
    echoed = cursor if length == 80 else "x" * 80 + "…"
    with pytest.raises(BadRequest) as refused:
        parse_cursor(OPERATIONS["userFillsByTime"], cursor)
    assert refused.value.message == f"Invalid cursor: {echoed}"
    assert "<milliseconds>_<tx_index>" in refused.value.hint


@pytest.mark.parametrize("mantissa", [1, 2, 5])
def test_book_accepts_mantissa_1_2_5(mantissa):
    asked = {"coin": "BTC", "nSigFigs": 5, "mantissa": mantissa}
    assert check_request(EXTRA_OPERATIONS["l2Book"], asked)["mantissa"] == mantissa


def test_slippage_amount_must_be_recorded_size():
    operation = OPERATIONS["slippageHistory"]
    request = smallest_request(operation)
    (name,) = (parameter.name for parameter in operation.parameters if parameter.kind == "usd")
    for amount, words in ((0.5, "must be one of 1000, 5000, 10000"), (2**53, "is required")):
        with pytest.raises(BadRequest, match=f"^{operation.type}.*{name} .*{words}"):
            check_request(operation, request | {name: amount})
