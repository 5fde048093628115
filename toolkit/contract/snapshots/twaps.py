"""TWAPs, from MessagePack to columns. Specification, "TWAP snapshot"."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from toolkit.contract.snapshots.arrays import (
    build_columns,
    flag_array,
    integer_array,
    join_columns,
    nullable_flag_array,
    nullable_integer_array,
    number_array,
    repeat_texts,
    time_array,
)
from toolkit.contract.snapshots.entries import EntryDecoder, read_snapshot_values
from toolkit.contract.snapshots.messagepack import MessagePackReader, SnapshotHead, read_head
from toolkit.contract.snapshots.twap_scan import scan_twaps
from toolkit.contract.snapshots.unknown_values import TEXT, unknown_columns

_OPERATION: Final = "perpTwapSnapshots"
_BYTES: Final = 4 << 20
_ROWS: Final = 8_192
_FIELDS: Final[tuple[tuple[Any, ...], ...]] = (
    ("address", "address", str),
    ("twap_id", "twap_id", int),
    ("asset", "asset", str),
    ("is_buy", "is_buy", bool),
    ("total_sz", "total_sz", float),
    ("executed_sz", "executed_sz", float),
    ("remaining_sz", "remaining_sz", float),
    ("executed_ntl", "executed_ntl", float),
    ("progress_pct", "progress_pct", float),
    ("duration_secs", "duration_secs", int),
    ("start_time_ms", "start_time_ms", int),
    ("reduce_only", "reduce_only", bool),
    ("randomize", "randomize", bool),
    ("next_slice_time", "next_slice_time", str | None),
    ("slice_number", "slice_number", int),
    ("market_name", "market_name", str | None),
    ("market_readable", "market_readable", str | None),
    ("stop_px", "stop_px", float | None, None),
    ("trigger_px", "trigger_px", float | None, None),
    ("trigger_above", "trigger_above", bool | None, None),
    ("waiting", "waiting", bool | None, False),
)
_SnapshotRun = tuple[str, str, int, dict[str, str | None]]
"""Id, market, number of rows and unknown values of a snapshot."""
_TUPLES: Final = EntryDecoder(_OPERATION, _FIELDS, array_like=True, keys=("address", "twap_id"))


def twap_columns(payloads: Iterator[memoryview], limit: int) -> dict[str, Any]:
    """Return the columns of TwapRow for the snapshots of an answer."""
    parts: list[dict[str, Any]] = []
    rows = 0
    for batch in _split_batches(payloads):
        # A long snapshot comes in pieces, which need less memory.
        found = scan_twaps(_OPERATION, batch) if len(batch[0]) <= _BYTES else None
        if found is None:
            parts += read_twaps_one_by_one(batch, rows, limit)
        else:
            runs: list[_SnapshotRun] = [(*run, {}) for run in found.runs]
            parts.append(_snapshot_columns(runs, limit) | found.columns)
        rows = sum(len(part["twap_id"]) for part in parts)
    return join_columns(parts, _batch_columns([], [], 0, limit))


def _split_batches(payloads: Iterator[memoryview]) -> Iterator[list[memoryview]]:
    """Yield some snapshots at a time, so that their TWAPs fit into the memory twice."""
    batch: list[memoryview] = []
    size = 0
    for payload in payloads:
        if batch and size + len(payload) > _BYTES:
            yield batch
            batch, size = [], 0
        batch.append(payload)
        size += len(payload)
    if batch:
        yield batch


def read_twaps_one_by_one(
    payloads: Sequence[memoryview], first_row: int, limit: int
) -> Iterator[dict[str, Any]]:
    """Yield columns of TWAPs that are read one by one."""
    runs: list[_SnapshotRun] = []
    rows: list[Any] = []
    done = first_row
    for payload in payloads:
        for snapshot_id, market, entries, further in _read_snapshot(
            payload, done + len(rows), limit
        ):
            runs.append((snapshot_id, market, len(entries), further))
            rows += entries
            if len(rows) >= _ROWS:
                yield _batch_columns(runs, rows, done, limit)
                done += len(rows)
                runs, rows = [], []
    yield _batch_columns(runs, rows, done, limit)


def _read_snapshot(
    payload: memoryview, row: int, limit: int
) -> Iterator[tuple[str, str, list[Any], dict[str, str | None]]]:
    """Yield id, market, entries and unknown values of a snapshot; a long one comes in pieces."""
    if len(payload) <= _BYTES and (snapshot := _TUPLES.snapshot(payload)):
        yield *snapshot, {}
        return
    head = read_head(payload, "market name", "array")
    further = read_snapshot_values(_OPERATION, payload, head, limit)
    for body, count in _split_entries(payload, head):
        entries = _TUPLES.read(body, count, row)
        yield head.snapshot_id, head.name, entries, further
        row += count


def _split_entries(payload: memoryview, head: SnapshotHead) -> Iterator[tuple[bytes, int]]:
    """Yield the MessagePack of the TWAPs in small pieces, with the number of TWAPs."""
    if head.finish - head.start <= _BYTES:
        yield bytes(payload[head.start : head.finish]), head.count
        return
    walk, start, count = MessagePackReader(payload, head.start), head.start, 0
    for _ in range(head.count):
        walk.skip()
        count += 1
        if walk.at - start > _BYTES:
            yield bytes(payload[start : walk.at]), count
            start, count = walk.at, 0
    yield bytes(payload[start : head.finish]), count


def _batch_columns(
    runs: list[_SnapshotRun], rows: list[Any], first_row: int, limit: int
) -> dict[str, Any]:
    columns = _snapshot_columns(runs, limit)
    return columns | build_columns(_MAKERS, rows, first_row) | unknown_columns(rows)


def _snapshot_columns(runs: list[_SnapshotRun], limit: int) -> dict[str, Any]:
    """Return the columns of what each snapshot states once for all of its TWAPs."""
    texts: dict[str, list[tuple[str | None, int]]] = {
        "snapshot_id": [(snapshot_id, count) for snapshot_id, _, count, _ in runs],
        "market": [(market, count) for _, market, count, _ in runs],
    }
    for name in dict.fromkeys(name for run in runs for name in run[3]):
        texts[name] = [(further.get(name), count) for _, _, count, further in runs]
    return {name: repeat_texts(values, limit) for name, values in texts.items()}


def _text_array(values: list[str | None]) -> pa.Array:
    return pa.array(values, TEXT)


_MAKERS_BY_TYPE: Final[dict[Any, Callable[..., Any]]] = {
    str: _text_array,
    str | None: _text_array,
    int: nullable_integer_array,
    float: number_array,
    float | None: number_array,
    bool: nullable_flag_array,
    bool | None: nullable_flag_array,
}
_MAKERS: Final = {name: _MAKERS_BY_TYPE[kind] for name, _, kind, *_ in _FIELDS} | {
    "twap_id": integer_array,
    "start_time_ms": time_array,
    "waiting": flag_array,
}
