"""The points of a session: how fast it may spend them, how many altogether, and what it spent."""

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, Final

from toolkit.client.quota_window import QuotaWindow
from toolkit.contract.operations import Operation
from toolkit.display import count_text
from toolkit.errors import BudgetSpent, Incomplete, LimitWarning, warn_caller

LEASE: Final = 120.0
"""Seconds that a request may be on its way without an answer."""

_SHORT: Final = 5.0  # seconds; a shorter wait has no warning


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


@dataclass(eq=False, slots=True)
class PointReservation:
    """The points of one request; a context from before it is sent until it is answered.

    Attributes
    ----------
    taken : sequence
        Each quota that counts the request, and the request's name there.
    waited : float
        Seconds that the request waited for them.
    """

    taken: Sequence[tuple[QuotaWindow, str]]
    waited: float
    _is_answered: bool = False

    def __enter__(self) -> "PointReservation":
        return self

    def __exit__(self, *_: object) -> None:
        self.record_answer()

    def record_answer(self) -> None:
        """Record that the answer begins, good or bad: from now on the minute of the points runs."""
        if not self._is_answered:
            self._is_answered = True
            for window, name in self.taken:
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
    _calls: dict[str, QuotaWindow] = field(default_factory=dict, init=False)  # by type of operation
    _blocked_until: float = field(default=-math.inf, init=False)  # seconds; for this session
    _announced_until: float = field(default=-math.inf, init=False)  # the end of an announced wait
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        for name, value in (("points_per_minute", self.per_minute), ("most_points", self.most)):
            if value is not None and (type(value) is not int or value < 1):
                raise ValueError(
                    f"{name} must be a whole number of at least 1, or None, not {value!r}"
                )
        self._points: QuotaWindow | None = None
        if self.per_minute is not None:
            self._points = QuotaWindow(self.per_minute, self.clock, self.path, self.lease)

    def spend(
        self,
        points: int,
        operation: Operation | None = None,
        stop: threading.Event | None = None,
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
            A context around the request.

        Raises
        ------
        BudgetSpent
            If the points are more than are left, or more than a whole minute allows.
        Incomplete
            If `stop` is set: the request must not be sent.
        """
        what = "the request" if operation is None else f"a request of {operation.type}"
        with self._lock:
            refusal = ""
            if self.most is not None and self.spent + points > self.most:
                refusal = (
                    f"and {self.most - self.spent} of the session's {self.most} are left. Raise "
                    "most_points, or request less"
                )
            elif self.per_minute is not None and points > self.per_minute:
                refusal = (
                    f"more than points_per_minute allows ({self.per_minute}). Set "
                    "points_per_minute to the quota of the key, or request less"
                )
            if refusal:
                raise BudgetSpent(f"{what} costs {count_text(points, 'point')}, {refusal}")
            self.spent += points
        waited = 0.0
        calls = self._calls_window(operation)
        needed = [(calls, 1)] if calls is not None else []
        needed += [(self._points, points)] if self._points is not None else []
        taken: list[tuple[QuotaWindow, str]] = []
        try:
            while True:
                if stop is not None and stop.is_set():
                    raise Incomplete(f"{what}: the call was interrupted")
                pause = self._blocked_until - self.clock()
                while pause <= 0 and needed:
                    window, amount = needed[0]
                    pause, name = window.reserve(amount)
                    if pause <= 0:
                        taken.append((window, name))
                        needed.pop(0)
                if pause <= 0:
                    return PointReservation(taken, waited)
                if needed and needed[0][0] is calls and operation and operation.limit:
                    number, minutes = operation.limit.calls, operation.limit.seconds // 60
                    words = f"{operation.type} can be requested {number} times in {minutes} minutes"
                    self.announce_wait(pause, words)
                self.wait(pause, stop)
                waited += pause
        except BaseException:  # interrupted while it waited: nothing was sent
            with self._lock:
                self.spent -= points
            for window, name in taken:
                window.release(name)
            raise

    def settle(self, reservation: PointReservation, reserved: int, spent: int) -> None:
        """Count what a request did cost, once its answer shows it, instead of the most it could."""
        with self._lock:
            self.spent -= reserved - spent
        for window, name in reservation.taken:
            if window is self._points:
                window.settle(name, spent)

    def block(self, seconds: float) -> None:
        """Delay all requests with this key for some seconds, because the service demands it."""
        if seconds <= 0:
            return
        with self._lock:
            self._blocked_until = max(self._blocked_until, self.clock() + seconds)
        if self._points is not None:
            self._points.block(seconds)

    def wait(self, seconds: float, stop: threading.Event | None = None) -> None:
        """Wait for some seconds, or until `stop` is set."""
        if seconds <= 0:
            return
        if self.sleep is not None:
            self.sleep(seconds)
        elif stop is not None:
            stop.wait(seconds)
        else:
            time.sleep(seconds)

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
        for window in (self._points, *self._calls.values()):
            if window is not None:
                window.close()

    def _calls_window(self, operation: Operation | None) -> QuotaWindow | None:
        """Return the window of calls of an operation that has a limit of its own."""
        if self.per_minute is None or operation is None or operation.limit is None:
            return None
        with self._lock:
            if operation.type not in self._calls:
                path, limit = self.path, operation.limit
                if path is not None:
                    path = path.with_name(f"{path.stem}.{operation.type}{path.suffix}")
                self._calls[operation.type] = QuotaWindow(
                    limit.calls, self.clock, path, self.lease, limit.seconds
                )
            return self._calls[operation.type]
