"""Compaction: rewrite a table in the order in which readers need its rows.

The rows are ordered by month, operation, subject and place in their history. The rows of one
account are then next to each other within a month, and readers skip all other rows by the
statistics of files and row groups. DuckDB sorts them, in temporary files if they do not fit into
memory; the environment variable TMPDIR chooses the folder.

The new files replace the old ones in one commit. Rows can be appended meanwhile: the commit only
removes files that it has rewritten. A second compaction at the same time is refused.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from toolkit.archive import engines, storage
from toolkit.archive.errors import load_deltalake
from toolkit.archive.schemas import RECORDS, time_column_name
from toolkit.archive.storage import ArchiveTables
from toolkit.errors import ArchiveError

_SORTED: Final = "sorted rows"
"""The counter of a table that states how many of its rows are in order."""
_LOOSE_FILES: Final = 32  # so many files are joined at once
_JOINED_BYTES: Final = 16 * 2**20  # about the largest file that is joined with others


def compact_table(
    tables: ArchiveTables, name: str, frozen: Sequence[int], forget_after_hours: int | None
) -> int:
    """Sort a table of rows, or join the files of another one; return how many fewer files it has.

    The files of the versions in `frozen` stay. If `forget_after_hours` is given, files that no
    version needs are removed after so many hours.

    Raise CommitConflict if another process compacts the table.
    """
    handle = tables.open_for_append(name)
    before = storage.file_actions(handle)
    rows = sum(action["num_records"] for action in before)
    is_done = len(before) < 2 or handle.transaction_version(_SORTED) == rows
    if not is_done and name in RECORDS:
        _sort_rows(tables, handle, name, rows)
    with tables.translate_errors(handle.table_uri):
        if not is_done and name not in RECORDS:
            handle.optimize.compact(writer_properties=storage.writer_properties())
        if not is_done:
            handle.create_checkpoint()
        if forget_after_hours is not None:
            handle.vacuum(
                retention_hours=forget_after_hours,
                dry_run=False,
                enforce_retention_duration=False,
                keep_versions=list(frozen),
            )
    return len(before) - len(storage.file_actions(handle))


def join_small_files(tables: ArchiveTables, name: str) -> None:
    """Join the small files of a table, if there are many of them.

    Raise CommitConflict if another process compacts the table.
    """
    handle = tables.open_for_append(name)
    small = [
        action for action in storage.file_actions(handle) if action["size_bytes"] < _JOINED_BYTES
    ]
    if len(small) >= _LOOSE_FILES:
        with tables.translate_errors(handle.table_uri):
            handle.optimize.compact(
                target_size=_JOINED_BYTES, writer_properties=storage.writer_properties()
            )


def _sort_rows(tables: ArchiveTables, handle: Any, name: str, rows: int) -> None:
    """Replace all files of a table by sorted ones, in one commit."""
    delta, dataset, time = load_deltalake(), tables.open_dataset(handle), time_column_name(name)
    order = f'date_trunc(\'month\', "{time}"), _operation, _subject, "{time}", _part, _row'

    def checked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = 0
        for batch in batches:
            found += batch.num_rows
            yield batch.cast(dataset.schema)
        if found != rows:  # nothing is committed
            raise ArchiveError(
                f"{handle.table_uri}: the statistics of its files are wrong, so it cannot be "
                "compacted; toolkit archive verify shows what is damaged"
            )

    with (
        tables.translate_errors(handle.table_uri),
        engines.open_duckdb(rows) as database,
        engines.use_system_memory(),
    ):
        unsorted = pa.RecordBatchReader.from_batches(dataset.schema, tables.scan_batches(dataset))
        batches = engines.read_batches(database.from_arrow(unsorted).order(order))
        delta.write_deltalake(
            handle,
            pa.RecordBatchReader.from_batches(dataset.schema, checked(batches)),
            mode="overwrite",
            commit_properties=delta.CommitProperties(
                # The rows stay the same: `Archive.verify` sums the digests of all commits.
                custom_metadata={"digest": storage.format_digest(0)},
                app_transactions=[delta.Transaction(_SORTED, rows)],
            ),
            writer_properties=storage.writer_properties(),
        )
