"""TWAPs: from MessagePack to columns. Specification, "TWAP snapshot"."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa

from toolkit.contract.deviations import report_unknown
from toolkit.contract.snapshots.entries import Entries
from toolkit.contract.snapshots.joining import (
    TEXT,
    flags,
    integers,
    joined,
    made_columns,
    nullable_flags,
    nullable_integers,
    numbers,
    repeated,
    times,
)
from toolkit.contract.snapshots.walking import Head, Walk, read_head

__all__ = ["twap_columns"]

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
_TUPLES: Final = Entries(_OPERATION, _FIELDS, array_like=True, keys=("address", "twap_id"))


def twap_columns(payloads: Iterator[memoryview], limit: int) -> dict[str, Any]:
    """Read the snapshots of an answer into the columns of TwapRow."""
    parts: list[dict[str, Any]] = []
    runs: list[tuple[str, str, int]] = []
    rows: list[Any] = []
    done = 0
    for payload in payloads:
        for snapshot_id, market, entries in _read(payload, done + len(rows)):
            runs.append((snapshot_id, market, len(entries)))
            rows += entries
            if len(rows) >= _ROWS:
                parts.append(_columns(runs, rows, done, limit))
                done += len(rows)
                runs, rows = [], []
    parts.append(_columns(runs, rows, done, limit))
    return joined(parts, _columns([], [], 0, limit))


def _read(payload: memoryview, row: int) -> Iterator[tuple[str, str, list[Any]]]:
    """Read a snapshot as it should be; with care if it is long, or not so."""
    if len(payload) <= _BYTES and (snapshot := _TUPLES.snapshot(payload)):
        yield snapshot
        return
    head = read_head(payload, "market name", "array")
    for name in head.unknown:
        report_unknown(_OPERATION, name, has_column=False)
    for body, count in _bodies(payload, head):
        entries = _TUPLES.read(body, count, row)
        yield head.snapshot_id, head.name, entries
        row += count


def _bodies(payload: memoryview, head: Head) -> Iterator[tuple[bytes, int]]:
    """Give the MessagePack of the TWAPs, in pieces that stay small as objects."""
    if head.finish - head.start <= _BYTES:
        yield bytes(payload[head.start : head.finish]), head.count
        return
    walk, start, count = Walk(payload, head.start), head.start, 0
    for _ in range(head.count):
        walk.skip()
        count += 1
        if walk.at - start > _BYTES:
            yield bytes(payload[start : walk.at]), count
            start, count = walk.at, 0
    yield bytes(payload[start : head.finish]), count


def _columns(
    runs: list[tuple[str, str, int]], rows: list[Any], first_row: int, limit: int
) -> dict[str, Any]:
    columns = {
        "snapshot_id": repeated([(one, count) for one, _, count in runs], limit),
        "market": repeated([(one, count) for _, one, count in runs], limit),
    }
    return columns | made_columns(_MAKERS, rows, first_row)


def _texts(values: list[str | None]) -> pa.Array:
    return pa.array(values, TEXT)


_KINDS: Final[dict[Any, Callable[..., Any]]] = {
    str: _texts,
    str | None: _texts,
    int: nullable_integers,
    float: numbers,
    float | None: numbers,
    bool: nullable_flags,
    bool | None: nullable_flags,
}
_MAKERS: Final = {name: _KINDS[kind] for name, _, kind, *_ in _FIELDS} | {
    "twap_id": integers,
    "start_time_ms": times,
    "waiting": flags,
}
