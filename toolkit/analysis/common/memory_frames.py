"""Frames in memory, for helpers that process rows one after the other.

A query engine cannot compute a position or an entry price, because each row depends on all rows
before it. Such a helper reads the columns that it needs, computes with integers or pandas, and
returns a table in the engine of its input.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import narwhals as nw
import pandas as pd
import pyarrow as pa
from narwhals.typing import IntoFrameT

from toolkit.analysis.common import fixed_point, frame_access
from toolkit.analysis.common.provenance import result_provenance
from toolkit.arrays import Floats
from toolkit.errors import MissingColumns

TIME = pa.timestamp("ms", "UTC")


def collect_frame(native: Any, what: str) -> nw.DataFrame[Any]:
    """Return a frame in narwhals and in memory: a lazy frame is collected."""
    frame: Any = nw.from_native(frame_access.normalise_frame(native))
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect("polars" if frame.implementation.is_polars() else "pyarrow")
    if not frame.columns:
        raise MissingColumns(f"{what}: the frame has no columns. Pass a frame of a fetch function")
    made: nw.DataFrame[Any] = frame
    return made


def to_pandas(native: Any, names: Iterable[str] | None = None) -> pd.DataFrame:
    """Return a frame as pandas, with exact numbers as Arrow decimals.

    With `names` the result has only the columns of `names` that exist.
    """
    if isinstance(native, pd.DataFrame):
        kept = native.columns if names is None else [n for n in names if n in native.columns]
        plain: pd.DataFrame = frame_access.normalise_frame(native[list(kept)])
        return plain
    frame = collect_frame(native, "frame")
    kept = frame.columns if names is None else [n for n in names if n in frame.columns]
    table = frame.select(*kept).to_arrow()
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):  # units and zones differ between engines
            table = table.set_column(place, field.name, table[place].cast(TIME))
    made: pd.DataFrame = table.to_pandas(types_mapper=frame_access.decimal_dtype)
    # A column of None has no type any more, and Arrow cannot join it.
    flags = [field.name for field in table.schema if pa.types.is_boolean(field.type)]
    return made.astype(dict.fromkeys((n for n in flags if table[n].null_count), "boolean"))


def result_from_table(
    table: pa.Table,
    inputs: Mapping[str, IntoFrameT | None],
    *,
    nullable: Sequence[str] = (),
    **facts: Any,
) -> IntoFrameT:
    """Return a table in the engine of the first input; pandas also gets its provenance.

    - ``table``: the result
    - ``inputs``: the frames by the name of the parameter
    - ``nullable``: integer columns with missing values: Int64 in pandas
    - ``**facts``: entries of the provenance, such as ``helper`` and ``by``
    """
    result: Any = _native_result(table, inputs, nullable, facts)
    typed: IntoFrameT = result
    return typed


def _native_result(
    table: pa.Table, inputs: Mapping[str, Any], nullable: Sequence[str], facts: Mapping[str, Any]
) -> Any:
    like: Any = nw.from_native(next(iter(inputs.values())))
    engine = like.implementation
    if engine.is_pandas():
        made: pd.DataFrame = table.to_pandas(types_mapper=frame_access.decimal_dtype)
        made = made.astype(dict.fromkeys(nullable, "Int64"))
        made.attrs["toolkit"] = {**result_provenance(inputs), **facts}
        return made
    if engine.is_polars():
        import polars as pl

        frame: Any = pl.from_arrow(table)
        return frame.lazy() if isinstance(like, nw.LazyFrame) else frame
    if engine.is_duckdb():
        import duckdb

        return duckdb.from_arrow(table)
    if engine.is_spark_like():
        return spark_frame(nw.to_native(like).sparkSession, table)
    return table


def spark_frame(session: Any, table: pa.Table) -> Any:
    """Return a table as a frame of a Spark session."""
    if len(table):
        return session.createDataFrame(table)
    # Spark Connect refuses a table without rows.
    blank = [pa.nulls(1, field.type) for field in table.schema]
    return session.createDataFrame(pa.table(blank, names=table.schema.names)).limit(0)


def number_column(
    values: Sequence[int | None], decimals: int, kind: frame_access.NumberKind
) -> pa.Array | Floats:
    """Return integers in units of 10**-decimals as a column; None is missing."""
    if kind == "exact":
        return fixed_point.to_decimal(values, decimals)
    return pa.array(fixed_point.to_float(values, decimals), type=pa.float64())


def arrow_type(kind: frame_access.NumberKind) -> pa.DataType:
    """Return the Arrow type of a kind of numbers."""
    return pa.decimal128(36, 18) if kind == "exact" else pa.float64()


def series_ms(time: nw.Series[Any]) -> list[int]:
    """Return times as integer milliseconds."""
    ms = time if time.dtype.is_integer() else time.dt.timestamp("ms")
    made: list[int] = ms.cast(nw.Int64()).to_list()
    return made


def utc_times(ms: Sequence[int | None]) -> pa.Array:
    """Return milliseconds as a column of UTC times; None is missing."""
    return pa.array(ms, type=pa.int64()).cast(TIME)


def text_column(values: Sequence[str | None]) -> pa.Array:
    """Return texts as a column of the type text, also if it is empty."""
    return pa.array(values, type=pa.large_string())
