"""Verify the tables of an archive: read each once, then compare it with its log and itself."""

import contextlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from toolkit.archive.compaction import (
    NO_VALUES,
    ExternalSort,
    KeySample,
    ValueSpan,
    union_span,
    use_system_memory,
    value_span,
)
from toolkit.archive.coverage import (
    LogEntries,
    complete_ranges,
    count_gaps,
    count_logged_rows,
    missing_rows_message,
    read_log,
    select_table_log,
)
from toolkit.archive.errors import error_text
from toolkit.archive.history_pull import is_run_complete
from toolkit.archive.schemas import (
    ANSWERS,
    CHECKED_COLUMNS,
    FREEZES,
    RECORDS,
    SCHEMAS,
    RowOrigin,
    Series,
    arrow_rows,
    column_set_id,
    operation_table,
    time_column_name,
    use_milliseconds,
)
from toolkit.archive.storage import (
    ArchiveTables,
    digest_rows,
    file_actions,
    format_digest,
    freeze_ids,
    noted_freezes,
    unconfirmed_freezes,
)
from toolkit.completeness.checks import HistoryChecks, RowBreak
from toolkit.contract.operations import OPERATIONS
from toolkit.display import count_text
from toolkit.errors import ArchiveError, StoreUnreachable
from toolkit.times import to_iso

__all__ = ["Finding", "SeriesCheck", "verify_tables"]

_ALWAYS_THERE: Final = ("_operation", "_subject", "_part", "_row", "_json", "_body", "_fetched")
_ROWS_IN_PART: Final = 80_000  # of the checked columns
_ROWS_AT_ONCE: Final = 4_000  # whose texts are decoded

_TIMES_SHOWN: Final = 3
_RESTORE: Final = ". Restore the table from a copy"


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault that `Archive.verify` found.

    Attributes
    ----------
    kind : str
        ``damage``, ``lost``, ``run``, ``typed``, ``duplicate``, ``order``, ``chain``, ``grid``,
        ``hours``, ``gap`` or ``digest``.
    severity : {"error", "notice"}
        A notice may have a harmless cause.
    table, series : str
        Where it is.
    what : str
        What is wrong.
    """

    kind: str
    severity: Literal["error", "notice"]
    table: str
    series: str
    what: str


def error_finding(table: str, series: str, kind: str, what: str) -> Finding:
    """Return a finding that is certainly a fault."""
    return Finding(kind, "error", table, series, what)


def notice_finding(table: str, series: str, kind: str, what: str) -> Finding:
    """Return a finding that may have a harmless cause."""
    return Finding(kind, "notice", table, series, what)


def verify_tables(
    tables: ArchiveTables, manifest: Mapping[str, Any], progress: Callable[[int], object] | None
) -> Iterator[Finding]:
    """Yield the faults of all tables: read each once, then compare it with its log and itself.

    The manifest of a freeze is empty if the archive is not opened frozen. `progress` is called with
    a number of rows after they were read.

    Raise StoreUnreachable if the store cannot be reached.
    """
    log: Mapping[tuple[str, str], LogEntries] | None = None
    # The log is read before the rows, because rows may be added meanwhile. If it is damaged, the
    # check of its own table reports that.
    with contextlib.suppress(Exception):
        log = read_log(tables)
    for name in SCHEMAS:
        try:
            with use_system_memory():
                yield from _check_table(tables, name, log, manifest.get(name), progress)
            if name == FREEZES and tables.versions is None:
                yield from _check_freezes(tables)
        except StoreUnreachable:
            raise
        except Exception as error:  # damaged files can raise anything
            yield error_finding(name, "", "damage", error_text(error))


def _check_table(
    tables: ArchiveTables,
    name: str,
    log: Mapping[tuple[str, str], LogEntries] | None,
    frozen: Mapping[str, Any] | None,
    progress: Callable[[int], object] | None,
) -> Iterator[Finding]:
    logged = select_table_log(log or {}, name)
    handle = tables.open_table(name)
    if handle is None:
        if logged or frozen:
            what = "the table does not exist, although the refresh log or the freeze names it"
            yield error_finding(name, "", "lost", what)
        return
    digest, damage, counts = 0, list[str](), Counter[tuple[str, str]]()
    spans: dict[tuple[str, str], Mapping[str, Any]] = {}
    with ExternalSort(_sort_key(name), _sample_keys(tables, handle, name)) as sort:
        for rows in _read_row_groups(tables, handle, damage.append):
            digest += digest_rows(rows)
            for first in range(0, rows.num_rows, _ROWS_AT_ONCE):
                yield from _collect_rows(name, rows.slice(first, _ROWS_AT_ONCE), sort, counts)
            if progress is not None:
                progress(rows.num_rows)
        for what in damage:
            yield error_finding(name, "", "damage", what)
        yield from _check_digests(handle, name, format_digest(digest), frozen)
        for pair, entries in logged.items():
            if what := missing_rows_message(counts[pair], count_logged_rows(entries)):
                yield error_finding(name, " ".join(pair), "lost", what)
        yield from _check_histories(tables, handle, name, sort, spans)
    if name not in RECORDS or log is None:
        return
    for pair in sorted({*spans, *logged}):
        span = spans.get(pair, {"first": None, "last": None})
        if gaps := count_gaps(complete_ranges(logged.get(pair, ())), span):  # known, and no damage
            what = f"ranges that are not proved complete: {gaps}; refresh again"
            yield notice_finding(name, " ".join(pair), "gap", what)


def _check_freezes(tables: ArchiveTables) -> Iterator[Finding]:
    """Compare the freezes with the refresh log, which names them."""
    noted = None
    with contextlib.suppress(ArchiveError):  # the check of the refresh log itself reports damage
        noted = noted_freezes(tables)
    ids = freeze_ids(tables)
    for freeze_id in unconfirmed_freezes(tables):
        what = (
            f"the last log entry of the freeze {freeze_id} is missing: it was deleted, or the "
            "process that made the freeze was killed. Freeze again"
        )
        yield error_finding(FREEZES, freeze_id, "lost", what)
    if noted is None:
        return
    for freeze_id in sorted(noted.keys() - ids):
        what = (
            f"the freeze {freeze_id} is missing, but the refresh log names it: its log "
            f"entries were deleted. Restore {tables.table_uri(FREEZES)} from a copy"
        )
        yield error_finding(FREEZES, freeze_id, "lost", what)
    for freeze_id in sorted(set(ids) - noted.keys()):
        what = (
            f"the refresh log does not name the freeze {freeze_id}, because an older version "
            "made it or the process was killed. If such freezes are deleted, verify cannot find "
            "that. Freeze again. Then the log names all freezes"
        )
        yield notice_finding(FREEZES, freeze_id, "lost", what)


def _check_digests(
    handle: Any, name: str, digest: str, frozen: Mapping[str, Any] | None
) -> Iterator[Finding]:
    """Compare the digest of the rows with the commits and with the freeze."""
    # history() returns later commits as well, and counts from the opened version.
    commits = handle.history()[::-1][: handle.version() + 1]
    digests = [commit.get("digest") for commit in commits if commit["operation"] == "WRITE"]
    # Older versions of the archive wrote no digests, and for a folder with # or ? in its name
    # deltalake returns no commits.
    if digests and all(digests):
        total = sum(int(commit_digest, 16) for commit_digest in digests)
        if format_digest(total) != digest:
            what = f"the rows are not the rows that were appended{_RESTORE}"
            yield error_finding(name, "", "digest", what)
    if frozen and frozen["digest"] != digest:
        what = f"the rows are not the rows that were frozen{_RESTORE}"
        yield error_finding(name, "", "digest", what)


def _sort_key(name: str) -> list[str]:
    """Return the order in which the rows of a table's histories are checked."""
    if name not in RECORDS:
        return []
    operation = next(
        operation
        for operation in OPERATIONS.values()
        if operation.is_history and operation_table(operation) == name
    )
    return ["_operation", "_subject", *Series(operation, "").keys, "_part", "_row"]


def _sample_keys(tables: ArchiveTables, handle: Any, name: str) -> KeySample:
    sample, dataset = KeySample(_ROWS_IN_PART), tables.open_dataset(handle)
    if name not in RECORDS or handle.count() <= _ROWS_IN_PART:
        return sample
    for fragment in dataset.get_fragments():
        # A file that cannot be read is reported when it is checked.
        with contextlib.suppress(Exception):
            file = ds.FileSystemDataset(
                [fragment], dataset.schema, dataset.format, dataset.filesystem
            )
            for batch in tables.scan_batches(
                file, ["_operation", "_subject", time_column_name(name)]
            ):
                sample.add_keys(use_milliseconds(pa.Table.from_batches([batch])))
    return sample


def _check_histories(
    tables: ArchiveTables,
    handle: Any,
    name: str,
    sort: ExternalSort,
    spans: dict[tuple[str, str], Mapping[str, Any]],
) -> Iterator[Finding]:
    """Check the histories one after the other, and put the span of each into `spans`."""
    check: SeriesCheck | None = None
    for part in sort.sorted_parts():
        operations, subjects = (
            part[column].combine_chunks().dictionary_encode()
            for column in ("_operation", "_subject")
        )
        codes = [encoded.indices.to_numpy() for encoded in (operations, subjects)]
        is_new = (np.diff(codes[0]) != 0) | (np.diff(codes[1]) != 0)
        bounds = [0, *(np.flatnonzero(is_new) + 1).tolist(), part.num_rows]
        rows = part.drop_columns(["_operation", "_subject"])
        for first, end in itertools.pairwise(bounds):
            pair = (operations[first].as_py(), subjects[first].as_py())
            if check is None or pair != (check.series.operation.type, check.series.subject):
                if check is not None:
                    yield from check.finish()
                check = SeriesCheck(tables, handle, name, Series(OPERATIONS[pair[0]], pair[1]))
            yield from check.add_rows(rows.slice(first, end - first))
            spans[pair] = check.span
    if check is not None:
        yield from check.finish()


class SeriesCheck:
    """The checks of one history against itself and the table's counters.

    The counters state how many rows each run has.
    """

    def __init__(self, tables: ArchiveTables, handle: Any, name: str, series: Series) -> None:
        self.series = series
        self._tables = tables
        self.span: dict[str, Any] = {"rows": 0, "first": None, "last": None}
        self._handle, self._place = handle, (name, series.name)
        self._checks = HistoryChecks(series.operation, series.parameters, identity=("_hash",))
        self._repeats: list[tuple[int, bool]] = []
        self._runs: dict[int, _RunRows] = {}
        # Of each coin and account the run of the last row, in the rows of earlier calls.
        self._last_runs = pd.DataFrame()
        self._previous: pa.Table | None = None

    def add_rows(self, rows: pa.Table) -> Iterator[Finding]:
        """Check the rows that follow in the order of the operation; times are milliseconds.

        All rows of one time must be in one call.
        """
        ends = pc.min_max(rows[self.series.keys[0]])
        first = self.span["first"]
        self.span = {
            "rows": self.span["rows"] + rows.num_rows,
            "first": ends["min"].as_py() if first is None else first,
            "last": ends["max"].as_py(),
        }
        columns = ("_part", "_row", self.series.keys[0])
        part, row, time = (rows[column].to_numpy() for column in columns)
        if self._previous is not None:
            self._last_runs = self._runs_before(self._previous)
        self._previous = rows.select([*self._subjects(rows), "_part"])
        for start in np.unique(part).tolist():
            is_of_run = part == start
            self._runs.setdefault(start, _RunRows()).add_rows(row[is_of_run], time[is_of_run])
        names = [name for name in rows.column_names if name not in ("_part", "_row")]
        breaks = self._checks.add_page({name: rows[name] for name in names})
        for found in breaks:
            if found.kind == "repeat":
                self._repeats.append((found.time, found.is_certain))
            # A gap in a chain that is no proof may be a transfer, or a builder's revoked approval.
            elif found.is_certain or found.kind != "chain":
                yield from self._break_findings(found, rows)

    def finish(self) -> Iterator[Finding]:
        """Yield the findings that need all rows."""
        for make_finding, is_certain in ((error_finding, True), (notice_finding, False)):
            times = sorted(time for time, certain in self._repeats if certain == is_certain)
            if times:
                first = ", ".join(map(to_iso, list(dict.fromkeys(times))[:_TIMES_SHOWN]))
                rows = count_text(len(times), "row repeats", "rows repeat")
                what = f"{rows} an earlier row, first at {first}"
                yield make_finding(*self._place, "duplicate", what)
        for start, run in sorted(self._runs.items()):
            what = f"the run from {to_iso(start)}"
            logged = self._tables.counter(self._handle, self.series.run_counter(start))
            if not run.is_whole:
                yield error_finding(*self._place, "run", f"{what} lacks or repeats rows{_RESTORE}")
            elif logged != run.count:
                rows = count_text(run.count, "row")
                what = f"{what} has {rows}, but its counter states {logged}{_RESTORE}"
                yield error_finding(*self._place, "run", what)
            if not run.is_ordered:
                what = f"the run from {to_iso(start)} is not in time order{_RESTORE}"
                yield error_finding(*self._place, "order", what)

    def _break_findings(self, found: RowBreak, rows: pa.Table) -> Iterator[Finding]:
        """Yield the finding of a break.

        A break between two runs, of which the first is not pulled completely, is known, and a
        refresh fills it. For a grid, the gap between the complete ranges states the same.
        """
        run, before = rows["_part"][found.row].as_py(), self._runs_before(rows.slice(0, found.row))
        for column, value in (("coin", found.coin), ("user", found.user)):
            if value and column in before:
                before = before[before[column] == value]
        run_before = int(before["_part"].iloc[-1]) if len(before) else run
        if run != run_before and not is_run_complete(
            self._tables, self._handle, self.series, run_before
        ):
            if found.kind != "grid":
                yield notice_finding(*self._place, found.kind, f"{found}: refresh again")
            return
        is_error = found.is_certain or found.kind == "grid"
        make_finding = error_finding if is_error else notice_finding
        yield make_finding(*self._place, found.kind, str(found))

    def _runs_before(self, rows: pa.Table) -> pd.DataFrame:
        """Return the last run of each coin and account, in order, up to the last of the rows."""
        subjects = self._subjects(rows)
        later: pd.DataFrame = rows.select([*subjects, "_part"]).to_pandas()
        runs = pd.concat([self._last_runs, later])
        return runs.drop_duplicates(subjects, keep="last") if subjects else runs.tail(1)

    def _subjects(self, rows: pa.Table) -> list[str]:
        return [name for name in ("coin", "user") if name in rows.column_names]


class _RunRows:
    """What is known of a run's rows, which come in the order of their times."""

    def __init__(self) -> None:
        self.count, self.is_ordered = 0, True
        self._last, self._sum, self._squares, self._is_distinct = -1, 0, 0, True

    def add_rows(self, row: Any, time: Any) -> None:
        """Add the positions and times of rows."""
        order = np.argsort(row, kind="stable")
        row = row[order]
        # Positions that ascend from call to call are distinct if those of each call are.
        self.is_ordered &= not np.any(np.diff(time[order]) < 0) and int(row[0]) > self._last
        self._is_distinct &= bool(np.all(np.diff(row) > 0)) and int(row[0]) >= 0
        self.count += len(row)
        self._last = max(self._last, int(row[-1]))
        self._sum += int(row.sum())
        self._squares += int((row.astype(np.uint64) ** 2).sum())

    @property
    def is_whole(self) -> bool:
        """Whether each position from 0 on is there once.

        If the positions do not ascend, their sum and the sum of their squares decide.
        """
        n = self.count
        sums = (n * (n - 1) // 2, n * (n - 1) * (2 * n - 1) // 6 % 2**64)
        is_same_sum = (self._sum, self._squares % 2**64) == sums
        return self._is_distinct and self._last == n - 1 and is_same_sum


def _collect_rows(
    name: str, rows: pa.Table, sort: ExternalSort, counts: Counter[tuple[str, str]]
) -> Iterator[Finding]:
    """Check rows against their texts, and collect what the checks of whole histories need.

    That is a hash of the text, the row's position and the columns that are checked. `counts` are
    the numbers of rows by operation and subject.
    """
    if name not in (*RECORDS, ANSWERS):
        return
    for type in pc.unique(rows["_operation"]).to_pylist():
        operation = OPERATIONS.get(type)
        if operation is None or operation_table(operation) != name:
            what = f"the table has rows of operation {type!r}, which do not belong here"
            yield error_finding(name, "", "damage", what)
            continue
        of_operation = rows.filter(pc.field("_operation") == type)
        for count in of_operation["_subject"].value_counts().to_pylist():
            counts[type, count["values"]] += count["counts"]
        if name != ANSWERS:
            yield from _check_columns(name, Series(operation, ""), of_operation)
            for batch in _select_checked_columns(name, of_operation).to_batches():
                sort.add_rows(batch)


def _select_checked_columns(name: str, rows: pa.Table) -> pa.Table:
    # An archive of an older version may lack a column.
    more = [column for column in CHECKED_COLUMNS.get(name, ()) if column in rows.column_names]
    checked = use_milliseconds(rows.select(list(dict.fromkeys([*_sort_key(name), *more]))))
    texts = rows["_json"].to_pylist()
    hashes = np.fromiter(map(hash, texts), np.int64, len(texts))
    return checked.append_column("_hash", pa.array(hashes)).combine_chunks()


def _check_columns(name: str, series: Series, rows: pa.Table) -> Iterator[Finding]:
    """Compare the columns of rows with the texts from which they were made."""
    type = series.operation.type
    try:
        texts = rows["_json"].cast(pa.binary()).to_pylist()
        expected = arrow_rows(series, texts, 0, 0, RowOrigin("", False, 0))
    except Exception as error:  # damaged texts can raise anything
        for subject in pc.unique(rows["_subject"]).to_pylist():
            what = f"a text cannot be read: {error_text(error)}"
            yield error_finding(name, f"{type} {subject}", "damage", what)
        return
    if "_columns" in rows.column_names:
        is_current = pc.fill_null(pc.equal(rows["_columns"], column_set_id(name)), False)
    else:
        is_current = pa.array([False] * rows.num_rows)
    for column in expected.column_names:
        if column.startswith("_") or column not in rows.column_names:
            continue
        stored = rows[column]
        if stored.equals(expected[column]):
            continue
        differs = pc.invert(pc.fill_null(pc.equal(stored, expected[column]), False))
        differs = pc.and_(differs, pc.or_(pc.is_valid(stored), pc.is_valid(expected[column])))
        # A version that did not know a column left it empty. Any value that is there must match.
        must_match = pc.or_(is_current, pc.is_valid(stored))
        for subject in pc.unique(rows["_subject"].filter(pc.and_(differs, must_match))).to_pylist():
            what = f"column {column} differs from the texts of the rows"
            yield error_finding(name, f"{type} {subject}", "typed", what)
        unknown = pc.and_(differs, pc.invert(must_match))
        for subject in pc.unique(rows["_subject"].filter(unknown)).to_pylist():
            what = (
                f"column {column} lacks values that the texts have: the version that wrote the "
                "rows did not know it"
            )
            yield notice_finding(name, f"{type} {subject}", "typed", what)


def _read_row_groups(
    tables: ArchiveTables, handle: Any, report: Callable[[str], None]
) -> Iterator[pa.Table]:
    """Yield all rows of a table from its files, and check the statistics of the files.

    Readers skip files by the statistics in the table's log, and row groups by those in the footer
    of a file. If they are wrong, a reader does not see rows that exist. This function reads without
    statistics. `report` is called with a sentence for each fault of a file; the other files are
    still read.
    """
    logged = {action["path"]: action for action in file_actions(handle)}
    schema = tables.open_dataset(handle).schema
    for fragment in tables.open_dataset(handle).get_fragments():
        location = f"{handle.table_uri.rstrip('/')}/{fragment.path}"
        try:
            with tables.translate_errors(location):
                for group in _read_file(fragment, logged[fragment.path], report):
                    yield _match_schema(group, schema, fragment.path, report)
        except StoreUnreachable:
            raise
        except ArchiveError as error:
            report(error_text(error))
        except Exception as error:  # damaged files can raise anything
            report(f"{location}: {error_text(error)}")


def _read_file(
    fragment: Any, logged: Mapping[str, Any], report: Callable[[str], None]
) -> Iterator[pa.Table]:
    """Yield the row groups of a file; compare them with its statistics and Delta's log."""
    file_spans: dict[str, ValueSpan] = {}
    row_count = 0
    with fragment.open() as opened, pq.ParquetFile(opened, pre_buffer=True) as file:
        for number in range(file.num_row_groups):
            group = file.read_row_group(number)
            spans = {name: value_span(group[name]) for name in group.column_names}
            footer = file.metadata.row_group(number)
            for index in range(footer.num_columns):
                column = footer.column(index)
                name = column.path_in_schema
                if not _is_within(spans[name], _footer_statistics(column.statistics)):
                    report(_statistics_message(fragment.path, name, "its footer"))
            file_spans = {
                name: union_span(file_spans.get(name, NO_VALUES), span)
                for name, span in spans.items()
            }
            row_count += group.num_rows
            yield group
    if row_count != logged["num_records"]:
        found = count_text(row_count, "row")
        report(f"{fragment.path}: {found} in the file, {logged['num_records']:,} in Delta's log")
    for name, span in file_spans.items():
        statistics = tuple(logged.get(f"{key}.{name}") for key in ("min", "max", "null_count"))
        # If Delta's log has bounds, a null bound tells readers that the column has no values.
        has_null_bound = span[0] is not None and f"min.{name}" in logged and None in statistics[:2]
        if has_null_bound or not _is_within(span, statistics):
            report(_statistics_message(fragment.path, name, "Delta's log"))


def _statistics_message(path: str, column: str, source: str) -> str:
    return f"{path}: {column} has other values than {source} states, so readers skip rows"


def _footer_statistics(statistics: Any) -> tuple[Any, Any, Any]:
    if statistics is None:
        return None, None, None
    low, high = (statistics.min, statistics.max) if statistics.has_min_max else (None, None)
    return low, high, statistics.null_count if statistics.has_null_count else None


def _is_within(span: ValueSpan, statistics: tuple[Any, ...]) -> bool:
    """Return whether values lie within statistics. Statistics that are None do not count."""
    low, high, nulls = statistics
    if nulls is not None and nulls != span[2]:
        return False
    if span[0] is None:
        return True
    return (low is None or low <= span[0]) and (high is None or span[1] <= high)


def _match_schema(
    rows: pa.Table, schema: pa.Schema, path: str, report: Callable[[str], None]
) -> pa.Table:
    """Return rows with the columns of the table; older versions knew fewer columns."""
    if missing := {name for name in _ALWAYS_THERE if name in schema.names} - {*rows.column_names}:
        report(f"{path} has no column {', '.join(sorted(missing))}")
    columns = [
        rows[field.name].cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
