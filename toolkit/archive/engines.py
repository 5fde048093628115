"""Arrow tables as frames of an engine, for scans of an archive."""

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq


@cache
def _temporary_folder() -> Path:
    folder = tempfile.mkdtemp(prefix="toolkit-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def scan_tables(tables: Iterator[pa.Table], engine: str) -> Any:
    """Return tables as one lazy frame of Polars or DuckDB; a temporary file has their rows.

    So memory follows the largest table.
    """
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


def spark_frame(session: Any, table: pa.Table) -> Any:
    """Return a table as a frame of a Spark session."""
    if len(table):
        return session.createDataFrame(table)
    # Spark Connect refuses a table without rows.
    blank = [pa.nulls(1, field.type) for field in table.schema]
    return session.createDataFrame(pa.table(blank, names=table.schema.names)).limit(0)


def decimal_dtype(dtype: pa.DataType) -> pd.ArrowDtype | None:
    """Return the pandas dtype of Arrow decimals; None for all other types."""
    return pd.ArrowDtype(dtype) if pa.types.is_decimal(dtype) else None
