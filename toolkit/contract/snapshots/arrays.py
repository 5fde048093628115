"""Arrays of columns: from rows, and joined from parts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from toolkit.contract.snapshots.unknown_values import TEXT, RawValues
from toolkit.errors import AnswerInvalid

NO_TIME: Final = np.iinfo(np.int64).min
"""The milliseconds of a missing time, as in pandas' NaT."""
PAIRS: Final = pa.list_(pa.struct([("token", TEXT), ("available", pa.float64())]))


def join_columns(parts: list[dict[str, Any]], empty: Mapping[str, Any]) -> dict[str, Any]:
    """Return the joined columns of several parts; `empty` has an empty array for each column.

    Columns of unknown values are null in the parts that do not have them. The function removes each
    column from the parts when it is joined, so that only one column at a time is in memory twice.
    """
    if len(parts) == 1:
        return parts[0]
    counts = [len(next(iter(part.values()))) for part in parts]
    names = dict.fromkeys((*empty, *(name for part in parts for name in part)))
    return {
        name: _join_arrays([part.pop(name, None) for part in parts], counts, empty.get(name))
        for name in names
    }


def _join_arrays(arrays: list[Any], counts: list[int], empty: Any) -> Any:
    if isinstance(empty, np.ndarray):
        return np.concatenate([empty, *arrays])
    if empty is None and any(isinstance(array, RawValues) for array in arrays):
        return RawValues.join(
            [
                RawValues.absent(count) if array is None else array
                for array, count in zip(arrays, counts, strict=True)
            ]
        )
    known = [
        pa.nulls(count, TEXT) if array is None else array
        for array, count in zip(arrays, counts, strict=True)
    ]
    return pa.concat_arrays([pa.array([], TEXT) if empty is None else empty, *known])


def repeat_texts(runs: Sequence[tuple[str | None, int]], limit: int) -> pa.Array:
    """Return a column in which each text is repeated a number of times.

    - ``runs``: the texts, and the number of repetitions of each
    - ``limit``: the most bytes of the column, so that a long text and many rows cannot fill the
      memory
    """
    size = sum(len((text or "").encode()) * count for text, count in runs)
    if size > limit:
        raise AnswerInvalid(f"names of {size} bytes in all are too long for the number of rows")
    if len(runs) == 1:
        return pa.repeat(pa.scalar(runs[0][0], TEXT), runs[0][1])
    numbers = np.repeat(np.arange(len(runs)), [count for _, count in runs])
    return pa.array([text for text, _ in runs], TEXT).take(pa.array(numbers))


def build_columns(
    makers: Mapping[str, Callable[..., Any]], rows: Sequence[msgspec.Struct], first_row: int
) -> dict[str, Any]:
    """Return the columns of rows.

    - ``makers``: for each field of the rows, in order, the function that makes its column
    - ``rows``: the rows
    - ``first_row``: the number of the first row, for messages
    """
    return {
        name: make(values, name, first_row) if make in _WITH_ROW_NUMBERS else make(values)
        for (name, make), values in zip(makers.items(), _turn_rows(rows, len(makers)), strict=True)
    }


def _turn_rows(rows: Sequence[msgspec.Struct], width: int) -> Sequence[Sequence[Any]]:
    """Return the values of rows by field."""
    # One long list of all values is several times as fast as a look at each field.
    flat: list[Any] = []
    if len(set(map(type, rows))) == 1:
        for row in rows:
            flat += msgspec.structs.astuple(row)
        step = len(flat) // len(rows)  # unknown values are after the known ones
    else:
        for row in rows:
            flat += msgspec.structs.astuple(row)[:width]
        step = width
    return [flat[place::step] for place in range(width)]


def number_array(values: Sequence[float | None]) -> np.ndarray:
    """Return a column of numbers; None becomes NaN."""
    array = pa.array(values, pa.float64(), from_pandas=False)
    return np.asarray(array.to_numpy(zero_copy_only=False))


def integer_array(values: Sequence[int], column: str, first_row: int) -> np.ndarray:
    """Return a column of whole numbers without missing values."""
    try:
        return np.array(values, np.int64)
    except OverflowError:
        raise _overflow_error(values, column, first_row) from None


def nullable_integer_array(values: Sequence[int | None], column: str, first_row: int) -> pa.Array:
    """Return a column of whole numbers with missing values."""
    try:
        return pa.array(values, pa.int64())
    except (OverflowError, pa.ArrowInvalid):
        raise _overflow_error(values, column, first_row) from None


def time_array(values: Sequence[int | None], column: str, first_row: int) -> np.ndarray:
    """Return a column of milliseconds; None becomes `NO_TIME`."""
    array = nullable_integer_array(values, column, first_row).fill_null(NO_TIME)
    return np.asarray(array.to_numpy(zero_copy_only=False))


def flag_array(values: Sequence[bool | None]) -> np.ndarray:
    """Return a column of flags; None becomes False."""
    return np.array(values, np.bool_)


def nullable_flag_array(values: Sequence[bool | None]) -> pa.Array:
    """Return a column of flags with missing values."""
    return pa.array(values, pa.bool_())


def _overflow_error(values: Sequence[int | None], column: str, first_row: int) -> AnswerInvalid:
    row, value = next(
        (number, value)
        for number, value in enumerate(values)
        if value is not None and not -(2**63) <= value < 2**63
    )
    return AnswerInvalid(
        "the whole number has more than 64 bits", column=column, row=first_row + row, value=value
    )


_WITH_ROW_NUMBERS: Final = (integer_array, nullable_integer_array, time_array)
"""Makers that name the row of a value that is out of range."""
