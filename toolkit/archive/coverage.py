"""Coverage: which rows the archive has, and which time ranges are proved complete.

Each refresh adds one entry to the log (the table ``pulls``): the range that it proved complete,
and how many rows there were afterwards. Fewer rows than the log counts mean that rows were lost.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from toolkit.archive.schemas import ANSWERS, PULLS, SCHEMAS, RowOrigin, operation_table
from toolkit.archive.series import Series, is_history
from toolkit.archive.storage import ArchiveTables, series_filter
from toolkit.completeness.coverage import TimeRange, join_ranges
from toolkit.contract.operations import OPERATIONS
from toolkit.times import to_ms

__all__ = [
    "CoveredRanges",
    "Refreshed",
    "RowCounts",
    "RowSpan",
    "RowSpans",
    "answer_summaries",
    "count_logged_rows",
    "covered_ranges",
    "history_summaries",
    "log_ranges",
    "log_refresh",
    "logged_row_counts",
    "missing_rows_message",
    "present_ms",
    "read_covered_ranges",
    "read_log",
    "row_spans",
]

RowCounts = Mapping[tuple[str, str], int]
"""Operation and subject -> number of rows."""
CoveredRanges = Mapping[tuple[str, str], Sequence[TimeRange]]
"""Operation and subject -> the ranges that are complete. A series without a log entry is absent."""
RowSpan = Mapping[str, Any]
"""Number of ``rows``, and the time of the ``first`` and ``last`` in Unix milliseconds."""
RowSpans = Mapping[tuple[str, str], RowSpan]
"""Operation and subject -> its span."""


@dataclass(frozen=True, slots=True)
class Refreshed:
    """The result of a refresh.

    Attributes
    ----------
    operation, subject : str
        What was refreshed.
    rows : int
        New rows. An answer that is not a history counts as one row.
    total : int
        Rows that the archive has now.
    start_ms, until_ms : int
        The range that is complete now: the requested range, and, if no end was requested, also
        the range between the last archived row and the requested start.
    history : str
        Which data the service does not have for the range, or may not have.
    """

    operation: str
    subject: str
    rows: int
    total: int
    start_ms: int
    until_ms: int
    history: str = ""


def log_refresh(tables: ArchiveTables, done: Refreshed, origin: RowOrigin) -> None:
    """Append an entry to the log: the complete range, and the number of rows.

    Call it after the rows are committed. A kill in between then claims too little, never too much.
    """
    entry = {
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
    handle = tables.open_for_append(PULLS)
    tables.append_rows(handle, pa.Table.from_pylist([entry], schema=SCHEMAS[PULLS]))


def read_log(tables: ArchiveTables, series: Series) -> list[dict[str, Any]]:
    """Return the log entries of a series."""
    handle = tables.open_table(PULLS)
    if handle is None:
        return []
    condition = series_filter(series.operation.type, series.subject)
    entries: list[dict[str, Any]] = tables.read_rows(handle, condition=condition).to_pylist()
    return entries


def _read_whole_log(
    tables: ArchiveTables, *columns: str
) -> Mapping[tuple[str, str], list[dict[str, Any]]]:
    """Return the log entries of all series with one read: operation and subject -> entries."""
    handle = tables.open_table(PULLS)
    log: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    if handle is not None:
        rows = tables.read_rows(handle, ["_operation", "_subject", *columns])
        for entry in rows.to_pylist():
            log[entry["_operation"], entry["_subject"]].append(entry)
    return log


def count_logged_rows(entries: Sequence[Mapping[str, Any]]) -> int:
    """Return how many rows a series must have at least, according to its log entries.

    Entries of answers have no total, and neither have those of older versions; they are added up.
    """
    totals = [entry["total"] for entry in entries if entry.get("total") is not None]
    # The largest total, not a sum: rows that were lost and fetched again count once.
    return max(totals) if totals else sum(entry["rows"] for entry in entries)


def logged_row_counts(tables: ArchiveTables) -> RowCounts:
    """Return how many rows each series must have.

    Call it before you read the rows: they are written before their log entry, and only grow.
    """
    log = _read_whole_log(tables, "rows", "total")
    return {pair: count_logged_rows(entries) for pair, entries in log.items()}


def missing_rows_message(found: int, expected: int) -> str:
    """Return an error message if rows are missing, else an empty string.

    Examples
    --------
    >>> missing_rows_message(5, 5)
    ''
    >>> missing_rows_message(3, 5)[:53]
    'rows were lost: the archive has 3 of 5 archived rows.'
    """
    if found >= expected:
        return ""
    return (
        f"rows were lost: the archive has {found} of {expected} archived rows. A refresh does not "
        "bring them back, it only continues after the last row: restore the files from a copy, or "
        "start a new archive"
    )


def log_ranges(entries: Sequence[Mapping[str, Any]]) -> list[TimeRange]:
    """Return the ranges that log entries prove complete, joined where they touch."""
    return join_ranges((entry["start"], entry["until"]) for entry in entries)


def covered_ranges(tables: ArchiveTables, series: Series) -> list[TimeRange]:
    """Return the complete time ranges of a series, in Unix milliseconds, both ends inclusive."""
    return log_ranges(read_log(tables, series))


def read_covered_ranges(tables: ArchiveTables) -> CoveredRanges:
    """Return the complete time ranges of every series that has a log entry."""
    log = _read_whole_log(tables, "start", "until")
    return {pair: log_ranges(entries) for pair, entries in log.items()}


def row_spans(tables: ArchiveTables, name: str) -> dict[tuple[str, str], RowSpan]:
    """Return the span of each series of a record's table."""
    handle = tables.open_table(name)
    if handle is None:
        return {}
    time = next(field.name for field in SCHEMAS[name] if pa.types.is_timestamp(field.type))
    return {
        (group["_operation"], group["_subject"]): {
            "rows": group[f"{time}_count"],
            "first": to_ms(group[f"{time}_min"]),
            "last": to_ms(group[f"{time}_max"]),
        }
        for group in _group_series(tables, handle, time)
    }


def answer_summaries(tables: ArchiveTables, handle: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of `Archive.status` for the table of whole answers."""
    for group in _group_series(tables, handle, "_fetched"):
        yield {
            "operation": group["_operation"],
            "subject": group["_subject"],
            "rows": group["_fetched_count"],
            "first": group["_fetched_min"],
            "last": group["_fetched_max"],
            "covered_from": None,
            "covered_until": None,
            "gaps": 0,
        }


def _group_series(tables: ArchiveTables, handle: Any, time: str) -> list[dict[str, Any]]:
    """Return count, first and last time of each series of a table, in order."""
    rows = tables.read_rows(handle, ["_operation", "_subject", time])
    grouped = rows.group_by(["_operation", "_subject"]).aggregate(
        [(time, "count"), (time, "min"), (time, "max")]
    )
    return sorted(grouped.to_pylist(), key=lambda group: (group["_operation"], group["_subject"]))


def history_summaries(
    name: str, spans: RowSpans, ranges: CoveredRanges
) -> Iterator[dict[str, Any]]:
    """Yield the rows of `Archive.status` for a record's table, also for series without rows."""
    no_rows = {"rows": 0, "first": None, "last": None}
    logged = {
        (operation, subject)
        for operation, subject in ranges
        if operation in OPERATIONS and operation_table(OPERATIONS[operation]) == name
    }
    for operation, subject in sorted({*spans, *logged}):
        covered = ranges.get((operation, subject), ())
        span = spans.get((operation, subject), no_rows)
        yield {
            "operation": operation,
            "subject": subject,
            **span,
            "covered_from": covered[0][0] if covered else None,
            "covered_until": covered[-1][1] if covered else None,
            "gaps": _count_gaps(covered, span["first"], span["last"]),
        }


def _count_gaps(covered: Sequence[TimeRange], first: int | None, last: int | None) -> int:
    """Return how many time ranges up to the last row are not proved complete."""
    if first is None or last is None:
        return max(len(covered) - 1, 0)
    if not covered:
        return 1
    return len(covered) - 1 + (first < covered[0][0]) + (covered[-1][1] < last)


def present_ms(tables: ArchiveTables) -> int:
    """Return the archive's present: the latest time up to which anything was refreshed."""
    latest = [0]
    for name, column in ((PULLS, "until"), (ANSWERS, "_fetched")):
        handle = tables.open_table(name)
        if handle is not None:
            latest.append(pc.max(tables.read_rows(handle, [column])[column]).as_py() or 0)
    return max(latest)
