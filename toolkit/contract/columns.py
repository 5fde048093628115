"""The columns that a record becomes: its leaves, in the order of the specification."""

import functools
from dataclasses import dataclass, replace
from typing import Any

from toolkit.contract.fields import is_record, record_fields
from toolkit.contract.operations import Table
from toolkit.contract.records import Record
from toolkit.contract.value_kinds import Kind


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a frame.

    - ``name``: its name in the frame
    - ``path``: the place of its value in a record: Python names with dots between them
    - ``wire``: the same with wire names
    - ``kind``: the kind of its values
    - ``missing``: whether a value may be missing because it is absent or null on the wire. Values
      of key fields and of fields with a default are never missing.
    - ``meaning``: one line for the docs
    - ``type``: the Python type of a value
    - ``beyond``: the section of docs/live_service.md about it; 0 if it is in the specification
    - ``older``: another place of the value in older answers, with Python names; empty if there is
      none
    - ``expected``: whether the specification says that the value always exists
    - ``default``: the value that replaces an absent or null one; None if such a value is missing
    """

    name: str
    path: str
    wire: str
    kind: Kind
    missing: bool
    meaning: str
    type: Any
    beyond: int = 0
    older: str = ""
    expected: bool = True
    default: Any = None


@functools.cache
def record_columns(record: type[Record]) -> tuple[Column, ...]:
    """Return the columns of a record; nested records become several columns.

    >>> from toolkit.contract.records import FundingRow
    >>> [column.name for column in record_columns(FundingRow)]
    ['user', 'time', 'hash', 'type', 'coin', 'usdc', 'szi', 'funding_rate', 'n_samples']
    """
    columns: list[Column] = []
    older: dict[str, str] = {}
    for field in record_fields(record):
        note = field.note
        if note.older_place_of:
            older[note.older_place_of] = field.name
            continue
        may_be_null = field.null or (field.has_default and field.default is None)
        expected = not (may_be_null or field.may_be_absent)
        if is_record(field.type):
            columns += (
                replace(
                    leaf,
                    name=note.prefix + leaf.name,
                    path=f"{field.name}.{leaf.path}",
                    wire=f"{field.wire}.{leaf.wire}",
                    missing=leaf.missing or not note.key,
                    expected=leaf.expected and expected,
                    beyond=leaf.beyond or note.beyond,
                    meaning=": ".join(filter(None, (note.prefix and field.meaning, leaf.meaning))),
                )
                for leaf in record_columns(field.type)
            )
            continue
        column = Column(
            name=note.column or field.name,
            path=field.name,
            wire=field.wire,
            kind=note.kind,
            missing=not note.key and field.default is None,
            expected=expected,
            default=field.default,
            meaning=field.meaning,
            type=field.type,
            beyond=note.beyond,
        )
        columns.append(column)
    return tuple(replace(column, older=older.get(column.name, "")) for column in columns)


@functools.cache
def table_columns(table: Table) -> tuple[Column, ...]:
    """Return the columns of one frame of an answer, without those that the operation omits."""
    return tuple(
        column for column in record_columns(table.record) if column.path not in table.omits
    )
