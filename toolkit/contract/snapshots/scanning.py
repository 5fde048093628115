"""Reading a field of many entries at once, straight from MessagePack.

A `Cursor` stands at the same place of every entry. It reads a field by one gather through an
unaligned view of the bytes, and moves on by the width that the field's first byte tells. An
entry that it cannot read does not fit: its cursor may then stand anywhere, and who uses
the values has to look at `fits`.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from toolkit.errors import AnswerInvalid

__all__ = ["ADDRESS", "SLACK", "Cursor", "address_starts", "texts_at", "texts_in"]

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.float64]

ADDRESS: Final = 42
"""Characters of an address."""

SLACK: Final = 320
"""An entry this close to the end of the bytes is not read here; what is read of an entry at a
fixed distance from its start is nearer than this."""

_BLOCK: Final = 1 << 20
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


def _widths() -> Bytes:
    widths = np.zeros(256, np.uint8)
    widths[:0x80] = widths[0xE0:] = 1  # whole numbers within their marker
    widths[_TEXT + 1 : _TEXT + 32] = np.arange(2, 33)  # short decimal text
    for marker, kind in _TYPES.items():
        widths[marker] = 1 + np.dtype(kind).itemsize
    return widths


_WIDTHS: Final = _widths()


def address_starts(data: Bytes, start: int, finish: int) -> Places:
    """Find where a text of 42 characters beginning with ``0x`` stands: every entry begins so.

    Some that are found may be values inside of entries.
    """
    found = [
        np.flatnonzero(data[at : min(at + _BLOCK, finish)] == _STR8) + at
        for at in range(start, finish, _BLOCK)
    ]
    starts: Places = np.concatenate(found) if found else np.empty(0, np.int64)
    starts = starts[starts <= finish - ADDRESS - 2]
    is_address: Mask = _view(data, "<u4")[starts] == _ADDRESS_BEGINS
    return starts[is_address]


def texts_at(data: Bytes, starts: Places) -> Bytes:
    """Copy the 42 bytes at each of the places, one after the other."""
    fixed = np.ndarray((len(data) - ADDRESS + 1,), f"V{ADDRESS}", data, strides=(1,))
    return fixed[starts].view(np.uint8)


def texts_in(data: Bytes, starts: Places, lengths: Places) -> tuple[pa.Array, Bytes]:
    """Copy texts of any length; give them, and their characters one after the other."""
    offsets = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    characters = data[np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)]
    texts = pa.LargeStringArray.from_buffers(
        len(starts), pa.py_buffer(offsets), pa.py_buffer(characters)
    )
    return texts, characters


class Cursor:
    """A place in each of many entries.

    Parameters
    ----------
    data : array of uint8
        The bytes.
    at : array of int64
        A place for each entry, `SLACK` before the end of the bytes.

    Attributes
    ----------
    fits : array of bool
        Which entries could be read so far.
    """

    def __init__(self, data: Bytes, at: Places) -> None:
        self.data = data
        self.at = at
        self.fits = np.ones(len(at), np.bool_)

    def narrowed(self, where: Places) -> "Cursor":
        """Begin another cursor in some of the entries."""
        return Cursor(self.data, self.at[where])

    def markers(self) -> Bytes:
        """Give the byte at each place."""
        return self.data[self.at]

    def step(self) -> Bytes:
        """Give the byte at each place, and move behind it."""
        markers = self.markers()
        self.at = self.at + 1
        return markers

    def literal(self, expected: bytes) -> None:
        """Move over bytes that are the same in all entries."""
        for byte in expected:
            self.fits &= self.step() == byte

    def flag(self) -> Mask:
        """Read a flag."""
        markers = self.step()
        is_true: Mask = markers == _TRUE
        self.fits &= is_true | (markers == _FALSE)
        return is_true

    def small(self) -> Places:
        """Read a whole number from 0 to 127."""
        markers = self.step()
        self.fits &= markers < 0x80
        return markers.astype(np.int64)

    def number(self, *, null: bool = False) -> Numbers:
        """Read a number of any width as a 64-bit float.

        Parameters
        ----------
        null : bool
            Whether there may be a null, which becomes NaN.

        Raises
        ------
        AnswerInvalid, pyarrow.ArrowInvalid
            If a text is no plain decimal number.
        """
        markers = self.markers()
        values = _view(self.data, ">f8")[self.at + 1].astype(np.float64)
        others = np.flatnonzero(markers != _FLOAT64)
        if not len(others):
            self.at = self.at + 9
            return values
        values[others] = self._others(markers[others], self.at[others])
        self._amend_texts(values, markers)
        widths = _WIDTHS[markers]
        if null:
            nulls = markers == _NIL
            values[nulls] = np.nan
            widths = widths + nulls
        self.fits &= widths > 0
        self.at = self.at + widths
        return values

    def _others(self, markers: Bytes, at: Places) -> Numbers:
        """Read numbers that are no 64-bit floats."""
        values = markers.view(np.int8).astype(np.float64)
        for marker in np.flatnonzero(np.bincount(markers, minlength=256)):
            if kind := _TYPES.get(int(marker)):
                where = np.flatnonzero(markers == marker)
                values[where] = _view(self.data, kind)[at[where] + 1]
        return values

    def _amend_texts(self, values: Numbers, markers: Bytes) -> None:
        """Read numbers that stand as text."""
        where = np.flatnonzero((markers & 0xE0 == _TEXT) & self.fits)
        if len(where):
            lengths = markers[where].astype(np.int64) - _TEXT
            texts, characters = texts_in(self.data, self.at[where] + 1, lengths)
            if not _IN_NUMBERS[characters].all():
                raise AnswerInvalid("a text that may be no number")
            values[where] = texts.cast(pa.float64())


def _view(data: Bytes, kind: str) -> npt.NDArray[np.generic]:
    """See the bytes as values of a type that begin at every byte."""
    size = np.dtype(kind).itemsize
    return np.ndarray((max(len(data) - size + 1, 0),), kind, data, strides=(1,))
