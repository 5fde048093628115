"""Compaction: rewrite files of a table in the order in which readers need the rows.

The rows are ordered by month, operation, subject and place in their history. The rows of one
account are then next to each other within a month, and readers skip all other rows by the
statistics of files and row groups.

`ExternalSort` sorts more rows than fit into memory, in temporary files. The rows are divided among
parts by their key as they come. Each part is then read and sorted in memory. The keys that divide
the parts come from a sample, so all parts have about the same size, also if most rows belong to one
account. The files are in the folder of `tempfile`, which the environment variable TMPDIR chooses.

The new files replace the old ones in one commit. Rows can be appended meanwhile: the commit only
removes files that it has rewritten. A second compaction at the same time is refused, because both
set the same counter of the Delta table.
"""

import bisect
import contextlib
import json
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from toolkit.archive.errors import hide_panics, load_deltalake
from toolkit.archive.schemas import RECORDS, time_column_name
from toolkit.archive.storage import (
    ROWS_IN_GROUP,
    ArchiveTables,
    file_actions,
    format_digest,
    keep_files,
)
from toolkit.errors import ArchiveError

__all__ = [
    "NO_VALUES",
    "ExternalSort",
    "KeySample",
    "ValueSpan",
    "compact_table",
    "join_small_files",
    "union_span",
    "use_system_memory",
    "value_span",
]

Action = Mapping[str, Any]
"""A file of a table, with its statistics, from the table's log."""

SortKey = tuple[Any, ...]

_SORTED_PREFIX: Final = "sorted-"  # of the names of files that compaction wrote
_COUNTER: Final = "compaction"
_ROWS_IN_FILE: Final = 1_000_000
_ROWS_IN_PART: Final = 20_000
_PART_BYTES: Final = 8 * 2**20  # compressed; in memory the rows are some ten times as large
_LOOSE_FILES: Final = 32  # so many files of one size class are joined at once
_SIZE_STEP: Final = 5  # the files of a size class differ by a factor of at most 2 ** 5
_SORT_KEY: Final = ("_operation", "_subject", "_part", "_row", "_fetched", "start", "id")
_SAMPLES_IN_PART: Final = 50
NO_VALUES: Final = (None, None, 0)
"""The span of a column without values."""
ValueSpan = tuple[Any, Any, int]
"""Least and greatest value of a column, and the number of missing values."""
_MONTH: Final = "_month"  # a column that is only there while rows are sorted


def compact_table(
    tables: ArchiveTables, name: str, frozen: Sequence[int], forget_after_hours: int | None
) -> int:
    """Rewrite the files that are not sorted, and return how many fewer files there are.

    The files of the versions in `frozen` stay. If `forget_after_hours` is given, files that no
    version needs are removed after so many hours.

    Raise CommitConflict if another process compacts the table.
    """
    handle = tables.open_for_append(name)
    before = file_actions(handle)
    chosen = _select_unsorted(name, before)
    is_needed = len(chosen) > 1
    if is_needed:
        _rewrite_files(tables, handle, name, chosen, is_sorted=True)
    with tables.translate_errors(handle.table_uri), hide_panics():
        if is_needed:
            handle.create_checkpoint()
        if forget_after_hours is not None:
            handle.vacuum(
                retention_hours=forget_after_hours,
                dry_run=False,
                enforce_retention_duration=False,
                keep_versions=list(frozen),
            )
    return len(before) - len(file_actions(handle))


def join_small_files(tables: ArchiveTables, name: str) -> None:
    """Join files of about the same size, if there are many of them.

    Each row is rewritten once per size class, so that the cost per refresh does not grow with the
    table. Raise CommitConflict if another process compacts the table.
    """
    handle = tables.open_for_append(name)
    classes: dict[int, list[Action]] = defaultdict(list)
    for action in file_actions(handle):
        if not _is_sorted(action):
            classes[action["size_bytes"].bit_length() // _SIZE_STEP].append(action)
    for actions in classes.values():
        if len(actions) >= _LOOSE_FILES:
            _rewrite_files(tables, handle, name, actions, is_sorted=False)
            return


def _is_sorted(action: Action) -> bool:
    return bool(action["path"].startswith(_SORTED_PREFIX))


def _select_unsorted(name: str, actions: Sequence[Action]) -> list[Action]:
    """Return the files that are not sorted, and the sorted files with rows of the same months."""
    loose = [action for action in actions if not _is_sorted(action)]
    if not loose or name not in RECORDS:
        return list(actions) if loose else []
    moment = time_column_name(name)
    months = set[int]().union(*(_file_months(action, moment) for action in loose))
    return [
        action
        for action in actions
        if not _is_sorted(action) or _file_months(action, moment) & months
    ]


def _file_months(action: Action, moment: str) -> set[int]:
    """Return the months from the first row of a file to its last, counted from year 0."""
    first, last = (action.get(f"{end}.{moment}") for end in ("min", "max"))
    if first is None or last is None:
        return set()
    return {*range(first.year * 12 + first.month, last.year * 12 + last.month + 1)}


def _rewrite_files(
    tables: ArchiveTables, handle: Any, name: str, actions: Sequence[Action], *, is_sorted: bool
) -> None:
    """Replace files by files with the same rows, sorted, in one commit."""
    delta, paths = load_deltalake(), {action["path"] for action in actions}
    part_rows, dataset = _rows_in_part(actions), keep_files(tables.open_dataset(handle), paths)
    key = [column for column in _SORT_KEY if column in dataset.schema.names]
    moment = time_column_name(name) if name in RECORDS else None
    if moment:
        key = [*key[:2], moment, *key[2:]]
    with tables.translate_errors(handle.table_uri), use_system_memory():
        # If other files have bounds, a missing bound tells readers that the column has no values.
        bounded = [column[4:] for column in actions[0] if column.startswith("min.")]
        writer = _SortedFiles(dataset, bounded, is_sorted=is_sorted)
        try:
            sample = KeySample(part_rows)
            for batch in tables.scan_batches(dataset, key[:3]):
                sample.add_keys(_put_month_first(batch, moment))
            if moment:
                key = [_MONTH, *key]
            with ExternalSort(key, sample) as rows:
                for batch in tables.scan_batches(dataset):
                    rows.add_rows(_put_month_first(batch, moment))
                for part in rows.sorted_parts():
                    writer.write_rows(part.drop_columns([_MONTH]) if moment else part)
            added = writer.close_files()
            rows_before = sum(action["num_records"] for action in actions)
            if sum(file["rows"] for file in added) != rows_before:
                raise ArchiveError(
                    f"{handle.table_uri}: the statistics of its files are wrong, so it cannot be "
                    "compacted; toolkit archive verify shows what is damaged"
                )
            now = time.time_ns() // 1_000_000
            changes = [
                *(delta.transaction.AddAction(**file["action"]) for file in added),
                *(delta.transaction.RemoveAction(path, False, now) for path in sorted(paths)),
            ]
            commit = delta.CommitProperties(
                # The rows stay the same: `Archive.verify` sums the digests of all commits.
                custom_metadata={"digest": format_digest(0)},
                app_transactions=[delta.Transaction(_COUNTER, handle.version() + 1)],
            )
        except BaseException:  # also Ctrl-C: no commit names these files, so they must go
            writer.remove_files()
            raise
        # From here on the commit may have succeeded, even if an error or an interrupt follows. The
        # files must stay.
        with hide_panics():
            try:
                handle.create_write_transaction(
                    changes, "append", handle.schema(), commit_properties=commit
                )
            except delta.exceptions.CommitFailedError:  # another process was first
                writer.remove_files()
                raise
            handle.update_incremental()


def _put_month_first(rows: pa.RecordBatch, moment: str | None) -> pa.RecordBatch:
    """Return rows with their month as the first column, if they have a time."""
    if moment is None:
        return rows
    times = rows[moment].cast(pa.timestamp("us")).to_numpy(zero_copy_only=False)
    return rows.add_column(0, _MONTH, pa.array(times.astype("datetime64[M]").astype(np.int32)))


class _SortedFiles:
    """Writes sorted rows into files of a table; the caller commits them.

    The table's log has the statistics of `columns`. With `is_sorted`, the names of the files say
    that compaction wrote them.
    """

    def __init__(self, dataset: Any, columns: Sequence[str], *, is_sorted: bool) -> None:
        self._filesystem, self._schema = dataset.filesystem, dataset.schema
        self._prefix = _SORTED_PREFIX if is_sorted else "joined-"
        self._columns = columns
        self._files: list[dict[str, Any]] = []
        self._pending: list[pa.Table] = []
        self._open_file: Any = None

    def write_rows(self, rows: pa.Table) -> None:
        """Append rows; small tables are joined to one row group."""
        self._pending.append(rows)
        if sum(part.num_rows for part in self._pending) >= ROWS_IN_GROUP:
            self._write_pending()

    def close_files(self) -> list[dict[str, Any]]:
        """Finish, and return ``rows`` and the ``action`` of each file."""
        self._write_pending()
        self._close_file()
        return self._files

    def remove_files(self) -> None:
        """Delete what was written, because it will not be committed."""
        with contextlib.suppress(Exception):
            self._close_file()
        for file in self._files:
            with contextlib.suppress(Exception):
                self._filesystem.delete_file(file["action"]["path"])

    def _write_pending(self) -> None:
        rows = pa.concat_tables([self._schema.empty_table(), *self._pending])
        self._pending = []
        if not rows.num_rows:
            return
        if self._open_file is None:
            self._open_new_file()
        _, writer = self._open_file
        writer.write_table(rows, row_group_size=ROWS_IN_GROUP)
        file = self._files[-1]
        file["rows"] += rows.num_rows
        for column in self._columns:
            known = file["spans"].get(column, NO_VALUES)
            file["spans"][column] = union_span(known, value_span(rows[column]))
        if file["rows"] >= _ROWS_IN_FILE:
            self._close_file()

    def _open_new_file(self) -> None:
        path = f"{self._prefix}{uuid.uuid4()}.parquet"
        self._files.append({"rows": 0, "spans": {}, "action": {"path": path}})
        stream = self._filesystem.open_output_stream(path)
        texts = {"_json", "_body"}
        writer = pq.ParquetWriter(
            stream,
            self._schema,
            compression="zstd",
            compression_level=3,
            use_dictionary=[name for name in self._schema.names if name not in texts],
            write_statistics=[name for name in self._schema.names if name not in texts],
        )
        self._open_file = (stream, writer)

    def _close_file(self) -> None:
        if self._open_file is None:
            return
        (stream, writer), self._open_file = self._open_file, None
        with stream:
            writer.close()
            size = stream.tell()
        file = self._files[-1]
        file["action"] |= {
            "size": size,
            "partition_values": {},
            "modification_time": time.time_ns() // 1_000_000,
            "data_change": False,
            "stats": json.dumps(_delta_statistics(file["rows"], file["spans"])),
        }


def value_span(column: pa.ChunkedArray) -> ValueSpan:
    """Return the span of the values of a column."""
    ends = pc.min_max(column)
    return ends["min"].as_py(), ends["max"].as_py(), column.null_count


def union_span(first: ValueSpan, second: ValueSpan) -> ValueSpan:
    """Return the span of the values of two parts of a column."""
    low = min((value for value in (first[0], second[0]) if value is not None), default=None)
    high = max((value for value in (first[1], second[1]) if value is not None), default=None)
    return low, high, first[2] + second[2]


def _delta_statistics(rows: int, spans: Mapping[str, ValueSpan]) -> dict[str, Any]:
    """Return the statistics of a file in the form of Delta's log."""

    def ends(index: int) -> dict[str, Any]:
        found = {column: span[index] for column, span in spans.items() if span[index] is not None}
        return {
            column: f"{value:%Y-%m-%dT%H:%M:%S.%fZ}" if isinstance(value, datetime) else value
            for column, value in found.items()
        }

    nulls = {column: span[2] for column, span in spans.items()}
    return {"numRecords": rows, "minValues": ends(0), "maxValues": ends(1), "nullCount": nulls}


def _rows_in_part(actions: Sequence[Action]) -> int:
    """Return how many rows of files are sorted in memory at once."""
    rows = sum(action["num_records"] for action in actions)
    size = sum(action["size_bytes"] for action in actions)
    return int(min(_ROWS_IN_PART, max(1, _PART_BYTES * rows // max(size, 1))))


@contextmanager
def use_system_memory() -> Iterator[None]:
    """Let Arrow take memory from the C library, which returns freed memory to the system sooner."""
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)


class KeySample:
    """A sample of the keys of rows, evenly spread; a part has about `part_rows` rows."""

    def __init__(self, part_rows: int) -> None:
        self.part_rows = part_rows
        self._step = max(1, part_rows // _SAMPLES_IN_PART)
        self._keys: list[SortKey] = []
        self._per_part = max(1, part_rows // self._step)
        self._seen = 0

    def add_keys(self, keys: pa.Table | pa.RecordBatch) -> None:
        """Add the key columns of rows, in the order of the key."""
        taken = keys.take(pa.array(np.arange(-self._seen % self._step, keys.num_rows, self._step)))
        self._seen += keys.num_rows
        self._keys += zip(*taken.to_pydict().values(), strict=True)

    def split_keys(self) -> list[SortKey]:
        """Return the first key of each part but the first."""
        return list(dict.fromkeys(sorted(self._keys)[self._per_part :: self._per_part]))


class ExternalSort:
    """Rows that are sorted by their key, part by part.

    No column of the key has missing values. The sample has its first columns. If all rows are one
    part, there are no temporary files.
    """

    def __init__(self, key: Sequence[str], sample: KeySample) -> None:
        self._key, self._splits, self._part_rows = key, sample.split_keys(), sample.part_rows
        self._pending: list[pa.RecordBatch] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> "ExternalSort":
        if self._splits:
            self._folder = tempfile.TemporaryDirectory(prefix="toolkit-archive-")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def add_rows(self, rows: pa.RecordBatch) -> None:
        """Add rows. All batches have the same columns."""
        self._pending.append(rows)
        if self._splits and sum(map(len, self._pending)) >= self._part_rows:
            self._divide_pending()

    def sorted_parts(self) -> Iterator[pa.Table]:
        """Yield the rows in order. Each table is one part."""
        if not self._splits:
            if self._pending:
                yield self._sort(self._take_pending())
            return
        self._divide_pending()
        for part in range(len(self._splits) + 1):
            if self._part_path(part).exists():
                yield self._sort(pa.concat_tables(self._read_slices(part)))
                self._part_path(part).unlink()

    def _take_pending(self) -> pa.Table:
        rows, self._pending = self._pending, []
        return pa.Table.from_batches(rows)

    def _divide_pending(self) -> None:
        """Write the pending rows into the files of their parts."""
        if not self._pending:
            return
        rows = self._sort(self._take_pending())
        columns = [rows[name] for name in self._key[: len(self._splits[0])]]

        def key_at(position: int) -> SortKey:
            return tuple(column[position].as_py() for column in columns)

        # The parts ascend like the rows, so each has a slice of the rows.
        positions = range(rows.num_rows)
        ends = [bisect.bisect_left(positions, split, key=key_at) for split in self._splits]
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        for part, (first, end) in enumerate(zip([0, *ends], [*ends, len(positions)], strict=True)):
            if first < end:
                # A file is closed after each slice: there may be more parts than open files.
                with (
                    self._part_path(part).open("ab") as file,
                    pa.ipc.new_stream(file, rows.schema, options=options) as stream,
                ):
                    stream.write_table(rows.slice(first, end - first))

    def _sort(self, rows: pa.Table) -> pa.Table:
        order = pc.sort_indices(rows, [(name, "ascending") for name in self._key])
        columns = {}
        for name in rows.column_names:  # one after the other, so that each is freed
            columns[name] = rows[name].combine_chunks().take(order)
            rows = rows.drop_columns([name])
        pa.default_memory_pool().release_unused()  # otherwise the process keeps twice as much
        return pa.table(columns)

    def _part_path(self, part: int) -> Path:
        assert self._folder is not None
        return Path(self._folder.name) / str(part)

    def _read_slices(self, part: int) -> Iterator[pa.Table]:
        with self._part_path(part).open("rb") as file:
            while file.peek(1):
                yield pa.ipc.open_stream(file).read_all()
