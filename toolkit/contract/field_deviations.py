"""Fields that differ from the contract: how they are remembered and reported.

A value that is absent or null becomes a missing value, unless it is a key field, and an unknown
field is kept (docs/live_service.md, section 1). `toolkit.contract.answers` finds them. What was
found once is accepted from then on, so that all further pages decode as fast as a regular answer.
"""

import re
import reprlib
import warnings
from collections.abc import Collection
from typing import Any, Final, Literal, NamedTuple

from toolkit.contract.operations import OPERATIONS
from toolkit.contract.records import Record
from toolkit.errors import MissingField, UnknownField

MOST_UNKNOWN: Final = 64
"""Largest number of unknown fields that are remembered per operation, to bound the memory."""

_UNSUITABLE: Final = re.compile(r'[\x00-\x1f"\\\ud800-\udfff]')
"""Characters that the name of a struct's field cannot have."""

Place = tuple[type[Record] | None, str]
"""A field: its record and its name on the wire; None and empty text for a part of a pair."""


class Deviation(NamedTuple):
    """One field that an answer lacks, has in another form, or has in addition to the contract.

    - ``kind``: what is wrong with the field; ``rewritten`` if it is the number of a decimal text
    - ``field``: the field
    - ``path``: its place in the answer: wire names with dots between them
    - ``beyond``: whether the field is beyond the specification
    - ``value``: a value that cannot be read
    """

    kind: Literal["missing", "unknown", "unreadable", "rewritten"]
    field: Place
    path: str
    beyond: bool = False
    value: Any = None


class Accepted(NamedTuple):
    """The deviations that a decoder accepts.

    - ``missing``: fields that may be missing; None: all of them
    - ``unknown``: fields that the records do not have
    - ``is_open``: whether the decoder ignores any other unknown field
    """

    missing: frozenset[Place] | None = frozenset()
    unknown: tuple[Place, ...] = ()
    is_open: bool = False

    def allows_missing(self, record: type[Record] | None, wire: str) -> bool:
        """Return whether a field may be missing although the specification requires it."""
        return self.missing is None or (record, wire) in self.missing

    def extend(self, found: Collection[Deviation]) -> "Accepted":
        """Return these deviations and the found ones, at most `MOST_UNKNOWN` unknown fields."""
        gone = {item.field for item in found if item.kind in ("missing", "unreadable")}
        new = [item.field for item in found if item.kind == "unknown"]
        unknown = dict.fromkeys((*self.unknown, *new))
        kept = [place for place in unknown if not _UNSUITABLE.search(place[1])][:MOST_UNKNOWN]
        is_open = self.is_open or len(kept) < len(unknown)
        return Accepted((self.missing or frozenset()) | gone, tuple(kept), is_open)


LIBERAL: Final = Accepted(missing=None, is_open=True)
"""Every deviation that still can be decoded."""

KNOWN_DEVIATIONS: Final[dict[Any, Accepted]] = {}
"""Operation type, type of its answer, omitted fields -> the deviations that are known so far."""

# Fields of which this process has warned. Otherwise every page would warn of the same field again.
_reported: Final[set[tuple[str, str]]] = set()


def report_deviations(operation: str, found: Collection[Deviation], accepted: Accepted) -> None:
    """Warn of the deviations of an operation's answer that are accepted."""
    for kind, field, path, beyond, value in sorted(found, key=lambda item: item.path):
        if kind == "missing":
            report_missing(operation, path, beyond=beyond)
        elif kind == "unreadable":
            report_unreadable(operation, path, value, "value")
        elif field in accepted.unknown:
            report_unknown(operation, path)
    if accepted.is_open:
        words = "further fields, too many or with names that no column can have"
        report_unknown(operation, words, has_column=False)


def forget_deviations() -> None:
    """Forget all deviations, so that they are found and reported again."""
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
