"""The Delta tables below one folder or address, and nothing else touches them."""

import hashlib
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pa_fs

from toolkit.archive.errors import Beaten, Unreached, need, speaking
from toolkit.archive.schemas import FREEZES, PULLS, SCHEMAS
from toolkit.errors import ArchiveError

__all__ = ["Tables", "digest_of", "identity", "of_series", "sizes", "writer", "written"]

# Nothing is ever forgotten by itself: a frozen version must be there for good.
_CONFIGURATION: Final = {
    "delta.logRetentionDuration": "interval 36500 days",
    "delta.enableExpiredLogCleanup": "false",
}
# Without a bound a whole file is one group, and reading one account reads all of it.
_ROWS_IN_GROUP: Final = 20_000
# On a disk reading ahead saves no time, and takes as much memory again as the rows.
_LOCAL: Final = {"fragment_readahead": 1, "batch_readahead": 2}


class Tables:
    """The tables of one archive.

    Parameters
    ----------
    location : str
        Folder, or address such as ``s3://bucket/prefix``.
    options : mapping, optional
        What the object store needs, as `deltalake` names it.
    versions : mapping of str to int, optional
        The versions to read; the present ones where not given. Nothing is written then.
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
        self._datasets: dict[str, tuple[int, Any]] = {}

    def speaking(self, where: str) -> AbstractContextManager[None]:
        """Turn the errors of the libraries below into ours, with the place and what to do."""
        return speaking(where, self.options)

    def names(self) -> list[str]:
        """Give the tables that there are."""
        return [name for name in SCHEMAS if self.handle(name) is not None]

    def pinned(self) -> "Tables":
        """Give the tables as they are now, whatever is refreshed meanwhile; freezes aside.

        A note that a range is complete follows its rows. The notes are looked at first, and so are
        never seen without their rows.

        Raises
        ------
        ArchiveError
            If one is damaged or cannot be reached.
        """
        if self.versions is not None:
            return self
        handles = {name: self.handle(name) for name in (PULLS, *sorted({*SCHEMAS} - {PULLS}))}
        versions = {
            name: handle.version()
            for name, handle in handles.items()
            if handle is not None and name != FREEZES
        }
        return Tables(self.location, self.options, versions)

    def any(self) -> bool:
        """Whether there are tables, damaged or not.

        Raises
        ------
        ArchiveError
            If the store cannot be reached.
        """
        for name in SCHEMAS:
            try:
                if self.handle(name) is not None:
                    return True
            except Unreached:
                raise
            except ArchiveError:
                return True
        return False

    def uri(self, name: str) -> str:
        """Give the address of a table."""
        return f"{self.location}/{name}"

    def handle(self, name: str) -> Any:
        """Open a table; None where there is none.

        Raises
        ------
        ArchiveError
            If it is damaged or cannot be reached.
        """
        if self.versions is not None and name not in self.versions:
            return None
        delta, missing = need("deltalake"), need("deltalake.exceptions").TableNotFoundError
        version = None if self.versions is None else self.versions[name]
        with self.speaking(self.uri(name)):
            try:
                return delta.DeltaTable(
                    self.uri(name), version=version, storage_options=self.options or None
                )
            except missing:
                return None

    def handle_to_write(self, name: str) -> Any:
        """Open a table, and make it where there is none.

        Raises
        ------
        ArchiveError
            If the archive is frozen, or the table cannot be made.
        """
        if self.versions is not None:
            raise ArchiveError(f"{self.location} is opened frozen: open it without a freeze")
        found = self.handle(name)
        if found is not None:
            return found
        try:
            return self._created(name)
        except Beaten:  # another process made it at the same moment
            return self.handle(name)

    def _created(self, name: str) -> Any:
        delta = need("deltalake")
        with self.speaking(self.uri(name)):
            return delta.DeltaTable.create(
                self.uri(name),
                schema=delta.Schema.from_arrow(SCHEMAS[name]),
                mode="ignore",
                configuration=_CONFIGURATION,
                storage_options=self.options or None,
            )

    def append(
        self,
        handle: Any,
        rows: pa.Table,
        *,
        counts: Mapping[str, int] | None = None,
        notes: Mapping[str, str] | None = None,
    ) -> None:
        """Append rows, with where the reading stands, in one commit.

        Parameters
        ----------
        handle : DeltaTable
            The handle that the state before was read through: only then does a commit that
            came between show.
        rows : pyarrow.Table
            The rows.
        counts : mapping of str to int, optional
            Run -> how many rows it has afterwards.
        notes : mapping of str to str, optional
            What to write into the log, for people.

        Raises
        ------
        Beaten
            If another writer went on with the same run since the handle was opened.
        ArchiveError
            If the rows cannot be written; then none of them are in the table.
        """
        delta = need("deltalake")
        commit = delta.CommitProperties(
            custom_metadata={**(notes or {}), "digest": written(digest_of(rows))},
            app_transactions=[delta.Transaction(app, n) for app, n in (counts or {}).items()],
        )
        # A table may be of a version that knew fewer columns, or more.
        same = {one.name for one in handle.schema().fields} == set(rows.column_names)
        with self.speaking(handle.table_uri):
            delta.write_deltalake(
                handle,
                rows,
                mode="append",
                schema_mode=None if same else "merge",
                commit_properties=commit,
                writer_properties=writer(),
            )

    def dataset(self, handle: Any) -> Any:
        """Give a table's files as an Arrow dataset, that prunes by their statistics."""
        version, found = self._datasets.get(handle.table_uri, (None, None))
        if version != handle.version():
            with self.speaking(handle.table_uri):
                found = handle.to_pyarrow_dataset(filesystem=_filesystem(handle.table_uri))
            self._datasets[handle.table_uri] = (handle.version(), found)
        return found

    def batches(self, handle: Any, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read a table whole, some rows at a time."""
        with self.speaking(handle.table_uri):
            yield from self.dataset(handle).to_batches(columns=columns)

    def read(self, handle: Any, columns: list[str] | None = None, where: Any = None) -> pa.Table:
        """Read rows of a table."""
        dataset = self.dataset(handle)
        kept = [one for one in columns or dataset.schema.names if one in dataset.schema.names]
        with self.speaking(handle.table_uri):
            ahead = {} if "://" in self.location else _LOCAL
            return dataset.to_table(columns=kept, filter=where, **ahead)

    def count(self, handle: Any, where: Any) -> int:
        """Count rows of a table."""
        with self.speaking(handle.table_uri):
            found: int = self.dataset(handle).count_rows(filter=where)
        return found


def _filesystem(uri: str) -> Any:
    """Let Arrow itself read a disk; None where deltalake has to reach a store.

    Its file system is made of Python objects: a thread of Arrow's that lets go of one while the
    interpreter ends aborts the process.
    """
    parts = urllib.parse.urlsplit(uri)
    if parts.scheme != "file":
        return None
    folder = urllib.request.url2pathname(parts.path)
    return pa_fs.SubTreeFileSystem(folder, pa_fs.LocalFileSystem())


def writer() -> Any:
    """Give the properties of every file that is written."""
    delta = need("deltalake")
    return delta.WriterProperties(
        compression="ZSTD", compression_level=3, max_row_group_size=_ROWS_IN_GROUP
    )


def sizes(handle: Any) -> list[int]:
    """Give the bytes of each file of a table."""
    found: list[int] = pa.table(handle.get_add_actions(flatten=True))["size_bytes"].to_pylist()
    return found


def of_series(operation: str, subject: str) -> Any:
    """Give the condition that rows are of a series."""
    return (ds.field("_operation") == operation) & (ds.field("_subject") == subject)


_IDENTITY: Final = ("_operation", "_subject", "_json")


def identity(columns: Sequence[str]) -> Sequence[str]:
    """Give the columns that make a row what it is: all, or what was asked and came."""
    return _IDENTITY if "_json" in columns else columns


def digest_of(rows: pa.Table | pa.RecordBatch) -> int:
    """Add up the hashes of rows.

    A column that a table gained later is missing in its older rows, and counts for nothing there.
    """
    columns = [rows.column(one) for one in identity(rows.schema.names)]
    each = zip(*(column.to_pylist() for column in columns), strict=True)
    if all(pa.types.is_string(one.type) and not one.null_count for one in columns):
        texts = map("\0".join, each)  # the same, and half of the time: these are the large tables
    else:
        texts = map(_joined, each)
    return sum(int.from_bytes(hashlib.sha256(one.encode()).digest(), "big") for one in texts)


def written(total: int) -> str:
    """Write a sum of digests."""
    return f"{total % 2**256:064x}"


def _joined(row: Iterable[Any]) -> str:
    values = (one for one in row if one is not None)
    return "\0".join(one.hex() if isinstance(one, bytes) else str(one) for one in values)
