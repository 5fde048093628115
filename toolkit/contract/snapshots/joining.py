"""Columns in parts, joined once."""

from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from toolkit.errors import AnswerInvalid

__all__ = [
    "PAIRS",
    "TEXT",
    "flags",
    "integers",
    "joined",
    "made_columns",
    "nullable_flags",
    "nullable_integers",
    "numbers",
    "repeated",
    "times",
]

TEXT: Final = pa.large_string()
NO_TIME: Final = np.iinfo(np.int64).min
"""Milliseconds of a time that is missing, as pandas writes NaT."""
PAIRS: Final = pa.list_(pa.struct([("token", TEXT), ("available", pa.float64())]))


def joined(parts: list[dict[str, Any]], empty: Mapping[str, Any]) -> dict[str, Any]:
    """Join columns that came in parts; `empty` has one of no rows for each of them.

    The parts are emptied on the way, so that no column stands in memory twice for long.
    """
    if len(parts) == 1:
        return parts[0]
    return {name: _join([one.pop(name) for one in parts], empty[name]) for name in empty}


def _join(arrays: list[Any], empty: Any) -> Any:
    if isinstance(empty, np.ndarray):
        return np.concatenate([empty, *arrays])
    return pa.concat_arrays([empty, *arrays])


def repeated(runs: Sequence[tuple[str, int]], limit: int) -> pa.Array:
    """Make a column of texts that each stand a number of times.

    Parameters
    ----------
    runs : sequence of (str, int)
        The texts, and how many times each stands.
    limit : int
        The most bytes of all; a long text times many rows may not fill the memory.
    """
    size = sum(len(text.encode()) * count for text, count in runs)
    if size > limit:
        raise AnswerInvalid(f"names of {size} bytes in all are too long for the number of rows")
    if len(runs) == 1:
        return pa.repeat(pa.scalar(runs[0][0], TEXT), runs[0][1])
    return pa.array([text for text, count in runs for _ in range(count)], TEXT)


def made_columns(
    makers: Mapping[str, Callable[..., Any]], rows: Sequence[msgspec.Struct], first_row: int
) -> dict[str, Any]:
    """Turn rows into columns.

    Parameters
    ----------
    makers : mapping of str to callable
        For each field of the rows, in order, what makes a column of its values.
    rows : sequence of Struct
        The rows.
    first_row : int
        The number of the first, for messages.
    """
    turned = zip(*map(msgspec.structs.astuple, rows), strict=True) if rows else repeat(())
    return {
        name: make(values, name, first_row) if make in _PLACED else make(values)
        for (name, make), values in zip(makers.items(), turned, strict=False)
    }


def numbers(values: Sequence[float | None]) -> np.ndarray:
    """Make a column of numbers; None becomes NaN."""
    array = pa.array(values, pa.float64(), from_pandas=False)
    return np.asarray(array.to_numpy(zero_copy_only=False))


def integers(values: Sequence[int], column: str, first_row: int) -> np.ndarray:
    """Make a column of whole numbers that are all there."""
    try:
        return np.array(values, np.int64)
    except OverflowError:
        raise _too_long(values, column, first_row) from None


def nullable_integers(values: Sequence[int | None], column: str, first_row: int) -> pa.Array:
    """Make a column of whole numbers that may be missing."""
    try:
        return pa.array(values, pa.int64())
    except (OverflowError, pa.ArrowInvalid):
        raise _too_long(values, column, first_row) from None


def times(values: Sequence[int | None], column: str, first_row: int) -> np.ndarray:
    """Make a column of milliseconds; None becomes the integer that NaT stands for."""
    array = nullable_integers(values, column, first_row).fill_null(NO_TIME)
    return np.asarray(array.to_numpy(zero_copy_only=False))


def flags(values: Sequence[bool | None]) -> np.ndarray:
    """Make a column of flags; None becomes False."""
    return np.array(values, np.bool_)


def nullable_flags(values: Sequence[bool | None]) -> pa.Array:
    """Make a column of flags that may be missing."""
    return pa.array(values, pa.bool_())


def _too_long(values: Sequence[int | None], column: str, first_row: int) -> AnswerInvalid:
    row, value = next(
        (i, value)
        for i, value in enumerate(values)
        if value is not None and not -(2**63) <= value < 2**63
    )
    return AnswerInvalid(
        "a whole number of more than 64 bits", column=column, row=first_row + row, value=value
    )


_PLACED: Final = (integers, nullable_integers, times)
"""Makers that name the row of a value which they refuse."""
