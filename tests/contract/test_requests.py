"""Requests: `check_request` inverts `request_body`, and invalid parameters have clear messages."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.contract.dexes import ALL_DEXES
from toolkit.contract.operations import EXTRA_OPERATIONS, OPERATIONS
from toolkit.contract.requests import (
    AMOUNTS,
    INTERVALS,
    check_request,
    describe_cost,
    filters_of,
    make_cursor,
    parse_cursor,
    request_body,
    request_points,
)
from toolkit.errors import BadRequest

USER = "0x" + "ab" * 20
ROWS = list(OPERATIONS.values())
BATCH, SLIPPAGE = OPERATIONS["batchClearinghouseStates"], OPERATIONS["slippageHistory"]
FILLS, WEEKS = OPERATIONS["userFillsByTime"], OPERATIONS["validatorAprHistory"]
PAYMENTS, BOOK = OPERATIONS["builderApprovedFundingByTime"], EXTRA_OPERATIONS["l2Book"]
PAGED = [row for row in ROWS if "cursor" in row.by_wire]

addresses = st.text("0123456789abcdef", min_size=40, max_size=40).map("0x{}".format)
times = st.integers(0, 4_000_000_000_000)
KEY_PARTS = {
    "time": times,
    "status_timestamp": times,
    "tx_index": st.integers(0, 100_000),
    "user": addresses,
    "delta.coin": st.from_regex(r"([a-z]{2,4}:)?[A-Z@#_]{1,6}[0-9]{0,3}", fullmatch=True),
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
    row = draw(st.sampled_from(ROWS))
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
    if row is WEEKS and None not in (drawn["start"], drawn["end"]):
        drawn["start"], drawn["end"] = sorted((drawn["start"], drawn["end"]))
    return row, drawn


def smallest_request(row, name="name"):
    """Return the smallest valid request: its wire names, or ``python`` names."""
    examples = {
        "address": USER,
        "addresses": [USER],
        "text": "BTC",
        "texts": ["ALL"],
        "time": 1_756_684_800_000,
        "usd": 1_000.0,
        "interval": "1h",
        "order": 7,
    }
    needed = [parameter for parameter in row.parameters if parameter.required]
    return {getattr(parameter, name): examples[parameter.kind] for parameter in needed}


def refusal(row, request, read=check_request):
    """Return the error of a request, or None if it is valid."""
    try:
        read(row, request)
    except BadRequest as refused:
        error = refused
    else:
        return None
    # The service's answer has a status, 400; this error has none.
    assert (error.operation, error.status, "status" in str(error)) == (row.type, None, False)
    return error


def with_value(row, parameter, value):
    return {"startTime": 0} | smallest_request(row) | {parameter.name: value}


def parameters_of(*kinds):
    """Return the operations of the specification with their parameters of these kinds."""
    return [(row, item) for row in ROWS for item in row.parameters if item.kind in kinds]


# -- What is written is read ------------------------------------------------------------------


@settings(max_examples=200)
@given(valid_requests())
def test_check_request_inverts_request_body(request_):
    row, parameters = request_
    sent = request_body(row, parameters)
    assert check_request(row, sent) == parameters
    assert check_request(row, json.loads(json.dumps(sent))) == parameters
    assert next(iter(sent)) == "type"
    assert None not in sent.values()


def test_unknown_and_null_fields_are_ignored():
    wrong = []
    for row in ROWS:
        absent = {item.name: None for item in row.parameters if not item.required}
        request = {"type": row.type, "nonsense": 1} | absent | smallest_request(row)
        if check_request(row, request) != check_request(row, smallest_request(row)):
            wrong.append(row.type)
    assert wrong == []


@settings(max_examples=100)
@given(
    junk=st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
        ),
        max_leaves=4,
    )
)
def test_any_json_is_checked_or_refused(junk):
    for row in ROWS:
        for parameter in row.parameters:
            request = smallest_request(row) | {parameter.name: junk}
            if refusal(row, request) is None:
                assert set(check_request(row, request)) == {each.python for each in row.parameters}


def test_whole_numbers_are_read_in_any_form():
    wrong = []
    for row, parameter in parameters_of("whole", "time"):
        forms = ["12", "12.0", "1.2e1"]
        if parameter.kind == "time":
            forms = ["1756684800000", "1756684800000.0", "1.7566848e12"]
        number = int(forms[0])
        for text in forms:
            request = with_value(row, parameter, json.loads(text))
            read = check_request(row, request)[parameter.python]
            if (read, type(read)) != (number, int):
                wrong.append((row.type, parameter.name, text, read))
    assert wrong == []


@pytest.mark.parametrize("number", [int, float, np.int64, np.float32])
def test_numbers_are_sent_as_int(number):
    fills = {"user": USER, "start": number(0), "page_size": number(100)}
    samples = {"coin": "BTC", "amount": number(5_000), "start": number(0)}
    order = {"user": USER, "oid": number(100)}
    bodies = [
        request_body(FILLS, fills),
        request_body(SLIPPAGE, samples),
        request_body(EXTRA_OPERATIONS["orderStatus"], order),
    ]
    assert [bodies[0]["limit"], bodies[1]["amount"], bodies[2]["oid"]] == [100, 5_000, 100]
    for body in bodies:
        assert json.loads(json.dumps(body)) == body
        assert {type(value) for value in body.values()} <= {int, str}


@given(addresses)
def test_addresses_become_lower_case(address):
    row, upper = OPERATIONS["delegations"], "0x" + address[2:].upper()
    assert check_request(row, {"user": upper}) == {"user": address}
    assert request_body(row, {"user": upper}) == {"type": "delegations", "user": address}
    assert request_body(BATCH, {"users": [upper]})["users"] == [address]


# -- What is refused --------------------------------------------------------------------------

INVALID = {
    # kind -> values, and what the message says of the parameter
    ("whole", "time"): (
        [1.5, "1756684800000", True, False, [], {}, float("nan"), float("inf"), 1e300, 2**53],
        "{name} must be a whole number",
    ),
    ("address", "addresses"): (
        ["", "0x", "0x12", "ab" * 21, USER + "0", USER[:-1] + "g", " " + USER, USER + "\n", 12],
        "Invalid Ethereum address: {value}",
    ),
    ("text",): ([5, True, [], {}], "{name} must be a string"),
    ("flag",): ([0, 1, "true", []], "{name} must be a boolean"),
    ("texts",): (["ALL", [], [""], [1], {}], "{name} must"),
    ("venue",): (["A", "ABCDE", "A1", "", "ÄB", 12], "{name} must be 2 to 4 letters"),
    ("usd",): (
        [0, -1_000, "1000", True, float("nan"), float("inf"), [], 0.0, 2**53],
        "{name} parameter is required",
    ),
}


def test_invalid_values_are_refused():
    wrong = []
    for kinds, (values, words) in INVALID.items():
        for row, parameter in parameters_of(*kinds):
            for value in values:
                given_ = [USER, value] if parameter.kind == "addresses" else value
                error = refusal(row, smallest_request(row) | {parameter.name: given_})
                expected = words.format(name=parameter.name, value=value)
                if error is None or not error.message.startswith(expected):
                    wrong.append((row.type, parameter.name, value, error))
    assert wrong == []


def test_whole_numbers_before_2_to_53_are_valid():
    """JSON readers that use floats confuse larger ones with their neighbours."""
    assert check_request(FILLS, {"user": USER, "startTime": 2**53 - 1})["start"] == 2**53 - 1


def test_page_size_outside_limits_is_refused():
    wrong = []
    for row in ROWS:
        if row.page is not None:
            for size in (0, -1, 1, row.page.most, row.page.most + 1):
                request = smallest_request(row) | {"limit": size}
                error = refusal(row, request)
                if 1 <= size <= row.page.most:
                    is_right = check_request(row, request)[row.page.python] == size
                else:
                    is_right = error is not None and f"1 to {row.page.most}" in error.message
                if not is_right:
                    wrong.append((row.type, size, error))
    assert wrong == []


def without(request, name):
    return {key: value for key, value in request.items() if key != name}


ORDER, CANDLES = EXTRA_OPERATIONS["orderStatus"], EXTRA_OPERATIONS["candleSnapshot"]
ONE_SAMPLE = {"coin": "BTC", "amount": 1_000, "startTime": 0}
ONE_CANDLE = {"coin": "BTC", "interval": "1h", "startTime": 0}
SOME_FILLS, SOME_WEEKS = {"user": USER, "startTime": 0}, {"validator": USER, "startTime": 1}
CHECKED = [
    # operation, request, and words of its refusal; or a Python name and the value that is read
    (SLIPPAGE, ONE_SAMPLE | {"coin": ""}, "coin parameter is required"),
    (SLIPPAGE, ONE_SAMPLE | {"amount": 0.5}, f"one of {', '.join(map(str, AMOUNTS))}"),
    (WEEKS, SOME_WEEKS | {"endTime": 0}, "endTime must be at or after startTime"),
    (WEEKS, SOME_WEEKS | {"endTime": 1}, "end", 1),
    (WEEKS, SOME_WEEKS, "end", None),
    (FILLS, SOME_FILLS | {"startTime": 2, "endTime": 1}, "start", 2),
    (FILLS, SOME_FILLS | {"startTime": 2**53}, "Unix milliseconds"),
    (FILLS, SOME_FILLS | {"builder": None}, "builder", None),
    (FILLS, SOME_FILLS | {"builder": False}, "Invalid Ethereum address: False"),
    (BATCH, {"users": []}, "users", []),
    (BATCH, {"users": [USER] * 1000}, "users", [USER] * 1000),
    (BATCH, {"users": [USER] * 1001}, "at most 1,000 entries"),
    (BATCH, {"users": [USER] * 100, "dex": ALL_DEXES}, "users", [USER] * 100),
    (BATCH, {"users": [USER] * 101, "dex": ALL_DEXES}, f"100 entries with {ALL_DEXES}, not 101"),
    (BATCH, {"users": USER}, "users must be an array"),
    (BOOK, {"coin": "BTC", "nSigFigs": 5, "mantissa": 1}, "mantissa", 1),
    (BOOK, {"coin": "BTC", "nSigFigs": 5, "mantissa": 2}, "mantissa", 2),
    (BOOK, {"coin": "BTC", "nSigFigs": 5, "mantissa": 5}, "mantissa", 5),
    (BOOK, {"coin": "BTC", "nSigFigs": 5, "mantissa": 3}, "mantissa must be 1, 2 or 5"),
    (BOOK, {"coin": "BTC", "nSigFigs": 4, "mantissa": 2}, "mantissa needs nSigFigs 5"),
    (BOOK, {"coin": "BTC", "mantissa": 1}, "mantissa needs nSigFigs 5"),
    (BOOK, {"coin": "BTC", "nSigFigs": 2}, "n_sig_figs", 2),
    (BOOK, {"coin": "BTC", "nSigFigs": 1}, "nSigFigs must be from 2 to 5"),
    (BOOK, {"coin": "BTC", "nSigFigs": 6}, "nSigFigs must be from 2 to 5"),
    # An order id is a number or a client id.
    (ORDER, {"user": USER, "oid": 17.0}, "oid", 17),
    (ORDER, {"user": USER, "oid": "0x" + "AB" * 16}, "oid", "0x" + "ab" * 16),
    *[(ORDER, {"user": USER, "oid": oid}, f"order id: {oid}") for oid in ("17", "0x12")],
    *[(ORDER, {"user": USER, "oid": oid}, "oid must be a whole number") for oid in (1.5, True, [])],
    # Candles nest their parameters.
    *[(CANDLES, {"req": ONE_CANDLE | {"interval": each}}, "interval", each) for each in INTERVALS],
    (CANDLES, {}, "coin parameter is required"),
    (CANDLES, {"req": 5}, "req must be an object, not 5"),
    (CANDLES, {"req": ONE_CANDLE | {"interval": "2m"}}, f"{', '.join(INTERVALS)}, not 2m"),
    (CANDLES, {"req": without(ONE_CANDLE, "startTime")}, "startTime parameter is required"),
]


def test_requests_are_read_or_refused():
    wrong = []
    for row, request, *expected in CHECKED:
        error = refusal(row, request)
        if len(expected) == 1:
            is_right = error is not None and expected[0] in error.message
        else:
            name, value = expected
            is_right = error is None and check_request(row, request)[name] == value
        if not is_right:
            wrong.append((row.type, request, expected, error))
    assert wrong == []


@pytest.mark.parametrize(
    ("row", "parameters", "hint"),
    [
        (OPERATIONS["userFills"], {"user": "0x12"}, "0x and 40 hex digits"),
        (OPERATIONS["userFills"], {"user": [USER, USER]}, "tk.many"),
        (OPERATIONS["userFills"], {"user": USER, "max_rows": 0}, "limit is the argument max_rows"),
        (FILLS, {"user": USER}, "startTime is the argument start"),
        (FILLS, {"user": USER, "start": "x"}, "startTime is the argument start"),
        (OPERATIONS["userFills"], {}, ""),
        (BATCH, {"users": 5}, "users as a list"),
        (OPERATIONS["perpTwapSnapshots"], {"market_names": {}}, "market_names as a list"),
        (OPERATIONS["perpTwapSnapshots"], {"market_names": ["ALL", ""]}, "Entry 2 is "),
        (BATCH, {"users": [USER + "0" * n for n in range(1001)]}, "1,001"),
        (SLIPPAGE, {"coin": "BTC", "start": 0, "amount": "x"}, "'x'"),
        (SLIPPAGE, {"coin": 5, "start": 0, "amount": 1_000}, "not 5"),
        (ORDER, {"user": USER, "oid": "17"}, "0x and 32 hex digits"),
        (FILLS, {"user": USER, "cursor": "1"}, "<milliseconds>_<tx_index>"),
        (PAYMENTS, {"builder": USER, "cursor": "1"}, "<milliseconds>_<user>_<coin>"),
    ],
)
def test_refusals_have_hints(row, parameters, hint):
    error = refusal(row, request_body(row, parameters))
    assert hint in error.hint
    assert bool(hint) == bool(error.hint)
    assert str(error).endswith(error.hint or error.message)


# -- Cursors ----------------------------------------------------------------------------------


@settings(max_examples=100)
@given(data=st.data(), row=st.sampled_from(PAGED))
def test_cursors_round_trip(data, row):
    key = data.draw(cursor_keys(row))
    assert parse_cursor(row, make_cursor(key)) == key


def test_cursor_replaces_start():
    for row in PAGED:
        cursor = "1756684800000_" + (f"{USER}_BTC" if len(row.key) == 3 else "7")
        request = smallest_request(row) | {"cursor": cursor, "startTime": "no time"}
        checked = check_request(row, request)
        assert (checked["cursor"], checked["start"]) == (cursor, None)
        del request["cursor"], request["startTime"]
        error = refusal(row, request)
        assert error.message == "startTime parameter is required (or cursor)"


def test_malformed_cursors_are_refused():
    cursors = [
        *("", "_", "1", "1_", "_1", "a_1", "-1_1", "1.5_1", "1_x", "1__2", "\u0661_1", "1_2_3"),
        *("9" * 30 + "_1", "9" * 17 + "_1", 7, []),
    ]
    payments = ["1_2", f"1_{USER}", f"1_{USER}_", "1_0x12_BTC", f"x_{USER}_BTC", f"1__{USER}"]
    wrong = []
    for row in PAGED:
        for cursor in [*cursors, *(payments if row is PAYMENTS else [])]:
            error = refusal(row, smallest_request(row) | {"cursor": cursor})
            if error is None or error.message != f"Invalid cursor: {cursor}":
                wrong.append((row.type, cursor, error))
    assert wrong == []
    assert parse_cursor(PAYMENTS, f"1_{USER}_flx:A_B") == (1, USER, "flx:A_B")


def test_cursor_after_year_9999_is_refused():
    assert parse_cursor(FILLS, "253402300799999_3") == (253_402_300_799_999, 3)
    with pytest.raises(BadRequest, match=r"1757000000000000 ms .* year 9999"):
        parse_cursor(FILLS, "1757000000000000_3")
    assert refusal(FILLS, "9" * 17 + "_3", parse_cursor).hint.startswith("A cursor")


@pytest.mark.parametrize("length", [80, 81])
def test_long_values_are_echoed_shortened(length):
    echoed = "x" * 80 + ("…" if length > 80 else "")
    assert refusal(FILLS, "x" * length, parse_cursor).message == f"Invalid cursor: {echoed}"


# -- Bodies -----------------------------------------------------------------------------------


def test_request_body_refuses_unknown_names():
    with pytest.raises(TypeError, match="delegations has no parameter usr; it has user"):
        request_body(OPERATIONS["delegations"], {"usr": USER})
    with pytest.raises(TypeError, match="no parameter dex; it has none"):
        request_body(OPERATIONS["perpDeployAuctionStatus"], {"dex": ""})


TOKENS = ("accountValueSnapshots", "collateral_tokens")
MARKETS = ("perpTwapSnapshots", "market_names")
ALIASES = ("", "native", "main", "main_dex", "hyperliquid")
BODIES = [
    # operation, parameter, values, and what is sent for each of them
    ("batchClearinghouseStates", "users", [(USER,), USER, [USER, "0x" + "AB" * 20]], [USER]),
    (*MARKETS, ["ALL:ALL_DEXES"], ["ALL:ALL_DEXES"]),
    (*TOKENS, ["USDC", ["USDC", "USDC"]], ["USDC"]),
    (*TOKENS, [["native:USDC", "USDC", "main:USDC"]], ["hyperliquid:USDC", "USDC"]),
    (*TOKENS, [["flx:USDH", "USDC", "ALL"]], ["flx:USDH", "USDC", "ALL"]),
    (*MARKETS, [["ALL:flx", "flx:TSLA", "BTC", "BTC"]], ["ALL:flx", "flx:TSLA", "BTC"]),
    ("currentDepth", "dex", ["flx"], "flx"),
    # The native dex has another name in each place.
    *[
        (type_, name, [form.format(alias) for alias in ALIASES], sent)
        for type_, name, form, sent in [
            ("currentDepth", "dex", "{}", "hyperliquid"),
            ("meta", "dex", "{}", ""),
            ("perpDexLimits", "dex", "{}", ""),
            ("batchClearinghouseStates", "dex", "{}", ""),
            ("userFills", "dex", "{}", "main_dex"),
            ("slippageHistory", "coin", "{}:BTC", "BTC"),
            (*TOKENS, "{}:USDC", ["hyperliquid:USDC"]),
            (*MARKETS, "ALL:{}", ["ALL"]),
            (*MARKETS, "{}:BTC", ["BTC"]),
        ]
    ],
]


def test_request_body_has_one_form():
    wrong = []
    for type_, name, values, sent in BODIES:
        row = OPERATIONS[type_]
        for value in values:
            body = request_body(row, smallest_request(row, "python") | {name: value})
            if body[name] != sent:
                wrong.append((type_, name, value, body))
    assert wrong == []


def test_candle_request_nests_its_parameters():
    asked = {"coin": "BTC", "interval": "1h", "start": 5}
    assert request_body(CANDLES, asked) == {
        "type": "candleSnapshot",
        "req": {"coin": "BTC", "interval": "1h", "startTime": 5},
    }


# -- Costs and filters ------------------------------------------------------------------------


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
    request = {"users": [USER] * 3, "dex": ALL_DEXES}
    assert request_points(OPERATIONS["userFills"], request) == 10
    assert request_points(BATCH, request) == 6 * 20  # until an answer shows the number of dexes


def test_costs_are_described():
    words = [describe_cost(row) for row in (OPERATIONS["perpTwapSnapshots"], BATCH)]
    assert [int(text) for text in words[0].split() if text.isdigit()] == [2, 5, 10]
    assert [int(text) for text in words[1].split() if text.isdigit()] == [2, 100]


def test_filters_change_rows_of_answer():
    given_ = {"user": USER, "start": 0, "aggregate_by_time": False, "dex": "flx", "venue": "ab"}
    assert sorted(filters_of(FILLS, given_)) == ["dex", "venue"]
    assert filters_of(FILLS, {"aggregate_by_time": True}) == ["aggregate_by_time"]
