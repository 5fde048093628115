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
import itertools
import re
import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from types import GenericAlias
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import zstandard
from msgspec import Raw

from toolkit.contract.compression import WINDOW, decompress, is_zstd
from toolkit.contract.field_deviations import MOST_UNKNOWN, report_missing, report_unknown
from toolkit.contract.fields import Field, record_columns
from toolkit.display import count_text
from toolkit.errors import AnswerInvalid

if TYPE_CHECKING:
    from toolkit.contract.operations import Headers, Operation

LIMIT: Final = 1 << 30
"""The default limit of the bytes that the snapshots of one answer may have, decompressed."""


# -- The envelope -----------------------------------------------------------------------------

_WORD: Final = struct.Struct("<I")

# ASSUMED: Snapshots contain numbers as MessagePack numbers, not as decimal text. The readers of
# this package accept both.
_encoder: Final = msgspec.msgpack.Encoder(decimal_format="number")


def open_envelope(headers: "Headers", content: bytes, limit: int) -> Iterator[memoryview]:
    """Yield the MessagePack of each snapshot of an answer.

    - ``headers``: HTTP headers, names in any case
    - ``content``: the body. Some HTTP libraries have already decompressed ``Content-Encoding:
      zstd``, and others have not; the first bytes show it.
    - ``limit``: the most bytes of all snapshots together, decompressed

    Yields: MessagePack of one snapshot, not checked.

    Raise AnswerInvalid if the body is damaged, or the snapshots are longer than `limit`.
    """
    form = {name.lower(): text.lower() for name, text in headers.items()}.get("x-payload-format")
    # Without the header: a count and a length precede the first blob. The MessagePack of a snapshot
    # cannot have these four bytes there, because they are not UTF-8.
    seems_multi = not is_zstd(content) and is_zstd(content[8:12])
    is_multi = form == "multi-zstd" or (form != "msgpack" and seems_multi)
    decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW)
    for blob in _split_blobs(content) if is_multi else [memoryview(content)]:
        payload = decompress(blob, limit, decompressor)
        limit -= len(payload)
        yield payload


def _split_blobs(content: bytes) -> Iterator[memoryview]:
    view, at = memoryview(content), 4
    if len(content) < 4:
        raise AnswerInvalid(f"{len(content)} bytes are too few for the number of snapshots")
    (count,) = _WORD.unpack_from(content)
    for index in range(count):
        begin = at + 4
        at = begin + int.from_bytes(view[at:begin], "little")
        if max(begin, at) > len(content):
            raise AnswerInvalid(
                f"the body should have {count} snapshots, but it ends after {index}. Request it "
                "again"
            )
        yield view[begin:at]
    if at != len(content):
        rest = count_text(len(content) - at, "byte follows", "bytes follow")
        raise AnswerInvalid(
            f"unexpected: {rest} the last of {count_text(count, 'snapshot')}. Request it again"
        )


def pack(
    snapshot_id: str, name: str, entries: Mapping[str, Any] | Sequence[Any], *, level: int = 1
) -> bytes:
    """Return one snapshot in the array form, as MessagePack compressed with zstd.

    - ``snapshot_id``: its identifier
    - ``name``: the collateral token or the market, with ``<dex>:`` in front if it is of one dex
    - ``entries``: address -> (account_value, total_long_notional, total_short_notional, is_unified,
      account_mode), and for portfolio-margin users also pm_ratio, pm_avail_by_branch as pairs of
      token and number, pm_total_account_value. Or TWAPs, with 21 values each, in the order of the
      specification.
    """
    content = _encoder.encode((snapshot_id, name, entries))
    return zstandard.ZstdCompressor(level=level).compress(content)


def assemble(blobs: Sequence[bytes]) -> tuple[dict[str, str], bytes]:
    """Return the headers and the body of an answer with packed snapshots.

    - ``blobs``: at least one result of `pack`
    """
    # ASSUMED: Binary snapshots have the content type `application/octet-stream`. The specification
    # names none, and the readers of this package ignore it.
    headers = {"content-type": "application/octet-stream"}
    if len(blobs) == 1:
        return headers | {"x-payload-format": "msgpack", "content-encoding": "zstd"}, blobs[0]
    headers |= {"x-payload-format": "multi-zstd", "x-compression": "inner-zstd"}
    sized = (_WORD.pack(len(blob)) + blob for blob in blobs)
    return headers, _WORD.pack(len(blobs)) + b"".join(sized)


# -- From MessagePack to columns --------------------------------------------------------------

_BATCH: Final = 1 << 20
"""The bytes of entries that become objects at one time."""
_USER: Final = b"\xd9\x2a0x"
"""How a user begins: a text of 42 letters."""

_BROKEN: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_PLACE: Final = re.compile(r" - at `\$\[0\]\[(\d+)\]")
_NULL: Final = Raw(b"\xc0")
_LONGEST: Final = 1_000  # letters of a name, and bytes of an unknown value that all rows repeat

_Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_Name = Annotated[str, msgspec.Meta(max_length=_LONGEST)]
_FEW: Final = msgspec.Meta(max_length=2 * MOST_UNKNOWN)
_TEXT: Final = (str, "large_string")
_FORMS: Final[dict[str, tuple[Any, str]]] = {
    "number": (float, "float64"),
    "integer": (_Whole, "int64"),
    "time": (_Whole, "int64"),
    "flag": (bool, "bool"),
    "nested": (list[tuple[str, float | None]], ""),
}
"""Family of a column -> the type of its values on the wire, and in Arrow; text in all others."""

_KEYS: Final = ("v", "l", "s", "m", "am", "pm", "pa", "pt")
"""The keys of an account's values, if they are an object."""


class _Head(msgspec.Struct, array_like=True):
    snapshot_id: _Name
    name: _Name
    entries: Raw


class _KeyedHead(msgspec.Struct):
    snapshot_id: _Name = msgspec.field(name="i")
    name: _Name = msgspec.field(name="t")
    entries: Raw = msgspec.field(name="u")


_HEADS: Final[list[Any]] = [msgspec.msgpack.Decoder(head) for head in (_Head, _KeyedHead)]
_RAWS: Final = msgspec.msgpack.Decoder(list[Raw])
_VALUES: Final[Any] = msgspec.msgpack.Decoder(
    Annotated[list[Raw], _FEW] | Annotated[dict[str, Raw], _FEW]
)


def decode_snapshots(
    operation: "Operation", headers: "Headers", content: bytes, *, limit: int = LIMIT
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
        The most bytes of all snapshots together, decompressed.

    Returns
    -------
    dict of str to pyarrow.Array or pyarrow.ChunkedArray
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
    >>> headers, body = assemble([pack("s1", "USDC", users)])
    >>> decode_snapshots(accounts, headers, body)["account_value"].to_pylist()
    [150.5]
    """
    reader = _Reader(operation)
    try:
        for payload in open_envelope(headers, content, limit):
            reader.add(payload)
        return reader.columns()
    except AnswerInvalid as error:
        error.operation = operation.type
        raise


class _Reader:
    """Reads snapshots one after the other, and makes columns of them."""

    def __init__(self, operation: "Operation") -> None:
        self._operation = operation.type
        self._has_users = operation.type == "accountValueSnapshots"
        self._step = 1 + self._has_users  # a user is read as a value before its entry
        self._lengths = (5, 8) if self._has_users else (17, 18, 19, 20, 21)  # of a tuple
        columns = record_columns(operation.tables[0].record)
        self._names = [column.name for column in columns[:2]]
        self._columns = columns[1 + self._step :]
        self._decoders = [
            _list_decoder(self._columns, self._lengths[0], is_object) for is_object in (False, True)
        ]
        self._runs: list[tuple[str, str, int]] = []  # of each snapshot, and its rows
        self._users: list[str] = []  # of the latest entries
        self._user_chunks: list[Any] = []
        self._rows = 0
        self._flat: list[Any] = []  # the values of the latest entries, one entry after the other
        self._chunks: list[list[Any]] = [[] for _ in self._columns]
        self._further: dict[str, list[tuple[int, int, str | None]]] = {}  # unknown, of some rows

    def add(self, payload: memoryview) -> None:
        """Read the MessagePack of one snapshot."""
        is_object, length, _ = _container(payload)
        try:
            head = _HEADS[is_object and self._has_users].decode(payload)
            body = bytes(head.entries)
            is_map, count, start = _container(body)
            if not start or is_map != self._has_users:
                form = "a map of users" if self._has_users else "an array of TWAPs"
                raise AnswerInvalid(f"a snapshot must have {form}, but it has none")
            raws: Any = _VALUES.decode(payload) if length > 3 else {}
        except _BROKEN as error:
            raise AnswerInvalid(f"a snapshot cannot be read: {error}. Request it again") from None
        if not is_object:
            raws = {f"value_{place}": raws[place] for place in range(3, len(raws))}
        for key in raws.keys() - {"i", "t", "u"}:
            self._keep("snapshot", key, raws[key], range(self._rows, self._rows + count))
        self._runs.append((head.snapshot_id, head.name, count))
        # Without other addresses in it, a long map can be cut where a user begins.
        cuts = [start]
        while self._has_users and (cut := body.find(_USER, cuts[-1] + _BATCH)) > 0:
            cuts.append(cut)
        sizes = [count]
        if len(cuts) > 1:
            sizes = [body.count(_USER, *part) for part in itertools.pairwise([*cuts, len(body)])]
        if sum(sizes) != count:
            cuts, sizes = [start], [count]
        for (at, end), rows in zip(itertools.pairwise([*cuts, len(body)]), sizes, strict=True):
            array = struct.pack(">BI", 0xDD, self._step * rows) + body[at:end]
            users, flat = self._read_entries(array) or self._read_odd_entries(array)
            self._users += users
            self._flat += flat
            self._rows += rows
            if len(self._flat) > _BATCH // 16:
                self._make_chunks()

    def _read_entries(self, array: bytes) -> tuple[list[str], list[Any]] | None:
        """Return users and values of entries, if all of them have the usual values."""
        for decoder in self._decoders[: self._step]:
            try:
                values = decoder.decode(array)
                entries = map(msgspec.structs.astuple, values[self._step - 1 :: self._step])
                flat = list(itertools.chain.from_iterable(entries))
            except (*_BROKEN, TypeError):
                continue
            if not self._has_users:
                return [], flat
            # A tuple of 6 or 7 values has unknown ones.
            ratios, totals = ([value is None for value in flat[at::8]] for at in (5, 7))
            if ratios == totals and {*map(type, values[::2])} <= {str}:
                return values[::2], flat
        return None

    def _read_odd_entries(self, array: bytes) -> tuple[list[str], list[Any]]:
        """Return users and values of entries, read one by one; keep their unknown values."""
        try:
            raws = _RAWS.decode(array)
        except _BROKEN as error:
            raise AnswerInvalid(f"an entry cannot be read: {error}", row=self._rows) from None
        flat: list[Any] = []
        users: list[str] = []
        for row, raw in enumerate(raws[self._step - 1 :: self._step], self._rows):
            column = "user"
            try:
                if self._has_users:
                    users.append(msgspec.msgpack.decode(raws[2 * (row - self._rows)], type=str))
                column, kept = "", []
                further: Any = _VALUES.decode(raw)
                if isinstance(further, list):
                    shorter = bisect_right(self._lengths, len(further))
                    kept = further[: self._lengths[shorter - 1] if shorter else None]
                    further = {f"value_{at}": further[at] for at in range(len(kept), len(further))}
                elif self._has_users:
                    kept = [further.pop(key, _NULL) for key in _KEYS]
                one = struct.pack(">BBH", 0x91, 0xDC, len(kept)) + b"".join(kept)
                flat += msgspec.structs.astuple(self._decoders[0].decode(one)[0])
            except _BROKEN as error:
                if place := _PLACE.search(str(error)):
                    column = self._columns[int(place[1])].name
                words = str(error).partition(" - at `$")[0]
                raise AnswerInvalid(words, column=column, row=row) from None
            for key, unknown in further.items():
                self._keep("entry", key, unknown, range(row, row + 1))
        return users, flat

    def _keep(self, what: str, key: str, raw: Raw, rows: range) -> None:
        """Keep an unknown value of some rows, unless there are too many or it is too long."""
        name = f"{what}.{key}"
        if name not in self._further:
            is_short = len(rows) == 1 or len(bytes(raw)) <= _LONGEST
            if len(self._further) >= MOST_UNKNOWN or not is_short:
                words = f"very many or very long values of {what}s"
                report_unknown(self._operation, words, has_column=False)
                return
            report_unknown(self._operation, key)
        self._further.setdefault(name, []).append((rows.start, rows.stop, _text(raw)))

    def _make_chunks(self) -> None:
        """Make a part of each column of the latest entries."""
        import pyarrow as pa

        branch = pa.struct([("token", pa.large_string()), ("available", pa.float64())])
        for place, column in enumerate(self._columns):
            values = self._flat[place :: len(self._columns)]
            kind = _FORMS.get(column.kind.family, _TEXT)[1]
            self._chunks[place].append(pa.array(values, kind or pa.list_(branch)))
        self._user_chunks.append(pa.array(self._users, pa.large_string()))
        self._users, self._flat = [], []

    def columns(self) -> dict[str, Any]:
        """Return the columns of all snapshots."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        self._make_chunks()
        text = pa.large_string()
        runs = pa.array(np.repeat(np.arange(len(self._runs)), [rows for *_, rows in self._runs]))
        arrays: dict[str, Any] = {
            name: pa.array([run[at] for run in self._runs], text).take(runs)
            for at, name in enumerate(self._names)
        }
        if self._has_users:
            arrays["user"] = users = pa.chunked_array(self._user_chunks)
            # Their digits are not checked.
            is_address = pc.and_(pc.equal(pc.binary_length(users), 42), pc.starts_with(users, "0x"))
            if (row := pc.index(is_address, False).as_py()) >= 0:
                words = "the value is not an address (0x and 40 hex digits)"
                raise AnswerInvalid(words, column="user", row=row)
        for column, chunks in zip(self._columns, self._chunks, strict=True):
            array = pa.chunked_array(chunks)
            if column.default is not None:
                array = array.fill_null(column.default)
            elif column.expected and array.null_count:
                report_missing(self._operation, column.name)
            arrays[column.name] = array
        for name, kept in self._further.items():
            cells: list[str | None] = [None] * self._rows
            for start, stop, value in kept:
                cells[start:stop] = [value] * (stop - start)
            arrays[name] = pa.array(cells, text)
        return arrays


@functools.cache
def _list_decoder(
    columns: tuple[Field, ...], least: int, is_object: bool
) -> "msgspec.msgpack.Decoder[list[Any]]":
    """Return a decoder of users and entries without unknown values.

    A tuple has `least` values or more.
    """
    fields: list[Any] = []
    for place, column in enumerate(columns):
        value = _FORMS.get(column.kind.family, _TEXT)[0]
        if not column.missing and column.default is None:  # a key
            fields.append((column.name, value))
        elif is_object or place >= least:
            fields.append((column.name, value | None, None))
        else:
            fields.append((column.name, value | None))
    entry = msgspec.defstruct(
        "Entry",
        fields,
        rename=dict(zip((column.name for column in columns), _KEYS, strict=False)),
        array_like=not is_object,
        forbid_unknown_fields=True,
        kw_only=is_object,
        gc=False,
    )
    return msgspec.msgpack.Decoder(GenericAlias(list, str | entry), strict=False)


def _container(data: bytes | memoryview) -> tuple[bool, int, int]:
    """Return whether a MessagePack value is a map, its number of entries, and where they begin."""
    marker = data[0] if data else 0
    if 0x80 <= marker < 0xA0:
        return marker < 0x90, marker & 15, 1
    if 0xDC <= marker <= 0xDF:
        start = 3 if marker % 2 == 0 else 5
        return marker >= 0xDE, int.from_bytes(data[1:start], "big"), start
    return False, 0, 0


def _text(raw: Raw) -> str | None:
    """Return a text as it is, another value as JSON, and one without JSON as bytes."""
    try:
        value = msgspec.msgpack.decode(raw)
        is_text = value is None or isinstance(value, str)
        return value if is_text else msgspec.json.encode(value).decode()
    except (*_BROKEN, msgspec.MsgspecError, TypeError, ValueError):
        return repr(bytes(raw))
