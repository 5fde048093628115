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
class Kind:
    """A common meaning of values: its name, its family of columns and its unit."""

    name: str
    family: Family
    unit: str = ""

    def __call__(self, meaning: str, *, unit: str = "", **facts: Any) -> msgspec.Meta:
        """Return the annotation of a field.

        - ``meaning``: one line for the docs; empty if the meanings in a nested record suffice
        - ``unit``: the unit, if it is not that of the kind
        - ``facts``: further facts of `toolkit.contract.fields.Field`; ``column``, the name of the
          column, if it is not that of the field; and ``is_presence``, whether the field is a flag
          that is true or absent. A reader takes absence and null as false, so that the column is
          never missing.
        """
        kind = Kind(self.name, self.family, unit) if unit else self
        return msgspec.Meta(description=meaning, extra={"kind": kind, **facts})


PRICE = Kind("price", "number", "USD per unit")
SIZE = Kind("size", "number", "units of the coin")
AMOUNT = Kind("amount", "number", "units of the token")
FEE = Kind("amount", "number", "fee token")
NATIVE = Kind("amount", "number", "native token")
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
