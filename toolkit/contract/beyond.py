"""Fields beyond the specification: which they are, and records without them.

A field says so in its annotation (`Note.beyond`: the section of docs/live_service.md). All of
them may be absent, so a record without them is one that the specification allows.
"""

import functools
import typing
from collections.abc import Mapping
from typing import Any, get_args

import msgspec
from msgspec import UNSET

from toolkit.contract.kinds import field_note
from toolkit.contract.records import Record

__all__ = ["beyond_fields", "without_beyond"]


@functools.cache
def beyond_fields(record: type[Record]) -> Mapping[str, int]:
    """Return the fields of a record beyond the specification, with their section.

    Nested records are not looked into.

    Examples
    --------
    >>> from toolkit.contract.records import Delegation
    >>> beyond_fields(Delegation)
    {}
    """
    hints = typing.get_type_hints(record, include_extras=True)
    sections = {
        field.name: note.beyond
        for field in msgspec.structs.fields(record)
        if (note := field_note(hints[field.name])) is not None
    }
    return {name: section for name, section in sections.items() if section}


def without_beyond(value: Any) -> Any:
    """Return a record, or a collection of records, without fields beyond the specification.

    What has none is returned itself, not a copy.

    Examples
    --------
    >>> from toolkit.contract.records import Delegation
    >>> row = Delegation(validator="0x1", amount="1.5", locked_until_timestamp=0)
    >>> without_beyond(row) is row
    True
    """
    if isinstance(value, Record):
        return _record(value)
    if isinstance(value, list | tuple):
        items = [without_beyond(item) for item in value]
        same = all(new is old for new, old in zip(items, value, strict=True))
        return value if same else type(value)(items)
    if isinstance(value, Mapping):
        entries = {key: without_beyond(item) for key, item in value.items()}
        return value if all(entries[key] is value[key] for key in value) else entries
    return value


def _record(record: Record) -> Record:
    drops, nested = _plan(type(record))
    changes = {name: UNSET for name in drops if getattr(record, name) is not UNSET}
    for name in nested:
        old = getattr(record, name)
        if (new := without_beyond(old)) is not old:
            changes[name] = new
    return msgspec.structs.replace(record, **changes) if changes else record


@functools.cache
def _plan(record: type[Record]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of fields to leave out, and of those that hold records.

    Every record inside is looked at: one that was recorded may have a field that is not known.
    """
    # Fields that are required belong to a record which itself is beyond the specification.
    optional = {one.name for one in msgspec.structs.fields(record) if one.default is UNSET}
    drops = tuple(name for name in beyond_fields(record) if name in optional)
    hints = typing.get_type_hints(record)
    nested = tuple(
        field.name
        for field in msgspec.structs.fields(record)
        if field.name not in drops and _records(hints[field.name])
    )
    return drops, nested


def _records(annotation: Any) -> set[type[Record]]:
    """Return the records that an annotation names, at any depth of lists, unions and so on."""
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return {annotation}
    return {found for part in get_args(annotation) for found in _records(part)}
