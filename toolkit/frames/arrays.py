"""From the values of a column to its array, by its family and the form of numbers.

A page becomes arrays of Arrow, and a frame joins those of all pages. Cells with parts, which are
lists and records inside one value, are nested arrays.
"""

import itertools
from collections.abc import Mapping
from datetime import datetime
from decimal import Context, Decimal
from typing import Any, Final, get_args, get_origin

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.contract.fields import Field, is_record, record_columns
from toolkit.contract.value_kinds import ADDRESS, EXACT_PRECISION, EXACT_SCALE, Numbers

EXACT: Final = pa.decimal128(EXACT_PRECISION, EXACT_SCALE)
"""The Arrow type of exact numbers."""

TEXT: Final = pa.large_string()
"""The Arrow type of text."""

STR: Any = pd.StringDtype("pyarrow", na_value=np.nan)
"""The pandas type of text."""

REFUSALS: Final = (ValueError, TypeError, ArithmeticError, pa.ArrowException)
"""The errors that `typed_array` raises for a value that its column cannot have."""

_UTC_TYPE = pa.timestamp("ms", "UTC")
_UTC = pd.DatetimeTZDtype("ms", "UTC")
_LAST_DIGIT = Decimal(1).scaleb(-EXACT.scale)
_WIDE = Context(prec=400)

_TYPES: Final[dict[str, pa.DataType]] = {
    "float": pa.float64(),
    "exact": EXACT,
    "time": _UTC_TYPE,
    **dict.fromkeys(("seconds", "integer"), pa.int64()),
    "flag": pa.bool_(),
}
"""Family, or form of numbers -> the type of its values in Arrow; text of all others."""

_DTYPES: Final[dict[str, tuple[Any, Any]]] = {
    "float": (np.dtype("float64"), np.dtype("float64")),
    "exact": (pd.ArrowDtype(EXACT), pd.ArrowDtype(EXACT)),
    **dict.fromkeys(("time", "seconds", "iso"), (_UTC, _UTC)),
    "text": (STR, STR),
    "integer": (np.dtype("int64"), pd.Int64Dtype()),
    "flag": (np.dtype("bool"), pd.BooleanDtype()),
}
"""Family, or form of numbers -> the dtype if no value is missing, and if values may be missing."""


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
        return pd.ArrowDtype(_nested_array([], column.type, numbers).type)
    return _DTYPES[numbers if family == "number" else family][column.missing]


def typed_array(column: Field, values: Any, numbers: Numbers) -> pa.Array:
    """Return the values of one page as a typed array.

    Parameters
    ----------
    column : Field
        The column of the values.
    values : list, numpy.ndarray or pyarrow.Array
        The values; a missing value is None, or NaN in arrays of floats.
    numbers : {"float", "exact", "text"}
        The form of numbers.

    Raises
    ------
    REFUSALS
        If a value is not of the column's kind.
    """
    family = column.kind.family
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if family == "nested":
        if isinstance(values, pa.Array) and numbers == "float":
            return values.cast(column_dtype(column).pyarrow_dtype)
        # Arrow's cast of other forms shows the noise of binary floats.
        cells = values.to_pylist() if isinstance(values, pa.Array) else values
        return _nested_array(cells, column.type, numbers)
    if isinstance(values, pa.DoubleArray):
        values = values.to_numpy(zero_copy_only=False)
    if family == "number":
        return (_float_array if numbers == "float" else _text_array)(values, numbers)
    kind = pa.int64() if family == "time" else _TYPES.get(family, TEXT)
    if isinstance(values, np.ndarray) and family in ("time", "seconds"):
        values = values.astype(np.int64)
    elif isinstance(values, list) and values[:1] == [None] and values.count(None) == len(values):
        values = pa.nulls(len(values), kind)  # twice as fast
    array = values.cast(kind) if isinstance(values, pa.Array) else pa.array(values, kind)
    if column.kind is ADDRESS:  # some answers have checksums
        array = pc.ascii_lower(array)
    elif family in ("time", "seconds"):
        factor = 1_000 if family == "seconds" else 1
        array = pc.multiply(array, factor).cast(_UTC_TYPE)
    elif family == "iso":
        array = _iso_array(array)
    elif family in ("integer", "flag") and array.null_count and not column.missing:
        raise ValueError("a value is missing")
    return array


def join_arrays(column: Field, chunks: list[pa.Array], numbers: Numbers) -> Any:
    """Return the array of a frame from the arrays of all pages of a column."""
    target = column_dtype(column, numbers)
    chunks = chunks or [typed_array(column, [], numbers)]
    if not isinstance(target, np.dtype) and target is not _UTC:
        return target.__from_arrow__(pa.chunked_array(chunks))
    # A copy, because arrays of Arrow cannot be changed; null becomes NaN or NaT.
    array = np.concatenate([chunk.to_numpy(zero_copy_only=False) for chunk in chunks])
    return pd.DatetimeIndex(array, tz="UTC").array if target is _UTC else array


def _float_array(values: Any, _: Numbers) -> pa.Array:
    if not isinstance(values, list):
        return pa.array(np.asarray(values, dtype=np.float64))
    try:
        array = pa.array(values, pa.float64())
    except pa.ArrowException:  # text, as the second parts of pairs are
        array = pa.array([None if value is None else float(value) for value in values])
    is_finite = np.isfinite(array.to_numpy(zero_copy_only=False))
    if np.count_nonzero(is_finite) + array.null_count < len(array):
        wrong = array.filter(pc.invert(pc.is_finite(array)))[0]
        raise ValueError(f"{wrong} is not a finite number")
    return array


def _text_array(values: Any, numbers: Numbers) -> pa.Array:
    """Return numbers as decimal text or as exact numbers; a float has its shortest text."""
    form = str if numbers == "text" else Decimal
    if isinstance(values, np.ndarray):
        values = [None if value != value else form(repr(float(value))) for value in values]
    try:
        array = pa.array(values, TEXT)
    except pa.ArrowException:  # a JSON number
        text = str if numbers == "text" else _exact_text
        array = pa.array([None if value is None else text(value) for value in values], TEXT)
    try:
        return array if numbers == "text" else pc.cast(array, EXACT)
    except pa.ArrowInvalid as error:
        raise ValueError(
            f"{error}; exact numbers have {EXACT.scale} digits after the point and "
            f"{EXACT.precision - EXACT.scale} before it. Fetch with numbers='text' or 'float'"
        ) from None


def _exact_text(value: Any) -> str:
    """Return the text of a number for the exact form.

    A number from JSON is a float, so it is rounded to 18 decimals: its further digits have no
    meaning.
    """
    if not isinstance(value, Decimal):
        return str(value)
    return format(value.quantize(_LAST_DIGIT, context=_WIDE), "f") if value.is_finite() else "nan"


def _iso_array(texts: pa.Array) -> pa.Array:
    """Return times of ISO 8601."""
    try:
        return pc.cast(texts, _UTC_TYPE)
    except pa.ArrowInvalid:  # another form of it, such as one without a zone
        moments = [
            None if text is None else datetime.fromisoformat(text) for text in texts.to_pylist()
        ]
        index = pd.to_datetime(pd.Series(moments, dtype="object"), utc=True)
        return pa.array(index.dt.as_unit("ms").array)


def _nested_array(
    values: Any, annotation: Any, numbers: Numbers, inside: tuple[Any, ...] = ()
) -> pa.Array:
    """Return cells, which are decoded JSON, as a nested array of Arrow.

    A pair is a record with the fields ``first`` and ``second``. Arrow has no recursive types. A
    record inside a record of the same type, such as the children of child orders, is therefore JSON
    text. A value of unknown type is JSON text, too. `inside` has the records around the values.
    """
    origin, parts = get_origin(annotation), get_args(annotation)
    if annotation is object or parts == (object,) or annotation in inside:
        texts = (None if value is None else msgspec.json.encode(value) for value in values)
        return pa.array([text and text.decode() for text in texts], TEXT)
    missing = pa.array([value is None for value in values], pa.bool_())
    if is_record(annotation):
        arrays, around = {}, (*inside, annotation)
        for column in record_columns(annotation):
            cells, family = values, column.kind.family
            for name in column.wire.split("."):
                cells = [cell.get(name) if isinstance(cell, Mapping) else None for cell in cells]
            if family in ("nested", "number"):
                kind = column.type if family == "nested" else str
                arrays[column.name] = _nested_array(cells, kind, numbers, around)
            else:
                arrays[column.name] = pa.array(cells, _TYPES.get(family, TEXT))
        return pa.StructArray.from_arrays([*arrays.values()], [*arrays], mask=missing)
    if origin is tuple:
        pairs = [[None] * len(parts) if value is None else list(value) for value in values]
        if any(len(pair) != len(parts) for pair in pairs):
            raise ValueError(f"a list has not {len(parts)} values")
        cells = [[pair[at] for pair in pairs] for at in range(len(parts))]
        fields = [_nested_array(*cell, numbers, inside) for cell in zip(cells, parts, strict=True)]
        return pa.StructArray.from_arrays(fields, ["first", "second"], mask=missing)
    if origin is list:
        lists = [[] if value is None else list(value) for value in values]
        items = _nested_array([*itertools.chain(*lists)], parts[0], numbers, inside)
        places = pa.array(np.cumsum([0, *map(len, lists)]), pa.int32())
        return pa.ListArray.from_arrays(places, items, mask=missing)
    if annotation is int:
        return pa.array(values, pa.int64())
    form = {"float": float, "exact": Decimal, "text": str}[numbers]
    kind = _TYPES.get(numbers, TEXT) if annotation in (str, float) else TEXT
    return pa.array([None if value is None else form(str(value)) for value in values], kind)
