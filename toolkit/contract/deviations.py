"""How answers deviate from the contract: fields that are missing, and fields that are not known.

docs/live_service.md, section 1: whatever is absent or null in a live answer, but for a few key
fields, becomes a missing value, and a field that is not known is kept. The deviations of an
operation are learnt from the first answer that has them.
"""

import functools
import re
import threading
import typing
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, get_args, get_origin

import msgspec

from toolkit.contract.columns import Shape, shape_of
from toolkit.contract.kinds import Note, field_note
from toolkit.contract.records import Record

__all__ = [
    "LIBERAL",
    "STRICT",
    "Deviation",
    "Deviations",
    "find_deviations",
    "forget_deviations",
    "is_record",
    "known_deviations",
    "learn_deviations",
    "may_lack",
]

MOST_UNKNOWN: Final = 64
"""So many unknown fields of an operation are learnt: a hostile service must not take memory."""

_UNSUITABLE = re.compile(r'[\x00-\x1f"\\\ud800-\udfff]')
"""Names with these characters cannot be the name of a struct's field."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """One field that an answer lacks, or has beyond the contract.

    Attributes
    ----------
    record : type or None
        The record that the field is of; None for a part of a pair.
    wire : str
        Its name on the wire; empty for a part of a pair.
    path : str
        Where it stands in the answer, dotted, in wire names.
    is_missing : bool
        Whether it is missing, instead of not known.
    """

    record: type[Record] | None
    wire: str
    path: str
    is_missing: bool


@dataclass(frozen=True, slots=True)
class Deviations:
    """What is taken beyond what the specification says.

    Attributes
    ----------
    missing : frozenset
        Fields that may be missing: record and name on the wire.
    unknown : tuple
        Fields that the records do not have: record and name on the wire.
    is_open : bool
        Whether any other unknown field is passed over.
    is_lax : bool
        Whether every field but the keys may be missing.
    """

    missing: frozenset[tuple[type[Record] | None, str]] = frozenset()
    unknown: tuple[tuple[type[Record], str], ...] = ()
    is_open: bool = False
    is_lax: bool = False

    def allows(self, record: type[Record] | None, wire: str) -> bool:
        """Return whether a field may be missing that the specification says is there."""
        return self.is_lax or (record, wire) in self.missing

    def extras(self, record: type[Record]) -> dict[str, str]:
        """Return the unknown fields of a record: attribute -> name on the wire."""
        return {
            f"extra_{number}": wire
            for number, (owner, wire) in enumerate(self.unknown)
            if owner is record
        }

    def learn(self, found: list[Deviation]) -> "Deviations":
        """Return these with more, up to the cap."""
        missing = {(one.record, one.wire) for one in found if one.is_missing}
        unknown = dict.fromkeys(self.unknown)
        unknown |= {
            (one.record, one.wire): None
            for one in found
            if not one.is_missing and one.record is not None and not _UNSUITABLE.search(one.wire)
        }
        learnt = tuple(unknown)[:MOST_UNKNOWN]
        odd = any(not one.is_missing and _UNSUITABLE.search(one.wire) for one in found)
        return replace(
            self,
            missing=self.missing | missing,
            unknown=learnt,
            is_open=self.is_open or odd or len(unknown) > MOST_UNKNOWN,
        )


STRICT: Final = Deviations()
"""None: what the specification says."""

LIBERAL: Final = Deviations(is_open=True, is_lax=True)
"""All: whatever can be read at all."""

_learnt: Final[dict[Any, Deviations]] = {}
_lock: Final = threading.Lock()


def known_deviations(place: Any) -> Deviations:
    """Return what is known of an operation's answers; `place` is any key of it."""
    return _learnt.get(place, STRICT)


def learn_deviations(place: Any, found: list[Deviation]) -> Deviations:
    """Remember deviations of an operation's answers, and return all that are known."""
    with _lock:
        _learnt[place] = _learnt.get(place, STRICT).learn(found)
        return _learnt[place]


def forget_deviations() -> None:
    """Forget what was learnt."""
    with _lock:
        _learnt.clear()


def find_deviations(annotation: Any, value: Any, omits: tuple[str, ...] = ()) -> list[Deviation]:
    """Return how a decoded JSON answer deviates from its annotation, each way once."""
    return list(dict.fromkeys(_walk(annotation, value, "", omits)))


def is_record(annotation: Any) -> bool:
    """Return whether an annotation is a record."""
    return isinstance(annotation, type) and issubclass(annotation, Record)


def may_lack(note: Note, shape: Shape) -> bool:
    """Return whether a field may be absent by the specification, or is known to be."""
    return shape.absent or bool(note.lacks)


def _walk(
    annotation: Any, value: Any, path: str, omits: tuple[str, ...] = ()
) -> Iterator[Deviation]:
    if is_record(annotation) and isinstance(value, dict):
        yield from _in_record(annotation, value, path, omits)
    elif isinstance(value, list):
        parts = get_args(annotation)
        if get_origin(annotation) is not tuple:
            parts *= len(value)
        elif None in value[1:]:
            yield Deviation(None, "", path.rstrip("."), is_missing=True)
        for one, item in zip(parts, value, strict=False):
            yield from _walk(one, item, path, omits)
    elif get_origin(annotation) is dict and isinstance(value, dict):
        if None in value.values():
            yield Deviation(None, "", path.rstrip("."), is_missing=True)
        for item in value.values():
            yield from _walk(get_args(annotation)[1], item, path, omits)
    else:
        for one in get_args(annotation):
            yield from _walk(one, value, path, omits)


def _in_record(
    record: type[Record], value: dict[str, Any], path: str, omits: tuple[str, ...]
) -> Iterator[Deviation]:
    fields = _fields(record, omits)
    for name, item in value.items():
        if name not in fields:
            yield Deviation(record, name, f"{path}{name}", is_missing=False)
        elif item is not None and fields[name].holds_records:
            yield from _walk(fields[name].type, item, f"{path}{name}.")
    for name, field in fields.items():
        if field.is_expected and (name not in value or (value[name] is None and not field.null)):
            yield Deviation(record, name, f"{path}{name}", is_missing=True)


@dataclass(frozen=True, slots=True)
class _Field:
    type: Any
    null: bool
    is_expected: bool
    holds_records: bool


@functools.cache
def _fields(record: type[Record], omits: tuple[str, ...]) -> dict[str, _Field]:
    """Return the fields of a record by their names on the wire."""
    hints = typing.get_type_hints(record, include_extras=True)
    found = {}
    for one in msgspec.structs.fields(record):
        if one.name in omits:
            continue
        note, shape = field_note(hints[one.name]), shape_of(hints[one.name])
        assert note is not None
        has_default = not one.required and one.default is not msgspec.UNSET
        found[one.encode_name] = _Field(
            shape.type,
            shape.null,
            not (note.key or has_default or may_lack(note, shape)),
            note.kind.family == "rows" or is_record(shape.type),
        )
    return found
