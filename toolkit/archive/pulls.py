"""Which ranges of a history are complete: one note a refresh, in a table of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from toolkit.archive.layout import PULLS, SCHEMAS, Origin
from toolkit.archive.series import Series
from toolkit.archive.tables import Tables, of_series

__all__ = ["Refreshed", "covered", "joined", "note", "pulls_of"]


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a refresh did.

    Attributes
    ----------
    operation, subject : str
        What was refreshed.
    rows : int
        Rows that were new; for a state, the one answer.
    total : int
        Rows that there are now.
    start_ms, until_ms : int
        The range that is complete.
    history : str
        What the service does not have of it, or may not have.
    """

    operation: str
    subject: str
    rows: int
    total: int
    start_ms: int
    until_ms: int
    history: str = ""


def note(tables: Tables, done: Refreshed, origin: Origin) -> None:
    """Note what range is complete. It follows the rows: a kill in between claims too little."""
    row = {
        "_operation": done.operation,
        "_subject": done.subject,
        "start": done.start_ms,
        "until": done.until_ms,
        "rows": done.rows,
        "_source": origin.source,
        "_simulated": origin.simulated,
        "_fetched": origin.fetched_ms,
    }
    handle = tables.handle_to_write(PULLS)
    tables.append(handle, pa.Table.from_pylist([row], schema=SCHEMAS[PULLS]))


def pulls_of(tables: Tables, series: Series) -> list[dict[str, Any]]:
    """Give the notes of a series."""
    handle = tables.handle(PULLS)
    if handle is None:
        return []
    where = of_series(series.operation.type, series.subject)
    found: list[dict[str, Any]] = tables.read(handle, where=where).to_pylist()
    return found


def covered(tables: Tables, series: Series) -> list[tuple[int, int]]:
    """Give the ranges of time that are complete, in milliseconds, both ends inclusive."""
    return joined(pulls_of(tables, series))


def joined(pulls: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    """Join the ranges of notes that touch; a note that ends before it begins has none."""
    ranges: list[tuple[int, int]] = []
    for start, until in sorted((one["start"], one["until"]) for one in pulls):
        if until < start:
            continue
        if ranges and start <= ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], max(until, ranges[-1][1]))
        else:
            ranges.append((start, until))
    return ranges
