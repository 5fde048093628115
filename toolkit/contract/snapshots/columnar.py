"""Account values of all users at once, from MessagePack to columns without an object a user.

Every entry begins with an address, which can be found by its first four bytes. Each field is
then read from all entries together (`scanning`). What was read counts only where each
entry ends exactly where the next begins; entries that do not fit are read one by one.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from toolkit.contract.snapshots.blocks import KEYED, Scan, scan
from toolkit.contract.snapshots.scanning import ADDRESS, address_starts, texts_at
from toolkit.contract.snapshots.walking import Head, Walk
from toolkit.errors import AnswerInvalid

__all__ = ["Place", "scanned"]

Places = npt.NDArray[np.int64]
_MAY_LACK: Final = ("is_unified", "account_mode")
"""Columns that become Arrow arrays, since numpy has no missing flag or whole number."""

Place = tuple[int, int, int]
"""Where an entry stands: its address, its values, and what follows it."""


def scanned(
    payload: memoryview, head: Head, read_places: Callable[[list[Place]], dict[str, Any]]
) -> dict[str, Any] | None:
    """Read the entries of a snapshot.

    Parameters
    ----------
    payload : memoryview
        MessagePack of the snapshot.
    head : Head
        What stands around its entries.
    read_places : callable
        Reads entries one by one, at given places.

    Returns
    -------
    mapping of str to array, or None
        The columns; None if too few entries fit, or they are not all the entries. Reading
        one by one will then give them, or say what is wrong.
    """
    data = np.frombuffer(payload, np.uint8)
    starts = address_starts(data, head.start, head.finish)
    if not len(starts) or starts[0] != head.start:
        return None
    try:
        return _columns(payload, head, scan(data, starts, keyed=head.keyed), read_places)
    except (AnswerInvalid, pa.ArrowInvalid):
        return None


def _columns(
    payload: memoryview,
    head: Head,
    found: Scan,
    read_places: Callable[[list[Place]], dict[str, Any]],
) -> dict[str, Any] | None:
    chain = _chain(payload, head, found)
    if chain is None:
        return None
    rows, odd = chain
    addresses = texts_at(np.frombuffer(payload, np.uint8), found.starts[rows] + 2)
    if len(addresses) != head.count * ADDRESS or not _is_ascii(addresses):
        return None
    columns = found.columns
    missing = _amend(columns, odd, found.starts, read_places) if odd else {}
    for name in _MAY_LACK:
        columns[name] = pa.array(columns[name], mask=missing.get(name))
    if not isinstance(rows, slice):
        columns = {name: values.take(rows) for name, values in columns.items()}
    return {"user": _fixed_texts(addresses), **columns}


def _chain(
    payload: memoryview, head: Head, found: Scan
) -> tuple[slice | Places, list[Place]] | None:
    """Follow the entries from the first to the end, stepping over those that do not fit.

    Returns
    -------
    tuple, or None
        The rows of the scan that are entries, and the places of those to be read again.
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
            at = _after(payload, begin + KEYED)
            odd.append((begin, begin + KEYED, at))
        first = int(np.searchsorted(starts, at))
        if at != head.finish and (first == len(starts) or starts[first] != at):
            return None
    rows = np.concatenate(runs)
    return (slice(None) if len(rows) == len(starts) else rows), odd


def _after(payload: memoryview, at: int) -> int:
    walk = Walk(payload, at, read_size=4096)
    walk.skip()
    return walk.at


def _amend(
    columns: dict[str, Any],
    odd: list[Place],
    starts: Places,
    read_places: Callable[[list[Place]], dict[str, Any]],
) -> dict[str, npt.NDArray[np.bool_]]:
    """Put entries that were read one by one into the columns; return where values are missing."""
    where = np.searchsorted(starts, [begin for begin, _, _ in odd])
    read = read_places(odd)
    missing: dict[str, npt.NDArray[np.bool_]] = {}
    for name, values in columns.items():
        if name in _MAY_LACK:
            missing[name] = np.zeros(len(starts), np.bool_)
            missing[name][where] = read[name].is_null().to_numpy(zero_copy_only=False)
            there = read[name].drop_null().to_numpy(zero_copy_only=False)
            values[where[~missing[name][where]]] = there
        elif isinstance(values, np.ndarray):
            values[where] = read[name]
    branches = read["pm_avail_by_branch"]
    if branches.null_count < len(branches):
        order = np.arange(len(starts))
        order[where] = len(starts) + np.arange(len(where))
        both = pa.concat_arrays([columns["pm_avail_by_branch"], branches])
        columns["pm_avail_by_branch"] = both.take(order)
    return missing


def _is_ascii(characters: npt.NDArray[np.uint8]) -> bool:
    words = characters[: len(characters) // 8 * 8].view(np.uint64)
    rest = characters[len(words) * 8 :]
    seen = int(np.bitwise_or.reduce(words)) & 0x8080808080808080
    return not seen and not (rest & 0x80).any()


def _fixed_texts(characters: npt.NDArray[np.uint8]) -> pa.Array:
    count = len(characters) // ADDRESS
    offsets = np.arange(count + 1) * ADDRESS
    return pa.LargeStringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(characters))
