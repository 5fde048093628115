"""From rows to frames: a `Collector` makes typed arrays of each page, and joins them at the end."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Context, Decimal
from typing import Any, Final, Literal, NamedTuple

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.contract.answers import AnswerTables
from toolkit.contract.columns import Column, table_columns
from toolkit.contract.field_deviations import report_unknown, report_unreadable
from toolkit.contract.operations import Operation, Table
from toolkit.contract.value_kinds import ADDRESS, Family, Numbers
from toolkit.errors import AnswerInvalid
from toolkit.frames.nested_values import EXACT, STR, TEXT, cell_type, cell_value, field_type
from toolkit.frames.provenance import Provenance
from toolkit.frames.unknown_columns import (
    ExtraValues,
    extra_columns,
    gather_cell_extras,
    gather_extras,
    gather_unplaced_fields,
)
from toolkit.installation import package_version

__all__ = ["Collector", "Extra", "FrameBuilder", "column_dtype"]

Extra = Literal["drop", "keep"]
"""Whether unknown fields are dropped or kept as columns."""

_REFUSALS: Final = (ValueError, TypeError, ArithmeticError, pa.ArrowException)
"""The errors that `_typed_array` raises for a value that its column cannot have."""

_UTC = pd.DatetimeTZDtype("ms", "UTC")
_UTC_TYPE = pa.timestamp("ms", "UTC")
_NAT = np.iinfo(np.int64).min
_LAST_DIGIT = Decimal(1).scaleb(-EXACT.scale)
_WIDE = Context(prec=400)
_NUMBER: Final[dict[str, Any]] = {
    "float": np.dtype("float64"),
    "exact": pd.ArrowDtype(EXACT),
    "text": STR,
}
_ARROW_TYPES: Final[dict[Family, pa.DataType]] = {
    "integer": pa.int64(),
    "flag": pa.bool_(),
    "text": TEXT,
}
# Family -> the dtype if no value is missing, and if values may be missing.
_DTYPES: Final[dict[Family, tuple[Any, Any]]] = {
    "time": (_UTC, _UTC),
    "seconds": (_UTC, _UTC),
    "iso": (_UTC, _UTC),
    "integer": (np.dtype("int64"), pd.Int64Dtype()),
    "flag": (np.dtype("bool"), pd.BooleanDtype()),
    "text": (STR, STR),
}


def column_dtype(column: Column, numbers: Numbers = "float") -> Any:
    """Return the dtype of a column, which is the same in every frame.

    Examples
    --------
    >>> from toolkit.contract.columns import record_columns
    >>> from toolkit.contract.records import Fill
    >>> [str(column_dtype(column)) for column in record_columns(Fill)[:5]]
    ['str', 'float64', 'float64', 'str', 'datetime64[ms, UTC]']
    """
    if column.kind.family == "number":
        return _NUMBER[numbers]
    if column.kind.family == "nested":
        return pd.ArrowDtype(cell_type(column.type, numbers))
    return _DTYPES[column.kind.family][column.missing]


class Collector:
    """Collects the pages of one answer and makes its frames at the end.

    Parameters
    ----------
    operation : Operation
        The operation of the request; errors name it.
    numbers : {"float", "exact", "text"}
        The form of numbers.
    extra : {"drop", "keep"}
        Whether unknown fields become columns, after the known ones.
    """

    def __init__(self, operation: Operation, numbers: Numbers, extra: Extra = "drop") -> None:
        self.operation = operation
        self.numbers = numbers
        self.extra = extra
        self._builders = [
            FrameBuilder(table, operation.type, numbers) for table in operation.tables
        ]
        self._pages: list[_PageChunks] = []
        self._unplaced: dict[str, list[str]] = {}

    @property
    def rows(self) -> int:
        """The number of rows of the first table so far."""
        return self._pages[-1].rows if self._pages else 0

    def add(self, tables: Sequence[Any]) -> None:
        """Add one page: for each table of the operation its rows, or its columns by name.

        An interruption leaves complete pages only, because the page is added in a single step.
        """
        pairs = list(zip(self._builders, tables, strict=True))
        chunks = [builder.chunks(rows) for builder, rows in pairs]
        extras = [
            (len(arrays[0]), self._extras(builder, rows))
            for arrays, (builder, rows) in zip(chunks, pairs, strict=True)
        ]
        if self.extra == "keep" and isinstance(tables, AnswerTables):
            self._unplaced |= gather_unplaced_fields(tables.answer, tables)
        self._pages.append(_PageChunks(self.rows + len(chunks[0][0]), chunks, extras))

    def _extras(self, builder: "FrameBuilder", rows: Any) -> ExtraValues:
        """Return the unknown fields of a page if they are kept, and report those inside cells."""
        if isinstance(rows, Mapping):  # columns of a snapshot, or of an archive
            known = {column.name for column in builder.columns} if self.extra == "keep" else rows
            return {(*name.split(".", 1),): rows[name] for name in rows if name not in known}
        in_cells = builder.cell_extras(rows)
        for path in in_cells:  # decoding has reported all others
            report_unknown(self.operation.type, ".".join(path))
        return gather_extras(rows) | in_cells if self.extra == "keep" else {}

    def last_page(self) -> list[dict[str, Any]]:
        """Return the columns of each table on the last page: name -> array."""
        return [
            {column.name: array for column, array in zip(builder.columns, arrays, strict=True)}
            for builder, arrays in zip(self._builders, self._pages[-1].chunks, strict=True)
        ]

    def frames(self, provenance: Mapping[str, Any]) -> tuple[pd.DataFrame, ...]:
        """Return the frames with `provenance` in their attrs; a second call is possible."""
        frames = tuple(
            builder.frame(
                [page.chunks[at] for page in self._pages], [page.extras[at] for page in self._pages]
            )
            for at, builder in enumerate(self._builders)
        )
        for builder, frame in zip(self._builders, frames, strict=True):
            version = package_version()
            facts = {**provenance, "rows": len(frame), "toolkit_version": version}
            if missing := builder.count_missing(frame):
                facts["missing_fields"] = missing
            if self._unplaced:
                facts["unknown_fields"] = self._unplaced
            frame.attrs["toolkit"] = Provenance(facts)
        return frames


class _PageChunks(NamedTuple):
    """One page: the rows up to its end, and the columns and extras of each table."""

    rows: int
    chunks: list[list[Any]]
    extras: list[tuple[int, ExtraValues]]


class FrameBuilder:
    """Builds the columns of one frame, page by page."""

    def __init__(self, table: Table, operation: str, numbers: Numbers) -> None:
        self.columns = table_columns(table)
        self.operation = operation
        self.numbers = numbers
        self._paths = dict.fromkeys(
            path for column in self.columns for path in (column.path, column.older) if path
        )
        self._joined: dict[str, Any] = {}

    def chunks(self, rows: Any) -> list[Any]:
        """Return the columns of a page."""
        arrays = []
        for column, values in zip(self.columns, self._by_column(rows), strict=True):
            try:
                arrays.append(_typed_array(column, values, self.numbers))
            except _REFUSALS as error:
                if not column.beyond:
                    raise self._invalid(column, values, error) from None
                arrays.append(_typed_array(column, self._readable(column, values), self.numbers))
        return arrays

    def cell_extras(self, rows: Any) -> ExtraValues:
        """Return the unknown fields of the records in cells."""
        cells = [column for column in self.columns if column.kind.family == "nested"]
        by_path = _values_by_path([column.path for column in cells], rows) if cells else {}
        return {
            path: values
            for column in cells
            for path, values in gather_cell_extras(column, by_path[column.path]).items()
        }

    def _readable(self, column: Column, values: Sequence[Any]) -> list[Any]:
        """Return the values of a column beyond the specification, with None for unreadable ones."""
        kept = list(values)
        for row, value in enumerate(kept):
            try:
                _typed_array(column, [value], self.numbers)
            except _REFUSALS:
                report_unreadable(self.operation, column.wire, value, column.kind.name)
                kept[row] = None
        return kept

    def _by_column(self, rows: Any) -> list[Any]:
        if isinstance(rows, Mapping):
            return [rows[column.name] for column in self.columns]
        by_path = _values_by_path(self._paths, rows)
        return [_column_values(column, by_path) for column in self.columns]

    def frame(
        self, pages: Sequence[list[Any]], extras: Sequence[tuple[int, ExtraValues]]
    ) -> pd.DataFrame:
        """Return the frame of all pages; this frees the columns of the pages column by column."""
        for at, column in enumerate(self.columns):
            if column.name not in self._joined:
                self._joined[column.name] = _join_arrays(
                    column, [page[at] for page in pages], self.numbers
                )
            for page in pages:
                page[at] = None
        has_extras = any(fields for _, fields in extras)
        further = dict(extra_columns(extras, self._joined)) if has_extras else {}
        return pd.DataFrame(self._joined | further, copy=False)

    def count_missing(self, frame: pd.DataFrame) -> dict[str, int]:
        """Return in how many rows a value is missing that the specification has in every row."""
        expected = [column.name for column in self.columns if column.expected and column.missing]
        counts = {name: int(frame[name].isna().sum()) for name in expected}
        return {name: count for name, count in counts.items() if count}

    def _invalid(self, column: Column, values: Any, error: Exception) -> AnswerInvalid:
        row, value = _first_invalid(column, values, self.numbers)
        reason = (
            "a value is missing, and this column needs one in every row"
            if row is not None and value is None
            else f"not a legal {column.kind.name}: {error}"
        )
        return AnswerInvalid(
            reason,
            operation=self.operation,
            column=column.name,
            row=row,
            value=value,
        )


def _typed_array(column: Column, values: Any, numbers: Numbers) -> Any:
    """Return the values of one page as a typed array.

    Parameters
    ----------
    column : Column
        The column of the values.
    values : list, numpy.ndarray or pyarrow.Array
        The values; a missing value is None, or NaN in arrays of floats.
    numbers : {"float", "exact", "text"}
        The form of numbers.

    Returns
    -------
    numpy.ndarray or pyarrow.Array
        Times are whole milliseconds.

    Raises
    ------
    _REFUSALS
        If a value is not of the column's kind.
    """
    family = column.kind.family
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.DoubleArray):
        values = values.to_numpy(zero_copy_only=False)
    if column.missing and _is_all_missing(values):
        return _missing_array(column, len(values), numbers)
    if family == "number":
        return _NUMBER_ARRAYS[numbers](values)
    if family in _TIME_ARRAYS:
        return _TIME_ARRAYS[family](values)
    if family == "nested":
        return _cell_array(column, values, numbers)
    array = _arrow_array(values, _ARROW_TYPES[family])
    if column.kind is ADDRESS:  # some answers have checksums
        array = pc.ascii_lower(array)
    if column.missing or family == "text":
        return array
    if array.null_count:
        raise ValueError("a value is missing")
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _join_arrays(column: Column, chunks: list[Any], numbers: Numbers) -> Any:
    """Return the array of a frame from the arrays of all pages of a column."""
    target = column_dtype(column, numbers)
    chunks = chunks or [_typed_array(column, [], numbers)]
    if target is _UTC:
        moments = np.concatenate(chunks).view("M8[ms]")
        return pd.DatetimeIndex(moments, copy=False).tz_localize("UTC").array
    if isinstance(target, np.dtype):
        return np.concatenate(chunks)
    return target.__from_arrow__(pa.chunked_array(chunks))


def _missing_array(column: Column, count: int, numbers: Numbers) -> Any:
    """Return the array of a column in which every value is missing."""
    target = column_dtype(column, numbers)
    if target is _UTC:
        return np.full(count, _NAT)
    if isinstance(target, np.dtype):
        return np.full(count, np.nan)
    return pa.nulls(count, _ARROW_TYPES.get(column.kind.family) or field_type(column, numbers))


def _float_array(values: Any) -> np.ndarray:
    if not isinstance(values, list):
        return np.array(values, dtype=np.float64)
    try:
        numbers = pa.array(values, pa.float64())
    except pa.ArrowException:  # text, as the second parts of pairs are
        floats = [None if value is None else float(value) for value in values]
        numbers = pa.array(floats, pa.float64())
    array = np.asarray(numbers.to_numpy(zero_copy_only=False))  # null becomes NaN
    if not np.isfinite(array).all():
        for i in np.flatnonzero(~np.isfinite(array)):
            if values[i] is not None:
                raise ValueError(f"{values[i]} is not a finite number")
    return array


def _exact_array(values: Any) -> pa.Array:
    if isinstance(values, np.ndarray):
        values = [None if value != value else Decimal(repr(float(value))) for value in values]
    try:
        texts = pa.array(values, TEXT)
    except pa.ArrowException:  # a JSON number
        texts = pa.array([_exact_text(value) for value in values], TEXT)
    try:
        return pc.cast(texts, EXACT)
    except pa.ArrowInvalid as error:
        raise ValueError(
            f"{error}; exact numbers have {EXACT.scale} digits after the point and "
            f"{EXACT.precision - EXACT.scale} before it. Fetch with numbers='text' or 'float'"
        ) from None


def _number_text_array(values: Any) -> pa.Array:
    """Return numbers as decimal text; for a float the shortest text with the same value."""
    if isinstance(values, np.ndarray):
        values = [None if value != value else repr(float(value)) for value in values]
    try:
        return pa.array(values, TEXT)
    except pa.ArrowException:  # a JSON number
        return pa.array([None if value is None else str(value) for value in values], TEXT)


def _exact_text(value: Any) -> str | None:
    """Return the text of a number for the exact form.

    A number from JSON is a float, so it is rounded to 18 decimals: its further digits have no
    meaning.
    """
    if not isinstance(value, Decimal):
        return None if value is None else str(value)
    return format(value.quantize(_LAST_DIGIT, context=_WIDE), "f") if value.is_finite() else "nan"


def _millisecond_array(values: Any) -> np.ndarray:
    if isinstance(values, np.ndarray):
        return values.astype(np.int64)
    array = _arrow_array(values, pa.int64())
    return np.asarray(array.fill_null(_NAT) if array.null_count else array)


def _second_array(values: Any) -> np.ndarray:
    array = _millisecond_array(values)
    return np.where(array == _NAT, _NAT, array * 1_000)


def _iso_array(values: Any) -> np.ndarray:
    texts = _arrow_array(values, TEXT)
    try:
        array = pc.cast(texts, _UTC_TYPE)
    except pa.ArrowInvalid:  # another form of ISO 8601, such as one without a zone
        moments = [
            None if text is None else datetime.fromisoformat(text) for text in texts.to_pylist()
        ]
        index = pd.to_datetime(pd.Series(moments, dtype="object"), utc=True)
        return np.asarray(index.to_numpy(dtype="M8[ms]")).view(np.int64)
    return _millisecond_array(array.cast(pa.int64()))


def _cell_array(column: Column, values: Any, numbers: Numbers) -> pa.Array:
    arrow_type = cell_type(column.type, numbers)
    if numbers != "float" and not isinstance(values, list):
        values = values.to_pylist()  # Arrow's cast shows the noise of binary floats
    if isinstance(values, list):
        values = [cell_value(value, column.type, numbers) for value in values]
    return _arrow_array(values, arrow_type)


def _arrow_array(values: Any, arrow_type: pa.DataType) -> Any:
    return values.cast(arrow_type) if isinstance(values, pa.Array) else pa.array(values, arrow_type)


_NUMBER_ARRAYS: Final[dict[str, Callable[[Any], Any]]] = {
    "float": _float_array,
    "exact": _exact_array,
    "text": _number_text_array,
}
_TIME_ARRAYS: Final[dict[Family, Callable[[Any], Any]]] = {
    "time": _millisecond_array,
    "seconds": _second_array,
    "iso": _iso_array,
}


def _column_values(column: Column, by_path: Mapping[str, list[Any]]) -> list[Any]:
    """Return the values of one column, with its default or its older place for missing ones."""
    values = by_path[column.path]
    if column.default is not None and None in values:
        values = [column.default if value is None else value for value in values]
    if column.older and not _is_all_missing(older := by_path[column.older]):
        values = [old if new is None else new for new, old in zip(values, older, strict=True)]
    return values


def _values_by_path(paths: Iterable[str], objects: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the values at some places of records; None if a nested record around is missing."""
    inner: dict[str, list[str]] = {}
    for path in paths:
        name, _, rest = path.partition(".")
        inner.setdefault(name, []).append(rest)
    fields = _field_values(inner, objects)
    found: dict[str, list[Any]] = {}
    for name, rests in inner.items():
        values = fields[name]
        if rests == [""]:
            found[name] = values
        elif _is_all_missing(values):  # for example, most fills have no liquidation
            found |= {f"{name}.{rest}": values for rest in rests}
        else:
            present = [value for value in values if value is not None]
            for rest, parts in _values_by_path(rests, present).items():
                if len(present) < len(values):
                    part = iter(parts)
                    parts = [None if value is None else next(part) for value in values]
                found[f"{name}.{rest}"] = parts
    return found


def _field_values(names: Iterable[str], objects: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the values of some fields of the records of one table."""
    record_type = type(objects[0]) if len(objects) else None
    if record_type is not None and issubclass(record_type, msgspec.Struct):
        places = {name: place for place, name in enumerate(record_type.__struct_fields__)}
        # One long list of all fields: several times as fast as a look at each field.
        flat: list[Any] = []
        for record in objects:
            flat += msgspec.structs.astuple(record)
        # Some records may have unknown fields after the known ones, and others not.
        if len(flat) == len(objects) * len(places):
            return {name: flat[places[name] :: len(places)] for name in names}
    return {name: [getattr(record, name) for record in objects] for name in names}


def _is_all_missing(values: Sequence[Any]) -> bool:
    return isinstance(values, list) and values[:1] == [None] and values.count(None) == len(values)


def _first_invalid(column: Column, values: Any, numbers: Numbers) -> tuple[int | None, Any]:
    plain = values.to_pylist() if isinstance(values, pa.Array | pa.ChunkedArray) else values
    for row, value in enumerate(plain):
        try:
            _typed_array(column, [value], numbers)
        except _REFUSALS:
            return row, value
    return None, None
