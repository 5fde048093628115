"""Which ranges of a history are complete: one note a refresh, in a table of its own."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from toolkit.archive.layout import PULLS, SCHEMAS, Origin
from toolkit.archive.series import Series, is_history
from toolkit.archive.tables import Tables, of_series
from toolkit.completeness.coverage import join_ranges
from toolkit.contract.operations import OPERATIONS

__all__ = [
    "Noted",
    "Ranges",
    "Refreshed",
    "covered",
    "joined",
    "loss",
    "note",
    "noted",
    "pulls_of",
    "ranges_of",
    "rows_noted",
]

Noted = Mapping[tuple[str, str], int]
"""Operation and subject -> how many rows there must be."""
Ranges = Mapping[tuple[str, str], Sequence[tuple[int, int]]]
"""Operation and subject -> the ranges that are complete; those without a note are not there."""


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
        The range that is complete now: what was asked for, and without an end also what lay
        between it and what was archived before it.
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
    """Note what range is complete, and how many rows there are.

    It follows the rows: a kill in between claims too little.
    """
    row = {
        "_operation": done.operation,
        "_subject": done.subject,
        "start": done.start_ms,
        "until": done.until_ms,
        "rows": done.rows,
        "total": done.total if is_history(OPERATIONS[done.operation]) else None,
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


def rows_noted(pulls: Sequence[Mapping[str, Any]]) -> int:
    """Give how many rows of a series there are at least, by its notes.

    Rows that were lost and came again count once in the totals. Of answers each note has its own,
    and so has each note of older versions, which wrote no totals.
    """
    totals = [one["total"] for one in pulls if one.get("total") is not None]
    return max(totals) if totals else sum(one["rows"] for one in pulls)


def noted(tables: Tables) -> Noted:
    """Give how many rows each series must have.

    Read it before the rows themselves: these only grow, and are there before their note.
    """
    return {pair: rows_noted(pulls) for pair, pulls in _grouped(tables, "rows", "total").items()}


def loss(there: int, kept: int) -> str:
    """Say that rows were lost, where fewer are there than were kept; else nothing."""
    if there >= kept:
        return ""
    return (
        f"rows were lost: {there} are there, of {kept} that were kept; a refresh only goes on "
        "after the last row: restore the files from a copy, or begin a new archive"
    )


def covered(tables: Tables, series: Series) -> list[tuple[int, int]]:
    """Give the ranges of time that are complete, in milliseconds, both ends inclusive."""
    return joined(pulls_of(tables, series))


def ranges_of(tables: Tables) -> Ranges:
    """Give what `covered` gives, of every series that has a note."""
    return {pair: joined(pulls) for pair, pulls in _grouped(tables, "start", "until").items()}


def joined(pulls: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    """Join the ranges of notes that touch; a note that ends before it begins has none."""
    return join_ranges((one["start"], one["until"]) for one in pulls)


def _grouped(tables: Tables, *columns: str) -> Mapping[tuple[str, str], list[dict[str, Any]]]:
    """Read the notes of all series at once."""
    handle = tables.handle(PULLS)
    found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    if handle is not None:
        for one in tables.read(handle, ["_operation", "_subject", *columns]).to_pylist():
            found[one["_operation"], one["_subject"]].append(one)
    return found
