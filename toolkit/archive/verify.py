"""Verify the tables of an archive: read each once, then compare it with its log and itself."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from toolkit.archive.coverage import (
    LogEntries,
    complete_ranges,
    count_gaps,
    count_logged_rows,
    missing_rows_message,
    pulled_ranges,
    read_log,
    select_table_log,
)
from toolkit.archive.engines import (
    equal_slices,
    open_duckdb,
    read_batches,
    use_system_memory,
    whole_groups,
)
from toolkit.archive.errors import error_text
from toolkit.archive.schemas import (
    ANSWERS,
    CHECKED_COLUMNS,
    RECORDS,
    SCHEMAS,
    RowOrigin,
    Series,
    arrow_rows,
    column_set_id,
    operation_table,
    resolve_operation,
    table_operations,
    time_column_name,
)
from toolkit.archive.storage import (
    ArchiveTables,
    digest_rows,
    file_actions,
    format_digest,
    keep_files,
)
from toolkit.completeness.checks import HistoryChecks, RowBreak
from toolkit.completeness.covered_ranges import TimeRange, enclosing_range
from toolkit.contract.columns import table_columns
from toolkit.contract.extra_operations import find_operation
from toolkit.display import count_text
from toolkit.errors import ArchiveError, StoreUnreachable
from toolkit.times import to_iso

_ALWAYS_THERE: Final = ("_operation", "_subject", "_part", "_row", "_json", "_body", "_fetched")
_SERIES: Final = ("_operation", "_subject")
_PLACES: Final = (*_SERIES, "_part", "_row", "_before")
_NO_VALUES: Final = (None, None, 0)  # the span of a column without values
_ROWS_AT_ONCE: Final = 4_000  # whose texts are decoded
_TIMES_SHOWN: Final = 3
_RESTORE: Final = ". Restore the table from a copy"


ValueSpan = tuple[Any, Any, int]
"""Least and greatest value of a column, and the number of missing values."""


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
    digest, damage, unread, counts = 0, list[str](), set[str](), Counter[tuple[str, str]]()
    for rows in _read_row_groups(tables, handle, damage.append, unread):
        digest += digest_rows(rows)
        for first in range(0, rows.num_rows, _ROWS_AT_ONCE):
            yield from _check_rows(name, rows.slice(first, _ROWS_AT_ONCE), counts)
        if progress is not None:
            progress(rows.num_rows)
    for what in damage:
        yield error_finding(name, "", "damage", what)
    yield from _check_digests(handle, name, format_digest(digest), frozen)
    for pair, entries in logged.items():
        if what := missing_rows_message(counts[pair], count_logged_rows(entries)):
            yield error_finding(name, " ".join(pair), "lost", what)
    if name not in RECORDS:
        return
    spans: dict[tuple[str, str], Mapping[str, Any]] = {}
    yield from _check_histories(tables, handle, name, unread, logged, spans)
    if log is None:
        return
    for pair in sorted({*spans, *logged}):
        span = spans.get(pair, {"first": None, "last": None})
        if gaps := count_gaps(complete_ranges(logged.get(pair, ())), span):  # known, and no damage
            what = f"ranges that are not proved complete: {gaps}; refresh again"
            yield notice_finding(name, " ".join(pair), "gap", what)


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


def _check_histories(
    tables: ArchiveTables,
    handle: Any,
    name: str,
    unread: set[str],
    logged: Mapping[tuple[str, str], LogEntries],
    spans: dict[tuple[str, str], Mapping[str, Any]],
) -> Iterator[Finding]:
    """Check the histories one after the other, and put the span of each into `spans`."""
    dataset, time = tables.open_dataset(handle), time_column_name(name)
    whole = {file.path for file in dataset.get_fragments()} - unread
    dataset = keep_files(dataset, whole)
    more = [column for column in CHECKED_COLUMNS.get(name, ()) if column in dataset.schema.names]
    histories = table_operations(name)
    keys = Series(histories[0], "").keys
    known = ", ".join(f"'{operation.type}'" for operation in histories)
    needed = dict.fromkeys([*_SERIES, *keys, "_part", "_row", "_json", *more])
    stored = [column for column in needed if column in dataset.schema.names]
    schema = pa.schema([dataset.schema.field(column) for column in stored])
    subjects = ", ".join([*_SERIES, *(column for column in ("coin", "user") if column in stored)])
    with open_duckdb(handle.count()) as database:
        rows = pa.RecordBatchReader.from_batches(schema, tables.scan_batches(dataset, stored))
        shown = ", ".join(f'"{column}"' for column in stored if column not in ("_json", time))
        database.from_arrow(rows).filter(f"_operation IN ({known})").select(
            f'{shown}, epoch_ms("{time}") AS "{time}", hash(_json) AS _hash'
        ).create("rows")
        yield from _check_runs(tables, handle, database, name, time)
        order = ", ".join(f'"{column}"' for column in [*_SERIES, *keys, "_part", "_row"])
        ordered = database.sql(
            f"SELECT *, lag(_part, 1, _part) OVER (PARTITION BY {subjects} ORDER BY {order}) "
            f"AS _before FROM rows ORDER BY {order}"
        )
        history: _History | None = None
        for part in whole_groups(read_batches(ordered), [*_SERIES, time]):
            for first, end in equal_slices(part, _SERIES):
                type, subject = (part[column][first].as_py() for column in _SERIES)
                series = Series(resolve_operation(type), subject)
                if history is None or history.series != series:
                    if history is not None:
                        yield from history.repeat_findings()
                    history = _History(name, series, pulled_ranges(logged.get((type, subject), ())))
                yield from history.check_rows(part.slice(first, end - first), time)
                spans[type, subject] = history.span
        if history is not None:
            yield from history.repeat_findings()


def _check_runs(
    tables: ArchiveTables, handle: Any, database: Any, name: str, time: str
) -> Iterator[Finding]:
    """Yield the runs that lack or repeat rows, or are not in time order."""
    runs = database.sql(
        "SELECT _operation, _subject, _part, count(*) AS rows, bool_and(follows) AS is_whole, "
        "bool_and(is_later) AS is_ordered FROM (SELECT _operation, _subject, _part, "
        f'_row = lag(_row, 1, -1) OVER run + 1 AS follows, "{time}" >= lag("{time}", 1, "{time}") '
        "OVER run AS is_later FROM rows "
        "WINDOW run AS (PARTITION BY _operation, _subject, _part ORDER BY _row)) "
        "GROUP BY ALL ORDER BY ALL"
    )
    for run in runs.to_arrow_table().to_pylist():
        series = Series(resolve_operation(run["_operation"]), run["_subject"])
        what, place = f"the run from {to_iso(run['_part'])}", (name, series.name)
        logged = tables.counter(handle, series.run_counter(run["_part"]))
        if not run["is_whole"]:
            yield error_finding(*place, "run", f"{what} lacks or repeats rows{_RESTORE}")
        elif logged != run["rows"]:
            rows = count_text(run["rows"], "row")
            stated = f"{what} has {rows}, but its counter states {logged}{_RESTORE}"
            yield error_finding(*place, "run", stated)
        if not run["is_ordered"]:
            yield error_finding(*place, "order", f"{what} is not in time order{_RESTORE}")


class _History:
    """The checks of the rows of one history against each other."""

    def __init__(self, name: str, series: Series, pulled: Sequence[TimeRange]) -> None:
        self.series = series
        self.span: dict[str, Any] = {"first": None, "last": None}
        self._pulled, self._place = pulled, (name, series.name)
        self._checks = HistoryChecks(series.operation, series.parameters, identity=("_hash",))
        self._repeats: list[tuple[int, bool]] = []

    def check_rows(self, rows: pa.Table, time: str) -> Iterator[Finding]:
        """Check the rows that follow in the order of the operation; times are milliseconds.

        All rows of one time must be in one call.
        """
        first, last = rows[time][0].as_py(), rows[time][-1].as_py()
        self.span = {"first": self.span["first"] or first, "last": last}
        names = [name for name in rows.column_names if name not in _PLACES]
        for found in self._checks.add_page({name: rows[name] for name in names}):
            if found.kind == "repeat":
                self._repeats.append((found.time, found.is_certain))
            # A gap in a chain that is no proof may be a transfer, or a builder's revoked approval.
            elif found.is_certain or found.kind != "chain":
                yield from self._break_finding(found, rows)

    def repeat_findings(self) -> Iterator[Finding]:
        """Yield the findings about rows that came more than once, after all rows."""
        for make_finding, is_certain in ((error_finding, True), (notice_finding, False)):
            times = sorted(time for time, certain in self._repeats if certain == is_certain)
            if times:
                first = ", ".join(map(to_iso, list(dict.fromkeys(times))[:_TIMES_SHOWN]))
                rows = count_text(len(times), "row repeats", "rows repeat")
                what = f"{rows} an earlier row, first at {first}"
                yield make_finding(*self._place, "duplicate", what)

    def _break_finding(self, found: RowBreak, rows: pa.Table) -> Iterator[Finding]:
        """Yield the finding of a break.

        A break between two runs, of which the first is not pulled completely, is known, and a
        refresh fills it. For a grid, the gap between the complete ranges states the same.
        """
        run, before = (rows[name][found.row].as_py() for name in ("_part", "_before"))
        if run != before and enclosing_range(self._pulled, before, run) is None:
            if found.kind != "grid":
                yield notice_finding(*self._place, found.kind, f"{found}: refresh again")
            return
        is_error = found.is_certain or found.kind == "grid"
        make_finding = error_finding if is_error else notice_finding
        yield make_finding(*self._place, found.kind, str(found))


def _check_rows(name: str, rows: pa.Table, counts: Counter[tuple[str, str]]) -> Iterator[Finding]:
    """Check rows against their texts, and count the rows of each operation and subject."""
    if name not in (*RECORDS, ANSWERS):
        return
    for type in pc.unique(rows["_operation"]).to_pylist():
        operation = find_operation(type)
        if operation is None or (name != ANSWERS and operation_table(operation) != name):
            what = f"the table has rows of operation {type!r}, which do not belong here"
            yield error_finding(name, "", "damage", what)
            continue
        of_operation = rows.filter(pc.field("_operation") == type)
        for count in of_operation["_subject"].value_counts().to_pylist():
            counts[type, count["values"]] += count["counts"]
        if name != ANSWERS:
            yield from _check_columns(name, Series(operation, ""), of_operation)


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
    # Only bulk files have columns that the operation does not show, such as the builder of a fill.
    shown = [column.name for column in table_columns(series.operation.tables[0])]
    for column in shown:
        if column not in expected.column_names or column not in rows.column_names:
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
    tables: ArchiveTables, handle: Any, report: Callable[[str], None], unread: set[str]
) -> Iterator[pa.Table]:
    """Yield all rows of a table from its files, and check the statistics of the files.

    Readers skip files by the statistics in the table's log, and row groups by those in the footer
    of a file. If they are wrong, a reader does not see rows that exist. This function reads without
    statistics. `report` is called with a sentence for each fault of a file. The paths of files that
    cannot be read are added to `unread`; the other files are still read.
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
            unread.add(fragment.path)
        except Exception as error:  # damaged files can raise anything
            report(f"{location}: {error_text(error)}")
            unread.add(fragment.path)


def _read_file(
    fragment: Any, logged: Mapping[str, Any], report: Callable[[str], None]
) -> Iterator[pa.Table]:
    """Yield the row groups of a file; compare them with its statistics and Delta's log."""
    file_spans: dict[str, ValueSpan] = {}
    row_count = 0
    with fragment.open() as opened, pq.ParquetFile(opened, pre_buffer=True) as file:
        for number in range(file.num_row_groups):
            group = file.read_row_group(number)
            ends = {name: pc.min_max(group[name]).as_py() for name in group.column_names}
            spans = {
                name: (end["min"], end["max"], group[name].null_count) for name, end in ends.items()
            }
            footer = file.metadata.row_group(number)
            for index in range(footer.num_columns):
                column = footer.column(index)
                name = column.path_in_schema
                if not _is_within(spans[name], _footer_statistics(column.statistics)):
                    report(_statistics_message(fragment.path, name, "its footer"))
            file_spans = {
                name: union_span(file_spans.get(name, _NO_VALUES), span)
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


def union_span(first: ValueSpan, second: ValueSpan) -> ValueSpan:
    """Return the span of the values of two parts of a column."""
    low = min((value for value in (first[0], second[0]) if value is not None), default=None)
    high = max((value for value in (first[1], second[1]) if value is not None), default=None)
    return low, high, first[2] + second[2]


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
