"""The store: a SQLite file or database in memory, from which the service reads its answers.

A store is built from `Sources` and contains nothing else, so it can be deleted and built again. A
finished store never changes, so readers need no locks; concurrent readers use one connection each.
A store that is larger than the memory is built from parts, one after the other.
"""

import contextlib
import gc
import mmap
import os
import sqlite3
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
import zstandard

from toolkit.contract.fields import drop_beyond_fields
from toolkit.contract.source_tables import Sources
from toolkit.service import tables
from toolkit.service.row_blocks import BLOCK_ROWS, SEPARATOR

_PAGE_SIZE: Final = 16_384  # bytes; a few dozen rows each
_CHECKSUM: Final = slice(68, 72)  # SQLite's application id: bytes of the header that are free
_MAPPED: Final = 2**36  # bytes of a file that SQLite may map into memory
_ABOUT: Final = ("start_ms", "now_ms", "label", "simulated", "history")
_STREAMS: Final = ("fills", "funding", "ledger", "orders", "slippage")
"""Tables of `Sources` that can be read only once, row by row."""

ACCOUNT: Final = "account = (SELECT id FROM account WHERE address = ?)"
"""The SQL condition for the rows of an account, by its address."""


def json_array(texts: Iterable[bytes]) -> bytes:
    """Return a JSON array of finished texts."""
    return b"[%b]" % b",".join(texts)


class StoreDamaged(Exception):
    """A file is not a complete store."""


class Store:
    """The data from which a service answers.

    Parameters
    ----------
    path : Path or None
        The file. If None, `memory` contains the store.
    memory : sqlite3.Connection, optional
        The connection to a store without a file.

    Attributes
    ----------
    about : mapping
        Facts about the store: ``start_ms``, ``now_ms``, ``label``, ``simulated``, ``history``,
        ``strict`` (whether the store has the specification and nothing more), ``whole`` (whether
        it has everything that happened) and, if there is one, ``world``.
    replay : callable, optional
        Answers requests in place of the handlers, as served archives and recordings do; None for
        those that the handlers answer.
    """

    def __init__(self, path: Path | None, memory: sqlite3.Connection | None = None) -> None:
        self._path = path
        self._memory = memory
        self._lock = threading.RLock()
        self._idle: list[sqlite3.Connection] = []
        self._closed = threading.Event()
        self.replay: Callable[[Any], Any] | None = None
        self.about: Mapping[str, Any] = msgspec.json.decode(
            self.select_value("SELECT json FROM about WHERE name = 'about'")
        )

    def select_rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        with self._connection() as connection:
            return connection.execute(sql, values).fetchall()

    def iterate_rows(self, sql: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query; only those that the caller takes are read."""
        with self._connection() as connection:
            yield from connection.execute(sql, values)

    def select_value(self, sql: str, *values: Any) -> Any:
        """Return the first value of the first row of a query, or None."""
        with self._connection() as connection:
            row: tuple[Any, ...] | None = connection.execute(sql, values).fetchone()
        return None if row is None else row[0]

    def row_texts(self, kind: str, rows: Sequence[int]) -> list[bytes]:
        """Return the texts of rows of a table, in any order; each block of rows is read once."""
        sql = f"SELECT data FROM {kind}_text WHERE block = ?"
        decompress = zstandard.ZstdDecompressor().decompress
        blocks: dict[int, list[bytes]] = {}
        texts = []
        for row in rows:
            number, place = divmod(row, BLOCK_ROWS)
            if number not in blocks:
                blocks[number] = decompress(self.select_value(sql, number)).split(SEPARATOR)
            texts.append(blocks[number][place])
        return texts

    def select_texts(self, kind: str, sql: str, *values: Any) -> list[bytes]:
        """Return the texts of the rows whose numbers a query selects."""
        return self.row_texts(kind, [row for (row,) in self.select_rows(sql, *values)])

    def document(self, kind: str, key: str = "") -> bytes | None:
        """Return a document, or None."""
        sql = "SELECT json FROM document WHERE kind = ? AND key = ?"
        text: bytes | None = self.select_value(sql, kind, key)
        return text

    def compressed_document(self, kind: str, key: str = "") -> bytes | None:
        """Return the content of a document that is stored compressed, or None."""
        data = self.document(kind, key)
        return None if data is None else zstandard.ZstdDecompressor().decompress(data)

    def document_keys(self, kind: str) -> list[str]:
        """Return the keys of the documents of a kind."""
        return [key for (key,) in self.select_rows("SELECT key FROM document WHERE kind = ?", kind)]

    def close(self) -> None:
        """Close every connection. The store cannot be read afterwards."""
        self._closed.set()
        with self._lock:
            if self._memory is not None:
                self._memory.close()
            while self._idle:
                self._idle.pop().close()

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Borrow an idle connection, or open another one."""
        if self._closed.is_set():
            raise ValueError("the store is closed")
        if self._path is None:
            assert self._memory is not None
            with self._lock:
                yield self._memory
            return
        # A connection belongs to a reader, not to a thread: servers start and end threads.
        try:
            connection = self._idle.pop()
        except IndexError:
            # `immutable`: nobody writes to a finished store, so SQLite needs no locks, no journal.
            address = f"{self._path.absolute().as_uri()}?mode=ro&immutable=1"
            connection = sqlite3.connect(address, uri=True, check_same_thread=False)
            connection.execute(f"PRAGMA mmap_size = {_MAPPED}")
        try:
            yield connection
        finally:
            self._idle.append(connection)
            if self._closed.is_set():
                self.close()


def build_store(
    sources: Sources | Iterable[Sources],
    path: Path | None = None,
    *,
    world: Any = None,
    strict: bool = False,
) -> Store:
    """Build a store from tables.

    Parameters
    ----------
    sources : Sources or iterable of Sources
        The tables. Parts are read one by one, and only one is in memory. All rows of an account
        must be in one part. Times and label are those of the last part.
    path : Path, optional
        The file to write. It appears only when it is complete. Without it, the store is in
        memory.
    world : object, optional
        A summary of the store, for ``about["world"]``; or a function that returns one after all
        parts have been read.
    strict : bool, default False
        Whether the store has no fields and no operations beyond the specification.

    Returns
    -------
    Store

    Raises
    ------
    ValueError
        If there are no parts, an account has rows in two parts, or fills are not in the order of
        execution.
    OSError
        If the file cannot be written, for example because the disk is full.
    """
    parts = [sources] if isinstance(sources, Sources) else sources
    if path is None:
        memory = sqlite3.connect(":memory:", check_same_thread=False)
        _write_store(memory, parts, world, strict)
        return Store(None, memory)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, unfinished = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        with contextlib.closing(sqlite3.connect(unfinished)) as connection:
            _write_store(connection, parts, world, strict)
        with open(unfinished, "r+b") as file:
            _, checksum = _read_checksums(file)
            file.seek(_CHECKSUM.start)
            file.write(checksum)
        Path(unfinished).replace(path)
    except sqlite3.OperationalError as error:
        raise OSError(f"{path} cannot be written: {error}") from error
    finally:
        Path(unfinished).unlink(missing_ok=True)
    return open_store(path)


def open_store(path: Path) -> Store:
    """Open the file of a store. All bytes are compared with the checksum in its header.

    Raises
    ------
    StoreDamaged
        If the file is missing, incomplete or changed, is not a store, or has other tables than
        this code reads.
    """
    try:
        with path.open("rb") as file:
            written, computed = _read_checksums(file)
        if written != computed:
            raise StoreDamaged(f"{path} is damaged: its checksum does not match")
        return Store(path)
    except (sqlite3.Error, OSError, ValueError) as error:
        raise StoreDamaged(f"{path} is not a store: {error}") from error


def _read_checksums(file: BinaryIO) -> tuple[bytes, bytes]:
    """Return the checksum in the header of a file, and the CRC-32 of all its other bytes.

    The store is a cache and no secret: the checksum finds accidents, and no forgery.
    """
    with (
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        memoryview(content) as data,
        data[: _CHECKSUM.start] as before,
        data[_CHECKSUM.stop :] as after,
    ):
        checksum = zlib.crc32(after, zlib.crc32(before))
        return content[_CHECKSUM], checksum.to_bytes(4, "big")


def _write_store(
    connection: sqlite3.Connection,
    parts: Iterable[Sources],
    world: Any | Callable[[], Any],
    strict: bool,
) -> None:
    # An unfinished store is deleted, so the file need not survive a crash.
    for setting in (f"page_size = {_PAGE_SIZE}", "journal_mode = OFF", "synchronous = OFF"):
        connection.execute(f"PRAGMA {setting}")
    connection.executescript(tables.CREATE)
    about: dict[str, Any] = {}
    was_collecting = gc.isenabled()
    for part in parts:
        gc.disable()  # it would scan millions of records, which have no cycles
        try:
            if strict:
                for name in (field.name for field in fields(part)):
                    old: Any = getattr(part, name)
                    is_stream = name in _STREAMS
                    new: Any = (
                        map(drop_beyond_fields, old) if is_stream else drop_beyond_fields(old)
                    )
                    part = replace(part, **{name: new})
                    del old, new
            tables.fill_tables(connection, part, strict=strict)
        finally:
            if was_collecting:
                gc.enable()
        about = {name: getattr(part, name) for name in _ABOUT}
        about |= {"strict": strict, "whole": not part.history}
        connection.commit()
        del part  # it must not be in memory while the next one is made
    if not about:
        raise ValueError("there are no sources to build a store from")
    connection.executescript(tables.INDEX)
    about["world"] = world() if callable(world) else world
    connection.execute("INSERT INTO about VALUES ('about', ?)", (msgspec.json.encode(about),))
    connection.commit()
