"""The recent spending of a key: the requests of the last minute, in a small SQLite file.

All threads and processes of this machine that use one key at one address share the file. Without a
file they are in memory, for one session. The file is named by a hash of address and key; it
does not contain the key.

A service counts a request at some time between its sending and its answer. If we counted it from
its sending, a request that was sent at the end of one minute and counted in the next could push
that next minute over the quota. So the stamp of a request is first the latest time at which its
answer can come, and later the time at which it came. A request counts for one window after its
stamp.
"""

import math
import sqlite3
import threading
import uuid
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

T = TypeVar("T")

WINDOW: Final = 60.0
"""Seconds over which a quota is counted."""

_FARTHEST: Final = 3_600.0  # seconds; nothing is reserved or blocked for longer
_EVERY: Final = 2**40  # points; no quota allows as many
_PATIENCE: Final = 30.0  # seconds to wait for the file; one transaction takes about a millisecond

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS requests (name TEXT PRIMARY KEY, stamp INTEGER, points INTEGER);
CREATE INDEX IF NOT EXISTS requests_by_stamp ON requests (stamp);
"""


@dataclass(eq=False)
class QuotaWindow:
    """Counts the points of a key, for every thread and process that opens the same file.

    If the file cannot be used (for example, because it is damaged), a warning is issued and points
    are counted in this session only.

    Parameters
    ----------
    quota : int
        Points that may be spent in any window.
    clock : callable
        Returns the present in seconds, the same for all who share the file.
    path : Path or None
        The file; it is created if it does not exist. None counts in memory.
    lease : float
        Seconds that a request may be on its way. A request whose answer is never recorded counts
        for `lease` plus `window` seconds.
    window : float, default 60
        Seconds over which the quota is counted.
    """

    quota: int
    clock: Callable[[], float]
    path: Path | None
    lease: float
    window: float = WINDOW
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _memory: sqlite3.Connection | None = field(default=None, init=False)  # without a file

    def reserve(self, points: int) -> tuple[float, str]:
        """Reserve points for a request.

        Returns
        -------
        tuple of (float, str)
            0 and a name for the request; or the seconds until there may be room, and no name.
        """
        return self._transaction(lambda file: self._reserve(file, points))

    def release(self, name: str) -> None:
        """Remove the reservation of a request that is not sent."""
        self._change("DELETE FROM requests WHERE name = ?", name)

    def record_answer(self, name: str) -> None:
        """Record that a request was answered, well or badly: its window begins now."""
        now = math.ceil(self.clock() * 1_000)
        self._change("UPDATE requests SET stamp = ? WHERE name = ?", now, name)

    def settle(self, name: str, points: int) -> None:
        """Change the points of a request to what it did cost."""
        self._change("UPDATE requests SET points = ? WHERE name = ?", points, name)

    def block(self, seconds: float) -> None:
        """Block all requests for some seconds."""
        # As a request beyond every quota, which leaves the window at the end of this time.
        stamp = math.ceil((self.clock() + seconds - self.window) * 1_000) - 1
        self._change("INSERT INTO requests VALUES (?, ?, ?)", uuid.uuid4().hex, stamp, _EVERY)

    def close(self) -> None:
        """Forget what was counted without a file."""
        with self._lock:
            if self._memory is not None:
                self._memory.close()
            self._memory = None

    def _reserve(self, connection: sqlite3.Connection, points: int) -> tuple[float, str]:
        now = math.floor(self.clock() * 1_000)  # the wait for the transaction has passed
        # Rows from beyond the farthest time were written before the clock was set back.
        expired = "DELETE FROM requests WHERE stamp < ? OR stamp > ?"
        window = math.ceil(self.window * 1_000)
        connection.execute(expired, (now - window, now + math.ceil(_FARTHEST * 1_000)))
        rows = connection.execute("SELECT stamp, points FROM requests ORDER BY stamp").fetchall()
        excess = sum(spent for _, spent in rows) + points - self.quota
        if excess > 0:
            for stamp, spent in rows:  # the earliest requests leave the window first
                pause = stamp + window + 1 - now
                excess -= spent
                if excess <= 0:
                    break
            # The answer to a request on its way frees its points a window from now at the earliest.
            return min(pause, window) / 1_000, ""
        name = uuid.uuid4().hex
        row = (name, now + math.ceil(self.lease * 1_000), points)
        connection.execute("INSERT INTO requests VALUES (?, ?, ?)", row)
        return 0.0, name

    def _change(self, words: str, *values: object) -> None:
        self._transaction(lambda file: file.execute(words, values))

    def _transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do something with the file while no other thread or process does."""
        with self._lock:
            try:
                return self._run(work)
            except (OSError, sqlite3.Error) as error:
                if self.path is None:
                    raise
                warnings.warn(
                    f"{self.path} cannot be used ({error}). Points are counted in this session "
                    "only, not with other processes. If the file is damaged, remove it",
                    stacklevel=2,
                )
                self.path = None
                return self._run(work)

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        # A file is opened for each transaction, so that no forked process has it open.
        if self.path is not None:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        connection = self._memory or sqlite3.connect(
            self.path or ":memory:",
            timeout=_PATIENCE,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            # What a power cut loses is older than a window when the machine is up again.
            connection.execute("PRAGMA synchronous = OFF")
            connection.executescript(_SCHEMA)
            connection.execute("BEGIN IMMEDIATE")  # takes the write lock of the file
            result = work(connection)
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:  # it was interrupted
                connection.execute("ROLLBACK")
            if self.path is None:
                self._memory = connection
            else:
                connection.close()
        return result
