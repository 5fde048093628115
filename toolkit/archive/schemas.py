"""The schemas of the archive's tables: one table per kind of record, and three others.

A row of a record's table is a row of the wire. The table keeps its JSON text unchanged, so that
unknown fields and exact decimals are not lost. Next to the text are the record's columns as frames
have them, with numbers as float64, for scans. The other three tables hold whole answers, the log
of refreshes and the freezes.
"""

import contextlib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from toolkit.archive.series import Series, find_operation, is_history
from toolkit.contract import records as r
from toolkit.contract.answers import decode
from toolkit.contract.columns import record_columns
from toolkit.contract.operations import Operation
from toolkit.contract.records import Record
from toolkit.contract.rows import answer_rows
from toolkit.errors import ArchiveError
from toolkit.frames import Collector

__all__ = [
    "ANSWERS",
    "FREEZES",
    "PULLS",
    "RECORDS",
    "SCHEMAS",
    "RowOrigin",
    "arrow_rows",
    "column_set_id",
    "find_table",
    "operation_table",
]

RECORDS: Final[dict[str, type[Record]]] = {
    "fills": r.Fill,
    "funding": r.FundingRow,
    "ledger": r.LedgerUpdate,
    "orders": r.OrderStatus,
    "slippage": r.SlippageSample,
}
"""Table -> the record of its rows."""

ANSWERS: Final = "answers"
"""The table of whole answers, of operations that are not histories."""
PULLS: Final = "pulls"
"""The log of refreshes: one row per refresh."""
FREEZES: Final = "freezes"
"""The table of freezes."""

# The leading underscore separates these columns from the record's own columns.
_ARCHIVE_COLUMNS: Final = pa.schema(
    [
        ("_operation", pa.string()),
        ("_subject", pa.string()),
        ("_part", pa.int64()),  # the start of the row's run, in Unix milliseconds
        ("_row", pa.int64()),  # the position of the row in its run, from 0
        ("_json", pa.string()),
        ("_source", pa.string()),
        ("_simulated", pa.bool_()),
        ("_fetched", pa.int64()),
        ("_columns", pa.int64()),  # the columns that the writer knew; see `column_set_id`
    ]
)
_FAMILY_TYPES: Final[dict[str, pa.DataType]] = {
    "number": pa.float64(),
    "time": pa.timestamp("us", "UTC"),
    "seconds": pa.timestamp("us", "UTC"),
    "iso": pa.timestamp("us", "UTC"),
    "integer": pa.int64(),
    "flag": pa.bool_(),
    "text": pa.string(),
}


def _record_schema(record: type[Record]) -> pa.Schema:
    # Nested values are in the JSON text only, because their types could not grow with the record.
    typed = [
        (column.name, _FAMILY_TYPES[column.kind.family])
        for column in record_columns(record)
        if column.kind.family in _FAMILY_TYPES
    ]
    return pa.schema([*_ARCHIVE_COLUMNS, *typed])


SCHEMAS: Final[dict[str, pa.Schema]] = {
    **{name: _record_schema(record) for name, record in RECORDS.items()},
    ANSWERS: pa.schema(
        [
            ("_operation", pa.string()),
            ("_subject", pa.string()),
            ("_body", pa.binary()),
            ("_headers", pa.string()),
            ("_source", pa.string()),
            ("_simulated", pa.bool_()),
            ("_fetched", pa.int64()),
        ]
    ),
    PULLS: pa.schema(
        [
            ("_operation", pa.string()),
            ("_subject", pa.string()),
            ("start", pa.int64()),
            ("until", pa.int64()),
            ("rows", pa.int64()),
            ("total", pa.int64()),
            ("_source", pa.string()),
            ("_simulated", pa.bool_()),
            ("_fetched", pa.int64()),
        ]
    ),
    FREEZES: pa.schema([("id", pa.string()), ("made_ms", pa.int64()), ("manifest", pa.string())]),
}
"""Table -> its columns."""


@dataclass(frozen=True, slots=True)
class RowOrigin:
    """Where rows come from.

    Attributes
    ----------
    source : str
        The name of the service or file.
    simulated : bool
        Whether the source is a simulated exchange.
    fetched_ms : int
        When the rows were requested, in Unix milliseconds.
    """

    source: str
    simulated: bool
    fetched_ms: int


def operation_table(operation: Operation) -> str:
    """Return the table that holds an operation's answers.

    Raises
    ------
    ArchiveError
        If the operation is a history of a new record, which has no table yet.
    """
    if not is_history(operation):
        return ANSWERS
    for name, record in RECORDS.items():
        if record is operation.tables[0].record:
            return name
    raise ArchiveError(
        f"{operation.type}: the archive has no table for {operation.tables[0].record.__name__}. "
        "Add the record to RECORDS in toolkit/archive/schemas.py"
    )


def find_table(name: str | type[Record]) -> str:
    """Return a table by its name, by its record, or by an operation.

    Raises
    ------
    ArchiveError
        If there is no such table.
    """
    for table, record in RECORDS.items():
        if name in (table, record):
            return table
    if name in (ANSWERS, PULLS):
        return str(name)
    if isinstance(name, str):
        with contextlib.suppress(ArchiveError):
            return operation_table(find_operation(name))
    shown = repr(name) if isinstance(name, str) else getattr(name, "__name__", repr(name))
    known = ", ".join((*RECORDS, ANSWERS, PULLS))
    raise ArchiveError(f"there is no table {shown}: choose one of {known}, or an operation")


def column_set_id(table: str) -> int:
    """Return a number that stands for the columns which this version knows of a table.

    A row with another number was written by a version that knew other columns. Its text may have
    fields that its columns lack.
    """
    return zlib.crc32(",".join(SCHEMAS[table].names).encode())


def arrow_rows(
    series: Series, texts: Sequence[bytes], run_start: int, first: int, origin: RowOrigin
) -> pa.Table:
    """Return the rows of a record's table for rows of the wire.

    Parameters
    ----------
    series : Series
        The series of the rows.
    texts : sequence of bytes
        The JSON text of each row.
    run_start : int
        The start of their run, in Unix milliseconds.
    first : int
        The position of the first row in the run.
    origin : RowOrigin
        Where the rows come from.

    Raises
    ------
    AnswerInvalid
        If a row breaks the contract.
    """
    operation, count = series.operation, len(texts)
    content = b"[%b]" % b",".join(texts)
    collector = Collector(operation, "float")
    answer = decode(operation, 200, {}, content, numbers="float")
    collector.add(answer_rows(operation, answer, series.parameters))
    typed = pa.Table.from_pandas(collector.frames({})[0], preserve_index=False)
    archive_columns = {
        "_operation": [operation.type] * count,
        "_subject": [series.subject] * count,
        "_part": [run_start] * count,
        "_row": range(first, first + count),
        "_json": pa.array(texts, pa.binary()).cast(pa.string()),
        "_source": [origin.source] * count,
        "_simulated": [origin.simulated] * count,
        "_fetched": [origin.fetched_ms] * count,
        "_columns": [column_set_id(operation_table(operation))] * count,
    }
    schema = SCHEMAS[operation_table(operation)]
    arrays = [_column_array(field, archive_columns, typed, count) for field in schema]
    return pa.table(arrays, schema=schema)


def _column_array(
    field: pa.Field, archive_columns: Mapping[str, Any], typed: pa.Table, count: int
) -> Any:
    if field.name in archive_columns:
        values = archive_columns[field.name]
        return values if isinstance(values, pa.Array) else pa.array(values, field.type)
    if field.name in typed.column_names:
        return typed.column(field.name).cast(field.type)
    return pa.nulls(count, field.type)
