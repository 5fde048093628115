"""Columns of records and tables, and the kinds of their values."""

import pytest

from toolkit.contract.columns import record_columns, table_columns
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.records import Fill, FundingRow, LedgerUpdate, MetaRow, PositionRow
from toolkit.contract.value_kinds import EXACT_PRECISION, EXACT_SCALE, field_note


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=list(OPERATIONS))
def test_every_table_has_columns(operation):
    for table in operation.tables:  # type: ignore[attr-defined]
        result = table_columns(table)
        names = [column.name for column in result]
        assert len(names) == len(set(names)), "two columns of one name"
        assert all(name.islower() or name == name.lower() for name in names)
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


def test_field_without_annotation_has_no_note():
    assert field_note(int) is None
