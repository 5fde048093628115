"""Walking through MessagePack without making objects of it: positions, counts, heads."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgpack

from toolkit.errors import AnswerInvalid

__all__ = ["LONGEST_NAME", "Head", "Walk", "read_head"]

LONGEST_NAME: Final = 4096
"""Characters that the id, token or market of a snapshot may have."""


class Walk:
    """A position in MessagePack that moves over whole values.

    Parameters
    ----------
    buffer : memoryview
        The MessagePack.
    start : int
        Where to begin.
    read_size : int
        Bytes to take at a time.
    """

    def __init__(self, buffer: memoryview, start: int = 0, *, read_size: int = 1 << 16) -> None:
        self._buffer = buffer
        self._start = start
        self._read = start
        self._unpacker = msgpack.Unpacker(self, read_size=read_size, max_buffer_size=0)

    def read(self, size: int) -> bytes:
        """Hand the next bytes to the unpacker."""
        part = bytes(self._buffer[self._read : self._read + size])
        self._read += len(part)
        return part

    @property
    def at(self) -> int:
        """Where the walk stands in the buffer."""
        return self._start + int(self._unpacker.tell())

    @property
    def marker(self) -> int:
        """The byte that begins the next value, or -1 at the end."""
        at = self.at
        return self._buffer[at] if at < len(self._buffer) else -1

    @property
    def length(self) -> int:
        """The length of the buffer."""
        return len(self._buffer)

    def copy(self) -> "Walk":
        """Begin another walk from here."""
        return Walk(self._buffer, self.at)

    def skip(self) -> None:
        """Move over one value, however deep."""
        try:
            self._unpacker.skip()
        except (ValueError, msgpack.UnpackException, RecursionError) as error:
            raise self._damaged(error) from None

    def text(self, meaning: str) -> str:
        """Read a text."""
        if not (0xA0 <= self.marker <= 0xBF or 0xD9 <= self.marker <= 0xDB):
            raise AnswerInvalid(f"the {meaning} should be a text; byte {self.at} begins none")
        try:
            text: str = self._unpacker.unpack()
        except (ValueError, msgpack.UnpackException) as error:
            raise self._damaged(error) from None
        if len(text) > LONGEST_NAME:
            raise AnswerInvalid(f"the {meaning} has {len(text)} characters", value=text)
        return text

    def array(self, meaning: str) -> int:
        """Enter an array: give the number of its values."""
        if not (0x90 <= self.marker <= 0x9F or self.marker in (0xDC, 0xDD)):
            raise AnswerInvalid(f"the {meaning} should be an array; byte {self.at} begins none")
        return self._enter(self._unpacker.read_array_header)

    def map(self, meaning: str) -> int:
        """Enter a map: give the number of its pairs."""
        if not (0x80 <= self.marker <= 0x8F or self.marker in (0xDE, 0xDF)):
            raise AnswerInvalid(f"the {meaning} should be a map; byte {self.at} begins none")
        return self._enter(self._unpacker.read_map_header)

    def _enter(self, read_header: Callable[[], int]) -> int:
        try:
            return read_header()
        except (ValueError, msgpack.UnpackException) as error:
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> AnswerInvalid:
        reason = str(error) or type(error).__name__
        return AnswerInvalid(f"the MessagePack is damaged at byte {self.at}: {reason}")


@dataclass(frozen=True, slots=True)
class Head:
    """What stands around the entries of a snapshot.

    Attributes
    ----------
    snapshot_id, name : str
        The first two values: the id, and collateral token or market.
    count : int
        The number of entries that is announced.
    start, finish : int
        Where the entries begin, and where they have to end.
    unknown : tuple of str
        What else is there, for a warning.
    keyed : bool
        Whether it has the object form.
    """

    snapshot_id: str
    name: str
    count: int
    start: int
    finish: int
    unknown: tuple[str, ...] = ()
    keyed: bool = False


def read_head(buffer: memoryview, name: str, entries: str) -> Head:
    """Read the array form ``[id, name, entries]`` or the object form ``{i, t, u}``.

    Parameters
    ----------
    buffer : memoryview
        MessagePack of one snapshot.
    name : str
        What the second value is, for messages.
    entries : {"map", "array"}
        What holds the entries.
    """
    walk = Walk(buffer)
    is_object = entries == "map" and (0x80 <= walk.marker <= 0x8F or walk.marker in (0xDE, 0xDF))
    head = _object(walk, name) if is_object else _array(walk, name, entries)
    if head.finish > len(buffer) or (head.finish < len(buffer) and walk.at != len(buffer)):
        raise AnswerInvalid(f"{len(buffer) - walk.at} bytes follow the snapshot")
    return head


def _array(walk: Walk, name: str, entries: str) -> Head:
    length = walk.array("snapshot")
    if length < 3:
        raise AnswerInvalid(f"a snapshot has 3 values: id, {name}, entries; here are {length}")
    snapshot_id, text = walk.text("snapshot id"), walk.text(name)
    count, start, finish = _entries(walk, entries, is_last=length == 3)
    for _ in range(length - 3):
        walk.skip()
    return Head(snapshot_id, text, count, start, finish, ("[3]",) if length > 3 else ())


def _object(walk: Walk, name: str) -> Head:
    texts: dict[str, str] = {}
    found: tuple[int, int, int] | None = None
    unknown: list[str] = []
    pairs = walk.map("snapshot")
    for left in reversed(range(pairs)):
        key = walk.text("key of a snapshot")
        if key in ("i", "t") and key not in texts:
            texts[key] = walk.text("snapshot id" if key == "i" else name)
        elif key == "u" and found is None:
            found = _entries(walk, "map", is_last=left == 0)
        else:
            unknown = [*unknown, key][:8]
            walk.skip()
    if found is None or len(texts) < 2:
        raise AnswerInvalid("a snapshot in object form has the keys i, t and u; one is not there")
    return Head(texts["i"], texts["t"], *found, tuple(unknown), keyed=True)


def _entries(walk: Walk, entries: str, is_last: bool) -> tuple[int, int, int]:
    """Give number, start and end of the entries; move over them if more follows."""
    inside = walk.copy()
    count = inside.map("users") if entries == "map" else inside.array("TWAPs")
    if is_last:
        return count, inside.at, walk.length
    walk.skip()
    return count, inside.at, walk.at
