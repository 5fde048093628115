"""Columns in parts, joined once."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from toolkit.errors import AnswerInvalid

__all__ = ["PAIRS", "TEXT", "flags", "integers", "joined", "nullable_flags", "numbers", "repeated"]

TEXT: Final = pa.large_string()
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


def repeated(text: str, count: int, limit: int) -> pa.Array:
    """Make a column of one text; it may not be longer than `limit` in all."""
    if count * len(text.encode()) > limit:
        raise AnswerInvalid(f"{count} rows of a text of {len(text)} characters are too long")
    return pa.repeat(pa.scalar(text, TEXT), count)


def numbers(values: Sequence[float | None]) -> np.ndarray:
    """Make a column of numbers; None becomes NaN."""
    return np.array(values, np.float64)


def integers(values: Sequence[int], column: str, first_row: int) -> np.ndarray:
    """Make a column of whole numbers."""
    try:
        return np.array(values, np.int64)
    except OverflowError:
        row = next(i for i, value in enumerate(values) if not -(2**63) <= value < 2**63)
        raise AnswerInvalid(
            "a whole number of more than 64 bits",
            column=column,
            row=first_row + row,
            value=values[row],
        ) from None


def flags(values: Sequence[bool]) -> np.ndarray:
    """Make a column of flags."""
    return np.array(values, np.bool_)


def nullable_flags(values: Sequence[bool | None]) -> pa.Array:
    """Make a column of flags that may be missing."""
    return pa.array(values, pa.bool_())
