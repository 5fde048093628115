"""Number columns as whole numbers, without losing a digit.

The wire's decimals reach a frame as float64 or as Arrow decimals. A float64 that came from a
decimal text of up to 15 digits gives that text back (`repr`), so scaling can be exact: in numpy
where a value is checked to be the nearest float of a whole number over 10**decimals, through
`Decimal` where it is not.
"""

from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any, NoReturn

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from toolkit.errors import MissingColumns

_WHOLE_FLOATS = 2.0**53
_SCALE = 18
_DIGITS = Context(prec=40)
_USUAL = 10  # decimals that are looked for in numpy

Integers = list[int]


def to_integers(
    column: nw.Series[Any], least: int = 0, what: str = "fills"
) -> tuple[Integers, int]:
    """Read a number column as whole numbers of 10**-decimals.

    Parameters
    ----------
    column : narwhals Series
        Float, integer or decimal, without missing values.
    least : int, default 0
        Decimals to use at least.
    what : str, default "fills"
        The parameter that the column came in.

    Returns
    -------
    values : list of int
        The column times 10**decimals, exactly.
    decimals : int
        `least`, or as many more as the values need.

    Raises
    ------
    MissingColumns
        If a value is missing or not finite.
    """
    exact = isinstance(column.dtype, nw.Decimal)
    if column.is_null().any():
        _raise_missing(column, int(column.is_null().sum()), what)
    if exact:
        return _integers_of_decimals(column.to_arrow(), least)
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
        "missing is not 0; leave those rows out, or fetch them again"
    )


def rescale(values: Integers, decimals: int, wanted: int) -> Integers:
    """Write whole numbers of 10**-decimals in the finer unit 10**-wanted."""
    if decimals == wanted:
        return values
    factor = 10 ** (wanted - decimals)
    return [value * factor for value in values]


def _integers_of_floats(values: npt.NDArray[np.float64], least: int) -> tuple[Integers, int]:
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


def _nearest_integers(
    values: npt.NDArray[np.float64], decimals: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Give values times 10**decimals, rounded, and where that is exact beyond doubt."""
    power = 10.0**decimals
    nearest = np.rint(values * power)
    return nearest, (np.abs(nearest) < _WHOLE_FLOATS) & (nearest / power == values)


def _decimals_needed(values: npt.NDArray[np.float64], least: int) -> int:
    left, needed = values, least
    for decimals in range(least, max(least, _USUAL) + 1):
        hit = _nearest_integers(left, decimals)[1]
        if hit.any():
            left, needed = left[~hit], decimals
        if not len(left):
            return needed
    return max(needed, *(_count_decimals(Decimal(repr(value))) for value in left.tolist()))


def _count_decimals(number: Decimal) -> int:
    exponent = number.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _integers_of_decimals(column: pa.ChunkedArray | pa.Array, least: int) -> tuple[Integers, int]:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    for decimals in (least, *range(least + 1, _SCALE + 1)):
        try:
            narrow = array.cast(pa.decimal128(38, decimals))
        except pa.ArrowInvalid:
            continue
        return _read_words(narrow), decimals
    raise MissingColumns(f"a decimal column has more than {_SCALE} decimals")


def _read_words(array: pa.Array) -> Integers:
    """Read the 128-bit words of a decimal array."""
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


def to_float(values: Sequence[int | None], decimals: int) -> npt.NDArray[np.float64]:
    """Give the nearest floats of whole numbers of 10**-decimals; None becomes NaN."""
    power = 10**decimals
    return np.array([np.nan if v is None else v / power for v in values], dtype=np.float64)


def to_decimal(values: Sequence[int | None], decimals: int) -> pa.Array:
    """Give whole numbers of 10**-decimals as an exact Arrow column; None becomes null.

    The column has 18 decimals; finer numbers are rounded to the nearest.
    """
    exact = pa.decimal128(36, _SCALE)
    if decimals <= _SCALE:
        try:
            return _decimals_of_words(values, pa.decimal128(38, decimals)).cast(exact)
        except OverflowError:
            pass  # more than 64 bits: one by one
    finer, coarser = 10 ** max(0, _SCALE - decimals), 10 ** max(0, decimals - _SCALE)
    whole_ = (None if v is None else _divide_rounded(v * finer, coarser) for v in values)
    return pa.array([v if v is None else _DIGITS.scaleb(v, -_SCALE) for v in whole_], type=exact)


def _decimals_of_words(values: Sequence[int | None], dtype: pa.DataType) -> pa.Array:
    """Make a decimal array from whole numbers of 64 bits, without a `Decimal` each."""
    low = np.array([0 if v is None else v for v in values], dtype=np.int64)
    words = np.column_stack([low, low >> 63])
    valid = np.array([v is not None for v in values], dtype=bool)
    bits = np.packbits(valid, bitorder="little")
    return pa.Array.from_buffers(dtype, len(low), [pa.py_buffer(bits), pa.py_buffer(words)])


def _divide_rounded(value: int, unit: int) -> int:
    return value if unit == 1 else (2 * value + unit) // (2 * unit)
