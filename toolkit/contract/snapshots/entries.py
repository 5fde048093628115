"""Entries of a snapshot, read by typed decoders: a strict one first, then more liberal ones.

Any value except the keys may be null, and it may be absent if entries are objects. Unknown values
are kept beside the known ones. docs/live_service.md, section 1.
"""

import functools
import re
import struct
from collections.abc import Mapping, Sequence
from types import GenericAlias, NoneType
from typing import Annotated, Any, Final, get_args

import msgspec

from toolkit.contract.field_deviations import (
    MOST_UNKNOWN,
    UNSUITABLE,
    report_missing,
    report_unknown,
)
from toolkit.contract.snapshots.messagepack import LONGEST_NAME, SnapshotHead
from toolkit.contract.snapshots.unknown_values import value_text
from toolkit.errors import AnswerInvalid

_PLACE: Final = re.compile(r" - at `\$\[(?P<row>\d+)\](?:\[(?P<index>\d+)\]|\.(?P<key>\w+))?")
_BROKEN: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_LONGEST: Final = 8 << 20
_NOTHING: Final[Mapping[str, str]] = {}
_MAY_BE_ABSENT: Final = (msgspec.Raw | msgspec.UnsetType, msgspec.UNSET)


class EntryDecoder:
    """A reader of lists of entries in one form.

    - ``operation``: the operation's ``type``
    - ``fields``: name, key in the object form, type; and a default if the field may be absent
    - ``array_like``: whether the entries are tuples instead of objects
    - ``keys``: names of the fields that every entry must have
    """

    def __init__(
        self,
        operation: str,
        fields: Sequence[tuple[Any, ...]],
        *,
        array_like: bool,
        keys: Sequence[str] = (),
    ) -> None:
        self.operation = operation
        self.names = [name for name, *_ in fields]
        self.keys = {key: name for name, key, *_ in fields}
        self.array_like = array_like
        self._fields = [(name, *rest) for name, _, *rest in fields]
        self._expected = [
            name
            for name, annotation, *default in self._fields
            if not (name in keys or default or NoneType in get_args(annotation))
        ]
        self._liberal_fields = [self._liberal_field(*field) for field in self._fields]
        self._likely: tuple[dict[str, str], Any, Any] | None = None
        self._is_likely = False

    def read(self, body: bytes, count: int, first_row: int) -> list[Any]:
        """Return entries that follow each other.

        - ``body``: their MessagePack
        - ``count``: their number
        - ``first_row``: the row of the first entry, for messages
        """
        array = _array_body(count, body)
        try:
            return self._strict.decode(array)
        except _BROKEN:
            pass
        if self._likely:  # most pages have the unknown values of the page before
            try:
                return self._report_names(self._likely[1].decode(array))
            except _BROKEN:
                pass
        try:
            rows = self._nullable.decode(array)
        except _BROKEN:
            rows = self._read_unknown(array, first_row)
        for name in self._expected:
            if any(getattr(row, name) is None for row in rows):
                report_missing(self.operation, name)
        return rows

    def _read_unknown(self, array: bytes, first_row: int) -> list[Any]:
        """Return entries with their unknown values, in fields after the known ones."""
        try:
            names = self._unknown_names(array)
            fields = [*self._liberal_fields, *((name, *_MAY_BE_ABSENT) for name in names)]
            rows = self._decoder(fields, forbid=False, unknown=names).decode(array)
        except _BROKEN as error:
            raise self._invalid_entry(error, first_row) from None
        self._remember_names(names)
        return self._report_names(rows)

    def _remember_names(self, names: dict[str, str]) -> None:
        """Keep decoders for the next snapshots.

        They are for entries that have exactly these unknown values in addition to the known ones.
        """
        if names and (self._likely is None or self._likely[0] != names):
            fields = [*self._fields, *((name, *_MAY_BE_ABSENT) for name in names)]
            entry = self._entry_type(fields, forbid=True, unknown=names)
            self._likely = (names, _entries_decoder(entry), _snapshot_decoder(entry))

    def _report_names(self, rows: list[Any]) -> list[Any]:
        """Report the unknown values that the rows have, and return the rows."""
        for attribute, name in rows[0].__extras__.items() if rows else ():
            if any(getattr(row, attribute) is not msgspec.UNSET for row in rows):
                report_unknown(self.operation, name)
        return rows

    def _liberal_field(self, name: str, annotation: Any, *default: Any) -> tuple[Any, ...]:
        """Return a field that may be null, and may be absent if entries are objects."""
        if name not in self._expected:
            return name, annotation, *default
        liberal = annotation | None
        return (name, liberal) if self.array_like else (name, liberal, None)

    def snapshot(self, payload: memoryview) -> tuple[str, str, list[Any]] | None:
        """Return a regular snapshot in array form, or None if it is not regular."""
        # Most snapshots have the form of the snapshot before.
        for is_likely in (self._is_likely, not self._is_likely):
            if is_likely and self._likely is None:
                continue
            decoder = self._likely[2] if is_likely and self._likely else self._regular_snapshot
            try:
                snapshot = decoder.decode(payload)
            except _BROKEN:
                continue
            self._report_names(snapshot[2])
            self._is_likely = is_likely and any(map(_has_unknown, snapshot[2]))
            return snapshot if max(map(len, snapshot[:2])) <= LONGEST_NAME else None
        return None

    @functools.cached_property
    def _regular_snapshot(self) -> "msgspec.msgpack.Decoder[tuple[str, str, list[Any]]]":
        return _snapshot_decoder(self._entry_type(self._fields, forbid=True))

    @functools.cached_property
    def _strict(self) -> "msgspec.msgpack.Decoder[list[Any]]":
        return self._decoder(self._fields, forbid=True)

    @functools.cached_property
    def _nullable(self) -> "msgspec.msgpack.Decoder[list[Any]]":
        return self._decoder(self._liberal_fields, forbid=True)

    def _decoder(
        self, fields: list[tuple[Any, ...]], *, forbid: bool, unknown: Mapping[str, str] = _NOTHING
    ) -> "msgspec.msgpack.Decoder[list[Any]]":
        return _entries_decoder(self._entry_type(fields, forbid=forbid, unknown=unknown))

    def _entry_type(
        self, fields: list[tuple[Any, ...]], *, forbid: bool, unknown: Mapping[str, str] = _NOTHING
    ) -> type[msgspec.Struct]:
        return msgspec.defstruct(
            "Entry",
            fields,
            rename={**{name: key for key, name in self.keys.items()}, **unknown},
            namespace={"__extras__": unknown},
            array_like=self.array_like,
            forbid_unknown_fields=forbid,
            kw_only=not self.array_like,
            gc=False,
        )

    def _unknown_names(self, array: bytes) -> dict[str, str]:
        """Return the fields of unknown values: attribute -> key, or the place in a tuple."""
        known = len(self.names)
        if len(array) > _LONGEST:
            report_unknown(self.operation, "values of a very long entry", has_column=False)
            return {}
        if self.array_like:
            longest = max(map(len, _VALUES.decode(array)), default=0)
            names = [f"value_{place}" for place in range(known, longest)]
        else:
            found = dict.fromkeys(key for entry in _KEYS.decode(array) for key in entry)
            names = [key for key in found if key not in self.keys]
        kept = [name for name in names if not UNSUITABLE.search(name)][:MOST_UNKNOWN]
        if len(kept) < len(names):
            words = "further values, too many or with names that no column can have"
            report_unknown(self.operation, words, has_column=False)
        return {f"extra_{place}": name for place, name in enumerate(kept)}

    def _invalid_entry(self, error: Exception, first_row: int) -> AnswerInvalid:
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


def _entries_decoder(entry: type[msgspec.Struct]) -> "msgspec.msgpack.Decoder[list[Any]]":
    return msgspec.msgpack.Decoder(GenericAlias(list, entry), strict=False)


def _snapshot_decoder(
    entry: type[msgspec.Struct],
) -> "msgspec.msgpack.Decoder[tuple[str, str, list[Any]]]":
    entries = GenericAlias(list, entry)
    return msgspec.msgpack.Decoder(GenericAlias(tuple, (str, str, entries)), strict=False)


_Address = Annotated[str, msgspec.Meta(pattern=r"\A0x[\x00-\x7f]{40}\Z")]
_ADDRESSES: Final = msgspec.msgpack.Decoder(list[_Address])
_KEYS: Final = msgspec.msgpack.Decoder(list[dict[str, msgspec.Raw]])
_VALUES: Final = msgspec.msgpack.Decoder(list[list[msgspec.Raw]])


def decode_addresses(body: bytes, count: int, column: str, first_row: int) -> list[str]:
    """Return addresses that follow each other; this does not check their digits."""
    array = _array_body(count, body)
    try:
        return _ADDRESSES.decode(array)
    except _BROKEN as error:
        place = _PLACE.search(str(error))
        if place is None:
            raise AnswerInvalid(f"an address cannot be read: {error}", column=column) from None
        raise AnswerInvalid(
            "the value is not an address (0x and 40 hex digits)",
            column=column,
            row=first_row + int(place["row"]),
        ) from None


def read_snapshot_values(
    operation: str, payload: memoryview, head: SnapshotHead, limit: int
) -> dict[str, str | None]:
    """Return the unknown values of a snapshot: ``snapshot.<name>`` -> text, for each of its rows.

    A value that would need more than `limit` bytes in all rows has no column.
    """
    values = {}
    for name, start, finish in head.unknown:
        is_short = (finish - start) * max(head.count, 1) <= limit // 8  # JSON text is longer
        report_unknown(operation, name, has_column=is_short)
        if is_short:
            values[f"snapshot.{name}"] = value_text(payload[start:finish])
    return values


def _has_unknown(entry: Any) -> bool:
    return any(getattr(entry, name) is not msgspec.UNSET for name in entry.__extras__)


def _array_body(count: int, body: bytes) -> bytes:
    return struct.pack(">BI", 0xDD, count) + body
