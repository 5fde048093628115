"""Read archived rows: as the frames that fetching returns, or as scans on an engine."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from toolkit.archive.errors import explain_missing_library
from toolkit.archive.pulls import (
    count_logged_rows,
    log_ranges,
    missing_rows_message,
    present_ms,
    read_series_log,
)
from toolkit.archive.schemas import ANSWERS, RECORDS, SCHEMAS, Series, column_set_id
from toolkit.archive.storage import ArchiveTables
from toolkit.completeness.covered_ranges import TimeRange, find_covered_range, make_coverage
from toolkit.completeness.remarks import coverage_remarks
from toolkit.contract.answers import decode
from toolkit.contract.columns import table_columns
from toolkit.contract.kinds import Numbers
from toolkit.contract.rows import answer_rows
from toolkit.errors import ArchiveError
from toolkit.fetch.pull import announce
from toolkit.frames import Collector, Extra
from toolkit.frames.cells import TEXT
from toolkit.times import to_iso, to_ms

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation
    from polars import LazyFrame

__all__ = [
    "Engine",
    "RowSpan",
    "history_frames",
    "read_texts",
    "row_spans",
    "scan_table",
    "state_frames",
]

Engine = Literal["duckdb", "polars", "pandas"]
"""The library that reads a scan."""
RowSpan = Mapping[str, Any]
"""Number of ``rows``, and the time of the ``first`` and ``last`` in Unix milliseconds."""

_TEXTS_AT_ONCE: Final = 20_000
_NOT_PROVED: Final = {
    "complete": "no",
    "why": "the archive is not proved complete there: see covered",
}
_STORED_FAMILIES: Final = ("number", "time", "integer", "flag", "text")


def state_frames(
    tables: ArchiveTables, series: Series, numbers: Numbers, extra: Extra
) -> tuple[pd.DataFrame, ...]:
    """Return the frames of the latest archived answer of an operation that is not a history.

    Raises
    ------
    ArchiveError
        If there is no archived answer.
    """
    operation = series.operation
    answer = _latest_answer(tables, series)
    decoded = decode(
        operation,
        200,
        json.loads(answer["_headers"]),
        answer["_body"],
        numbers=numbers,
        parameters=series.parameters,
    )
    collector = Collector(operation, numbers, extra)
    collector.add(
        (decoded,) if operation.binary else answer_rows(operation, decoded, series.parameters)
    )
    provenance = _make_provenance(tables, series, numbers, answer, {}, [])
    return collector.frames(provenance | {"complete": "latest" if operation.latest else "yes"})


def _latest_answer(tables: ArchiveTables, series: Series) -> dict[str, Any]:
    handle = tables.open_table(ANSWERS)
    answers: list[dict[str, Any]] = []
    if handle is not None:
        rows = tables.read_rows(handle, condition=series.condition)
        answers = rows.sort_by("_fetched").to_pylist()
    if not answers:
        raise ArchiveError(f"{tables.location} has no answer to {series.name}: refresh it first")
    return answers[-1]


def history_frames(
    tables: ArchiveTables,
    series: Series,
    start: Any,
    end: Any,
    numbers: Numbers,
    extra: Extra = "drop",
) -> tuple[pd.DataFrame, ...]:
    """Return the frames of an archived history, and state whether the range is complete.

    Raises
    ------
    ArchiveError
        If nothing of the history is archived.
    """
    log = read_series_log(tables, series)
    if not log:
        raise ArchiveError(f"{tables.location} has no rows of {series.name}: refresh it first")
    now = max(entry["until"] for entry in log)
    first, last = (None if time is None else to_ms(time, now_ms=now) for time in (start, end))
    collector = Collector(series.operation, numbers, extra)
    is_plain = numbers == "float" and extra == "drop"
    columns = _stored_columns(tables, series, first, last) if is_plain else None
    if columns is not None:
        collector.add((columns,))
    else:
        for texts in _text_chunks(tables, series, first, last):
            content = b"[%b]" % b",".join(texts)
            decoded = decode(series.operation, 200, {}, content, numbers=numbers)
            collector.add(answer_rows(series.operation, decoded, series.parameters))
    ranges = log_ranges(log)
    newest = max(log, key=lambda entry: entry["_fetched"])
    times = {"start": first, "end": last}
    frames = collector.frames(_make_provenance(tables, series, numbers, newest, times, ranges))
    coverage = make_coverage(ranges, _frame_times(series, frames[0]))
    present = present_ms(tables)
    proved = find_covered_range(coverage, series.operation, first, last, present)
    missing = _missing_rows_facts(tables, series, count_logged_rows(log))
    frames[0].attrs["toolkit"] |= ({"complete": "yes"} if proved else _NOT_PROVED) | missing
    if proved and not missing:
        announce(series.operation, coverage_remarks(proved[1], last, present), frames)
    return frames


def _frame_times(series: Series, frame: pd.DataFrame) -> list[int]:
    """Return the first and the last time of a frame; empty for a frame without rows."""
    times = frame[series.keys[0]]
    return [to_ms(times.min()), to_ms(times.max())] if len(frame) else []


def _missing_rows_facts(tables: ArchiveTables, series: Series, expected: int) -> dict[str, str]:
    """Return the provenance of a history that lost rows; empty if all rows are there."""
    handle = tables.open_table(series.table)
    found = 0 if handle is None else tables.count_rows(handle, series.condition)
    message = missing_rows_message(found, expected)
    if not message:
        return {}
    return {"complete": "no", "why": f"{message}; toolkit archive verify shows where"}


def _make_provenance(
    tables: ArchiveTables,
    series: Series,
    numbers: Numbers,
    origin: Mapping[str, Any],
    times: Mapping[str, Any],
    ranges: Sequence[TimeRange],
) -> dict[str, Any]:
    given_times = {name: time for name, time in times.items() if time is not None}
    return {
        "operation": series.operation.type,
        "parameters": {**series.parameters, **given_times},
        "numbers": numbers,
        "source": origin["_source"],
        "simulated": origin["_simulated"],
        "asked_at": to_iso(origin["_fetched"]),
        "archive": tables.location,
        "covered": [(to_iso(first), to_iso(last)) for first, last in ranges],
    }


def read_texts(
    tables: ArchiveTables, series: Series, start: int | None = None, end: int | None = None
) -> list[bytes]:
    """Return the JSON texts of a history's rows in the order of the operation.

    Parameters
    ----------
    tables : ArchiveTables
        The archive.
    series : Series
        The history.
    start, end : int, optional
        Range in Unix milliseconds, both ends inclusive.
    """
    return [text for texts in _text_chunks(tables, series, start, end) for text in texts]


def _text_chunks(
    tables: ArchiveTables, series: Series, start: int | None, end: int | None
) -> Iterator[list[bytes]]:
    """Yield the texts in chunks, because a million texts need much memory."""
    rows, order = _ordered_rows(tables, series, start, end, ["_json"])
    texts = rows["_json"].cast(pa.large_binary())
    for first in range(0, len(order), _TEXTS_AT_ONCE):
        yield texts.take(order[first : first + _TEXTS_AT_ONCE]).to_pylist()


def _stored_columns(
    tables: ArchiveTables, series: Series, start: int | None, end: int | None
) -> dict[str, Any] | None:
    """Return the columns of a history from the table, without decoding any text.

    Return None if the table does not have every value: nested values are in the text only, and so
    are fields that the writer of a row did not know.
    """
    columns = table_columns(series.operation.tables[0])
    if any(column.kind.family not in _STORED_FAMILIES for column in columns):
        return None
    names = ["_columns", *(column.name for column in columns)]
    rows, order = _ordered_rows(tables, series, start, end, names)
    if not {*names} <= {*rows.column_names}:
        return None
    if not {*pc.unique(rows["_columns"]).to_pylist()} <= {column_set_id(series.table)}:
        return None
    is_ordered = order.equals(pa.array(np.arange(len(order)), order.type))
    values = {}
    for column in columns:
        array = rows[column.name] if is_ordered else rows[column.name].take(order)
        rows = rows.drop_columns([column.name])  # frees its memory
        is_time = column.kind.family == "time"
        values[column.name] = _milliseconds(array) if is_time else _single_array(array)
    return values


def _milliseconds(moments: pa.ChunkedArray) -> Any:
    whole = moments.cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
    return whole.fill_null(np.iinfo(np.int64).min).to_numpy()


def _single_array(values: pa.ChunkedArray) -> pa.Array:
    """Return one array, with text in the type of frames, so that nothing is copied later."""
    if pa.types.is_string(values.type):
        values = values.cast(TEXT)
    return values.combine_chunks()


def _ordered_rows(
    tables: ArchiveTables, series: Series, start: int | None, end: int | None, columns: list[str]
) -> tuple[pa.Table, pa.Array]:
    """Return columns of a history, and the positions of its rows in the operation's order."""
    handle = tables.open_table(series.table)
    if handle is None:
        return SCHEMAS[series.table].empty_table(), pa.array([], pa.uint64())
    sort_keys = [*series.keys, "_part", "_row"]
    condition = _add_time_filter(series.condition, series.keys[0], start, end)
    rows = tables.read_rows(handle, list(dict.fromkeys([*sort_keys, *columns])), condition)
    order = pc.sort_indices(rows, [(name, "ascending") for name in sort_keys])
    return rows.drop_columns([name for name in sort_keys if name not in columns]), order


def _add_time_filter(condition: Any, column: str, start: int | None, end: int | None) -> Any:
    """Narrow a condition to a time range in Unix milliseconds, both ends inclusive."""
    for bound, is_start in ((start, True), (end, False)):
        if bound is None:
            continue
        moment = pa.scalar(bound * 1000, pa.timestamp("us", "UTC"))
        limit = ds.field(column) >= moment if is_start else ds.field(column) <= moment
        condition = limit if condition is None else condition & limit
    return condition


def row_spans(tables: ArchiveTables, name: str) -> dict[tuple[str, str], RowSpan]:
    """Return the span of each series of a table: operation and subject -> span."""
    handle = tables.open_table(name)
    if handle is None:
        return {}
    time = "_fetched" if name == ANSWERS else _time_column(name)
    rows = tables.read_rows(handle, ["_operation", "_subject", time])
    if name != ANSWERS:
        moments = rows[time].cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
        rows = rows.set_column(rows.column_names.index(time), time, moments)
    groups = rows.group_by(["_operation", "_subject"]).aggregate(
        [(time, "count"), (time, "min"), (time, "max")]
    )
    return {
        (group["_operation"], group["_subject"]): {
            "rows": group[f"{time}_count"],
            "first": group[f"{time}_min"],
            "last": group[f"{time}_max"],
        }
        for group in groups.to_pylist()
    }


def _time_column(name: str) -> str:
    """Return the column of a record's table by which its histories are ordered."""
    time: str = next(c.name for c in SCHEMAS[name] if pa.types.is_timestamp(c.type))
    return time


def scan_table(
    tables: ArchiveTables,
    name: str,
    values: Mapping[str, str],
    start: int | None,
    end: int | None,
    columns: Sequence[str] | None,
    engine: Engine,
) -> "DuckDBPyRelation | LazyFrame | pd.DataFrame":
    """Return the rows of a table on an engine; see `Archive.scan`.

    Parameters
    ----------
    tables : ArchiveTables
        The archive.
    name : str
        The table.
    values : mapping of str to str
        Column -> the value that it must have.
    start, end : int or None
        Range in Unix milliseconds, both ends inclusive.
    columns : sequence of str or None
        The columns; by default all but ``_json``.
    engine : {"duckdb", "polars", "pandas"}
        The library that reads.
    """
    if engine not in _ENGINES:
        raise ValueError(f"engine is {', '.join(_ENGINES)}, not {engine!r}")
    handle = tables.open_table(name)
    dataset = (
        ds.dataset(SCHEMAS[name].empty_table()) if handle is None else tables.open_dataset(handle)
    )
    condition = None
    for column, value in values.items():
        equal = ds.field(column) == value
        condition = equal if condition is None else condition & equal
    if name in RECORDS:
        condition = _add_time_filter(condition, _time_column(name), start, end)
    elif start is not None or end is not None:
        raise ArchiveError(f"{name} has no range of time: leave out start and end")
    shown = list(columns or [column for column in dataset.schema.names if column != "_json"])
    if unknown := set(shown) - set(dataset.schema.names):
        raise ArchiveError(
            f"{name} has no column {', '.join(sorted(unknown))}: it has "
            f"{', '.join(dataset.schema.names)}"
        )
    with tables.translate_errors(tables.table_uri(name)):
        rows: DuckDBPyRelation | LazyFrame | pd.DataFrame
        rows = _ENGINES[engine](dataset, shown, condition)
        return rows


def _scan_duckdb(dataset: Any, columns: list[str], condition: Any) -> Any:
    with explain_missing_library():
        import duckdb
    filtered = dataset if condition is None else dataset.filter(condition)
    return duckdb.from_arrow(filtered).select(*(f'"{name}"' for name in columns))


def _scan_polars(dataset: Any, columns: list[str], condition: Any) -> Any:
    with explain_missing_library():
        import polars
    filtered = dataset if condition is None else dataset.filter(condition)
    return polars.scan_pyarrow_dataset(filtered).select(columns)


def _scan_pandas(dataset: Any, columns: list[str], condition: Any) -> pd.DataFrame:
    frame: pd.DataFrame = dataset.to_table(columns=columns, filter=condition).to_pandas()
    return frame


_ENGINES: Final[dict[str, Callable[[Any, list[str], Any], Any]]] = {
    "duckdb": _scan_duckdb,
    "polars": _scan_polars,
    "pandas": _scan_pandas,
}
