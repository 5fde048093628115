"""Account values: from MessagePack to columns. Specification, "Account value snapshot"."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Annotated, Any, Final

import msgspec
import pyarrow as pa

from toolkit.contract.snapshots.entries import Entries, report_unknown, texts_of
from toolkit.contract.snapshots.joining import (
    PAIRS,
    TEXT,
    flags,
    integers,
    joined,
    numbers,
    repeated,
)
from toolkit.contract.snapshots.walking import Head, Walk, read_head
from toolkit.errors import AnswerInvalid

__all__ = ["account_columns"]

_OPERATION: Final = "accountValueSnapshots"
_ROWS: Final = 8_192
_BYTES: Final = 4 << 20
# More branches than there can be collateral tokens; it bounds what hostile bytes can make.
_Pairs = Annotated[list[tuple[str, float]], msgspec.Meta(max_length=65_536)]
_FIELDS: Final[tuple[tuple[Any, ...], ...]] = (
    ("account_value", "v", float),
    ("total_long_notional", "l", float),
    ("total_short_notional", "s", float),
    ("is_unified", "m", bool),
    ("account_mode", "am", int),
    ("pm_ratio", "pm", float | None, None),
    ("pm_avail_by_branch", "pa", _Pairs | None, None),
    ("pm_total_account_value", "pt", float | None, None),
)
_TUPLES: Final = Entries(_OPERATION, _FIELDS, array_like=True)
_OBJECTS: Final = Entries(_OPERATION, _FIELDS, array_like=False)

Place = tuple[int, int, int]
"""Where an entry stands: its address, its values, and what follows it."""


def account_columns(payloads: Iterator[memoryview], limit: int) -> dict[str, Any]:
    """Read the snapshots of an answer into the columns of AccountValueRow."""
    parts: list[dict[str, Any]] = []
    rows = 0
    for payload in payloads:
        head = read_head(payload, "collateral token", "map")
        for name in head.unknown:
            report_unknown(_OPERATION, name)
        for values in _columns(payload, head, rows):
            count = len(values["user"])
            parts.append(
                {
                    "snapshot_id": repeated(head.snapshot_id, count, limit),
                    "collateral_token": repeated(head.name, count, limit),
                    **values,
                }
            )
            rows += count
    return joined(parts, _empty())


def _columns(payload: memoryview, head: Head, row: int) -> Iterator[dict[str, Any]]:
    places = _places(payload, head)
    while batch := list(islice(places, _ROWS)):
        yield read_places(payload, batch, row)
        row += len(batch)


def _places(payload: memoryview, head: Head) -> Iterator[Place]:
    walk = Walk(payload, head.start)
    for _ in range(head.count):
        start = walk.at
        walk.skip()
        values = walk.at
        walk.skip()
        yield start, values, walk.at
    if walk.at != head.finish:
        raise AnswerInvalid(f"{head.finish - walk.at} bytes follow the last of {head.count} users")


def read_places(payload: memoryview, places: list[Place], row: int) -> dict[str, Any]:
    """Read entries of whatever form, one object each."""
    count = len(places)
    users = texts_of(b"".join([payload[a:b] for a, b, _ in places]), count, "user", row)
    form = _TUPLES if payload[places[0][1]] in _ARRAYS else _OBJECTS
    entries = form.read(b"".join([payload[b:c] for _, b, c in places]), count, row)
    return _values(users, entries, row)


def _values(users: list[str], entries: list[Any], row: int) -> dict[str, Any]:
    columns = {"user": pa.array(users, TEXT)}
    for name, make in _MAKERS.items():
        values = [getattr(one, name) for one in entries]
        columns[name] = make(values, name, row) if make is integers else make(values)
    return columns


_ARRAYS: Final = frozenset((*range(0x90, 0xA0), 0xDC, 0xDD))


def _pairs(values: list[list[tuple[str, float]] | None]) -> pa.Array:
    named = [
        None if one is None else [{"token": token, "available": amount} for token, amount in one]
        for one in values
    ]
    return pa.array(named, PAIRS)


_KINDS: Final[dict[Any, Callable[..., Any]]] = {
    float: numbers,
    float | None: numbers,
    bool: flags,
    int: integers,
    _Pairs | None: _pairs,
}
_MAKERS: Final = {name: _KINDS[kind] for name, _, kind, *_ in _FIELDS}


def _empty() -> dict[str, Any]:
    texts = {name: pa.array([], TEXT) for name in ("snapshot_id", "collateral_token")}
    return texts | _values([], [], 0)
