"""What the archive's tables hold: one table a kind of record, and three about the archive itself.

A row of a record's table is a row of the wire. Its JSON text is kept as it came, so that unknown
fields and exact decimals come back; beside it stand the record's columns as frames have them,
with numbers as float64, for scans.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from toolkit.contract import records as r
from toolkit.contract.answers import decode
from toolkit.contract.columns import columns
from toolkit.contract.dexes import name_in
from toolkit.contract.operations import OPERATIONS, Operation, Parameter
from toolkit.contract.records import Record
from toolkit.contract.requests import body
from toolkit.contract.shapes import rows as rows_of
from toolkit.errors import ArchiveError
from toolkit.fetch.serves import operation_of
from toolkit.frames import Collector

__all__ = [
    "ANSWERS",
    "FREEZES",
    "PULLS",
    "RECORDS",
    "SCHEMAS",
    "Origin",
    "Series",
    "arrow_rows",
    "complete_name",
    "is_history",
    "key_columns",
    "operation_named",
    "run_name",
    "series_of",
    "table_of",
    "time_column",
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
        for one in columns(record)
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
            ("_source", pa.string()),
            ("_simulated", pa.bool_()),
            ("_fetched", pa.int64()),
        ]
    ),
    FREEZES: pa.schema([("id", pa.string()), ("made_ms", pa.int64()), ("manifest", pa.string())]),
}
"""Table -> its columns."""

_PAGING_ONLY: Final = frozenset({"start", "end", "cursor", "page_size", "max_rows"})


@dataclass(frozen=True, slots=True)
class Origin:
    """Where rows come from: the source's name, whether it is invented, and when they were asked."""

    source: str
    simulated: bool
    fetched_ms: int


@dataclass(frozen=True, slots=True)
class Series:
    """The rows of one operation and one subject.

    Attributes
    ----------
    operation : Operation
        What is asked.
    subject : str
        Of whom: an address; ``<coin> <amount>`` for slippage; the request of other operations.
    parameters : mapping
        The same as parameters, in Python names.
    """

    operation: Operation
    subject: str
    parameters: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Its name in messages and transactions."""
        return f"{self.operation.type} {self.subject}"


def run_name(series: Series, start: int) -> str:
    """Name the transaction that counts the rows of a run."""
    return f"{series.name} from {start}"


def complete_name(series: Series, start: int) -> str:
    """Name the transaction that says that a run has reached the one after it."""
    return f"{series.name} from {start} complete"


def is_history(operation: Operation) -> bool:
    """Whether an operation answers with a history that only grows at its end."""
    return operation.paging in ("cursor", "open cursor", "forward")


def table_of(operation: Operation) -> str:
    """Give the table that keeps an operation's answers."""
    if not is_history(operation):
        return ANSWERS
    record = operation.tables[0].record
    return next(name for name, one in RECORDS.items() if one is record)


def operation_named(what: str | Callable[..., Any]) -> Operation:
    """Give an operation by its type, the name of its function, or the function.

    Raises
    ------
    ArchiveError
        If there is none of that name.
    """
    if callable(what):
        return operation_of(what)
    for one in OPERATIONS.values():
        if what in (one.type, one.function):
            return one
    raise ArchiveError(f"there is no operation {what!r}; tk.describe() lists all")


def series_of(operation: Operation, given: Sequence[Any], named: Mapping[str, Any]) -> Series:
    """Name the series of a call.

    Parameters
    ----------
    operation : Operation
        What is asked.
    given : sequence
        Positional arguments of the fetch function, without times.
    named : mapping
        Its other arguments.

    Raises
    ------
    ArchiveError
        If a history is filtered: the archive keeps all, and filters when it is read.
    """
    parameters = _bound(operation, given, named)
    needed = [one for one in operation.parameters if one.python not in _PAGING_ONLY]
    if not is_history(operation):
        kept = {k: v for k, v in parameters.items() if v is not None and k not in ("page_size",)}
        return Series(operation, _written(operation, kept), kept)
    kept = {one.python: parameters[one.python] for one in needed if one.required}
    for one in needed:
        if not one.required and parameters.get(one.python) not in (None, one.default):
            raise ArchiveError(
                f"{operation.type}: leave out {one.python}: an archive keeps every row, and "
                "filters when it is read"
            )
    body(operation, kept | ({"start": 0} if "startTime" in operation.by_wire else {}))
    subject = " ".join(_shown(value) for value in kept.values())
    return Series(operation, subject, kept)


def time_column(operation: Operation) -> str:
    """Give the column by which a history goes on."""
    return operation.key[0]


def key_columns(operation: Operation) -> list[str]:
    """Give the columns that order a history."""
    return [path.rpartition(".")[2] for path in operation.key]


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


def _bound(operation: Operation, given: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    names = [one.python for one in operation.parameters if one.required and not one.unless]
    names = [one for one in names if one not in ("start",)]
    if len(given) > len(names):
        raise TypeError(f"{operation.type} takes {', '.join(names) or 'nothing'} without a name")
    values = dict(named) | dict(zip(names, given, strict=False))
    known = {one.python for one in operation.parameters}
    if unknown := values.keys() - known:
        raise TypeError(f"{operation.type} has no parameter {', '.join(sorted(unknown))}")
    if missing := [one for one in names if values.get(one) is None]:
        raise TypeError(f"{operation.type} needs {', '.join(missing)}")
    return {
        one.python: _plain(operation, one, values.get(one.python, one.default))
        for one in operation.parameters
    }


def _plain(operation: Operation, one: Parameter, value: Any) -> Any:
    """Write a value as every request does, so that one question has one name."""
    if one.kind == "address" and isinstance(value, str):
        return value.lower()
    if one.kind == "addresses" and not isinstance(value, str):
        return [str(item).lower() for item in value]
    if one.python == "dex" and isinstance(value, str) and operation.type != "currentDepth":
        return name_in("fills" if operation.topic == "fills" else "request", value)
    return value


def _shown(value: Any) -> str:
    return f"{value:.15g}" if isinstance(value, int | float) else str(value)


def _written(operation: Operation, parameters: Mapping[str, Any]) -> str:
    request = body(operation, parameters)
    return json.dumps(request, sort_keys=True, separators=(",", ":"))
