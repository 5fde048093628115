"""What was pulled of each series: its runs, and the log of refreshes.

The rows of a run follow each other without a gap. A refresh continues a run from the time of its
last row: the service must return the rows of that time again, which proves that the new rows
follow the archived ones.

Each refresh adds one entry to the log (the table ``pulls``): the range that it proved complete,
and how many rows there were afterwards. Fewer rows than the log counts mean that rows were lost.
"""

import contextlib
import json
import operator
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from toolkit.archive.compaction import join_small_files
from toolkit.archive.errors import CommitConflict, HistoryMismatch
from toolkit.archive.schemas import (
    ANSWERS,
    COMPLETE,
    PULLS,
    SCHEMAS,
    RowOrigin,
    Series,
    is_history,
    operation_table,
)
from toolkit.archive.storage import ArchiveTables, file_actions
from toolkit.completeness.covered_ranges import TimeRange, join_ranges, subtract_ranges
from toolkit.completeness.row_checks import BreakLog
from toolkit.contract.columns import table_columns
from toolkit.contract.operations import OPERATIONS
from toolkit.times import to_ms

__all__ = [
    "LogEntries",
    "Refreshed",
    "Run",
    "RunLengths",
    "RunOverlap",
    "contradictory_ranges",
    "count_gaps",
    "count_logged_rows",
    "count_run_rows",
    "is_run_complete",
    "log_entry",
    "log_ranges",
    "log_refreshes",
    "missing_rows_message",
    "present_ms",
    "proved_ranges",
    "read_log",
    "read_runs",
    "read_series_log",
    "select_runs",
    "select_table_log",
]

LogEntries = Sequence[Mapping[str, Any]]
"""Entries of the log of refreshes, of one series."""

_REFRESHES_PER_JOIN: Final = 32
_TIME_TYPE: Final = pa.timestamp("us", "UTC")


RunLengths = Mapping[int, int]
"""The start of each run of a series, and how many rows the run has."""

_MOST_TEXT: Final = 100_000  # bytes of the last rows of a run in the log


@dataclass(frozen=True, slots=True)
class Run:
    """Rows of a history that were pulled one after the other.

    Attributes
    ----------
    start, bound : int
        The time range of the run in Unix milliseconds, both ends inclusive. The last run of a
        series has no bound.
    rows : int
        How many of its rows are archived.
    last : int or None
        The time of the last archived row.
    last_texts : tuple of bytes
        The archived rows of that time. The service must return them again.
    """

    start: int
    bound: int | None
    rows: int = 0
    last: int | None = None
    last_texts: tuple[bytes, ...] = ()

    def extend(self, series: Series, rows: pa.Table) -> "Run":
        """Return the run with further rows, in the form of the table."""
        if not rows.num_rows:
            return self
        times = rows[series.keys[0]]
        last = pc.max(times)
        texts = rows["_json"].filter(pc.equal(times, last)).to_pylist()
        last_ms = to_ms(last.as_py())
        kept = self.last_texts if self.last == last_ms else ()
        return replace(
            self,
            rows=self.rows + rows.num_rows,
            last=last_ms,
            last_texts=(*kept, *(text.encode() for text in texts)),
        )


def count_run_rows(tables: ArchiveTables, handle: Any) -> dict[str, dict[int, int]] | None:
    """Return the lengths of all runs of a table: name of the series -> start of run -> rows.

    They come from the transactions of the table. Return None if these cannot be read.
    """
    transactions = tables.read_transactions(handle)
    if transactions is None:
        return None
    lengths: dict[str, dict[int, int]] = defaultdict(dict)
    for name, rows in transactions.items():
        series, is_of_run, start = name.rpartition(" from ")
        if is_of_run and rows and not start.endswith(COMPLETE):
            lengths[series][int(start)] = rows
    return dict(lengths)


def read_runs(
    tables: ArchiveTables,
    handle: Any,
    series: Series,
    entries: "LogEntries" = (),
    lengths: RunLengths | None = None,
) -> list[Run]:
    """Return the runs of a series that have rows, by start.

    Parameters
    ----------
    tables : ArchiveTables
        The archive.
    handle : DeltaTable
        The table of the series.
    series : Series
        The series.
    entries : list of mapping
        Its entries in the log of refreshes, which note the runs.
    lengths : mapping, optional
        The lengths of its runs. If an entry notes runs of these lengths, no row is read.
    """
    if lengths is not None:
        if not lengths and not entries:
            return []
        for entry in sorted(entries, key=operator.itemgetter("_fetched"), reverse=True):
            noted = _noted_runs(entry)
            if noted and {run.start: run.rows for run in noted} == lengths:
                return noted
    time = series.keys[0]
    rows = tables.read_rows(handle, ["_part", "_row", time], series=series)
    groups = rows.group_by("_part").aggregate([("_row", "count"), (time, "max")])
    groups = groups.sort_by("_part").to_pylist()
    runs = []
    # A run ends where the next one begins.
    bounds = [group["_part"] - 1 for group in groups[1:]] + [None]
    for group, bound in zip(groups, bounds, strict=False):  # without groups there is one bound
        start, last = group["_part"], group[f"{time}_max"]
        is_last = (ds.field("_part") == start) & (ds.field(time) == pa.scalar(last, _TIME_TYPE))
        newest = tables.read_rows(handle, ["_row", "_json"], is_last, series)
        texts = tuple(text.encode() for text in newest.sort_by("_row")["_json"].to_pylist())
        runs.append(Run(start, bound, group["_row_count"], to_ms(last), texts))
    return runs


def _noted_runs(entry: Mapping[str, Any]) -> list[Run]:
    """Return the runs that an entry of the log notes; older versions noted none."""
    noted = json.loads(entry.get("runs") or "[]")
    bounds = [run["start"] - 1 for run in noted[1:]] + [None]
    return [
        Run(run["start"], bound, run["rows"], run["last"], tuple(map(str.encode, run["texts"])))
        for run, bound in zip(noted, bounds, strict=False)
    ]


def _note_runs(runs: Sequence[Run]) -> str | None:
    if sum(len(text) for run in runs for text in run.last_texts) > _MOST_TEXT:
        return None
    return json.dumps(
        [
            {
                "start": run.start,
                "rows": run.rows,
                "last": run.last,
                "texts": [text.decode() for text in run.last_texts],
            }
            for run in runs
        ]
    )


def select_runs(
    tables: ArchiveTables,
    handle: Any,
    series: Series,
    runs: Sequence[Run],
    covered: Sequence[TimeRange],
    start: int,
) -> list[Run]:
    """Return the runs that cover all times from `start` on and are not complete.

    The first of them is the archived run that is complete up to `start`, which can be continued.
    If there is none, it is a new run that begins at `start`.

    Parameters
    ----------
    tables : ArchiveTables
        The archive.
    handle : DeltaTable
        The table of the series.
    series : Series
        The series.
    runs : sequence of Run
        Its archived runs.
    covered : sequence of TimeRange
        Its complete ranges, according to the log.
    start : int
        The first time that is needed, in Unix milliseconds.
    """

    def is_complete(run: Run) -> bool:
        return run.bound is not None and is_run_complete(tables, handle, series, run.start)

    def continues_to_start(run: Run) -> bool:
        """Return whether no row is missing between the rows of the run and `start`."""
        if start <= max(run.start, run.last or 0) or is_complete(run):
            return True
        return any(first <= run.start and start <= last + 1 for first, last in covered)

    earlier = [run for run in runs if run.start <= start]
    later = runs[len(earlier) :]
    if earlier and continues_to_start(earlier[-1]):
        first = earlier[-1]
    else:
        first = Run(start, later[0].start - 1 if later else None)
    return [run for run in (first, *later) if not is_complete(run)]


def is_run_complete(tables: ArchiveTables, handle: Any, series: Series, start: int) -> bool:
    """Return whether the run from `start` has reached the start of the next run."""
    return tables.transaction(handle, series.completion_transaction(start)) is not None


class RunOverlap:
    """The archived rows of a run's last time, which the service must return first.

    Parameters
    ----------
    series : Series
        The series, for messages.
    run : Run
        The run that is continued.
    """

    def __init__(self, series: Series, run: Run) -> None:
        self._series = series
        # json, as `decode` does for unknown fields: a number may be too large for a float.
        self._expected = [json.loads(text) for text in run.last_texts]
        self._last = run.last
        columns = table_columns(series.operation.tables[0])
        self._time_field = next(column.wire for column in columns if column.name == series.keys[0])

    @property
    def is_matched(self) -> bool:
        """Whether the service has returned all of them again."""
        return not self._expected

    def new_texts(self, texts: Sequence[bytes]) -> Iterator[bytes]:
        """Yield the rows that are not archived yet.

        Raises
        ------
        HistoryMismatch
            If a later row comes before all archived rows of the last time have come again.
        """
        for text in texts:
            if not self._expected:
                yield text
                continue
            row = json.loads(text)
            if _is_same_value(self._expected[0], row):
                del self._expected[0]
                continue
            if row[self._time_field] != self._last:
                self.check_matched()
            yield text

    def check_matched(self) -> None:
        """Raise an error if the service has not returned all archived rows of the last time.

        Raises
        ------
        HistoryMismatch
            With the number of rows, and what to do.
        """
        if self._expected:
            raise HistoryMismatch(
                f"{self._series.name}: {len(self._expected)} archived rows of time {self._last} "
                "did not come again, so the service's history differs from the archived one. No "
                "row was appended after them. Compare both with tk.raw and Archive.frame, or start "
                "a new archive"
            )


def _is_same_value(archived: Any, returned: Any) -> bool:
    """Return whether two values are equal in every field that both have.

    Fields that only one of them has do not count: the service may have added or removed them.
    """
    if isinstance(archived, dict) and isinstance(returned, dict):
        shared = archived.keys() & returned.keys()
        return all(_is_same_value(archived[name], returned[name]) for name in shared)
    return bool(archived == returned) or _is_same_number(archived, returned)


def _is_same_number(archived: Any, returned: Any) -> bool:
    """Return whether two texts are the same number: ingested frames lack trailing zeros."""
    if not isinstance(archived, str) or not isinstance(returned, str):
        return False
    try:
        return Decimal(archived) == Decimal(returned)
    except InvalidOperation:
        return False


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
        The range that is complete now. It contains the requested range. If no end was requested,
        it also contains the time between the last archived row and the requested start.
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


def log_entry(
    done: Refreshed,
    origin: RowOrigin,
    breaks: BreakLog | None = None,
    runs: Sequence[Run] = (),
) -> dict[str, Any]:
    """Return the entry of a refresh in the log: the range, the rows, and where rows are missing.

    Parameters
    ----------
    done : Refreshed
        The result of the refresh.
    origin : RowOrigin
        Where the rows come from.
    breaks : BreakLog, optional
        Where the rows contradict each other.
    runs : sequence of Run
        All runs of the series, by start. The next refresh then needs no row.
    """
    return {
        "_operation": done.operation,
        "_subject": done.subject,
        "start": done.start_ms,
        "until": done.until_ms,
        "rows": done.rows,
        "total": done.total if is_history(OPERATIONS[done.operation]) else None,
        "breaks": json.dumps(join_ranges(breaks.spans)) if breaks and breaks.spans else None,
        "why": breaks.reason if breaks and breaks.spans else None,
        "runs": _note_runs(runs) if runs else None,
        **origin.columns,
    }


def log_refreshes(
    tables: ArchiveTables, entries: Sequence[Mapping[str, Any]], handle: Any = None
) -> None:
    """Append entries to the log. Pass the handle of the log if it is open.

    Call it after the rows are committed. A kill in between then claims too little, never too much.
    """
    handle = handle or tables.open_for_append(PULLS)
    tables.append_rows(handle, pa.Table.from_pylist(entries, schema=SCHEMAS[PULLS]))
    # Each refresh writes a file into both tables: a few large files take less time to read.
    if handle.version() % _REFRESHES_PER_JOIN == 0:
        for name in (PULLS, operation_table(OPERATIONS[entries[0]["_operation"]])):
            with contextlib.suppress(CommitConflict):
                join_small_files(tables, name)


def read_log(
    tables: ArchiveTables, handle: Any = None, type: str | None = None
) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Return the log entries of all series: operation and subject -> entries.

    Call it before you read the rows: they are written before their log entry, and only grow.

    Parameters
    ----------
    tables : ArchiveTables
        The archive.
    handle : DeltaTable, optional
        The log, if it is open.
    type : str, optional
        Only the series of this operation.
    """
    handle = handle or tables.open_table(PULLS)
    log: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    if handle is not None:
        condition = None if type is None else ds.field("_operation") == type
        columns = None if type else [name for name in SCHEMAS[PULLS].names if name != "runs"]
        for entry in tables.read_rows(handle, columns, condition).to_pylist():
            log[entry["_operation"], entry["_subject"]].append(entry)
    return log


def select_table_log(
    log: Mapping[tuple[str, str], LogEntries], name: str
) -> dict[tuple[str, str], LogEntries]:
    """Return the log entries of the series of one table."""
    return {
        pair: entries
        for pair, entries in log.items()
        if pair[0] in OPERATIONS and operation_table(OPERATIONS[pair[0]]) == name
    }


def read_series_log(
    tables: ArchiveTables, series: Series, handle: Any = None
) -> list[dict[str, Any]]:
    """Return the log entries of a series; pass the handle of the log if it is open."""
    handle = handle or tables.open_table(PULLS)
    if handle is None:
        return []
    entries: list[dict[str, Any]] = tables.read_rows(handle, series=series).to_pylist()
    return entries


def log_ranges(entries: LogEntries) -> list[TimeRange]:
    """Return the ranges that were pulled according to log entries, joined where they touch."""
    return join_ranges((entry["start"], entry["until"]) for entry in entries)


def proved_ranges(entries: LogEntries) -> list[TimeRange]:
    """Return the pulled ranges in which no rows contradict each other."""
    return subtract_ranges(log_ranges(entries), contradictory_ranges(entries))


def contradictory_ranges(entries: LogEntries) -> list[TimeRange]:
    """Return the ranges in which, according to log entries, rows contradict each other."""
    holes = (hole for entry in entries for hole in json.loads(entry.get("breaks") or "[]"))
    return join_ranges((first, last) for first, last in holes)


def count_gaps(covered: Sequence[TimeRange], span: Mapping[str, Any]) -> int:
    """Return how many time ranges up to the last row are not proved complete.

    Parameters
    ----------
    covered : sequence of TimeRange
        The complete ranges of a series.
    span : mapping
        The time of its ``first`` and its ``last`` row; None if it has no rows.
    """
    first, last = span["first"], span["last"]
    if first is None or last is None:
        return max(len(covered) - 1, 0)
    if not covered:
        return 1
    gaps: int = len(covered) - 1 + (first < covered[0][0]) + (covered[-1][1] < last)
    return gaps


def count_logged_rows(entries: LogEntries) -> int:
    """Return how many rows a series must have at least, according to its log entries.

    Entries of answers have no total, and neither have those of older versions; they are added up.
    """
    totals = [entry["total"] for entry in entries if entry.get("total") is not None]
    # The largest total, not a sum: rows that were lost and fetched again count once.
    return max(totals) if totals else sum(entry["rows"] for entry in entries)


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


def present_ms(tables: ArchiveTables) -> int:
    """Return the archive's present: the latest time up to which anything was refreshed."""
    latest = [0]
    for name, column in ((PULLS, "until"), (ANSWERS, "_fetched")):
        handle = tables.open_table(name)
        if handle is not None:
            ends: list[Any] = [action.get(f"max.{column}") for action in file_actions(handle)]
            if None in ends:  # files without statistics
                ends = [pc.max(tables.read_rows(handle, [column])[column]).as_py() or 0]
            latest += ends
    return max(latest)
