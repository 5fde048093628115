"""Where unknown values of many entries end: values of any MessagePack type, without an object each.

A first byte implies how long a value is, or how many values it contains. Most often the values of
one place have one shape, such as ``{"a": [1.5]}`` with any number. If a value has the same bytes as
the first one in all places except those of numbers, the two are equally long.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from toolkit.arrays import Bytes, Flags, Ints
from toolkit.contract.snapshots.entry_reader import SLACK, EntryReader, unaligned_view

_SHAPES: Final = 4
_FEW: Final = 8
"""The search for shapes ends if fewer than one in this many values has the last shape found."""

_LONGEST_SHAPE: Final = 256
_MOST_VALUES: Final = 64
"""The most values inside an unknown value; others make their entry an odd one."""


def _first_bytes() -> dict[str, Ints]:
    """Return for each first byte of a value what it implies.

    - ``width``: the bytes of the value before its text, its bytes or the values inside it; 0 if no
      value begins with the byte
    - ``size``: how many of these bytes state a number
    - ``follow``: how many bytes follow for each one of that number
    - ``inside``: how many values are inside for each one of that number
    - ``short``: how many values are inside a short container
    - ``same``: the bits of the byte that others of this width have in common
    """
    table = {
        name: np.zeros(256, np.int64)
        for name in ("width", "size", "follow", "inside", "short", "same")
    }
    width = table["width"]
    width[:0xC1] = width[0xC2:0xC4] = width[0xE0:] = 1
    width[0xA0:0xC0] = 1 + np.arange(32)
    width[0xCA:0xD4] = (5, 9, 2, 3, 5, 9, 2, 3, 5, 9)
    width[0xD4:0xD9] = 2 + 2 ** np.arange(5)
    for first, type_bytes in ((0xC4, 0), (0xC7, 1), (0xD9, 0)):  # bytes, extensions, texts
        table["size"][first : first + 3] = (1, 2, 4)
        table["follow"][first : first + 3] = 1
        width[first : first + 3] = 1 + type_bytes + table["size"][first : first + 3]
    table["size"][0xDC:0xE0] = (2, 4, 2, 4)
    table["inside"][0xDC:0xE0] = (1, 1, 2, 2)
    width[0xDC:0xE0] = (3, 5, 3, 5)
    table["short"][0x80:0x90] = 2 * np.arange(16)
    table["short"][0x90:0xA0] = np.arange(16)
    table["same"][:] = 0xFF
    table["same"][:0x80], table["same"][0xE0:] = 0x80, 0xE0  # small numbers
    table["same"][0xC2:0xC4] = 0xFE  # false and true
    return table


_FIRST: Final = _first_bytes()
_IS_CONTAINER: Final = (_FIRST["short"] > 0) | (_FIRST["inside"] > 0)
_STATED: Final = {1: "u1", 2: ">u2", 4: ">u4"}


def skip_values(reader: EntryReader) -> None:
    """Move to the end of one value in each entry.

    An entry does not fit if its value is damaged, or contains very many values.
    """
    reader.check_room()
    if len(reader.at) and _IS_CONTAINER[reader.data[reader.at[0]]]:
        left = np.arange(len(reader.at))
    else:
        after, inside, is_value = _enter_values(reader.data, reader.at)
        reader.fits &= is_value
        left = np.flatnonzero(inside)
        after[left] = reader.at[left]
        reader.at = after
    for _ in range(_SHAPES):
        before = len(left)
        left = _skip_shape(reader, left)
        if not len(left) or before - len(left) < before // _FEW:
            break
    _skip_step_by_step(reader, left)
    reader.check_room()


def _enter_values(data: Bytes, at: Ints) -> tuple[Ints, Ints, Flags]:
    """Return where values end or their inside begins, how many are inside, and which are values."""
    markers = data[at]
    width, inside = _FIRST["width"][markers], _FIRST["short"][markers]
    after: Ints = at + width
    where = np.flatnonzero(_FIRST["size"][markers])
    if len(where):
        stated = _stated_numbers(data, at[where] + 1, markers[where])
        after[where] += stated * _FIRST["follow"][markers[where]]
        inside[where] = stated * _FIRST["inside"][markers[where]]
    is_value: Flags = width > 0
    return after, inside, is_value


def _stated_numbers(data: Bytes, at: Ints, markers: Bytes) -> Ints:
    """Return the numbers that stand behind the first bytes of long values."""
    sizes = _FIRST["size"][markers]
    numbers = np.zeros(len(at), np.int64)
    for size, dtype in _STATED.items():
        where = np.flatnonzero(sizes == size)
        if len(where):
            numbers[where] = unaligned_view(data, dtype)[at[where]]
    return numbers


def _skip_shape(reader: EntryReader, left: Ints) -> Ints:
    """Skip the values with the shape of the first one, and return the entries that are left."""
    start = reader.at[left]
    shape = _find_shape(reader.data, int(start[0])) if len(left) else None
    if shape is None:
        return left
    length, mask, template = shape
    windows = unaligned_view(reader.data, f"V{template.nbytes}")[start]
    words = windows.view(np.uint64).reshape(len(left), -1)
    is_same = words[:, 0] & mask[0] == template[0]
    for word in range(1, len(mask)):
        if mask[word]:
            is_same &= words[:, word] & mask[word] == template[word]
    reader.at[left[is_same]] = start[is_same] + length
    remaining: Ints = left[~is_same]
    return remaining


def _find_shape(
    data: Bytes, start: int
) -> tuple[int, npt.NDArray[np.uint64], npt.NDArray[np.uint64]] | None:
    """Return the shape of a value: its length, a mask of the bits that imply it, and these bits.

    None if the value is too long, or contains too many values.
    """
    mask = np.zeros(_LONGEST_SHAPE, np.uint8)
    at, left = start, 1
    for _ in range(_MOST_VALUES):
        marker, first = data[at], at - start
        mask[first] = _FIRST["same"][marker]
        mask[first + 1 : first + 1 + _FIRST["size"][marker]] = 0xFF
        after, inside, is_value = _enter_values(data, np.array([at]))
        at, left = int(after[0]), left - 1 + int(inside[0])
        if not is_value[0] or at - start > _LONGEST_SHAPE - 8:
            return None
        if not left:
            words = -(-(at - start) // 8)
            bits = mask[: 8 * words].view(np.uint64)
            template = data[start : start + 8 * words].copy().view(np.uint64) & bits
            return at - start, bits, template
    return None


def _skip_step_by_step(reader: EntryReader, left: Ints) -> None:
    """Skip values, and those inside of them one after the other, in all entries at once."""
    last = len(reader.data) - SLACK
    to_come = np.ones(len(left), np.int64)
    for _ in range(_MOST_VALUES):
        if not len(left):
            return
        at = reader.at[left]
        reader.at[left], inside, is_value = _enter_values(reader.data, at)
        reader.fits[left[~is_value]] = False
        to_come = to_come - 1 + inside
        is_open = (to_come > 0) & is_value & (reader.at[left] <= last)
        reader.fits[left[(to_come > 0) & ~is_open]] = False
        left, to_come = left[is_open], to_come[is_open]
    reader.fits[left] = False
