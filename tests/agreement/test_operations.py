"""The operations table agrees with each clause of the specification."""

import re
from pathlib import Path

import toolkit.fetch  # noqa: F401 - fills FUNCTIONS
from toolkit.contract import dexes, order_states
from toolkit.contract.operations import FETCHED, OPERATIONS
from toolkit.contract.requests import AMOUNTS
from toolkit.fetch.registry import FUNCTIONS
from toolkit.service.answers import HANDLERS

ROOT = Path(__file__).parents[2]
AUCTIONS = ("spotPairDeployAuctionStatus", "perpDeployAuctionStatus")

# Known elsewhere or decided (clarifications, "Costs and quotas"); else 2.
POINTS_KNOWN = {
    "userFills": 10,
    "userFillsByTime": 10,
    "historicalOrders": 10,
    "userNonFundingLedgerUpdates": 10,
    "builderOrdersByTime": 5,
    "builderApprovedFillsByTime": 100,
    "builderApprovedFundingByTime": 100,
}
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
WIRE = {"tx_index": "txIndex", "status_timestamp": "statusTimestamp"}


def operation_names(text):
    return re.findall(r"`([^`]+)`", text)


def types_with(name):
    """Return the types of the operations that have a flag."""
    return {operation.type for operation in OPERATIONS.values() if getattr(operation, name)}


def page_limits(specification):
    (table,) = specification.tables(specification.chapter("Limits"))
    return {(what, name): value for what, to, value in table for name in operation_names(to)}


def test_operations_follow_specification(specification):
    chapter = specification.chapter("Endpoints")
    auctions = [operation_names(cells[0])[0] for cells in specification.tables(chapter)[0]]
    others = re.findall(r"^\*\*(\w+)\*\*", chapter, re.MULTILINE)
    assert list(OPERATIONS) == auctions + others


def test_function_names_are_snake_case():
    spelled = {
        row.type: re.sub(r"_(\w)", lambda found: found[1].upper(), row.function)
        for row in OPERATIONS.values()
    }
    assert list(spelled) == list(spelled.values())


def test_flags_follow_specification(specification):
    add_ons = re.search(r"^6\. Add-on endpoints.*$", specification.text, re.MULTILINE)
    marked = re.findall(r"^\*\*(\w+)\*\* \(add-on", specification.text, re.MULTILINE)
    assert types_with("add_on") == set(operation_names(add_ons[0])) == set(marked)
    own = re.search(r"^7\. Endpoints that exist only.*$", specification.text, re.MULTILINE)
    assert types_with("own") == set(operation_names(own[0]))
    asked = OPERATIONS.keys() - AUCTIONS
    assert types_with("latest") == {
        name for name in asked if "Returns the latest" in specification.endpoint(name)
    }
    chapter = specification.section("Snapshot endpoints (compressed binary)")
    assert types_with("binary") == {"accountValueSnapshots", "perpTwapSnapshots"}
    assert all(name in chapter for name in types_with("binary"))


def test_points_follow_specification(specification):
    table = page_limits(specification)
    beside = re.findall(r"^\*\*(\w+)\*\* \((?:add-on, )?(\d+) points\)", specification.text, re.M)
    assert beside
    stated = POINTS_KNOWN | {
        name: int(re.search(r"\d+", text)[0])
        for (what, name), text in table.items()
        if what in ("points per request", "request weight")
    }
    points = {row.type: row.points for row in OPERATIONS.values()}
    assert points == dict.fromkeys(OPERATIONS, 2) | stated
    assert {name: points[name] for name, _ in beside} == {name: int(text) for name, text in beside}


def test_page_sizes_follow_specification(specification):
    for operation in OPERATIONS.values():
        text = page_limits(specification).get(("page size", operation.type))
        page = operation.page
        assert (page is None) == (text is None), operation.type
        if page is None:
            continue
        both = re.fullmatch(r"default and max (\d+)", text)
        default = both or re.match(r"default (\d+)", text)
        most = both or re.search(r"max (\d+)", text)
        # Where the specification has no maximum, the clarifications decide on 2,000.
        expected = (1, int(default[1]), int(most[1]) if most else 2000)
        assert (page.least, page.default, page.most) == expected, operation.type


def test_most_users_follow_specification(specification):
    text = page_limits(specification)["max users per request", "batchClearinghouseStates"]
    assert text == "1000; 100 when `dex` is `ALL_DEXES`"
    users = OPERATIONS["batchClearinghouseStates"].by_wire["users"]
    assert (users.kind, users.most, users.required) == ("addresses", 1000, True)
    assert dexes.ALL_DEXES == "ALL_DEXES"


def test_request_fields_follow_specification(specification):
    fields = {name: set(row.by_wire) for name, row in OPERATIONS.items()}
    assert [fields.pop(name) for name in AUCTIONS] == [set(), set()]
    # "same fields" as the operation before; and fields that only the clarifications name.
    same = fields.pop("builderApprovedFundingByTime")
    assert "same fields" in specification.endpoint("builderApprovedFundingByTime")
    assert same == fields["builderApprovedFillsByTime"]
    assert fields.pop("metaAndAssetCtxs") == {"dex"}
    for name, ours in fields.items():
        text = specification.endpoint(name).split("\n\nReturns")[0].split("\n\nBinary")[0]
        assert [field for field in ours if not re.search(rf"\b{field}\b", text)] == []
        stated = set(re.findall(r"(?:; |, )`(\w+)` \(", text))
        stated |= {cells[0] for table in specification.tables(text) for cells in table}
        assert stated - {"type"} <= ours, name


def test_request_fields_follow_tables_in_order(specification):
    for type_ in ("currentDepth", "slippageHistory"):
        (table,) = specification.tables(specification.endpoint(type_))
        rows = [(cells[0], cells[2] == "yes") for cells in table if cells[0] != "type"]
        ours = [(item.name, item.required) for item in OPERATIONS[type_].parameters]
        assert ours == rows


def test_required_fields_equal_expected():
    required = {
        row.type: {item.name for item in row.parameters if item.required}
        for row in OPERATIONS.values()
    }
    assert required == {name: set() for name in OPERATIONS} | REQUIRED


def test_cursors_follow_specification(specification):
    for operation in OPERATIONS.values():
        text = "" if operation.type in AUCTIONS else specification.endpoint(operation.type)
        forms = re.findall(r"`(<\w+>_[^`]+)`", text)
        instead = {item.name: item.unless for item in operation.parameters if item.unless}
        if operation.paging in ("cursor", "open cursor"):
            assert instead == {"startTime": "cursor"}
            assert "cursor" in operation.by_wire
            assert "_".join(f"<{WIRE.get(path, path)}>" for path in operation.key) in forms
        else:
            assert (instead, forms, "cursor" in operation.by_wire) == ({}, [], False)


def test_dex_default_is_native_or_none():
    of_one_dex = {"meta", "metaAndAssetCtxs", "batchClearinghouseStates"}
    wrong = [
        row.type
        for row in OPERATIONS.values()
        if (dex := row.by_wire.get("dex"))
        and dex.default != ("" if row.type in of_one_dex else None)
    ]
    assert wrong == []


def test_first_days_follow_specification(specification):
    chapter = specification.chapter("Limits")
    fills = re.search(r"Fills: complete from (\d\d)-(\d\d)-(\d{4})", chapter)
    first_fill = f"{fills[3]}-{fills[2]}-{fills[1]}"
    assert "Orders (`builderOrdersByTime`): from 7 August 2025" in chapter
    assert "`historicalOrders`: from 7 Aug 2025" in chapter
    assert "`validatorAprHistory`: from 1 August 2025" in chapter
    assert {row.type: row.since for row in OPERATIONS.values() if row.since} == {
        "userFills": first_fill,
        "userFillsByTime": first_fill,
        "builderApprovedFillsByTime": first_fill,
        "builderOrdersByTime": "2025-08-07",
        "historicalOrders": "2025-08-07",
        "validatorAprHistory": "2025-08-01",
        # Known of the live service, not of the specification: docs/live_service.md, section 8.
        "userNonFundingLedgerUpdates": "2025-07-28",
    }


def test_omitted_fields_follow_specification(specification):
    omitted = {
        row.type: set(row.tables[0].omits) for row in OPERATIONS.values() if row.tables[0].omits
    }
    assert omitted == {
        "userFills": {"venue", "user"},
        "userFillsByTime": {"builder", "user"},
        "builderApprovedFillsByTime": {"venue"},
        "builderOrdersByTime": {"builder"},
        "historicalOrders": {"user"},
    }
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
    factor = {"K": 1_000, "M": 1_000_000}
    assert tuple(int(part[:-1]) * factor[part[-1]] for part in sizes[1].split(", ")) == AMOUNTS


def test_native_dex_names_follow_specification(specification):
    assert f"(native dex key `{dexes.NATIVE_NAMES['states']}`)" in specification.text
    assert f"or `{dexes.NATIVE_NAMES['fills']}`" in specification.text
    assert "empty string selects the native perp dex" in specification.text
    assert dexes.NATIVE_NAMES["request"] == ""


def test_every_operation_is_complete():
    """Every operation has a record, a function, a handler, a sample and a page (CONTRIBUTING)."""
    assert FETCHED.keys() <= FUNCTIONS.keys() & HANDLERS.keys()
    samples = {path.stem for path in (ROOT / "data" / "samples").iterdir()}
    assert samples == FETCHED.keys()
    for operation in FETCHED.values():
        assert operation.tables
        page = (ROOT / "docs" / "reference" / f"{operation.topic}.md").read_text()
        assert f"### Sample of {operation.function}\n" in page
