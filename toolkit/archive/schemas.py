"""What the tables of an archive contain: series, the columns of each table, and its rows.

A series is the rows of one operation and one subject. A history has one series per subject. Any
other operation has one series per request.

A row of a record's table is a row of the wire. The table keeps its JSON text unchanged, so that
unknown fields and exact decimals are not lost. Next to the text are the record's columns as frames
have them, with numbers as float64, for scans. The other three tables hold whole answers, the log
of refreshes and the freezes.

`decoded_rows` makes rows from texts. `toolkit.archive.row_sql` makes them from columns, of a frame
or of a file of somebody else: no text is decoded, so that this is several times as fast.
"""

import contextlib
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from toolkit.contract import records as r
from toolkit.contract.answers import answer_rows, decode
from toolkit.contract.fields import record_columns
from toolkit.contract.operations import EXTRA_OPERATIONS, OPERATIONS, Operation
from toolkit.contract.records import Record
from toolkit.contract.requests import check_request, filters_of, request_body, wire_value
from toolkit.contract.value_kinds import Numbers
from toolkit.display import snake_case
from toolkit.errors import ArchiveError
from toolkit.fetch.registry import operation_of
from toolkit.frames import Collector

ANSWERS: Final = "answers"
"""The table of whole answers, of operations that are not histories."""
PULLS: Final = "pulls"
"""The log: one row for each refresh and each ingestion."""
FREEZES: Final = "freezes"
"""The table of freezes."""

_HISTORIES: Final = [
    operation
    for operation in (*OPERATIONS.values(), *EXTRA_OPERATIONS.values())
    if operation.is_history
]
_BY_NAME: Final = {
    **{operation.function: operation for operation in OPERATIONS.values()},
    **OPERATIONS,
    **EXTRA_OPERATIONS,
}
_TABLE_NAMES: Final[dict[type[Record], str]] = {
    r.Fill: "fills",
    r.FundingRow: "funding",
    r.LedgerUpdate: "ledger",
    r.OrderStatus: "orders",
    r.SlippageSample: "slippage",
}
"""The record of rows -> the name of its table, if it is not the name of the record."""


def operation_table(operation: Operation) -> str:
    """Return the table that holds an operation's answers."""
    if not operation.is_history:
        return ANSWERS
    record = operation.tables[0].record
    return _TABLE_NAMES.get(record) or snake_case(record.__name__).lstrip("_")


RECORDS: Final[dict[str, type[Record]]] = {
    operation_table(operation): operation.tables[0].record
    for operation in sorted(_HISTORIES, key=operation_table)
}
"""Table -> the record of its rows. Every history has a table."""

_FILL_CHECKS: Final = "user coin side tid px sz start_position fee fee_token oid"
CHECKED_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "fills": tuple(_FILL_CHECKS.split()),
    "funding": ("user", "coin", "szi", "n_samples"),
}
"""Table -> the columns that the checks of its rows need, in addition to its key."""

# The leading underscore separates these columns from the record's own columns.
_SERIES_COLUMNS: Final = (("_operation", pa.string()), ("_subject", pa.string()))
_ORIGIN_COLUMNS: Final = (
    ("_source", pa.string()),
    ("_simulated", pa.bool_()),
    ("_fetched", pa.int64()),
)
_ROW_COLUMNS: Final = (
    *_SERIES_COLUMNS,
    ("_part", pa.int64()),  # the start of the row's run, in Unix milliseconds
    ("_row", pa.int64()),  # the place of the row in its run, from 0
    ("_json", pa.string()),
    *_ORIGIN_COLUMNS,
    ("_columns", pa.int64()),  # the columns that the writer knew; see `column_set_id`
)
_PLACE_COLUMNS: Final = ("_operation", "_subject", "_part", "_row")
_MILLISECONDS: Final = pa.timestamp("ms", "UTC")
_FAMILY_TYPES: Final[dict[str, pa.DataType]] = {
    "number": pa.float64(),
    **dict.fromkeys(("time", "seconds", "iso"), pa.timestamp("us", "UTC")),
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
    return pa.schema([*_ROW_COLUMNS, *typed])


SCHEMAS: Final[dict[str, pa.Schema]] = {
    **{name: _record_schema(record) for name, record in RECORDS.items()},
    ANSWERS: pa.schema(
        [*_SERIES_COLUMNS, ("_body", pa.binary()), ("_headers", pa.string()), *_ORIGIN_COLUMNS]
    ),
    PULLS: pa.schema(
        [
            *_SERIES_COLUMNS,
            *((name, pa.int64()) for name in ("start", "until", "rows", "total")),
            ("breaks", pa.string()),  # JSON: the ranges in which rows contradict each other
            ("why", pa.string()),
            ("runs", pa.string()),  # JSON: the runs of the series after the refresh
            *_ORIGIN_COLUMNS,
        ]
    ),
    FREEZES: pa.schema([("id", pa.string()), ("made_ms", pa.int64()), ("manifest", pa.string())]),
}
"""Table -> its columns."""


@dataclass(frozen=True, slots=True)
class Series:
    """The rows of one operation and one subject.

    The subject is an address, or ``<coin> <amount>`` for slippage. For an operation that is not a
    history, it is the text of the request.
    """

    operation: Operation
    subject: str
    parameters: Mapping[str, Any] = field(default_factory=dict)  # those that choose the subject

    @property
    def name(self) -> str:
        """The name of the series in messages and counters."""
        return f"{self.operation.type} {self.subject}"

    @property
    def table(self) -> str:
        """The table of the series."""
        return operation_table(self.operation)

    @property
    def condition(self) -> Any:
        """The condition that a row of the table belongs to the series."""
        operation = ds.field("_operation") == self.operation.type
        return operation & (ds.field("_subject") == self.subject)

    @property
    def keys(self) -> list[str]:
        """The columns by which a history is ordered. The first is its time."""
        columns = record_columns(self.operation.tables[0].record)
        names = {column.path: column.name for column in columns}
        return [names[path] for path in self.operation.key]

    def run_counter(self, start: int) -> str:
        """Return the name of the counter that counts the rows of a run."""
        return f"{self.name} from {start}"


def stored_series(type: str, subject: str) -> Series:
    """Return the series of a row of the archive.

    Older versions kept pages of some histories as answers; their subject is a request.
    """
    operation = resolve_operation(type)
    if operation.is_history and subject.startswith("{"):
        operation = replace(operation, paging="none")
    return Series(operation, subject)


def table_operations(table: str) -> list[Operation]:
    """Return the histories of a table, also those beyond the specification."""
    return [operation for operation in _HISTORIES if operation_table(operation) == table]


def resolve_operation(name: str | Callable[..., Any]) -> Operation:
    """Return an operation by its type, by its fetch function, or by the name of that function."""
    if callable(name):
        return operation_of(name)
    if name in _BY_NAME:
        return _BY_NAME[name]
    near = get_close_matches(name, OPERATIONS, n=1)
    hint = f"did you mean {near[0]}?" if near else "tk.describe() lists all"
    raise ArchiveError(f"there is no operation {name!r}; {hint}")


def make_series(operation: Operation, arguments: Sequence[Any], named: Mapping[str, Any]) -> Series:
    """Return the series of a request, from the arguments of the fetch function without times.

    Raise an ArchiveError if the request filters a history: an archive stores every row.
    """
    required = [
        parameter.python
        for parameter in operation.parameters
        if parameter.required and not parameter.unless and parameter.python != "start"
    ]
    values = dict(named) | dict(zip(required, arguments, strict=False))
    names = [parameter.python for parameter in operation.parameters]
    if len(arguments) > len(required) or not {*values} <= {*names}:
        others = ", ".join(name for name in names if name not in required) or "no others"
        raise TypeError(
            f"{operation.type} takes {', '.join(required) or 'nothing'} as positional arguments, "
            f"and by name {others}: not {', '.join([*map(repr, arguments), *named])}"
        )
    if missing := [name for name in required if values.get(name) is None]:
        raise TypeError(f"{operation.type} needs the argument {', '.join(missing)}")
    parameters = {
        parameter.python: wire_value(parameter, value)
        for parameter in operation.parameters
        if (value := values.get(parameter.python, parameter.default)) is not None
    }
    if not operation.is_history:
        parameters.pop("page_size", None)
        start = operation.by_wire.get("startTime")
        if start and start.required and "start" not in parameters:
            raise ArchiveError(
                f"{operation.type}: pass start, and end to ask for the same range again. Rows of "
                "intervals are archived by the range that is requested, and are not continued"
            )
        body = request_body(operation, parameters)
        check_request(operation, body)
        text = json.dumps(body, sort_keys=True, separators=(",", ":"))
        return Series(operation, text, parameters)
    chosen = {
        parameter.python: parameters[parameter.python]
        for parameter in operation.parameters
        if parameter.required and not parameter.selects_part
    }
    for name in filters_of(operation, parameters):
        raise ArchiveError(
            f"{operation.type}: leave out {name}. An archive stores every row; filter when you "
            "read it"
        )
    first = {"start": 0} if "startTime" in operation.by_wire else {}
    check_request(operation, request_body(operation, chosen | first))  # as fetching does
    return Series(operation, operation.subject_of(chosen), chosen)


@dataclass(frozen=True, slots=True)
class RowOrigin:
    """Where rows come from."""

    source: str  # the name of the service or file
    simulated: bool  # whether the source is a simulated exchange
    fetched_ms: int  # when the rows were requested, in Unix milliseconds

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of a row that state its origin."""
        return {"_source": self.source, "_simulated": self.simulated, "_fetched": self.fetched_ms}


def time_column_name(name: str) -> str:
    """Return the column of a record's table by which its histories are ordered."""
    return Series(table_operations(name)[0], "").keys[0]


def find_table(name: str | type[Record]) -> str:
    """Return a table by its name, by its record, or by an operation."""
    for table, record in RECORDS.items():
        if name in (table, record):
            return table
    if name in (ANSWERS, PULLS):
        return str(name)
    if isinstance(name, str):
        with contextlib.suppress(ArchiveError):
            return operation_table(resolve_operation(name))
    shown = repr(name) if isinstance(name, str) else getattr(name, "__name__", repr(name))
    known = ", ".join((*RECORDS, ANSWERS, PULLS))
    raise ArchiveError(f"unknown table {shown}; choose one of {known}, or an operation")


def column_set_id(table: str) -> int:
    """Return a number that stands for the columns which this version knows of a table.

    A row with another number was written by a version that knew other columns. Its text may have
    fields that its columns lack.
    """
    return zlib.crc32(",".join(SCHEMAS[table].names).encode())


def decode_texts(operation: Operation, texts: Sequence[bytes], numbers: Numbers = "text") -> Any:
    """Return the rows of a history, decoded from their JSON texts."""
    return decode(operation, 200, {}, b"[%b]" % b",".join(texts), numbers=numbers)


def collect_texts(collector: Collector, series: Series, texts: Sequence[bytes]) -> None:
    """Add the JSON texts of rows to a collector of frames."""
    answer = decode_texts(series.operation, texts, collector.numbers)
    collector.add(answer_rows(series.operation, answer, series.parameters))


def decoded_rows(series: Series, texts: Sequence[bytes], origin: RowOrigin) -> pa.Table:
    """Return the rows of a record's table for the JSON texts of rows, without series and run.

    Raise AnswerInvalid if a row breaks the contract.
    """
    collector = Collector(series.operation, "float")
    collect_texts(collector, series, texts)
    return collected_rows(collector, series, texts, origin)


def collected_rows(
    collector: Collector, series: Series, texts: Sequence[bytes], origin: RowOrigin
) -> pa.Table:
    """Return collected rows as rows of a record's table, without series and run."""
    frame = collector.frames({})[0]
    frame.attrs = {}  # pandas would copy them for each column
    typed = pa.Table.from_pandas(frame, preserve_index=False)
    cells = typed.append_column("_json", pa.array(texts, pa.binary()))
    return complete_rows(series.table, cells, origin)


def complete_rows(table: str, cells: pa.Table, origin: RowOrigin) -> pa.Table:
    """Return rows of a table, without their series and their run, for their texts and columns.

    Nested values are only in the text, so the table has no column for some of the cells.
    """
    fields = [column for column in SCHEMAS[table] if column.name not in _PLACE_COLUMNS]
    constants = {"_columns": column_set_id(table), **origin.columns}
    columns = [
        cells[column.name].cast(column.type)
        if column.name in cells.column_names
        else pa.repeat(pa.scalar(constants.get(column.name), column.type), cells.num_rows)
        for column in fields
    ]
    return pa.table(columns, schema=pa.schema(fields))


def place_rows(series: Series, rows: pa.Table, run_start: int, first: int) -> pa.Table:
    """Return rows with their series, and their place in a run from the position `first` on."""
    count = rows.num_rows
    places = {
        "_operation": pa.repeat(series.operation.type, count),
        "_subject": pa.repeat(series.subject, count),
        "_part": pa.repeat(pa.scalar(run_start, pa.int64()), count),
        "_row": pa.array(np.arange(first, first + count)),
    }
    schema = SCHEMAS[series.table]
    columns = [places[name] if name in places else rows[name] for name in schema.names]
    return pa.table(columns, schema=schema)


def to_milliseconds(times: Any) -> Any:
    """Return times as Unix milliseconds; they are timestamps or numbers of milliseconds."""
    if not pa.types.is_integer(times.type):
        times = times.cast(_MILLISECONDS, safe=False)
    return times.cast(pa.int64())


def use_milliseconds(rows: pa.Table) -> pa.Table:
    """Return rows with times as numbers in Unix milliseconds."""
    for index, column in enumerate(rows.schema):
        if pa.types.is_timestamp(column.type):
            rows = rows.set_column(index, column.name, to_milliseconds(rows[column.name]))
    return rows
