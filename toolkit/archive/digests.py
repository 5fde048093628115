"""Digests of rows: the same in any order and in any files, and those of parts add up."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow as pa

__all__ = ["digest_of", "identity", "written"]

_IDENTITY: Final = ("_operation", "_subject", "_json")


def identity(columns: Sequence[str]) -> Sequence[str]:
    """Give the columns that make a row what it is: all, or what was asked and came."""
    return _IDENTITY if "_json" in columns else columns


def digest_of(rows: pa.Table | pa.RecordBatch) -> int:
    """Add up the hashes of rows.

    A column that a table gained later is missing in its older rows, and counts for nothing there.
    """
    columns = [rows.column(one) for one in identity(rows.schema.names)]
    each = zip(*(column.to_pylist() for column in columns), strict=True)
    if all(pa.types.is_string(one.type) and not one.null_count for one in columns):
        texts = map("\0".join, each)  # the same, and half of the time: these are the large tables
    else:
        texts = map(_joined, each)
    return sum(int.from_bytes(hashlib.sha256(one.encode()).digest(), "big") for one in texts)


def written(total: int) -> str:
    """Write a sum of digests."""
    return f"{total % 2**256:064x}"


def _joined(row: Iterable[Any]) -> str:
    values = (one for one in row if one is not None)
    return "\0".join(one.hex() if isinstance(one, bytes) else str(one) for one in values)
