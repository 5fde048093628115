"""Every field except the keys may be missing, in every operation.

docs/live_service.md, section 1.
"""

import copy
import itertools
import json
import warnings
from dataclasses import dataclass, replace
from typing import Any, get_args, get_origin

import msgpack
import msgspec
import pandas as pd
import pytest
import zstandard

from toolkit.contract import records as r
from toolkit.contract.answers import answer_rows, answer_type, decode
from toolkit.contract.dexes import ALL_DEXES
from toolkit.contract.field_deviations import forget_deviations
from toolkit.contract.fields import record_columns, record_fields, table_columns
from toolkit.contract.operations import EXTRA_OPERATIONS, OPERATIONS, VIEWS
from toolkit.errors import AnswerInvalid, MissingField, UnknownField
from toolkit.frames import Collector

FORMS = ("float", "exact", "text")
SAMPLES = {str: "x", int: 3, bool: True, float: 1.5, object: "x", Any: "x"}

CASES = {
    **{name: (row, {}) for name, row in OPERATIONS.items() if not row.binary},
    **{name: (row, {}) for name, row in VIEWS.items()},
    **{name: (row, {}) for name, row in EXTRA_OPERATIONS.items() if row.tables},
    "batchClearinghouseStates, all dexes": (
        OPERATIONS["batchClearinghouseStates"],
        {"dex": ALL_DEXES},
    ),
}
EVERY = pytest.mark.parametrize("case", CASES)


@dataclass(frozen=True)
class Place:
    """A field of an answer: its place, and whether it is a key."""

    path: tuple
    is_key: bool
    may_be_absent: bool = True
    is_beyond: bool = False


def full_value(annotation, *, number=False, iso=False, depth=0):
    """Return a value of a type with every field and two entries in each list."""
    if isinstance(annotation, type) and issubclass(annotation, r.Record):
        return full_record(annotation, depth)
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is list:
        return [full_value(parts[0], number=number, depth=depth) for _ in range(2)]
    if origin is tuple:
        return [full_value(part, number=number, depth=depth) for part in parts]
    if origin is dict:
        return {name: full_value(parts[1], number=True, depth=depth) for name in ("one", "two")}
    if parts:
        kept = [part for part in parts if part not in (type(None), msgspec.UnsetType)]
        return full_value(kept[0], number=number, iso=iso, depth=depth)
    text = "1.5" if number else "2026-01-02T03:04:05" if iso else "x"
    return text if annotation is str else SAMPLES[annotation]


def full_record(record, depth):
    result = {}
    for field in record_fields(record):
        if field.path == "children" and depth:
            result[field.wire] = []
            continue
        family = field.kind.family
        number = family in ("number", "nested", "rows")
        nested = depth + (field.path == "children")
        result[field.wire] = full_value(
            field.type, number=number, iso=family == "iso", depth=nested
        )
    return result


def field_places(annotation, path, depth=0):
    """Yield the fields of a full value of a type."""
    if isinstance(annotation, type) and issubclass(annotation, r.Record):
        for field in record_fields(annotation):
            here = (*path, field.wire)
            yield Place(here, field.key, is_beyond=field.may_be_unreadable)
            if not (field.path == "children" and depth):
                nested = depth + (field.path == "children")
                inside = field_places(field.type, here, nested)
                # Cells with parts of their own have no keys.
                is_cell = field.kind.family == "nested" and get_origin(field.type) is not None
                for item in inside:
                    yield replace(item, is_key=item.is_key and not is_cell)
        return
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is list:
        yield from field_places(parts[0], (*path, 1), depth)
    elif origin is tuple:
        for at, part in enumerate(parts):
            if at and not is_joined_by_position(parts):
                yield Place((*path, at), is_key=False, may_be_absent=False)
            yield from field_places(part, (*path, at), depth)
    elif origin is dict:
        yield Place((*path, "two"), is_key=False, may_be_absent=False)
        yield from field_places(parts[1], (*path, "two"), depth)
    else:
        for part in parts:
            yield from field_places(part, path, depth)


def full_answer(operation, parameters):
    """Return an answer with every field that the operation has."""
    result = full_value(answer_type(operation, parameters))
    for name in operation.tables[0].omits:
        for row in result if isinstance(result, list) else [result]:
            words = name.split("_")
            row.pop(words[0] + "".join(map(str.title, words[1:])), None)
    return result


def is_joined_by_position(parts):
    """Return whether the parts are lists that are joined by position, as ``[meta, contexts]``."""
    return get_origin(parts[1]) is list


def drop_field(value, place, *, null):
    """Return a copy of a value without one field, or with null in its place."""
    changed = copy.deepcopy(value)
    inner = changed
    for step in place.path[:-1]:
        inner = inner[step]
    if null:
        inner[place.path[-1]] = None
    else:
        del inner[place.path[-1]]
    return changed


def replace_value(value, path, new):
    """Return a copy of a value with another value at one place."""
    changed = copy.deepcopy(value)
    inner = changed
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = new
    return changed


def decoded_frames(operation, parameters, answer, numbers, extra="drop"):
    """Return the frames of an answer that was encoded and decoded."""
    content = json.dumps(answer).encode()
    read = decode(operation, 200, {}, content, numbers=numbers, parameters=parameters)
    collector = Collector(operation, numbers, extra)
    collector.add(answer_rows(operation, read, parameters))
    return collector.frames({})


def frame_columns(made):
    return [{str(name): str(kind) for name, kind in row.dtypes.items()} for row in made]


@EVERY
def test_every_field_may_be_missing(case):
    """Null and absent are the same; floats at every place, another form at every third."""
    operation, parameters = CASES[case]
    answer = full_answer(operation, parameters)
    all_there = {
        form: frame_columns(decoded_frames(operation, parameters, answer, form)) for form in FORMS
    }
    others = itertools.cycle(("exact", None, "text", None))
    for place in field_places(answer_type(operation, parameters), ()):
        if place.path[-1] in operation.tables[0].omits:
            continue
        for null in (True, False) if place.may_be_absent else (True,):
            changed = drop_field(answer, place, null=null)
            for form in filter(None, ("float", next(others))):
                forget_deviations()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", MissingField)
                    if not place.is_key:
                        result = decoded_frames(operation, parameters, changed, form)
                        assert frame_columns(result) == all_there[form], place
                        continue
                    with pytest.raises(AnswerInvalid) as caught:
                        decoded_frames(operation, parameters, changed, form)
                    assert caught.value.operation == operation.type
                    in_list = any(isinstance(step, int) for step in place.path)
                    assert (caught.value.row is not None) == in_list, place


ODD = ["abc", "nan", "", -7, 1.5, True, [], ["x"], [[1]], {}, {"a": {"b": 1}}, "\u0661"]
"""Values that most fields cannot have."""


HAVE_BEYOND = [
    name
    for name, (operation, parameters) in CASES.items()
    if name not in EXTRA_OPERATIONS
    and any(place.is_beyond for place in field_places(answer_type(operation, parameters), ()))
]


@pytest.mark.parametrize("case", HAVE_BEYOND)
def test_invalid_unspecified_value_is_missing(case):
    """A value of a field beyond the specification never costs the other columns. Section 1."""
    operation, parameters = CASES[case]
    answer = full_answer(operation, parameters)
    usual = {form: decoded_frames(operation, parameters, answer, form) for form in FORMS}
    places = field_places(answer_type(operation, parameters), ())
    forms = zip(ODD, itertools.cycle(FORMS), strict=False)
    for place, (odd, form) in itertools.product(places, forms):
        if not place.is_beyond or place.path[-1] in operation.tables[0].omits:
            continue
        forget_deviations()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MissingField)
            warnings.simplefilter("ignore", UnknownField)
            changed = replace_value(answer, place.path, odd)
            result = decoded_frames(operation, parameters, changed, form)
        assert frame_columns(result) == frame_columns(usual[form]), (place, odd)
        for table, item, other in zip(operation.tables, result, usual[form], strict=True):
            kept = [
                c.name for c in table_columns(table) if not set(c.wire.split(".")) & set(place.path)
            ]
            assert len(item) != len(other) or item[kept].equals(other[kept]), (place, odd)


def test_invalid_unspecified_value_warns_once():
    meta = full_answer(OPERATIONS["meta"], {})
    meta["universe"][0]["marginTableId"] = meta["universe"][1]["marginTableId"] = "many"
    forget_deviations()
    with pytest.warns(MissingField, match="universe.marginTableId") as warned:
        (result,) = decoded_frames(OPERATIONS["meta"], {}, meta, "float")
    assert len(warned) == 1
    assert result["margin_table_id"].isna().all()
    meta["universe"][1]["marginTableId"] = 7
    (result,) = decoded_frames(OPERATIONS["meta"], {}, meta, "exact")
    assert result["margin_table_id"].fillna(-1).tolist() == [-1, 7]


def test_unreadable_tables_are_missing():
    """A table without one of its tiers would have wrong margins, and an odd pair is no table."""
    tiers = [{"lowerBound": "0.0", "maxLeverage": 50}, 5]
    odd = [[50, {"description": "", "marginTiers": tiers}], [None, {}], [51], "x", None, [51, 3]]
    for pair, form in zip(odd, itertools.cycle(FORMS), strict=False):
        meta = {"universe": [], "marginTables": [pair]}
        forget_deviations()
        with pytest.warns(MissingField, match="marginTables"):
            (result,) = decoded_frames(VIEWS["marginTables"], {}, meta, form)
        assert result.empty


SNAPSHOT = {
    "accountValueSnapshots": (1.5, 2.5, 3.5, True, 3, 0.25, [("USDC", 4.5)], 5.5),
    "perpTwapSnapshots": (
        *("0x" + "ab" * 20, 7, "BTC", True, 2.0, 0.5, 1.5, 30_000.0, 25.0, 3_600),
        *(1_700_000_000_000, True, True, "2025-01-01T00:00:30Z", 12, "m", "r"),
        *(1.5, 65_000.0, True, True),
    ),
}
"""One entry of each binary snapshot, with every value."""


def snapshot_frame(operation, entries, numbers, extra="drop"):
    content = zstandard.compress(msgpack.packb(["s", "n", entries]))
    collector = Collector(operation, numbers, extra)
    collector.add((decode(operation, 200, {}, content),))
    return collector.frames({})[0]


@pytest.mark.parametrize("others", [0, 50])
@pytest.mark.parametrize("name", SNAPSHOT)
def test_every_snapshot_value_may_be_null(name, others):
    """All fields except the key fields may be missing."""
    operation, values = OPERATIONS[name], SNAPSHOT[name]
    known = record_columns(operation.tables[0].record)
    own = known[len(known) - len(values) :]
    keys = [item.name for item in known if not item.missing and item.default is None]
    assert keys in (
        ["snapshot_id", "collateral_token", "user"],
        ["snapshot_id", "market", "address", "twap_id"],
    )
    usual = snapshot_entries(name, values, values, others)
    all_there = {form: snapshot_frame(operation, usual, form) for form in FORMS}
    for at, (column, form) in enumerate(zip(own, itertools.cycle(FORMS), strict=False)):
        changed = (*values[:at], None, *values[at + 1 :])
        entries = snapshot_entries(name, values, changed, others)
        forget_deviations()
        if column.name in keys:
            with pytest.raises(AnswerInvalid) as caught:
                snapshot_frame(operation, entries, form)
            assert (caught.value.column, caught.value.row) == (column.name, others)
            continue
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            result = snapshot_frame(operation, entries, form)
        is_reported = column.expected and column.default is None
        assert [warning.category for warning in warned] == [MissingField] * is_reported
        assert result.dtypes.to_dict() == all_there[form].dtypes.to_dict()
        is_gone = result[column.name].isna().tolist()
        assert is_gone == [False] * others + [column.default is None]
        others_of_row = result.columns.drop(column.name)
        pd.testing.assert_frame_equal(result[others_of_row], all_there[form][others_of_row])


def record_places(value, path=()):
    """Yield the place of each JSON object."""
    if isinstance(value, dict):
        yield path
        for name, inner in value.items():
            yield from record_places(inner, (*path, name))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from record_places(inner, (*path, at))


def test_no_unknown_field_is_lost():
    """A field of any record of an answer is in a column, or is reported if it has no row."""
    lost = []
    for case, (operation, parameters) in CASES.items():
        answer = full_answer(operation, parameters)
        for path in record_places(answer):
            if case == "batchClearinghouseStates, all dexes" and path[-1:] == (1,):
                continue  # the keys of this object are dexes
            forget_deviations()
            changed = replace_value(answer, (*path, "zNew"), "planted")
            place = ".".join(str(step) for step in (*path, "zNew") if isinstance(step, str))
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                frames = decoded_frames(operation, parameters, changed, "text", "keep")
            texts = "".join(row.to_csv() for row in frames)
            reports = "".join(str(warning.message) for warning in caught)
            if "planted" not in texts and place not in reports:
                lost.append((case, path))
    assert lost == []


def snapshot_entries(name, usual, last, others):
    """Return entries in the form of their operation: the usual one several times, and another."""
    if name == "perpTwapSnapshots":
        return [usual] * others + [last]
    return {f"0x{number:040x}": usual for number in range(others)} | {"0x" + "f" * 40: last}


def key_fields(operation, parameters):
    found = field_places(answer_type(operation, parameters), ())
    names = (
        ".".join(str(step) for step in item.path if isinstance(step, str))
        for item in found
        if item.is_key
    )
    return list(dict.fromkeys(names))


def test_key_fields_equal_expected():
    """The keys of the operations of the specification, which every row must have."""
    events = ["status", "statusTimestamp", "order", "order.coin", "order.side", "order.oid"]
    position = "successful_states.assetPositions.position"
    found = {name: key_fields(row, {}) for name, row in OPERATIONS.items() if not row.binary}
    assert found == {
        "spotPairDeployAuctionStatus": ["startTimeSeconds"],
        "perpDeployAuctionStatus": ["startTimeSeconds"],
        "currentDepth": ["timestampMs", "data", "data.coin", "data.levels.bps"],
        "slippageHistory": ["timestamp", "coin"],
        "meta": ["universe", "universe.name"],
        "metaAndAssetCtxs": ["universe", "universe.name"],
        "perpDexLimits": [],
        "accountValueSnapshotTimestamp": ["snapshot_id", "timestamp"],
        "perpTwapSnapshotTimestamp": ["snapshot_id", "timestamp"],
        "userFills": ["coin", "px", "sz", "side", "time", "oid"],
        "userFillsByTime": ["coin", "px", "sz", "side", "time", "oid"],
        "builderApprovedFillsByTime": ["coin", "px", "sz", "side", "time", "oid"],
        "builderApprovedFundingByTime": ["time", "delta", "delta.coin", "delta.usdc"],
        "builderOrdersByTime": events,
        "historicalOrders": events,
        "userNonFundingLedgerUpdates": ["time", "delta", "delta.type"],
        "batchClearinghouseStates": [
            "successful_states",
            position,
            f"{position}.coin",
            f"{position}.szi",
        ],
        "borrowLendUserState": [],
        "delegations": ["validator", "amount"],
        "validatorAprHistory": ["week"],
    }
