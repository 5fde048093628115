"""The records agree with the specification: fields, order, types, null and optional."""

import typing
from dataclasses import dataclass
from typing import get_args

import msgspec
import pytest

from toolkit.contract import records as r
from toolkit.contract.fields import record_fields

WIRE_TYPES: dict[str, set[type]] = {
    "string": {str},
    "int": {int},
    "boolean": {bool},
    "number": {float, int},
    "array": {list},
    "object": {dict},
}

RECORDS: dict[str, tuple[int, type[r.Record]]] = {
    "Fill record": (0, r.Fill),
    "Order status record": (0, r.OrderStatus),
    "Order status record, order object": (1, r.Order),
    "Funding row": (0, r.FundingRow),
    "Deploy auction status": (0, r.AuctionStatus),
    "Depth response": (0, r.Depth),
    "Slippage sample": (0, r.SlippageSample),
    "Perp metadata": (0, r.Meta),
    "Borrow/lend user state": (0, r.BorrowLend),
    "Delegation": (0, r.Delegation),
    "Validator weekly APR entry": (0, r.ValidatorWeek),
    "Perp dex limits": (0, r.PerpDexLimits),
    "Non-funding ledger update": (0, r.LedgerUpdate),
    "Snapshot metadata": (0, r.SnapshotMetadata),
}

# Fields beyond the specification without a mark, because the clarifications name them.
BEYOND: dict[type[r.Record], set[str]] = {
    r.LedgerUpdate: {
        "delta.toPerp",
        "delta.liquidatedNtlPos",
        "delta.accountValue",
        "delta.leverageType",
        "delta.liquidatedPositions",
        "delta.liquidatedPositions[].coin",
        "delta.liquidatedPositions[].szi",
        "delta.vault",
        "delta.requestedUsd",
        "delta.commission",
        "delta.closingCost",
        "delta.basis",
        "delta.netWithdrawnUsd",
        "delta.isDeposit",
        "delta.operation",
        "delta.interestAmount",
        "delta.dex",
    }
}

# Fields for which a sentence of the specification allows more than its type column.
MAY_BE_NULL = {
    (r.AuctionStatus, "currentGas"): "Perp: string or null",
    (r.Order, "cloid"): "null when not set",
    (r.Order, "tif"): "clarifications, order fields: `or null`",
}


@dataclass(frozen=True)
class Field:
    """A field of the specification or of the contract."""

    path: str
    types: frozenset[type]
    null: bool
    optional: bool
    beyond: int = 0


def contract_fields(record, prefix=""):
    fields = []
    for field in record_fields(record):
        path, bare = prefix + field.wire, field.type
        inner, inner_prefix = bare, f"{path}."
        if typing.get_origin(bare) is list:
            inner, inner_prefix, bare = get_args(bare)[0], f"{path}[].", list
        is_record = isinstance(inner, type) and issubclass(inner, r.Record)
        kind = dict if is_record and bare is not list else bare
        fields.append(Field(path, frozenset([kind]), field.null, field.absent, field.beyond))
        if is_record and inner is not record and path not in ("children", "order"):
            fields += contract_fields(inner, inner_prefix)
    return fields


def specification_fields(rows):
    fields = []
    for path, type_, notes in rows:
        word = type_.replace(",", " ").replace("/", " ").split()[0]
        only = "` only" in notes  # a field of one operation of several
        fields.append(
            Field(
                path,
                frozenset(WIRE_TYPES[word]),
                null="null" in type_,
                optional="optional" in type_ or only,
            )
        )
    return fields


def comparable_fields(record, named):
    """Return the contract's fields, without containers that the specification does not list."""
    listed_whole = {path.rsplit(".", 1)[0] for path in named if "." in path} - named
    return [
        field
        for field in contract_fields(record)
        if field.path not in listed_whole
        and field.path not in BEYOND.get(record, set())
        and not field.beyond
    ]


@pytest.fixture
def field_pairs(specification):
    """Return (record, fields of the specification, fields of the contract) of every record."""
    pairs = []
    for heading, (which, record) in RECORDS.items():
        table = specification.tables(specification.section(heading.split(",")[0]))[which]
        spec = specification_fields(table)
        pairs.append((record, spec, comparable_fields(record, {field.path for field in spec})))
    return pairs


def test_fields_follow_specification(field_pairs):
    for record, spec, contract in field_pairs:
        assert [field.path for field in contract] == [field.path for field in spec], record


def test_types_follow_specification(field_pairs):
    wrong = [
        (record.__name__, ours, theirs)
        for record, spec, contract in field_pairs
        for ours, theirs in zip(contract, spec, strict=True)
        if not ours.types <= theirs.types
    ]
    assert wrong == []


def test_null_follows_specification(field_pairs):
    for record, spec, contract in field_pairs:
        ours = {field.path for field in contract if field.null}
        more = {path for of, path in MAY_BE_NULL if of is record}
        assert ours - more == {field.path for field in spec if field.null}, record


def test_optional_follows_specification(field_pairs):
    for record, spec, contract in field_pairs:
        optional = {field.path for field in spec if field.optional}
        if record is r.LedgerUpdate:  # "fields vary with delta.type"
            inner = {field.path for field in spec if field.path.startswith("delta.")}
            optional = inner - {"delta.type"}
        assert {field.path for field in contract if field.optional} == optional, record


def test_fields_beyond_specification_are_marked(specification):
    """No table lists a marked field, and every marked field is optional."""
    for section, (which, record) in RECORDS.items():
        table = specification.tables(specification.section(section.split(",")[0]))[which]
        listed = {path for path, *_ in table}
        marked = [field for field in contract_fields(record) if field.beyond]
        assert not listed & {field.path for field in marked}
        outer = {field.path for field in marked if field.optional}
        inner = {field.path for field in marked} - outer
        assert all(any(path.startswith(f"{item}.") for item in outer) for path in inner)


def test_beyond_fields_are_not_in_specification(specification):
    """Every field in `BEYOND` is in the contract, but not in the specification."""
    for record, paths in BEYOND.items():
        assert paths <= {field.path for field in contract_fields(record)}
        assert not any(f"| {path} |" in specification.text for path in paths)


def specified_names(record):
    """Return the wire names of the fields in the specification."""
    return [
        field.path
        for field in contract_fields(record)
        if not field.beyond and "." not in field.path
    ]


def test_margin_summary_follows_specification(specification):
    row = {
        cells[0]: cells[2]
        for cells in specification.tables(specification.section("Clearinghouse state"))[0]
    }
    named = row["marginSummary"].removeprefix("fields ").removesuffix(" (strings)").split(", ")
    assert [field.encode_name for field in msgspec.structs.fields(r.MarginSummary)] == named
    assert specified_names(r.ClearinghouseState) == [*row]


def test_position_follows_specification(specification):
    text = specification.section("Clearinghouse state")
    words = text.split("`position` with ")[1].split(" |")[0]
    order = specified_names(r.Position)
    assert all(name in words for name in order)
    assert sorted(order, key=words.index) == order


def test_batch_states_follow_specification(specification):
    text = specification.endpoint("batchClearinghouseStates")
    for field in msgspec.structs.fields(r.BatchStates):
        assert f"{field.encode_name}: [" in text


def test_snapshot_tuples_follow_specification(specification):
    tuples = [
        ("Account value snapshot", r.AccountValueRow, ["snapshot_id", "collateral_token", "user"]),
        ("TWAP snapshot", r.TwapRow, ["snapshot_id", "market"]),
    ]
    for heading, record, before in tuples:
        (table,) = specification.tables(specification.section(heading))
        ours = [field.encode_name for field in msgspec.structs.fields(record)]
        assert ours == before + [cells[1] for cells in table], heading
        assert [int(cells[0]) for cells in table] == list(range(len(table)))
