"""The points of a session: how fast it may spend them, how many altogether, and what it spent.

The recent spending of a key, the requests of the last minute, is in a small SQLite file. All
threads and processes of this machine that use one key at one address share the file. Without a
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
import time
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, TypeVar

from toolkit.contract.operations import Operation
from toolkit.display import count_text
from toolkit.errors import BudgetSpent, Incomplete, LimitWarning, warn_caller

T = TypeVar("T")

LEASE: Final = 120.0
"""Seconds that a request may be on its way without an answer."""

WINDOW: Final = 60.0
"""Seconds over which a quota is counted."""

_SHORT: Final = 5.0  # seconds; a shorter wait has no warning
_FARTHEST: Final = 3_600.0  # seconds; nothing is reserved or blocked for longer
_EVERY: Final = 2**40  # points; no quota allows as many
_PATIENCE: Final = 30.0  # seconds to wait for the file; one transaction takes about a millisecond

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS requests (name TEXT PRIMARY KEY, stamp INTEGER, points INTEGER);
CREATE INDEX IF NOT EXISTS requests_by_stamp ON requests (stamp);
"""
_ADD: Final = "INSERT INTO requests VALUES (?, ?, ?)"


@dataclass(eq=False, slots=True)
class RequestCounts:
    """Requests, points, retries by cause, and waits; safe to use from many threads.

    Attributes
    ----------
    requests, points : int
        Requests that were sent, with every attempt, and their cost.
    causes : Counter
        Cause of a retry -> how many: a status such as ``429``, or how the connection failed.
    waits : int
        How often a request was delayed, by the budget or before a retry.
    waited : float
        Seconds of these delays.
    session : RequestCounts, optional
        The counts of the session: they also count what these count.
    """

    requests: int = 0
    points: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    waits: int = 0
    waited: float = 0.0
    session: "RequestCounts | None" = field(default=None, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def retries(self) -> int:
        """Attempts after the first."""
        return self.causes.total()

    def add(
        self, *, requests: int = 0, points: int = 0, cause: str = "", waited: float = 0.0
    ) -> None:
        """Count requests, their points, the cause of a further attempt, and seconds of a delay."""
        with self._lock:
            self.requests += requests
            self.points += points
            if cause:
                self.causes[cause] += 1
            self.waits += waited > 0
            self.waited += waited
        if self.session is not None:
            self.session.add(requests=requests, points=points, cause=cause, waited=waited)

    def facts(self) -> dict[str, Any]:
        """Return the counts as plain values for provenance."""
        with self._lock:
            return {
                "requests": self.requests,
                "points": self.points,
                "retries": dict(sorted(self.causes.items())),
                "waits": self.waits,
                "waited_seconds": round(self.waited, 3),
            }


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

        def take(file: sqlite3.Connection) -> tuple[float, str]:
            now = math.floor(self.clock() * 1_000)  # the wait for the transaction has passed
            # Rows from beyond the farthest time were written before the clock was set back.
            expired = "DELETE FROM requests WHERE stamp < ? OR stamp > ?"
            window = math.ceil(self.window * 1_000)
            file.execute(expired, (now - window, now + math.ceil(_FARTHEST * 1_000)))
            rows = file.execute("SELECT stamp, points FROM requests ORDER BY stamp").fetchall()
            excess = sum(spent for _, spent in rows) + points - self.quota
            if excess > 0:
                # The earliest requests leave the window first.
                leaving = zip(rows, accumulate(spent for _, spent in rows), strict=True)
                stamp = next(stamp for (stamp, _), gone in leaving if gone >= excess)
                # An answer to a request on its way frees its points a window from now at the
                # earliest.
                return min(stamp + window + 1 - now, window) / 1_000, ""
            name = uuid.uuid4().hex
            file.execute(_ADD, (name, now + math.ceil(self.lease * 1_000), points))
            return 0.0, name

        return self._run(take)

    def change(self, words: str, *values: object) -> None:
        """Change the requests in the file."""
        self._run(lambda file: file.execute(words, values))

    def record_answer(self, name: str) -> None:
        """Record that a request was answered, well or badly: its window begins now."""
        stamp = math.ceil(self.clock() * 1_000)
        self.change("UPDATE requests SET stamp = ? WHERE name = ?", stamp, name)

    def block(self, seconds: float) -> None:
        """Block all requests for some seconds."""
        # As a request beyond every quota, which leaves the window at the end of this time.
        stamp = math.ceil((self.clock() + seconds - self.window) * 1_000) - 1
        self.change(_ADD, uuid.uuid4().hex, stamp, _EVERY)

    def close(self) -> None:
        """Forget what was counted without a file."""
        with self._lock:
            if self._memory is not None:
                self._memory.close()
            self._memory = None

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do something with the file while no other thread or process does."""
        with self._lock:
            try:
                if self.path is not None:
                    self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    # It is opened for each transaction, so that no forked process has it open.
                    with closing(
                        sqlite3.connect(self.path, _PATIENCE, isolation_level=None)
                    ) as file:
                        return _transact(file, work)
            except (OSError, sqlite3.Error) as error:
                warnings.warn(
                    f"{self.path} cannot be used ({error}). Points are counted in this session "
                    "only, not with other processes. If the file is damaged, remove it",
                    stacklevel=2,
                )
                self.path = None
            if self._memory is None:
                self._memory = sqlite3.connect(
                    ":memory:", isolation_level=None, check_same_thread=False
                )
            return _transact(self._memory, work)


def _transact(file: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    with file:  # commits the changes, or takes them back if it is interrupted
        # What a power cut loses is older than a window when the machine is up again.
        file.execute("PRAGMA synchronous = OFF")
        file.executescript(_SCHEMA)
        file.execute("BEGIN IMMEDIATE")  # takes the write lock of the file
        return work(file)


@dataclass(eq=False, slots=True)
class PointReservation:
    """The points of one request, from before it is sent until it is answered.

    Attributes
    ----------
    taken : mapping
        Each quota that counts the request -> the request's name there.
    waited : float
        Seconds that the request waited for them.
    """

    taken: Mapping[QuotaWindow, str]
    waited: float
    _is_answered: bool = False

    def record_answer(self) -> None:
        """Record that the answer begins, good or bad: from now on the minute of the points runs."""
        if not self._is_answered:
            self._is_answered = True
            for window, name in self.taken.items():
                window.record_answer(name)


@dataclass(eq=False)
class Budget:
    """Counts points, delays requests that exceed the quota, and refuses those that cost too much.

    Parameters
    ----------
    per_minute : int, optional
        Points that may be spent in any minute; requests wait for their turn.
    most : int, optional
        Points that may be spent altogether; a request beyond them is refused.
    clock : callable
        The present in seconds, the same for all who share the file.
    sleep : callable, optional
        A function that waits. By default that of the machine, which ends if the call is stopped.
    path : Path, optional
        The file in which all who use the key count; without it each session counts separately.
    lease : float, optional
        Seconds that a request may be on its way without an answer.
    """

    per_minute: int | None
    most: int | None
    _: KW_ONLY
    clock: Callable[[], float]
    sleep: Callable[[float], None] | None = None
    path: Path | None = None
    lease: float = LEASE
    spent: int = field(default=0, init=False)
    # The quota by the name "", and the limits of operations by their type.
    _windows: dict[str, QuotaWindow] = field(default_factory=dict, init=False, repr=False)
    _blocked_until: float = field(default=-math.inf, init=False)  # seconds; for this session
    _announced_until: float = field(default=-math.inf, init=False)  # the end of an announced wait
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        for name, value in (("points_per_minute", self.per_minute), ("most_points", self.most)):
            if value is not None and (type(value) is not int or value < 1):
                raise ValueError(
                    f"{name} must be a whole number of at least 1, or None, not {value!r}"
                )

    def spend(
        self, points: int, operation: Operation | None = None, stop: threading.Event | None = None
    ) -> PointReservation:
        """Spend points for one request; wait until the minute has room.

        A session with a quota also waits for an operation's own limit.

        Parameters
        ----------
        points : int
            The cost of the request.
        operation : Operation, optional
            The operation of the request.
        stop : threading.Event, optional
            Once it is set, the wait ends and nothing is spent.

        Returns
        -------
        PointReservation
            To record the answer with.

        Raises
        ------
        BudgetSpent
            If the points are more than are left, or more than a whole minute allows.
        Incomplete
            If `stop` is set: the request must not be sent.
        """
        what = "the request" if operation is None else f"a request of {operation.type}"
        with self._lock:
            if self.most is not None and self.spent + points > self.most:
                left = f"{self.most - self.spent} of the session's {self.most} are left"
                raise BudgetSpent(
                    f"{what} costs {count_text(points, 'point')}, and {left}. Raise most_points, "
                    "or request less"
                )
            if self.per_minute is not None and points > self.per_minute:
                raise BudgetSpent(
                    f"{what} costs {count_text(points, 'point')}, more than points_per_minute "
                    f"allows ({self.per_minute}). Set points_per_minute to the quota of the key, "
                    "or request less"
                )
            self.spent += points
        needed: list[tuple[QuotaWindow, int, str]] = []
        taken: dict[QuotaWindow, str] = {}
        waited = 0.0
        if self.per_minute is not None:
            if operation is not None and (limit := operation.limit):
                words = f"{limit.calls} times in {limit.seconds // 60} minutes"
                window = self._window(operation.type, limit.calls, limit.seconds)
                needed = [(window, 1, f"{operation.type} can be requested {words}")]
            needed.append((self._window("", self.per_minute), points, ""))
        try:
            while True:
                if stop is not None and stop.is_set():
                    raise Incomplete(f"{what}: the call was interrupted")
                pause, reason = self._blocked_until - self.clock(), ""
                while pause <= 0 and needed:
                    window, amount, reason = needed[0]
                    pause, name = window.reserve(amount)
                    if pause <= 0:
                        taken[window] = name
                        needed.pop(0)
                if pause <= 0:
                    return PointReservation(taken, waited)
                if reason:
                    self.announce_wait(pause, reason)
                self.wait(pause, stop)
                waited += pause
        except BaseException:  # interrupted while it waited: nothing was sent
            with self._lock:
                self.spent -= points
            for window, name in taken.items():
                window.change("DELETE FROM requests WHERE name = ?", name)
            raise

    def _window(self, type: str, quota: int, seconds: float = WINDOW) -> QuotaWindow:
        path = self.path
        if path is not None and type:
            path = path.with_name(f"{path.stem}.{type}{path.suffix}")
        window = QuotaWindow(quota, self.clock, path, self.lease, seconds)
        return self._windows.setdefault(type, window)

    def settle(self, reservation: PointReservation, reserved: int, spent: int) -> None:
        """Count what a request did cost, once its answer shows it, instead of the most it could."""
        with self._lock:
            self.spent -= reserved - spent
        for window, name in reservation.taken.items():
            if window is self._windows[""]:
                window.change("UPDATE requests SET points = ? WHERE name = ?", spent, name)

    def block(self, seconds: float) -> None:
        """Delay all requests with this key for some seconds, because the service demands it."""
        if seconds <= 0:
            return
        with self._lock:
            self._blocked_until = max(self._blocked_until, self.clock() + seconds)
        if self.per_minute is not None:
            self._window("", self.per_minute).block(seconds)

    def wait(self, seconds: float, stop: threading.Event | None = None) -> None:
        """Wait for some seconds, or until `stop` is set."""
        if seconds > 0:
            pause: Callable[[float], object] = time.sleep if stop is None else stop.wait
            (self.sleep or pause)(seconds)

    def announce_wait(self, seconds: float, reason: str) -> None:
        """Warn of a long wait. If several requests wait at the same time, only the first warns."""
        with self._lock:
            now = self.clock()
            is_announced = seconds <= _SHORT or now < self._announced_until
            if not is_announced:
                self._announced_until = now + seconds
        if not is_announced:
            warn_caller(f"{reason}. The request waits {seconds:.0f} s", LimitWarning)

    def close(self) -> None:
        """Close the files."""
        for window in [*self._windows.values()]:  # another thread may add one
            window.close()
