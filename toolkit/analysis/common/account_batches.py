"""Tables one after the other as one lazy frame, so that memory follows the largest of them."""

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq


@cache
def _temporary_folder() -> Path:
    folder = tempfile.mkdtemp(prefix="toolkit-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def scan_tables(tables: Iterator[pa.Table], engine: str) -> Any:
    """Return tables as one lazy frame of Polars or DuckDB; a temporary file has their rows."""
    path = str(_temporary_folder() / f"{uuid4()}.parquet")
    table = next(tables)
    with pq.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table)
        for table in tables:
            writer.write_table(table.cast(writer.schema))
    if engine == "polars":
        import polars as pl

        return pl.scan_parquet(path)
    import duckdb

    return duckdb.read_parquet(path)
