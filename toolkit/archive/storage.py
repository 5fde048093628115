"""Storage of the archive: the Delta tables in one folder or object store, and their freezes.

A freeze is a manifest with the version and the digest of each table. Its id is the hash of the
manifest. Compaction never removes a version that a freeze names.
"""

import contextlib
import hashlib
import json
import os
import re
import urllib.parse
import urllib.request
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pa_fs
import pyarrow.parquet as pq

from toolkit.archive import engines, schemas
from toolkit.archive.errors import load_deltalake, permission_error, translate_errors
from toolkit.archive.schemas import ANSWERS, FREEZES, PULLS, SCHEMAS, Series
from toolkit.errors import ArchiveError, CommitConflict, StoreUnreachable
from toolkit.installation import package_version

_PERCENT_ESCAPE: Final = re.compile(r"%[0-9a-fA-F]{2}")
_ADDRESS: Final = re.compile(r"(?P<scheme>[a-z0-9+]+)://[^@?#]+")
_SCHEMES: Final = ("s3", "s3a", "gs", "az", "abfs", "abfss", "file")

# Delta's log never expires: a frozen version has to stay readable. A table is opened from its last
# checkpoint and the commits after it, so many commits in between would take time.
_CONFIGURATION: Final = {
    "delta.checkpointInterval": "25",
    "delta.logRetentionDuration": "interval 36500 days",
    "delta.enableExpiredLogCleanup": "false",
}
_STATISTICS: Final = "delta.dataSkippingStatsColumns"
_SKIPPING_COLUMNS: Final = ("_operation", "_subject", "_part", "_fetched", "until", "id")
# Without a limit a file is one row group, and reading one account would read all of the file.
ROWS_IN_GROUP: Final = 20_000
"""Rows per row group of a file."""
# On a local disk more read-ahead saves no time and doubles the memory of a read. Arrow reads
# batch_readahead * batch_size rows ahead; its own batches have the rows of six row groups.
_LOCAL_READ_AHEAD: Final = {
    "fragment_readahead": 1,
    "batch_readahead": 1,
    "batch_size": ROWS_IN_GROUP,
}
_ROW_IDENTITY: Final = ("_operation", "_subject", "_json")
_SUBJECTS_AT_MOST: Final = 1_000_000  # that are kept in memory, 50 bytes each
_FILES_AT_ONCE: Final = 8
_SORTED: Final = "sorted rows"  # the counter of a table: how many of its rows are in order
_JOINED_BYTES: Final = 16 * 2**20  # about the largest file that is joined with others
MAX_TRIES: Final = 50  # if other processes append at the same moment

Result = TypeVar("Result")


def check_location(location: str) -> None:
    """Raise an ArchiveError if an archive cannot be in this folder or at this address."""
    if "://" in location:
        if not (address := _ADDRESS.fullmatch(location)):
            raise ArchiveError(
                "an archive's address is scheme://bucket/prefix without anything else. Put "
                "credentials into the environment (AWS_ACCESS_KEY_ID, ...) or into storage_options"
            )
        if address["scheme"] not in _SCHEMES:
            known = ", ".join(f"{scheme}://" for scheme in _SCHEMES)
            raise ArchiveError(f"{location}: an archive's address begins with one of {known}")
        return
    if not location:
        raise ArchiveError("the path of the archive is empty: pass its folder or its address")
    if escape := _PERCENT_ESCAPE.search(str(Path(location).absolute())):
        raise ArchiveError(
            f"{location}: an archive cannot be in this folder, because {escape[0]} in its name "
            "would be decoded as a percent escape. Rename the folder"
        )
    if Path(location).exists() and not Path(location).is_dir():
        raise ArchiveError(f"{location} is a file: an archive is a folder")


class ArchiveTables:
    """The Delta tables of one archive.

    Parameters
    ----------
    location : str
        A folder, or an address such as ``s3://bucket/prefix``.
    options : mapping, optional
        Options of the object store, by their names in `deltalake`.
    versions : mapping of str to int, optional
        Table -> the version to read. By default the newest versions are read. Tables with
        pinned versions cannot be written.
    """

    def __init__(
        self,
        location: str,
        options: Mapping[str, str] | None = None,
        versions: Mapping[str, int] | None = None,
    ) -> None:
        self.location = location.rstrip("/")
        self.options = dict(options or {})
        self.versions = versions
        self.translate_errors = partial(translate_errors, options=self.options)
        self._read_ahead = {} if "://" in location else _LOCAL_READ_AHEAD
        self._datasets: dict[str, tuple[Any, ...]] = {}  # of a table: what was asked, and the files
        self._subjects: dict[str, pa.Array] = {}  # path of a file, which never changes -> subjects

    def table_names(self) -> list[str]:
        """Return the names of the tables that exist."""
        return [name for name in SCHEMAS if self.open_table(name) is not None]

    def pin_versions(self) -> "ArchiveTables":
        """Return the same tables at their present versions, without the table of freezes.

        Rows that are appended later do not show in them.
        """
        if self.versions is not None:
            return self
        # The refresh log is opened first. Each of its entries is written after the rows it
        # counts, so the pinned rows are at least those that the pinned log counts.
        names = [PULLS, *sorted({*SCHEMAS} - {PULLS, FREEZES})]
        versions = {name: found.version() for name in names if (found := self.open_table(name))}
        return ArchiveTables(self.location, self.options, versions)

    def has_tables(self) -> bool:
        """Return whether there is a table, damaged or not."""
        has_table = partial(
            load_deltalake().DeltaTable.is_deltatable, storage_options=self.options or None
        )
        try:
            with self.translate_errors(self.location):
                return any(map(has_table, map(self.table_uri, SCHEMAS)))
        except StoreUnreachable:
            raise
        except ArchiveError:  # a file or an unreadable folder in the place of a table
            return True

    def table_uri(self, name: str) -> str:
        """Return the address of a table."""
        return f"{self.location}/{name}"

    def open_table(self, name: str) -> Any:
        """Open a table. Return None if it does not exist.

        Raise an ArchiveError if it is damaged or cannot be reached.
        """
        if self.versions is not None and name not in self.versions:
            return None
        delta = load_deltalake()
        version = None if self.versions is None else self.versions[name]
        with self.translate_errors(self.table_uri(name)):
            try:
                return delta.DeltaTable(
                    self.table_uri(name), version=version, storage_options=self.options or None
                )
            except delta.exceptions.TableNotFoundError:
                return None

    def check_writable(self) -> None:
        """Raise an ArchiveError if the archive is opened frozen, or its folder is read-only."""
        if self.versions is not None:
            raise ArchiveError(
                f"{self.location} is opened frozen, and a freeze never changes. To write, open it "
                f"without the freeze: tk.archive.open({self.location!r})"
            )
        if Path(self.location).is_dir() and not os.access(self.location, os.W_OK):
            raise permission_error(self.location)

    def open_for_append(self, name: str) -> Any:
        """Open a table, and create it if it does not exist.

        Raise an ArchiveError if the archive is opened frozen, or the table cannot be created.
        """
        self.check_writable()
        existing = self.open_table(name)
        if existing is not None:
            return existing
        # Readers skip files by these columns. Delta's log repeats the statistics of each file, so
        # those of all columns would be most of it.
        counted = [
            column.name
            for column in SCHEMAS[name]
            if column.name in _SKIPPING_COLUMNS or pa.types.is_timestamp(column.type)
        ]
        delta = load_deltalake()
        try:
            with self.translate_errors(self.table_uri(name)):
                return delta.DeltaTable.create(
                    self.table_uri(name),
                    schema=delta.Schema.from_arrow(SCHEMAS[name]),
                    mode="ignore",
                    configuration={**_CONFIGURATION, _STATISTICS: ",".join(counted)},
                    storage_options=self.options or None,
                )
        except CommitConflict:  # another process created it at the same moment
            return self.open_table(name)

    def append_rows(
        self,
        handle: Any,
        rows: pa.Table,
        *,
        counts: Mapping[str, int] | None = None,
        notes: Mapping[str, str] | None = None,
    ) -> None:
        """Append rows and the new lengths of their runs in one commit.

        Delta compares the handle, through which the previous state was read, with its own log. It
        so detects a commit that came in between. `counts` maps the name of a counter to the
        number of rows after this commit. `notes` are texts for people, for the commit's entry in
        Delta's log.

        Raises
        ------
        CommitConflict
            If another process appended to the same run after the handle was opened.
        ArchiveError
            If the rows cannot be written. The table then has none of them.
        """
        delta = load_deltalake()
        facts = {"digest": format_digest(digest_rows(rows)), "toolkit": package_version()}
        commit = delta.CommitProperties(
            custom_metadata={**(notes or {}), **facts},
            max_commit_retries=MAX_TRIES,
            app_transactions=[delta.Transaction(name, n) for name, n in (counts or {}).items()],
        )
        # The table may have been created by a version that knew other columns.
        same_columns = {field.name for field in handle.schema().fields} == set(rows.column_names)
        with self.translate_errors(handle.table_uri):
            delta.write_deltalake(
                handle,
                rows,
                mode="append",
                schema_mode=None if same_columns else "merge",
                commit_properties=commit,
                writer_properties=writer_properties(),
            )

    def read_counters(self, handle: Any) -> Mapping[str, int] | None:
        """Return all counters of a table: name -> value; None if they cannot be read.

        They are read from the last checkpoint of the table's log and the entries after it. This is
        faster than one call of deltalake's `transaction_version`, which reads one counter.
        """
        files = _local_filesystem(handle.table_uri) or handle.to_pyarrow_dataset().filesystem
        last, first, found = "_delta_log/_last_checkpoint", 0, dict[str, int]()
        # A checkpoint may be of several files, or later than the version.
        with contextlib.suppress(OSError, ValueError, KeyError, pa.ArrowException):
            if files.get_file_info([last])[0].type != pa_fs.FileType.NotFound:
                with files.open_input_stream(last) as stream:
                    first = json.loads(stream.read())["version"] + 1
                if first > handle.version() + 1:
                    return None
                with files.open_input_file(
                    f"_delta_log/{first - 1:020}.checkpoint.parquet"
                ) as file:
                    rows = pq.ParquetFile(file).read(columns=["txn.appId", "txn.version"])
                cells = (rows.flatten()[f"txn.{name}"].to_pylist() for name in ("appId", "version"))
                found = {name: count for name, count in zip(*cells, strict=True) if name}
            for number in range(first, handle.version() + 1):
                with files.open_input_stream(f"_delta_log/{number:020}.json") as entry:
                    for line in entry.read().splitlines():
                        if line.startswith(b'{"txn"'):
                            counter = json.loads(line)["txn"]
                            found[counter["appId"]] = counter["version"]
            return found
        return None

    def open_dataset(self, handle: Any, series: Series | None = None) -> Any:
        """Return the files of a table, or those that have rows of a series, as a dataset."""
        uri, state = handle.table_uri, (handle.version(), series and series.name)
        if self._datasets.get(uri, (None,))[0] != state:
            pruning = series and [
                ("_operation", "=", series.operation.type),
                ("_subject", "=", series.subject),
            ]
            with self.translate_errors(uri):
                dataset = handle.to_pyarrow_dataset(
                    filesystem=_local_filesystem(uri), file_pruning_predicate=pruning
                )
                if series is not None and len(paths := dataset.files) > 1:
                    # The statistics of a file with many accounts do not show which accounts it has.
                    # So one column of all files is read, once; and then all columns of the few
                    # files with rows.
                    unknown = [path for path in paths if path not in self._subjects]
                    with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
                        read = pool.map(partial(_read_subjects, dataset.filesystem), unknown)
                        found = self._subjects | dict(zip(unknown, read, strict=True))
                    is_small = sum(map(len, found.values())) <= _SUBJECTS_AT_MOST
                    self._subjects = found if is_small else {}
                    wanted = pa.scalar(series.subject)
                    kept = {path for path in paths if found[path].index(wanted).as_py() >= 0}
                    dataset = keep_files(dataset, kept)
            self._datasets[uri] = (state, dataset)
        return self._datasets[uri][1]

    def scan_batches(
        self, dataset: Any, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a dataset file by file, so that few files are in memory."""
        for fragment in dataset.get_fragments():
            # A new fragment: it would keep the footer of its file.
            file = dataset.format.make_fragment(fragment.path, dataset.filesystem)
            yield from file.to_batches(dataset.schema, columns=columns, **self._read_ahead)

    def read_rows(
        self,
        table: Any,
        columns: Sequence[str] | None = None,
        condition: Any = None,
        series: Series | None = None,
    ) -> pa.Table:
        """Return the rows that meet a condition, with those columns that the table has.

        The table is a handle or a name. If no table of this name exists, it has no rows. With a
        series, only its rows are returned, and only files that may have them are opened.
        """
        handle = self.open_table(table) if isinstance(table, str) else table
        if handle is None:
            empty = SCHEMAS[table].empty_table()
            return empty.select(columns or empty.column_names)
        dataset = self.open_dataset(handle, series)
        if series is not None:
            condition = series.condition if condition is None else series.condition & condition
        names = [name for name in columns or dataset.schema.names if name in dataset.schema.names]
        with self.translate_errors(handle.table_uri):
            return dataset.to_table(columns=names, filter=condition, **self._read_ahead)


def writer_properties() -> Any:
    """Return how the files of tables are written."""
    delta = load_deltalake()
    text = delta.ColumnProperties(dictionary_enabled=False)
    return delta.WriterProperties(
        compression="ZSTD",
        compression_level=1,  # as small as level 3 for such rows, and faster
        max_row_group_size=ROWS_IN_GROUP,
        column_properties={"_json": text, "_body": text},
    )


def _read_subjects(filesystem: Any, path: str) -> pa.Array:
    """Return the subjects of the rows of a file, each once."""
    # As a dictionary, so that no text is made for each row.
    form = ds.ParquetFileFormat(dictionary_columns=["_subject"])
    column = form.make_fragment(path, filesystem).to_table(columns=["_subject"])["_subject"]
    return pc.unique(column).cast(pa.string())


def keep_files(dataset: Any, paths: Collection[str]) -> Any:
    """Return some files of a dataset as a dataset."""
    kept = [file for file in dataset.get_fragments() if file.path in paths]
    return ds.FileSystemDataset(kept, dataset.schema, dataset.format, dataset.filesystem)


def retry_append(name: str, append: Callable[[], Result]) -> Result:
    """Append until no other process commits in between; `name` is for the message of the error."""
    for _ in range(MAX_TRIES):
        with contextlib.suppress(CommitConflict):
            return append()
    raise ArchiveError(
        f"{name}: other processes keep writing to the archive. Try again when they are done"
    )


def _local_filesystem(uri: str) -> Any:
    """Return Arrow's own file system for a local table, None for an object store.

    The file system of deltalake consists of Python objects. If an Arrow thread releases one of
    them while the interpreter exits, the process aborts.
    """
    parts = urllib.parse.urlsplit(uri)
    if parts.scheme != "file":
        return None
    folder = urllib.request.url2pathname(parts.path)
    return pa_fs.SubTreeFileSystem(folder, pa_fs.LocalFileSystem())


def file_actions(handle: Any) -> list[dict[str, Any]]:
    """Return the files of a table with path, size and statistics, from the table's log."""
    actions: list[dict[str, Any]] = pa.table(handle.get_add_actions(flatten=True)).to_pylist()
    return actions


def digest_rows(rows: pa.Table | pa.RecordBatch) -> int:
    """Return the sum of the hashes of rows.

    The sum does not depend on the order of the rows or on their files, and sums of parts can be
    added. Missing values do not count: a column that was added later is missing in older rows.
    """
    columns = [rows.column(name) for name in digest_columns(rows.schema.names)]
    if all(pa.types.is_string(column.type) and not column.null_count for column in columns):
        joined = pc.binary_join_element_wise(*columns, "\0")  # as below, but faster
        texts: Iterable[bytes] = joined.cast(pa.binary()).to_pylist()
    else:
        cells = zip(*(column.to_pylist() for column in columns), strict=True)
        texts = (
            "\0".join(
                cell.hex() if isinstance(cell, bytes) else str(cell)
                for cell in row
                if cell is not None
            ).encode()
            for row in cells
        )
    digests = b"".join([hashlib.sha256(text).digest() for text in texts])
    # Eight numbers of 32 bits make a hash. Their sums over the rows fit into 64 bits.
    words = np.frombuffer(digests, ">u4").reshape(-1, 8).sum(axis=0, dtype=np.uint64)
    return sum(int(word) << 32 * place for place, word in enumerate(words[::-1]))


def format_digest(total: int) -> str:
    """Return a sum of hashes as 64 hexadecimal digits."""
    return f"{total % 2**256:064x}"


def digest_columns(columns: Sequence[str]) -> Sequence[str]:
    """Return the columns that count in a digest: all, or the text of the wire and its series.

    Their order is that of this version. In a table of an older version, newer columns come last.
    """
    if "_json" in columns:
        return _ROW_IDENTITY
    names = max((s.names for s in SCHEMAS.values()), key=lambda names: len({*names} & {*columns}))
    known = [name for name in names if name in columns]
    return [*known, *(name for name in columns if name not in known)]


def table_digest(
    tables: ArchiveTables, name: str, progress: Callable[[int], object] | None = None
) -> str:
    """Return the digest of a table's rows. It does not depend on their order or their files."""
    handle = tables.open_table(name)
    columns = digest_columns([field.name for field in handle.schema().fields])
    total = 0
    with tables.translate_errors(handle.table_uri):
        for batch in tables.scan_batches(tables.open_dataset(handle), list(columns)):
            total += digest_rows(batch)
            if progress is not None:
                progress(batch.num_rows)
    return format_digest(total)


def make_freeze(tables: ArchiveTables, progress: Callable[[int], object] | None = None) -> str:
    """Store the versions and digests of all tables, and return the id of the freeze.

    The id is a hash of the manifest, so freezing the same version twice gives the same id. An
    archive without rows cannot be frozen.
    """
    made_ms, pinned = archive_present_ms(tables), tables.pin_versions()
    if not pinned.versions:
        raise ArchiveError(
            f"{tables.location} is empty, so it cannot be frozen. Refresh the archive first"
        )
    manifest = {
        name: {"version": version, "digest": table_digest(pinned, name, progress)}
        for name, version in pinned.versions.items()
    }
    text = json.dumps({"tables": manifest}, sort_keys=True)
    freeze_id = f"f{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    row = {"id": freeze_id, "made_ms": made_ms, "manifest": text}

    def append() -> None:
        handle = tables.open_for_append(FREEZES)
        if freeze_id not in read_freezes(tables):
            rows = pa.Table.from_pylist([row], schema=SCHEMAS[FREEZES])
            # The counter makes Delta refuse a second process that makes the same freeze.
            tables.append_rows(handle, rows, counts={f"freeze {freeze_id}": 1})

    retry_append(freeze_id, append)
    return freeze_id


def read_freezes(tables: ArchiveTables) -> dict[str, Mapping[str, Any]]:
    """Return the freezes: id -> table -> its ``version`` and ``digest``."""
    rows = tables.read_rows(FREEZES, ["id", "manifest"]).to_pylist()
    return {row["id"]: json.loads(row["manifest"])["tables"] for row in rows}


def archive_present_ms(tables: ArchiveTables, log: Any = None) -> int:
    """Return the archive's present: the latest time up to which anything was refreshed.

    Pass the handle of the refresh log if it is open.
    """
    latest = [0]
    for name, column in ((PULLS, "until"), (ANSWERS, "_fetched")):
        handle = log if name == PULLS and log is not None else tables.open_table(name)
        ends: list[Any] = (
            [file.get(f"max.{column}") for file in file_actions(handle)] if handle else []
        )
        if None in ends:  # files without statistics
            ends = [pc.max(tables.read_rows(handle, [column])[column]).as_py() or 0]
        latest += ends
    return max(latest)


def compact_table(
    tables: ArchiveTables, name: str, frozen: Sequence[int], forget_after_hours: int | None
) -> int:
    """Sort a table of rows, or join the files of another one; return how many fewer files it has.

    The files of the versions in `frozen` stay. If `forget_after_hours` is given, files that no
    version needs are removed after so many hours.

    Raise CommitConflict if another process compacts the table.
    """
    handle = tables.open_for_append(name)
    before = file_actions(handle)
    rows = sum(action["num_records"] for action in before)
    is_done = len(before) < 2 or handle.transaction_version(_SORTED) == rows
    if not is_done and name in schemas.RECORDS:
        _sort_rows(tables, handle, name, rows)
    with tables.translate_errors(handle.table_uri):
        if not is_done and name not in schemas.RECORDS:
            handle.optimize.compact(writer_properties=writer_properties())
        if not is_done:
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
    """Join the small files of a table.

    Raise CommitConflict if another process compacts the table.
    """
    handle = tables.open_for_append(name)
    with tables.translate_errors(handle.table_uri):
        handle.optimize.compact(target_size=_JOINED_BYTES, writer_properties=writer_properties())


def _sort_rows(tables: ArchiveTables, handle: Any, name: str, rows: int) -> None:
    """Replace all files of a table by sorted ones, in one commit.

    The rows are ordered by month, operation, subject and place in their history. The rows of one
    account are then next to each other within a month, and readers skip all other rows by the
    statistics of files and row groups. DuckDB sorts them, in temporary files if they do not fit
    into memory; the environment variable TMPDIR chooses the folder. Rows can be appended meanwhile:
    the commit only removes files that it has rewritten.
    """
    delta, dataset, time = (
        load_deltalake(),
        tables.open_dataset(handle),
        schemas.time_column_name(name),
    )
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
                custom_metadata={"digest": format_digest(0)},
                app_transactions=[delta.Transaction(_SORTED, rows)],
            ),
            writer_properties=writer_properties(),
        )
