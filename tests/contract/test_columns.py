"""Columns of records and tables, and fields beyond the specification."""

import typing

import msgspec
from msgspec import UNSET

from toolkit.contract import records as r
from toolkit.contract.answers import encode
from toolkit.contract.columns import record_columns, table_columns
from toolkit.contract.extra_operations import EXTRA_OPERATIONS
from toolkit.contract.fields import beyond_fields, drop_beyond_fields
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.records import Fill, FundingRow, LedgerUpdate, MetaRow, PositionRow
from toolkit.contract.value_kinds import EXACT_PRECISION, EXACT_SCALE


def test_every_table_has_columns():
    for operation in (OPERATIONS | EXTRA_OPERATIONS).values():
        for table in operation.tables:
            result = table_columns(table)
            names = [column.name for column in result]
            assert len(names) == len(set(names)), "two columns of one name"
            assert all(name == name.lower() for name in names)
            assert all(column.meaning for column in result)
            assert not set(table.omits) & set(names)


def test_nested_columns_have_short_names():
    assert [column.name for column in record_columns(FundingRow)][3:] == [
        "type",
        "coin",
        "usdc",
        "szi",
        "funding_rate",
        "n_samples",
    ]
    (rate,) = [column for column in record_columns(FundingRow) if column.name == "funding_rate"]
    assert (rate.path, rate.wire) == ("delta.funding_rate", "delta.fundingRate")


def test_clashing_column_names_have_prefixes():
    names = [column.name for column in record_columns(PositionRow)]
    assert {"type", "leverage_type", "leverage_value"} <= set(names)


def test_only_key_columns_are_never_missing():
    for record, keys in {
        Fill: {"coin", "px", "sz", "side", "time", "oid"},
        FundingRow: {"time", "coin", "usdc"},
        LedgerUpdate: {"time", "type"},
        PositionRow: {"user", "coin", "szi"},
    }.items():
        assert {column.name for column in record_columns(record) if not column.missing} == keys


def test_columns_follow_specification():
    expected = {column.name: column.expected for column in record_columns(Fill)}
    assert not expected["cloid"]  # optional
    assert not expected["twap_id"]  # null
    assert not expected["tid"]  # old recordings lack it
    assert expected["crossed"]
    assert expected["px"]


def test_flag_with_default_is_never_missing():
    (flag,) = [column for column in record_columns(MetaRow) if column.name == "only_isolated"]
    assert (flag.missing, flag.default) == (False, False)


def test_exact_numbers_can_be_added():
    assert EXACT_PRECISION <= 36
    assert 0 < EXACT_SCALE < EXACT_PRECISION


META = r.Meta(
    universe=[
        r.PerpAsset(
            name="BTC",
            sz_decimals=5,
            max_leverage=40,
            only_isolated=False,
            margin_table_id=56,
            is_delisted=True,
            margin_mode="noCross",
            growth_mode="enabled",
        )
    ],
    margin_tables=[(56, r.MarginTable(description="tiered", margin_tiers=[]))],
    collateral_token=235,
)
BARE = b'{"universe":[{"name":"BTC","szDecimals":5,"maxLeverage":40,"onlyIsolated":false}]}'


def test_beyond_fields_are_dropped_from_copy():
    before = encode(META)
    for holder in (META, [META], (META,), {"": META}):
        bare = drop_beyond_fields(holder)
        assert type(bare) is type(holder)
        assert BARE in encode(bare)
    assert encode(META) == before


def records_in(annotation):
    if isinstance(annotation, type) and issubclass(annotation, r.Record):
        inner = typing.get_type_hints(annotation).values()
        found = {item for hint in inner if hint is not annotation for item in plain_type(hint)}
        return {annotation} | {
            deep for item in found if item is not annotation for deep in records_in(item)
        }
    return {deep for part in typing.get_args(annotation) for deep in records_in(part)}


def plain_type(annotation):
    if isinstance(annotation, type):
        return {annotation} if issubclass(annotation, r.Record) else set()
    return {item for part in typing.get_args(annotation) for item in plain_type(part)}


def test_beyond_fields_are_optional():
    """Every field beyond the specification is optional, or its record is optional."""
    wrong = []
    for operation in OPERATIONS.values():
        found = records_in(operation.answer)
        inside = {
            deep
            for holder in found
            for name, hint in typing.get_type_hints(holder).items()
            if name in beyond_fields(holder)
            for part in plain_type(hint)
            for deep in records_in(part)
        }
        for record in found - inside:
            defaults = {field.name: field.default for field in msgspec.structs.fields(record)}
            wrong += [
                (record.__name__, name)
                for name in beyond_fields(record)
                if defaults[name] is not UNSET
            ]
    assert wrong == []


def test_extra_operations_have_records():
    assert any(
        beyond_fields(part) for row in EXTRA_OPERATIONS.values() for part in plain_type(row.answer)
    )
