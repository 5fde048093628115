"""How answers are read: types derived from the records, liberal where writers are strict.

A reading type takes null and absence wherever a value may be missing, and gives numbers in
one of three forms. Its structs are not tracked by the garbage collector: an answer holds
no cycles, and tracking costs as much as decoding.

The strict type is the fast path: it refuses an answer that lacks a field, or has one that is
not known. What such an answer does is learnt once, as `Deviations`, and the type that is derived
with them takes the pages that follow as fast as the strict type takes others.
"""

import functools
import typing
from decimal import Decimal
from typing import Any, Final, Literal, get_args, get_origin

import msgspec

from toolkit.contract.columns import shape_of
from toolkit.contract.deviations import Deviations, is_record, may_lack
from toolkit.contract.kinds import field_note
from toolkit.contract.records import Record

__all__ = ["Numbers", "decoder_type"]

Numbers = Literal["float", "exact", "text"]
"""The form of numbers: 64-bit floats, exact decimals, or the text of the wire."""

# Exact and text numbers are both read as text; JSON numbers become decimals, which lose nothing.
_NUMBER: Final[dict[str, dict[Any, Any]]] = {
    "float": {str: float, float: float},
    "exact": {str: str, float: Decimal},
    "text": {str: str, float: Decimal},
}


def decoder_type(
    annotation: Any, numbers: Numbers, deviations: Deviations, omits: tuple[str, ...] = ()
) -> Any:
    """Derive the type to read an answer with.

    Parameters
    ----------
    annotation : object
        The type of the answer, made of records, lists, tuples, dicts and unions.
    numbers : {"float", "exact", "text"}
        The form of numbers.
    deviations : Deviations
        Which fields may be missing although they are expected, and which further ones there are.
    omits : tuple of str
        Fields of the outermost record that the operation does not have.
    """
    if is_record(annotation):
        return _struct(annotation, numbers, deviations, omits)
    parts = [decoder_type(one, numbers, deviations, omits) for one in get_args(annotation)]
    origin = get_origin(annotation)
    if origin in (tuple, dict) and deviations.allows(None, ""):
        # The first part names what the others say; it is a key.
        parts = [parts[0], *(part | None for part in parts[1:])]
    if origin in (list, dict, tuple):
        return origin[tuple(parts)]
    return functools.reduce(lambda a, b: a | b, parts) if parts else annotation


@functools.cache
def _struct(
    record: type[Record], numbers: Numbers, deviations: Deviations, omits: tuple[str, ...]
) -> type[msgspec.Struct]:
    hints = typing.get_type_hints(record, include_extras=True)
    kept = [one for one in msgspec.structs.fields(record) if one.name not in omits]
    extras = deviations.extras(record)
    return msgspec.defstruct(
        record.__name__,
        [
            *(_field(record, one, hints[one.name], numbers, deviations) for one in kept),
            *((name, msgspec.Raw | msgspec.UnsetType, msgspec.UNSET) for name in extras),
        ],
        rename={one.name: one.encode_name for one in kept} | extras,
        namespace={"__extras__": extras},
        kw_only=True,
        gc=False,
        forbid_unknown_fields=not deviations.is_open,
    )


def _field(
    record: type[Record],
    field: msgspec.structs.FieldInfo,
    annotation: Any,
    numbers: Numbers,
    deviations: Deviations,
) -> tuple[str, Any] | tuple[str, Any, Any]:
    note, shape = field_note(annotation), shape_of(annotation)
    assert note is not None
    value = shape.type
    if note.kind.family == "number":
        value = _NUMBER[numbers].get(value, value)
    elif note.kind.family == "rows" or is_record(value):
        value = decoder_type(value, numbers, deviations)
    elif note.kind.family == "nested":
        value = Any
    if note.key:
        return field.name, value
    if not field.required and field.default is not msgspec.UNSET:
        return field.name, value | None, field.default
    if may_lack(note, shape) or deviations.allows(record, field.encode_name):
        return field.name, value | None, None
    return (field.name, value | None) if shape.null else (field.name, value)
