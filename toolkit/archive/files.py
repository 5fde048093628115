"""The files of a table, read whole, whatever their statistics say.

Readers skip files by the statistics in the table's log, and groups of rows by those in a file's
footer. Where these are wrong, rows are there that no reader sees.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from toolkit.archive.tables import Tables
from toolkit.archive.troubles import Unreached, told
from toolkit.errors import ArchiveError

__all__ = ["row_groups"]

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
