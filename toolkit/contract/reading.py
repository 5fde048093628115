"""How answers are read: types derived from the records, liberal where writers are strict.

A reading type takes null and absence wherever a value may be missing, and gives numbers in
one of three forms. Its structs are not tracked by the garbage collector: an answer holds
no cycles, and tracking costs as much as decoding.
"""

import functools
import typing
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final, Literal, get_args, get_origin

import msgspec

from toolkit.contract.columns import shape_of
from toolkit.contract.kinds import note_of
from toolkit.contract.records import Record

__all__ = ["Numbers", "reading", "unknown_fields"]

Numbers = Literal["float", "exact", "text"]
"""The form of numbers: 64-bit floats, exact decimals, or the text of the wire."""

# Exact and text numbers are both read as text; JSON numbers become decimals, which lose nothing.
_NUMBER: Final[dict[str, dict[Any, Any]]] = {
    "float": {str: float, float: float},
    "exact": {str: str, float: Decimal},
    "text": {str: str, float: Decimal},
}


def reading(annotation: Any, numbers: Numbers, strict: bool, omits: tuple[str, ...] = ()) -> Any:
    """Derive the type to read an answer with.

    Parameters
    ----------
    annotation : object
        The type of the answer, made of records, lists, tuples, dicts and unions.
    numbers : {"float", "exact", "text"}
        The form of numbers.
    strict : bool
        Whether a field that is not known is an error.
    omits : tuple of str
        Fields of the outermost record that the operation does not have.
    """
    if _is_record(annotation):
        return _struct(annotation, numbers, strict, omits)
    parts = tuple(reading(one, numbers, strict, omits) for one in get_args(annotation))
    origin = get_origin(annotation)
    if origin in (list, dict, tuple):
        return origin[parts]
    return functools.reduce(lambda a, b: a | b, parts) if parts else annotation


def unknown_fields(annotation: Any, value: Any, omits: tuple[str, ...] = ()) -> set[str]:
    """Find the fields of a decoded JSON answer that the contract does not know.

    Returns
    -------
    set of str
        Dotted wire paths, as ``delta.nSamples``.
    """
    return set(_unknown(annotation, value, "", omits))


@functools.cache
def _struct(
    record: type[Record], numbers: Numbers, strict: bool, omits: tuple[str, ...]
) -> type[msgspec.Struct]:
    hints = typing.get_type_hints(record, include_extras=True)
    kept = [one for one in msgspec.structs.fields(record) if one.name not in omits]
    return msgspec.defstruct(
        record.__name__,
        [_field(one, hints[one.name], numbers, strict) for one in kept],
        rename={one.name: one.encode_name for one in kept},
        kw_only=True,
        gc=False,
        forbid_unknown_fields=strict,
    )


def _field(
    field: msgspec.structs.FieldInfo, annotation: Any, numbers: Numbers, strict: bool
) -> tuple[str, Any] | tuple[str, Any, Any]:
    note, shape = note_of(annotation), shape_of(annotation)
    assert note is not None
    value = shape.type
    if note.kind.family == "number":
        value = _NUMBER[numbers].get(value, value)
    elif note.kind.family == "rows" or _is_record(value):
        value = reading(value, numbers, strict)
    elif note.kind.family == "nested":
        value = Any
    if shape.null or shape.absent or note.lacks:
        value = value | None
    if not field.required and field.default is not msgspec.UNSET:
        return field.name, value, field.default
    return (field.name, value, None) if shape.absent or note.lacks else (field.name, value)


def _unknown(annotation: Any, value: Any, path: str, omits: tuple[str, ...]) -> Iterator[str]:
    if _is_record(annotation) and isinstance(value, dict):
        yield from _unknown_in_record(annotation, value, path, omits)
    elif isinstance(value, list):
        parts = get_args(annotation)
        inner = parts if get_origin(annotation) is tuple else parts * len(value)
        for one, item in zip(inner, value, strict=False):
            yield from _unknown(one, item, path, omits)
    elif get_origin(annotation) is dict and isinstance(value, dict):
        for item in value.values():
            yield from _unknown(get_args(annotation)[1], item, path, omits)
    else:
        for one in get_args(annotation):
            yield from _unknown(one, value, path, omits)


def _unknown_in_record(
    record: type[Record], value: dict[str, Any], path: str, omits: tuple[str, ...]
) -> Iterator[str]:
    known = _known(record, omits)
    for name, item in value.items():
        if name not in known:
            yield f"{path}{name}"
        else:
            yield from _unknown(known[name], item, f"{path}{name}.", ())


@functools.cache
def _known(record: type[Record], omits: tuple[str, ...]) -> dict[str, Any]:
    """Give the fields of a record by their names on the wire, with the types of their values."""
    hints = typing.get_type_hints(record, include_extras=True)
    return {
        one.encode_name: shape_of(hints[one.name]).type
        for one in msgspec.structs.fields(record)
        if one.name not in omits
    }


def _is_record(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Record)
