"""Arrow tables as frames of an engine, for scans of an archive; sorting by DuckDB."""

import functools
import itertools
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.archive.errors import explain_missing_library

_ROWS_AT_ONCE: Final = 20_480  # ten vectors of DuckDB


@contextmanager
def open_duckdb(rows: int = 0) -> Iterator[Any]:
    """Return a database in memory that sorts so many rows in temporary files if need be."""
    with explain_missing_library():
        import duckdb
    with tempfile.TemporaryDirectory(prefix="toolkit-archive-") as folder:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "temp_directory": folder,
            "threads": 1,  # each further one needs memory of its own
            "preserve_insertion_order": False,
        }
        with duckdb.connect(config=settings) as database:
            database.execute("SET TimeZone = 'UTC'")
            limit_memory(database, rows)
            yield database


def limit_memory(database: Any, rows: int) -> None:
    """Let a database use the memory that sorting so many rows in temporary files needs."""
    database.execute(f"SET memory_limit = '{192 + 30 * rows // 1_000_000}MB'")


def read_batches(relation: Any) -> pa.RecordBatchReader:
    """Return the rows of a relation in batches."""
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch
    return read(_ROWS_AT_ONCE)


@contextmanager
def use_system_memory() -> Iterator[None]:
    """Let Arrow take memory from the C library, which returns freed memory to the system sooner."""
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)


def whole_groups(
    batches: Iterable[pa.RecordBatch | pa.Table], columns: Sequence[str]
) -> Iterator[pa.Table]:
    """Yield sorted rows in tables; rows with the same values in columns are in one of them."""
    rows = pa.table({})
    for batch in batches:
        if rows.num_rows:
            is_last = (pc.equal(rows[name], rows[name][-1]) for name in columns)
            end = rows.num_rows - pc.sum(functools.reduce(pc.and_, is_last)).as_py()
            if end:
                yield rows.slice(0, end)
            rows = rows.slice(end)
        later = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
        rows = pa.concat_tables([rows, later]) if rows.num_rows else later
    if rows.num_rows:
        yield rows


def equal_slices(rows: pa.Table, columns: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield first row and end of the neighbours in a table that have the same values in columns."""
    is_new = np.zeros(max(rows.num_rows - 1, 0), dtype=np.bool_)
    for name in columns:
        codes = rows[name].combine_chunks().dictionary_encode().indices.to_numpy()
        is_new |= np.diff(codes) != 0
    bounds = [0, *(np.flatnonzero(is_new) + 1).tolist(), rows.num_rows]
    return itertools.pairwise(bounds)


def spark_frame(session: Any, table: pa.Table) -> Any:
    """Return a table as a frame of a Spark session."""
    if len(table):
        return session.createDataFrame(table)
    # Spark Connect refuses a table without rows.
    blank = [pa.nulls(1, field.type) for field in table.schema]
    return session.createDataFrame(pa.table(blank, names=table.schema.names)).limit(0)
