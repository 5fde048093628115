"""One field of many entries at once, directly from MessagePack.

An `EntryReader` is at the same field of every entry. It reads the field of all entries at once
through an unaligned view of the bytes, and then moves on by the width that the first byte of each
field implies. If it cannot read an entry, the entry does not fit. The position in such an entry can
be anywhere, so the values are valid only where `fits` is true.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from toolkit.arrays import Bytes, Flags, Floats, Ints
from toolkit.errors import AnswerInvalid

ADDRESS: Final = 42
"""The number of characters of an address."""

SLACK: Final = 320
"""The reader skips an entry that starts closer than this to the end of the bytes. It never reads
further than this from the start of an entry without a check."""

_BLOCK: Final = 1 << 16
_STR8: Final = 0xD9
_ADDRESS_BEGINS: Final = int.from_bytes(bytes([_STR8, ADDRESS]) + b"0x", "little")
_NIL, _FALSE, _TRUE, _FLOAT64 = 0xC0, 0xC2, 0xC3, 0xCB
_TEXT: Final = 0xA0
_IN_NUMBERS: Final = np.isin(np.arange(256), np.frombuffer(b"+-.0123456789Ee", np.uint8))
_TYPES: Final = {
    0xCA: ">f4",
    0xCB: ">f8",
    0xCC: "u1",
    0xCD: ">u2",
    0xCE: ">u4",
    0xCF: ">u8",
    0xD0: "i1",
    0xD1: ">i2",
    0xD2: ">i4",
    0xD3: ">i8",
}


_LOW_BYTES: Final = [np.uint64((1 << 8 * count) - 1) for count in range(9)]


def _marker_widths() -> Bytes:
    widths = np.zeros(256, np.uint8)
    widths[:0x80] = widths[0xE0:] = 1  # whole numbers inside their marker
    widths[_TEXT + 1 : _TEXT + 32] = np.arange(2, 33)  # short decimal text
    for marker, dtype in _TYPES.items():
        widths[marker] = 1 + np.dtype(dtype).itemsize
    return widths


_WIDTHS: Final = _marker_widths()
_INTEGER_TYPES: Final = {marker: kind for marker, kind in _TYPES.items() if "f" not in kind}
_IS_INTEGER: Final = np.isin(np.arange(256), list(_INTEGER_TYPES)) | (_WIDTHS == 1)


def find_addresses(data: Bytes, start: int, finish: int, may_follow: Flags) -> Ints:
    """Return the positions of texts of 42 characters that begin with ``0x``.

    Every entry begins with such a text, but a value inside an entry can also be such a text.

    - ``start``, ``finish``: the range of positions to search
    - ``may_follow`` (array of bool): which bytes can follow the text
    """
    found = [
        np.flatnonzero(data[at : min(at + _BLOCK, finish)] == _STR8) + at
        for at in range(start, finish, _BLOCK)
    ]
    starts: Ints = np.concatenate(found) if found else np.empty(0, np.int64)
    starts = starts[starts < finish - ADDRESS - 2]
    is_address: Flags = unaligned_view(data, "<u4")[starts] == _ADDRESS_BEGINS
    starts = starts[is_address]
    return starts[may_follow[data[starts + ADDRESS + 2]]]


def copy_addresses(data: Bytes, starts: Ints) -> Bytes:
    """Return the 42 bytes at each position, one after the other."""
    fixed = np.ndarray((len(data) - ADDRESS + 1,), f"V{ADDRESS}", data, strides=(1,))
    return fixed[starts].view(np.uint8)


def copy_texts(data: Bytes, starts: Ints, lengths: Ints) -> tuple[pa.Array, Bytes]:
    """Return texts of at most `SLACK` characters, and their characters one after the other."""
    offsets = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    width = int(lengths.max(initial=0))
    if not width:
        characters = np.empty(0, np.uint8)
    else:
        windows = np.ndarray((len(data) - width + 1,), f"V{width}", data, strides=(1,))
        characters = windows[starts].view(np.uint8)
        if int(lengths.min()) < width:
            inside = np.arange(width, dtype=np.uint16) < lengths.astype(np.uint16)[:, np.newaxis]
            characters = characters.reshape(-1, width)[inside]
    texts = pa.LargeStringArray.from_buffers(
        len(starts), pa.py_buffer(offsets), pa.py_buffer(characters)
    )
    return texts, characters


class EntryReader:
    """A position in each of many entries.

    - ``data`` (array of uint8): the bytes
    - ``at`` (array of int64): a position in each entry, at least `SLACK` before the end of the
      bytes

    - ``fits`` (array of bool): whether each entry could be read so far
    """

    def __init__(self, data: Bytes, at: Ints) -> None:
        self.data = data
        self.at = at
        self.fits = np.ones(len(at), np.bool_)

    def select(self, where: Ints) -> "EntryReader":
        """Return a reader of some of the entries, at the same positions."""
        return EntryReader(self.data, self.at[where])

    def markers(self) -> Bytes:
        """Return the byte at each position."""
        return self.data[self.at]

    def next_byte(self) -> Bytes:
        """Return the byte at each position, and move by one."""
        markers = self.markers()
        self.at = self.at + 1
        return markers

    def check_room(self) -> None:
        """Mark entries as not fitting if their position is too close to the end of the bytes."""
        self.fits &= self.at <= len(self.data) - SLACK
        self.at = np.where(self.fits, self.at, 0)

    def skip_literal(self, expected: bytes) -> None:
        """Skip bytes that must be the same in all entries."""
        for first in range(0, len(expected), 8):
            part = expected[first : first + 8]
            words = unaligned_view(self.data, "<u8")[self.at + first].astype(np.uint64, copy=False)
            self.fits &= words & _LOW_BYTES[len(part)] == int.from_bytes(part, "little")
        self.at = self.at + len(expected)

    def read_flags(self) -> Flags:
        """Return a flag of each entry."""
        markers = self.next_byte()
        is_true: Flags = markers == _TRUE
        self.fits &= is_true | (markers == _FALSE)
        return is_true

    def read_small_integers(self) -> Ints:
        """Return a whole number from 0 to 127 of each entry."""
        markers = self.next_byte()
        self.fits &= markers < 0x80
        return markers.astype(np.int64)

    def read_nullable_flags(self) -> pa.Array:
        """Return a flag of each entry; a null is missing."""
        markers = self.next_byte()
        is_null = markers == _NIL
        self.fits &= is_null | (markers == _TRUE) | (markers == _FALSE)
        return pa.array(markers == _TRUE, mask=is_null)

    def read_integers(self) -> Ints:
        """Return a whole number of each entry, as 64-bit numbers with a sign."""
        markers = self.markers()
        values = markers.view(np.int8).astype(np.int64)
        for marker in np.flatnonzero(np.bincount(markers, minlength=256)):
            if kind := _INTEGER_TYPES.get(int(marker)):
                where = np.flatnonzero(markers == marker)
                read = unaligned_view(self.data, kind)[self.at[where] + 1]
                if kind == ">u8":
                    self.fits[where] &= read < np.uint64(1 << 63)
                values[where] = read.astype(np.int64)
        self.fits &= _IS_INTEGER[markers]
        self.at = self.at + _WIDTHS[markers]
        return values

    def read_texts(self) -> pa.Array:
        """Return a text of each entry; a null is missing.

        Raise AnswerInvalid if a text is not ASCII.
        """
        self.check_room()
        markers = self.markers()
        is_null, is_long = markers == _NIL, markers == _STR8
        self.fits &= is_null | is_long | (markers & 0xE0 == _TEXT)
        lengths = np.where(is_long, self.data[self.at + 1], markers & 0x1F).astype(np.int64)
        lengths[is_null | ~self.fits] = 0
        starts = self.at + 1 + is_long
        self.at = starts + lengths
        if is_null.all():
            return pa.nulls(len(markers), pa.large_string())
        texts, characters = copy_texts(self.data, starts, lengths)
        if (characters >= 0x80).any():
            raise AnswerInvalid("a text is not ASCII")
        if not is_null.any():
            return texts
        valid = pa.py_buffer(np.packbits(~is_null, bitorder="little"))
        return pa.LargeStringArray.from_buffers(len(texts), *texts.buffers()[1:], valid)

    def read_numbers(self, *, null: bool = False) -> Floats:
        """Return a number of any width of each entry, as 64-bit floats.

        - ``null``: whether a null is allowed; it becomes NaN

        Raise AnswerInvalid, pyarrow.ArrowInvalid if a text is not a plain decimal number.
        """
        markers = self.markers()
        values = unaligned_view(self.data, ">f8")[self.at + 1].astype(np.float64)
        others = np.flatnonzero(markers != _FLOAT64)
        if not len(others):
            self.at = self.at + 9
            return values
        values[others] = self._read_other_numbers(markers[others], self.at[others])
        self._read_text_numbers(values, markers)
        widths = _WIDTHS[markers]
        if null:
            nulls = markers == _NIL
            values[nulls] = np.nan
            widths = widths + nulls
        self.fits &= widths > 0
        self.at = self.at + widths
        return values

    def _read_other_numbers(self, markers: Bytes, at: Ints) -> Floats:
        """Return numbers that are not 64-bit floats."""
        values = markers.view(np.int8).astype(np.float64)
        for marker in np.flatnonzero(np.bincount(markers, minlength=256)):
            if dtype := _TYPES.get(int(marker)):
                where = np.flatnonzero(markers == marker)
                values[where] = unaligned_view(self.data, dtype)[at[where] + 1]
        return values

    def _read_text_numbers(self, values: Floats, markers: Bytes) -> None:
        """Parse numbers that are text, and store them in the values."""
        where = np.flatnonzero((markers & 0xE0 == _TEXT) & self.fits)
        if len(where):
            lengths = markers[where].astype(np.int64) - _TEXT
            texts, characters = copy_texts(self.data, self.at[where] + 1, lengths)
            if not _IN_NUMBERS[characters].all():
                raise AnswerInvalid("a text is not a number")
            values[where] = texts.cast(pa.float64())


def unaligned_view(data: Bytes, dtype: str) -> npt.NDArray[np.generic]:
    """Return a view in which a value of a type begins at every byte."""
    size = np.dtype(dtype).itemsize
    return np.ndarray((max(len(data) - size + 1, 0),), dtype, data, strides=(1,))
