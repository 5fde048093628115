"""Account values: from MessagePack to columns. Specification, "Account value snapshot"."""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Final

import msgspec
import pyarrow as pa

from toolkit.contract.deviations import report_unknown
from toolkit.contract.snapshots.columnar import Place, scanned
from toolkit.contract.snapshots.entries import Entries, addresses_of
from toolkit.contract.snapshots.joining import (
    PAIRS,
    TEXT,
    joined,
    made_columns,
    nullable_flags,
    nullable_integers,
    numbers,
    repeated,
)
from toolkit.contract.snapshots.walking import Head, Walk, read_head
from toolkit.errors import AnswerInvalid

__all__ = ["account_columns", "one_by_one", "places_of"]

_OPERATION: Final = "accountValueSnapshots"
_ROWS: Final = 8_192
_BYTES: Final = 4 << 20
# More branches than there can be collateral tokens; it bounds what hostile bytes can make.
_Pairs = Annotated[list[tuple[str, float | None]], msgspec.Meta(max_length=65_536)]
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


def account_columns(payloads: Iterator[memoryview], limit: int) -> dict[str, Any]:
    """Read the snapshots of an answer into the columns of AccountValueRow."""
    parts: list[dict[str, Any]] = []
    rows = 0
    for payload in payloads:
        head = read_head(payload, "collateral token", "map")
        for name in head.unknown:
            report_unknown(_OPERATION, name, has_column=False)
        for values in _columns(payload, head, rows):
            count = len(values["user"])
            parts.append(
                {
                    "snapshot_id": repeated([(head.snapshot_id, count)], limit),
                    "collateral_token": repeated([(head.name, count)], limit),
                    **values,
                }
            )
            rows += count
    return joined(parts, _empty())


def _columns(payload: memoryview, head: Head, row: int) -> Iterator[dict[str, Any]]:
    columns = scanned(payload, head, functools.partial(_read_again, payload, head))
    if columns is not None:
        yield columns
    else:
        yield from one_by_one(payload, head, places_of(payload, head), row)


def _read_again(payload: memoryview, head: Head, places: list[Place]) -> dict[str, Any]:
    return joined(list(one_by_one(payload, head, iter(places), 0)), _values([], [], 0))


def one_by_one(
    payload: memoryview, head: Head, places: Iterator[Place], row: int
) -> Iterator[dict[str, Any]]:
    """Read entries of whatever form, one object each, in batches that stay small.

    Parameters
    ----------
    payload : memoryview
        MessagePack of the snapshot.
    head : Head
        What stands around its entries.
    places : iterator of tuple
        Where the entries stand.
    row : int
        The row of the first, for messages.

    Yields
    ------
    mapping of str to array
        The columns that the entries make.
    """
    form = _OBJECTS if head.keyed else _TUPLES
    for batch in _batches(places):
        count = len(batch)
        addresses = b"".join([payload[a:b] for a, b, _ in batch])
        values = b"".join([payload[b:c] for _, b, c in batch])
        users = addresses_of(addresses, count, "user", row)
        yield _values(users, form.read(values, count, row), row)
        row += count


def _batches(places: Iterator[Place]) -> Iterator[list[Place]]:
    batch, size = [], 0
    for place in places:
        batch.append(place)
        size += place[2] - place[0]
        if len(batch) >= _ROWS or size >= _BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def places_of(payload: memoryview, head: Head) -> Iterator[Place]:
    """Walk over the entries of a snapshot."""
    walk = Walk(payload, head.start)
    for _ in range(head.count):
        start = walk.at
        walk.skip()
        values = walk.at
        walk.skip()
        yield start, values, walk.at
    if walk.at != head.finish:
        raise AnswerInvalid(f"{head.finish - walk.at} bytes follow the last of {head.count} users")


def _values(users: list[str], entries: list[Any], row: int) -> dict[str, Any]:
    return {"user": pa.array(users, TEXT), **made_columns(_MAKERS, entries, row)}


def _pairs(values: Sequence[list[tuple[str, float | None]] | None]) -> pa.Array:
    named = [
        None if one is None else [{"token": token, "available": amount} for token, amount in one]
        for one in values
    ]
    return pa.array(named, PAIRS)


_KINDS: Final[dict[Any, Callable[..., Any]]] = {
    float: numbers,
    float | None: numbers,
    bool: nullable_flags,
    int: nullable_integers,
    _Pairs | None: _pairs,
}
_MAKERS: Final = {name: _KINDS[kind] for name, _, kind, *_ in _FIELDS}


def _empty() -> dict[str, Any]:
    texts = {name: pa.array([], TEXT) for name in ("snapshot_id", "collateral_token")}
    return texts | _values([], [], 0)
