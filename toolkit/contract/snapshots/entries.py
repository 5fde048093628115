"""Reading entries with typed decoders: strictly first, then without what is not known."""

import functools
import re
import struct
from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec

from toolkit.contract.snapshots.walking import LONGEST_NAME
from toolkit.contract.unknown import report_unknown
from toolkit.errors import AnswerInvalid

__all__ = ["Entries", "addresses_of"]

_PLACE: Final = re.compile(r" - at `\$\[(?P<row>\d+)\](?:\[(?P<index>\d+)\]|\.(?P<key>\w+))?")
_BROKEN: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_LONGEST: Final = 8 << 20


class Entries:
    """One form of the entries of a snapshot, and how to read a list of them.

    Parameters
    ----------
    operation : str
        The operation's ``type``.
    fields : sequence of tuple
        Name, key in the object form, type; and a default for a field that may lack.
    array_like : bool
        Whether the entries are tuples instead of objects.
    """

    def __init__(
        self, operation: str, fields: Sequence[tuple[Any, ...]], *, array_like: bool
    ) -> None:
        self.operation = operation
        self.names = [name for name, *_ in fields]
        self.keys = {key: name for name, key, *_ in fields}
        self.array_like = array_like
        self._fields = [(name, *rest) for name, _, *rest in fields]

    def read(self, body: bytes, count: int, first_row: int) -> list[Any]:
        """Read entries that stand one after the other.

        Parameters
        ----------
        body : bytes
            Their MessagePack.
        count : int
            Their number.
        first_row : int
            The row of the first, for messages.
        """
        array = _array_of(count, body)
        try:
            return self._strict.decode(array)
        except _BROKEN:
            pass
        try:
            rows = self._lenient.decode(array)
            self._report(array)
        except _BROKEN as error:
            raise self._invalid(error, first_row) from None
        return rows

    def snapshot(self, payload: memoryview) -> tuple[str, str, list[Any]] | None:
        """Read a whole snapshot in array form, if it is just as it should be."""
        try:
            snapshot = self._whole.decode(payload)
        except _BROKEN:
            return None
        return snapshot if max(map(len, snapshot[:2])) <= LONGEST_NAME else None

    @functools.cached_property
    def _whole(self) -> "msgspec.msgpack.Decoder[tuple[str, str, list[Any]]]":
        entry = self._entry(strict=True)
        return msgspec.msgpack.Decoder(tuple[str, str, list[entry]], strict=False)  # type: ignore[valid-type]

    @functools.cached_property
    def _strict(self) -> "msgspec.msgpack.Decoder[list[Any]]":
        return msgspec.msgpack.Decoder(list[self._entry(strict=True)], strict=False)  # type: ignore[misc]

    @functools.cached_property
    def _lenient(self) -> "msgspec.msgpack.Decoder[list[Any]]":
        return msgspec.msgpack.Decoder(list[self._entry(strict=False)], strict=False)  # type: ignore[misc]

    def _entry(self, *, strict: bool) -> type[msgspec.Struct]:
        return msgspec.defstruct(
            "Entry",
            self._fields,
            rename={name: key for key, name in self.keys.items()},
            array_like=self.array_like,
            forbid_unknown_fields=strict,
            gc=False,
        )

    def _report(self, array: bytes) -> None:
        if self.array_like:
            report_unknown(self.operation, f"[{len(self.names)}]")
            return
        if len(array) > _LONGEST:
            report_unknown(self.operation, "keys of a very long entry")
            return
        known = self.keys.keys()
        for entry in _KEYS.decode(array):
            for key in list(entry.keys() - known)[:8]:
                report_unknown(self.operation, key)

    def _invalid(self, error: Exception, first_row: int) -> AnswerInvalid:
        place = _PLACE.search(str(error))
        if place is None:
            return AnswerInvalid(f"an entry cannot be read: {error}")
        if place["index"]:
            column = self.names[int(place["index"])]
        else:
            column = self.keys.get(str(place["key"]), "")
        return AnswerInvalid(
            str(error)[: place.start()], column=column, row=first_row + int(place["row"])
        )


_Address = Annotated[str, msgspec.Meta(pattern=r"\A0x[\x00-\x7f]{40}\Z")]
_ADDRESSES: Final = msgspec.msgpack.Decoder(list[_Address])
_KEYS: Final = msgspec.msgpack.Decoder(list[dict[str, msgspec.Raw]])


def addresses_of(body: bytes, count: int, column: str, first_row: int) -> list[str]:
    """Read addresses that stand one after the other; their digits are not looked at."""
    array = _array_of(count, body)
    try:
        return _ADDRESSES.decode(array)
    except _BROKEN as error:
        place = _PLACE.search(str(error))
        if place is None:
            raise AnswerInvalid(f"an address cannot be read: {error}", column=column) from None
        raise AnswerInvalid(
            "an address is 0x and 40 digits", column=column, row=first_row + int(place["row"])
        ) from None


def _array_of(count: int, body: bytes) -> bytes:
    return struct.pack(">BI", 0xDD, count) + body
