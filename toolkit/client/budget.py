"""The points budget of a session: how fast it may ask, and how much altogether."""

import threading
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from toolkit.contract.operations import Operation
from toolkit.errors import BudgetSpent

if TYPE_CHECKING:
    from toolkit.client.ledger import Ledger

__all__ = ["LEASE", "Budget", "LimitWarning", "Spending"]

LEASE: Final = 120.0
"""Seconds that a request may be on its way before anybody hears of it."""

_SHORT: Final = 5.0  # seconds; a shorter wait needs no warning


class LimitWarning(UserWarning):
    """A request waits because its operation may be asked only so often."""


class Budget:
    """Counts points, holds requests back, and refuses those that cost too much.

    Parameters
    ----------
    per_minute : int, optional
        Points that may be spent in any minute; requests wait for their turn.
    most : int, optional
        Points that may be spent altogether; a request beyond them is refused.
    clock, sleep : callable
        The present in seconds, the same for all who share the file, and how to wait.
    path : Path, optional
        The file in which all who use the key count; without it each session counts alone.
    lease : float, optional
        Seconds that a request may be on its way before anybody hears of it.
    """

    def __init__(
        self,
        per_minute: int | None,
        most: int | None,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        path: Path | None = None,
        lease: float = LEASE,
    ) -> None:
        for name, value in (("points_per_minute", per_minute), ("most_points", most)):
            if value is not None and (type(value) is not int or value < 1):
                raise ValueError(f"{name} must be a whole number from 1, or None, not {value!r}")
        self.per_minute = per_minute
        self.most = most
        self.spent = 0
        self._clock = clock
        self._sleep = sleep
        self._ledger = None if per_minute is None else _ledger(per_minute, clock, path, lease)
        self._calls: dict[str, Ledger] = {}  # by operation that has a limit of its own
        self._path = path
        self._lease = lease
        self._blocked = float("-inf")  # until when this session may not ask
        self._lock = threading.Lock()

    def spend(self, points: int, operation: Operation | None = None) -> "Spending":
        """Take points for one request, waiting for the minute to have room.

        A session with a quota also waits for an operation's own limit.

        Parameters
        ----------
        points : int
            What the request costs.
        operation : Operation, optional
            What is asked.

        Returns
        -------
        Spending
            To be used as a context around the request.

        Raises
        ------
        BudgetSpent
            If the points are more than are left, or than a whole minute allows.
        """
        self._reserve(points)
        waited = 0.0
        calls = self._calls_of(operation)
        needed = [(calls, 1)] if calls is not None else []
        needed += [(self._ledger, points)] if self._ledger is not None else []
        taken: list[tuple[Ledger, str]] = []
        try:
            while True:
                pause = self._blocked - self._clock()
                while pause <= 0 and needed:
                    ledger, amount = needed[0]
                    pause, name = ledger.take(amount)
                    if pause <= 0:
                        taken.append((ledger, name))
                        needed.pop(0)
                if pause <= 0:
                    return Spending(taken, waited)
                if needed and needed[0][0] is calls and operation is not None:
                    _announce(operation, pause)
                self._sleep(pause)
                waited += pause
        except BaseException:  # interrupted while it waited: nothing was sent
            with self._lock:
                self.spent -= points
            raise

    def _calls_of(self, operation: Operation | None) -> "Ledger | None":
        """Return where the calls of an operation with its own limit are counted."""
        if self.per_minute is None or operation is None or operation.limit is None:
            return None
        with self._lock:
            if operation.type not in self._calls:
                path = self._path
                if path is not None:
                    path = path.with_name(f"{path.stem}.{operation.type}{path.suffix}")
                limit = operation.limit
                self._calls[operation.type] = _ledger(
                    limit.calls, self._clock, path, self._lease, limit.seconds
                )
            return self._calls[operation.type]

    def back_off(self, seconds: float) -> None:
        """Let nobody who uses the key ask for so long: the service said so."""
        if seconds <= 0:
            return
        with self._lock:
            self._blocked = max(self._blocked, self._clock() + seconds)
        if self._ledger is not None:
            self._ledger.block(seconds)

    def close(self) -> None:
        """Let go of files."""
        for ledger in (self._ledger, *self._calls.values()):
            if ledger is not None:
                ledger.close()

    def _reserve(self, points: int) -> None:
        with self._lock:
            if self.most is not None and self.spent + points > self.most:
                raise BudgetSpent(
                    f"the request costs {points} points, and {self.most - self.spent} of the "
                    f"session's {self.most} are left; raise most_points, or ask for less"
                )
            if self.per_minute is not None and points > self.per_minute:
                raise BudgetSpent(
                    f"the request costs {points} points, more than points_per_minute allows "
                    f"({self.per_minute})"
                )
            self.spent += points


class Spending:
    """Points that a request takes; a context from before it is sent until it is answered.

    Attributes
    ----------
    waited : float
        Seconds that were waited for them.
    """

    def __init__(self, taken: "Sequence[tuple[Ledger, str]]", waited: float) -> None:
        self.waited = waited
        self._taken = tuple(taken)

    def __enter__(self) -> "Spending":
        return self

    def __exit__(self, *_: object) -> None:
        self.answered()

    def answered(self) -> None:
        """Say that the answer begins, well or badly: the request is counted, its minute runs."""
        taken, self._taken = self._taken, ()
        for ledger, name in taken:
            ledger.settle(name)


def _announce(operation: Operation, pause: float) -> None:
    """Warn before a long wait: a cell that stands still for minutes should say why."""
    limit = operation.limit
    if limit is not None and pause > _SHORT:
        warnings.warn(
            f"{operation.type} may be asked {limit.calls} times in {limit.seconds // 60} minutes: "
            f"this request waits {pause:.0f} s",
            LimitWarning,
            stacklevel=2,
        )


def _ledger(
    most: int,
    clock: Callable[[], float],
    path: Path | None,
    lease: float,
    window: float = 60.0,
) -> "Ledger":
    from toolkit.client.ledger import Ledger  # its library, only where there is a quota

    return Ledger(most, clock, path, lease, window)
