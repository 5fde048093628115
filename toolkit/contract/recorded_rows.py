"""Records of recorded rows, exactly as they were: with missing and with unknown fields.

A service that serves recorded answers or an archive writes these records again as the rows were.
"""

import functools
import json
import re
import reprlib
import typing
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from toolkit.contract.fields import is_record, record_fields, split_annotation
from toolkit.contract.records import Record
from toolkit.contract.value_kinds import NESTED

R = TypeVar("R", bound=Record)

_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?", re.ASCII)
_WHOLE_LIMIT: Final = 2**63  # the limit of whole numbers in a store


def build_record(record: type[R], row: Any) -> R:
    """Return the record of a recorded row, with unknown fields.

    Absent fields stay absent, and null stays null (docs/live_service.md, section 1).

    - ``record``: the record of the row
    - ``row``: the row as JSON, with wire names

    Raise ValidationError if a value has another type than in the record; the message names the
    field.

    >>> from toolkit.contract.records import Delegation
    >>> build_record(Delegation, {"validator": "0x1", "amount": None}).amount is None
    True
    """
    if not isinstance(row, dict):
        raise msgspec.ValidationError("Expected an object")
    values: dict[str, Any] = {}
    for field in record_fields(record):
        value = row.get(field.wire, UNSET)
        if value is not UNSET:
            try:
                value = _build_value(field.type, value)
            except msgspec.ValidationError as error:
                words = "" if isinstance(value, dict | list) else f": {reprlib.repr(value)}"
                raise msgspec.ValidationError(f"{field.wire}: {error}{words}") from error
        elif field.has_default:
            continue
        values[field.path] = value
    unknown = tuple(name for name in row if name not in record.__struct_encode_fields__)
    if not unknown:
        return record(**values)
    extras = {f"extra_{number}": row[name] for number, name in enumerate(unknown)}
    extended: R = _extended_type(record, unknown)(**values, **extras)
    return extended


def read_record(record: type[R], text: bytes) -> R:
    """Return the record of the JSON text of a row, with unknown fields as in `build_record`.

    It is much faster if the row has no unknown fields.

    - ``record``: the record of the row
    - ``text``: the row as JSON

    Raise ValidationError if a value has another type than in the record; the message names the
    field.

    >>> from toolkit.contract.records import Delegation
    >>> row = b'{"validator":"0x1","amount":"2.0","lockedUntilTimestamp":0,"share":"0.5"}'
    >>> msgspec.json.encode(read_record(Delegation, row)) == row
    True
    """
    try:
        decoded = msgspec.json.decode(text, type=record, strict=False)
        again = msgspec.json.encode(decoded)
        if again == text or msgspec.json.decode(again) == msgspec.json.decode(text):
            return decoded
    except msgspec.DecodeError:
        pass
    return build_record(record, json.loads(text))  # also numbers that are too large for msgspec


def check_values(value: Any, place: str = "") -> None:
    """Raise ValueError if a value of a recorded row is not valid.

    The types of a record do not check that text is a number, that a whole number is in range, and
    that a key field exists. This function does, for nested records too.

    - ``value``: the record of a recorded row, or a value in it
    - ``place``: where the value is in its row, for the message

    Raise ValueError if a value is not valid; the message names the field and the value.

    >>> from toolkit.contract.records import Delegation
    >>> check_values(build_record(Delegation, {"validator": "0x1", "amount": "abc"}))
    Traceback (most recent call last):
    ...
    ValueError: amount: 'abc' is not a number
    """
    if isinstance(value, dict | list | tuple):
        for at, item in enumerate(value.values() if isinstance(value, dict) else value):
            check_values(item, f"{place}[{at}]")
    for field in record_fields(type(value)) if isinstance(value, Record) else ():
        item, wire = getattr(value, field.path), f"{place}.{field.wire}".removeprefix(".")
        if field.key and (item is None or item is UNSET):
            raise ValueError(f"{wire}: this key field is missing, so the row cannot be used")
        is_number = field.kind.family == "number" and isinstance(item, str)
        if is_number and not _NUMBER.fullmatch(item):
            raise ValueError(f"{wire}: {reprlib.repr(item)} is not a number")
        if isinstance(item, int) and not -_WHOLE_LIMIT <= item < _WHOLE_LIMIT:
            raise ValueError(f"{wire}: {reprlib.repr(item)} is out of range")
        check_values(item, wire)


@functools.lru_cache(maxsize=256)
def _extended_type(record: type[Record], unknown: tuple[str, ...]) -> Any:
    """Return a record type with further fields; a strict service does not write them."""
    names = {f"extra_{number}": wire for number, wire in enumerate(unknown)}
    annotation = typing.Annotated[object | UnsetType, NESTED("unknown to this version", beyond=1)]
    return msgspec.defstruct(
        record.__name__,
        [(name, annotation, UNSET) for name in names],
        bases=(record,),
        rename=names,
        namespace={"__unknown__": unknown},
        kw_only=True,
    )


def _build_value(annotation: Any, value: Any) -> Any:
    """Return a recorded value of the annotated type, with records for nested rows."""
    annotation = split_annotation(annotation).type
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if value is None:
        return None
    if is_record(annotation):
        return build_record(annotation, value)
    if origin is dict and isinstance(value, dict):
        return {name: _build_value(parts[1], item) for name, item in value.items()}
    if origin is list and isinstance(value, list):
        return [_build_value(parts[0], item) for item in value]
    if origin is tuple and isinstance(value, list) and len(value) == len(parts):
        return tuple(_build_value(part, item) for part, item in zip(parts, value, strict=True))
    return msgspec.convert(value, annotation, strict=False)
