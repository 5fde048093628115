"""Compaction: rewrite files of a table in the order in which readers need the rows.

The rows are ordered by month, operation, subject and place in their history. The rows of one
account are then next to each other within a month, and readers skip all other rows by the
statistics of files and row groups. `ExternalSort` sorts them in temporary files, so that the memory
hardly grows with the table.

The new files replace the old ones in one commit. Rows can be appended meanwhile: the commit only
removes files that it has rewritten. A second compaction at the same time is refused, because both
set the same Delta transaction.
"""

import contextlib
import json
import time
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from toolkit.archive.errors import hide_panics, load_deltalake
from toolkit.archive.external_sort import ExternalSort, KeySample, use_system_memory
from toolkit.archive.schemas import RECORDS, time_column
from toolkit.archive.storage import (
    ROWS_IN_GROUP,
    ArchiveTables,
    file_actions,
    format_digest,
)
from toolkit.errors import ArchiveError

__all__ = ["compact_table", "join_small_files", "rows_in_part"]

Action = Mapping[str, Any]
"""A file of a table, with its statistics, from the table's log."""

_SORTED_PREFIX: Final = "sorted-"  # of the names of files that compaction wrote
_TRANSACTION: Final = "compaction"
_ROWS_IN_FILE: Final = 1_000_000
_ROWS_IN_PART: Final = 30_000
_PART_BYTES: Final = 8 * 2**20  # compressed; in memory the rows are some ten times as large
_LOOSE_FILES: Final = 32  # so many files of one size class are joined at once
_SIZE_STEP: Final = 5  # the files of a size class differ by a factor of at most 2 ** 5
_SORT_KEY: Final = ("_operation", "_subject", "_part", "_row", "_fetched", "start", "id")
_MONTH: Final = "_month"  # a column that is only there while rows are sorted


def compact_table(
    tables: ArchiveTables, name: str, frozen: Sequence[int], forget_after_hours: int | None
) -> int:
    """Rewrite the files that are not sorted, and return how many fewer files there are.

    Parameters
    ----------
    tables : ArchiveTables
        The archive.
    name : str
        The table.
    frozen : sequence of int
        Versions whose files must stay.
    forget_after_hours : int or None
        If given, files that no version needs are removed after so many hours.

    Raises
    ------
    CommitConflict
        If another process compacts the table.
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
    table.

    Raises
    ------
    CommitConflict
        If another process compacts the table.
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
    moment = time_column(name)
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
    part_rows, dataset = rows_in_part(actions), tables.choose_files(handle, paths)
    key = [column for column in _SORT_KEY if column in dataset.schema.names]
    moment = time_column(name) if name in RECORDS else None
    if moment:
        key = [*key[:2], moment, *key[2:]]
    with tables.translate_errors(handle.table_uri), use_system_memory():
        # Readers take a missing bound for a column without values, if other files have bounds.
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
                app_transactions=[delta.Transaction(_TRANSACTION, handle.version() + 1)],
            )
        except BaseException:
            writer.remove_files()
            raise
        # From here on the files may be the table, also if an error or an interrupt arrives.
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

    Parameters
    ----------
    dataset : pyarrow.dataset.FileSystemDataset
        The files of the table.
    columns : sequence of str
        The columns whose statistics the table's log has.
    is_sorted : bool
        Whether the names of the files say that compaction wrote them.
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
            ends, nulls = pc.min_max(rows[column]), rows[column].null_count
            known = file["spans"].setdefault(column, [None, None, 0])
            for index, choose in enumerate((min, max)):
                values = (known[index], ends[index].as_py())
                known[index] = choose((v for v in values if v is not None), default=None)
            known[2] += nulls
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


def _delta_statistics(rows: int, spans: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Return the statistics of a file in the form of Delta's log."""

    def ends(index: int) -> dict[str, Any]:
        found = {column: span[index] for column, span in spans.items() if span[index] is not None}
        return {
            column: f"{value:%Y-%m-%dT%H:%M:%S.%fZ}" if isinstance(value, datetime) else value
            for column, value in found.items()
        }

    nulls = {column: span[2] for column, span in spans.items()}
    return {"numRecords": rows, "minValues": ends(0), "maxValues": ends(1), "nullCount": nulls}


def rows_in_part(actions: Sequence[Action]) -> int:
    """Return how many rows of files are sorted in memory at once."""
    rows = sum(action["num_records"] for action in actions)
    size = sum(action["size_bytes"] for action in actions)
    return int(min(_ROWS_IN_PART, max(1, _PART_BYTES * rows // max(size, 1))))
