"""Records of rows as they came: also of rows that lack fields, or have further ones.

The service writes such a record again as the row was.
"""

import functools
import json
import re
import reprlib
import typing
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET

from toolkit.contract.columns import shape_of
from toolkit.contract.kinds import NESTED, Note, field_note
from toolkit.contract.records import Record

__all__ = ["build_record", "check_values", "join_records", "read_record"]

R = TypeVar("R", bound=Record)

_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?", re.ASCII)
_WHOLE_LIMIT: Final = 2**63  # what a store's whole numbers hold


def build_record(record: type[R], row: Any) -> R:
    """Return a record of a row that a service answered with: as it is, with unknown fields.

    Absent fields stay absent, and null stays null (docs/live_service.md, section 1).

    Parameters
    ----------
    record : Record
        The record that the row is of.
    row : dict
        The row as JSON, with wire names.

    Raises
    ------
    ValidationError
        If a value is of another type than the record says; the message names the field.

    Examples
    --------
    >>> from toolkit.contract.records import Delegation
    >>> build_record(Delegation, {"validator": "0x1", "amount": None}).amount is None
    True
    """
    fields = msgspec.structs.fields(record)
    hints = typing.get_type_hints(record)
    values = {
        one.name: _field_value(one.encode_name, hints[one.name], row)
        for one in fields
        if one.encode_name in row or one.required
    }
    unknown = tuple(name for name in row if name not in {one.encode_name for one in fields})
    if not unknown:
        return record(**values)
    further = {f"extra_{at}": row[name] for at, name in enumerate(unknown)}
    made: R = _with_extras(record, unknown)(**values, **further)
    return made


def read_record(record: type[R], text: bytes) -> R:
    """Return a record of the JSON text of a row, with unknown fields as `build_record` keeps them.

    Rows without unknown fields are read much faster.

    Parameters
    ----------
    record : Record
        The record that the row is of.
    text : bytes
        The row as JSON.

    Raises
    ------
    ValidationError
        If a value is of another type than the record says; the message names the field.

    Examples
    --------
    >>> from toolkit.contract.records import Delegation
    >>> row = b'{"validator":"0x1","amount":"2.0","lockedUntilTimestamp":0,"share":"0.5"}'
    >>> msgspec.json.encode(read_record(Delegation, row)) == row
    True
    """
    try:
        made = msgspec.json.decode(text, type=record, strict=False)
        if msgspec.json.encode(made) == text:
            return made
        row = msgspec.json.decode(text)
        unknown = tuple(name for name in row if name not in record.__struct_encode_fields__)
        if unknown:
            kind = _with_extras(record, unknown)
            made = msgspec.json.decode(text, type=kind, strict=False)
        if msgspec.json.decode(msgspec.json.encode(made)) == row:
            return made
    except msgspec.DecodeError:
        pass
    return build_record(record, json.loads(text))  # also numbers that are too large for msgspec


def join_records(first: R, second: R) -> R:
    """Return the first record with what only the second one says, unknown fields too.

    Parameters
    ----------
    first, second : Record
        Two records of one row, which different answers wrote. The first one may be changed.

    Examples
    --------
    >>> from toolkit.contract.records import Delegation
    >>> rows = {"validator": "0x1", "share": "0.5"}, {"validator": "0x1", "rank": 3}
    >>> msgspec.json.encode(join_records(*(build_record(Delegation, row) for row in rows)))
    b'{"validator":"0x1","share":"0.5","rank":3}'
    """
    names = _names_by_wire(first)
    new = tuple(wire for wire in _names_by_wire(second) if wire not in names)
    if new:
        first = _extend(first, new)
        names = _names_by_wire(first)
    for wire, name in _names_by_wire(second).items():
        value, before = getattr(second, name), getattr(first, names[wire])
        if before is UNSET or before is None:
            if value is not UNSET:
                setattr(first, names[wire], value)
        elif isinstance(before, Record) and isinstance(value, Record):
            setattr(first, names[wire], join_records(before, value))
    return first


def _names_by_wire(record: Record) -> dict[str, str]:
    return dict(zip(record.__struct_encode_fields__, record.__struct_fields__, strict=True))


def _extend(record: R, new: tuple[str, ...]) -> R:
    """Return a record with room for further unknown fields."""
    kind = type(record)
    unknown = getattr(kind, "__unknown__", ())
    extended = _with_extras(kind.__base__ if unknown else kind, (*unknown, *new))
    made: R = extended(**{name: getattr(record, name) for name in record.__struct_fields__})
    return made


def check_values(record: Record) -> None:
    """Check what the types of a record do not say: its numbers, and that key fields are there.

    Parameters
    ----------
    record : Record
        A record of recorded values; those within it are checked, too.

    Raises
    ------
    ValueError
        If text of a number is none, a whole number is out of range, or a key field is missing;
        the message names the field, and the value.

    Examples
    --------
    >>> from toolkit.contract.records import Delegation
    >>> check_values(build_record(Delegation, {"validator": "0x1", "amount": "abc"}))
    Traceback (most recent call last):
    ...
    ValueError: amount: 'abc' is not a number
    """
    for name, wire, note in _checked_fields(type(record)):
        value = getattr(record, name)
        if note.key and (value is None or value is UNSET):
            raise ValueError(f"{wire}: a row means nothing without it, and it is missing")
        if isinstance(value, str):
            if note.kind.family == "number" and not _NUMBER.fullmatch(value):
                raise ValueError(f"{wire}: {reprlib.repr(value)} is not a number")
        elif isinstance(value, int):
            if not -_WHOLE_LIMIT <= value < _WHOLE_LIMIT:
                raise ValueError(f"{wire}: {reprlib.repr(value)} is out of range")
        else:
            _check_within(wire, value)


def _check_within(wire: str, value: Any) -> None:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for at, one in enumerate(value):
            _check_within(f"{wire}[{at}]", one)
    elif isinstance(value, Record):
        try:
            check_values(value)
        except ValueError as error:
            raise ValueError(f"{wire}.{error}") from error


@functools.lru_cache(maxsize=256)
def _checked_fields(record: type[Record]) -> list[tuple[str, str, Note]]:
    hints = typing.get_type_hints(record, include_extras=True)
    return [
        (one.name, one.encode_name, note)
        for one in msgspec.structs.fields(record)
        if (note := field_note(hints[one.name])) is not None
    ]


def _field_value(wire: str, annotation: Any, row: Any) -> Any:
    if wire not in row:
        return UNSET
    try:
        return _value(annotation, row[wire])
    except msgspec.ValidationError as error:
        words = str(error)
        if not isinstance(row[wire], dict | list):
            words += f": {reprlib.repr(row[wire])}"
        raise msgspec.ValidationError(f"{wire}: {words}") from error


@functools.lru_cache(maxsize=256)
def _with_extras(record: type[Record], unknown: tuple[str, ...]) -> Any:
    """Derive a record with further fields; a strict service leaves them out."""
    names = {f"extra_{at}": wire for at, wire in enumerate(unknown)}
    kind = typing.Annotated[object, NESTED("not known to this version", beyond=1)]
    return msgspec.defstruct(
        record.__name__,
        [(name, kind, UNSET) for name in names],
        bases=(record,),
        rename=names,
        namespace={"__unknown__": unknown},
        kw_only=True,
    )


def _value(annotation: Any, value: Any) -> Any:
    """Check a recorded value, and turn it into records where it holds some."""
    annotation = shape_of(annotation).type
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if value is None:
        return None
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return build_record(annotation, value)
    if origin is dict and isinstance(value, dict):
        return {name: _value(parts[1], one) for name, one in value.items()}
    if origin is list and isinstance(value, list):
        return [_value(parts[0], one) for one in value]
    if origin is tuple and isinstance(value, list) and len(value) == len(parts):
        return tuple(_value(part, one) for part, one in zip(parts, value, strict=True))
    return msgspec.convert(value, annotation, strict=False)
