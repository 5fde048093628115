"""Where the points of a key are counted: a bucket of pyrate-limiter, in a small SQLite file.

All threads and processes of this machine that use the key at the address share the file; without
one the bucket is in memory, for one session. The library does the window, the weights and the
lock between processes. Two things are added to it: until when a request counts, and what a 429
says (`Retry-After`), for everybody.

A service counts a request some time between its sending and its answer. The library counts it for
a minute from its sending: what was sent at the end of one minute and counted in the next can then
push that one over. So a request's points are stamped anew: with the latest time at which it can
be answered when it is sent, and with the present when it is answered.

The file is named by a hash of address and key; the key itself is nowhere.
"""

import contextlib
import math
import os
import sqlite3
import threading
import uuid
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar, cast

from filelock import FileLock
from pyrate_limiter import Rate, RateItem, SQLiteBucket

__all__ = ["WINDOW", "Ledger"]

T = TypeVar("T")

WINDOW: Final = 60.0
"""Seconds that a quota counts together."""

_FARTHEST: Final = 3_600.0  # seconds; nothing is reserved for so long
_PATIENCE: Final = 30.0  # seconds to wait for the file; a turn takes less than a millisecond
_POLL: Final = 0.002  # seconds between two looks whether it is one's turn
_TABLE: Final = "points"


class Ledger:
    """Counts the points of a key, for every thread and process that opens the same file.

    Where the file cannot be used, a warning says so and the points are counted for this session
    alone.

    Parameters
    ----------
    per_minute : int
        The quota.
    clock : callable
        The present in seconds, the same for all who share the file.
    path : Path or None
        The file; it is made where there is none. Without it points are counted in memory.
    lease : float
        Seconds that a request may be on its way; one that is never settled counts for so long,
        and a window.
    window : float, default 60
        Seconds that the quota counts together.
    """

    def __init__(
        self,
        per_minute: int,
        clock: Callable[[], float],
        path: Path | None,
        lease: float,
        window: float = WINDOW,
    ) -> None:
        self._per_minute = per_minute
        self._window = window
        self.path = path
        self._clock = clock
        self._lease = lease
        self._lock = threading.Lock()
        self._bucket: _Bucket | None = None
        self._process = 0

    def take(self, points: int) -> tuple[float, str]:
        """Reserve points: 0 and a name for them, or the seconds until there may be room."""
        return self._turn(lambda bucket: self._take(bucket, points))

    def settle(self, name: str) -> None:
        """Say that the request was answered, well or badly: its minute begins."""
        self._turn(lambda bucket: bucket.stamp(name, math.ceil(self._clock() * 1_000)))

    def block(self, seconds: float) -> None:
        """Let nobody ask for so long."""
        self._turn(lambda bucket: bucket.block(math.ceil((self._clock() + seconds) * 1_000)))

    def close(self) -> None:
        """Close the file; it is opened again when needed."""
        with self._lock:
            self._let_go()

    def _take(self, bucket: "_Bucket", points: int) -> tuple[float, str]:
        # The clock is read when it is one's turn, not before.
        now = math.floor(self._clock() * 1_000)
        bucket.tidy(now)
        if (blocked := bucket.blocked_until()) > now:
            return (blocked - now) / 1_000, ""
        item = RateItem(uuid.uuid4().hex, now, points)
        if not bucket.put(item):
            pause = bucket.waiting(item)
            assert isinstance(pause, int)  # this bucket is not asynchronous
            # What is on its way is free a window from now at the earliest.
            return min(max(1, pause) / 1_000, self._window), ""
        bucket.stamp(item.name, now + math.ceil(self._lease * 1_000))
        return 0.0, item.name

    def _turn(self, work: "Callable[[_Bucket], T]") -> T:
        """Do something with the bucket while nobody else does."""
        if self._process not in (0, os.getpid()):  # a forked child: who held the lock is not here
            self._lock, self._bucket, self._process = threading.Lock(), None, 0
        with self._lock:
            try:
                return self._alone(work)
            except (OSError, sqlite3.Error) as error:
                if self.path is None:
                    raise
                warnings.warn(
                    f"{self.path} cannot be used ({error}): points are counted for this session "
                    "alone, not with other processes. If the file is damaged, remove it",
                    stacklevel=2,
                )
                self._let_go()
                self.path = None
                return self._alone(work)

    def _alone(self, work: "Callable[[_Bucket], T]") -> T:
        bucket = self._opened()
        with bucket.lock:
            try:
                return work(bucket)
            finally:
                bucket.conn.rollback()  # what was interrupted; else everything is committed

    def _opened(self) -> "_Bucket":
        if self._bucket is None:
            self._bucket = _Bucket.made(self._per_minute, self._window, self.path)
            self._process = os.getpid()
        return self._bucket

    def _let_go(self) -> None:
        if self._bucket is not None:
            self._bucket.conn.close()
        self._bucket = None


class _Bucket(SQLiteBucket):
    """A bucket whose points are stamped anew, and that can be blocked; moments in milliseconds."""

    tidied = -math.inf

    @classmethod
    def made(cls, most: int, window: float, path: Path | None) -> "_Bucket":
        """Open the bucket of a file, or one in memory."""
        rates = [Rate(most, math.ceil(window * 1_000))]
        if path is None:
            made = cls.init_from_file(rates, _TABLE, ":memory:")
        else:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # The library leaves a file open that turns out to be damaged.
            with contextlib.closing(sqlite3.connect(path)) as file:
                file.execute("SELECT count(*) FROM sqlite_master")
            made = cls.init_from_file(rates, _TABLE, str(path), use_file_lock=True)
            lock = cast(FileLock, made.lock)  # declared as that of the bucket in memory
            lock.timeout, lock.poll_interval = _PATIENCE, _POLL
        assert isinstance(made, cls)
        with made.lock:
            # What a power cut loses, is a minute old when the machine is up again.
            made.conn.execute("PRAGMA synchronous = OFF")
            made.conn.execute(f"CREATE INDEX IF NOT EXISTS by_name ON {_TABLE} (name)")
            made.conn.execute("CREATE TABLE IF NOT EXISTS blocked (until INTEGER NOT NULL)")
            made.conn.commit()
        return made

    def stamp(self, name: str, moment: int) -> None:
        """Let the points of a request count until a window after this moment."""
        words = f"UPDATE {_TABLE} SET item_timestamp = ? WHERE name = ?"
        self.conn.execute(words, (moment, name))
        self.conn.commit()

    def block(self, until: int) -> None:
        """Let nobody ask before this moment."""
        self.conn.execute("INSERT INTO blocked VALUES (?)", (until,))
        self.conn.commit()

    def blocked_until(self) -> int:
        """Give the moment before which nobody may ask."""
        return int(self.conn.execute("SELECT coalesce(max(until), 0) FROM blocked").fetchone()[0])

    def tidy(self, now: int) -> None:
        """Drop what is past, once a window, and what was noted before the clock was set back."""
        if 0 <= now - self.tidied < self.rates[0].interval:
            return
        self.leak(now)
        latest = now + math.ceil(_FARTHEST * 1_000)
        self.conn.execute(f"DELETE FROM {_TABLE} WHERE item_timestamp > ?", (latest,))
        self.conn.execute("DELETE FROM blocked WHERE until <= ? OR until > ?", (now, latest))
        self.conn.commit()
        self.tidied = now
