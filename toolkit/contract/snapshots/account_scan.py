"""Account values of all users at once, from MessagePack to columns without an object for each user.

Every entry begins with an address, which its first four bytes identify. An `EntryReader` then reads
each field of all entries together, in blocks that fit into the processor's cache. An entry counts
only if it ends exactly where the next one begins. All other entries are read one by one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from toolkit.contract.snapshots.arrays import PAIRS
from toolkit.contract.snapshots.entry_reader import (
    ADDRESS,
    SLACK,
    EntryReader,
    copy_addresses,
    copy_texts,
    find_addresses,
)
from toolkit.contract.snapshots.messagepack import MessagePackWalk, SnapshotHead
from toolkit.errors import AnswerInvalid

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]
Key = Callable[[bytes], bytes]

EntrySpan = tuple[int, int, int]
"""The positions of an entry: its address, its values, and the value after it."""

_NULLABLE: Final = ("is_unified", "account_mode")
"""Columns that become Arrow arrays, because numpy has no missing flag or whole number."""

_KEYED: Final = 2 + ADDRESS
"""The length of an address with the marker before it."""

_NIL: Final = 0xC0
_PAIR: Final = 0x92
_TUPLE: Final = 0x90
_OBJECT: Final = 0x80
_STR: Final = 0xA0
_BLOCK_ROWS: Final = 16_384


@dataclass(frozen=True, slots=True)
class AccountScan:
    """The result of a scan; rows that do not fit have arbitrary values.

    - ``starts``, ``ends`` (array of int64): the positions where each entry begins, and where it
      ends if it fits
    - ``fits`` (array of bool): whether each entry could be read
    - ``columns`` (mapping of str to array): the columns, without `user`
    """

    starts: Places
    ends: Places
    fits: npt.NDArray[np.bool_]
    columns: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Branches:
    """The margin of some users by branch: pairs of token and available margin.

    - ``rows``, ``counts`` (array of int64): the row of each user, and the number of its pairs; -1
      for null
    - ``user``, ``place`` (array of int64): for each pair the index of its user in `rows`, and its
      place among the user's pairs
    - ``token``, ``length`` (array of int64): for each pair the position of the token's text, and
      its length in bytes
    - ``available`` (array of float64): for each pair the available margin
    """

    rows: Places
    counts: Places
    user: Places
    place: Places
    token: Places
    length: Places
    available: npt.NDArray[np.float64]

    def select(self, fits: npt.NDArray[np.bool_]) -> "Branches":
        """Return the pairs of users that fit."""
        if fits.all():
            return self
        is_kept = fits[self.user]
        pairs: list[Any] = [self.user, self.place, self.token, self.length, self.available]
        return Branches(
            self.rows, np.where(fits, self.counts, -1), *(values[is_kept] for values in pairs)
        )

    def shift_rows(self, by: int) -> "Branches":
        """Return the pairs with larger row numbers."""
        return replace(self, rows=self.rows + by)


def scan_accounts(
    payload: memoryview,
    head: SnapshotHead,
    read_entries: Callable[[list[EntrySpan]], dict[str, Any]],
) -> dict[str, Any] | None:
    """Return the columns of the entries of a snapshot.

    Parameters
    ----------
    payload : memoryview
        MessagePack of the snapshot.
    head : SnapshotHead
        The values around its entries.
    read_entries : callable
        A function that reads the entries at some positions one by one.

    Returns
    -------
    mapping of str to array, or None
        The columns; None if too few entries fit, or if some entries were not found. The caller
        then reads the entries one by one, which also finds errors.
    """
    data = np.frombuffer(payload, np.uint8)
    starts = find_addresses(data, head.start, head.finish)
    if not len(starts) or starts[0] != head.start:
        return None
    try:
        found = _scan_entries(data, starts, keyed=head.keyed)
        return _checked_columns(payload, head, found, read_entries)
    except (AnswerInvalid, pa.ArrowInvalid):
        return None


def _checked_columns(
    payload: memoryview,
    head: SnapshotHead,
    found: AccountScan,
    read_entries: Callable[[list[EntrySpan]], dict[str, Any]],
) -> dict[str, Any] | None:
    chain = _follow_entries(payload, head, found)
    if chain is None:
        return None
    rows, odd = chain
    addresses = copy_addresses(np.frombuffer(payload, np.uint8), found.starts[rows] + 2)
    if len(addresses) != head.count * ADDRESS or not _is_ascii(addresses):
        return None
    columns = found.columns
    missing = _replace_odd_entries(columns, odd, found.starts, read_entries) if odd else {}
    for name in _NULLABLE:
        columns[name] = pa.array(columns[name], mask=missing.get(name))
    if not isinstance(rows, slice):
        columns = {name: values.take(rows) for name, values in columns.items()}
    return {"user": _address_array(addresses), **columns}


def _follow_entries(
    payload: memoryview, head: SnapshotHead, found: AccountScan
) -> tuple[slice | Places, list[EntrySpan]] | None:
    """Follow the entries from the first to the last, and skip those that do not fit.

    Returns: the rows of the scan that are entries, and the positions of entries to read one by one.
    """
    starts, ends = found.starts, found.ends
    follows = found.fits & (ends == np.append(starts[1:], head.finish))
    breaks = np.flatnonzero(~follows)
    if len(breaks) > len(starts) // 4 + 16:
        return None
    runs, odd, first, at = [], [], 0, head.start
    while at != head.finish:
        next_break = np.searchsorted(breaks, first)
        last = int(breaks[next_break]) if next_break < len(breaks) else len(starts) - 1
        runs.append(np.arange(first, last + 1))
        at = int(ends[last])
        if not found.fits[last]:
            begin = int(starts[last])
            at = _end_of_value(payload, begin + _KEYED)
            odd.append((begin, begin + _KEYED, at))
        first = int(np.searchsorted(starts, at))
        if at != head.finish and (first == len(starts) or starts[first] != at):
            return None
    rows = np.concatenate(runs)
    return (slice(None) if len(rows) == len(starts) else rows), odd


def _end_of_value(payload: memoryview, at: int) -> int:
    walk = MessagePackWalk(payload, at, read_size=4096)
    walk.skip()
    return walk.at


def _replace_odd_entries(
    columns: dict[str, Any],
    odd: list[EntrySpan],
    starts: Places,
    read_entries: Callable[[list[EntrySpan]], dict[str, Any]],
) -> dict[str, npt.NDArray[np.bool_]]:
    """Read odd entries one by one into the columns, and return where values are missing."""
    where = np.searchsorted(starts, [begin for begin, _, _ in odd])
    read = read_entries(odd)
    missing: dict[str, npt.NDArray[np.bool_]] = {}
    for name, values in columns.items():
        if name in _NULLABLE:
            missing[name] = np.zeros(len(starts), np.bool_)
            missing[name][where] = read[name].is_null().to_numpy(zero_copy_only=False)
            present = read[name].drop_null().to_numpy(zero_copy_only=False)
            values[where[~missing[name][where]]] = present
        elif isinstance(values, np.ndarray):
            values[where] = read[name]
    branches = read["pm_avail_by_branch"]
    if branches.null_count < len(branches):
        order = np.arange(len(starts))
        order[where] = len(starts) + np.arange(len(where))
        both = pa.concat_arrays([columns["pm_avail_by_branch"], branches])
        columns["pm_avail_by_branch"] = both.take(order)
    place = np.full(len(starts), -1)
    place[where] = np.arange(len(where))
    taken = pa.array(place, mask=place < 0)
    columns |= {name: read[name].take(taken) for name in read if name.startswith("entry.")}
    return missing


def _is_ascii(characters: npt.NDArray[np.uint8]) -> bool:
    words = characters[: len(characters) // 8 * 8].view(np.uint64)
    rest = characters[len(words) * 8 :]
    seen = int(np.bitwise_or.reduce(words)) & 0x8080808080808080
    return not seen and not (rest & 0x80).any()


def _address_array(characters: npt.NDArray[np.uint8]) -> pa.Array:
    count = len(characters) // ADDRESS
    offsets = np.arange(count + 1) * ADDRESS
    return pa.LargeStringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(characters))


def _scan_entries(data: Bytes, starts: Places, *, keyed: bool) -> AccountScan:
    """Return the entries that begin at some positions.

    - ``data`` (array of uint8): MessagePack of a snapshot
    - ``starts`` (array of int64): the positions of the addresses. Entries too close to the end of
      the bytes do not fit.
    - ``keyed``: whether the entries are objects instead of tuples
    """
    rows = len(starts)
    floats = ("account_value", "total_long_notional", "total_short_notional")
    columns: dict[str, Any] = {
        **{name: np.zeros(rows) for name in floats},
        "is_unified": np.zeros(rows, np.bool_),
        "account_mode": np.zeros(rows, np.int64),
        "pm_ratio": np.full(rows, np.nan),
        "pm_avail_by_branch": None,
        "pm_total_account_value": np.full(rows, np.nan),
    }
    found = AccountScan(starts, np.zeros(rows, np.int64), np.zeros(rows, np.bool_), columns)
    readable = int(np.searchsorted(starts, len(data) - SLACK, side="right"))
    pairs = []
    for first in range(0, readable, _BLOCK_ROWS):
        block = slice(first, min(first + _BLOCK_ROWS, readable))
        pairs.append(_read_block(data, found, block, keyed=keyed))
    columns["pm_avail_by_branch"] = _branch_column(rows, pairs, data)
    return found


def _read_block(data: Bytes, found: AccountScan, block: slice, *, keyed: bool) -> Branches:
    base, key = (_OBJECT, _object_key) if keyed else (_TUPLE, _no_key)
    reader = EntryReader(data, found.starts[block] + _KEYED)
    length = reader.next_byte()
    columns = {name: values[block] for name, values in found.columns.items() if values is not None}
    reader.skip_literal(key(b"v"))
    columns["account_value"][:] = reader.read_numbers()
    reader.skip_literal(key(b"l"))
    columns["total_long_notional"][:] = reader.read_numbers()
    reader.skip_literal(key(b"s"))
    columns["total_short_notional"][:] = reader.read_numbers()
    reader.skip_literal(key(b"m"))
    columns["is_unified"][:] = reader.read_flags()
    reader.skip_literal(key(b"am"))
    columns["account_mode"][:] = reader.read_small_integers()
    margin = length == base + 8
    reader.fits &= margin | (length == base + 5)
    pairs = _read_margin(reader, np.flatnonzero(margin & reader.fits), columns, key)
    found.ends[block], found.fits[block] = reader.at, reader.fits
    return pairs.shift_rows(block.start)


def _read_margin(reader: EntryReader, where: Places, columns: dict[str, Any], key: Key) -> Branches:
    """Read the values that only portfolio-margin users have."""
    users = reader.select(where)
    users.skip_literal(key(b"pm"))
    columns["pm_ratio"][where] = users.read_numbers(null=True)
    users.skip_literal(key(b"pa"))
    pairs = _read_branches(users, where)
    users.skip_literal(key(b"pt"))
    columns["pm_total_account_value"][where] = users.read_numbers(null=True)
    reader.at[where], reader.fits[where] = users.at, users.fits
    return pairs.select(users.fits)


def _object_key(short: bytes) -> bytes:
    return bytes([0xA0 + len(short)]) + short


def _no_key(short: bytes) -> bytes:
    return b""


def _read_branches(reader: EntryReader, rows: Places) -> Branches:
    """Return the pairs of each user: null, or at most 15 pairs with tokens of at most 31 bytes."""
    markers = reader.next_byte()
    counts = np.where(markers == _NIL, -1, markers.astype(np.int64) - _TUPLE)
    reader.fits &= (counts >= -1) & (counts < 16)
    last = len(reader.data) - SLACK
    none = np.empty(0, np.int64)
    parts: list[tuple[Any, ...]] = [(none, none, none, none, np.empty(0))]
    for place in range(int(counts.max(initial=0, where=reader.fits))):
        reader.fits &= reader.at <= last
        where = np.flatnonzero(reader.fits & (counts > place))
        pair = reader.select(where)
        pair.skip_literal(bytes([_PAIR]))
        length = pair.next_byte().astype(np.int64) - _STR
        pair.fits &= (length >= 0) & (length < 32)
        token = pair.at
        pair.at = token + np.where(pair.fits, length, 0)
        available = pair.read_numbers()
        reader.at[where], reader.fits[where] = pair.at, pair.fits
        parts.append((where, np.full(len(where), place), token, length, available))
    reader.fits &= reader.at <= last
    reader.at = np.where(reader.fits, reader.at, 0)
    return Branches(rows, counts, *(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _branch_column(rows: int, blocks: list[Branches], data: Bytes) -> pa.Array:
    """Return the column of all rows from the pairs of some users.

    - ``rows``: the length of the column; rows without a user are null
    - ``blocks``: the pairs
    - ``data`` (array of uint8): the bytes with the tokens

    Raise pyarrow.ArrowInvalid if a token is not UTF-8.
    """
    if not any(len(block.rows) for block in blocks):
        return pa.nulls(rows, PAIRS)
    counts = np.full(rows, -1)
    for block in blocks:
        counts[block.rows] = block.counts
    offsets = np.zeros(rows + 1, np.int64)
    np.cumsum(np.maximum(counts, 0), out=offsets[1:])
    places = np.concatenate([offsets[block.rows[block.user]] + block.place for block in blocks])
    order = np.empty(len(places), np.int64)
    order[places] = np.arange(len(places))
    starts, lengths, available = (
        np.concatenate([getattr(block, name) for block in blocks])[order]
        for name in ("token", "length", "available")
    )
    tokens, _ = copy_texts(data, starts, lengths)
    tokens.validate(full=True)
    pairs = pa.StructArray.from_arrays([tokens, pa.array(available)], fields=list(PAIRS.value_type))
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), pairs, type=PAIRS, mask=pa.array(counts < 0)
    )
