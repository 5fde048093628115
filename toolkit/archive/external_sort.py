"""Sort more rows than fit into memory, in temporary files.

The rows are divided among parts by their key as they come. Each part is then read and sorted in
memory. The keys that divide the parts come from a sample, so all parts have about the same size,
also if most rows belong to one account. The temporary files are in the folder of `tempfile`, which
the environment variable TMPDIR chooses.
"""

import bisect
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["ExternalSort", "KeySample", "use_system_memory"]

_SAMPLES_IN_PART: Final = 50

Key = tuple[Any, ...]


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
    """A sample of the keys of rows, evenly spread over the rows.

    Parameters
    ----------
    part_rows : int
        How many rows a part should have.
    """

    def __init__(self, part_rows: int) -> None:
        self.part_rows = part_rows
        self._step = max(1, part_rows // _SAMPLES_IN_PART)
        self._keys: list[Key] = []
        self._per_part = max(1, part_rows // self._step)
        self._seen = 0

    def add_keys(self, keys: pa.Table | pa.RecordBatch) -> None:
        """Add the key columns of rows, in the order of the key."""
        taken = keys.take(pa.array(np.arange(-self._seen % self._step, keys.num_rows, self._step)))
        self._seen += keys.num_rows
        self._keys += zip(*taken.to_pydict().values(), strict=True)

    def split_keys(self) -> list[Key]:
        """Return the first key of each part but the first."""
        return list(dict.fromkeys(sorted(self._keys)[self._per_part :: self._per_part]))


class ExternalSort:
    """Rows that are sorted by their key, part by part.

    Parameters
    ----------
    key : sequence of str
        The columns to sort by. None of them has missing values.
    sample : KeySample
        A sample of the first columns of the key. If all rows are one part, there are no temporary
        files.
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

        def key_at(position: int) -> Key:
            return tuple(column[position].as_py() for column in columns)

        # The parts ascend like the rows, so each has a slice of the rows.
        positions = range(rows.num_rows)
        ends = [bisect.bisect_left(positions, split, key=key_at) for split in self._splits]
        for part, (first, end) in enumerate(zip([0, *ends], [*ends, len(positions)], strict=True)):
            if first < end:
                self._write_slice(part, rows.slice(first, end - first))

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

    def _write_slice(self, part: int, rows: pa.Table) -> None:
        # A file is closed after each slice, because there may be more parts than open files.
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with (
            self._part_path(part).open("ab") as file,
            pa.ipc.new_stream(file, rows.schema, options=options) as stream,
        ):
            stream.write_table(rows)

    def _read_slices(self, part: int) -> Iterator[pa.Table]:
        with self._part_path(part).open("rb") as file:
            while file.peek(1):
                yield pa.ipc.open_stream(file).read_all()
