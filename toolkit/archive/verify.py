"""Verify the tables of an archive: read each once, then compare it with its log and itself."""

import contextlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from toolkit.archive import coverage, engines, schemas, storage
from toolkit.archive.coverage import LogEntries
from toolkit.archive.errors import error_text
from toolkit.archive.schemas import ANSWERS, RECORDS, RowOrigin, Series
from toolkit.archive.storage import ArchiveTables
from toolkit.completeness.checks import HistoryChecks
from toolkit.completeness.covered_ranges import enclosing_range
from toolkit.contract.fields import table_columns
from toolkit.contract.operations import find_operation
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
    tables: ArchiveTables, manifest: Mapping[str, Any], progress: Callable[[int], object]
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
            logged = None if log is None else coverage.select_table_log(log, name)
            with engines.use_system_memory():
                yield from _check_table(tables, name, logged, manifest.get(name), progress)
        except StoreUnreachable:
            raise
        except Exception as error:  # damaged files can raise anything
            yield Finding("damage", "error", name, "", error_text(error))


def _check_table(
    tables: ArchiveTables,
    name: str,
    logged: Mapping[tuple[str, str], LogEntries] | None,
    frozen: Mapping[str, Any] | None,
    progress: Callable[[int], object],
) -> Iterator[Finding]:
    handle = tables.open_table(name)
    if handle is None:
        if logged or frozen:
            what = "the table does not exist, although the refresh log or the freeze names it"
            yield Finding("lost", "error", name, "", what)
        return
    digest, unread, counts = 0, set[str](), Counter[tuple[str, str]]()
    for rows in _read_files(tables, handle, unread):
        if isinstance(rows, str):
            yield Finding("damage", "error", name, "", rows)
            continue
        digest += storage.digest_rows(rows)
        if name in (*RECORDS, ANSWERS):
            pairs = zip(*(rows[column].to_pylist() for column in _SERIES), strict=True)
            counts.update(pairs)
            for first in range(0, rows.num_rows, _ROWS_AT_ONCE):
                yield from _check_rows(name, rows.slice(first, _ROWS_AT_ONCE))
        progress(rows.num_rows)
    # history() returns later commits as well, and counts from the opened version.
    commits = handle.history()[::-1][: handle.version() + 1]
    digests = [commit.get("digest") for commit in commits if commit["operation"] == "WRITE"]
    expected = {"frozen": frozen and frozen["digest"]}
    # Older versions of the archive wrote no digests, and for a folder with # or ? in its name
    # deltalake returns no commits.
    if digests and all(digests):
        total = sum(int(commit_digest, 16) for commit_digest in digests)
        expected["appended"] = storage.format_digest(total)
    for source, stated in expected.items():
        if stated and stated != storage.format_digest(digest):
            what = f"the rows are not the rows that were {source}{_RESTORE}"
            yield Finding("digest", "error", name, "", what)
    for pair, entries in (logged or {}).items():
        if what := coverage.missing_rows_message(counts[pair], coverage.count_logged_rows(entries)):
            yield Finding("lost", "error", name, " ".join(pair), what)
    if name in RECORDS:
        yield from _check_histories(tables, handle, name, unread, logged)


def _check_histories(
    tables: ArchiveTables,
    handle: Any,
    name: str,
    unread: set[str],
    logged: Mapping[tuple[str, str], LogEntries] | None,
) -> Iterator[Finding]:
    """Check the runs, then the histories one after the other, then their gaps."""
    dataset, time = tables.open_dataset(handle), schemas.time_column_name(name)
    dataset = storage.keep_files(dataset, {file.path for file in dataset.get_fragments()} - unread)
    histories = schemas.table_operations(name)
    known = ", ".join(f"'{operation.type}'" for operation in histories)
    keys, more = Series(histories[0], "").keys, schemas.CHECKED_COLUMNS.get(name, ())
    needed = dict.fromkeys([*_SERIES, *keys, "_part", "_row", "_json", *more])
    stored = [column for column in needed if column in dataset.schema.names]
    schema = pa.schema([dataset.schema.field(column) for column in stored])
    subjects = ", ".join([*_SERIES, *(column for column in ("coin", "user") if column in stored)])
    spans: dict[tuple[str, str], dict[str, Any]] = {}
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
            part.slice(first, end - first)
            for part in engines.whole_groups(engines.read_batches(ordered), [*_SERIES, time])
            for first, end in engines.equal_slices(part, _SERIES)
        )
        for pair, pages in itertools.groupby(
            parts, lambda part: tuple(part[column][0].as_py() for column in _SERIES)
        ):
            spans[pair] = {}
            entries = (logged or {}).get(pair, ())
            yield from _check_history(name, pair, time, entries, pages, spans[pair])
    if logged is None:
        return
    for pair in sorted({*spans, *logged}):
        span = spans.get(pair, {"first": None, "last": None})
        # A gap is known, and no damage.
        if gaps := coverage.count_gaps(coverage.complete_ranges(logged.get(pair, ())), span):
            what = f"ranges that are not proved complete: {gaps}; refresh again"
            yield Finding("gap", "notice", name, " ".join(pair), what)


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
    series = Series(schemas.resolve_operation(pair[0]), pair[1])
    pulled = coverage.pulled_ranges(entries)
    checks = HistoryChecks(series.operation, series.parameters, identity=("_hash",))
    repeats: dict[Severity, list[int]] = {"error": [], "notice": []}
    for rows in pages:
        span |= {"first": span.get("first", rows[time][0].as_py()), "last": rows[time][-1].as_py()}
        for found in checks.add_page(
            {column: rows[column] for column in rows.column_names if column not in _PLACES}
        ):
            is_certain = found.group == "breaks"
            if found.kind == "repeat":
                repeats["error" if is_certain else "notice"].append(found.time)
            # A gap in a chain that is no proof may be a transfer, or a builder's revoked approval.
            elif is_certain or found.kind != "chain":
                # A break between two runs, of which the first is not pulled completely, is known,
                # and a refresh fills it. For a grid, the gap between the complete ranges states
                # the same.
                run, before = (rows[column][found.row].as_py() for column in ("_part", "_before"))
                is_joined = run == before or enclosing_range(pulled, before, run) is not None
                is_grid = found.kind == "grid"
                severity: Severity = "error" if is_joined and (is_certain or is_grid) else "notice"
                what = found.text if is_joined else f"{found.text}: refresh again"
                if is_joined or not is_grid:
                    yield Finding(found.kind, severity, name, series.name, what)
    for severity, times in repeats.items():
        if times:
            first = ", ".join(map(to_iso, sorted({*times})[:_TIMES_SHOWN]))
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
    counters = tables.read_counters(handle)
    for run in runs.to_arrow_table().to_pylist():
        series = Series(schemas.resolve_operation(run["_operation"]), run["_subject"])
        what, counter = f"the run from {to_iso(run['_part'])}", series.run_counter(run["_part"])
        find_count = handle.transaction_version if counters is None else counters.get
        if not run["is_whole"]:
            fault = f"{what} lacks or repeats rows{_RESTORE}"
            yield Finding("run", "error", name, series.name, fault)
        elif (counted := find_count(counter)) != run["rows"]:
            rows = count_text(run["rows"], "row")
            fault = f"{what} has {rows}, but its counter states {counted}{_RESTORE}"
            yield Finding("run", "error", name, series.name, fault)
        if not run["is_ordered"]:
            fault = f"{what} is not in time order{_RESTORE}"
            yield Finding("order", "error", name, series.name, fault)


def _check_rows(name: str, rows: pa.Table) -> Iterator[Finding]:
    """Compare the columns of rows with the texts from which they were made."""
    for type in pc.unique(rows["_operation"]).to_pylist():
        operation = find_operation(type)
        if operation is None or (name != ANSWERS and schemas.operation_table(operation) != name):
            what = f"the table has rows of operation {type!r}, which do not belong here"
            yield Finding("damage", "error", name, "", what)
            continue
        if name == ANSWERS:
            continue
        stored = rows.filter(pc.field("_operation") == type)
        subjects = stored["_subject"].to_pylist()
        try:
            texts = stored["_json"].cast(pa.binary()).to_pylist()
            made = schemas.decoded_rows(Series(operation, ""), texts, RowOrigin("", False, 0))
        except Exception as error:  # damaged texts can raise anything
            for subject in dict.fromkeys(subjects):
                what = f"a text cannot be read: {error_text(error)}"
                yield Finding("damage", "error", name, f"{type} {subject}", what)
            continue
        writers = stored["_columns"].to_pylist() if "_columns" in stored.column_names else [None]
        # Only bulk files have columns that the operation does not show, as the builder of a fill.
        for column in (column.name for column in table_columns(operation.tables[0])):
            if column not in {*stored.column_names} & {*made.column_names}:
                continue
            if stored[column].equals(made[column]):
                continue
            cells = (stored[column].to_pylist(), made[column].to_pylist())
            # A version that did not know a column left it empty. Any value that is there must
            # match.
            faults = dict.fromkeys(
                (subject, writer == schemas.column_set_id(name) or cell is not None)
                for subject, writer, cell, expected in zip(
                    subjects, itertools.cycle(writers), *cells, strict=False
                )
                if cell != expected
            )
            for subject, is_error in faults:
                severity: Severity = "error" if is_error else "notice"
                what = f"column {column} differs from the texts of the rows"
                if not is_error:
                    what = (
                        f"column {column} lacks values that the texts have: the version that wrote "
                        "the rows did not know it"
                    )
                yield Finding("typed", severity, name, f"{type} {subject}", what)


def _read_files(tables: ArchiveTables, handle: Any, unread: set[str]) -> Iterator[pa.Table | str]:
    """Yield all rows of a table from its files, and a sentence for each fault of a file.

    Readers skip files by the statistics in the table's log, and row groups by those in the footer
    of a file. If they are wrong, a reader does not see rows that exist. This function reads without
    statistics. The paths of files that cannot be read are added to `unread`; the other files are
    still read.
    """
    actions = {action["path"]: action for action in storage.file_actions(handle)}
    dataset = tables.open_dataset(handle)
    for path in dataset.files:
        logged, found, wrong = actions[path], 0, dict[str, None]()
        nulls = Counter[str]()
        location = f"{handle.table_uri.rstrip('/')}/{path}"
        try:
            with tables.translate_errors(location):
                file = dataset.format.make_fragment(path, dataset.filesystem)
                needed = {name for name in _ALWAYS_THERE if name in dataset.schema.names}
                if missing := needed - {*file.physical_schema.names}:
                    yield f"{path} has no column {', '.join(sorted(missing))}"
                for group in file.split_by_row_group():
                    rows = group.to_table(schema=dataset.schema)
                    found += rows.num_rows
                    footer = {
                        f"{end}.{name}": value
                        for name, ends in group.row_groups[0].statistics.items()
                        for end, value in ends.items()
                    }
                    for name in rows.column_names:
                        nulls[name] += rows[name].null_count
                        least, most = pc.min_max(rows[name]).as_py().values()
                        for source, stated in (("its footer", footer), ("Delta's log", logged)):
                            if least is None or f"min.{name}" not in stated:
                                continue
                            low, high = stated[f"min.{name}"], stated.get(f"max.{name}")
                            if None in (low, high) or not low <= least <= most <= high:
                                wrong[f"{name} has other values than {source}"] = None
                    yield rows
                if found != logged["num_records"]:
                    count = count_text(found, "row")
                    yield f"{path}: {count} in the file, {logged['num_records']:,} in Delta's log"
                wrong |= {
                    f"{name} has other values than Delta's log": None
                    for name, null_count in nulls.items()
                    if logged.get(f"null_count.{name}") not in (None, null_count)
                }
                for fault in wrong:
                    yield f"{path}: {fault} states, so readers skip rows"
        except StoreUnreachable:
            raise
        except Exception as error:  # damaged files can raise anything
            unread.add(path)
            place = "" if isinstance(error, ArchiveError) else f"{location}: "
            yield f"{place}{error_text(error)}"
