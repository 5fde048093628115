"""Fields beyond the specification, and records without them."""

import typing

import msgspec
import pytest
from msgspec import UNSET

from toolkit.contract import records as r
from toolkit.contract.answers import encode
from toolkit.contract.extra_operations import EXTRA_OPERATIONS
from toolkit.contract.fields import beyond_fields, drop_beyond_fields
from toolkit.contract.operations import OPERATIONS

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


def test_nested_beyond_fields_are_dropped():
    assert encode(drop_beyond_fields(META)) == BARE


def test_drop_beyond_fields_copies_input():
    before = encode(META)
    drop_beyond_fields([{"": META}])
    assert encode(META) == before


@pytest.mark.parametrize("holder", [[META], (META,), {"": META}])
def test_collections_keep_their_type(holder):
    bare = drop_beyond_fields(holder)
    assert type(bare) is type(holder)
    assert BARE in encode(bare)


def test_record_without_beyond_fields_is_not_copied():
    bare = drop_beyond_fields(META)
    assert drop_beyond_fields(bare) is bare
    rows = [r.Delegation(validator="0x1", amount="1", locked_until_timestamp=0)]
    assert drop_beyond_fields(rows) is rows


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


@pytest.mark.parametrize("type_", OPERATIONS)
def test_beyond_fields_are_optional(type_):
    """Every field beyond the specification is optional, or its record is optional."""
    answer = OPERATIONS[type_].answer
    hints = {
        (holder, name): hint
        for holder in records_in(answer)
        for name, hint in typing.get_type_hints(holder).items()
    }
    inside = {
        deep
        for (holder, name), hint in hints.items()
        if name in beyond_fields(holder)
        for part in plain_type(hint)
        for deep in records_in(part)
    }
    for record in records_in(answer) - inside:
        defaults = {field.name: field.default for field in msgspec.structs.fields(record)}
        assert all(defaults[name] is UNSET for name in beyond_fields(record)), record


def test_extra_operations_have_records():
    assert any(
        beyond_fields(part) for row in EXTRA_OPERATIONS.values() for part in plain_type(row.answer)
    )
