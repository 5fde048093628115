"""Account values of all users at once, from MessagePack to columns without an object a user.

Every entry begins with an address, which can be found by its first four bytes. Each field is
then read from all entries together (`scanning`). What was read counts only where each
entry ends exactly where the next begins; entries that do not fit are read one by one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from toolkit.contract.snapshots.branches import branch_column, read_branches
from toolkit.contract.snapshots.joining import PAIRS
from toolkit.contract.snapshots.scanning import ADDRESS, SLACK, Cursor, address_starts, texts_at
from toolkit.contract.snapshots.walking import Head, Walk
from toolkit.errors import AnswerInvalid

__all__ = ["Place", "scanned"]

Places = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Place = tuple[int, int, int]
"""Where an entry stands: its address, its values, and what follows it."""

_KEYED: Final = 2 + ADDRESS
_TUPLE: Final = 0x90
_OBJECT: Final = 0x80


@dataclass(slots=True)
class _Scan:
    """What the cursor read; rows that do not fit hold nonsense until they are read again."""

    starts: Places
    ends: Places
    fits: Mask
    columns: dict[str, Any]


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
    if not len(starts) or starts[0] != head.start or len(data) < SLACK:
        return None
    try:
        return _columns(payload, head, _scan(data, starts, keyed=head.keyed), read_places)
    except (AnswerInvalid, pa.ArrowInvalid):
        return None


def _columns(
    payload: memoryview,
    head: Head,
    scan: _Scan,
    read_places: Callable[[list[Place]], dict[str, Any]],
) -> dict[str, Any] | None:
    chain = _chain(payload, head, scan)
    if chain is None:
        return None
    rows, odd = chain
    addresses = texts_at(np.frombuffer(payload, np.uint8), scan.starts[rows] + 2)
    if len(addresses) != head.count * ADDRESS or not _is_ascii(addresses):
        return None
    columns = scan.columns
    if odd:
        _amend(columns, odd, scan.starts, read_places)
    if not isinstance(rows, slice):
        columns = {name: values.take(rows) for name, values in columns.items()}
    return {"user": _fixed_texts(addresses), **columns}


def _scan(data: npt.NDArray[np.uint8], starts: Places, *, keyed: bool) -> _Scan:
    # The last entries are too near to the end of the bytes to be read without a look at each
    # step: they look for their fields elsewhere, and do not fit.
    near = np.searchsorted(starts, len(data) - SLACK, side="right")
    cursor = Cursor(data, starts + _KEYED)
    cursor.at[near:] = 0
    base, key = (_OBJECT, _object_key) if keyed else (_TUPLE, _no_key)
    length = cursor.step()
    columns: dict[str, Any] = {}
    for name, short in (
        ("account_value", b"v"),
        ("total_long_notional", b"l"),
        ("total_short_notional", b"s"),
    ):
        cursor.literal(key(short))
        columns[name] = cursor.number()
    cursor.literal(key(b"m"))
    columns["is_unified"] = cursor.flag()
    cursor.literal(key(b"am"))
    columns["account_mode"] = cursor.small()
    margin = length == base + 8
    cursor.fits &= margin | (length == base + 5)
    columns |= _margin(cursor, np.flatnonzero(margin & cursor.fits), key)
    cursor.fits[near:] = False
    return _Scan(starts, cursor.at, cursor.fits, columns)


def _margin(cursor: Cursor, where: Places, key: Callable[[bytes], bytes]) -> dict[str, Any]:
    """Read what only portfolio-margin users have."""
    rows = len(cursor.at)
    ratio, total = np.full(rows, np.nan), np.full(rows, np.nan)
    if not len(where):
        branches = pa.nulls(rows, PAIRS)
    else:
        users = cursor.narrowed(where)
        users.literal(key(b"pm"))
        ratio[where] = users.number(null=True)
        users.literal(key(b"pa"))
        pairs = read_branches(users)
        users.literal(key(b"pt"))
        total[where] = users.number(null=True)
        cursor.at[where] = users.at
        cursor.fits[where] = users.fits
        branches = branch_column(rows, where, pairs.only(users.fits), cursor.data)
    return {"pm_ratio": ratio, "pm_avail_by_branch": branches, "pm_total_account_value": total}


def _object_key(short: bytes) -> bytes:
    return bytes([0xA0 + len(short)]) + short


def _no_key(short: bytes) -> bytes:
    return b""


def _chain(
    payload: memoryview, head: Head, scan: _Scan
) -> tuple[slice | Places, list[Place]] | None:
    """Follow the entries from the first to the end, stepping over those that do not fit.

    Returns
    -------
    tuple, or None
        The rows of the scan that are entries, and the places of those to be read again.
    """
    starts, ends = scan.starts, scan.ends
    follows = scan.fits & (ends == np.append(starts[1:], head.finish))
    breaks = np.flatnonzero(~follows)
    if len(breaks) > len(starts) // 4 + 16:
        return None
    runs, odd, first, at = [], [], 0, head.start
    while at != head.finish:
        next_break = np.searchsorted(breaks, first)
        last = int(breaks[next_break]) if next_break < len(breaks) else len(starts) - 1
        runs.append(np.arange(first, last + 1))
        at = int(ends[last])
        if not scan.fits[last]:
            begin = int(starts[last])
            at = _after(payload, begin + _KEYED)
            odd.append((begin, begin + _KEYED, at))
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
) -> None:
    """Put entries that were read one by one into the columns."""
    where = np.searchsorted(starts, [begin for begin, _, _ in odd])
    read = read_places(odd)
    for name, values in columns.items():
        if isinstance(values, np.ndarray):
            values[where] = read[name]
    branches = read["pm_avail_by_branch"]
    if branches.null_count < len(branches):
        order = np.arange(len(starts))
        order[where] = len(starts) + np.arange(len(where))
        both = pa.concat_arrays([columns["pm_avail_by_branch"], branches])
        columns["pm_avail_by_branch"] = both.take(order)


def _is_ascii(characters: npt.NDArray[np.uint8]) -> bool:
    words = characters[: len(characters) // 8 * 8].view(np.uint64)
    rest = characters[len(words) * 8 :]
    seen = int(np.bitwise_or.reduce(words)) & 0x8080808080808080
    return not seen and not (rest & 0x80).any()


def _fixed_texts(characters: npt.NDArray[np.uint8]) -> pa.Array:
    count = len(characters) // ADDRESS
    offsets = np.arange(count + 1) * ADDRESS
    return pa.LargeStringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(characters))
