"""What is archived, as frames with the dtypes of fetching."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from toolkit.archive.coverage import joined, loss, present_ms, pulls_of, rows_noted
from toolkit.archive.errors import need
from toolkit.archive.refresh import latest_answer
from toolkit.archive.schemas import RECORDS, SCHEMAS, columns_known, table_of
from toolkit.archive.series import Series, is_history, key_columns, time_column
from toolkit.archive.storage import Tables, of_series
from toolkit.completeness.coverage import find_covered_range, make_coverage
from toolkit.completeness.remarks import coverage_remarks
from toolkit.contract.answer_types import Numbers
from toolkit.contract.answers import decode
from toolkit.contract.columns import table_columns
from toolkit.contract.rows import answer_rows as rows_of
from toolkit.errors import ArchiveError
from toolkit.fetch.notices import announce
from toolkit.frames import Collector, Extra
from toolkit.frames.cells import TEXT
from toolkit.times import to_iso, to_ms

__all__ = ["Engine", "between", "frames", "scan", "texts_of"]

_CHUNK: Final = 20_000
_NOT_PROVED: Final = {
    "complete": "no",
    "why": "the archive is not proved complete there: see covered",
}
_AS_THEY_ARE: Final = ("number", "time", "integer", "flag", "text")


def frames(
    tables: Tables,
    series: Series,
    start: Any,
    end: Any,
    numbers: Numbers,
    extra: Extra = "drop",
) -> tuple[pd.DataFrame, ...]:
    """Make the frames that fetching gives, from what is archived.

    Raises
    ------
    ArchiveError
        If nothing is archived of the question.
    """
    if numbers not in get_args(Numbers):
        forms = " or ".join(map(repr, get_args(Numbers)))
        raise ValueError(f"numbers must be {forms}, not {numbers!r}")
    if extra not in get_args(Extra):
        raise ValueError(f"extra must be 'drop' or 'keep', not {extra!r}")
    if not is_history(series.operation):
        return _of_answer(tables, series, numbers, extra)
    collector = Collector(series.operation, numbers, extra)
    pulls = pulls_of(tables, series)
    if not pulls:
        raise ArchiveError(f"{tables.location} has nothing of {series.name}: refresh it first")
    now = max(one["until"] for one in pulls)
    first, last = (None if one is None else to_ms(one, now_ms=now) for one in (start, end))
    plain = numbers == "float" and extra == "drop"
    columns = _typed(tables, series, first, last) if plain else None
    if columns is not None:
        collector.add((columns,))
    else:
        for texts in _texts(tables, series, first, last):
            content = b"[%b]" % b",".join(texts)
            decoded = decode(series.operation, 200, {}, content, numbers=numbers)
            collector.add(rows_of(series.operation, decoded, series.parameters))
    facts = {"start": first, "end": last}
    newest = max(pulls, key=lambda one: one["_fetched"])
    made = collector.frames(_provenance(tables, series, numbers, newest, facts, joined(pulls)))
    known = make_coverage(joined(pulls), _first_and_last(series, made[0]))
    present = present_ms(tables)
    proved = find_covered_range(known, series.operation, first, last, present)
    lost = _loss(tables, series, rows_noted(pulls))
    made[0].attrs["toolkit"] |= ({"complete": "yes"} if proved else _NOT_PROVED) | lost
    if proved and not lost:
        announce(series.operation, coverage_remarks(proved[1], last, present), made)
    return made


def _of_answer(
    tables: Tables, series: Series, numbers: Numbers, extra: Extra
) -> tuple[pd.DataFrame, ...]:
    """Make the frames of the latest answer of an operation that has no history."""
    collector = Collector(series.operation, numbers, extra)
    answer = latest_answer(tables, series)
    decoded = decode(
        series.operation,
        200,
        answer["_headers"],
        answer["_body"],
        numbers=numbers,
        parameters=series.parameters,
    )
    collector.add(_tables_of(series, decoded))
    whole = {"complete": "latest" if series.operation.latest else "yes"}
    return collector.frames(_provenance(tables, series, numbers, answer, {}, []) | whole)


def texts_of(
    tables: Tables, series: Series, start: int | None = None, end: int | None = None
) -> list[bytes]:
    """Give the rows of a history as they came, in the order of the operation.

    Parameters
    ----------
    tables : Tables
        The archive.
    series : Series
        Whose.
    start, end : int, optional
        Range in milliseconds, both inclusive.
    """
    return [text for texts in _texts(tables, series, start, end) for text in texts]


def _texts(
    tables: Tables, series: Series, start: int | None, end: int | None
) -> Iterator[list[bytes]]:
    """Give the rows of a history as they came, some at a time: a million texts take much room."""
    rows, placed = _in_order(tables, series, start, end, ["_json"])
    texts = rows["_json"].cast(pa.large_binary())
    for at in range(0, len(placed), _CHUNK):
        yield texts.take(placed[at : at + _CHUNK]).to_pylist()


def _typed(
    tables: Tables, series: Series, start: int | None, end: int | None
) -> dict[str, Any] | None:
    """Give the columns of a history as its table holds them, without reading any text.

    None where they do not say everything: cells with parts of their own stand in the text only,
    and so do fields that were not known when a row was written.
    """
    name, columns = table_of(series.operation), table_columns(series.operation.tables[0])
    if any(one.kind.family not in _AS_THEY_ARE for one in columns):
        return None
    rows, placed = _in_order(
        tables, series, start, end, ["_columns", *(one.name for one in columns)]
    )
    if not {"_columns", *(one.name for one in columns)} <= set(rows.column_names):
        return None
    if not set(pc.unique(rows["_columns"]).to_pylist()) <= {columns_known(name)}:
        return None
    sorted_so = placed.equals(pa.array(np.arange(len(placed)), placed.type))
    found = {}
    for one in columns:
        values = rows[one.name] if sorted_so else rows[one.name].take(placed)
        rows = rows.drop_columns([one.name])  # its memory is free from here on
        found[one.name] = _milliseconds(values) if one.kind.family == "time" else _whole(values)
    return found


def _whole(values: pa.ChunkedArray) -> pa.Array:
    """Give one array, with texts as frames hold them: nothing is left to be copied later."""
    if pa.types.is_string(values.type):
        values = values.cast(TEXT)
    return values.combine_chunks()


def _milliseconds(moments: pa.ChunkedArray) -> Any:
    whole = moments.cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
    return whole.fill_null(np.iinfo(np.int64).min).to_numpy()


def _in_order(
    tables: Tables, series: Series, start: int | None, end: int | None, wanted: list[str]
) -> tuple[pa.Table, pa.Array]:
    """Give columns of a history, and where its rows stand in the order of the operation."""
    handle, order = tables.handle(table_of(series.operation)), _order(series)
    if handle is None:
        schema = SCHEMAS[table_of(series.operation)]
        return schema.empty_table(), pa.array([], pa.uint64())
    where = of_series(series.operation.type, series.subject)
    where = between(where, time_column(series.operation), start, end)
    rows = tables.read(handle, list(dict.fromkeys([*order, *wanted])), where)
    placed = pc.sort_indices(rows, [(name, "ascending") for name in order])
    return rows.drop_columns([one for one in order if one not in wanted]), placed


def _order(series: Series) -> list[str]:
    return [*key_columns(series.operation), "_part", "_row"]


def _tables_of(series: Series, decoded: Any) -> tuple[Any, ...]:
    if series.operation.binary:
        return (decoded,)
    return rows_of(series.operation, decoded, series.parameters)


def _provenance(
    tables: Tables,
    series: Series,
    numbers: Numbers,
    origin: Mapping[str, Any],
    facts: Mapping[str, Any],
    ranges: Sequence[tuple[int, int]],
) -> dict[str, Any]:
    return {
        "operation": series.operation.type,
        "parameters": dict(series.parameters) | {k: v for k, v in facts.items() if v is not None},
        "numbers": numbers,
        "source": origin["_source"],
        "simulated": origin["_simulated"],
        "asked_at": to_iso(origin["_fetched"]),
        "archive": tables.location,
        "covered": [(to_iso(one), to_iso(two)) for one, two in ranges],
    }


def _first_and_last(series: Series, frame: pd.DataFrame) -> list[int]:
    """Give the times between which a frame has rows, also those beyond what is proved."""
    times = frame[time_column(series.operation)]
    return [to_ms(times.min()), to_ms(times.max())] if len(frame) else []


def _loss(tables: Tables, series: Series, kept: int) -> dict[str, str]:
    """Say so where a history has fewer rows than were kept: then nothing of it is proved."""
    handle = tables.handle(table_of(series.operation))
    where = of_series(series.operation.type, series.subject)
    what = loss(0 if handle is None else tables.count(handle, where), kept)
    return {"complete": "no", "why": f"{what}; toolkit archive verify says where"} if what else {}


Engine = Literal["duckdb", "polars", "pandas"]
"""Who reads a scan."""


def between(where: Any, column: str, start: int | None, end: int | None) -> Any:
    """Narrow a condition to a range of time, in milliseconds, both ends inclusive."""
    for bound, is_start in ((start, True), (end, False)):
        if bound is None:
            continue
        moment = pa.scalar(bound * 1000, pa.timestamp("us", "UTC"))
        one = ds.field(column) >= moment if is_start else ds.field(column) <= moment
        where = one if where is None else where & one
    return where


def scan(
    tables: Tables,
    name: str,
    condition: Mapping[str, str],
    start: int | None,
    end: int | None,
    columns: Sequence[str] | None,
    engine: Engine,
) -> Any:
    """Read a table on an engine; see `Archive.scan`."""
    if engine not in _ENGINES:
        raise ValueError(f"engine is {', '.join(_ENGINES)}, not {engine!r}")
    handle = tables.handle(name)
    dataset = (
        ds.dataset(pa.table({one.name: pa.array([], one.type) for one in SCHEMAS[name]}))
        if handle is None
        else tables.dataset(handle)
    )
    where = None
    for column, value in condition.items():
        one = ds.field(column) == value
        where = one if where is None else where & one
    if name in RECORDS:
        time = next(one.name for one in SCHEMAS[name] if pa.types.is_timestamp(one.type))
        where = between(where, time, start, end)
    elif start is not None or end is not None:
        raise ArchiveError(f"{name} has no range of time: leave out start and end")
    shown = list(columns or [one for one in dataset.schema.names if one != "_json"])
    if wrong := set(shown) - set(dataset.schema.names):
        raise ArchiveError(
            f"{name} has no column {', '.join(sorted(wrong))}: it has "
            f"{', '.join(dataset.schema.names)}"
        )
    with tables.speaking(tables.uri(name)):
        return _ENGINES[engine](dataset, shown, where)


def _duckdb(dataset: Any, columns: list[str], where: Any) -> Any:
    kept = dataset if where is None else dataset.filter(where)
    return need("duckdb").from_arrow(kept).select(*(f'"{one}"' for one in columns))


def _polars(dataset: Any, columns: list[str], where: Any) -> Any:
    kept = dataset if where is None else dataset.filter(where)
    return need("polars").scan_pyarrow_dataset(kept).select(columns)


def _pandas(dataset: Any, columns: list[str], where: Any) -> pd.DataFrame:
    frame: pd.DataFrame = dataset.to_table(columns=columns, filter=where).to_pandas()
    return frame


_ENGINES: Final[dict[str, Callable[[Any, list[str], Any], Any]]] = {
    "duckdb": _duckdb,
    "polars": _polars,
    "pandas": _pandas,
}
