"""The values of one column as a typed array: page by page, then joined."""

from collections.abc import Callable
from datetime import datetime
from decimal import Context, Decimal
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.contract.columns import Column
from toolkit.contract.kinds import Family, Numbers
from toolkit.frames.cells import EXACT, TEXT, cell_type, cell_value

__all__ = ["REFUSALS", "column_dtype", "join_arrays", "typed_array"]

REFUSALS: Final = (ValueError, TypeError, ArithmeticError, pa.ArrowException)
"""What `typed_array` raises on a value that its column cannot hold."""

_STR = pd.StringDtype("pyarrow", na_value=np.nan)
_UTC = pd.DatetimeTZDtype("ms", "UTC")
_NAT = np.iinfo(np.int64).min
_LAST_DIGIT = Decimal(1).scaleb(-EXACT.scale)
_WIDE = Context(prec=400)
_NUMBER: Final[dict[str, Any]] = {
    "float": np.dtype("float64"),
    "exact": pd.ArrowDtype(EXACT),
    "text": _STR,
}
# Family -> the dtype where every value is there, and where one may be missing.
_DTYPES: Final[dict[Family, tuple[Any, Any]]] = {
    "time": (_UTC, _UTC),
    "seconds": (_UTC, _UTC),
    "iso": (_UTC, _UTC),
    "integer": (np.dtype("int64"), pd.Int64Dtype()),
    "flag": (np.dtype("bool"), pd.BooleanDtype()),
    "text": (_STR, _STR),
}


def column_dtype(column: Column, numbers: Numbers = "float") -> Any:
    """Give the dtype that a column has in every frame.

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


def typed_array(column: Column, values: Any, numbers: Numbers) -> Any:
    """Turn the values of one page into a typed array.

    Parameters
    ----------
    column : Column
        What they are.
    values : list, numpy.ndarray or pyarrow.Array
        The values; missing ones are None, NaN in arrays of floats.
    numbers : {"float", "exact", "text"}
        The form of numbers.

    Returns
    -------
    numpy.ndarray or pyarrow.Array
        Times are whole milliseconds.

    Raises
    ------
    REFUSALS
        If a value is not of the column's kind.
    """
    family = column.kind.family
    if family == "number":
        return _NUMBERS[numbers](values)
    if family in _TIMES:
        return _TIMES[family](values)
    if family == "nested":
        return _cells(column, values, numbers)
    if family == "text":
        return _arrow(values, TEXT)
    array = _arrow(values, pa.int64() if family == "integer" else pa.bool_())
    if column.missing:
        return array
    if array.null_count:
        raise ValueError("a value is missing")
    return np.asarray(array.to_numpy(zero_copy_only=False))


def join_arrays(column: Column, chunks: list[Any], numbers: Numbers) -> Any:
    """Join the pages of a column to the array that stands in the frame."""
    target = column_dtype(column, numbers)
    chunks = chunks or [typed_array(column, [], numbers)]
    if target is _UTC:
        moments = np.concatenate(chunks).view("M8[ms]")
        return pd.DatetimeIndex(moments, copy=False).tz_localize("UTC").array
    if isinstance(target, np.dtype):
        return np.concatenate(chunks)
    return target.__from_arrow__(pa.chunked_array(chunks))


def _floats(values: Any) -> np.ndarray:
    if isinstance(values, list) and values and values.count(None) == len(values):
        return np.full(len(values), np.nan)
    if isinstance(values, list) and None in values:
        try:
            made = pa.array(values, pa.float64())
        except pa.ArrowException:  # text, as the second parts of pairs are
            made = pa.array(
                [None if value is None else float(value) for value in values], pa.float64()
            )
        values_or_nan = made.to_numpy(zero_copy_only=False)
        array = np.asarray(values_or_nan, dtype=np.float64)
    else:
        array = np.array(values, dtype=np.float64)
    if isinstance(values, list) and not np.isfinite(array).all():
        for i in np.flatnonzero(~np.isfinite(array)):
            if values[i] is not None:
                raise ValueError(f"{values[i]} is not a number")
    return array


def _exact(values: Any) -> pa.Array:
    if isinstance(values, np.ndarray):
        values = [None if value != value else Decimal(repr(float(value))) for value in values]
    texts = [_rounded(value) for value in values]
    try:
        return pc.cast(pa.array(texts, pa.string()), EXACT)
    except pa.ArrowInvalid as error:
        raise ValueError(
            f"{error}; exact numbers hold {EXACT.scale} digits after the point and "
            f"{EXACT.precision - EXACT.scale} before it: fetch with numbers='text' or 'float'"
        ) from None


def _text_numbers(values: Any) -> pa.Array:
    return pa.array(_wire_text(values), TEXT)


def _rounded(value: Any) -> str | None:
    """Write a number for the exact form: decimal text as it is, JSON numbers to its last digit.

    A JSON number stands for a binary float, whose digits past the 18th carry nothing.
    """
    if not isinstance(value, Decimal):
        return None if value is None else str(value)
    return format(value.quantize(_LAST_DIGIT, context=_WIDE), "f") if value.is_finite() else "nan"


def _wire_text(values: Any) -> list[str | None]:
    """Give numbers as decimal text; of floats the shortest that reads back the same."""
    if isinstance(values, np.ndarray):
        return [None if value != value else repr(float(value)) for value in values]
    return [None if value is None else str(value) for value in values]


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
    return np.asarray(index.to_numpy(dtype="M8[ms]")).view(np.int64)


def _cells(column: Column, values: Any, numbers: Numbers) -> pa.Array:
    kind = cell_type(column.type, numbers)
    if numbers != "float" and not isinstance(values, list):
        values = values.to_pylist()  # Arrow's own cast would show the noise of binary floats
    if isinstance(values, list):
        values = [cell_value(value, column.type, numbers) for value in values]
    return _arrow(values, kind)


def _arrow(values: Any, kind: pa.DataType) -> Any:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return values.cast(kind) if isinstance(values, pa.Array) else pa.array(values, kind)


_NUMBERS: Final[dict[str, Callable[[Any], Any]]] = {
    "float": _floats,
    "exact": _exact,
    "text": _text_numbers,
}
_TIMES: Final[dict[Family, Callable[[Any], Any]]] = {
    "time": _milliseconds,
    "seconds": _seconds,
    "iso": _iso,
}
