"""The binary snapshots. Specification, "Snapshot endpoints (compressed binary)".

`decode_snapshots` returns columns by name instead of records. The columns are those of the
operation's record, as Arrow arrays in chunks. They have one row for each account or TWAP of every
snapshot in the answer, in its order. Any value except the keys may be null, and it may be absent if
entries are objects (docs/live_service.md, section 1).

Unknown values are further columns of text, after the known ones: ``entry.<name>`` for a value of an
entry, and ``snapshot.<name>`` for a value of the snapshot, which all of its rows repeat. The
name is the key, or ``value_8`` for the value at place 8 of a tuple.

`pack` and `assemble` are the inverse: a service compresses a snapshot once and sends it many times.
"""

import functools
import math
import re
import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from types import GenericAlias, SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec
import zstandard
from msgspec import Raw

from toolkit.contract.columns import record_columns
from toolkit.contract.compression import bounded_decompressor, decompress, is_zstd
from toolkit.contract.field_deviations import MOST_UNKNOWN, report_missing, report_unknown
from toolkit.contract.records import Record
from toolkit.display import count_text
from toolkit.errors import AnswerInvalid

if TYPE_CHECKING:
    from toolkit.contract.operations import Operation

__all__ = [
    "LIMIT",
    "WireAccountSnapshot",
    "WireTwapSnapshot",
    "assemble",
    "decode_snapshots",
    "open_envelope",
    "pack",
]

LIMIT: Final = 1 << 30
"""The default limit of the bytes that the snapshots of one answer may have, decompressed."""


class WireAccountSnapshot(NamedTuple):
    """The accounts of one collateral token, as they are on the wire.

    - ``snapshot_id``: its identifier
    - ``collateral_token``: the token, with ``<dex>:`` in front if it is about one dex
    - ``users``: address -> (account_value, total_long_notional, total_short_notional, is_unified,
      account_mode), and for portfolio-margin users also pm_ratio, pm_avail_by_branch as pairs of
      token and number, pm_total_account_value
    """

    snapshot_id: str
    collateral_token: str
    users: Mapping[str, tuple[Any, ...]]


class WireTwapSnapshot(NamedTuple):
    """The TWAPs of one market, as they are on the wire.

    - ``snapshot_id``: its identifier
    - ``market_name``: the market, with ``<dex>:`` in front on builder-deployed dexes
    - ``twaps``: 21 values each, in the order of the specification
    """

    snapshot_id: str
    market_name: str
    twaps: Sequence[tuple[Any, ...]]


# -- The envelope -----------------------------------------------------------------------------

_WORD: Final = struct.Struct("<I")

# ASSUMED: Snapshots contain numbers as MessagePack numbers, not as decimal text. The readers of
# this package accept both.
_encoder: Final = msgspec.msgpack.Encoder(decimal_format="number")


def open_envelope(headers: Mapping[str, str], content: bytes, limit: int) -> Iterator[memoryview]:
    """Yield the MessagePack of each snapshot of an answer.

    - ``headers``: HTTP headers, names in any case
    - ``content``: the body. Some HTTP libraries have already decompressed ``Content-Encoding:
      zstd``, and others have not; the first bytes show it.
    - ``limit``: the most bytes of all snapshots together, decompressed

    Yields: MessagePack of one snapshot, not checked.

    Raise AnswerInvalid if the body is damaged, or the snapshots are longer than `limit`.
    """
    decompressor = bounded_decompressor()
    is_multi = _has_several_snapshots(headers, content)
    for blob in _split_blobs(content) if is_multi else [memoryview(content)]:
        payload = decompress(blob, limit, decompressor)
        limit -= len(payload)
        yield payload


def _has_several_snapshots(headers: Mapping[str, str], content: bytes) -> bool:
    form = next((text for name, text in headers.items() if name.lower() == "x-payload-format"), "")
    if form.lower() in ("multi-zstd", "msgpack"):
        return form.lower() == "multi-zstd"
    # Without the header: a count and a length precede the first blob. The MessagePack of a snapshot
    # cannot have these four bytes there, because they are not UTF-8.
    return not is_zstd(content) and is_zstd(content[8:12])


def _split_blobs(content: bytes) -> Iterator[memoryview]:
    view, at = memoryview(content), 4
    if len(content) < 4:
        raise AnswerInvalid(f"{len(content)} bytes are too few for the number of snapshots")
    (count,) = _WORD.unpack_from(content)
    for index in range(count):
        if at + 4 > len(content):
            raise AnswerInvalid(
                f"the body should have {count} snapshots, but it ends after {index}. Request it "
                "again"
            )
        (length,) = _WORD.unpack_from(content, at)
        at += 4
        if at + length > len(content):
            raise AnswerInvalid(
                f"snapshot {index + 1} of {count} should have {length} bytes, but "
                f"only {len(content) - at} are left. Request it again"
            )
        yield view[at : at + length]
        at += length
    if at != len(content):
        rest = count_text(len(content) - at, "byte follows", "bytes follow")
        raise AnswerInvalid(
            f"unexpected: {rest} the last of {count_text(count, 'snapshot')}. Request it again"
        )


def pack(snapshot: WireAccountSnapshot | WireTwapSnapshot, *, level: int = 1) -> bytes:
    """Return one snapshot in the array form, as MessagePack compressed with zstd."""
    if isinstance(snapshot, WireAccountSnapshot):
        lengths, entries = {5, 8}, list(snapshot.users.values())
    else:
        lengths, entries = {21}, list(snapshot.twaps)
    for entry in entries:
        if len(entry) not in lengths:
            allowed = " or ".join(map(str, sorted(lengths)))
            raise ValueError(f"an entry must have {allowed} values, not {len(entry)}: {entry!r}")
    return zstandard.ZstdCompressor(level=level).compress(_encoder.encode(tuple(snapshot)))


def assemble(blobs: Sequence[bytes]) -> tuple[dict[str, str], bytes]:
    """Return the headers and the body of an answer with packed snapshots.

    - ``blobs``: at least one result of `pack`
    """
    if not blobs:
        raise ValueError(
            "an answer needs at least one snapshot; without one the service answers 404"
        )
    # ASSUMED: Binary snapshots have the content type `application/octet-stream`. The specification
    # names none, and the readers of this package ignore it.
    headers = {"Content-Type": "application/octet-stream"}
    if len(blobs) == 1:
        headers |= {"x-payload-format": "msgpack", "Content-Encoding": "zstd"}
        return headers, blobs[0]
    headers |= {"x-payload-format": "multi-zstd", "x-compression": "inner-zstd"}
    parts = [_WORD.pack(len(blobs))]
    for blob in blobs:
        parts += [_WORD.pack(len(blob)), blob]
    return headers, b"".join(parts)


# -- From MessagePack to columns --------------------------------------------------------------

_BATCH: Final = 1 << 20
"""The bytes of entries that become objects at one time."""
_PART: Final = 1 << 17
"""No entry is nearly as long as these bytes."""
_STRIDE: Final = 32

_BROKEN: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_PLACE: Final = re.compile(r" - at `\$\[(?P<item>\d+)\](?:\[(?P<value>\d+)\])?")
_NULL: Final = Raw(b"\xc0")
_ABSENT: Final = math.nan
"""A number that its tuple does not have; null is None."""

_Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_TYPES: Final[dict[str, Any]] = {
    "number": float,
    "integer": _Whole,
    "time": _Whole,
    "flag": bool,
    "nested": list[tuple[str, float | None]],
}
"""Family of a column -> the type of its values on the wire; text in all others."""


class _Layout(NamedTuple):
    """The form of the entries of a snapshot.

    - ``first``: the place of the column that the first value of an entry has
    - ``lengths``: the numbers of values that a tuple may have
    - ``keys``: the keys of these values in the object form; without keys, entries have no users
    """

    first: int
    lengths: tuple[int, ...]
    keys: tuple[str, ...] = ()


_LAYOUTS: Final = {
    "accountValueSnapshots": _Layout(3, (5, 8), ("v", "l", "s", "m", "am", "pm", "pa", "pt")),
    "perpTwapSnapshots": _Layout(2, (17, 18, 19, 20, 21)),
}


class _Head(msgspec.Struct, array_like=True):
    snapshot_id: str
    name: str
    entries: Raw


class _KeyedHead(msgspec.Struct):
    snapshot_id: str = msgspec.field(name="i")
    name: str = msgspec.field(name="t")
    entries: Raw = msgspec.field(name="u")


_HEADS: Final[list[Any]] = [msgspec.msgpack.Decoder(head) for head in (_Head, _KeyedHead)]


def decode_snapshots(
    operation: "Operation", headers: Mapping[str, str], content: bytes, *, limit: int = LIMIT
) -> dict[str, Any]:
    """Return the columns of the snapshots of an answer.

    Parameters
    ----------
    operation : Operation
        accountValueSnapshots or perpTwapSnapshots.
    headers : mapping
        HTTP headers; ``x-payload-format`` says whether there are several snapshots.
    content : bytes
        The body, compressed or already decompressed by the HTTP library.
    limit : int
        The most bytes of all snapshots together, decompressed. The memory stays below a small
        multiple of it, whatever the bytes are.

    Returns
    -------
    dict of str to pyarrow.ChunkedArray
        The columns of the operation's record. Times are whole milliseconds.

    Raises
    ------
    AnswerInvalid
        If the bytes are not snapshots of this kind; the message says what is wrong and where.

    Warns
    -----
    UnknownField
        Once for each operation and unknown value.
    MissingField
        Once for each operation and value of the specification that is missing.

    Examples
    --------
    >>> from toolkit.contract.operations import OPERATIONS
    >>> accounts = OPERATIONS["accountValueSnapshots"]
    >>> users = {"0x" + "a" * 40: (150.5, 100.0, 0.0, False, 0)}
    >>> headers, body = assemble([pack(WireAccountSnapshot("s1", "USDC", users))])
    >>> decode_snapshots(accounts, headers, body)["account_value"].to_pylist()
    [150.5]
    """
    reader = _SnapshotReader(operation, limit)
    try:
        for payload in open_envelope(headers, content, limit):
            reader.read(payload)
        return reader.columns()
    except AnswerInvalid as error:
        error.operation = operation.type
        raise


class _SnapshotReader:
    """Reads snapshots batch by batch, so that never all of their values are objects at once."""

    def __init__(self, operation: "Operation", limit: int) -> None:
        self._operation = operation.type
        self._limit = limit
        self._layout = layout = _LAYOUTS[operation.type]
        record = operation.tables[0].record
        self._names = [column.name for column in record_columns(record)]
        self._columns = record_columns(record)[layout.first :]
        entry, keyed_entry = (_entry_type(layout, record, is_object) for is_object in (False, True))
        self._known = _decoder(entry)
        if layout.keys:  # keys and values of a map are read as one list
            self._step, self._usual = 2, [_decoder(str | entry), _decoder(str | keyed_entry)]
            self._raw = [_decoder(str | list[Raw]), _decoder(str | dict[str, Raw])]
        else:
            self._step, self._usual, self._raw = 1, [self._known], [_decoder(list[Raw])]
        self._whole: Any = None
        if not layout.keys:
            whole = GenericAlias(tuple, (str, str, GenericAlias(list, entry)))
            self._whole = msgspec.msgpack.Decoder(whole, strict=False)
        self._tables: list[Any] = []
        self._done = 0
        self._begin_batch()

    def _begin_batch(self) -> None:
        self._runs: list[tuple[dict[str, str | None], int]] = []  # of each snapshot, and its rows
        self._users: list[Any] = []
        self._flat: list[Any] = []  # the values of all entries, one entry after the other
        self._further: dict[str, dict[int, str | None]] = {}
        self._rows = self._size = 0

    def read(self, payload: memoryview) -> None:
        """Read the MessagePack of one snapshot."""
        if self._whole and len(payload) <= _BATCH:
            try:
                snapshot_id, name, entries = self._whole.decode(payload)
            except _BROKEN:
                pass  # read it piece by piece, which also says what is wrong
            else:
                for entry in entries:
                    self._flat += msgspec.structs.astuple(entry)
                texts = {self._names[0]: snapshot_id, self._names[1]: name}
                self._end_run(texts, len(entries), len(payload))
                return
        is_object, values, _ = _container(payload)
        is_object = is_object and bool(self._layout.keys)
        try:
            head = _HEADS[is_object].decode(payload)
            has_users, count, start = _container(memoryview(head.entries))
            if not start or has_users != bool(self._layout.keys):
                form = "a map of users" if self._layout.keys else "an array of TWAPs"
                raise AnswerInvalid(f"a snapshot must have {form}, but it has none")
            texts = {self._names[0]: head.snapshot_id, self._names[1]: head.name}
            if values > 3:
                texts |= self._snapshot_values(payload, count, is_object)
        except _BROKEN as error:
            raise AnswerInvalid(f"a snapshot cannot be read: {error}. Request it again") from None
        for body, rows in self._batches(memoryview(head.entries)[start:], count):
            self._add_entries(body, rows, is_object)
            self._end_run(texts, rows, len(body))

    def _end_run(self, texts: dict[str, str | None], rows: int, size: int) -> None:
        """Note rows of one snapshot that were added, and make columns of enough rows."""
        self._runs.append((texts, rows))
        self._rows += rows
        self._size += size + 64
        if self._size > _BATCH:
            self._end_batch()

    def _snapshot_values(
        self, payload: memoryview, rows: int, is_object: bool
    ) -> dict[str, str | None]:
        """Return the unknown values of a snapshot, without those that are too long for all rows."""
        if _container(payload)[1] > MOST_UNKNOWN:
            report_unknown(self._operation, "very many values of a snapshot", has_column=False)
            return {}
        raw_type: Any = dict[str, Raw] if is_object else list[Raw]
        raws: Any = msgspec.msgpack.decode(payload, type=raw_type)
        if is_object:
            further = {name: raw for name, raw in raws.items() if name not in ("i", "t", "u")}
        else:
            further = {f"value_{place}": raw for place, raw in enumerate(raws[3:], 3)}
        texts = {}
        for name, raw in further.items():
            size = len(bytes(raw))
            is_short = size <= _BATCH and size * max(rows, 1) <= self._limit // 8
            report_unknown(self._operation, name, has_column=is_short)
            if is_short:
                texts[f"snapshot.{name}"] = _text(raw)
        return texts

    def _batches(self, body: memoryview, count: int) -> Iterator[tuple[memoryview, int]]:
        """Yield the MessagePack of some entries at a time, and their number."""
        if len(body) <= _BATCH:
            yield body, count
            return
        import msgpack

        parts = (bytes(body[at : at + _PART]) for at in range(0, len(body), _PART))
        source = SimpleNamespace(read=lambda _: next(parts, b""))
        walk = msgpack.Unpacker(source, read_size=_PART, max_buffer_size=2 * _PART)
        start = done = 0
        for row in range(0, count, _STRIDE):
            rows = min(_STRIDE, count - row)
            try:
                for _ in range(self._step * rows):
                    walk.skip()
            except (ValueError, msgpack.UnpackException):
                raise AnswerInvalid(
                    "an entry here is too long or too deep", row=self._done + self._rows
                ) from None
            end = walk.tell()
            if end - start > _BATCH or row + rows == count:
                yield body[start:end], row + rows - done
                start, done = end, row + rows

    def _add_entries(self, body: memoryview, rows: int, is_object: bool) -> None:
        """Read entries, which a typed decoder does at once if they have the usual values."""
        array = struct.pack(">BI", 0xDD, self._step * rows) + body
        try:
            values = self._usual[is_object].decode(array)
            flat: list[Any] = []
            for entry in values[self._step - 1 :: self._step]:
                flat += msgspec.structs.astuple(entry)
        except (*_BROKEN, TypeError):
            self._add_odd_entries(array, is_object)
            return
        width, first = len(self._columns), self._layout.lengths[0]
        absent = [flat[place::width].count(_ABSENT) for place in (first, width - 1)]
        if self._layout.keys and absent[0] != absent[1]:  # tuples of a length between the two known
            self._add_odd_entries(array, is_object)
            return
        self._flat += flat
        self._users += values[::2] if self._layout.keys else ()

    def _add_odd_entries(self, array: bytes, is_object: bool) -> None:
        """Read entries value by value, and take out those that are unknown."""
        first_row, known = self._done + self._rows, []
        step = self._step
        try:
            values = self._raw[is_object].decode(array)
            for row, entry in enumerate(values[step - 1 :: step]):
                if isinstance(entry, str):
                    raise AnswerInvalid("the entry is a text", row=first_row + row, value=entry)
                if is_object:
                    further = entry
                    kept = [further.pop(key, _NULL) for key in self._layout.keys]
                else:
                    shorter = bisect_right(self._layout.lengths, len(entry))
                    size = self._layout.lengths[shorter - 1] if shorter else len(entry)
                    further = {f"value_{at}": raw for at, raw in enumerate(entry[size:], size)}
                    kept = entry[:size]
                known.append(struct.pack(">BH", 0xDC, len(kept)) + b"".join(kept))
                for name, raw in further.items():
                    self._keep(name, self._rows + row, raw)
            array, step = struct.pack(">BI", 0xDD, len(known)) + b"".join(known), 1
            for entry in self._known.decode(array):
                self._flat += msgspec.structs.astuple(entry)
        except _BROKEN as error:
            raise self._invalid(error, first_row, step) from None
        self._users += values[::2] if self._layout.keys else ()

    def _keep(self, name: str, row: int, raw: Raw) -> None:
        """Keep an unknown value of an entry."""
        if name not in self._further:
            has_column = len(self._further) < MOST_UNKNOWN
            what = name if has_column else "very many values of an entry"
            report_unknown(self._operation, what, has_column=has_column)
            if not has_column:
                return
            self._further[name] = {}
        self._further[name][row] = _text(raw)

    def _invalid(self, error: Exception, first_row: int, step: int) -> AnswerInvalid:
        place = _PLACE.search(str(error))
        if place is None:
            return AnswerInvalid(f"an entry cannot be read: {error}")
        row, part = divmod(int(place["item"]), step)
        if step == 2 and part == 0:
            return AnswerInvalid(_NO_ADDRESS, column="user", row=first_row + row)
        column = self._columns[int(place["value"])].name if place["value"] else ""
        return AnswerInvalid(str(error)[: place.start()], column=column, row=first_row + row)

    def _end_batch(self) -> None:
        """Make columns of the values of a batch."""
        import numpy as np
        import pyarrow as pa

        text = pa.large_string()
        types = {
            "number": pa.float64(),
            "integer": pa.int64(),
            "time": pa.int64(),
            "flag": pa.bool_(),
            "nested": pa.list_(pa.struct([("token", text), ("available", pa.float64())])),
        }
        runs = pa.array(np.repeat(np.arange(len(self._runs)), [rows for _, rows in self._runs]))
        arrays = {}
        for name in dict.fromkeys(
            (*self._names[:2], *(name for texts, _ in self._runs for name in texts))
        ):
            texts = [(texts.get(name), rows) for texts, rows in self._runs]
            size = sum(len(value or "") * rows for value, rows in texts)
            if size > self._limit:
                raise AnswerInvalid(
                    f"names of {size} bytes in all are too long for the number of rows"
                )
            arrays[name] = pa.array([value for value, _ in texts], text).take(runs)
        if self._layout.keys:
            arrays["user"] = self._addresses(text)
        for place, column in enumerate(self._columns):
            values = self._flat[place :: len(self._columns)]
            array = pa.array(values, types.get(column.kind.family, text))
            if column.default is not None:
                array = array.fill_null(column.default)
            elif column.expected and array.null_count:
                report_missing(self._operation, column.name)
            arrays[column.name] = array
        for name, cells in self._further.items():
            arrays[f"entry.{name}"] = pa.array([cells.get(row) for row in range(self._rows)], text)
        order = dict.fromkeys((*self._names, *(f"entry.{name}" for name in self._further), *arrays))
        self._tables.append(pa.table({name: arrays[name] for name in order}))
        self._done += self._rows
        self._begin_batch()

    def _addresses(self, text: Any) -> Any:
        """Return the column of users; this does not check their digits."""
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            users = pa.array(self._users, text)
            is_address = pc.and_(pc.equal(pc.binary_length(users), 42), pc.starts_with(users, "0x"))
            row = pc.index(is_address, False).as_py()
        except pa.ArrowException:
            row = next(at for at, user in enumerate(self._users) if not isinstance(user, str))
        if row >= 0:
            raise AnswerInvalid(_NO_ADDRESS, column="user", row=self._done + row)
        return users

    def columns(self) -> dict[str, Any]:
        """Return the columns of all snapshots."""
        import pyarrow as pa

        self._end_batch()
        table = pa.concat_tables(self._tables, promote_options="default")
        return dict(zip(table.column_names, table.columns, strict=True))


_NO_ADDRESS: Final = "the value is not an address (0x and 40 hex digits)"


@functools.cache
def _entry_type(layout: _Layout, record: type[Record], is_object: bool) -> type[msgspec.Struct]:
    """Return the type of entries that have no unknown values."""
    fields: list[Any] = []
    columns = record_columns(record)[layout.first :]
    for place, column in enumerate(columns):
        value = _TYPES.get(column.kind.family, str)
        if not column.missing and column.default is None:  # a key
            fields.append((column.name, value))
        elif is_object or place >= layout.lengths[0]:
            is_number = column.kind.family == "number" and not is_object
            fields.append((column.name, value | None, _ABSENT if is_number else None))
        else:
            fields.append((column.name, value | None))
    return msgspec.defstruct(
        "Entry",
        fields,
        rename=dict(zip((column.name for column in columns), layout.keys, strict=False)),
        array_like=not is_object,
        forbid_unknown_fields=True,
        kw_only=is_object,
        gc=False,
    )


def _decoder(item: Any) -> "msgspec.msgpack.Decoder[list[Any]]":
    return msgspec.msgpack.Decoder(GenericAlias(list, item), strict=False)


def _container(data: memoryview) -> tuple[bool, int, int]:
    """Return whether a MessagePack value is a map, its number of entries, and where they begin."""
    marker = data[0] if data else 0
    if 0x80 <= marker < 0xA0:
        return marker < 0x90, marker & 15, 1
    if 0xDC <= marker <= 0xDF:
        start = 3 if marker % 2 == 0 else 5
        return marker >= 0xDE, int.from_bytes(data[1:start], "big"), start
    return False, 0, 0


def _text(raw: Raw) -> str | None:
    """Return the text of a value: a string itself, or the JSON text of another value.

    A value that has no JSON text is shown as bytes. A null is None.
    """
    try:
        value = msgspec.msgpack.decode(raw)
        return (
            value
            if value is None or isinstance(value, str)
            else msgspec.json.encode(value).decode()
        )
    except (*_BROKEN, msgspec.MsgspecError, TypeError, ValueError):
        return repr(bytes(raw))
