"""Account values, from MessagePack to columns. Specification, "Account value snapshot"."""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from toolkit.arrays import Ints
from toolkit.contract.field_deviations import report_unknown
from toolkit.contract.snapshots.account_scan import EntrySpan, scan_accounts
from toolkit.contract.snapshots.arrays import (
    PAIRS,
    build_columns,
    join_columns,
    nullable_flag_array,
    nullable_integer_array,
    number_array,
    repeat_texts,
)
from toolkit.contract.snapshots.entries import EntryDecoder, decode_addresses, read_snapshot_values
from toolkit.contract.snapshots.entry_layouts import KEYS, count_known_values
from toolkit.contract.snapshots.messagepack import MessagePackReader, SnapshotHead, read_head
from toolkit.contract.snapshots.unknown_values import TEXT, unknown_columns
from toolkit.display import count_text
from toolkit.errors import AnswerInvalid

_OPERATION: Final = "accountValueSnapshots"
_ROWS: Final = 8_192
_BYTES: Final = 4 << 20
# More branches than there can be collateral tokens; it limits the memory for hostile bytes.
_BranchPairs = Annotated[list[tuple[str, float | None]], msgspec.Meta(max_length=65_536)]
_TYPES: Final[tuple[tuple[Any, ...], ...]] = (
    (float,),
    (float,),
    (float,),
    (bool,),
    (int,),
    (float | None, None),
    (_BranchPairs | None, None),
    (float | None, None),
)
_FIELDS: Final[tuple[tuple[Any, ...], ...]] = tuple(
    (name, key, *kind) for (key, name), kind in zip(KEYS.items(), _TYPES, strict=True)
)
_TUPLES: Final = EntryDecoder(_OPERATION, _FIELDS, array_like=True)
_SHORT_TUPLES: Final = EntryDecoder(_OPERATION, _FIELDS[: count_known_values(0)], array_like=True)
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
    texts = {name: pa.array([], TEXT) for name in ("snapshot_id", "collateral_token")}
    return join_columns(parts, texts | _no_entries())


def _entry_columns(payload: memoryview, head: SnapshotHead, row: int) -> Iterator[dict[str, Any]]:
    columns = scan_accounts(payload, head, functools.partial(_read_spans, payload, head))
    if columns is not None:
        for name in columns:
            if name.startswith("entry."):
                report_unknown(_OPERATION, name.removeprefix("entry."))
        yield columns
    else:
        yield from read_one_by_one(payload, head, entry_spans(payload, head), row)


def _read_spans(payload: memoryview, head: SnapshotHead, spans: list[EntrySpan]) -> dict[str, Any]:
    return join_columns(list(read_one_by_one(payload, head, iter(spans), 0)), _no_entries())


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
    for batch in _batches(spans):
        addresses = b"".join([payload[a:b] for a, b, _ in batch])
        users = decode_addresses(addresses, len(batch), "user", row)
        values = [payload[b:c] for _, b, c in batch]
        yield {"user": pa.array(users, TEXT), **_value_columns(values, row, keyed=head.keyed)}
        row += len(batch)


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
    walk = MessagePackReader(payload, head.start)
    for _ in range(head.count):
        start = walk.at
        walk.skip()
        values = walk.at
        walk.skip()
        yield start, values, walk.at
    if walk.at != head.finish:
        rest = count_text(head.finish - walk.at, "byte follows", "bytes follow")
        raise AnswerInvalid(
            f"unexpected: {rest} the last of {count_text(head.count, 'user')}. Request it again"
        )


def _value_columns(values: list[memoryview], row: int, *, keyed: bool) -> dict[str, Any]:
    """Return the columns of the values of entries.

    Values behind the known ones of short tuples are no ratios of a margin, so they are read apart.
    """
    is_short = np.array([not keyed and _is_short(value) for value in values], np.bool_)
    places = [np.flatnonzero(is_short == short) for short in (False, True)]
    forms = (_OBJECTS if keyed else _TUPLES, _SHORT_TUPLES)
    parts = [
        _columns_in_form(form, [values[place] for place in where], row + where)
        for form, where in zip(forms, places, strict=True)
        if len(where)
    ]
    if len(parts) == 1:
        return parts[0]
    order = np.argsort(np.concatenate(places))
    columns = join_columns(parts, build_columns(_MAKERS, [], 0))
    return {name: column.take(order) for name, column in columns.items()}


def _is_short(value: memoryview) -> bool:
    size = {0xDC: 2, 0xDD: 4}.get(value[0], 0)
    length = int.from_bytes(value[1 : 1 + size], "big") if size else value[0] - 0x90
    return 0 <= length < len(_FIELDS)


def _columns_in_form(form: EntryDecoder, values: list[memoryview], rows: Ints) -> dict[str, Any]:
    """Decode entries that share one form into columns; `rows` are row numbers for errors."""
    try:
        entries = form.read(b"".join(values), len(values), 0)
        known = build_columns({name: _MAKERS[name] for name in form.names}, entries, 0)
    except AnswerInvalid as error:
        if error.row is not None:
            error.row = int(rows[error.row])
        raise
    # The makers of these columns are those without row numbers.
    absent = {
        name: make([None] * len(values)) for name, make in _MAKERS.items() if name not in known
    }
    return {**known, **absent, **unknown_columns(entries)}


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
    _BranchPairs | None: _pair_array,
}
_MAKERS: Final = {name: _MAKERS_BY_TYPE[kind] for name, _, kind, *_ in _FIELDS}


def _no_entries() -> dict[str, Any]:
    return {"user": pa.array([], TEXT), **build_columns(_MAKERS, [], 0)}
