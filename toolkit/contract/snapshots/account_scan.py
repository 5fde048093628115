"""Account values of all users at once, from MessagePack to columns without an object for each user.

Every entry begins with an address, which its first four bytes identify. An `EntryReader` then reads
each field of all entries together, in blocks that fit into the processor's cache. An entry counts
only if it ends exactly where the next one begins. All other entries are read one by one.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from toolkit.arrays import Bytes, Flags, Ints
from toolkit.contract.snapshots.entry_layouts import BEGIN_ENTRIES
from toolkit.contract.snapshots.entry_reader import ADDRESS, copy_addresses, find_addresses
from toolkit.contract.snapshots.entry_scan import KEYED, EntryScan, scan_entries
from toolkit.contract.snapshots.messagepack import MessagePackReader, SnapshotHead
from toolkit.contract.snapshots.unknown_values import RawValues
from toolkit.errors import AnswerInvalid

EntrySpan = tuple[int, int, int]
"""The positions of an entry: its address, its values, and the value after it."""

_NULLABLE: Final = ("is_unified", "account_mode")
"""Columns that become Arrow arrays, because numpy has no missing flag or whole number."""


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
    starts = find_addresses(data, head.start, head.finish, BEGIN_ENTRIES[head.keyed])
    if not len(starts) or starts[0] != head.start:
        return None
    try:
        found = scan_entries(payload, starts, keyed=head.keyed)
        return _checked_columns(payload, head, found, read_entries)
    except (AnswerInvalid, pa.ArrowInvalid):
        return None


def _checked_columns(
    payload: memoryview,
    head: SnapshotHead,
    found: EntryScan,
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
    columns = {
        name: values
        for name, values in columns.items()
        if not isinstance(values, RawValues) or values.has_any()
    }
    count = len(addresses) // ADDRESS
    buffers = (pa.py_buffer(np.arange(count + 1) * ADDRESS), pa.py_buffer(addresses))
    return {"user": pa.LargeStringArray.from_buffers(count, *buffers), **columns}


def _follow_entries(
    payload: memoryview, head: SnapshotHead, found: EntryScan
) -> tuple[slice | Ints, list[EntrySpan]] | None:
    """Follow the entries from the first to the last, and skip those that do not fit.

    Returns: the rows of the scan that are entries, and the positions of entries to read one by one.
    """
    kept = _outside_of_entries(found)
    starts, ends, fits = found.starts[kept], found.ends[kept], found.fits[kept]
    follows = fits & (ends == np.append(starts[1:], head.finish))
    breaks = np.flatnonzero(~follows)
    if len(breaks) > len(starts) // 4 + 16:
        return None
    runs, odd, first, at = [], [], 0, head.start
    while at != head.finish:
        next_break = np.searchsorted(breaks, first)
        last = int(breaks[next_break]) if next_break < len(breaks) else len(starts) - 1
        runs.append(np.arange(first, last + 1))
        at = int(ends[last])
        if not fits[last]:
            begin = int(starts[last])
            walk = MessagePackReader(payload, begin + KEYED, read_size=4096)
            walk.skip()
            at = walk.at
            odd.append((begin, begin + KEYED, at))
        first = int(np.searchsorted(starts, at))
        if at != head.finish and (first == len(starts) or starts[first] != at):
            return None
    rows = np.concatenate(runs)
    if not isinstance(kept, slice):
        return kept[rows], odd
    return (kept if len(rows) == len(starts) else rows), odd


def _outside_of_entries(found: EntryScan) -> slice | Ints:
    """Return the rows without the addresses that are unknown values inside of other entries."""
    reached = np.maximum.accumulate(np.where(found.fits, found.ends, 0))
    is_inside = ~found.fits[1:] & (found.starts[1:] < reached[:-1])
    if not is_inside.any():
        return slice(None)
    return np.flatnonzero(np.append(True, ~is_inside))


def _replace_odd_entries(
    columns: dict[str, Any],
    odd: list[EntrySpan],
    starts: Ints,
    read_entries: Callable[[list[EntrySpan]], dict[str, Any]],
) -> dict[str, Flags]:
    """Read odd entries one by one into the columns, and return where values are missing."""
    where = np.searchsorted(starts, [begin for begin, _, _ in odd])
    read = read_entries(odd)
    missing: dict[str, Flags] = {}
    for name, values in columns.items():
        if name in _NULLABLE:
            missing[name] = np.zeros(len(starts), np.bool_)
            missing[name][where] = read[name].is_null().to_numpy(zero_copy_only=False)
            present = read[name].drop_null().to_numpy(zero_copy_only=False)
            values[where[~missing[name][where]]] = present
        elif isinstance(values, np.ndarray):
            values[where] = read[name]
    order = np.arange(len(starts))
    order[where] = len(starts) + np.arange(len(where))
    branches = read["pm_avail_by_branch"]
    if branches.null_count < len(branches):
        both = pa.concat_arrays([columns["pm_avail_by_branch"], branches])
        columns["pm_avail_by_branch"] = both.take(order)
    for name in dict.fromkeys(name for name in (*columns, *read) if name.startswith("entry.")):
        scanned = columns.get(name) or RawValues.absent(len(starts))
        singly = read.get(name) or RawValues.absent(len(where))
        columns[name] = RawValues.join([scanned, singly]).take(order)
    return missing


def _is_ascii(characters: Bytes) -> bool:
    words = characters[: len(characters) // 8 * 8].view(np.uint64)
    rest = characters[len(words) * 8 :]
    seen = int(np.bitwise_or.reduce(words)) & 0x8080808080808080
    return not seen and not (rest & 0x80).any()
