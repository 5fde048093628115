"""The store: a disposable SQLite index from which every page is one range of rows.

It is rebuilt from `Sources`; nothing lives only there. Once built it never changes, so that a
file needs no locks: all who read at once have a connection each. More than memory holds is built
from parts, one after the other.
"""

import contextlib
import gc
import os
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import zstandard

from toolkit.contract.sources import Sources
from toolkit.service.strict import strict_sources
from toolkit.service.tables import create_tables, fill_tables, index_tables, is_current
from toolkit.service.texts import read

__all__ = ["Store", "StoreDamaged", "array", "build", "open_store"]

_PAGE_SIZE: Final = 16_384  # bytes; a few dozen rows each
_MAPPED: Final = 2**36  # bytes of a file that may be read without copying
_ABOUT: Final = ("start_ms", "now_ms", "label", "simulated", "history")


def array(texts: Iterable[bytes]) -> bytes:
    """Write a JSON array of finished texts."""
    parts = list(texts)
    if not parts:
        return b"[]"
    # The brackets go to the first and the last text, so that a page is copied once.
    parts[0] = b"[" + parts[0]
    parts[-1] += b"]"
    return b",".join(parts)


class StoreDamaged(Exception):
    """A file that is no complete store."""


class Store:
    """Everything a service can answer from.

    Parameters
    ----------
    path : Path or None
        The file; None keeps everything in `memory`.
    memory : sqlite3.Connection, optional
        The connection that holds a store without a file.

    Attributes
    ----------
    about : mapping
        What is in it: ``start_ms``, ``now_ms``, ``label``, ``simulated``, ``history``,
        ``partial`` (whether it knows what it does not hold), ``strict`` (whether it answers the
        specification and nothing more), ``whole`` (whether it holds everything that happened) and,
        where it was given, ``world``.
    """

    def __init__(self, path: Path | None, memory: sqlite3.Connection | None = None) -> None:
        self._path = path
        self._memory = memory
        self._lock = threading.RLock()
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        self.about: Mapping[str, Any] = msgspec.json.decode(
            self.value("SELECT json FROM about WHERE name = 'about'") or b"null"
        )

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Give all rows of a query."""
        with self._reading() as connection:
            return connection.execute(sql, values).fetchall()

    def row(self, sql: str, *values: Any) -> tuple[Any, ...] | None:
        """Give the first row of a query, or None."""
        with self._reading() as connection:
            found: tuple[Any, ...] | None = connection.execute(sql, values).fetchone()
            return found

    def each(self, sql: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """Give the rows of a query one by one, as many as are taken."""
        with self._reading() as connection:
            yield from connection.execute(sql, values)

    def value(self, sql: str, *values: Any) -> Any:
        """Give the first value of the first row of a query, or None."""
        found = self.row(sql, *values)
        return None if found is None else found[0]

    def texts(self, kind: str, rows: Sequence[int]) -> list[bytes]:
        """Give the texts of rows of a table."""
        sql = f"SELECT data FROM {kind}_text WHERE block = ?"
        return read(lambda block: self.value(sql, block), rows)

    def array(self, kind: str, sql: str, *values: Any) -> bytes:
        """Give a JSON array of the texts of the rows whose numbers a query gives."""
        return array(self.texts(kind, [row for (row,) in self.rows(sql, *values)]))

    def document(self, kind: str, key: str = "") -> bytes | None:
        """Give a text that is served whole, or None."""
        text: bytes | None = self.value(
            "SELECT json FROM document WHERE kind = ? AND key = ?", kind, key
        )
        return text

    def packed(self, kind: str, key: str = "") -> bytes | None:
        """Return a text that is kept compressed, or None."""
        data = self.document(kind, key)
        return None if data is None else zstandard.ZstdDecompressor().decompress(data)

    def keys(self, kind: str) -> list[str]:
        """Give the keys of the texts of a kind that are served whole."""
        return [key for (key,) in self.rows("SELECT key FROM document WHERE kind = ?", kind)]

    def account(self, address: str) -> int | None:
        """Give the number of an account, None if nothing is known of it."""
        number: int | None = self.value("SELECT id FROM account WHERE address = ?", address)
        return number

    def close(self) -> None:
        """Close every connection; nothing can be read afterwards."""
        self._closed = True
        with self._lock:
            if self._memory is not None:
                self._memory.close()
            while self._idle:
                self._idle.pop().close()

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        if self._closed:
            raise ValueError("the store is closed")
        if self._path is None:
            assert self._memory is not None
            with self._lock:
                yield self._memory
            return
        # A connection belongs to who reads, not to a thread: servers' threads come and go.
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = _open(self._path)
        try:
            yield connection
        finally:
            self._take_back(connection)

    def _take_back(self, connection: sqlite3.Connection) -> None:
        self._idle.append(connection)
        if self._closed:
            self.close()


def build(
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
        What it shall hold. Parts are taken one by one, and none is held longer than it takes; an
        account's rows must be in one part, and times and label are those of the last.
    path : Path, optional
        The file to write; it appears only when it is complete. Without one the store is in
        memory.
    world : object, optional
        A summary of what is in it, to be had back as ``about["world"]``; or a function that gives
        one when all parts have been taken.
    strict : bool, default False
        Whether it holds nothing beyond the specification: neither fields nor operations.

    Returns
    -------
    Store

    Raises
    ------
    ValueError
        If there are no parts, an account has rows in two of them, or fills are not in the order
        of execution.
    OSError
        If the file cannot be written: no such folder, no right, no room.
    """
    parts = [sources] if isinstance(sources, Sources) else sources
    if path is None:
        memory = sqlite3.connect(":memory:", check_same_thread=False)
        _fill(memory, parts, world, strict)
        return Store(None, memory)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, unfinished = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        with contextlib.closing(sqlite3.connect(unfinished)) as connection:
            _fill(connection, parts, world, strict)
        Path(unfinished).replace(path)
    except sqlite3.OperationalError as error:
        Path(unfinished).unlink(missing_ok=True)
        raise OSError(f"{path} cannot be written: {error}") from error
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise
    return open_store(path)


def open_store(path: Path) -> Store:
    """Open the file of a store.

    Raises
    ------
    StoreDamaged
        If it is not there, was cut, is something else, or has other tables than this code reads.
    """
    try:
        with contextlib.closing(_open(path)) as connection:
            pages, size = (
                connection.execute(f"PRAGMA {fact}").fetchone()[0]
                for fact in ("page_count", "page_size")
            )
            whole, current = pages * size == path.stat().st_size, is_current(connection)
        if not whole:
            raise StoreDamaged(f"{path} was cut")
        if not current:
            raise StoreDamaged(f"{path} was built by another version")
        store = Store(path)
    except (sqlite3.Error, OSError, msgspec.DecodeError) as error:
        raise StoreDamaged(f"{path} is no store: {error}") from error
    if not store.about:
        store.close()
        raise StoreDamaged(f"{path} is not complete")
    return store


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Pause the collector of cycles: it would go through millions of records, which hold none."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def _open(path: Path) -> sqlite3.Connection:
    # `immutable`: nobody writes to a finished store, so no locks and no journal are looked for.
    address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    connection = sqlite3.connect(address, uri=True, check_same_thread=False)
    connection.execute(f"PRAGMA mmap_size = {_MAPPED}")
    return connection


def _fill(
    connection: sqlite3.Connection,
    parts: Iterable[Sources],
    world: Any | Callable[[], Any],
    strict: bool,
) -> None:
    # A store that was not finished is thrown away, so nothing has to survive a crash.
    for setting in (f"page_size = {_PAGE_SIZE}", "journal_mode = OFF", "synchronous = OFF"):
        connection.execute(f"PRAGMA {setting}")
    create_tables(connection)
    about: dict[str, Any] = {}
    for part in parts:
        with _no_collection():
            fill_tables(connection, strict_sources(part) if strict else part, strict=strict)
        about = {name: getattr(part, name) for name in _ABOUT}
        about["partial"] = part.evidence is not None
        about["strict"] = strict
        about["whole"] = part.evidence is None and not part.history
        connection.commit()
        del part  # while the next one is made, this one shall not be in memory
    if not about:
        raise ValueError("there are no sources to build a store from")
    index_tables(connection)
    about["world"] = world() if callable(world) else world
    connection.execute("INSERT INTO about VALUES ('about', ?)", (msgspec.json.encode(about),))
    connection.commit()
