"""What is archived, read by an engine: all rows of a kind of record, more than memory holds."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds

from toolkit.archive.layout import RECORDS, SCHEMAS
from toolkit.archive.needs import need
from toolkit.archive.tables import Tables
from toolkit.errors import ArchiveError

__all__ = ["Engine", "between", "scan"]

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
