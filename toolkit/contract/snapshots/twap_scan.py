"""TWAPs of many snapshots at once, from MessagePack to columns without an object for each TWAP.

An entry begins with the header of a tuple and an address. An `EntryReader` then reads each value of
all entries together. The entries count only if each one ends exactly where the next one begins, and
if every snapshot has as many as it states. Otherwise all are read one by one.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from toolkit.arrays import Bytes, Ints
from toolkit.contract.field_deviations import MOST_UNKNOWN, report_unknown
from toolkit.contract.snapshots.entry_reader import (
    ADDRESS,
    SLACK,
    EntryReader,
    copy_addresses,
    find_addresses,
)
from toolkit.contract.snapshots.messagepack import LONGEST_NAME
from toolkit.contract.snapshots.unknown_values import TEXT, RawValues
from toolkit.contract.snapshots.value_lengths import skip_values
from toolkit.errors import AnswerInvalid

_HEADER: Final = 3  # bytes before an entry, which state the number of its values
_LONG_LIST: Final = 0xDC
_BROKEN: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_SNAPSHOT: Final = msgspec.msgpack.Decoder(tuple[str, str, msgspec.Raw])
_MAY_FOLLOW: Final = np.ones(256, np.bool_)
_READERS: Final = {
    "asset": "texts",
    "is_buy": "flags",
    **dict.fromkeys(
        ("total_sz", "executed_sz", "remaining_sz", "executed_ntl", "progress_pct"), "numbers"
    ),
    "duration_secs": "integers",
    "start_time_ms": "integers",
    "reduce_only": "flags",
    "randomize": "flags",
    "next_slice_time": "nullable texts",
    "slice_number": "integers",
    "market_name": "nullable texts",
    "market_readable": "nullable texts",
    "stop_px": "nullable numbers",
    "trigger_px": "nullable numbers",
    "trigger_above": "nullable flags",
    "waiting": "nullable flags",
}
"""The values after address and id, in the order of the specification."""

_KNOWN: Final = 2 + len(_READERS)


class TwapScan(NamedTuple):
    """The TWAPs of some snapshots.

    - ``runs``: id, market and number of TWAPs of each snapshot
    - ``columns``: the columns, without those of the snapshot; unknown values are the last ones
    """

    runs: list[tuple[str, str, int]]
    columns: dict[str, Any]


def scan_twaps(operation: str, payloads: Sequence[memoryview]) -> TwapScan | None:
    """Return the TWAPs of some snapshots; None if they have to be read one by one.

    - ``operation``: the operation's ``type``, for warnings
    - ``payloads``: MessagePack of each snapshot
    """
    try:
        return _scan_entries(operation, [_SNAPSHOT.decode(payload) for payload in payloads])
    except (*_BROKEN, AnswerInvalid, pa.ArrowInvalid):
        return None


def _scan_entries(operation: str, heads: Sequence[tuple[str, str, msgspec.Raw]]) -> TwapScan | None:
    bodies = [bytes(body) for _, _, body in heads]
    runs = [
        (snapshot_id, market, _entry_count(body))
        for (snapshot_id, market, _), body in zip(heads, bodies, strict=True)
    ]
    if max((max(len(text), len(market)) for text, market, _ in runs), default=0) > LONGEST_NAME:
        return None
    joined = b"".join([*bodies, bytes(SLACK)])
    data = np.frombuffer(joined, np.uint8)
    starts = find_addresses(data, 0, len(joined) - SLACK, _MAY_FOLLOW) - _HEADER
    counts = np.array([count for _, _, count in runs], np.int64)
    if len(starts) != counts.sum() or not len(starts):
        return None
    header = joined[starts[0] : starts[0] + _HEADER]
    length = int.from_bytes(header[1:], "big")
    if header[0] != _LONG_LIST or not _KNOWN <= length <= _KNOWN + MOST_UNKNOWN:
        return None
    reader = EntryReader(data, starts)
    reader.skip_literal(header)
    addresses = reader.at
    reader.at = reader.at + 2 + ADDRESS
    columns: dict[str, Any] = {"address": None, "twap_id": reader.read_integers()}
    for name, kind in _READERS.items():
        columns[name] = _read_values(reader, kind)
    unknown = {}
    for place in range(_KNOWN, length):
        start = reader.at
        skip_values(reader)
        unknown[f"value_{place}"] = start, reader.at - start
    if not reader.fits.all() or not _follow_each_other(starts, reader.at, bodies, counts):
        return None
    columns["address"] = _address_array(data, addresses + 2)
    for name in ("duration_secs", "slice_number", "is_buy", "reduce_only", "randomize"):
        columns[name] = pa.array(columns[name])
    columns["waiting"] = np.asarray(columns["waiting"].fill_null(False).to_numpy(False))
    for name, (first, lengths) in unknown.items():
        report_unknown(operation, name)
        part = joined, first.astype(np.uint32), lengths.astype(np.uint32)
        columns[f"entry.{name}"] = RawValues((part,))
    return TwapScan(runs, columns)


def _entry_count(body: bytes) -> int:
    """Return the number of entries of a list, which its first bytes state."""
    return int.from_bytes(body[1 : _header_length(body)], "big") or body[0] & 0x0F


def _header_length(body: bytes) -> int:
    lengths = {_LONG_LIST: 3, 0xDD: 5}
    if body[0] not in lengths and body[0] & 0xF0 != 0x90:
        raise AnswerInvalid(
            f"the TWAPs of a snapshot must be a list, but begin with the byte 0x{body[0]:02x}. "
            "Report this to the service"
        )
    return lengths.get(body[0], 1)


def _read_values(reader: EntryReader, kind: str) -> Any:
    if kind in ("texts", "nullable texts"):
        texts = reader.read_texts()
        if texts.null_count and kind == "texts":
            raise AnswerInvalid("a text is missing")
        return texts
    if kind == "flags":
        return reader.read_flags()
    if kind == "integers":
        return reader.read_integers()
    if kind == "nullable flags":
        return reader.read_nullable_flags()
    return reader.read_numbers(null=kind == "nullable numbers")


def _follow_each_other(starts: Ints, ends: Ints, bodies: Sequence[bytes], counts: Ints) -> bool:
    """Return whether each entry begins where the entry, or the header, before it ends."""
    lengths = np.array([len(body) for body in bodies], np.int64)
    body_ends = np.cumsum(lengths)
    firsts = body_ends - lengths + [_header_length(body) for body in bodies]
    expected = np.append(starts[1:], 0)
    has_entries = counts > 0
    last = np.cumsum(counts)[has_entries] - 1
    expected[last] = body_ends[has_entries]
    first = last + 1 - counts[has_entries]
    is_empty = firsts[~has_entries] == body_ends[~has_entries]
    return bool(
        np.array_equal(ends, expected)
        and np.array_equal(starts[first], firsts[has_entries])
        and is_empty.all()
    )


def _address_array(data: Bytes, starts: Ints) -> pa.Array:
    characters = copy_addresses(data, starts)
    if characters.max() >= 0x80:
        raise AnswerInvalid("an address is not ASCII")
    offsets = np.arange(len(starts) + 1) * ADDRESS
    return pa.LargeStringArray.from_buffers(
        len(starts), pa.py_buffer(offsets), pa.py_buffer(characters)
    ).cast(TEXT)
