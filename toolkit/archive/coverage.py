"""Coverage: what was pulled of each series, and its complete ranges.

Each refresh adds one entry to the refresh log (the table ``pulls``): the range that it pulled, the
ranges in which rows contradict each other, its runs, and how many rows there were afterwards.
Pulled ranges without contradictions are the complete ranges: they are the coverage. Fewer rows than
the refresh log counts mean that rows were lost.

The rows of a run follow each other without a gap. A `HistoryWriter` appends to them. Each of its
commits sets two counters of the Delta table for each history: one with the name of the run and its
new length, and one with the name of the series. If two processes append to the same series, Delta
refuses the second commit. A commit to other series is not refused: then the lengths of all runs
show whether one of ours has changed as well.
"""

import contextlib
import itertools
import json
import operator
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from toolkit.archive import schemas
from toolkit.archive.schemas import ANSWERS, PULLS, SCHEMAS, RowOrigin, Series
from toolkit.archive.storage import ArchiveTables, file_actions, join_small_files, retry_append
from toolkit.completeness.checks import BreakLog
from toolkit.completeness.covered_ranges import TimeRange, join_ranges, subtract_ranges
from toolkit.contract.operations import find_operation
from toolkit.display import count_text
from toolkit.errors import CommitConflict, HistoryMismatch
from toolkit.times import to_iso, to_ms

LogEntries = Sequence[Mapping[str, Any]]
"""Entries of the refresh log, of one series."""

_REFRESHES_PER_JOIN: Final = 32
_MOST_TEXT: Final = 100_000  # characters of the last rows of a run in the refresh log
_TIMES: Final = ("first", "last", "covered_from", "covered_until")
_STATUS: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("table", "operation", "subject")),
        ("rows", pa.int64()),
        *((name, pa.timestamp("ms", "UTC")) for name in _TIMES),
        *((name, pa.int64()) for name in ("gaps", "version", "bytes")),
    ]
)
RowSpan = Mapping[str, Any]
"""Number of ``rows``, and the time of the ``first`` and ``last`` in Unix milliseconds."""


@dataclass(frozen=True, slots=True)
class Run:
    """Rows of a history that were pulled one after the other. Times are Unix milliseconds."""

    start: int
    bound: int | None = None  # its last time, inclusive; the last run of a series has none
    rows: int = 0  # how many of its rows are archived
    last: int | None = None  # the time of the last archived row
    last_texts: tuple[str, ...] = ()  # the archived rows of that time, which must come again


@dataclass(frozen=True, slots=True)
class RefreshResult:
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
        The range that is pulled now. It ends at the requested end, or earlier if the service has
        no rows up to it. Times at which rows contradict each other are not complete. If no end was
        requested, the range also contains the time between the last archived row and the requested
        start.
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
    done: RefreshResult,
    origin: RowOrigin,
    breaks: BreakLog | None = None,
    runs: Sequence[Run] = (),
    lacks: str = "",
) -> dict[str, Any]:
    """Return the entry of a refresh for the refresh log: range, rows, and where rows are missing.

    `runs` are all runs of the series, by start. With them the next refresh needs no row. `lacks`
    says that the service did not keep the rows before the range.
    """
    noted = [
        {"start": run.start, "rows": run.rows, "last": run.last, "texts": run.last_texts}
        for run in runs
    ]
    is_short = sum(len(text) for run in runs for text in run.last_texts) <= _MOST_TEXT
    return {
        "_operation": done.operation,
        "_subject": done.subject,
        "start": done.start_ms,
        "until": done.until_ms,
        "rows": done.rows,
        "total": done.total if schemas.resolve_operation(done.operation).is_history else None,
        "breaks": json.dumps(join_ranges(breaks.spans)) if breaks and breaks.spans else None,
        "why": (breaks.reason if breaks and breaks.spans else "") or lacks or None,
        "runs": json.dumps(noted) if noted and is_short else None,
        **origin.columns,
    }


def log_refreshes(
    tables: ArchiveTables, entries: Sequence[Mapping[str, Any]], handle: Any = None
) -> None:
    """Append entries to the refresh log. Pass its handle if it is open.

    Call it after the rows are committed: if the process is killed in between, the log states less
    than the archive has, and never more.
    """
    rows = pa.Table.from_pylist(entries, schema=SCHEMAS[PULLS])

    def append() -> Any:  # again if another process adds columns to an older archive
        nonlocal handle
        opened, handle = handle or tables.open_for_append(PULLS), None
        tables.append_rows(opened, rows)
        return opened

    handle = retry_append(tables.table_uri(PULLS), append)
    # Each refresh writes a file into both tables: a few large files take less time to read.
    if handle.version() % _REFRESHES_PER_JOIN == 0:
        operation = schemas.resolve_operation(entries[0]["_operation"])
        for name in (PULLS, schemas.operation_table(operation)):
            with contextlib.suppress(CommitConflict):
                join_small_files(tables, name)


def read_log(
    tables: ArchiveTables, handle: Any = None, type: str | None = None
) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Return the log entries of all series, or of one operation: operation and subject -> entries.

    Call it before you read the rows: they are written before their log entry, and only grow. Pass
    the handle of the log if it is open.
    """
    log: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    condition = None if type is None else ds.field("_operation") == type
    columns = None if type else [name for name in SCHEMAS[PULLS].names if name != "runs"]
    for entry in tables.read_rows(handle or PULLS, columns, condition).to_pylist():
        log[entry["_operation"], entry["_subject"]].append(entry)
    return log


def select_table_log(
    log: Mapping[tuple[str, str], LogEntries], name: str
) -> dict[tuple[str, str], LogEntries]:
    """Return the log entries of the series of one table."""
    return {
        pair: entries
        for pair, entries in log.items()
        if find_operation(pair[0]) and schemas.stored_series(*pair).table == name
    }


def pulled_ranges(entries: LogEntries) -> list[TimeRange]:
    """Return the ranges that were pulled according to log entries, joined where they touch."""
    return join_ranges([(entry["start"], entry["until"]) for entry in entries])


def complete_ranges(entries: LogEntries) -> list[TimeRange]:
    """Return the pulled ranges in which no rows contradict each other."""
    return subtract_ranges(pulled_ranges(entries), contradictory_ranges(entries))


def contradictory_ranges(entries: LogEntries) -> list[TimeRange]:
    """Return the ranges in which, according to log entries, rows contradict each other."""
    holes = [hole for entry in entries for hole in json.loads(entry.get("breaks") or "[]")]
    return join_ranges([(first, last) for first, last in holes])


def count_gaps(covered: Sequence[TimeRange], span: Mapping[str, Any]) -> int:
    """Return the number of gaps: time ranges up to the last row that are in no complete range.

    `covered` are the complete ranges of a series. `span` has the times of its ``first`` and
    ``last`` row; None if it has no rows.
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
        "bring them back, because it continues after the last row: restore the files from a copy, "
        "or start a new archive"
    )


def row_spans(tables: ArchiveTables, name: str) -> dict[tuple[str, str], RowSpan]:
    """Return the span of each series of a table: operation and subject -> span."""
    time = "_fetched" if name == ANSWERS else schemas.time_column_name(name)
    rows = schemas.use_milliseconds(tables.read_rows(name, ["_operation", "_subject", time]))
    facts = {"count": "rows", "min": "first", "max": "last"}
    groups = rows.group_by(["_operation", "_subject"]).aggregate([(time, fact) for fact in facts])
    return {
        (group["_operation"], group["_subject"]): {
            name: group[f"{time}_{fact}"] for fact, name in facts.items()
        }
        for group in groups.to_pylist()
    }


def summarize_tables(tables: ArchiveTables) -> pd.DataFrame:
    """Return rows, version, files and bytes of each table, from the logs alone."""
    rows = []
    for name in SCHEMAS:
        handle = tables.open_table(name)
        if handle is not None:
            files = file_actions(handle)
            count, size = (sum(each[n] for each in files) for n in ("num_records", "size_bytes"))
            rows.append((name, count, handle.version(), len(files), size))
    return pd.DataFrame(rows, columns=["table", "rows", "version", "files", "bytes"])


def summarize_series(tables: ArchiveTables) -> pd.DataFrame:
    """Return what is archived of each series; see `Archive.status`."""
    log, rows = read_log(tables), []
    for name in (*schemas.RECORDS, ANSWERS):
        handle = tables.open_table(name)
        if handle is None:
            continue
        spans, entries = row_spans(tables, name), select_table_log(log, name)
        # A file has the rows of many subjects.
        row_count = sum(span["rows"] for span in spans.values())
        size = sum(action["size_bytes"] for action in file_actions(handle))
        for pair in sorted(spans if name == ANSWERS else {*spans, *entries}):
            span = spans.get(pair, {"rows": 0, "first": None, "last": None})
            # An answer is a moment, and no range.
            covered = [] if name == ANSWERS else complete_ranges(entries.get(pair, ()))
            ends = (covered[0][0], covered[-1][1]) if covered else (None, None)
            gaps = 0 if name == ANSWERS else count_gaps(covered, span)
            share = round(size * span["rows"] / max(row_count, 1))
            facts = (name, *pair, *span.values(), *ends, gaps, handle.version(), share)
            rows.append(dict(zip(_STATUS.names, facts, strict=True)))
    frame: pd.DataFrame = pa.Table.from_pylist(rows, schema=_STATUS).to_pandas()
    return frame


class HistoryWriter:
    """Appends to the histories of a table; with `is_only`, to this one.

    The state of the archive is read once for all histories.
    """

    def __init__(self, tables: ArchiveTables, sample: Series, *, is_only: bool = False) -> None:
        self.tables, self._sample, self._is_only = tables, sample, is_only
        self.open()

    def open(self) -> None:
        """Open the table and the refresh log as they are now."""
        operation, subject = self._sample.operation.type, self._sample.subject
        self.handle = self.tables.open_for_append(self._sample.table)
        # Name of the series -> start of the run -> number of rows; None if they are not known. For
        # one history in a store, reading all counters is not worth the requests.
        is_far = self._is_only and "://" in self.tables.location
        counters = None if is_far else self.tables.read_counters(self.handle)
        self._lengths = None if counters is None else defaultdict[str, dict[int, int]](dict)
        for name, rows in (counters or {}).items():
            series, _, start = name.rpartition(" from ")
            # Older versions have other counters, too.
            if self._lengths is not None and series and rows and start.lstrip("-").isdecimal():
                self._lengths[series][int(start)] = rows
        self.log = self.tables.open_for_append(PULLS)
        if self._is_only:
            entries = self.tables.read_rows(self.log, series=self._sample).to_pylist()
            self._entries = {(operation, subject): entries}
        else:
            self._entries = read_log(self.tables, self.log, operation)

    def read_state(self, series: Series) -> tuple[list[Run], LogEntries]:
        """Return the runs of a series that have rows, by start, and its entries in the log."""
        entries = self._entries.get((series.operation.type, series.subject), [])
        lengths = None if self._lengths is None else self._lengths.get(series.name, {})
        newest = sorted(entries, key=operator.itemgetter("_fetched"), reverse=True)
        noted = (json.loads(entry.get("runs") or "[]") for entry in newest)  # older: none
        same = (each for each in noted if {run["start"]: run["rows"] for run in each} == lengths)
        known: list[Any] = next(filter(None, same), [])
        runs = []
        if known or (lengths == {} and not entries):  # then often no row has to be read
            for run in known:
                texts = tuple(run["texts"])
                runs.append(Run(run["start"], None, run["rows"], run["last"], texts))
        else:
            time = series.keys[0]
            rows = self.tables.read_rows(self.handle, ["_part", "_row", time], series=series)
            groups = rows.group_by("_part").aggregate([("_row", "count"), (time, "max")])
            for group in groups.sort_by("_part").to_pylist():
                start, last = group["_part"], group[f"{time}_max"]
                moment = pa.scalar(last, pa.timestamp("us", "UTC"))
                is_last = (ds.field("_part") == start) & (ds.field(time) == moment)
                newest = self.tables.read_rows(self.handle, ["_row", "_json"], is_last, series)
                texts = tuple(newest.sort_by("_row")["_json"].to_pylist())
                runs.append(Run(start, None, group["_row_count"], to_ms(last), texts))
        pairs = itertools.zip_longest(runs, runs[1:])
        return [replace(run, bound=later and later.start - 1) for run, later in pairs], entries

    def has_changed(self, series: Series, runs: Iterable[Run]) -> bool:
        """Return whether another process may have appended to a series."""
        known = {run.start: run.rows for run in runs if run.rows}
        return self._lengths is None or self._lengths.get(series.name, {}) != known

    def append(self, portions: Sequence[tuple[Series, Run, pa.Table]]) -> bool:
        """Append rows in one commit; return whether other histories may have changed as well.

        A portion has the rows and the run with these rows. Raise CommitConflict if another process
        has appended to one of the series.
        """
        version, counts = self.handle.version(), dict[str, int]()
        for series, run, _ in portions:
            counts |= {series.name: run.rows, series.run_counter(run.start): run.rows}
        names = {series.name for series, _, _ in portions}
        several = f"{len(names)} of {self._sample.operation.type}"
        note = several if len(names) > 1 else names.pop()
        rows = pa.concat_tables([rows for _, _, rows in portions])
        self.tables.append_rows(self.handle, rows, counts=counts, notes={"series": note})
        return not self._is_only and bool(self.handle.version() > version + 1)


def place_in_run(series: Series, run: Run, rows: pa.Table) -> tuple[pa.Table, Run]:
    """Return further rows of a run with their series and place, and the run with these rows."""
    times = rows[series.keys[0]]
    last = pc.max(times)
    texts = tuple(rows["_json"].filter(pc.equal(times, last)).cast(pa.string()).to_pylist())
    if run.last == (last_ms := to_ms(last.as_py())):
        texts = run.last_texts + texts
    placed, count = schemas.place_rows(series, rows, run.start, run.rows), run.rows + rows.num_rows
    return placed, replace(run, rows=count, last=last_ms, last_texts=texts)


def rows_after(series: Series, last: int, expected: list[Any], rows: pa.Table) -> pa.Table:
    """Return the rows from the time of a run's last rows on that are not archived yet.

    `expected` are the archived rows of that time; those that came again are removed.
    """
    times, places = schemas.to_milliseconds(rows[series.keys[0]]).to_numpy(), []
    first, end = np.searchsorted(times, [last, last + 1]).tolist()
    for place, text in enumerate(rows["_json"][first:end].to_pylist(), first):
        # json, as `decode` does for unknown fields: a number may be too large for a float.
        value = json.loads(text)
        same = (at for at, archived in enumerate(expected) if _is_same_value(archived, value))
        if (at := next(same, None)) is None:
            places.append(place)
        else:
            del expected[at]
    return rows.take(pa.array([*places, *range(end, len(times))], pa.int64()))


def mismatch(series: Series, last: int | None, expected: Sequence[Any]) -> HistoryMismatch:
    """Return the error that archived rows of a run's last time have not come again."""
    return HistoryMismatch(
        f"{series.name}: {count_text(len(expected), 'archived row')} of time "
        f"{to_iso(last or 0)} did not come again, so the service's history differs "
        "from the archived one. No row was appended after them. Compare both with tk.raw "
        "and Archive.frame, or start a new archive"
    )


def _is_same_value(archived: Any, returned: Any) -> bool:
    """Return whether two values are equal in every field that both have.

    Fields that only one of them has do not count: the service may have added or removed them.
    """
    if isinstance(archived, dict) and isinstance(returned, dict):
        shared = archived.keys() & returned.keys()
        return all(_is_same_value(archived[name], returned[name]) for name in shared)
    if archived == returned or not (isinstance(archived, str) and isinstance(returned, str)):
        return bool(archived == returned)
    # Texts of numbers may differ in trailing zeros, which ingested frames lack.
    with contextlib.suppress(InvalidOperation):
        return Decimal(archived) == Decimal(returned)
    return False


def checked_columns(rows: pa.Table) -> dict[str, Any]:
    """Return the columns of the record of rows, without those of the archive."""
    return {name: rows[name] for name in rows.column_names if not name.startswith("_")}
