"""Layouts of account entries: which values follow each other, known ones and unknown ones.

All entries of one layout are read at once. The two layouts of the specification are known; others
are learned from the first entry that has them.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from toolkit.arrays import Bytes, Ints
from toolkit.contract.field_deviations import MOST_UNKNOWN, UNSUITABLE
from toolkit.contract.snapshots.messagepack import MessagePackReader
from toolkit.errors import AnswerInvalid

KEYS: Final = {
    "v": "account_value",
    "l": "total_long_notional",
    "s": "total_short_notional",
    "m": "is_unified",
    "am": "account_mode",
    "pm": "pm_ratio",
    "pa": "pm_avail_by_branch",
    "pt": "pm_total_account_value",
}
"""Key in the object form -> column."""

_NAMES: Final = tuple(KEYS.values())
_ALWAYS: Final = 5
_LONGEST_KEY: Final = 64
_MOST_LAYOUTS: Final = 12
_MOST_ATTEMPTS: Final = 64
_BYTES: Final = np.arange(256)
BEGIN_ENTRIES: Final = (
    (_BYTES & 0xF0 == 0x90) | (_BYTES == 0xDC),
    (_BYTES & 0xF0 == 0x80) | (_BYTES == 0xDE),
)
"""Whether an entry may begin with a byte: as a tuple, and as an object."""


@dataclass(frozen=True, slots=True)
class LayoutField:
    """One value of an entry.

    - ``literal``: the bytes before it: its key, if entries are objects
    - ``column``: its column
    - ``is_known``: whether the contract knows it
    """

    literal: bytes
    column: str
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class EntryLayout:
    """The values of an entry in their order.

    - ``header``: the bytes before the first value, which state the number of values
    - ``fields``: the values
    """

    header: bytes
    fields: tuple[LayoutField, ...]

    @property
    def unknown(self) -> list[str]:
        """The columns that the contract does not know."""
        return [field.column for field in self.fields if not field.is_known]


class KnownLayouts:
    """The layouts of the entries of one snapshot: those of the specification, and learned ones.

    - ``payload``: MessagePack of the snapshot
    - ``keyed``: whether the entries are objects instead of tuples
    """

    def __init__(self, payload: memoryview, *, keyed: bool) -> None:
        self._payload = payload
        self._keyed = keyed
        self._attempts = _MOST_ATTEMPTS
        self._begin = BEGIN_ENTRIES[keyed]
        lengths = (_ALWAYS, len(_NAMES))
        self.known = [
            _object_layout(length) if keyed else _tuple_layout(length) for length in lengths
        ]

    def learn_from(self, at: Ints, first_bytes: Bytes) -> bool:
        """Learn one more layout, and return whether there was one.

        - ``at`` (array of int64): positions of the values of entries that no known layout fits
        - ``first_bytes`` (array of uint8): the bytes at these positions
        """
        for place in at[self._begin[first_bytes]]:
            if len(self.known) >= _MOST_LAYOUTS or not self._attempts:
                return False
            self._attempts -= 1
            layout = _learn_layout(self._payload, int(place), keyed=self._keyed)
            if layout and layout not in self.known:
                unknown = {name for item in (*self.known, layout) for name in item.unknown}
                if len(unknown) <= MOST_UNKNOWN:
                    self.known.append(layout)
                    return True
        return False


def _object_layout(length: int) -> EntryLayout:
    """Return the layout of an object with the known keys in their usual order."""
    fields = [
        LayoutField(bytes([0xA0 + len(key)]) + key.encode(), name) for key, name in KEYS.items()
    ]
    return EntryLayout(bytes([0x80 + length]), tuple(fields[:length]))


def count_known_values(length: int) -> int:
    """Return how many values of a tuple are known.

    The specification has tuples of 5 and of 8 values, and says that the length decides. So a tuple
    of 6 or 7 values has 5 known ones, and the rest are unknown.
    """
    return _ALWAYS if length < len(_NAMES) else len(_NAMES)


def _tuple_layout(length: int, header: bytes = b"") -> EntryLayout:
    """Return the layout of tuples of one length, which is at least 5."""
    known = count_known_values(length)
    unknown = (f"entry.value_{place}" for place in range(known, length))
    return EntryLayout(
        header or bytes([0x90 + length]),
        (
            *(LayoutField(b"", name) for name in _NAMES[:known]),
            *(LayoutField(b"", name, is_known=False) for name in unknown),
        ),
    )


def _learn_layout(payload: memoryview, at: int, *, keyed: bool) -> EntryLayout | None:
    """Return the layout of the entry whose values are at a position; None if it has none.

    An entry without a known value has none, and one with too many unknown values.
    """
    walk = MessagePackReader(payload, at, read_size=4096)
    try:
        layout = _read_object_layout(payload, walk) if keyed else _read_tuple_layout(payload, walk)
    except AnswerInvalid:
        return None
    return layout if layout and len(layout.unknown) <= MOST_UNKNOWN else None


def _read_tuple_layout(payload: memoryview, walk: MessagePackReader) -> EntryLayout | None:
    start = walk.at
    length = walk.array("entry")
    header = bytes(payload[start : walk.at])
    return (
        _tuple_layout(length, header) if _ALWAYS <= length <= len(_NAMES) + MOST_UNKNOWN else None
    )


def _read_object_layout(payload: memoryview, walk: MessagePackReader) -> EntryLayout | None:
    start = walk.at
    count = walk.map("entry")
    header = bytes(payload[start : walk.at])
    fields: dict[str, LayoutField] = {}
    for _ in range(min(count, len(_NAMES) + MOST_UNKNOWN + 1)):
        begin = walk.at
        key = walk.text("key of a value")
        literal = bytes(payload[begin : walk.at])
        walk.skip()
        if len(literal) > _LONGEST_KEY or UNSUITABLE.search(key):
            return None
        column = KEYS.get(key, f"entry.{key}")
        fields[column] = LayoutField(literal, column, key in KEYS)
    is_whole = len(fields) == count and fields.keys() >= set(_NAMES[:_ALWAYS])
    return EntryLayout(header, tuple(fields.values())) if is_whole else None
