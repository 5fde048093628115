"""Which ranges of a history are complete: one note a refresh, in a table of its own."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.archive.schemas import ANSWERS, PULLS, RECORDS, SCHEMAS, Origin, table_of
from toolkit.archive.series import Series, is_history
from toolkit.archive.storage import Tables, of_series, sizes
from toolkit.completeness.coverage import join_ranges
from toolkit.contract.operations import OPERATIONS
from toolkit.times import to_ms

__all__ = [
    "Noted",
    "Ranges",
    "Refreshed",
    "Span",
    "Spans",
    "covered",
    "histories",
    "joined",
    "loss",
    "note",
    "noted",
    "present_ms",
    "pulls_of",
    "ranges_of",
    "rows_noted",
    "spans_of",
    "status",
    "summary",
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


_COLUMNS: Final = (
    "table",
    "operation",
    "subject",
    "rows",
    "first",
    "last",
    "covered_from",
    "covered_until",
    "gaps",
    "version",
    "bytes",
)
_TIMES: Final = ("first", "last", "covered_from", "covered_until")


Span = Mapping[str, Any]
"""How many ``rows``, and their ``first`` and ``last`` time in milliseconds."""
Spans = Mapping[tuple[str, str], Span]
"""Operation and subject -> span."""


def spans_of(tables: Tables, name: str) -> dict[tuple[str, str], Span]:
    """Give the span of each series of a record's table."""
    handle = tables.handle(name)
    if handle is None:
        return {}
    time = _time_of(name)
    rows = tables.read(handle, ["_operation", "_subject", time])
    grouped = rows.group_by(["_operation", "_subject"]).aggregate(
        [(time, "count"), (time, "min"), (time, "max")]
    )
    return {
        (one["_operation"], one["_subject"]): {
            "rows": one[f"{time}_count"],
            "first": to_ms(one[f"{time}_min"]),
            "last": to_ms(one[f"{time}_max"]),
        }
        for one in sorted(grouped.to_pylist(), key=lambda one: (one["_operation"], one["_subject"]))
    }


def status(tables: Tables) -> pd.DataFrame:
    """Say what is archived; see `Archive.status`."""
    tables = tables.pinned()
    ranges = ranges_of(tables)
    rows: list[dict[str, Any]] = []
    for name in (*RECORDS, ANSWERS):
        handle = tables.handle(name)
        if handle is None:
            continue
        found = list(
            _answers(tables, handle)
            if name == ANSWERS
            else histories(name, spans_of(tables, name), ranges)
        )
        # Rows of many subjects lie in one file: its bytes are shared out by rows.
        each = sum(sizes(handle)) / max(sum(one["rows"] for one in found), 1)
        for one in found:
            size = round(each * one["rows"])
            rows.append({"table": name, "version": handle.version(), "bytes": size} | one)
    made = pd.DataFrame(rows, columns=list(_COLUMNS))
    for column in _TIMES:
        made[column] = pd.to_datetime(made[column], utc=True, unit="ms").astype(
            "datetime64[ms, UTC]"
        )
    texts = ["table", "operation", "subject"]
    counts = ["rows", "gaps", "version", "bytes"]
    return made.astype(dict.fromkeys(texts, "str") | dict.fromkeys(counts, "int64"))


def summary(tables: Tables) -> pd.DataFrame:
    """Give rows, version, files and bytes of every table, from the logs alone."""
    found = []
    for name in SCHEMAS:
        handle = tables.handle(name)
        if handle is not None:
            files = pa.table(handle.get_add_actions(flatten=True))
            rows, size = (sum(files[one].to_pylist()) for one in ("num_records", "size_bytes"))
            found.append((name, rows, handle.version(), files.num_rows, size))
    return pd.DataFrame(found, columns=["table", "rows", "version", "files", "bytes"])


def histories(name: str, spans: Spans, ranges: Ranges) -> Iterator[dict[str, Any]]:
    """Give the series of a table, those without rows too, and of which range they are proved."""
    nothing = {"rows": 0, "first": None, "last": None}
    noted = {one for one in ranges if one[0] in OPERATIONS and table_of(OPERATIONS[one[0]]) == name}
    for operation, subject in sorted({*spans, *noted}):
        known = ranges.get((operation, subject), ())
        rows = spans.get((operation, subject), nothing)
        yield {
            "operation": operation,
            "subject": subject,
            **rows,
            "covered_from": known[0][0] if known else None,
            "covered_until": known[-1][1] if known else None,
            "gaps": _gaps(known, rows["first"], rows["last"]),
        }


def _gaps(ranges: Sequence[tuple[int, int]], first: int | None, last: int | None) -> int:
    """Count the stretches, up to the last row, that no refresh has proved complete."""
    if first is None or last is None:
        return max(len(ranges) - 1, 0)
    if not ranges:
        return 1
    return len(ranges) - 1 + (first < ranges[0][0]) + (ranges[-1][1] < last)


def _answers(tables: Tables, handle: Any) -> Iterator[dict[str, Any]]:
    rows = tables.read(handle, ["_operation", "_subject", "_fetched"])
    grouped = rows.group_by(["_operation", "_subject"]).aggregate(
        [("_fetched", "count"), ("_fetched", "min"), ("_fetched", "max")]
    )
    for one in sorted(grouped.to_pylist(), key=lambda one: (one["_operation"], one["_subject"])):
        yield {
            "operation": one["_operation"],
            "subject": one["_subject"],
            "rows": one["_fetched_count"],
            "first": one["_fetched_min"],
            "last": one["_fetched_max"],
            "covered_from": None,
            "covered_until": None,
            "gaps": 0,
        }


def present_ms(tables: Tables) -> int:
    """Give the archive's present: the last moment that anything was refreshed up to."""
    last = [0]
    for name, column in ((PULLS, "until"), (ANSWERS, "_fetched")):
        handle = tables.handle(name)
        if handle is not None:
            last.append(pc.max(tables.read(handle, [column])[column]).as_py() or 0)
    return max(last)


def _time_of(name: str) -> str:
    times = [one.name for one in SCHEMAS[name] if pa.types.is_timestamp(one.type)]
    return str(times[0])
