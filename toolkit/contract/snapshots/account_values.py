"""Account values, from MessagePack to columns. Specification, "Account value snapshot"."""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Final

import msgspec
import pyarrow as pa

from toolkit.contract.snapshots.account_scan import EntrySpan, scan_accounts
from toolkit.contract.snapshots.arrays import (
    PAIRS,
    TEXT,
    build_columns,
    join_columns,
    nullable_flag_array,
    nullable_integer_array,
    number_array,
    repeat_texts,
    unknown_columns,
)
from toolkit.contract.snapshots.entries import EntryDecoder, decode_addresses, read_snapshot_values
from toolkit.contract.snapshots.messagepack import MessagePackWalk, SnapshotHead, read_head
from toolkit.errors import AnswerInvalid

_OPERATION: Final = "accountValueSnapshots"
_ROWS: Final = 8_192
_BYTES: Final = 4 << 20
# More branches than there can be collateral tokens; it limits the memory for hostile bytes.
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
_TUPLES: Final = EntryDecoder(_OPERATION, _FIELDS, array_like=True)
_OBJECTS: Final = EntryDecoder(_OPERATION, _FIELDS, array_like=False)


def account_columns(payloads: Iterator[memoryview], limit: int) -> dict[str, Any]:
    """Return the columns of AccountValueRow for the snapshots of an answer."""
    parts: list[dict[str, Any]] = []
    rows = 0
    for payload in payloads:
        head = read_head(payload, "collateral token", "map")
        further = read_snapshot_values(_OPERATION, payload, head, limit)
        for values in _entry_columns(payload, head, rows):
            count = len(values["user"])
            parts.append(
                {
                    "snapshot_id": repeat_texts([(head.snapshot_id, count)], limit),
                    "collateral_token": repeat_texts([(head.name, count)], limit),
                    **values,
                    **{
                        name: repeat_texts([(text, count)], limit) for name, text in further.items()
                    },
                }
            )
            rows += count
    return join_columns(parts, _empty_columns())


def _entry_columns(payload: memoryview, head: SnapshotHead, row: int) -> Iterator[dict[str, Any]]:
    columns = scan_accounts(payload, head, functools.partial(_read_spans, payload, head))
    if columns is not None:
        yield columns
    else:
        yield from read_one_by_one(payload, head, entry_spans(payload, head), row)


def _read_spans(payload: memoryview, head: SnapshotHead, spans: list[EntrySpan]) -> dict[str, Any]:
    return join_columns(
        list(read_one_by_one(payload, head, iter(spans), 0)), _value_columns([], [], 0)
    )


def read_one_by_one(
    payload: memoryview, head: SnapshotHead, spans: Iterator[EntrySpan], row: int
) -> Iterator[dict[str, Any]]:
    """Read entries of any form, with one object for each, in small batches.

    Parameters
    ----------
    payload : memoryview
        MessagePack of the snapshot.
    head : SnapshotHead
        The values around its entries.
    spans : iterator of tuple
        The positions of the entries.
    row : int
        The row of the first entry, for messages.

    Yields
    ------
    mapping of str to array
        The columns of a batch.
    """
    form = _OBJECTS if head.keyed else _TUPLES
    for batch in _batches(spans):
        count = len(batch)
        addresses = b"".join([payload[a:b] for a, b, _ in batch])
        values = b"".join([payload[b:c] for _, b, c in batch])
        users = decode_addresses(addresses, count, "user", row)
        yield _value_columns(users, form.read(values, count, row), row)
        row += count


def _batches(spans: Iterator[EntrySpan]) -> Iterator[list[EntrySpan]]:
    batch, size = [], 0
    for span in spans:
        batch.append(span)
        size += span[2] - span[0]
        if len(batch) >= _ROWS or size >= _BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def entry_spans(payload: memoryview, head: SnapshotHead) -> Iterator[EntrySpan]:
    """Yield the positions of the entries of a snapshot."""
    walk = MessagePackWalk(payload, head.start)
    for _ in range(head.count):
        start = walk.at
        walk.skip()
        values = walk.at
        walk.skip()
        yield start, values, walk.at
    if walk.at != head.finish:
        raise AnswerInvalid(f"{head.finish - walk.at} bytes follow the last of {head.count} users")


def _value_columns(users: list[str], entries: list[Any], row: int) -> dict[str, Any]:
    known = build_columns(_MAKERS, entries, row)
    return {"user": pa.array(users, TEXT), **known, **unknown_columns(entries)}


def _pair_array(values: Sequence[list[tuple[str, float | None]] | None]) -> pa.Array:
    structs = [
        None
        if pairs is None
        else [{"token": token, "available": margin} for token, margin in pairs]
        for pairs in values
    ]
    return pa.array(structs, PAIRS)


_MAKERS_BY_TYPE: Final[dict[Any, Callable[..., Any]]] = {
    float: number_array,
    float | None: number_array,
    bool: nullable_flag_array,
    int: nullable_integer_array,
    _Pairs | None: _pair_array,
}
_MAKERS: Final = {name: _MAKERS_BY_TYPE[kind] for name, _, kind, *_ in _FIELDS}


def _empty_columns() -> dict[str, Any]:
    texts = {name: pa.array([], TEXT) for name in ("snapshot_id", "collateral_token")}
    return texts | _value_columns([], [], 0)
