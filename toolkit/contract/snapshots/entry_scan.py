"""All entries of a snapshot at once, in blocks that fit into the processor's cache."""

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from toolkit.arrays import Bytes, Flags, Ints
from toolkit.contract.snapshots.entry_layouts import EntryLayout, KnownLayouts
from toolkit.contract.snapshots.entry_reader import ADDRESS, SLACK, EntryReader
from toolkit.contract.snapshots.margin_branches import Branches, branch_column, read_branches
from toolkit.contract.snapshots.unknown_values import RawValues, Spans
from toolkit.contract.snapshots.value_lengths import skip_values

KEYED: Final = 2 + ADDRESS
"""The length of an address with the marker before it."""

_BLOCK_ROWS: Final = 16_384


@dataclass(frozen=True, slots=True)
class EntryScan:
    """The result of a scan; rows that do not fit have arbitrary values.

    - ``starts``, ``ends`` (array of int64): the positions where each entry begins, and where it
      ends if it fits
    - ``fits`` (array of bool): whether each entry could be read
    - ``columns`` (mapping of str to array): the columns, without `user`
    - ``branches``: the margin of some users
    - ``unknown``: column of unknown values -> their positions and lengths
    """

    starts: Ints
    ends: Ints
    fits: Flags
    columns: dict[str, Any]
    branches: list[Branches] = field(default_factory=list)
    unknown: dict[str, tuple[Spans, Spans]] = field(default_factory=dict)

    def unknown_spans(self, name: str) -> tuple[Spans, Spans]:
        """Return the positions and lengths of an unknown value; 0 where none was read yet."""
        if name not in self.unknown:
            rows = len(self.starts)
            self.unknown[name] = np.zeros(rows, np.uint32), np.zeros(rows, np.uint32)
        return self.unknown[name]


def scan_entries(payload: memoryview, starts: Ints, *, keyed: bool) -> EntryScan:
    """Return the entries that begin at some positions.

    - ``payload``: MessagePack of a snapshot
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
    data = np.frombuffer(payload, np.uint8)
    found = EntryScan(starts, np.zeros(rows, np.int64), np.zeros(rows, np.bool_), columns)
    layouts = KnownLayouts(payload, keyed=keyed)
    readable = int(np.searchsorted(starts, len(data) - SLACK, side="right"))
    for first in range(0, readable, _BLOCK_ROWS):
        _scan_block(data, found, slice(first, min(first + _BLOCK_ROWS, readable)), layouts)
    columns["pm_avail_by_branch"] = branch_column(rows, found.branches, data)
    for name, spans in found.unknown.items():
        columns[name] = RawValues(((payload, *spans),))
    return found


def _scan_block(data: Bytes, found: EntryScan, block: slice, layouts: KnownLayouts) -> None:
    """Read the entries of a block with one layout after the other, the learned layouts last."""
    at = found.starts[block] + KEYED
    first_bytes = data[at]
    is_left = np.ones(len(at), np.bool_)
    tried = 0
    while True:
        for layout in layouts.known[tried:]:
            where = np.flatnonzero(is_left & (first_bytes == layout.header[0]))
            if len(where):
                fits = _read_layout(data, found, block.start + where, layout)
                is_left[where[fits]] = False
        tried = len(layouts.known)
        if not layouts.learn_from(at[is_left], first_bytes[is_left]):
            return


def _read_layout(data: Bytes, found: EntryScan, rows: Ints, layout: EntryLayout) -> Flags:
    """Read the entries of some rows with a layout, store those that fit, and return which fit."""
    reader = EntryReader(data, found.starts[rows] + KEYED + 1)
    reader.skip_literal(layout.header[1:])
    values: dict[str, Any] = {}
    for part in layout.fields:
        reader.skip_literal(part.literal)
        if part.is_known:
            values[part.column] = _read_known(reader, part.column, rows)
        else:
            start = reader.at
            skip_values(reader)
            values[part.column] = start, reader.at - start
    fits = reader.fits
    is_whole = bool(fits.all())
    kept = rows if is_whole else rows[fits]
    if not len(kept):
        return fits
    # If the rows follow each other, a slice is faster than their numbers.
    where: Any = slice(kept[0], kept[-1] + 1) if kept[-1] - kept[0] < len(kept) else kept

    def store(column: Any, read: Any) -> None:
        column[where] = read if is_whole else read[fits]

    for name, read in values.items():
        if isinstance(read, Branches):
            found.branches.append(read.select(fits))
        elif isinstance(read, tuple):
            for column, spans in zip(found.unknown_spans(name), read, strict=True):
                store(column, spans)
        else:
            store(found.columns[name], read)
    store(found.ends, reader.at)
    store(found.fits, fits)
    return fits


def _read_known(reader: EntryReader, column: str, rows: Ints) -> Any:
    if column == "is_unified":
        return reader.read_flags()
    if column == "account_mode":
        return reader.read_small_integers()
    if column == "pm_avail_by_branch":
        return read_branches(reader, rows)
    return reader.read_numbers(null=column.startswith("pm_"))
