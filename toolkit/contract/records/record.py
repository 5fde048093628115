"""The base class of all records."""

import msgspec


class Record(msgspec.Struct, rename="camel"):
    """One record of the wire. Its fields are in the order of the specification.

    A field that may be absent has the default ``UNSET``. A field that may be null allows None.
    Decimal numbers are text, as on the wire, so that no digit is lost.
    """


Text = str | msgspec.UnsetType
"""Text, or decimal text, that may be absent."""

Whole = int | msgspec.UnsetType
"""A whole number that may be absent."""

Flag = bool | msgspec.UnsetType
"""A flag that may be absent."""

Values = list[object] | msgspec.UnsetType
"""A list that may be absent, and stays as it is on the wire."""
