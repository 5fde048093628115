"""The kinds of values, for records, frames, docs and tests.

The field of a record is annotated with a kind::

    px: Annotated[str, PRICE("fill price")]

The Python type is the form on the wire (decimal text, whole number, flag, ...). The kind is the
meaning, the unit and the family of the column.
"""

from dataclasses import dataclass
from typing import Any, Literal

import msgspec

Family = Literal["number", "time", "seconds", "iso", "integer", "flag", "text", "nested", "rows"]
"""The family of a column; `toolkit.frames` has a dtype for each."""

Numbers = Literal["float", "exact", "text"]
"""The form of numbers: 64-bit floats, exact decimals, or the text of the wire."""

EXACT_PRECISION = 36
EXACT_SCALE = 18
"""Exact numbers are decimals of 36 digits, 18 of them after the point.

A 128-bit decimal has 38 digits; the other two leave room for sums."""


@dataclass(frozen=True, slots=True)
class Note:
    """The facts about one field of a record.

    - ``kind``: its kind
    - ``prefix``: a prefix for the column names of a nested record, to keep them unique
    - ``missing_reason``: why readers accept that the field is missing although the specification
      requires it: which known answers do not have it
    - ``column``: the name of the column, if it is not that of the field
    - ``older_place_of``: the column that gets this value if the field at the newer place is empty
    - ``beyond``: the section of docs/live_service.md about a field beyond the specification; 0 for
      a field of the specification
    - ``key``: whether every row must have the field. Any other field that is absent or null is a
      missing value.
    - ``is_presence``: whether the field is a flag that is true or absent. A reader takes absence
      and null as false, so that the column is never missing.
    """

    kind: "Kind"
    prefix: str = ""
    missing_reason: str = ""
    column: str = ""
    older_place_of: str = ""
    beyond: int = 0
    key: bool = False
    is_presence: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """A common meaning of values: its name, its family of columns and its unit."""

    name: str
    family: Family
    unit: str = ""

    def __call__(self, meaning: str, *, unit: str = "", **facts: Any) -> msgspec.Meta:
        """Return the annotation of a field.

        - ``meaning``: one line for the docs; empty if the meanings in a nested record suffice
        - ``unit``: the unit, if it is not that of the kind
        - ``facts``: the other facts of a `Note`
        """
        kind = Kind(self.name, self.family, unit) if unit else self
        return msgspec.Meta(description=meaning, extra={"note": Note(kind, **facts)})


PRICE = Kind("price", "number", "USD per unit")
SIZE = Kind("size", "number", "units of the coin")
AMOUNT = Kind("amount", "number", "units of the token")
USD = Kind("usd", "number", "USD")
BPS = Kind("bps", "number", "basis points")
RATE = Kind("rate", "number", "fraction")
TIME = Kind("time", "time", "UTC, from milliseconds")
SECONDS = Kind("seconds", "seconds", "UTC, from seconds")
ISO_TIME = Kind("iso time", "iso", "UTC, from ISO text")
ID = Kind("id", "integer")
COUNT = Kind("count", "integer")
FLAG = Kind("flag", "flag")
TEXT = Kind("text", "text")
ADDRESS = Kind("address", "text")
COIN = Kind("coin", "text")
WORD = Kind("word", "text")
NESTED = Kind("nested", "nested")
"""A record whose fields become columns, or a value with parts in one cell."""
ROWS = Kind("rows", "rows")
"""A list, or pairs; the entries become rows of a frame."""


def field_note(annotation: object) -> Note | None:
    """Return the note in an ``Annotated[...]``, or None if there is none."""
    for meta in getattr(annotation, "__metadata__", ()):
        if isinstance(meta, msgspec.Meta) and meta.extra and "note" in meta.extra:
            note: Note = meta.extra["note"]
            return note
    return None
