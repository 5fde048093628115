"""The operations table agrees with each clause of the specification."""

import re
from pathlib import Path

import pytest

import toolkit.fetch  # noqa: F401 - fills FUNCTIONS
from toolkit.contract import dexes, order_states
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.requests import AMOUNTS
from toolkit.fetch.registry import FUNCTIONS
from toolkit.service.answers import HANDLERS

ROOT = Path(__file__).parents[2]

EVERY = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=list(OPERATIONS))
AUCTIONS = ("spotPairDeployAuctionStatus", "perpDeployAuctionStatus")

# Known elsewhere or decided (clarifications, "Costs and quotas").
POINTS_KNOWN = {
    "userFills": 10,
    "userFillsByTime": 10,
    "historicalOrders": 10,
    "userNonFundingLedgerUpdates": 10,
    "builderOrdersByTime": 5,
    "builderApprovedFillsByTime": 100,
    "builderApprovedFundingByTime": 100,
}

# Request fields whose sentence stands with another operation ("same fields", "as above"), or
# in the clarifications alone.
SAME_FIELDS = {"builderApprovedFundingByTime": "builderApprovedFillsByTime"}
CLARIFIED = {"metaAndAssetCtxs": {"dex"}}


def operation_names(text):
    return re.findall(r"`([^`]+)`", text)


def page_limits(specification):
    (table,) = specification.tables(specification.chapter("Limits"))
    return {(what, name): value for what, to, value in table for name in operation_names(to)}


def test_operations_follow_specification(specification):
    chapter = specification.chapter("Endpoints")
    auctions = [operation_names(cells[0])[0] for cells in specification.tables(chapter)[0]]
    others = re.findall(r"^\*\*(\w+)\*\*", chapter, re.MULTILINE)
    assert list(OPERATIONS) == auctions + others


@EVERY
def test_function_name_is_snake_case(operation):
    spelled = operation.function.split("_")
    assert spelled[0] + "".join(word.capitalize() for word in spelled[1:]) == operation.type


def test_add_ons_follow_specification(specification):
    sentence = re.search(r"^6\. Add-on endpoints.*$", specification.text, re.MULTILINE)
    assert sentence
    assert {operation.type for operation in OPERATIONS.values() if operation.add_on} == set(
        operation_names(sentence[0])
    )
    marked = re.findall(r"^\*\*(\w+)\*\* \(add-on", specification.text, re.MULTILINE)
    assert set(operation_names(sentence[0])) == set(marked)


def test_own_operations_follow_specification(specification):
    sentence = re.search(r"^7\. Endpoints that exist only.*$", specification.text, re.MULTILINE)
    assert sentence
    assert {operation.type for operation in OPERATIONS.values() if operation.own} == set(
        operation_names(sentence[0])
    )


@EVERY
def test_points_follow_limits_table(operation, specification):
    table = page_limits(specification)
    stated = table.get(("points per request", operation.type))
    weight = table.get(("request weight", operation.type))
    if stated or weight:
        number = re.search(r"\d+", stated or weight or "")
        assert number
        assert operation.points == int(number[0])
    else:
        assert operation.points == POINTS_KNOWN.get(operation.type, 2)


def test_points_follow_endpoint_sections(specification):
    beside = re.findall(r"^\*\*(\w+)\*\* \((?:add-on, )?(\d+) points\)", specification.text, re.M)
    assert beside
    assert {name: OPERATIONS[name].points for name, _ in beside} == {
        name: int(points) for name, points in beside
    }


@EVERY
def test_page_sizes_follow_specification(operation, specification):
    text = page_limits(specification).get(("page size", operation.type))
    page = operation.page
    assert (page is None) == (text is None)
    if page is None or text is None:
        return
    both = re.fullmatch(r"default and max (\d+)", text)
    default = both or re.match(r"default (\d+)", text)
    most = both or re.search(r"max (\d+)", text)
    assert default
    assert page.default == int(default[1])
    # Where the specification has no maximum, the clarifications decide on 2,000.
    assert page.most == (int(most[1]) if most else 2000)
    assert page.least == 1


def test_most_users_follow_specification(specification):
    text = page_limits(specification)["max users per request", "batchClearinghouseStates"]
    assert text == "1000; 100 when `dex` is `ALL_DEXES`"
    users = OPERATIONS["batchClearinghouseStates"].by_wire["users"]
    assert (users.kind, users.most, users.required) == ("addresses", 1000, True)
    assert dexes.ALL_DEXES == "ALL_DEXES"


@EVERY
def test_request_fields_follow_specification(operation, specification):
    ours = set(operation.by_wire)
    if operation.type in AUCTIONS:
        assert ours == set()
        return
    text = specification.endpoint(operation.type).split("\n\nReturns")[0].split("\n\nBinary")[0]
    if named := SAME_FIELDS.get(operation.type):
        assert "same fields" in text
        assert ours == set(OPERATIONS[named].by_wire)
        return
    if operation.type in CLARIFIED:
        assert ours == CLARIFIED[operation.type]
        return
    assert {name for name in ours if not re.search(rf"\b{name}\b", text)} == set()
    stated = set(re.findall(r"(?:; |, )`(\w+)` \(", text))
    stated |= {cells[0] for table in specification.tables(text) for cells in table}
    assert stated - {"type"} <= ours


@pytest.mark.parametrize("type_", ["currentDepth", "slippageHistory"])
def test_request_fields_follow_tables_in_order(type_, specification):
    (table,) = specification.tables(specification.endpoint(type_))
    operation = OPERATIONS[type_]
    rows = [cells for cells in table if cells[0] != "type"]
    assert [parameter.name for parameter in operation.parameters] == [cells[0] for cells in rows]
    assert [parameter.required for parameter in operation.parameters] == [
        cells[2] == "yes" for cells in rows
    ]


REQUIRED = {
    "slippageHistory": {"coin", "amount", "startTime"},
    "perpDexLimits": {"dex"},
    "accountValueSnapshots": {"collateral_tokens"},
    "perpTwapSnapshots": {"market_names"},
    "userFills": {"user"},
    "userFillsByTime": {"user", "startTime"},
    "builderApprovedFillsByTime": {"builder", "startTime"},
    "builderApprovedFundingByTime": {"builder", "startTime"},
    "builderOrdersByTime": {"builder", "startTime"},
    "historicalOrders": {"user"},
    "userNonFundingLedgerUpdates": {"user"},
    "batchClearinghouseStates": {"users"},
    "borrowLendUserState": {"user"},
    "delegations": {"user"},
    "validatorAprHistory": {"validator"},
}


@EVERY
def test_required_fields_equal_expected(operation):
    required = {parameter.name for parameter in operation.parameters if parameter.required}
    assert required == REQUIRED.get(operation.type, set())


@EVERY
def test_cursor_replaces_start(operation):
    instead = {
        parameter.name: parameter.unless for parameter in operation.parameters if parameter.unless
    }
    paged = operation.paging in ("cursor", "open cursor")
    assert instead == ({"startTime": "cursor"} if paged else {})
    assert ("cursor" in operation.by_wire) == paged


@EVERY
def test_cursor_forms_follow_specification(operation, specification):
    text = "" if operation.type in AUCTIONS else specification.endpoint(operation.type)
    forms = re.findall(r"`(<\w+>_[^`]+)`", text)
    if operation.paging not in ("cursor", "open cursor"):
        assert not forms
        return
    wire = {
        "time": "time",
        "tx_index": "txIndex",
        "status_timestamp": "statusTimestamp",
        "user": "user",
        "delta.coin": "delta.coin",
    }
    assert "_".join(f"<{wire[path]}>" for path in operation.key) in forms


@EVERY
def test_dex_default_is_native_or_none(operation):
    dex = operation.by_wire.get("dex")
    if dex is None:
        return
    of_one_dex = operation.type in ("meta", "metaAndAssetCtxs", "batchClearinghouseStates")
    assert dex.default == ("" if of_one_dex else None)


def test_first_days_follow_specification(specification):
    chapter = specification.chapter("Limits")
    fills = re.search(r"Fills: complete from (\d\d)-(\d\d)-(\d{4})", chapter)
    assert fills
    first_fill = f"{fills[3]}-{fills[2]}-{fills[1]}"
    assert "Orders (`builderOrdersByTime`): from 7 August 2025" in chapter
    assert "`historicalOrders`: from 7 Aug 2025" in chapter
    assert "`validatorAprHistory`: from 1 August 2025" in chapter
    since = {
        operation.type: operation.since for operation in OPERATIONS.values() if operation.since
    }
    # Known of the live service, not of the specification: docs/live_service.md, section 8.
    assert since.pop("userNonFundingLedgerUpdates") == "2025-07-28"
    assert since == {
        "userFills": first_fill,
        "userFillsByTime": first_fill,
        "builderApprovedFillsByTime": first_fill,
        "builderOrdersByTime": "2025-08-07",
        "historicalOrders": "2025-08-07",
        "validatorAprHistory": "2025-08-01",
    }


def test_latest_operations_follow_specification(specification):
    latest = {
        operation
        for operation in OPERATIONS
        if operation not in AUCTIONS and "Returns the latest" in specification.endpoint(operation)
    }
    assert {operation.type for operation in OPERATIONS.values() if operation.latest} == latest


def test_binary_operations_follow_specification(specification):
    chapter = specification.section("Snapshot endpoints (compressed binary)")
    binary = {operation.type for operation in OPERATIONS.values() if operation.binary}
    assert binary == {"accountValueSnapshots", "perpTwapSnapshots"}
    assert all(name in chapter for name in binary)


def test_omitted_fields_follow_specification(specification):
    fills = {
        operation.type: set(operation.tables[0].omits)
        for operation in OPERATIONS.values()
        if operation.type.endswith(("Fills", "FillsByTime"))
    }
    assert fills == {
        "userFills": {"venue", "user"},
        "userFillsByTime": {"builder", "user"},
        "builderApprovedFillsByTime": {"venue"},
    }
    orders = {
        operation.type: set(operation.tables[0].omits)
        for operation in OPERATIONS.values()
        if operation.topic == "orders"
    }
    assert orders == {"builderOrdersByTime": {"builder"}, "historicalOrders": {"user"}}
    text = specification.section("Fill record") + specification.section("Order status record")
    for sentence in (
        "returned by `userFills` and `builderApprovedFillsByTime`",
        "returned by `userFillsByTime` only",
        "`builderApprovedFillsByTime` only: the user",
        "`builderOrdersByTime` only: user",
        "`historicalOrders` only: builder",
    ):
        assert sentence in text


def test_order_states_follow_specification(specification):
    (table,) = specification.tables(specification.chapter("States and transitions"))
    stated = {group.lower(): tuple(operation_names(values)) for group, values in table}
    assert stated == order_states.GROUPS


def test_slippage_amounts_follow_specification(specification):
    text = specification.endpoint("slippageHistory")
    sizes = re.search(r"supported sizes ([^|]+?) \|", text)
    assert sizes
    factor = {"K": 1_000, "M": 1_000_000}
    assert tuple(int(part[:-1]) * factor[part[-1]] for part in sizes[1].split(", ")) == AMOUNTS


def test_native_dex_names_follow_specification(specification):
    assert f"(native dex key `{dexes.NATIVE_NAMES['states']}`)" in specification.text
    assert f"or `{dexes.NATIVE_NAMES['fills']}`" in specification.text
    assert "empty string selects the native perp dex" in specification.text
    assert dexes.NATIVE_NAMES["request"] == ""


@pytest.mark.parametrize("type", OPERATIONS)
def test_every_operation_is_complete(type):
    """Every operation has a record, a function, a handler, a sample and a page (CONTRIBUTING)."""
    operation = OPERATIONS[type]
    assert operation.tables
    assert type in FUNCTIONS
    assert type in HANDLERS
    assert (ROOT / "data" / "samples" / f"{type}.json").exists()
    page = (ROOT / "docs" / "reference" / f"{operation.topic}.md").read_text()
    assert f"### Sample of {operation.function}\n" in page
