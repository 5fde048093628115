"""The Delta tables below one folder or address, and nothing else touches them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds

from toolkit.archive.layout import ANSWERS, FREEZES, PULLS, RECORDS, SCHEMAS
from toolkit.archive.needs import need
from toolkit.errors import ArchiveError

__all__ = ["Beaten", "Tables", "of_series", "sizes", "speaking", "writer"]

# Nothing is ever forgotten by itself: a frozen version must be there for good.
_CONFIGURATION: Final = {
    "delta.logRetentionDuration": "interval 36500 days",
    "delta.enableExpiredLogCleanup": "false",
}
# Without a bound a whole file is one group, and reading one account reads all of it.
_ROWS_IN_GROUP: Final = 20_000


class Beaten(ArchiveError):
    """Another writer committed the same run first."""


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

    def names(self) -> list[str]:
        """Give the tables that there are."""
        wanted = [*RECORDS, ANSWERS, PULLS, FREEZES]
        return [name for name in wanted if self._is_there(name)]

    def _is_there(self, name: str) -> bool:
        if self.versions is not None:
            return name in self.versions
        delta = need("deltalake")
        with speaking(self.location):
            return bool(delta.DeltaTable.is_deltatable(self.uri(name), self.options or None))

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
        if not self._is_there(name):
            return None
        delta = need("deltalake")
        version = None if self.versions is None else self.versions[name]
        with speaking(self.uri(name)):
            return delta.DeltaTable(
                self.uri(name), version=version, storage_options=self.options or None
            )

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
        delta = need("deltalake")
        with speaking(self.uri(name)):
            # Two processes may come here at once: the second finds the table of the first.
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
            custom_metadata=dict(notes or {}),
            app_transactions=[delta.Transaction(app, n) for app, n in (counts or {}).items()],
        )
        held = {one.name for one in handle.schema().fields}
        with speaking(handle.table_uri):
            delta.write_deltalake(
                handle,
                rows,
                mode="append",
                schema_mode=None if held >= set(rows.column_names) else "merge",
                commit_properties=commit,
                writer_properties=writer(),
            )

    def dataset(self, handle: Any) -> Any:
        """Give a table's files as an Arrow dataset, that prunes by their statistics."""
        version, found = self._datasets.get(handle.table_uri, (None, None))
        if version != handle.version():
            with speaking(handle.table_uri):
                found = handle.to_pyarrow_dataset()
            self._datasets[handle.table_uri] = (handle.version(), found)
        return found

    def batches(self, handle: Any, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read a table whole, some rows at a time."""
        with speaking(handle.table_uri):
            yield from self.dataset(handle).to_batches(columns=columns)

    def read(self, handle: Any, columns: list[str] | None = None, where: Any = None) -> pa.Table:
        """Read rows of a table."""
        dataset = self.dataset(handle)
        kept = [one for one in columns or dataset.schema.names if one in dataset.schema.names]
        with speaking(handle.table_uri):
            return dataset.to_table(columns=kept, filter=where)


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


@contextmanager
def speaking(where: str) -> Iterator[None]:
    """Turn the errors of the libraries below into ours, with the place and what to do."""
    exceptions = need("deltalake.exceptions")
    try:
        yield
    except exceptions.CommitFailedError as error:
        raise Beaten(str(error)) from error
    except (exceptions.DeltaError, pa.ArrowException, OSError) as error:
        raise ArchiveError(f"{where}: {_said(error)}") from error


def _said(error: Exception) -> str:
    words = " ".join(str(error).split())
    if "No space left" in words or "os error 28" in words or "File too large" in words:
        return f"there is no room to write ({words}); free some, and refresh again: nothing is lost"
    return f"{words}; toolkit archive verify says what is damaged"
