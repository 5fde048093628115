"""MessagePack without objects: positions in it, and the head of a snapshot."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgpack

from toolkit.contract.field_deviations import MOST_UNKNOWN
from toolkit.display import count_text
from toolkit.errors import AnswerInvalid

LONGEST_NAME: Final = 4096
"""The most characters of the id, token or market of a snapshot."""


class MessagePackReader:
    """A position in MessagePack that moves from value to value.

    - ``buffer``: the MessagePack
    - ``start``: the first position
    - ``read_size``: the bytes of one read
    """

    def __init__(self, buffer: memoryview, start: int = 0, *, read_size: int = 1 << 16) -> None:
        self._buffer = buffer
        self._start = start
        self._read = start
        self._unpacker = msgpack.Unpacker(self, read_size=read_size, max_buffer_size=0)

    def read(self, size: int) -> bytes:
        """Return the next bytes; the unpacker calls it."""
        part = bytes(self._buffer[self._read : self._read + size])
        self._read += len(part)
        return part

    @property
    def at(self) -> int:
        """The position in the buffer."""
        return self._start + int(self._unpacker.tell())

    @property
    def marker(self) -> int:
        """The first byte of the next value, or -1 at the end."""
        at = self.at
        return self._buffer[at] if at < len(self._buffer) else -1

    @property
    def length(self) -> int:
        """The length of the buffer."""
        return len(self._buffer)

    def copy(self) -> "MessagePackReader":
        """Return another reader at this position."""
        return MessagePackReader(self._buffer, self.at)

    def skip(self) -> None:
        """Skip one value, of any depth."""
        try:
            self._unpacker.skip()
        except (ValueError, msgpack.UnpackException, RecursionError) as error:
            raise self._damage_error(error) from None

    def text(self, meaning: str) -> str:
        """Return the next value, which must be a text."""
        if not (0xA0 <= self.marker <= 0xBF or 0xD9 <= self.marker <= 0xDB):
            raise AnswerInvalid(
                f"the {meaning} must be a text, but there is none at byte {self.at}"
            )
        try:
            text: str = self._unpacker.unpack()
        except (ValueError, msgpack.UnpackException) as error:
            raise self._damage_error(error) from None
        if len(text) > LONGEST_NAME:
            raise AnswerInvalid(
                f"the {meaning} has {len(text)} characters, more than the limit of {LONGEST_NAME}",
                value=text,
            )
        return text

    def array(self, meaning: str) -> int:
        """Enter an array, and return the number of its values."""
        if not (0x90 <= self.marker <= 0x9F or self.marker in (0xDC, 0xDD)):
            raise AnswerInvalid(
                f"the {meaning} must be an array, but there is none at byte {self.at}"
            )
        return self._read_header(self._unpacker.read_array_header)

    def map(self, meaning: str) -> int:
        """Enter a map, and return the number of its pairs."""
        if not (0x80 <= self.marker <= 0x8F or self.marker in (0xDE, 0xDF)):
            raise AnswerInvalid(f"the {meaning} must be a map, but there is none at byte {self.at}")
        return self._read_header(self._unpacker.read_map_header)

    def _read_header(self, read_header: Callable[[], int]) -> int:
        try:
            return read_header()
        except (ValueError, msgpack.UnpackException) as error:
            raise self._damage_error(error) from None

    def _damage_error(self, error: Exception) -> AnswerInvalid:
        reason = str(error) or type(error).__name__
        return AnswerInvalid(
            f"the MessagePack is damaged at byte {self.at}: {reason}. Request it again"
        )


@dataclass(frozen=True, slots=True)
class SnapshotHead:
    """The values of a snapshot around its entries.

    - ``snapshot_id``, ``name``: the first two values: the id, and collateral token or market
    - ``count``: the number of entries
    - ``start``, ``finish``: the position of the first entry, and the position where they must end
    - ``unknown``: further values: their names, and where each begins and ends
    - ``keyed``: whether the snapshot has the object form
    """

    snapshot_id: str
    name: str
    count: int
    start: int
    finish: int
    unknown: tuple[tuple[str, int, int], ...] = ()
    keyed: bool = False


def read_head(buffer: memoryview, name: str, entries: str) -> SnapshotHead:
    """Return the head of the array form ``[id, name, entries]`` or the object form ``{i, t, u}``.

    - ``buffer``: MessagePack of one snapshot
    - ``name``: the meaning of the second value, for messages
    - ``entries`` ({"map", "array"}): the type of the entries' container
    """
    walk = MessagePackReader(buffer)
    is_object = entries == "map" and (0x80 <= walk.marker <= 0x8F or walk.marker in (0xDE, 0xDF))
    head = _read_object_head(walk, name) if is_object else _read_array_head(walk, name, entries)
    if head.finish > len(buffer) or (head.finish < len(buffer) and walk.at != len(buffer)):
        rest = count_text(len(buffer) - walk.at, "byte follows", "bytes follow")
        raise AnswerInvalid(f"unexpected: {rest} the snapshot. Request it again")
    return head


def _read_array_head(walk: MessagePackReader, name: str, entries: str) -> SnapshotHead:
    length = walk.array("snapshot")
    if length < 3:
        raise AnswerInvalid(f"a snapshot must have 3 values (id, {name}, entries), not {length}")
    snapshot_id, text = walk.text("snapshot id"), walk.text(name)
    count, start, finish = _measure_entries(walk, entries, is_last=length == 3)
    unknown = []
    for place in range(3, length):
        at = walk.at
        walk.skip()
        if place < MOST_UNKNOWN:
            unknown.append((f"value_{place}", at, walk.at))
    return SnapshotHead(snapshot_id, text, count, start, finish, tuple(unknown))


def _read_object_head(walk: MessagePackReader, name: str) -> SnapshotHead:
    texts: dict[str, str] = {}
    found: tuple[int, int, int] | None = None
    unknown: list[tuple[str, int, int]] = []
    pairs = walk.map("snapshot")
    for left in reversed(range(pairs)):
        key = walk.text("key of a snapshot")
        if key in ("i", "t") and key not in texts:
            texts[key] = walk.text("snapshot id" if key == "i" else name)
        elif key == "u" and found is None:
            found = _measure_entries(walk, "map", is_last=left == 0)
        else:
            at = walk.at
            walk.skip()
            unknown = [*unknown, (key, at, walk.at)][:MOST_UNKNOWN]
    if found is None or len(texts) < 2:
        missing = [key for key in ("i", "t") if key not in texts] + ["u"] * (found is None)
        raise AnswerInvalid(
            f"a snapshot in object form lacks the key {' and '.join(missing)}. It must have the "
            "keys i, t and u. Report this to the service"
        )
    return SnapshotHead(texts["i"], texts["t"], *found, tuple(unknown), keyed=True)


def _measure_entries(walk: MessagePackReader, entries: str, is_last: bool) -> tuple[int, int, int]:
    """Return number, start and end of the entries, and skip them if more values follow."""
    inside = walk.copy()
    count = inside.map("users") if entries == "map" else inside.array("TWAPs")
    if is_last:
        return count, inside.at, walk.length
    walk.skip()
    return count, inside.at, walk.at
