"""Account values of many users, read field by field, in blocks that stay in the cache."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from toolkit.contract.snapshots.branches import Branches, branch_column, read_branches
from toolkit.contract.snapshots.scanning import ADDRESS, SLACK, Cursor

__all__ = ["KEYED", "Scan", "scan"]

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]
Key = Callable[[bytes], bytes]

KEYED: Final = 2 + ADDRESS
"""The length of an address with what tells its length."""

_TUPLE: Final = 0x90
_OBJECT: Final = 0x80
_ROWS: Final = 16_384


@dataclass(frozen=True, slots=True)
class Scan:
    """What was read. Rows that do not fit hold nonsense.

    Attributes
    ----------
    starts, ends : array of int64
        Where each entry begins, and where it ends if it is one and fits.
    fits : array of bool
        Which entries could be read.
    columns : mapping of str to array
        The columns, without `user`.
    """

    starts: Places
    ends: Places
    fits: npt.NDArray[np.bool_]
    columns: dict[str, Any]


def scan(data: Bytes, starts: Places, *, keyed: bool) -> Scan:
    """Read what stands at each of the places as an entry.

    Parameters
    ----------
    data : array of uint8
        MessagePack of a snapshot.
    starts : array of int64
        Where the addresses begin. Those too near to the end of the bytes to be read without
        a look at each step do not fit.
    keyed : bool
        Whether the entries are objects instead of tuples.
    """
    rows = len(starts)
    floats = ("account_value", "total_long_notional", "total_short_notional")
    columns: dict[str, Any] = {
        **{name: np.zeros(rows) for name in floats},
        "is_unified": np.zeros(rows, np.bool_),
        "account_mode": np.zeros(rows, np.int64),
        "pm_ratio": np.full(rows, np.nan),
        "pm_avail_by_branch": None,
        "pm_total_account_value": np.full(rows, np.nan),
    }
    found = Scan(starts, np.zeros(rows, np.int64), np.zeros(rows, np.bool_), columns)
    readable = int(np.searchsorted(starts, len(data) - SLACK, side="right"))
    pairs = []
    for first in range(0, readable, _ROWS):
        block = slice(first, min(first + _ROWS, readable))
        pairs.append(_read_block(data, found, block, keyed=keyed))
    columns["pm_avail_by_branch"] = branch_column(rows, pairs, data)
    return found


def _read_block(data: Bytes, found: Scan, block: slice, *, keyed: bool) -> Branches:
    base, key = (_OBJECT, _object_key) if keyed else (_TUPLE, _no_key)
    cursor = Cursor(data, found.starts[block] + KEYED)
    length = cursor.step()
    columns = {name: values[block] for name, values in found.columns.items() if values is not None}
    cursor.literal(key(b"v"))
    columns["account_value"][:] = cursor.number()
    cursor.literal(key(b"l"))
    columns["total_long_notional"][:] = cursor.number()
    cursor.literal(key(b"s"))
    columns["total_short_notional"][:] = cursor.number()
    cursor.literal(key(b"m"))
    columns["is_unified"][:] = cursor.flag()
    cursor.literal(key(b"am"))
    columns["account_mode"][:] = cursor.small()
    margin = length == base + 8
    cursor.fits &= margin | (length == base + 5)
    pairs = _read_margin(cursor, np.flatnonzero(margin & cursor.fits), columns, key)
    found.ends[block], found.fits[block] = cursor.at, cursor.fits
    return pairs.moved(block.start)


def _read_margin(cursor: Cursor, where: Places, columns: dict[str, Any], key: Key) -> Branches:
    """Read what only portfolio-margin users have."""
    users = cursor.narrowed(where)
    users.literal(key(b"pm"))
    columns["pm_ratio"][where] = users.number(null=True)
    users.literal(key(b"pa"))
    pairs = read_branches(users, where)
    users.literal(key(b"pt"))
    columns["pm_total_account_value"][where] = users.number(null=True)
    cursor.at[where], cursor.fits[where] = users.at, users.fits
    return pairs.only(users.fits)


def _object_key(short: bytes) -> bytes:
    return bytes([0xA0 + len(short)]) + short


def _no_key(short: bytes) -> bytes:
    return b""
