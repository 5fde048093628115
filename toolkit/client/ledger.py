"""The points of a key, counted for all processes of this machine in a small SQLite file.

Limiter libraries count a request when it is sent. A service counts it some time between then and
the answer: with a quota per minute of the clock, what was sent at the end of one minute and
counted in the next can push that one over. So points are reserved before sending, and free a
window after the answer; a process that was killed in between holds its points for a while longer,
not for ever. What a 429 says (`Retry-After`) stands in the same file, for everybody.

The file is named by a hash of address and key; the key itself is nowhere.
"""

import hashlib
import os
import sqlite3
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from toolkit.client.budget import WINDOW, Memory, until_room

__all__ = ["Shared", "file_of"]

T = TypeVar("T")

_LEASE: Final = 120.0  # seconds that a request on its way may take at most
_PATIENCE: Final = 30.0  # seconds to wait for the file; a turn takes less than a millisecond
_ROUNDS: Final = 20_000  # of the hash: a short key is not found by trying

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS spent (
    number INTEGER PRIMARY KEY AUTOINCREMENT, frees REAL NOT NULL, points INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS by_time ON spent (frees);
CREATE TABLE IF NOT EXISTS blocked (until REAL NOT NULL);
"""


def file_of(folder: Path, base_url: str, key: str) -> Path:
    """Name the file that counts for a key at a service."""
    digest = hashlib.pbkdf2_hmac("sha256", key.encode(), base_url.encode(), _ROUNDS)
    return folder / f"{digest.hex()[:32]}.db"


class Shared:
    """Counts the points of a key for every thread and process that opens the same file.

    Where the file cannot be used, a warning says so and the points are counted for this session
    alone.

    Parameters
    ----------
    path : Path
        The file; it is made where there is none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        self._is_damaged = False
        self._memory = Memory()

    def take(
        self, points: int, per_minute: int | None, clock: Callable[[], float]
    ) -> tuple[float, int]:
        """Reserve points, as `Ledger` says."""
        taken = self._in_file(lambda file: _take(file, points, per_minute, clock()))
        return self._memory.take(points, per_minute, clock) if taken is None else taken

    def settle(self, number: int, now: float) -> None:
        """Say that the request was answered."""
        free = (now + WINDOW, number)
        words = "UPDATE spent SET frees = ? WHERE number = ?"
        if self._in_file(lambda file: file.execute(words, free).rowcount) is None:
            self._memory.settle(number, now)

    def block(self, until: float) -> None:
        """Let nobody ask before this moment."""
        words = "INSERT INTO blocked VALUES (?)"
        if self._in_file(lambda file: file.execute(words, (until,)).rowcount) is None:
            self._memory.block(until)

    def close(self) -> None:
        """Close the file; it is opened again when needed."""
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    def _in_file(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Do something with the file to oneself; None where it cannot be used."""
        with self._lock:
            if self._is_damaged:
                return None
            try:
                file = self._opened()
                try:
                    file.execute("BEGIN IMMEDIATE")
                    done = work(file)
                    file.execute("COMMIT")
                    return done
                finally:
                    if file.in_transaction:  # interrupted: others must not wait for us
                        file.execute("ROLLBACK")
            except (OSError, sqlite3.Error) as error:
                self._is_damaged = True
                warnings.warn(
                    f"{self.path} cannot be used ({error}): points are counted for this session "
                    "alone, not with other processes. If the file is damaged, remove it",
                    stacklevel=2,
                )
                return None

    def _opened(self) -> sqlite3.Connection:
        # A connection must not be used in a forked child.
        if self._connection is None or self._process != os.getpid():
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                self.path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
            )
            self._process = os.getpid()
            # What a power cut loses, is a minute old when the machine is up again.
            self._connection.execute("PRAGMA synchronous = OFF")
            self._connection.executescript(_TABLES)
        return self._connection


def _take(
    file: sqlite3.Connection, points: int, per_minute: int | None, now: float
) -> tuple[float, int]:
    """Reserve points within a transaction."""
    latest = now + WINDOW + _LEASE
    # What is later than anything can be, was noted before the clock was set back.
    never = latest + WINDOW
    file.execute("DELETE FROM blocked WHERE until <= ? OR until > ?", (now, never))
    file.execute("DELETE FROM spent WHERE frees <= ?", (now,))
    file.execute("DELETE FROM spent WHERE frees > ?", (never,))
    until = file.execute("SELECT max(until) FROM blocked").fetchone()[0]
    if until is not None:
        return until - now, 0
    if per_minute is None:
        return 0.0, 0
    busy = file.execute("SELECT coalesce(sum(points), 0) FROM spent").fetchone()[0]
    if busy + points > per_minute:
        spent = file.execute("SELECT frees, points FROM spent").fetchall()
        return until_room(spent, points, per_minute, now), 0
    added = file.execute("INSERT INTO spent (frees, points) VALUES (?, ?)", (latest, points))
    return 0.0, int(added.lastrowid or 0)
