"""Histories account by account, so that memory follows the largest account and not the frame.

A helper that processes an account's rows one after the other needs no rows of another account. On a
lazy frame that is larger than `ROWS_AT_ONCE` it runs for a few accounts at a time, and its result
is a scan of a temporary file. On Spark it runs in the executors, one account after the other.
"""

import atexit
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import narwhals as nw
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from toolkit.analysis.common.frame_access import Frame
from toolkit.analysis.common.memory_frames import spark_frame
from toolkit.analysis.common.row_owners import lower_address

ROWS_AT_ONCE = 200_000
"""Rows of the first frame that are in memory at once; more if one account has more."""

_AFTER_ALL = "\U0010ffff"  # after each account

AccountHelper = Callable[..., Any]


def run_by_account(run: AccountHelper, frames: Mapping[str, Any]) -> Any:
    """Run a helper for a few accounts at a time, and return the joined result.

    - ``run``: the helper; its parameters are the names of `frames`
    - ``frames``: the frames by parameter; the first one states the accounts in a column ``user``.
      A frame without a column of accounts is passed to each run

    Returns: None if the caller should run the helper once on all rows: they fit into memory at
    once, the first frame is in memory already, or it has no column of accounts.
    """
    given = {name: native for name, native in frames.items() if native is not None}
    name, native = next(iter(given.items()))
    first: Any = nw.from_native(native)
    column = _account_column(name, first)
    if not isinstance(first, nw.LazyFrame) or column is None:
        return None
    if first.implementation.is_spark_like():
        return _run_on_spark(run, given)
    ranges = _account_ranges(first, column)
    if len(ranges) < 2:
        return None
    engine = "polars" if first.implementation.is_polars() else "duckdb"
    return scan_tables((run(**part) for _, part in _read_ranges(given, ranges)), engine)


def divide_by_account(
    frames: Mapping[str, Any],
) -> Iterator[tuple[Callable[[str], bool], dict[str, Any]]]:
    """Yield (is_inside, frames): a predicate for an address, and the rows of those accounts.

    - ``frames``: frames by name. The accounts of the first lazy frame that has a column of accounts
      are divided into groups of few rows.
    """
    given = {name: native for name, native in frames.items() if native is not None}
    ranges: list[tuple[str, str]] = []
    for name, native in given.items():
        frame: Any = nw.from_native(native)
        column = _account_column(name, frame)
        if isinstance(frame, nw.LazyFrame) and column is not None:
            ranges = _account_ranges(frame, column)
            break
    if len(ranges) < 2:
        yield partial(_is_inside, ("", _AFTER_ALL)), dict(frames)
        return
    for bounds, part in _read_ranges(given, ranges):
        yield partial(_is_inside, bounds), {name: part.get(name) for name in frames}


def _is_inside(bounds: tuple[str, str], account: str) -> bool:
    return bounds[0] <= account < bounds[1]


def _account_column(name: str, frame: Frame) -> str | None:
    """Return the column of the account; in a ledger `user` is the sender of a transfer."""
    column = "account" if name == "ledger" else "user"
    return column if column in frame.columns else None


def _account_ranges(frame: nw.LazyFrame[Any], column: str) -> list[tuple[str, str]]:
    """Split the addresses into half-open ranges (start, end) with at most `ROWS_AT_ONCE` rows each.

    A single account can have more rows. The ranges together cover all possible addresses.
    """
    accounts = frame.select(_account=_address(column)).with_columns(_rows=nw.lit(1))
    sums: Any = accounts.group_by("_account").agg(nw.col("_rows").sum()).collect("pyarrow")
    counts = sums.sort("_account")
    starts, size = [""], 0
    for account, count in zip(counts["_account"].to_list(), counts["_rows"].to_list(), strict=True):
        if size and size + count > ROWS_AT_ONCE:
            starts.append(account)
            size = 0
        size += count
    return list(pairwise([*starts, _AFTER_ALL]))


def _address(column: str) -> nw.Expr:
    """Return the account of each row in lower case, and "" if it is missing."""
    return lower_address(column).fill_null("")


def _read_ranges(
    given: Mapping[str, Any], ranges: list[tuple[str, str]]
) -> Iterator[tuple[tuple[str, str], dict[str, pa.Table]]]:
    """Yield each range of accounts, and the rows of its accounts."""
    opened = {name: nw.from_native(native) for name, native in given.items()}
    fields = {name: _range_field(name, frame) for name, frame in opened.items()}
    for start, end in ranges:
        parts = {}
        for name, frame in opened.items():
            field = fields[name]
            inside = frame if field is None else frame.filter((field >= start) & (field < end))
            parts[name] = nw.to_native(inside.lazy().collect("pyarrow"))
        yield (start, end), parts


def _range_field(name: str, frame: Frame) -> nw.Expr | None:
    """Return the account of each row in lower case.

    If all addresses are in lower case already, return the plain column, so that readers can skip
    files by its statistics.
    """
    column = _account_column(name, frame)
    if column is None:
        return None
    odd = frame.filter((nw.col(column) != lower_address(column)) | nw.col(column).is_null())
    found = odd.select(column).head(1).lazy().collect("pyarrow")
    return _address(column) if len(found) else nw.col(column)


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


def _run_on_spark(run: AccountHelper, given: Mapping[str, Any]) -> Any:
    """Return the result of a helper that runs in Spark's executors, sorted by account."""
    session = next(iter(given.values())).sparkSession
    schemas, fixed, marked = {}, {}, []
    for place, (name, native) in enumerate(given.items()):
        column = _account_column(name, nw.from_native(native))
        if column is None:
            fixed[name] = nw.to_native(nw.from_native(native).lazy().collect("pyarrow"))
            continue
        schemas[name] = native.limit(0).toArrow().schema
        account = f"coalesce(lower(`{column}`), '') AS _account"
        marked.append(native.selectExpr(account, f"{place} AS _place", f"struct(*) AS `{name}`"))
    empty = run(**fixed, **{name: schema.empty_table() for name, schema in schemas.items()})
    order = pa.field("_order", pa.int64())
    wanted = spark_frame(session, empty.append_column(order, pa.array([], pa.int64())))
    target = wanted.limit(0).toArrow().schema
    rows = marked[0]
    for other in marked[1:]:
        rows = rows.unionByName(other, allowMissingColumns=True)

    def run_account(rows: pa.Table) -> pa.Table:
        parts = dict(fixed)
        for place, (name, schema) in enumerate(schemas.items()):
            chunks = rows.filter(pc.equal(rows["_place"], place))[name].chunks
            batches = [pa.RecordBatch.from_struct_array(chunk) for chunk in chunks]
            parts[name] = pa.Table.from_batches(batches, None if batches else schema).cast(schema)
        if not len(parts[first]):
            return target.empty_table()
        made = run(**parts)
        return made.append_column(order, pa.array(range(len(made)), pa.int64())).cast(target)

    first = next(iter(schemas))
    made = rows.groupBy("_account").applyInArrow(run_account, wanted.schema)
    kept = [name for name in target.names if name != "_order"]
    keys = ["user", "_order"] if "user" in target.names else ["_order"]
    return made.orderBy(*keys).select(*kept)
