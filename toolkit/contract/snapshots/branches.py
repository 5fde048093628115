"""Margin by branch, of many portfolio-margin users at once: `[[token, available], ...]`."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from toolkit.contract.snapshots.joining import PAIRS
from toolkit.contract.snapshots.scanning import SLACK, Cursor

__all__ = ["Branches", "branch_column", "read_branches"]

_NIL: Final = 0xC0
_PAIR: Final = 0x92
_ARRAY: Final = 0x90
_STR: Final = 0xA0

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Branches:
    """Pairs of some entries, in any order.

    Attributes
    ----------
    counts : array of int64
        For each entry the number of its pairs, -1 for null.
    entry, place : array of int64
        For each pair its entry, and its place within it.
    token, length : array of int64
        For each pair where the text of its token begins, and its length in bytes.
    available : array of float64
        For each pair the number.
    """

    counts: Places
    entry: Places
    place: Places
    token: Places
    length: Places
    available: npt.NDArray[np.float64]

    def only(self, fits: npt.NDArray[np.bool_]) -> "Branches":
        """Leave out the pairs of entries that do not fit."""
        if fits.all():
            return self
        kept = fits[self.entry]
        per_pair: tuple[Any, ...] = (
            self.entry,
            self.place,
            self.token,
            self.length,
            self.available,
        )
        return Branches(np.where(fits, self.counts, -1), *(one[kept] for one in per_pair))


def read_branches(cursor: Cursor) -> Branches:
    """Read a null or at most 15 pairs from each entry, each with a token of at most 31 bytes."""
    markers = cursor.step()
    counts = np.where(markers == _NIL, -1, markers.astype(np.int64) - _ARRAY)
    cursor.fits &= (counts >= -1) & (counts < 16)
    parts: list[tuple[Any, ...]] = []
    last = len(cursor.data) - SLACK
    for place in range(int(counts.max(initial=0, where=cursor.fits))):
        cursor.fits &= cursor.at <= last
        where = np.flatnonzero(cursor.fits & (counts > place))
        pair = cursor.narrowed(where)
        pair.literal(bytes([_PAIR]))
        length = pair.step().astype(np.int64) - _STR
        pair.fits &= (length >= 0) & (length < 32)
        token = pair.at
        pair.at = token + np.where(pair.fits, length, 0)
        available = pair.number()
        cursor.at[where] = pair.at
        cursor.fits[where] = pair.fits
        parts.append((where, np.full(len(where), place), token, length, available))
    cursor.fits &= cursor.at <= last
    cursor.at = np.where(cursor.fits, cursor.at, 0)
    if not parts:
        none = np.empty(0, np.int64)
        return Branches(counts, none, none, none, none, np.empty(0))
    return Branches(counts, *(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def branch_column(rows: int, entries: Places, branches: Branches, data: Bytes) -> pa.Array:
    """Make the column of all rows from the pairs of some.

    Parameters
    ----------
    rows : int
        The length of the column; rows that are no entry are null.
    entries : array of int64
        The row of each entry.
    branches : Branches
        The pairs of the entries.
    data : array of uint8
        The bytes that the tokens stand in.
    """
    counts = np.full(rows, -1)
    counts[entries] = branches.counts
    offsets = np.zeros(rows + 1, np.int64)
    np.cumsum(np.maximum(counts, 0), out=offsets[1:])
    order = np.empty(len(branches.entry), np.int64)
    order[offsets[entries[branches.entry]] + branches.place] = np.arange(len(order))
    tokens = _texts(data, branches.token[order], branches.length[order])
    tokens.validate(full=True)  # raises where a token is no UTF-8
    pairs = pa.StructArray.from_arrays(
        [tokens, pa.array(branches.available[order])], fields=list(PAIRS.value_type)
    )
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), pairs, type=PAIRS, mask=pa.array(counts < 0)
    )


def _texts(data: Bytes, starts: Places, lengths: Places) -> pa.Array:
    offsets = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    inside = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    characters = data[np.repeat(starts, lengths) + inside]
    return pa.LargeStringArray.from_buffers(
        len(starts), pa.py_buffer(offsets), pa.py_buffer(characters)
    )
