"""Verify the tables of an archive: read each once, then compare it with its log and itself."""

import contextlib
import itertools
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from toolkit.archive import coverage, engines, schemas, storage
from toolkit.archive.coverage import LogEntries
from toolkit.archive.errors import error_text
from toolkit.archive.schemas import ANSWERS, RECORDS, RowOrigin, Series
from toolkit.archive.storage import ArchiveTables
from toolkit.completeness.checks import HistoryChecks
from toolkit.completeness.covered_ranges import enclosing_range
from toolkit.contract.columns import table_columns
from toolkit.contract.extra_operations import find_operation
from toolkit.display import count_text
from toolkit.errors import ArchiveError, StoreUnreachable
from toolkit.times import to_iso

_ALWAYS_THERE: Final = ("_operation", "_subject", "_part", "_row", "_json", "_body", "_fetched")
_SERIES: Final = ("_operation", "_subject")
_PLACES: Final = (*_SERIES, "_part", "_row", "_before")
_ROWS_AT_ONCE: Final = 4_000  # whose texts are decoded
_TIMES_SHOWN: Final = 3
_RESTORE: Final = ". Restore the table from a copy"


Severity = Literal["error", "notice"]
"""A notice may have a harmless cause."""


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
    severity: Severity
    table: str
    series: str
    what: str


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
        log = coverage.read_log(tables)
    for name in schemas.SCHEMAS:
        try:
            with engines.use_system_memory():
                yield from _check_table(tables, name, log, manifest.get(name), progress)
        except StoreUnreachable:
            raise
        except Exception as error:  # damaged files can raise anything
            yield Finding("damage", "error", name, "", error_text(error))


def _check_table(
    tables: ArchiveTables,
    name: str,
    log: Mapping[tuple[str, str], LogEntries] | None,
    frozen: Mapping[str, Any] | None,
    progress: Callable[[int], object] | None,
) -> Iterator[Finding]:
    logged = coverage.select_table_log(log or {}, name)
    handle = tables.open_table(name)
    if handle is None:
        if logged or frozen:
            what = "the table does not exist, although the refresh log or the freeze names it"
            yield Finding("lost", "error", name, "", what)
        return
    digest, damage, unread, counts = 0, list[str](), set[str](), Counter[tuple[str, str]]()
    for rows in _read_row_groups(tables, handle, damage.append, unread):
        digest += storage.digest_rows(rows)
        for first in range(0, rows.num_rows, _ROWS_AT_ONCE):
            yield from _check_rows(name, rows.slice(first, _ROWS_AT_ONCE), counts)
        if progress is not None:
            progress(rows.num_rows)
    for what in damage:
        yield Finding("damage", "error", name, "", what)
    yield from _check_digests(handle, name, storage.format_digest(digest), frozen)
    for pair, entries in logged.items():
        if what := coverage.missing_rows_message(counts[pair], coverage.count_logged_rows(entries)):
            yield Finding("lost", "error", name, " ".join(pair), what)
    if name not in RECORDS:
        return
    spans: dict[tuple[str, str], dict[str, Any]] = {}
    yield from _check_histories(tables, handle, name, unread, logged, spans)
    if log is None:
        return
    for pair in sorted({*spans, *logged}):
        span = spans.get(pair, {"first": None, "last": None})
        if gaps := coverage.count_gaps(
            coverage.complete_ranges(logged.get(pair, ())), span
        ):  # known, and no damage
            what = f"ranges that are not proved complete: {gaps}; refresh again"
            yield Finding("gap", "notice", name, " ".join(pair), what)


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
        if storage.format_digest(total) != digest:
            what = f"the rows are not the rows that were appended{_RESTORE}"
            yield Finding("digest", "error", name, "", what)
    if frozen and frozen["digest"] != digest:
        what = f"the rows are not the rows that were frozen{_RESTORE}"
        yield Finding("digest", "error", name, "", what)


def _check_histories(
    tables: ArchiveTables,
    handle: Any,
    name: str,
    unread: set[str],
    logged: Mapping[tuple[str, str], LogEntries],
    spans: dict[tuple[str, str], dict[str, Any]],
) -> Iterator[Finding]:
    """Check the histories one after the other, and put the span of each into `spans`."""
    dataset, time = tables.open_dataset(handle), schemas.time_column_name(name)
    dataset = storage.keep_files(dataset, {file.path for file in dataset.get_fragments()} - unread)
    histories = schemas.table_operations(name)
    keys = Series(histories[0], "").keys
    known = ", ".join(f"'{operation.type}'" for operation in histories)
    more = schemas.CHECKED_COLUMNS.get(name, ())
    needed = dict.fromkeys([*_SERIES, *keys, "_part", "_row", "_json", *more])
    stored = [column for column in needed if column in dataset.schema.names]
    schema = pa.schema([dataset.schema.field(column) for column in stored])
    subjects = ", ".join([*_SERIES, *(column for column in ("coin", "user") if column in stored)])
    with engines.open_duckdb(handle.count()) as database:
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
        parts = (
            (
                tuple(part[column][first].as_py() for column in _SERIES),
                part.slice(first, end - first),
            )
            for part in engines.whole_groups(engines.read_batches(ordered), [*_SERIES, time])
            for first, end in engines.equal_slices(part, _SERIES)
        )
        for pair, found in itertools.groupby(parts, operator.itemgetter(0)):
            entries, pages = logged.get(pair, ()), (page for _, page in found)
            span = spans[pair] = dict[str, Any]()
            yield from _check_history(name, pair, time, entries, pages, span)


def _check_history(
    name: str,
    pair: tuple[str, str],
    time: str,
    entries: LogEntries,
    pages: Iterable[pa.Table],
    span: dict[str, Any],
) -> Iterator[Finding]:
    """Check the rows of a history against each other, and put its first and last time into `span`.

    The rows are in the order of the operation, times are milliseconds, and all rows of one time are
    in one page.
    """
    series, pulled = (
        Series(schemas.resolve_operation(pair[0]), pair[1]),
        coverage.pulled_ranges(entries),
    )
    checks = HistoryChecks(series.operation, series.parameters, identity=("_hash",))
    repeats: dict[Severity, list[int]] = {"error": [], "notice": []}
    for rows in pages:
        span |= {"first": span.get("first", rows[time][0].as_py()), "last": rows[time][-1].as_py()}
        names = [column for column in rows.column_names if column not in _PLACES]
        for found in checks.add_page({column: rows[column] for column in names}):
            if found.kind == "repeat":
                repeats["error" if found.is_certain else "notice"].append(found.time)
                continue
            # A gap in a chain that is no proof may be a transfer, or a builder's revoked approval.
            if found.kind == "chain" and not found.is_certain:
                continue
            # A break between two runs, of which the first is not pulled completely, is known, and a
            # refresh fills it. For a grid, the gap between the complete ranges states the same.
            run, before = (rows[column][found.row].as_py() for column in ("_part", "_before"))
            is_known = run != before and enclosing_range(pulled, before, run) is None
            if is_known and found.kind != "grid":
                yield Finding(found.kind, "notice", name, series.name, f"{found}: refresh again")
            elif not is_known:
                is_error = found.is_certain or found.kind == "grid"
                severity: Severity = "error" if is_error else "notice"
                yield Finding(found.kind, severity, name, series.name, str(found))
    for severity, times in repeats.items():
        if times:
            first = ", ".join(map(to_iso, list(dict.fromkeys(sorted(times)))[:_TIMES_SHOWN]))
            count = count_text(len(times), "row repeats", "rows repeat")
            what = f"{count} an earlier row, first at {first}"
            yield Finding("duplicate", severity, name, series.name, what)


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
        series = Series(schemas.resolve_operation(run["_operation"]), run["_subject"])
        what = f"the run from {to_iso(run['_part'])}"
        counted = tables.counter(handle, series.run_counter(run["_part"]))
        if not run["is_whole"]:
            fault = f"{what} lacks or repeats rows{_RESTORE}"
            yield Finding("run", "error", name, series.name, fault)
        elif counted != run["rows"]:
            rows = count_text(run["rows"], "row")
            fault = f"{what} has {rows}, but its counter states {counted}{_RESTORE}"
            yield Finding("run", "error", name, series.name, fault)
        if not run["is_ordered"]:
            fault = f"{what} is not in time order{_RESTORE}"
            yield Finding("order", "error", name, series.name, fault)


def _check_rows(name: str, rows: pa.Table, counts: Counter[tuple[str, str]]) -> Iterator[Finding]:
    """Check rows against their texts, and count the rows of each operation and subject."""
    if name not in (*RECORDS, ANSWERS):
        return
    for type in pc.unique(rows["_operation"]).to_pylist():
        operation = find_operation(type)
        if operation is None or (name != ANSWERS and schemas.operation_table(operation) != name):
            what = f"the table has rows of operation {type!r}, which do not belong here"
            yield Finding("damage", "error", name, "", what)
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
        expected = schemas.decoded_rows(series, texts, RowOrigin("", False, 0))
    except Exception as error:  # damaged texts can raise anything
        for subject in pc.unique(rows["_subject"]).to_pylist():
            what = f"a text cannot be read: {error_text(error)}"
            yield Finding("damage", "error", name, f"{type} {subject}", what)
        return
    if "_columns" in rows.column_names:
        is_current = pc.fill_null(pc.equal(rows["_columns"], schemas.column_set_id(name)), False)
    else:
        is_current = pa.array([False] * rows.num_rows)
    # Only bulk files have columns that the operation does not show, such as the builder of a fill.
    for column in (column.name for column in table_columns(series.operation.tables[0])):
        if column not in expected.column_names or column not in rows.column_names:
            continue
        stored, made = rows[column], expected[column]
        if stored.equals(made):
            continue
        differs = pc.invert(pc.fill_null(pc.equal(stored, made), False))
        differs = pc.and_(differs, pc.or_(pc.is_valid(stored), pc.is_valid(made)))
        # A version that did not know a column left it empty. Any value that is there must match.
        must_match = pc.or_(is_current, pc.is_valid(stored))
        known = pc.and_(differs, must_match)
        for subject in pc.unique(rows["_subject"].filter(known)).to_pylist():
            what = f"column {column} differs from the texts of the rows"
            yield Finding("typed", "error", name, f"{type} {subject}", what)
        unknown = pc.and_not(differs, must_match)
        for subject in pc.unique(rows["_subject"].filter(unknown)).to_pylist():
            what = (
                f"column {column} lacks values that the texts have: the version that wrote the "
                "rows did not know it"
            )
            yield Finding("typed", "notice", name, f"{type} {subject}", what)


def _read_row_groups(
    tables: ArchiveTables, handle: Any, report: Callable[[str], None], unread: set[str]
) -> Iterator[pa.Table]:
    """Yield all rows of a table from its files, and check the statistics of the files.

    Readers skip files by the statistics in the table's log, and row groups by those in the footer
    of a file. If they are wrong, a reader does not see rows that exist. This function reads without
    statistics. `report` is called with a sentence for each fault of a file. The paths of files that
    cannot be read are added to `unread`; the other files are still read.
    """
    logged = {action["path"]: action for action in storage.file_actions(handle)}
    schema = tables.open_dataset(handle).schema
    for fragment in tables.open_dataset(handle).get_fragments():
        location = f"{handle.table_uri.rstrip('/')}/{fragment.path}"
        try:
            with tables.translate_errors(location):
                yield from _read_file(fragment, schema, logged[fragment.path], report)
        except StoreUnreachable:
            raise
        except Exception as error:  # damaged files can raise anything
            place = "" if isinstance(error, ArchiveError) else f"{location}: "
            report(f"{place}{error_text(error)}")
            unread.add(fragment.path)


def _read_file(
    fragment: Any, schema: pa.Schema, logged: Mapping[str, Any], report: Callable[[str], None]
) -> Iterator[pa.Table]:
    """Yield the row groups of a file with the columns of the table; check its statistics."""
    row_count, nulls, wrong = 0, Counter[str](), dict[tuple[str, str], None]()
    with fragment.open() as opened, pq.ParquetFile(opened, pre_buffer=True) as file:
        names = file.schema_arrow.names
        if missing := {name for name in _ALWAYS_THERE if name in schema.names} - {*names}:
            report(f"{fragment.path} has no column {', '.join(sorted(missing))}")
        for number in range(file.num_row_groups):
            group, footer = file.read_row_group(number), file.metadata.row_group(number)
            row_count += group.num_rows
            for column in map(footer.column, range(footer.num_columns)):
                name, stated = column.path_in_schema, column.statistics
                ends, count = pc.min_max(group[name]).as_py(), group[name].null_count
                nulls[name] += count
                if stated is not None and (
                    (stated.has_null_count and stated.null_count != count)
                    or (stated.has_min_max and not _are_within(ends, stated.min, stated.max))
                ):
                    wrong[name, "its footer"] = None
                low, high = (logged.get(f"{end}.{name}") for end in ("min", "max"))
                if f"min.{name}" in logged and not _are_within(ends, low, high):
                    wrong[name, "Delta's log"] = None
            columns = [  # older versions knew fewer columns
                group[field.name].cast(field.type)
                if field.name in names
                else pa.nulls(group.num_rows, field.type)
                for field in schema
            ]
            yield pa.table(columns, schema=schema)
    if row_count != logged["num_records"]:
        found = count_text(row_count, "row")
        report(f"{fragment.path}: {found} in the file, {logged['num_records']:,} in Delta's log")
    for name, count in nulls.items():
        if logged.get(f"null_count.{name}") not in (None, count):
            wrong[name, "Delta's log"] = None
    for name, source in wrong:
        report(
            f"{fragment.path}: {name} has other values than {source} states, so readers skip rows"
        )


def _are_within(ends: Mapping[str, Any], low: Any, high: Any) -> bool:
    """Return whether values lie within bounds. A null bound tells readers that there are none."""
    if ends["min"] is None or None in (low, high):
        return ends["min"] is None
    return bool(low <= ends["min"] and ends["max"] <= high)
