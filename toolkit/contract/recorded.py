"""Records of rows as they came: also of rows that lack fields, or have further ones.

The service writes such a record again as the row was.
"""

import functools
import typing
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from toolkit.contract.columns import shape_of
from toolkit.contract.kinds import NESTED
from toolkit.contract.records import Record

__all__ = ["record_of"]

R = TypeVar("R", bound=Record)


def record_of(record: type[R], row: Any) -> R:
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
        If a value is of another type than the record says.

    Examples
    --------
    >>> from toolkit.contract.records import Delegation
    >>> record_of(Delegation, {"validator": "0x1", "amount": None}).amount is None
    True
    """
    fields = msgspec.structs.fields(record)
    hints = typing.get_type_hints(record)
    values = {
        one.name: _value(hints[one.name], row[one.encode_name]) if one.encode_name in row else UNSET
        for one in fields
        if one.encode_name in row or one.required
    }
    unknown = tuple(name for name in row if name not in {one.encode_name for one in fields})
    if not unknown:
        return record(**values)
    further = {f"extra_{at}": row[name] for at, name in enumerate(unknown)}
    made: R = _with_extras(record, unknown)(**values, **further)
    return made


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
        kw_only=True,
    )


def _value(annotation: Any, value: Any) -> Any:
    """Check a recorded value, and turn it into records where it holds some."""
    annotation = shape_of(annotation).type
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if value is None:
        return None
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return record_of(annotation, value)
    if origin is dict and isinstance(value, dict):
        return {name: _value(parts[1], one) for name, one in value.items()}
    if origin is list and isinstance(value, list):
        return [_value(parts[0], one) for one in value]
    if origin is tuple and isinstance(value, list) and len(value) == len(parts):
        return tuple(_value(part, one) for part, one in zip(parts, value, strict=True))
    return msgspec.convert(value, annotation, strict=False)
