"""Margin by branch, of many portfolio-margin users at once: `[[token, available], ...]`."""

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from toolkit.contract.snapshots.joining import PAIRS
from toolkit.contract.snapshots.scanning import SLACK, Cursor, texts_in

__all__ = ["Branches", "branch_column", "read_branches"]

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]

_NIL: Final = 0xC0
_PAIR: Final = 0x92
_ARRAY: Final = 0x90
_STR: Final = 0xA0


@dataclass(frozen=True, slots=True)
class Branches:
    """Pairs of some users.

    Attributes
    ----------
    rows, counts : array of int64
        For each user the row, and the number of pairs: -1 for null.
    user, place : array of int64
        For each pair the number of its user in `rows`, and its place among the user's pairs.
    token, length : array of int64
        For each pair where the text of its token begins, and its length in bytes.
    available : array of float64
        For each pair the number.
    """

    rows: Places
    counts: Places
    user: Places
    place: Places
    token: Places
    length: Places
    available: npt.NDArray[np.float64]

    def only(self, fits: npt.NDArray[np.bool_]) -> "Branches":
        """Leave out the pairs of users that do not fit."""
        if fits.all():
            return self
        kept = fits[self.user]
        pairs: list[Any] = [self.user, self.place, self.token, self.length, self.available]
        return Branches(self.rows, np.where(fits, self.counts, -1), *(one[kept] for one in pairs))

    def moved(self, by: int) -> "Branches":
        """Take the users as standing further down."""
        return replace(self, rows=self.rows + by)


def read_branches(cursor: Cursor, rows: Places) -> Branches:
    """Read a null or at most 15 pairs of each user, with tokens of at most 31 bytes."""
    markers = cursor.step()
    counts = np.where(markers == _NIL, -1, markers.astype(np.int64) - _ARRAY)
    cursor.fits &= (counts >= -1) & (counts < 16)
    last = len(cursor.data) - SLACK
    none = np.empty(0, np.int64)
    parts: list[tuple[Any, ...]] = [(none, none, none, none, np.empty(0))]
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
        cursor.at[where], cursor.fits[where] = pair.at, pair.fits
        parts.append((where, np.full(len(where), place), token, length, available))
    cursor.fits &= cursor.at <= last
    cursor.at = np.where(cursor.fits, cursor.at, 0)
    return Branches(rows, counts, *(np.concatenate(one) for one in zip(*parts, strict=True)))


def branch_column(rows: int, blocks: list[Branches], data: Bytes) -> pa.Array:
    """Make the column of all rows from the pairs of some.

    Parameters
    ----------
    rows : int
        The length of the column; rows of no user are null.
    blocks : list of Branches
        The pairs.
    data : array of uint8
        The bytes that the tokens stand in.

    Raises
    ------
    pyarrow.ArrowInvalid
        If a token is no UTF-8.
    """
    if not any(len(one.rows) for one in blocks):
        return pa.nulls(rows, PAIRS)
    counts = np.full(rows, -1)
    for one in blocks:
        counts[one.rows] = one.counts
    offsets = np.zeros(rows + 1, np.int64)
    np.cumsum(np.maximum(counts, 0), out=offsets[1:])
    places = np.concatenate([offsets[one.rows[one.user]] + one.place for one in blocks])
    order = np.empty(len(places), np.int64)
    order[places] = np.arange(len(places))
    starts, lengths, available = (
        np.concatenate([getattr(one, name) for one in blocks])[order]
        for name in ("token", "length", "available")
    )
    tokens, _ = texts_in(data, starts, lengths)
    tokens.validate(full=True)
    pairs = pa.StructArray.from_arrays([tokens, pa.array(available)], fields=list(PAIRS.value_type))
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), pairs, type=PAIRS, mask=pa.array(counts < 0)
    )
