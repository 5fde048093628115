"""Rows of the archive from columns: of a frame, or of a file of somebody else.

The texts of the rows are made by column, and the columns of the archive are the given ones. No
text is decoded, so that this is several times as fast as making columns from texts.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, get_args, get_origin

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.archive.schemas import SCHEMAS, RowOrigin, Series, column_set_id, operation_table
from toolkit.contract.columns import Column, record_columns, table_columns
from toolkit.contract.operations import Operation
from toolkit.contract.records import Record
from toolkit.errors import ArchiveError

__all__ = ["json_texts", "nan_to_null", "place_rows", "table_rows"]

_MILLISECONDS: Final = pa.timestamp("ms", "UTC")


def table_rows(operation: Operation, columns: pa.Table, origin: RowOrigin) -> pa.Table:
    """Return rows in the form of the archive's table, without their series and their run.

    Parameters
    ----------
    operation : Operation
        The operation.
    columns : pyarrow.Table
        The columns of its frame, in order. Times are timestamps or Unix milliseconds.
    origin : RowOrigin
        Where the rows come from.

    Raises
    ------
    ArchiveError
        If a value is missing that every row has.
    """
    table, known = operation_table(operation), {}
    wire = table_columns(operation.tables[0])
    for column in wire:
        cells = nan_to_null(columns[column.name].combine_chunks())
        if pa.types.is_decimal(cells.type):
            cells = _decimal_texts(cells)
        place = columns.schema.get_field_index(column.name)
        columns = columns.set_column(place, column.name, cells)
        if cells.null_count and not column.missing:
            if column.default is None:
                raise ArchiveError(
                    f"{operation.type}: {cells.null_count} rows have no {column.name}"
                )
            known[column.name] = pc.fill_null(_typed_cells(column, cells), column.default)
        elif column.name in SCHEMAS[table].names:
            known[column.name] = _typed_cells(column, cells)
    count = columns.num_rows
    values = {
        "_json": json_texts(operation, columns).cast(pa.string()),
        "_columns": column_set_id(table),
        **origin.columns,
    }
    fields = [field for field in SCHEMAS[table] if field.name not in _RUN_COLUMNS]
    arrays = []
    for field in fields:
        value = known.get(field.name, values.get(field.name))
        if isinstance(value, pa.Array):
            arrays.append(value.cast(field.type))
        elif isinstance(value, pa.ChunkedArray):
            arrays.append(value.combine_chunks().cast(field.type))
        else:
            arrays.append(pa.repeat(pa.scalar(value, field.type), count))
    return pa.table(arrays, schema=pa.schema(fields))


_RUN_COLUMNS: Final = ("_operation", "_subject", "_part", "_row")


def place_rows(series: Series, rows: pa.Table, run_start: int, first: int) -> pa.Table:
    """Return rows of `table_rows` with their series and their place in a run."""
    count = rows.num_rows
    places = {
        "_operation": pa.repeat(series.operation.type, count),
        "_subject": pa.repeat(series.subject, count),
        "_part": pa.repeat(pa.scalar(run_start, pa.int64()), count),
        "_row": pa.array(np.arange(first, first + count)),
    }
    schema = SCHEMAS[series.table]
    names = schema.names
    columns = [places[name] if name in places else rows[name] for name in names]
    return pa.table(columns, schema=schema)


def nan_to_null(cells: Any) -> Any:
    """Return cells in which a float that is not a number is missing."""
    if not pa.types.is_floating(cells.type):
        return cells
    return pc.if_else(pc.is_nan(cells), pa.scalar(None, cells.type), cells)


def _typed_cells(column: Column, cells: Any) -> Any:
    """Return the cells of a column in the type of the archive."""
    family = column.kind.family
    if family == "number" and not pa.types.is_floating(cells.type):
        if not _is_text(cells):
            cells = pa.array([None if cell is None else float(cell) for cell in cells.to_pylist()])
        return cells.cast(pa.float64())
    if family == "time":
        return _milliseconds(cells).cast(_MILLISECONDS)
    return cells


def _decimal_texts(cells: Any) -> Any:
    """Return decimals as texts without trailing zeros."""
    texts = cells.cast(pa.string())
    if cells.type.scale <= 0:
        return texts
    has_exponent = pc.fill_null(pc.match_substring(texts, "E"), fill_value=False)
    texts = pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".")
    if not pc.any(has_exponent).as_py():
        return texts
    # Arrow writes small decimals with an exponent; the service does not.
    small = pa.array(map(_number_text, cells.filter(has_exponent).to_pylist()), pa.string())
    return pc.replace_with_mask(texts, has_exponent, small)


def _milliseconds(cells: Any) -> Any:
    """Return times as Unix milliseconds."""
    if pa.types.is_integer(cells.type):
        return cells.cast(pa.int64())
    return cells.cast(_MILLISECONDS, safe=False).cast(pa.int64())


def json_texts(operation: Operation, columns: pa.Table) -> Any:
    """Return rows as JSON texts of the wire; missing cells are left out."""
    fields: dict[str, list[Any]] = defaultdict(list)  # object inside the row -> its fields
    for column in table_columns(operation.tables[0]):
        cells = columns[column.name].combine_chunks()
        if cells.null_count == len(cells):
            continue
        outer, _, name = column.wire.rpartition(".")
        comma_name = pa.scalar(f',"{name}":')
        texts = pc.binary_join_element_wise(comma_name, _cell_texts(column, cells), "")
        fields[outer].append(pc.fill_null(texts, "") if texts.null_count else texts)
    rows = fields.pop("", [])
    for name, parts in fields.items():
        objects = _json_objects(parts)  # an object without fields is left out
        objects = pc.if_else(pc.equal(objects, "{}"), pa.scalar(None, pa.string()), objects)
        object_texts = pc.binary_join_element_wise(f',"{name}":', objects, "")
        rows.append(pc.fill_null(object_texts, ""))
    return _json_objects(rows)


def _json_objects(fields: Sequence[Any]) -> Any:
    """Return objects with fields, each of which has a comma before it."""
    joined = pc.binary_join_element_wise(*fields, "")
    opened = pc.binary_replace_slice(joined, 0, 1, "{")  # in place of the first comma
    return pc.binary_join_element_wise(opened, "}", "")


def _cell_texts(column: Column, cells: Any) -> Any:
    """Return the cells of a column as JSON texts. They are made by Arrow, if it can."""
    family = column.kind.family
    if family == "time":
        return _milliseconds(cells).cast(pa.string())
    if family in ("integer", "flag") and not pa.types.is_floating(cells.type):
        return cells.cast(pa.string())
    if family == "number" and pa.types.is_floating(cells.type):
        cells = cells.cast(pa.float64()).cast(pa.string())  # the shortest text of the same number
        if column.type is not str:
            return cells
    if family == "number" and column.type is str and not _is_text(cells):
        numbers = [None if cell is None else _number_text(cell) for cell in cells.to_pylist()]
        cells = pa.array(numbers, pa.string())
    is_plain = family == "text" or (family == "number" and column.type is str)
    if is_plain and _is_text(cells) and not _has_escapes(cells):
        return pc.binary_join_element_wise('"', cells.cast(pa.string()), '"', "")
    values = [
        None
        if cell is None
        else msgspec.json.encode(_wire_value(family, column.type, cell)).decode()
        for cell in cells.to_pylist()
    ]
    return pa.array(values, pa.string())


def _is_text(cells: Any) -> bool:
    return bool(pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type))


def _has_escapes(cells: Any) -> bool:
    """Return whether a text has a character that JSON escapes."""
    return bool(pc.any(pc.match_substring_regex(cells, r'["\\\x00-\x1f]')).as_py())


def _wire_record(columns: Sequence[Column], cells: Mapping[str, Any]) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for column in columns:
        if (value := cells[column.name]) is None:
            continue
        target = record
        *outer, last = column.wire.split(".")
        for name in outer:
            target = target.setdefault(name, {})
        target[last] = _wire_value(column.kind.family, column.type, value)
    return record


def _wire_value(family: str, type: Any, value: Any) -> Any:
    """Return a cell in the form of the wire, including the records and lists inside it."""
    if family == "nested":
        return _nested_wire_value(type, value)
    if family == "time":
        return pd.Timestamp(value).value // 1_000_000
    if family == "number":
        return _number_text(value) if type is str else float(value)
    return value


def _nested_wire_value(type: Any, value: Any) -> Any:
    """Reverse `toolkit.frames.cells.cell_value`."""
    parts = get_args(type)
    if get_origin(type) is list:
        return [_nested_wire_value(parts[0], item) for item in value]
    if get_origin(type) is tuple:
        return [
            _nested_wire_value(part, item) for part, item in zip(parts, value.values(), strict=True)
        ]
    if parts or not issubclass(type, Record):
        return _number_text(value)
    # A record inside a record of the same type is JSON text in the cell.
    if isinstance(value, str):
        return msgspec.json.decode(value)
    return _wire_record(record_columns(type), value)


def _number_text(value: Any) -> str:
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    return value if isinstance(value, str) else repr(value)
