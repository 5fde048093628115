"""From the values of a column to its array: one maker for each family and form of numbers."""

from collections.abc import Callable
from datetime import datetime
from decimal import Context, Decimal
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.contract.fields import Field
from toolkit.contract.value_kinds import ADDRESS, Numbers
from toolkit.frames.nested_values import EXACT, STR, TEXT, cell_type, cell_value

REFUSALS: Final = (ValueError, TypeError, ArithmeticError, pa.ArrowException)
"""The errors that `typed_array` raises for a value that its column cannot have."""

_UTC = pd.DatetimeTZDtype("ms", "UTC")
_UTC_TYPE = pa.timestamp("ms", "UTC")
_NAT = np.iinfo(np.int64).min
_LAST_DIGIT = Decimal(1).scaleb(-EXACT.scale)
_WIDE = Context(prec=400)


def column_dtype(column: Field, numbers: Numbers = "float") -> Any:
    """Return the dtype of a column, which is the same in every frame.

    Examples
    --------
    >>> from toolkit.contract.fields import record_columns
    >>> from toolkit.contract.records import Fill
    >>> [str(column_dtype(column)) for column in record_columns(Fill)[:5]]
    ['str', 'float64', 'float64', 'str', 'datetime64[ms, UTC]']
    """
    family = column.kind.family
    if family == "nested":
        return pd.ArrowDtype(cell_type(column.type, numbers))
    return _DTYPES[numbers if family == "number" else family][column.missing]


def typed_array(column: Field, values: Any, numbers: Numbers) -> Any:
    """Return the values of one page as a typed array.

    Parameters
    ----------
    column : Field
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
    REFUSALS
        If a value is not of the column's kind.
    """
    family = column.kind.family
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    is_list = isinstance(values, list) and numbers == "float" and family != "nested"
    if is_list and values[:1] == [None] and values.count(None) == len(values):  # twice as fast
        values = pa.nulls(len(values), pa.float64() if family == "number" else pa.null())
    if isinstance(values, pa.DoubleArray):
        values = values.to_numpy(zero_copy_only=False)
    if family == "number":
        return _NUMBER_ARRAYS[numbers](values)
    if family in ("time", "seconds") and isinstance(values, np.ndarray):
        array = pa.array(values.astype(np.int64))
    else:
        kind = cell_type(column.type, numbers) if family == "nested" else _ARROW_TYPES[family]
        if family == "nested" and numbers != "float" and not isinstance(values, list):
            values = values.to_pylist()  # Arrow's cast shows the noise of binary floats
        if family == "nested" and isinstance(values, list):
            values = [cell_value(value, column.type, numbers) for value in values]
        array = values.cast(kind) if isinstance(values, pa.Array) else pa.array(values, kind)
    if column.kind is ADDRESS:  # some answers have checksums
        array = pc.ascii_lower(array)
    if family in ("time", "seconds", "iso"):
        array = _iso_array(array) if family == "iso" else array
        times = np.asarray(array.fill_null(_NAT) if array.null_count else array)
        return np.where(times == _NAT, _NAT, times * 1_000) if family == "seconds" else times
    if family not in ("integer", "flag") or column.missing:
        return array
    if array.null_count:
        raise ValueError("a value is missing")
    return np.asarray(array.to_numpy(zero_copy_only=False))


def join_arrays(column: Field, chunks: list[Any], numbers: Numbers) -> Any:
    """Return the array of a frame from the arrays of all pages of a column."""
    target = column_dtype(column, numbers)
    chunks = chunks or [typed_array(column, [], numbers)]
    if not isinstance(target, np.dtype) and target is not _UTC:
        return target.__from_arrow__(pa.chunked_array(chunks))
    array = np.concatenate(chunks)  # a copy, because arrays of Arrow cannot be changed
    return pd.DatetimeIndex(array.view("M8[ms]"), tz="UTC").array if target is _UTC else array


def _float_array(values: Any) -> np.ndarray:
    if not isinstance(values, list):
        return np.array(values, dtype=np.float64)
    try:
        numbers = pa.array(values, pa.float64())
    except pa.ArrowException:  # text, as the second parts of pairs are
        floats = [None if value is None else float(value) for value in values]
        numbers = pa.array(floats, pa.float64())
    array = np.asarray(numbers.to_numpy(zero_copy_only=False))  # null becomes NaN
    if np.count_nonzero(np.isfinite(array)) + numbers.null_count < len(array):
        wrong = numbers.filter(pc.invert(pc.is_finite(numbers)))[0]
        raise ValueError(f"{wrong} is not a finite number")
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


def _iso_array(texts: pa.Array) -> pa.Array:
    """Return times of ISO 8601 as milliseconds."""
    try:
        return pc.cast(texts, _UTC_TYPE).cast(pa.int64())
    except pa.ArrowInvalid:  # another form of it, such as one without a zone
        moments = [
            None if text is None else datetime.fromisoformat(text) for text in texts.to_pylist()
        ]
        index = pd.to_datetime(pd.Series(moments, dtype="object"), utc=True)
        return pa.array(np.asarray(index.to_numpy(dtype="M8[ms]")).view(np.int64))


_NUMBER_ARRAYS: Final[dict[str, Callable[[Any], Any]]] = {
    "float": _float_array,
    "exact": _exact_array,
    "text": _number_text_array,
}
_ARROW_TYPES: Final[dict[str, pa.DataType]] = {
    **dict.fromkeys(("time", "seconds", "integer"), pa.int64()),
    **dict.fromkeys(("iso", "text"), TEXT),
    "flag": pa.bool_(),
}
_DTYPES: Final[dict[str, tuple[Any, Any]]] = {
    "float": (np.dtype("float64"), np.dtype("float64")),
    "exact": (pd.ArrowDtype(EXACT), pd.ArrowDtype(EXACT)),
    **dict.fromkeys(("time", "seconds", "iso"), (_UTC, _UTC)),
    "text": (STR, STR),
    "integer": (np.dtype("int64"), pd.Int64Dtype()),
    "flag": (np.dtype("bool"), pd.BooleanDtype()),
}
"""Family, or form of numbers -> the dtype if no value is missing, and if values may be missing."""
