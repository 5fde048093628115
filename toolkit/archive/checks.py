"""The checks of `Archive.verify`: the files of a table, and the rows of one history."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from toolkit.archive.coverage import RowSpan
from toolkit.archive.errors import StoreUnreachable, error_text
from toolkit.archive.series import Series, completion_transaction, key_columns, run_transaction
from toolkit.archive.storage import ArchiveTables
from toolkit.contract.operations import Operation
from toolkit.contract.records import Fill
from toolkit.errors import ArchiveError
from toolkit.times import HOUR, to_iso

__all__ = [
    "Finding",
    "check_history",
    "error_finding",
    "has_position_chains",
    "notice_finding",
    "read_row_groups",
    "span_of_rows",
]

_ROWS_AT_ONCE: Final = 20_000
_TIMES_SHOWN: Final = 3
_ALWAYS_THERE: Final = ("_operation", "_subject", "_part", "_row", "_json", "_body", "_fetched")

Place = tuple[str, str]
"""Table and series of a finding."""
ValueSpan = tuple[Any, Any, int]
"""Least and greatest value of a column, and the number of missing values."""

_NO_VALUES: Final = (None, None, 0)


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


def check_history(handle: Any, name: str, series: Series, rows: pa.Table) -> Iterator[Finding]:
    """Check the rows of one history against each other and against the table's transactions.

    Parameters
    ----------
    handle : DeltaTable
        The table. Its transactions state how many rows each run has.
    name : str
        The name of the table.
    series : Series
        The history.
    rows : pyarrow.Table
        Rows from `CollectedRows.histories`; times are milliseconds.
    """
    place, keys = (name, series.name), key_columns(series.operation)
    yield from _check_runs(handle, series, rows, place)
    sort_keys = [(column, "ascending") for column in (*keys, "_part", "_row")]
    ordered = rows.take(pc.sort_indices(rows, sort_keys))
    yield from _check_duplicates(ordered, keys, place)
    if check := _TABLE_CHECKS.get(name):
        yield from check(handle, series, ordered, place)


def span_of_rows(series: Series, rows: pa.Table) -> RowSpan:
    """Return the number of rows, and the time of the first and the last."""
    ends = pc.min_max(rows[key_columns(series.operation)[0]])
    return {"rows": rows.num_rows, "first": ends["min"].as_py(), "last": ends["max"].as_py()}


def _iterate_rows(rows: pa.Table, *columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield rows as tuples, and convert only a part of the table at once."""
    for batch in rows.select(columns).to_batches(_ROWS_AT_ONCE):
        arrays = [
            array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
            for array in batch.columns
        ]
        yield from zip(*(array.to_pylist() for array in arrays), strict=True)


def _check_runs(handle: Any, series: Series, rows: pa.Table, place: Place) -> Iterator[Finding]:
    """Check that each run has each row once, as many as its transaction states, in time order."""
    columns = ("_part", "_row", key_columns(series.operation)[0])
    part, row, time = (rows[column].to_numpy() for column in columns)
    order = np.lexsort((row, part))
    starts, firsts = np.unique(part[order], return_index=True)
    for start, positions in zip(starts.tolist(), np.split(order, firsts[1:]), strict=True):
        count, run = len(positions), f"the run from {to_iso(start)}"
        logged = handle.transaction_version(run_transaction(series, start))
        if not np.array_equal(row[positions], np.arange(count)):
            yield error_finding(*place, "run", f"{run} lacks or repeats rows")
        elif logged != count:
            what = f"{run} has {count} rows, but its transaction states {logged}"
            yield error_finding(*place, "run", what)
        if np.any(np.diff(time[positions]) < 0):
            yield error_finding(*place, "order", f"{run} is not in time order")


def _check_duplicates(rows: pa.Table, keys: list[str], place: Place) -> Iterator[Finding]:
    """Report rows that are equal to an earlier row."""
    hashes = rows["_hash"].to_numpy()
    order = np.argsort(hashes, kind="stable")
    sorted_hashes = hashes[order]
    repeated = rows.take(np.sort(order[1:][sorted_hashes[1:] == sorted_hashes[:-1]]))
    # Two equal fills without a trade id, ledger rows or order events can both be real.
    is_unique = np.full(repeated.num_rows, place[0] in ("funding", "slippage"))
    if "tid" in repeated.column_names:
        is_unique = pc.fill_null(repeated["tid"], 0).to_numpy() != 0
    for make_finding, chosen in ((error_finding, is_unique), (notice_finding, ~is_unique)):
        times = repeated[keys[0]].to_numpy()[chosen]
        if len(times):
            first = ", ".join(map(to_iso, np.unique(times)[:_TIMES_SHOWN].tolist()))
            what = f"{len(times)} rows repeat an earlier row, first at {first}"
            yield make_finding(*place, "duplicate", what)


def has_position_chains(operation: Operation) -> bool:
    """Return whether the fills of an operation are all fills of one account.

    A builder's history has only the fills between approval and revocation, so its fills do not
    form a chain.
    """
    return operation.tables[0].record is Fill and operation.subject == ("user",)


def _check_position_chains(
    handle: Any, series: Series, rows: pa.Table, place: Place
) -> Iterator[Finding]:
    """Check that each perp fill starts from the position that the previous fill left."""
    if not has_position_chains(series.operation):
        return
    positions: dict[str, tuple[Decimal, int]] = {}
    columns = ("coin", "side", "time", "_part", "_start_position", "_sz")
    for coin, side, time, part, start_text, size in _iterate_rows(rows, *columns):
        if coin[:1] in "@#" or "/" in coin:  # spot
            continue
        if start_text is None:  # the text of the row cannot be read
            positions.clear()
            continue
        start = Decimal(start_text)
        expected, run = positions.get(coin, (start, part))
        if expected != start:
            what = (
                f"fills are missing before {coin} at {to_iso(time)}: it starts from {start}, "
                f"not {expected}"
            )
            if _is_between_runs(handle, series, run, part):
                yield notice_finding(*place, "chain", f"{what}: refresh again")
            else:
                yield error_finding(*place, "chain", what)
        positions[coin] = (start + Decimal(size) * (1 if side == "B" else -1), part)


def _is_between_runs(handle: Any, series: Series, run: int, next_run: int) -> bool:
    """Return whether a gap lies between two runs, of which the first is not pulled completely.

    Such a gap is known, and a refresh fills it.
    """
    is_open = handle.transaction_version(completion_transaction(series, run)) is None
    return next_run != run and is_open


def _check_funding_hours(
    handle: Any, series: Series, rows: pa.Table, place: Place
) -> Iterator[Finding]:
    """Check that a position that does not change has a funding payment in each hour.

    A row that sums up n payments covers n hours (docs/live_service.md, section 5).
    """
    last: dict[tuple[str, str], tuple[int, float]] = {}
    columns = ["user", "coin", "time", "szi"]
    if "n_samples" in rows.column_names:
        columns.append("n_samples")
    for user, coin, time, szi, *samples in _iterate_rows(rows, *columns):
        key, hour = (user, coin), time // HOUR
        first_hour = hour - (samples[0] or 1 if samples else 1) + 1
        previous = last.get(key)
        if previous is not None and hour == previous[0]:
            what = f"{coin} of {user} has two payments in the hour of {to_iso(time)}"
            yield error_finding(*place, "hours", what)
        elif previous is not None and first_hour > previous[0] + 1 and szi == previous[1]:
            what = (
                f"{coin} of {user}: {first_hour - previous[0] - 1} hours before {to_iso(time)} "
                "have no row, although the position is the same"
            )
            yield notice_finding(*place, "hours", what)
        last[key] = (hour, szi)


def _check_sample_grid(
    handle: Any, series: Series, rows: pa.Table, place: Place
) -> Iterator[Finding]:
    """Check that there is a sample at each point of the operation's grid."""
    if series.operation.grid is None:
        return
    step = series.operation.grid.step
    samples = _iterate_rows(rows, key_columns(series.operation)[0], "_part")
    for (earlier, run), (later, next_run) in itertools.pairwise(samples):
        if later - earlier != step and not _is_between_runs(handle, series, run, next_run):
            what = f"from {to_iso(earlier)} to {to_iso(later)} is not one step of the grid"
            yield error_finding(*place, "grid", what)


_TABLE_CHECKS: Final[dict[str, Callable[..., Iterator[Finding]]]] = {
    "fills": _check_position_chains,
    "funding": _check_funding_hours,
    "slippage": _check_sample_grid,
}


def read_row_groups(
    tables: ArchiveTables, handle: Any, report: Callable[[str], None]
) -> Iterator[pa.Table]:
    """Yield all rows of a table from its files, and check the statistics of the files.

    Readers skip files by the statistics in the table's log, and row groups by those in the footer
    of a file. If they are wrong, a reader does not see rows that exist. This function reads
    without statistics.

    Parameters
    ----------
    tables : ArchiveTables
        The archive.
    handle : DeltaTable
        One of its tables.
    report : callable
        Called with a sentence for each fault of a file. The other files are still read.

    Yields
    ------
    pyarrow.Table
        Rows with the columns of the table.
    """
    actions = pa.table(handle.get_add_actions(flatten=True)).to_pylist()
    logged = {action["path"]: action for action in actions}
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
    """Yield the row groups of a file, and compare its statistics and those of the log with them."""
    file_spans: dict[str, ValueSpan] = {}
    row_count = 0
    with fragment.open() as opened, pq.ParquetFile(opened, pre_buffer=True) as file:
        for number in range(file.num_row_groups):
            group = file.read_row_group(number)
            spans = {name: _value_span(group[name]) for name in group.column_names}
            footer = file.metadata.row_group(number)
            for index in range(footer.num_columns):
                column = footer.column(index)
                name = column.path_in_schema
                if not _is_within(spans[name], _footer_statistics(column.statistics)):
                    report(_statistics_message(fragment.path, name, "its footer"))
            file_spans = {
                name: _union_span(file_spans.get(name, _NO_VALUES), span)
                for name, span in spans.items()
            }
            row_count += group.num_rows
            yield group
    if row_count != logged["num_records"]:
        report(f"{fragment.path}: {row_count} rows in the file, {logged['num_records']} in the log")
    for name, span in file_spans.items():
        statistics = tuple(logged.get(f"{key}.{name}") for key in ("min", "max", "null_count"))
        # If the log has bounds of the column, readers take a null bound for: no values.
        has_null_bound = span[0] is not None and f"min.{name}" in logged and None in statistics[:2]
        if has_null_bound or not _is_within(span, statistics):
            report(_statistics_message(fragment.path, name, "the log"))


def _statistics_message(path: str, column: str, source: str) -> str:
    return f"{path}: {column} has other values than {source} states, so readers skip rows"


def _value_span(column: pa.ChunkedArray) -> ValueSpan:
    ends = pc.min_max(column)
    return ends["min"].as_py(), ends["max"].as_py(), column.null_count


def _union_span(first: ValueSpan, second: ValueSpan) -> ValueSpan:
    lows, highs = ((first[index], second[index]) for index in (0, 1))
    low = min((value for value in lows if value is not None), default=None)
    high = max((value for value in highs if value is not None), default=None)
    return low, high, first[2] + second[2]


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
        report(f"{path}: has no column {', '.join(sorted(missing))}")
    columns = [
        rows[field.name].cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
