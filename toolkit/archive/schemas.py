"""What the archive's tables hold: one table a kind of record, and three about the archive itself.

A row of a record's table is a row of the wire. Its JSON text is kept as it came, so that unknown
fields and exact decimals come back; beside it stand the record's columns as frames have them,
with numbers as float64, for scans.
"""

import contextlib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from toolkit.archive.series import Series, is_history, operation_named
from toolkit.contract import records as r
from toolkit.contract.answers import decode
from toolkit.contract.columns import record_columns
from toolkit.contract.operations import Operation
from toolkit.contract.records import Record
from toolkit.contract.rows import answer_rows as rows_of
from toolkit.errors import ArchiveError
from toolkit.frames import Collector

__all__ = [
    "ANSWERS",
    "FREEZES",
    "PULLS",
    "RECORDS",
    "SCHEMAS",
    "Origin",
    "arrow_rows",
    "columns_known",
    "table_named",
    "table_of",
]

RECORDS: Final[dict[str, type[Record]]] = {
    "fills": r.Fill,
    "funding": r.FundingRow,
    "ledger": r.LedgerUpdate,
    "orders": r.OrderStatus,
    "slippage": r.SlippageSample,
}
"""Table -> the record whose rows it holds."""

ANSWERS: Final = "answers"
"""Table of whole answers: of operations that show a state, not a history."""
PULLS: Final = "pulls"
"""Table of what was refreshed when, one row a refresh."""
FREEZES: Final = "freezes"
"""Table of freezes."""

# An underscore keeps these apart from the records' own columns.
_OWN: Final = pa.schema(
    [
        ("_operation", pa.string()),
        ("_subject", pa.string()),
        ("_part", pa.int64()),  # where the run of pages begins that the row is of, in milliseconds
        ("_row", pa.int64()),  # its place in that run, from 0
        ("_json", pa.string()),
        ("_source", pa.string()),
        ("_simulated", pa.bool_()),
        ("_fetched", pa.int64()),
        ("_columns", pa.int64()),  # which columns the writer knew; see `columns_known`
    ]
)
_FAMILIES: Final[dict[str, pa.DataType]] = {
    "number": pa.float64(),
    "time": pa.timestamp("us", "UTC"),
    "seconds": pa.timestamp("us", "UTC"),
    "iso": pa.timestamp("us", "UTC"),
    "integer": pa.int64(),
    "flag": pa.bool_(),
    "text": pa.string(),
}


def _schema(record: type[Record]) -> pa.Schema:
    # Nested cells stand in the JSON text only: their types could not grow with the record.
    typed = [
        (one.name, _FAMILIES[one.kind.family])
        for one in record_columns(record)
        if one.kind.family in _FAMILIES
    ]
    return pa.schema([*_OWN, *typed])


SCHEMAS: Final[dict[str, pa.Schema]] = {
    **{name: _schema(record) for name, record in RECORDS.items()},
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
class Origin:
    """Where rows come from: the source's name, whether it is invented, and when they were asked."""

    source: str
    simulated: bool
    fetched_ms: int


def table_of(operation: Operation) -> str:
    """Give the table that keeps an operation's answers."""
    if not is_history(operation):
        return ANSWERS
    record = operation.tables[0].record
    return next(name for name, one in RECORDS.items() if one is record)


def table_named(what: str | type[Record]) -> str:
    """Give the table of that name, of a kind of record, or of an operation.

    Raises
    ------
    ArchiveError
        If there is none.
    """
    for name, record in RECORDS.items():
        if what in (name, record):
            return name
    if what in (ANSWERS, PULLS):
        return str(what)
    if isinstance(what, str):
        with contextlib.suppress(ArchiveError):
            return table_of(operation_named(what))
    said = repr(what) if isinstance(what, str) else getattr(what, "__name__", repr(what))
    known = ", ".join((*RECORDS, ANSWERS, PULLS))
    raise ArchiveError(f"no table holds {said}: choose one of {known}, or an operation")


def columns_known(name: str) -> int:
    """Give a number for the columns that this version makes from the text of a table's rows.

    Rows of another number may say in their text what no column holds: it was unknown when they
    were written.
    """
    return zlib.crc32(",".join(SCHEMAS[name].names).encode())


def arrow_rows(
    series: Series, texts: Sequence[bytes], part: int, first: int, origin: Origin
) -> pa.Table:
    """Make the rows of a record's table from rows of the wire.

    Parameters
    ----------
    series : Series
        What they are of.
    texts : sequence of bytes
        The JSON text of each.
    part, first : int
        The run they are of, and the place of the first in it.
    origin : Origin
        Where they come from.

    Raises
    ------
    AnswerInvalid
        If a row breaks the contract.
    """
    operation, count = series.operation, len(texts)
    content = b"[%b]" % b",".join(texts)
    collector = Collector(operation, "float")
    answer = decode(operation, 200, {}, content, numbers="float")
    collector.add(rows_of(operation, answer, series.parameters))
    typed = pa.Table.from_pandas(collector.frames({})[0], preserve_index=False)
    own = {
        "_operation": [operation.type] * count,
        "_subject": [series.subject] * count,
        "_part": [part] * count,
        "_row": range(first, first + count),
        "_json": pa.array(texts, pa.binary()).cast(pa.string()),
        "_source": [origin.source] * count,
        "_simulated": [origin.simulated] * count,
        "_fetched": [origin.fetched_ms] * count,
        "_columns": [columns_known(table_of(operation))] * count,
    }
    schema = SCHEMAS[table_of(operation)]
    return pa.table(
        [_column(one, own, typed, count) for one in schema],
        schema=schema,
    )


def _column(field: pa.Field, own: Mapping[str, Any], typed: pa.Table, count: int) -> Any:
    if field.name in own:
        values = own[field.name]
        return values if isinstance(values, pa.Array) else pa.array(values, field.type)
    if field.name in typed.column_names:
        return typed.column(field.name).cast(field.type)
    return pa.nulls(count, field.type)
