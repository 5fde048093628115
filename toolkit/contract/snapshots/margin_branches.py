"""The margin of portfolio-margin users by branch, read for many users at once."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from toolkit.arrays import Bytes, Flags, Floats, Ints
from toolkit.contract.snapshots.arrays import PAIRS
from toolkit.contract.snapshots.entry_reader import EntryReader, copy_texts

_NIL: Final = 0xC0
_PAIR: Final = 0x92
_TUPLE: Final = 0x90
_STR: Final = 0xA0


@dataclass(frozen=True, slots=True)
class Branches:
    """The margin of some users by branch: pairs of token and available margin.

    - ``rows``, ``counts`` (array of int64): the row of each user, and the number of its pairs; -1
      for null
    - ``user``, ``place`` (array of int64): for each pair the index of its user in `rows`, and its
      place among the user's pairs
    - ``token``, ``length`` (array of int64): for each pair the position of the token's text, and
      its length in bytes
    - ``available`` (array of float64): for each pair the available margin
    """

    rows: Ints
    counts: Ints
    user: Ints
    place: Ints
    token: Ints
    length: Ints
    available: Floats

    def select(self, fits: Flags) -> "Branches":
        """Return the pairs of users that fit."""
        if fits.all():
            return self
        is_kept = fits[self.user]
        pairs: list[Any] = [self.user, self.place, self.token, self.length, self.available]
        return Branches(
            self.rows, np.where(fits, self.counts, -1), *(values[is_kept] for values in pairs)
        )


def read_branches(reader: EntryReader, rows: Ints) -> Branches:
    """Return the pairs of each user: null, or at most 15 pairs with tokens of at most 31 bytes."""
    markers = reader.next_byte()
    counts = np.where(markers == _NIL, -1, markers.astype(np.int64) - _TUPLE)
    reader.fits &= (counts >= -1) & (counts < 16)
    none = np.empty(0, np.int64)
    parts: list[tuple[Any, ...]] = [(none, none, none, none, np.empty(0))]
    for place in range(int(counts.max(initial=0, where=reader.fits))):
        reader.check_room()
        where = np.flatnonzero(reader.fits & (counts > place))
        pair = reader.select(where)
        pair.skip_literal(bytes([_PAIR]))
        length = pair.next_byte().astype(np.int64) - _STR
        pair.fits &= (length >= 0) & (length < 32)
        token = pair.at
        pair.at = token + np.where(pair.fits, length, 0)
        available = pair.read_numbers()
        reader.at[where], reader.fits[where] = pair.at, pair.fits
        parts.append((where, np.full(len(where), place), token, length, available))
    reader.check_room()
    return Branches(rows, counts, *(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def branch_column(rows: int, blocks: list[Branches], data: Bytes) -> pa.Array:
    """Return the column of all rows from the pairs of some users.

    - ``rows``: the length of the column; rows without a user are null
    - ``blocks``: the pairs
    - ``data`` (array of uint8): the bytes with the tokens

    Raise pyarrow.ArrowInvalid if a token is not UTF-8.
    """
    if not any(len(block.rows) for block in blocks):
        return pa.nulls(rows, PAIRS)
    counts = np.full(rows, -1)
    for block in blocks:
        counts[block.rows] = block.counts
    offsets = np.zeros(rows + 1, np.int64)
    np.cumsum(np.maximum(counts, 0), out=offsets[1:])
    places = np.concatenate([offsets[block.rows[block.user]] + block.place for block in blocks])
    order = np.empty(len(places), np.int64)
    order[places] = np.arange(len(places))
    starts, lengths, available = (
        np.concatenate([getattr(block, name) for block in blocks])[order]
        for name in ("token", "length", "available")
    )
    tokens, _ = copy_texts(data, starts, lengths)
    tokens.validate(full=True)
    pairs = pa.StructArray.from_arrays([tokens, pa.array(available)], fields=list(PAIRS.value_type))
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), pairs, type=PAIRS, mask=pa.array(counts < 0)
    )
