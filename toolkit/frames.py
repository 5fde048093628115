"""Decoded rows to typed DataFrames, and nothing else makes frames from the wire.

A frame has every column of its record, in the order of the specification, with the same
dtype whether it is empty or full, on every page and in every run. Pages become columns as
they come and are joined once, so that a million rows never stand in memory as objects.
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, get_args, get_origin

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.contract.answers import decode, encode
from toolkit.contract.columns import Column, columns, table_columns
from toolkit.contract.kinds import EXACT_PRECISION, EXACT_SCALE, Family
from toolkit.contract.operations import OPERATIONS, Operation, Table
from toolkit.contract.reading import Numbers
from toolkit.contract.records import Record
from toolkit.contract.shapes import rows as rows_of
from toolkit.errors import AnswerInvalid

__all__ = ["EXACT", "Collector", "dtype", "frame", "provenance"]

EXACT: Final = pa.decimal128(EXACT_PRECISION, EXACT_SCALE)
"""The Arrow type of exact numbers."""

_TEXT = pa.large_string()
_STR = pd.StringDtype("pyarrow", na_value=np.nan)
_NAT = np.iinfo(np.int64).min
_NUMBER: Final[dict[str, Any]] = {
    "float": np.dtype("float64"),
    "exact": pd.ArrowDtype(EXACT),
    "text": _STR,
}
_UTC = pd.DatetimeTZDtype("ms", "UTC")
_DTYPES: Final[dict[Family, tuple[Any, Any]]] = {
    "time": (_UTC, _UTC),
    "seconds": (_UTC, _UTC),
    "iso": (_UTC, _UTC),
    "integer": (np.dtype("int64"), pd.Int64Dtype()),
    "flag": (np.dtype("bool"), pd.BooleanDtype()),
    "text": (_STR, _STR),
}
_ARROW_NUMBER: Final[dict[str, pa.DataType]] = {
    "float": pa.float64(),
    "exact": EXACT,
    "text": _TEXT,
}


def dtype(column: Column, numbers: Numbers = "float") -> Any:
    """Give the dtype that a column has in every frame.

    Examples
    --------
    >>> from toolkit.contract.records import Fill
    >>> [str(dtype(column)) for column in columns(Fill)[:5]]
    ['str', 'float64', 'float64', 'str', 'datetime64[ms, UTC]']
    """
    if column.kind.family == "number":
        return _NUMBER[numbers]
    if column.kind.family == "nested":
        return pd.ArrowDtype(_nested_type(column.type, numbers))
    return _DTYPES[column.kind.family][column.missing]


class Collector:
    """Gathers the pages of one answer and makes its frames at the end.

    Parameters
    ----------
    operation : Operation
        What was asked; it names the frames and appears in errors.
    numbers : {"float", "exact", "text"}
        The form of numbers.
    """

    def __init__(self, operation: Operation, numbers: Numbers) -> None:
        self.operation = operation
        self.numbers = numbers
        self.rows = 0
        self._parts = [_Parts(table, operation.type, numbers) for table in operation.tables]

    def add(self, tables: Sequence[Any]) -> None:
        """Take one page: for each table of the operation its rows, or its columns by name."""
        for parts, rows in zip(self._parts, tables, strict=True):
            parts.add(rows)
        self.rows = self._parts[0].rows

    def frames(self, provenance: Mapping[str, Any]) -> tuple[pd.DataFrame, ...]:
        """Make the frames, with `provenance` in their attrs."""
        made = tuple(parts.frame() for parts in self._parts)
        for one in made:
            one.attrs["toolkit"] = {**provenance, "rows": len(one)}
        return made


def frame(
    kind: str | type[Record], rows: Any, *, numbers: Numbers = "float"
) -> pd.DataFrame | tuple[pd.DataFrame, ...]:
    """Turn wire rows, as JSON objects, into a typed frame.

    Parameters
    ----------
    kind : str or Record
        The ``type`` of an operation, or a record of `toolkit.contract.records`.
    rows : list or dict
        Rows as they stand on the wire, or the whole answer of an operation.
    numbers : {"float", "exact", "text"}, default "float"
        The form of numbers.

    Returns
    -------
    DataFrame or tuple of DataFrame
        A tuple for an operation whose answer holds several kinds of record.

    Raises
    ------
    AnswerInvalid
        If a row breaks the contract; it names column, row and value.

    Examples
    --------
    >>> row = {"validator": "0x" + "0" * 40, "amount": "1.5", "lockedUntilTimestamp": 0}
    >>> frame("delegations", [row])["amount"].tolist()
    [1.5]
    """
    operation = OPERATIONS[kind] if isinstance(kind, str) else _stand_in(kind)
    plain = operation.binary or (isinstance(rows, list) and _is_one_record(operation))
    if plain:
        operation = _stand_in(operation.tables[0].record, operation.type)
    answer = decode(operation, 200, {}, encode(rows), numbers=numbers)
    collector = Collector(operation, numbers)
    collector.add((answer,) if plain else rows_of(operation, answer, {}))
    made = collector.frames({"operation": operation.type, "source": "rows", "numbers": numbers})
    return made if len(made) > 1 else made[0]


def provenance(frame: pd.DataFrame) -> dict[str, Any]:
    """Say where a frame comes from.

    Parameters
    ----------
    frame : DataFrame
        A frame that a fetch function returned, or one derived from it by pandas.

    Returns
    -------
    dict
        Operation, parameters, source, time of asking, whether it is complete, and counts.

    Raises
    ------
    ValueError
        If the frame carries no provenance, as after a concat of different answers.

    Examples
    --------
    >>> provenance(frame("delegations", []))["operation"]
    'delegations'
    """
    try:
        return dict(frame.attrs["toolkit"])
    except KeyError:
        raise ValueError(
            "this frame does not say where it comes from: it was not fetched, or pandas dropped "
            "frame.attrs when different answers were joined"
        ) from None


class _Parts:
    """The columns of one frame, page by page."""

    def __init__(self, table: Table, operation: str, numbers: Numbers) -> None:
        self.columns = table_columns(table)
        self.operation = operation
        self.numbers = numbers
        self.rows = 0
        self._chunks: dict[str, list[Any]] = {one.name: [] for one in self.columns}

    def add(self, rows: Any) -> None:
        by_name = isinstance(rows, Mapping)
        for column in self.columns:
            values = rows[column.name] if by_name else _values(column, rows)
            try:
                chunk = _chunk(column, values, self.numbers)
            except (ValueError, TypeError, OverflowError, pa.ArrowException) as error:
                raise self._invalid(column, values, error) from None
            self._chunks[column.name].append(chunk)
        self.rows += len(self._chunks[self.columns[0].name][-1])

    def frame(self) -> pd.DataFrame:
        series = {
            column.name: _series(column, self._chunks.pop(column.name), self.numbers)
            for column in self.columns
        }
        return pd.DataFrame(series, copy=False)

    def _invalid(self, column: Column, values: Any, error: Exception) -> AnswerInvalid:
        row, value = _first_bad(column, values, self.numbers)
        return AnswerInvalid(
            f"not a legal {column.kind.name}: {error}",
            operation=self.operation,
            column=column.name,
            row=row,
            value=value,
        )


def _values(column: Column, rows: Iterable[Any]) -> list[Any]:
    return list(map(operator.attrgetter(column.path), rows))


def _chunk(column: Column, values: Any, numbers: Numbers) -> Any:
    """Turn the values of one page into one typed array; missing ones are None, or NaN."""
    family = column.kind.family
    if family == "number":
        return _CHUNKS[numbers](values)
    if family == "integer" or family == "flag":
        kind = pa.int64() if family == "integer" else pa.bool_()
        if column.missing:
            return pa.array(values, kind)
        return np.asarray(pa.array(values, kind).to_numpy(zero_copy_only=False))
    if family == "nested":
        return _nested_chunk(column, values, numbers)
    return _TIMES[family](values) if family in _TIMES else _texts(values)


def _floats(values: Any) -> np.ndarray:
    array = np.array(values, dtype=np.float64)
    if not np.isfinite(array).all() and isinstance(values, list):
        odd = np.flatnonzero(~np.isfinite(array))
        if wrong := [values[i] for i in odd if values[i] is not None]:
            raise ValueError(f"{wrong[0]} is not a number")
    return array


def _exact(values: Any) -> pa.Array:
    """Read decimal text, or Python decimals, exactly."""
    if isinstance(values, np.ndarray):
        values = [None if value != value else repr(float(value)) for value in values]
    texts = [None if value is None else str(value) for value in values]
    return pc.cast(pa.array(texts, pa.string()), EXACT)


def _texts(values: Any) -> pa.Array:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values.cast(_TEXT)
    return pa.array(values, _TEXT)


def _number_texts(values: Any) -> pa.Array:
    if isinstance(values, np.ndarray):
        values = [None if value != value else repr(float(value)) for value in values]
    return pa.array([None if value is None else str(value) for value in values], _TEXT)


def _milliseconds(values: Any) -> np.ndarray:
    if isinstance(values, np.ndarray):
        return values.astype(np.int64)
    return np.asarray(pa.array(values, pa.int64()).fill_null(_NAT))


def _seconds(values: Any) -> np.ndarray:
    array = _milliseconds(values)
    return np.where(array == _NAT, _NAT, array * 1_000)


def _iso(values: Any) -> np.ndarray:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        values = values.to_pylist()
    moments = [None if text is None else datetime.fromisoformat(text) for text in values]
    index = pd.to_datetime(pd.Series(moments, dtype="object"), utc=True)
    return index.to_numpy(dtype="M8[ms]").view(np.int64)


_CHUNKS: Final[dict[str, Callable[[Any], Any]]] = {
    "float": _floats,
    "exact": _exact,
    "text": _number_texts,
}
_TIMES: Final[dict[str, Callable[[Any], Any]]] = {
    "time": _milliseconds,
    "seconds": _seconds,
    "iso": _iso,
}


def _series(column: Column, chunks: list[Any], numbers: Numbers) -> pd.Series:
    """Join the pages of one column."""
    target = dtype(column, numbers)
    if not chunks:
        chunks = [_chunk(column, [], numbers)]
    if target is _UTC:
        moments = np.concatenate(chunks).view("M8[ms]")
        return pd.Series(moments).dt.tz_localize("UTC")
    if isinstance(target, np.dtype):
        return pd.Series(np.concatenate(chunks), dtype=target, copy=False)
    joined = pa.chunked_array(chunks)
    if isinstance(target, pd.ArrowDtype):
        return pd.Series(pd.arrays.ArrowExtensionArray(joined), copy=False)
    return pd.Series(target.__from_arrow__(joined), copy=False)


def _first_bad(column: Column, values: Any, numbers: Numbers) -> tuple[int | None, Any]:
    for row, value in enumerate(values):
        try:
            _chunk(column, [value], numbers)
        except (ValueError, TypeError, OverflowError, pa.ArrowException):
            return row, value
    return None, None


def _nested_chunk(column: Column, values: Any, numbers: Numbers) -> pa.Array:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values.cast(_nested_type(column.type, numbers))
    plain = [_plain(value, column.type, numbers) for value in values]
    return pa.array(plain, _nested_type(column.type, numbers))


def _nested_type(annotation: Any, numbers: Numbers, inside: tuple[Any, ...] = ()) -> pa.DataType:
    """Give the Arrow type of a cell that has parts.

    A record inside a record of its own kind, as the children of child orders, is JSON text:
    Arrow has no recursive types.
    """
    if _is_record(annotation):
        if annotation in inside:
            return _TEXT
        fields = [
            (one.name, _leaf_type(one, numbers, (*inside, annotation)))
            for one in columns(annotation)
        ]
        return pa.struct(fields)
    parts = get_args(annotation)
    if get_origin(annotation) is list and parts[0] is not object:
        return pa.list_(_nested_type(parts[0], numbers, inside))
    if get_origin(annotation) is tuple:
        named = zip(("first", "second"), parts, strict=True)
        return pa.struct([(name, _nested_type(part, numbers, inside)) for name, part in named])
    return {str: _ARROW_NUMBER[numbers], float: _ARROW_NUMBER[numbers]}.get(annotation, _TEXT)


def _leaf_type(column: Column, numbers: Numbers, inside: tuple[Any, ...]) -> pa.DataType:
    family = column.kind.family
    if family == "nested":
        return _nested_type(column.type, numbers, inside)
    if family == "number":
        return _ARROW_NUMBER[numbers]
    return {"time": pa.timestamp("ms", "UTC"), "integer": pa.int64(), "flag": pa.bool_()}.get(
        family, _TEXT
    )


def _plain(value: Any, annotation: Any, numbers: Numbers, inside: tuple[Any, ...] = ()) -> Any:
    """Turn a cell's JSON value into what Arrow takes for its type."""
    if value is None:
        return None
    if _is_record(annotation):
        if annotation in inside:
            return msgspec.json.encode(value).decode()
        return {
            one.name: _plain(_at(value, one.wire), one.type, numbers, (*inside, annotation))
            if one.kind.family == "nested"
            else _number(_at(value, one.wire), numbers)
            if one.kind.family == "number"
            else _at(value, one.wire)
            for one in columns(annotation)
        }
    parts = get_args(annotation)
    if get_origin(annotation) is list:
        return [_plain(item, parts[0], numbers, inside) for item in value]
    if get_origin(annotation) is tuple:
        named = zip(("first", "second"), value, parts, strict=True)
        return {name: _plain(item, part, numbers, inside) for name, item, part in named}
    return _number(value, numbers)


def _number(value: Any, numbers: Numbers) -> Any:
    if value is None or numbers == "text":
        return None if value is None else str(value)
    return float(value) if numbers == "float" else _exact([value])[0].as_py()


def _at(value: Any, wire: str) -> Any:
    for name in wire.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _is_record(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Record)


def _is_one_record(operation: Operation) -> bool:
    return get_origin(operation.answer) not in (list, tuple) and len(operation.tables) == 1


def _stand_in(record: type[Record], name: str = "") -> Operation:
    """An operation whose answer is a plain list of one record."""
    return Operation(name or record.__name__, "", "", list[record], (Table(record),))  # type: ignore[valid-type]
