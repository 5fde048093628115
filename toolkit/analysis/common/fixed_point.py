"""Exact arithmetic: number columns as integers in units of 10**-decimals.

A frame has the decimal texts of the wire as float64 or as Arrow decimals. If a text has up to 15
digits, the `repr` of its float64 is the same number, so the float can be scaled exactly. If a value
equals an integer divided by 10**decimals in float64, numpy scales it. `Decimal` scales all other
values.
"""

from collections.abc import Sequence
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any, NoReturn

import narwhals as nw
import numpy as np
import pyarrow as pa

from toolkit.arrays import Flags, Floats
from toolkit.errors import MissingColumns

_WHOLE_FLOATS = 2.0**53
SCALE = 18
_DIGITS = Context(prec=40)
PRODUCTS = Context(prec=80)
"""Digits for sums of products of two exact numbers, which have up to 72 digits."""
_LAST_DIGIT = Decimal(1).scaleb(-SCALE)
_USUAL = 10  # the most decimals that are tried with numpy; `Decimal` scales the other values

Integers = list[int]


def to_integers(
    column: nw.Series[Any], least: int = 0, what: str = "fills"
) -> tuple[Integers, int]:
    """Return a number column as integers in units of 10**-decimals.

    Parameters
    ----------
    column : narwhals Series
        Float, integer or decimal, without missing values.
    least : int, default 0
        The smallest number of decimals.
    what : str, default "fills"
        The parameter that contains the column.

    Returns
    -------
    values : list of int
        The column times 10**decimals, exactly.
    decimals : int
        `least`, or more if the values have more.

    Raises
    ------
    MissingColumns
        If a value is missing or not finite.
    """
    exact = isinstance(column.dtype, nw.Decimal)
    if column.is_null().any():
        _raise_missing(column, int(column.is_null().sum()), what)
    if exact:
        return _integers_of_decimals(column, least, what)
    values = column.cast(nw.Float64()).to_numpy()
    odd = int((~np.isfinite(values)).sum())
    if odd:
        _raise_missing(
            column, odd, what, "missing or infinite" if np.isinf(values).any() else "missing"
        )
    return _integers_of_floats(values, least)


def _raise_missing(
    column: nw.Series[Any], count: int, what: str, state: str = "missing"
) -> NoReturn:
    raise MissingColumns(
        f"{what}: column {column.name} is {state} in {count:,} of {len(column):,} rows, and "
        "missing is not 0. Remove these rows, or fetch them again"
    )


def rescale(values: Integers, decimals: int, wanted: int) -> Integers:
    """Convert integers from the unit 10**-decimals to the finer unit 10**-wanted."""
    if decimals == wanted:
        return values
    factor = 10 ** (wanted - decimals)
    return [value * factor for value in values]


def _integers_of_floats(values: Floats, least: int) -> tuple[Integers, int]:
    decimals = _decimals_needed(values, least)
    nearest, hit = _nearest_integers(values, decimals)
    if hit.all():
        return nearest.astype(np.int64).tolist(), decimals
    odd = np.flatnonzero(~hit)
    nearest[odd] = 0
    result: Integers = nearest.astype(np.int64).tolist()
    for row in odd.tolist():
        result[row] = int(Decimal(repr(float(values[row]))).scaleb(decimals))
    return result, decimals


def _nearest_integers(values: Floats, decimals: int) -> tuple[Floats, Flags]:
    """Return values times 10**decimals, rounded, and for each whether this is surely exact."""
    power = 10.0**decimals
    nearest = np.rint(values * power)
    return nearest, (np.abs(nearest) < _WHOLE_FLOATS) & (nearest / power == values)


def _decimals_needed(values: Floats, least: int) -> int:
    left, needed = values, least
    for decimals in range(least, max(least, _USUAL) + 1):
        hit = _nearest_integers(left, decimals)[1]
        if hit.any():
            left, needed = left[~hit], decimals
        if not len(left):
            return needed
    return max(needed, *(count_decimals(Decimal(repr(value))) for value in left.tolist()))


def count_decimals(number: Decimal) -> int:
    """Return the decimals of a number, without zeros at the end."""
    exponent = number.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _integers_of_decimals(column: nw.Series[Any], least: int, what: str) -> tuple[Integers, int]:
    chunks = column.to_arrow()
    array = chunks.combine_chunks() if isinstance(chunks, pa.ChunkedArray) else chunks
    for decimals in (least, *range(least + 1, SCALE + 1)):
        try:
            narrow = array.cast(pa.decimal128(38, decimals))
        except pa.ArrowInvalid:
            continue
        return _read_words(narrow), decimals
    raise MissingColumns(f"{what}: column {column.name} has more than {SCALE} decimals. Round it")


def _read_words(array: pa.Array) -> Integers:
    """Return the integers of a decimal array from its 128-bit words."""
    data = array.buffers()[1]
    if data is None or not len(array):
        return []
    pairs = np.frombuffer(data, dtype="<i8").reshape(-1, 2)
    pairs = pairs[array.offset : array.offset + len(array)]
    low, high = pairs[:, 0], pairs[:, 1]
    if ((low >> 63) == high).all():
        return list(low.tolist())
    lows = low.astype("<u8").tolist()
    return [(above << 64) + below for above, below in zip(high.tolist(), lows, strict=True)]


def to_float(values: Sequence[int | None], decimals: int) -> Floats:
    """Return the nearest floats of integers in units of 10**-decimals; None becomes NaN."""
    power = 10**decimals
    return np.array([np.nan if v is None else v / power for v in values], dtype=np.float64)


def to_decimal(values: Sequence[int | None], decimals: int) -> pa.Array:
    """Return integers in units of 10**-decimals as an exact Arrow column; None becomes null.

    The column has 18 decimals. Numbers with more decimals are rounded.
    """
    exact = pa.decimal128(36, SCALE)
    if decimals <= SCALE:
        try:
            return _decimals_of_words(values, pa.decimal128(38, decimals)).cast(exact)
        except OverflowError:
            pass  # some numbers have more than 64 bits: convert one by one
    finer, coarser = 10 ** max(0, SCALE - decimals), 10 ** max(0, decimals - SCALE)
    whole_ = (None if v is None else (2 * v * finer + coarser) // (2 * coarser) for v in values)
    return pa.array([v if v is None else _DIGITS.scaleb(v, -SCALE) for v in whole_], type=exact)


def round_exact(value: Decimal) -> Decimal:
    """Return an exact number with at most 18 decimals, rounded as in `to_decimal`."""
    half = PRODUCTS.divide(_LAST_DIGIT, Decimal(2))
    return PRODUCTS.add(value, half).quantize(_LAST_DIGIT, ROUND_FLOOR, PRODUCTS)


def _decimals_of_words(values: Sequence[int | None], dtype: pa.DataType) -> pa.Array:
    """Return a decimal array of 64-bit integers, without one `Decimal` per value."""
    low = np.array([0 if v is None else v for v in values], dtype=np.int64)
    words = np.column_stack([low, low >> 63])
    valid = np.array([v is not None for v in values], dtype=bool)
    bits = np.packbits(valid, bitorder="little")
    return pa.Array.from_buffers(dtype, len(low), [pa.py_buffer(bits), pa.py_buffer(words)])
