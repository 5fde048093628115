"""Unknown values of entries: MessagePack that becomes text only if somebody reads it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, Self

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from toolkit.arrays import Ints

Spans = npt.NDArray[np.uint32]

TEXT: Final = pa.large_string()
_BATCH: Final = 8_192
_MOST_BYTES: Final = 1 << 20
_VALUES: Final = msgspec.msgpack.Decoder(list[Any])


@dataclass(frozen=True, slots=True, eq=False)
class RawValues:
    """The values of one column, as positions in MessagePack.

    - ``parts``: for each part its bytes, and for each row the position and the length of its value;
      the length 0 if the row has no value
    - ``order`` (array of int64 or None): the rows of the column as rows of the parts, which follow
      each other; None if it is all of them
    """

    parts: tuple[tuple[Any, Spans, Spans], ...]
    order: Ints | None = None

    @classmethod
    def absent(cls, rows: int) -> Self:
        """Return a column without any value."""
        nothing = np.zeros(rows, np.uint32)
        return cls(((b"", nothing, nothing),))

    @classmethod
    def of(cls, raws: Sequence[Any]) -> Self:
        """Return a column of separate values; UNSET stands for no value."""
        present = [b"" if raw is msgspec.UNSET else raw for raw in raws]
        lengths = np.fromiter(map(len, present), np.uint32, len(present))
        starts = np.zeros(len(present), np.uint32)
        np.cumsum(lengths[:-1], out=starts[1:])
        return cls(((b"".join(present), starts, lengths),))

    @classmethod
    def join(cls, columns: "Sequence[RawValues]") -> Self:
        """Return one column after the other."""
        parts = tuple(part for column in columns for part in column.parts)
        if all(column.order is None for column in columns):
            return cls(parts)
        orders, rows = [], 0
        for column in columns:
            orders.append(rows + (np.arange(len(column)) if column.order is None else column.order))
            rows += column._rows_of_parts
        return cls(parts, np.concatenate(orders))

    def __len__(self) -> int:
        return self._rows_of_parts if self.order is None else len(self.order)

    @property
    def _rows_of_parts(self) -> int:
        return sum(len(starts) for _, starts, _ in self.parts)

    def has_any(self) -> bool:
        """Return whether a row has a value."""
        lengths = np.concatenate([lengths for _, _, lengths in self.parts])
        return bool((lengths if self.order is None else lengths[self.order]).any())

    def take(self, rows: Ints) -> "RawValues":
        """Return the column with some rows, in their order."""
        return RawValues(self.parts, rows if self.order is None else self.order[rows])

    def texts(self) -> pa.Array:
        """Return the column as text; a row without a value, or with null, is null."""
        chunks = [
            texts
            for data, starts, lengths in self.parts
            for texts in _texts_in_batches(memoryview(data), starts, lengths)
        ]
        whole = pa.concat_arrays([pa.array([], TEXT), *chunks])
        return whole if self.order is None else whole.take(pa.array(self.order))


class LazyColumns(Mapping[str, Any]):
    """Columns by name; unknown values become text when their column is read."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = columns

    def __getitem__(self, name: str) -> Any:
        values = self._columns[name]
        return values.texts() if isinstance(values, RawValues) else values

    def __contains__(self, name: object) -> bool:
        return name in self._columns  # the inherited method would make the texts

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def unknown_columns(rows: Sequence[msgspec.Struct]) -> dict[str, RawValues]:
    """Return the columns of unknown values that entries have: ``entry.<name>`` -> its values."""
    kinds: Any = set(map(type, rows))
    names = dict.fromkeys(name for kind in kinds for name in kind.__extras__.values())
    columns = {}
    for name in names:
        attribute = {
            kind: key for kind in kinds for key, column in kind.__extras__.items() if column == name
        }
        raws: list[Any]
        if len(kinds) == 1:
            (own,) = attribute.values()
            raws = list(map(attrgetter(own), rows))
        else:
            raws = [getattr(row, attribute.get(type(row), ""), msgspec.UNSET) for row in rows]
        columns[f"entry.{name}"] = RawValues.of(raws)
    return {name: values for name, values in columns.items() if values.has_any()}


def value_text(raw: Any) -> str | None:
    """Return the text of a MessagePack value: a string itself, or the JSON text of another value.

    A value that has no JSON text is shown as bytes. A null is None.
    """
    try:
        return _texts_of_values(b"\xdd\0\0\0\1" + bytes(raw))[0]
    except _NO_TEXT:
        return repr(bytes(raw))


_NO_TEXT: Final = (msgspec.MsgspecError, TypeError, ValueError, RecursionError)


def _texts_of_values(array: bytes) -> list[str | None]:
    """Return the texts of the values of a MessagePack array."""
    values = _VALUES.decode(array)
    # The JSON text of one value has no line break.
    lines = msgspec.json.Encoder().encode_lines(values).decode().split("\n")[:-1]
    return [
        value if value is None or isinstance(value, str) else line
        for value, line in zip(values, lines, strict=True)
    ]


def _texts_in_batches(data: memoryview, starts: Spans, lengths: Spans) -> Iterator[pa.Array]:
    """Yield the texts of some values, in batches of rows."""
    characters = np.frombuffer(data, np.uint8)
    for first in range(0, len(starts), _BATCH):
        batch = slice(first, first + _BATCH)
        present = np.flatnonzero(lengths[batch])
        begin = starts[batch][present].astype(np.int64)
        length = lengths[batch][present].astype(np.int64)
        ends = np.cumsum(length)
        if length.sum() <= _MOST_BYTES:
            where = np.arange(length.sum()) + np.repeat(begin - ends + length, length)
            body = characters[where].tobytes()
        else:  # the places of the bytes would need eight times their memory
            spans = zip(begin.tolist(), (begin + length).tolist(), strict=True)
            body = b"".join([data[start:end] for start, end in spans])
        try:
            texts = _texts_of_values(b"\xdd" + len(present).to_bytes(4, "big") + body)
        except _NO_TEXT:
            spans = zip(ends - length, ends, strict=True)
            texts = [value_text(body[start:end]) for start, end in spans]
        place = np.full(len(lengths[batch]), -1)
        place[present] = np.arange(len(present))
        yield pa.array(texts, TEXT).take(pa.array(place, mask=place < 0))
