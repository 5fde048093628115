"""The columns that a record becomes: its leaves, in the order of the specification."""

import functools
from dataclasses import replace

from toolkit.contract.fields import Field, is_record, record_fields
from toolkit.contract.operations import Table
from toolkit.contract.records import Record


@functools.cache
def record_columns(record: type[Record]) -> tuple[Field, ...]:
    """Return the columns of a record; nested records become several columns.

    Lists whose entries are rows become none.

    >>> from toolkit.contract.records import FundingRow
    >>> [column.name for column in record_columns(FundingRow)]
    ['user', 'time', 'hash', 'type', 'coin', 'usdc', 'szi', 'funding_rate', 'n_samples']
    """
    fields = record_fields(record)
    older = {field.older_place_of: field.path for field in fields if field.older_place_of}
    columns: list[Field] = []
    for field in fields:
        if is_record(field.type):
            columns += (
                replace(
                    leaf,
                    name=field.prefix + leaf.name,
                    path=f"{field.path}.{leaf.path}",
                    wire=f"{field.wire}.{leaf.wire}",
                    missing=leaf.missing or not field.key,
                    expected=leaf.expected and field.expected,
                    beyond=leaf.beyond or field.beyond,
                    meaning=": ".join(filter(None, (field.prefix and field.meaning, leaf.meaning))),
                )
                for leaf in record_columns(field.type)
            )
        elif field.kind.family != "rows" and not field.older_place_of:
            columns.append(field)
    return tuple(replace(column, older=older.get(column.name, "")) for column in columns)


@functools.cache
def table_columns(table: Table) -> tuple[Field, ...]:
    """Return the columns of one frame of an answer, without those that the operation omits."""
    return tuple(
        column for column in record_columns(table.record) if column.path not in table.omits
    )
