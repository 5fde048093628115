"""Bulk ingest: the rows of many accounts in Parquet files that somebody else wrote.

A table of columns says where the values are. The rows are sorted by account and time in temporary
files, so that the memory does not grow with the files. They are committed in portions, and the
range of all accounts is logged at the end. If the process is killed, another call skips the rows
that are archived and continues.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from toolkit.archive.compaction import ExternalSort, KeySample
from toolkit.archive.errors import CommitConflict, HistoryMismatch
from toolkit.archive.pulls import (
    Refreshed,
    Run,
    RunOverlap,
    count_run_rows,
    log_entry,
    log_ranges,
    log_refreshes,
    read_log,
    read_runs,
)
from toolkit.archive.schemas import SCHEMAS, RowOrigin, Series
from toolkit.archive.storage import ArchiveTables
from toolkit.archive.table_rows import nan_to_null, table_rows
from toolkit.completeness.row_checks import BreakLog, HistoryChecks
from toolkit.completeness.subjects import is_history
from toolkit.contract.columns import Column, table_columns
from toolkit.contract.operations import Operation
from toolkit.errors import ArchiveError

__all__ = ["BulkWriter", "ingest_bulk"]

_ROWS_AT_ONCE: Final = 50_000
_PLACE: Final = "_place"  # of a row in the files


def ingest_bulk(
    tables: ArchiveTables,
    path: Path,
    operation: Operation,
    columns: Mapping[str, str],
    times: tuple[int, int],
    origin: RowOrigin,
    progress: Callable[[int], object] | None = None,
) -> dict[str, dict[str, Any]]:
    """Append the rows of many accounts; see `Archive.ingest_bulk`."""
    files = _BulkFiles(path, operation, columns, times, origin)
    sample = KeySample(_ROWS_AT_ONCE)
    for keys in files.read_keys():
        sample.add_keys(keys)
    writer = BulkWriter(tables, operation, times, origin)
    with ExternalSort(["_subject", files.time, _PLACE], sample) as sort:
        for rows in files.read_rows():
            for batch in rows.combine_chunks().to_batches():
                sort.add_rows(batch)
        for part in sort.sorted_parts():
            writer.append_part(part.drop_columns([_PLACE]))
            if progress is not None:
                progress(part.num_rows)
    return writer.log_ranges()


class _BulkFiles:
    """Parquet files with the rows of many accounts.

    Parameters
    ----------
    path : Path
        A file or a folder.
    operation : Operation
        The operation whose rows they are.
    columns : mapping
        Our name of a column -> its name in the files. Other columns have our name or the name on
        the wire.
    times : tuple
        The range in Unix milliseconds; other rows are left out.
    origin : RowOrigin
        Where the rows come from.

    Raises
    ------
    ArchiveError
        If a column is missing that every row needs, the operation has no such files, a value
        cannot be read, or no row is in the range.
    """

    def __init__(
        self,
        path: Path,
        operation: Operation,
        columns: Mapping[str, str],
        times: tuple[int, int],
        origin: RowOrigin,
    ) -> None:
        self._operation, self._times, self._origin = operation, times, origin
        self._path = path
        self._dataset = ds.dataset(path, format="parquet")
        required = [parameter.python for parameter in operation.parameters if parameter.required]
        subject = [name for name in required if name != "start"]
        if not is_history(operation) or len(subject) != 1:
            raise ArchiveError(f"{operation.type}: only histories of one subject have bulk files")
        self.time = Series(operation, "").keys[0]
        known = set(self._dataset.schema.names)
        wanted = {subject[0], *(column.name for column in table_columns(operation.tables[0]))}
        if unknown := sorted((set(columns) - wanted) | (set(columns.values()) - known)):
            raise ArchiveError(
                f"columns: there is no column {', '.join(unknown)}. Its keys are our columns "
                f"({', '.join(sorted(wanted))}), its values those of the files "
                f"({', '.join(sorted(known))})"
            )
        self._subject = columns.get(subject[0], subject[0])
        self._columns = table_columns(operation.tables[0])
        self._names = {
            column.name: next(
                (
                    name
                    for name in (columns.get(column.name), column.name, column.wire)
                    if name in known
                ),
                None,
            )
            for column in self._columns
        }
        missing = [
            column.name
            for column in self._columns
            if not self._names[column.name] and not column.missing and column.default is None
        ]
        if self._subject not in known:
            missing.insert(0, self._subject)
        if missing:
            raise ArchiveError(
                f"{path} has no column {', '.join(missing)}: name them in columns="
                "{our name: name in the files}"
            )
        self._time = self._names[self.time] or self.time

    def read_keys(self) -> Iterator[pa.Table]:
        """Yield the subject and the time of the rows."""
        names, found, last = [self._subject, self._time], 0, None
        for _, _, keys in self._read_tables(names):
            last = keys[self.time][-1] if keys.num_rows else last
            wanted = keys.filter(self._in_range(keys))
            found += wanted.num_rows
            yield wanted
        if last is not None and not found:
            first_ms, last_ms = self._times
            raise ArchiveError(
                f"{self._path}: no row is between {first_ms} and {last_ms}, the stated range in "
                f"Unix milliseconds; column {names[1]} of the last row is {last.value}. State the "
                "range of the files, and check the unit of their times"
            )

    def read_rows(self) -> Iterator[pa.Table]:
        """Yield rows in the form of the archive, with subject and place in the files."""
        names = [name for name in self._names.values() if name]
        first = 0
        for file, table, keys in self._read_tables(list(dict.fromkeys([self._subject, *names]))):
            is_wanted = self._in_range(keys)
            table, keys = table.filter(is_wanted), keys.filter(is_wanted)
            cells = {column.name: self._cells(file, table, column) for column in self._columns}
            with _named_errors(file, "of numbers"):
                rows = table_rows(self._operation, pa.table(cells), self._origin)
            place = pa.array(np.arange(first, first + rows.num_rows))
            first += rows.num_rows
            rows = rows.append_column("_subject", keys["_subject"])
            yield rows.append_column(_PLACE, place)

    def _read_tables(self, names: Sequence[str]) -> Iterator[tuple[str, pa.Table, pa.Table]]:
        """Yield the name of the file, columns of some of its rows, and their subject and time."""
        for file in self._dataset.get_fragments():
            for batch in file.to_batches(
                self._dataset.schema, columns=names, batch_size=_ROWS_AT_ONCE
            ):
                table = pa.Table.from_batches([batch])
                for name in (self._subject, self._time):
                    if missing := nan_to_null(table[name]).null_count:
                        raise ArchiveError(f"{file.path}: {missing} rows have no {name}")
                with _named_errors(file.path, self._time):
                    times = _milliseconds(table[self._time])
                with _named_errors(file.path, self._subject):
                    subjects = pc.utf8_lower(table[self._subject].cast(pa.string()))
                yield file.path, table, pa.table({"_subject": subjects, self.time: times})

    def _in_range(self, keys: pa.Table) -> pa.ChunkedArray:
        times = keys[self.time].cast(pa.int64())
        first, last = self._times
        return pc.and_(pc.greater_equal(times, first), pc.less_equal(times, last))

    def _cells(self, file: str, table: pa.Table, column: Column) -> Any:
        name, family = self._names[column.name], column.kind.family
        if name is None:
            return pa.nulls(table.num_rows, pa.string())
        cells = table[name].combine_chunks()
        if pa.types.is_dictionary(cells.type):
            cells = cells.dictionary_decode()
        cells = nan_to_null(cells)
        kinds = {"integer": pa.int64(), "flag": pa.bool_(), "text": pa.string()}
        with _named_errors(file, name):
            if family in kinds:
                return cells.cast(kinds[family])
            if family == "time":
                return _milliseconds(cells)
        return cells.cast(pa.string()) if pa.types.is_large_string(cells.type) else cells


@contextmanager
def _named_errors(file: str, column: str) -> Iterator[None]:
    """Name the file and the column if values cannot be read."""
    try:
        yield
    except pa.ArrowException as error:
        raise ArchiveError(
            f"{file}: column {column}: {error}. Times are timestamps or whole Unix milliseconds, "
            "numbers are texts, floats or decimals"
        ) from None


def _milliseconds(column: Any) -> Any:
    whole = column if pa.types.is_timestamp(column.type) else column.cast(pa.int64())
    return whole.cast(pa.timestamp("ms", "UTC"), safe=False)


class BulkWriter:
    """Appends sorted rows of many subjects, and logs their range at the end."""

    def __init__(
        self,
        tables: ArchiveTables,
        operation: Operation,
        times: tuple[int, int],
        origin: RowOrigin,
    ) -> None:
        self._tables, self._operation, self._times, self._origin = tables, operation, times, origin
        self._log = read_log(tables, None, operation.type)
        self._table = Series(operation, "").table
        self._handle = tables.open_for_append(self._table)
        self._lengths = count_run_rows(tables, self._handle)
        self._runs: dict[str, list[Run]] = {}
        self._matched = set[str]()  # subjects whose next rows follow the archived ones
        self._new_rows: dict[str, int] = defaultdict(int)
        self._breaks: dict[str, BreakLog] = defaultdict(BreakLog)
        self._left: dict[str, str] = {}
        self._checks = HistoryChecks(operation, {})

    def append_part(self, part: pa.Table) -> None:
        """Append rows that are sorted by subject and time, unless they are archived."""
        self._check_rows(part)
        codes = part["_subject"].combine_chunks().dictionary_encode()
        bounds = [0, *(np.flatnonzero(np.diff(codes.indices.to_numpy())) + 1).tolist()]
        pieces, counts = [], dict[str, int]()
        for first, end in zip(bounds, [*bounds[1:], part.num_rows], strict=True):
            series = Series(self._operation, codes[first].as_py())
            rows = self._new_rows_of(series, part.slice(first, end - first))
            if rows is None or not rows.num_rows:
                continue
            run = self._runs[series.subject][-1]
            self._runs[series.subject][-1] = extended = run.extend(series, rows)
            self._new_rows[series.subject] += rows.num_rows
            counts[series.name] = counts[series.run_transaction(run.start)] = extended.rows
            places = np.arange(run.rows, extended.rows)
            rows = rows.append_column(
                "_part", pa.repeat(pa.scalar(run.start, pa.int64()), len(places))
            )
            pieces.append(rows.append_column("_row", pa.array(places)))
        if not pieces:
            return
        rows = pa.concat_tables(pieces)
        rows = rows.append_column("_operation", pa.repeat(self._operation.type, rows.num_rows))
        rows = rows.select(SCHEMAS[self._table].names)
        notes = {"series": f"{len(pieces)} of {self._operation.type}"}
        version = self._handle.version()
        try:
            self._tables.append_rows(self._handle, rows, counts=counts, notes=notes)
            if self._handle.version() > version + 1:  # other processes committed, too
                self._check_lengths()
        except CommitConflict:
            raise ArchiveError(
                f"{self._operation.type}: another process writes the same histories. Ingest again "
                "when it is done; the rows so far are archived"
            ) from None

    def _check_lengths(self) -> None:
        """Read the lengths of all runs again; raise CommitConflict if ours changed."""
        self._lengths = count_run_rows(self._tables, self._handle)
        for subject, runs in self._runs.items():
            name = Series(self._operation, subject).name
            ours = {run.start: run.rows for run in runs if run.rows}
            if self._lengths is None or self._lengths.get(name, {}) != ours:
                raise CommitConflict(name)

    def log_ranges(self) -> dict[str, dict[str, Any]]:
        """Log the range of each subject; return ``kept`` and ``left``, as `Archive.ingest`."""
        entries, kept = [], {}
        for subject, runs in self._runs.items():
            last = runs[-1].last
            if subject not in self._matched and last is not None and last <= self._times[1]:
                self._match_rows(Series(self._operation, subject), runs[-1], [])
            if subject in self._left:
                continue
            total, new = sum(run.rows for run in runs), self._new_rows[subject]
            done = Refreshed(self._operation.type, subject, new, total, *self._times)
            entries.append(log_entry(done, self._origin, self._breaks.get(subject), runs))
            kept[f"{self._operation.type} {subject}"] = new
        if entries:
            log_refreshes(self._tables, entries)
        return {"kept": kept, "left": self._left}

    def _check_rows(self, part: pa.Table) -> None:
        """Note where the rows of a subject contradict each other."""
        columns = {name: part[name] for name in part.column_names if not name.startswith("_")}
        for found in self._checks.add_page({**columns, "user": part["_subject"]}):
            if found.kind != "order":  # the rows of one subject come after those of another
                self._breaks[found.user].add([found])

    def _new_rows_of(self, series: Series, rows: pa.Table) -> pa.Table | None:
        """Return the rows of a subject that are not archived; None if they cannot follow."""
        subject = series.subject
        if subject in self._left:
            return None
        if subject not in self._runs:
            entries = self._log.get((self._operation.type, subject), [])
            lengths = None if self._lengths is None else self._lengths.get(series.name, {})
            runs = read_runs(self._tables, self._handle, series, entries, lengths)
            if reason := self._begin_run(runs, log_ranges(entries)):
                self._left[subject] = reason
                return None
            self._runs[subject] = runs
        run = self._runs[subject][-1]
        if subject in self._matched or run.last is None or run.last < self._times[0]:
            self._matched.add(subject)
            return rows
        times = rows[series.keys[0]].cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_numpy()
        # All rows of a time are in one part, so those of the last archived time are all here.
        first, end = np.searchsorted(times, [run.last, run.last + 1]).tolist()
        if first == len(times):
            return rows.slice(first)
        texts = rows.slice(first, end - first)["_json"].cast(pa.binary()).to_pylist()
        new = self._match_rows(series, run, texts)
        if new is None:
            return None
        numbered = enumerate(texts, first)  # the new rows need not be the last ones of that time
        places = [next(place for place, text in numbered if text == row) for row in new]
        return rows.take(np.array([*places, *range(end, rows.num_rows)], np.int64))

    def _match_rows(self, series: Series, run: Run, texts: Sequence[bytes]) -> list[bytes] | None:
        """Return the new rows of the run's last time; None if the archived ones do not match."""
        overlap = RunOverlap(series, run)
        try:
            new = list(overlap.new_texts(texts))
            overlap.check_matched()
        except HistoryMismatch as error:
            self._left[series.subject] = str(error)
            return None
        self._matched.add(series.subject)
        return new

    def _begin_run(self, runs: list[Run], covered: Sequence[tuple[int, int]]) -> str:
        """Add the run that the rows continue or begin; return why they cannot, if so."""
        start = self._times[0]
        if not runs or (runs[-1].start < start and (runs[-1].last or 0) < start):
            is_followed = runs and any(
                first <= runs[-1].start and last >= start - 1 for first, last in covered
            )
            if not is_followed:
                runs.append(Run(start, None))
            return ""
        is_within = any(first <= start <= last + 1 for first, last in covered)
        if runs[-1].start == start or (runs[-1].start < start and is_within):
            return ""
        return "rows after the beginning of the files are archived: refresh instead"
