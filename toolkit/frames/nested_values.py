"""Nested cells: lists and records inside one value, as Arrow types."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, get_args, get_origin

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa

from toolkit.contract.fields import Field, is_record, record_columns
from toolkit.contract.value_kinds import EXACT_PRECISION, EXACT_SCALE, Numbers

EXACT: Final = pa.decimal128(EXACT_PRECISION, EXACT_SCALE)
"""The Arrow type of exact numbers."""

TEXT: Final = pa.large_string()
"""The Arrow type of text."""

STR: Any = pd.StringDtype("pyarrow", na_value=np.nan)
"""The pandas type of text."""

_NUMBER: Final[dict[str, pa.DataType]] = {"float": pa.float64(), "exact": EXACT, "text": TEXT}
_OTHER: Final[dict[str, pa.DataType]] = {
    "time": pa.timestamp("ms", "UTC"),
    "integer": pa.int64(),
    "flag": pa.bool_(),
}
_PAIR: Final = ("first", "second")


def cell_type(annotation: Any, numbers: Numbers, inside: tuple[Any, ...] = ()) -> pa.DataType:
    """Return the Arrow type of a cell.

    Arrow has no recursive types. A record inside a record of the same type, such as the children of
    child orders, is therefore JSON text. A value of unknown type is JSON text, too.

    Parameters
    ----------
    annotation : object
        The Python type of the value.
    numbers : {"float", "exact", "text"}
        The form of numbers.
    inside : tuple
        The records around the value.
    """
    if _is_any(annotation) or annotation in inside:
        return TEXT
    if is_record(annotation):
        around = (*inside, annotation)
        return pa.struct(
            [
                (column.name, field_type(column, numbers, around))
                for column in record_columns(annotation)
            ]
        )
    parts = get_args(annotation)
    if get_origin(annotation) is list:
        return pa.list_(cell_type(parts[0], numbers, inside))
    if get_origin(annotation) is tuple:
        types = [cell_type(part, numbers, inside) for part in parts]
        return pa.struct(list(zip(_PAIR, types, strict=True)))
    leaves = {int: pa.int64(), str: _NUMBER[numbers], float: _NUMBER[numbers]}
    return leaves.get(annotation, TEXT)


def cell_value(value: Any, annotation: Any, numbers: Numbers, inside: tuple[Any, ...] = ()) -> Any:
    """Return a JSON value as Arrow needs it for `cell_type` with the same arguments."""
    if value is None or annotation is int:
        return value
    if _is_any(annotation) or annotation in inside:
        return msgspec.json.encode(value).decode()
    if is_record(annotation):
        around = (*inside, annotation)
        return {
            column.name: _field_value(value, column, numbers, around)
            for column in record_columns(annotation)
        }
    parts = get_args(annotation)
    if get_origin(annotation) is list:
        return [cell_value(item, parts[0], numbers, inside) for item in value]
    if get_origin(annotation) is tuple:
        pairs = zip(_PAIR, value, parts, strict=True)
        return {name: cell_value(item, part, numbers, inside) for name, item, part in pairs}
    return _number_value(value, numbers)


def field_type(column: Field, numbers: Numbers, inside: tuple[Any, ...] = ()) -> pa.DataType:
    """Return the Arrow type of the values of a column."""
    if column.kind.family == "nested":
        return cell_type(column.type, numbers, inside)
    if column.kind.family == "number":
        return _NUMBER[numbers]
    return _OTHER.get(column.kind.family, TEXT)


def _field_value(record: Any, column: Field, numbers: Numbers, inside: tuple[Any, ...]) -> Any:
    value = record
    for name in column.wire.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    if column.kind.family == "nested":
        return cell_value(value, column.type, numbers, inside)
    return _number_value(value, numbers) if column.kind.family == "number" else value


def _number_value(value: Any, numbers: Numbers) -> Any:
    if value is None:
        return None
    return {"float": float, "exact": Decimal, "text": str}[numbers](str(value))


def _is_any(annotation: Any) -> bool:
    """Return whether a value, or each entry of a list, has an unknown type."""
    return annotation is object or get_args(annotation) == (object,)
