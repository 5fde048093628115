"""Tables with nothing beyond the specification, for a service that is asked to be strict."""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from toolkit.contract.fields import drop_beyond_fields
from toolkit.contract.sources import Sources

__all__ = ["strict_sources"]

_STREAMS = ("fills", "funding", "ledger", "orders", "slippage")
"""Tables that may be read only once, row by row."""


def strict_sources(sources: Sources) -> Sources:
    """Return tables whose records have no field beyond the specification."""
    changes: dict[str, Any] = {}
    for field in fields(sources):
        table = getattr(sources, field.name)
        if field.name in _STREAMS:
            changes[field.name] = _rows(table)
        elif (new := drop_beyond_fields(table)) is not table:
            changes[field.name] = new
    return replace(sources, **changes)


def _rows(table: Any) -> Iterator[Any]:
    return (drop_beyond_fields(row) for row in table)
