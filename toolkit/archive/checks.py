"""What `verify` says."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from toolkit.archive.errors import Unreached, told
from toolkit.archive.series import Series, complete_name, key_columns, run_name
from toolkit.archive.storage import Tables
from toolkit.errors import ArchiveError
from toolkit.times import HOUR, MINUTE, to_iso

__all__ = ["Finding", "check", "error_in", "notice_in", "row_groups", "span"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that `verify` found.

    Attributes
    ----------
    kind : str
        ``damage``, ``lost``, ``run``, ``typed``, ``duplicate``, ``order``, ``chain``, ``grid``,
        ``hours``, ``gap`` or ``digest``.
    severity : {"error", "notice"}
        A notice may have an innocent cause.
    table, series : str
        Where.
    what : str
        What is wrong.
    """

    kind: str
    severity: Literal["error", "notice"]
    table: str
    series: str
    what: str


def error_in(table: str, series: str, kind: str, what: str) -> Finding:
    """Find what must not be."""
    return Finding(kind, "error", table, series, what)


def notice_in(table: str, series: str, kind: str, what: str) -> Finding:
    """Find what may have an innocent cause."""
    return Finding(kind, "notice", table, series, what)


_CHUNK: Final = 20_000
_NAMED: Final = 3  # moments, of many
Where = tuple[str, str]


def check(handle: Any, name: str, series: Series, rows: pa.Table) -> Iterator[Finding]:
    """Check what is kept of a history's rows.

    Parameters
    ----------
    handle : DeltaTable
        The table, whose transactions say how many rows each run has.
    name : str
        The table's name.
    series : Series
        The history.
    rows : pyarrow.Table
        As `Held.series` gives them; times are milliseconds.
    """
    where, keys = (name, series.name), key_columns(series.operation)
    yield from _runs(handle, series, rows, where)
    in_order = _sorted(rows, [*keys, "_part", "_row"])
    yield from _duplicates(in_order, keys, where)
    if one := _CHECKS.get(series.operation.type):
        yield from one(handle, series, in_order, where)


def span(series: Series, rows: pa.Table) -> dict[str, Any]:
    """Give how many rows there are, and the times of the first and the last."""
    ends = pc.min_max(rows[key_columns(series.operation)[0]])
    return {"rows": rows.num_rows, "first": ends["min"].as_py(), "last": ends["max"].as_py()}


def _sorted(rows: pa.Table, columns: list[str]) -> pa.Table:
    return rows.take(pc.sort_indices(rows, [(one, "ascending") for one in columns]))


def _each(rows: pa.Table, *columns: str) -> Iterator[tuple[Any, ...]]:
    """Give rows as tuples, without making all of them at once."""
    for batch in rows.select(columns).to_batches(_CHUNK):
        yield from zip(*map(_values, batch.columns), strict=True)


def _values(column: pa.Array) -> list[Any]:
    values: list[Any] = (
        column.to_pylist()
        if not pa.types.is_dictionary(column.type)
        else (column.dictionary_decode().to_pylist())
    )
    return values


def _runs(handle: Any, series: Series, rows: pa.Table, where: Where) -> Iterator[Finding]:
    """Hold runs to have each row once, as many as the cursor says, in the order of time."""
    columns = ("_part", "_row", key_columns(series.operation)[0])
    part, row, time = (rows[one].to_numpy() for one in columns)
    placed = np.lexsort((row, part))
    starts, firsts = np.unique(part[placed], return_index=True)
    for start, places in zip(starts.tolist(), np.split(placed, firsts[1:]), strict=True):
        count = len(places)
        said = handle.transaction_version(run_name(series, start))
        if not np.array_equal(row[places], np.arange(count)):
            what = f"the run from {to_iso(start)} lacks or repeats rows"
            yield error_in(*where, "run", what)
        elif said != count:
            what = f"the run from {to_iso(start)} has {count} rows; its cursor says {said}"
            yield error_in(*where, "run", what)
        if np.any(np.diff(time[places]) < 0):
            yield error_in(*where, "order", f"the run from {to_iso(start)} goes back in time")


def _duplicates(rows: pa.Table, keys: list[str], where: Where) -> Iterator[Finding]:
    """Find the rows that equal an earlier one."""
    hashes = rows["_hash"].to_numpy()
    placed = np.argsort(hashes, kind="stable")
    in_turn = hashes[placed]
    again = rows.take(np.sort(placed[1:][in_turn[1:] == in_turn[:-1]]))
    # A fill without a trade id, a ledger row, an order event may truly come twice.
    named = np.full(again.num_rows, where[0] in ("funding", "slippage"))
    if "tid" in again.column_names:
        named = pc.fill_null(again["tid"], 0).to_numpy() != 0
    for found, those in ((error_in, named), (notice_in, ~named)):
        times = again[keys[0]].to_numpy()[those]
        if len(times):
            first = ", ".join(map(to_iso, np.unique(times)[:_NAMED].tolist()))
            what = f"{len(times)} rows repeat an earlier one, first at {first}"
            yield found(*where, "duplicate", what)


def _chains(handle: Any, series: Series, rows: pa.Table, where: Where) -> Iterator[Finding]:
    """Hold every perp fill to start from the position that the one before it left."""
    positions: dict[str, tuple[Decimal, int]] = {}
    columns = ("coin", "side", "time", "_part", "_start_position", "_sz")
    for coin, side, time, part, started, size in _each(rows, *columns):
        if coin[:1] in "@#" or "/" in coin:
            continue
        if started is None:  # a text that cannot be read
            positions.clear()
            continue
        start = Decimal(started)
        before, run = positions.get(coin, (start, part))
        if before != start:
            what = (
                f"fills are missing before {coin} at {to_iso(time)}: it starts from {start}, "
                f"not {before}"
            )
            if _is_awaited(handle, series, run, part):
                yield notice_in(*where, "chain", f"{what}: refresh again")
            else:
                yield error_in(*where, "chain", what)
        positions[coin] = (start + Decimal(size) * (1 if side == "B" else -1), part)


def _is_awaited(handle: Any, series: Series, run: int, part: int) -> bool:
    """Whether a run has not come yet to where a later one begins: known, and no loss."""
    return part != run and handle.transaction_version(complete_name(series, run)) is None


def _hours(handle: Any, series: Series, rows: pa.Table, where: Where) -> Iterator[Finding]:
    """Check that a position that did not change pays every hour, while its approval holds.

    A row that sums up n payments covers n hours (docs/live_service.md, section 5).
    """
    last: dict[tuple[str, str], tuple[int, float]] = {}
    names = ["user", "coin", "time", "szi"]
    if "n_samples" in rows.column_names:
        names.append("n_samples")
    for user, coin, time, szi, *samples in _each(rows, *names):
        key, hour = (user, coin), time // HOUR
        first = hour - (samples[0] or 1 if samples else 1) + 1
        before = last.get(key)
        if before is not None and hour == before[0]:
            what = f"{coin} of {user} paid twice in the hour of {to_iso(time)}"
            yield error_in(*where, "hours", what)
        elif before is not None and first > before[0] + 1 and szi == before[1]:
            what = (
                f"{coin} of {user}: {first - before[0] - 1} hours before {to_iso(time)} have no "
                "row, though the position is the same"
            )
            yield notice_in(*where, "hours", what)
        last[key] = (hour, szi)


def _grid(handle: Any, series: Series, rows: pa.Table, where: Where) -> Iterator[Finding]:
    """Hold samples to stand on every quarter hour."""
    samples = _each(rows, key_columns(series.operation)[0], "_part")
    for (one, run), (two, part) in itertools.pairwise(samples):
        if two - one != 15 * MINUTE and not _is_awaited(handle, series, run, part):
            what = f"from {to_iso(one)} to {to_iso(two)} is not one quarter hour"
            yield error_in(*where, "grid", what)


# Rows of a builder's users begin and end with approvals, and have no chains.
_CHECKS: Final[dict[str, Callable[..., Iterator[Finding]]]] = {
    "userFillsByTime": _chains,
    "builderApprovedFundingByTime": _hours,
    "slippageHistory": _grid,
}


Span = tuple[Any, Any, int]
"""Least and greatest value of a column, and how many are missing."""

_NONE: Final = (None, None, 0)


def row_groups(tables: Tables, handle: Any, report: Callable[[str], None]) -> Iterator[pa.Table]:
    """Read every file of a table, some rows at a time.

    Parameters
    ----------
    tables : Tables
        The archive.
    handle : DeltaTable
        One of its tables.
    report : callable
        Is told what is wrong with a file; the others are read on.

    Yields
    ------
    pyarrow.Table
        Rows, with the columns of the table.
    """
    logged = {one["path"]: one for one in _added(handle)}
    schema = tables.dataset(handle).schema
    for fragment in tables.dataset(handle).get_fragments():
        where = f"{handle.table_uri.rstrip('/')}/{fragment.path}"
        try:
            with tables.speaking(where):
                for group in _groups(fragment, logged[fragment.path], report):
                    yield _shaped(group, schema, fragment.path, report)
        except Unreached:
            raise
        except ArchiveError as error:
            report(told(error))
        except Exception as error:  # whatever damage makes a reader stumble over
            report(f"{where}: {told(error)}")


def _added(handle: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pa.table(handle.get_add_actions(flatten=True)).to_pylist()
    return found


def _groups(
    fragment: Any, logged: Mapping[str, Any], report: Callable[[str], None]
) -> Iterator[pa.Table]:
    """Read a file; compare its statistics, and those of the log, with its rows."""
    spans: dict[str, Span] = {}
    rows = 0
    with fragment.open() as opened, pq.ParquetFile(opened, pre_buffer=True) as file:
        for number in range(file.num_row_groups):
            group = file.read_row_group(number)
            found = {name: _span(group[name]) for name in group.column_names}
            footer = file.metadata.row_group(number)
            for at in range(footer.num_columns):
                column = footer.column(at)
                if not _holds(_of_footer(column.statistics), found[column.path_in_schema]):
                    report(_wrong(fragment.path, column.path_in_schema, "its footer"))
            spans = {name: _both(spans.get(name, _NONE), one) for name, one in found.items()}
            rows += group.num_rows
            yield group
    if rows != logged["num_records"]:
        report(f"{fragment.path}: {rows} rows in the file, {logged['num_records']} in the log")
    for name, span in spans.items():
        said = tuple(logged.get(f"{one}.{name}") for one in ("min", "max", "null_count"))
        # Where the log has bounds at all, one that cannot be read is taken for: no values.
        missing = span[0] is not None and f"min.{name}" in logged and None in said[:2]
        if missing or not _holds(said, span):
            report(_wrong(fragment.path, name, "the log"))


def _wrong(path: str, column: str, where: str) -> str:
    return f"{path}: {column} has other values than {where} says, so that readers skip rows"


def _span(column: pa.ChunkedArray) -> Span:
    found = pc.min_max(column)
    return found["min"].as_py(), found["max"].as_py(), column.null_count


def _both(one: Span, two: Span) -> Span:
    lows, highs = ([one[at], two[at]] for at in (0, 1))
    low = min((value for value in lows if value is not None), default=None)
    high = max((value for value in highs if value is not None), default=None)
    return low, high, one[2] + two[2]


def _of_footer(statistics: Any) -> tuple[Any, Any, Any]:
    if statistics is None:
        return None, None, None
    low, high = (statistics.min, statistics.max) if statistics.has_min_max else (None, None)
    return low, high, statistics.null_count if statistics.has_null_count else None


def _holds(said: tuple[Any, ...], span: Span) -> bool:
    """Whether values lie within what statistics say; what these leave out is not used."""
    low, high, nulls = said
    if nulls is not None and nulls != span[2]:
        return False
    if span[0] is None:
        return True
    return (low is None or low <= span[0]) and (high is None or span[1] <= high)


def _shaped(
    rows: pa.Table, schema: pa.Schema, path: str, report: Callable[[str], None]
) -> pa.Table:
    """Give the columns that the table has; a file may be of a version that knew fewer."""
    if lacking := {one for one in _OF_ALL if one in schema.names} - set(rows.column_names):
        report(f"{path}: has no column {', '.join(sorted(lacking))}")
    columns = [
        rows[one.name].cast(one.type)
        if one.name in rows.column_names
        else pa.nulls(rows.num_rows, one.type)
        for one in schema
    ]
    return pa.table(columns, schema=schema)


_OF_ALL: Final = ("_operation", "_subject", "_part", "_row", "_json", "_body", "_fetched")
