"""What a value is: said once here, read by records, frames, documents and tests.

A kind is called to annotate the field of a record::

    px: Annotated[str, PRICE("fill price")]

The Python type says how the value travels (decimal text, whole number, flag, ...), the
kind says what it means and which family of columns it becomes.
"""

from dataclasses import dataclass
from typing import Literal

import msgspec

__all__ = [
    "ADDRESS",
    "AMOUNT",
    "BPS",
    "COIN",
    "COUNT",
    "EXACT_PRECISION",
    "EXACT_SCALE",
    "FLAG",
    "ID",
    "ISO_TIME",
    "NESTED",
    "PRICE",
    "RATE",
    "ROWS",
    "SECONDS",
    "SIZE",
    "TEXT",
    "TIME",
    "USD",
    "WORD",
    "Family",
    "Kind",
    "Note",
    "Numbers",
    "field_note",
]

Family = Literal["number", "time", "seconds", "iso", "integer", "flag", "text", "nested", "rows"]
"""Which family of columns a value belongs to; `toolkit.frames` gives each its dtype."""

Numbers = Literal["float", "exact", "text"]
"""The form of numbers: 64-bit floats, exact decimals, or the text of the wire."""

EXACT_PRECISION = 36
EXACT_SCALE = 18
"""Exact numbers are decimals of 36 digits, 18 of them after the point.

Two digits are left of the 38 that a 128-bit decimal holds, so that frames can be added."""


@dataclass(frozen=True, slots=True)
class Note:
    """What a record says of one field; `Kind.__call__` explains the parts."""

    kind: "Kind"
    prefix: str = ""
    lacks: str = ""
    column: str = ""
    fills: str = ""
    beyond: int = 0
    key: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """A meaning that values share: its name, family of columns and unit."""

    name: str
    family: Family
    unit: str = ""

    def __call__(
        self,
        meaning: str,
        *,
        prefix: str = "",
        lacks: str = "",
        unit: str = "",
        column: str = "",
        fills: str = "",
        beyond: int = 0,
        key: bool = False,
    ) -> msgspec.Meta:
        """Annotate a field.

        Parameters
        ----------
        meaning : str
            One line for the documents.
        prefix : str
            Put before the column names of a nested record, where they would clash.
        lacks : str
            Which known answers lack the field although the specification requires it;
            readers then take it as missing.
        unit : str
            The unit, where it differs from the kind's.
        column : str
            The name of the column, where it differs from the name of the field.
        fills : str
            The column that an older place of a value fills, where the newer place is empty.
        beyond : int
            The section of docs/live_service.md that a field beyond the specification comes
            from; 0 for a field of the specification.
        key : bool
            Whether a row means nothing without it. Any other field that is absent or null in an
            answer is read as missing.
        """
        kind = Kind(self.name, self.family, unit) if unit else self
        return msgspec.Meta(
            description=meaning,
            extra={"note": Note(kind, prefix, lacks, column, fills, beyond, key)},
        )


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
"""A record whose fields become columns, or a value with parts that fills one cell."""
ROWS = Kind("rows", "rows")
"""A list, or pairs, whose entries become rows of a frame."""


def field_note(annotation: object) -> Note | None:
    """Give the note in an ``Annotated[...]``, or None where there is none."""
    for meta in getattr(annotation, "__metadata__", ()):
        if isinstance(meta, msgspec.Meta) and meta.extra and "note" in meta.extra:
            note: Note = meta.extra["note"]
            return note
    return None
