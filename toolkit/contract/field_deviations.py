"""Fields that differ from the contract: how they are found, remembered and reported.

A value that is absent or null becomes a missing value, unless it is a key field, and an unknown
field is kept (docs/live_service.md, section 1). The first answer with a deviation is examined; then
the decoder is built with it, so that all further pages decode as fast as a regular answer.
"""

import dataclasses
import functools
import re
import reprlib
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args, get_origin

from toolkit.contract.fields import RecordField, is_record, record_fields
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.records import Record
from toolkit.errors import MissingField, UnknownField

MOST_UNKNOWN: Final = 64
"""Largest number of unknown fields that are remembered per operation, to bound the memory."""

UNSUITABLE = re.compile(r'[\x00-\x1f"\\\ud800-\udfff]')
"""Characters that the name of a struct's field cannot have."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """One field that an answer lacks, has in another form, or has in addition to the contract.

    - ``record``: the record of the field; None for a part of a pair
    - ``wire``: its name on the wire; empty for a part of a pair
    - ``path``: its place in the answer: wire names with dots between them
    - ``kind``: what is wrong with the field
    - ``beyond``: whether the field is beyond the specification
    - ``value``: a value that cannot be read
    """

    record: type[Record] | None
    wire: str
    path: str
    kind: Literal["missing", "unknown", "unreadable"]
    beyond: bool = False
    value: Any = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class AcceptedDeviations:
    """The deviations that a decoder accepts.

    - ``missing``: fields that may be missing: record and name on the wire
    - ``unreadable``: fields beyond the specification with a value of another form: record and name
      on the wire
    - ``unknown``: fields that the records do not have: record and name on the wire
    - ``is_open``: whether the decoder ignores any other unknown field
    - ``is_lax``: whether every field except the keys may be missing, and every field beyond the
      specification may be unreadable
    """

    missing: frozenset[tuple[type[Record] | None, str]] = frozenset()
    unreadable: frozenset[tuple[type[Record] | None, str]] = frozenset()
    unknown: tuple[tuple[type[Record], str], ...] = ()
    is_open: bool = False
    is_lax: bool = False

    def allows_missing(self, record: type[Record] | None, wire: str) -> bool:
        """Return whether a field may be missing although the specification requires it."""
        return self.is_lax or (record, wire) in self.missing

    def allows_unreadable(self, record: type[Record], wire: str) -> bool:
        """Return whether a field beyond the specification may have a value of another form."""
        return self.is_lax or (record, wire) in self.unreadable

    def unknown_fields(self, record: type[Record]) -> dict[str, str]:
        """Return the unknown fields of a record: attribute -> name on the wire."""
        return {
            f"extra_{number}": wire
            for number, (owner, wire) in enumerate(self.unknown)
            if owner is record
        }

    def extend(self, found: list[Deviation]) -> "AcceptedDeviations":
        """Return these deviations and the found ones, at most `MOST_UNKNOWN` unknown fields."""
        missing, unreadable = (
            {(field.record, field.wire) for field in found if field.kind == kind}
            for kind in ("missing", "unreadable")
        )
        unknown = dict.fromkeys(self.unknown)
        has_unsuitable = False
        for field in found:
            if field.kind != "unknown" or field.record is None:
                continue
            if UNSUITABLE.search(field.wire):
                has_unsuitable = True
            else:
                unknown[field.record, field.wire] = None
        return replace(
            self,
            missing=self.missing | missing,
            unreadable=self.unreadable | unreadable,
            unknown=tuple(unknown)[:MOST_UNKNOWN],
            is_open=self.is_open or has_unsuitable or len(unknown) > MOST_UNKNOWN,
        )


LIBERAL: Final = AcceptedDeviations(is_open=True, is_lax=True)
"""Every deviation that still can be decoded."""

NO_DEVIATIONS: Final = AcceptedDeviations()

KNOWN_DEVIATIONS: Final[dict[Any, AcceptedDeviations]] = {}
"""Operation type, type of its answer, omitted fields -> the deviations that are known so far."""

_lock: Final = threading.Lock()
# Fields of which this process has warned. Otherwise every page would warn of the same field again.
_reported: Final[set[tuple[str, str]]] = set()


def learn_deviations(answer_key: Any, operation: str, found: list[Deviation]) -> AcceptedDeviations:
    """Remember and report deviations of an operation's answers, and return all known ones.

    `answer_key` is the key of these answers in `KNOWN_DEVIATIONS`.
    """
    with _lock:
        before = KNOWN_DEVIATIONS.get(answer_key, NO_DEVIATIONS)
        known = KNOWN_DEVIATIONS[answer_key] = before.extend(found)
    for field in sorted(found, key=lambda field: field.path):
        if field.kind == "missing":
            report_missing(operation, field.path, beyond=field.beyond)
        elif field.kind == "unreadable":
            report_unreadable(operation, field.path, field.value, "value")
        elif (field.record, field.wire) in known.unknown:
            report_unknown(operation, field.path)
    if known.is_open and not before.is_open:
        words = "further fields, too many or with names that no column can have"
        report_unknown(operation, words, has_column=False)
    return known


def forget_deviations() -> None:
    """Forget all deviations, so that they are found and reported again."""
    with _lock:
        KNOWN_DEVIATIONS.clear()
        _reported.clear()


def report_unknown(operation: str, field: str, *, has_column: bool = True) -> None:
    """Warn of a field, or of a value of a tuple, once for each operation and field.

    - ``operation``: the ``type`` of the operation
    - ``field``: the dotted wire names of the field
    - ``has_column``: whether a frame can have a column for it
    """
    column = 'extra="keep" adds columns for the fields of rows; ' if has_column else ""
    _report(
        operation,
        field,
        f"{operation}: the answer has a field that this version does not know: {field[:80]}. "
        f"Frames do not contain it; {column}tk.raw shows it.",
        UnknownField,
    )


def report_missing(operation: str, field: str, *, beyond: bool = False) -> None:
    """Warn of a field that is absent or null, once for each operation and field.

    `beyond` says whether the field is beyond the specification.
    """
    who = "known answers have" if beyond or operation not in OPERATIONS else "the specification has"
    _report(
        operation,
        f"{field}, missing",
        f"{operation}: the answer lacks {field[:80] or 'a value'}, which {who} in every row. "
        "It is missing (NA) in the frame.",
        MissingField,
    )


def report_unreadable(operation: str, field: str, value: object, kind: str) -> None:
    """Warn of an illegal value of a field beyond the specification, once for each field."""
    _report(
        operation,
        f"{field}, unreadable",
        f"{operation}: a value of {field[:80]} in the answer is not a legal {kind}: "
        f"{reprlib.repr(value)}. It is missing (NA) in the frame; tk.raw shows it.",
        MissingField,
    )


def _report(operation: str, field: str, message: str, category: type[Warning]) -> None:
    if (operation, field) in _reported:
        return
    _reported.add((operation, field))
    warnings.warn(message, category, stacklevel=3)


_FindUnreadable = Callable[[RecordField, Any], list[Any]]


def find_deviations(
    annotation: Any, value: Any, find_unreadable: _FindUnreadable, omits: tuple[str, ...] = ()
) -> list[Deviation]:
    """Compare a decoded JSON answer with its annotated type, and return each deviation once.

    - ``find_unreadable``: returns the values of a field beyond the specification that cannot be
      read: of a list of pairs only the bad pairs, otherwise the value itself
    - ``omits``: fields of the outermost record that the operation does not have
    """
    return list(dict.fromkeys(_deviations_in(annotation, value, "", find_unreadable, omits)))


def _deviations_in(
    annotation: Any,
    value: Any,
    path: str,
    find_unreadable: _FindUnreadable,
    omits: tuple[str, ...] = (),
) -> Iterator[Deviation]:
    if is_record(annotation) and isinstance(value, dict):
        yield from _deviations_in_record(annotation, value, path, find_unreadable, omits)
    elif isinstance(value, list) and get_origin(annotation) in (list, tuple):
        parts = get_args(annotation)
        if get_origin(annotation) is not tuple:
            parts *= len(value)
        elif None in value[1:]:
            yield Deviation(None, "", path.rstrip("."), "missing")
        for part, item in zip(parts, value, strict=False):
            yield from _deviations_in(part, item, path, find_unreadable, omits)
    elif get_origin(annotation) is dict and isinstance(value, dict):
        if None in value.values():
            yield Deviation(None, "", path.rstrip("."), "missing")
        for item in value.values():
            yield from _deviations_in(get_args(annotation)[1], item, path, find_unreadable, omits)
    else:
        for part in get_args(annotation):
            yield from _deviations_in(part, value, path, find_unreadable, omits)


def _deviations_in_record(
    record: type[Record],
    value: dict[str, Any],
    path: str,
    find_unreadable: _FindUnreadable,
    omits: tuple[str, ...],
) -> Iterator[Deviation]:
    fields = _fields_by_wire(record, omits)
    for name, item in value.items():
        if name not in fields:
            yield Deviation(record, name, f"{path}{name}", "unknown")
            continue
        if item is None:
            continue
        unreadable = find_unreadable(fields[name], item) if fields[name].may_be_unreadable else []
        if unreadable:
            yield Deviation(record, name, f"{path}{name}", "unreadable", value=unreadable[0])
        left_out = set(map(id, unreadable))
        if fields[name].has_records and id(item) not in left_out:
            kept = [part for part in item if id(part) not in left_out] if left_out else item
            yield from _deviations_in(fields[name].type, kept, f"{path}{name}.", find_unreadable)
    for name, field in fields.items():
        if field.is_expected and (name not in value or (value[name] is None and not field.null)):
            beyond = bool(field.note.beyond)
            yield Deviation(record, name, f"{path}{name}", "missing", beyond=beyond)


@functools.cache
def _fields_by_wire(record: type[Record], omits: tuple[str, ...]) -> dict[str, RecordField]:
    return {field.wire: field for field in record_fields(record) if field.name not in omits}
