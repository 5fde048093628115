"""The points budget of a session: how fast it may ask, and how much altogether."""

import threading
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from toolkit.errors import BudgetSpent

__all__ = ["WINDOW", "Budget", "Ledger", "Memory", "Spending", "until_room"]

WINDOW: Final = 60.0
"""Seconds that a quota counts together."""


class Ledger(Protocol):
    """Where the points of a key are counted: of one session, or of all on the machine.

    A request's points count from before it is sent until a window after it was answered, since
    nobody knows when in between the service counts it.
    """

    def take(
        self, points: int, per_minute: int | None, clock: Callable[[], float]
    ) -> tuple[float, int]:
        """Reserve points: 0 and a number for them, or the seconds until there may be room.

        The clock is read when it is one's turn, not before.
        """

    def settle(self, number: int, now: float) -> None:
        """Say that the request was answered, well or badly."""

    def block(self, until: float) -> None:
        """Let nobody ask before this moment."""

    def close(self) -> None:
        """Let go of files."""


class Budget:
    """Counts points, holds requests back, and refuses those that cost too much.

    Parameters
    ----------
    per_minute : int, optional
        Points that may be spent in any minute; requests wait for their turn.
    most : int, optional
        Points that may be spent altogether; a request beyond them is refused.
    clock, sleep : callable
        The present in seconds, and how to wait.
    ledger : Ledger, optional
        Where points are counted; by default those of this session alone.
    """

    def __init__(
        self,
        per_minute: int | None,
        most: int | None,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        ledger: Ledger | None = None,
    ) -> None:
        for name, value in (("points_per_minute", per_minute), ("most_points", most)):
            if value is not None and (type(value) is not int or value < 1):
                raise ValueError(f"{name} must be a whole number from 1, or None, not {value!r}")
        self.per_minute = per_minute
        self.most = most
        self.spent = 0
        self._clock = clock
        self._sleep = sleep
        self._ledger = Memory() if ledger is None else ledger
        self._lock = threading.Lock()

    def spend(self, points: int) -> "Spending":
        """Take points for one request, waiting for the minute to have room.

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
        try:
            while True:
                pause, number = self._ledger.take(points, self.per_minute, self._clock)
                if pause <= 0:
                    return Spending(self, number, waited)
                self._sleep(pause)
                waited += pause
        except BaseException:  # interrupted while it waited: nothing was sent
            with self._lock:
                self.spent -= points
            raise

    def settle(self, number: int) -> None:
        """Say that a request was answered, well or badly."""
        self._ledger.settle(number, self._clock())

    def back_off(self, seconds: float) -> None:
        """Let nobody who uses the key ask for so long: the service said so."""
        if seconds > 0:
            self._ledger.block(self._clock() + seconds)

    def close(self) -> None:
        """Let go of files."""
        self._ledger.close()

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
    """Points that a request takes, from before it is sent until it is answered.

    Attributes
    ----------
    waited : float
        Seconds that were waited for them.
    """

    def __init__(self, budget: Budget, number: int, waited: float) -> None:
        self.waited = waited
        self._budget = budget
        self._number = number

    def __enter__(self) -> "Spending":
        return self

    def __exit__(self, *_: object) -> None:
        self._budget.settle(self._number)


class Memory:
    """Counts the points of one session."""

    def __init__(self) -> None:
        self._spent: dict[int, tuple[float, int]] = {}  # number -> when they are free, points
        self._number = 0
        self._blocked = float("-inf")
        self._lock = threading.Lock()

    def take(
        self, points: int, per_minute: int | None, clock: Callable[[], float]
    ) -> tuple[float, int]:
        """Reserve points, as `Ledger` says."""
        with self._lock:
            now = clock()
            if self._blocked > now:
                return self._blocked - now, 0
            if per_minute is None:
                return 0.0, 0
            self._spent = {k: one for k, one in self._spent.items() if one[0] > now}
            pause = until_room(self._spent.values(), points, per_minute, now)
            if pause > 0:
                return pause, 0
            self._number += 1
            self._spent[self._number] = (float("inf"), points)
            return 0.0, self._number

    def settle(self, number: int, now: float) -> None:
        """Say that the request was answered."""
        with self._lock:
            if number in self._spent:
                self._spent[number] = (now + WINDOW, self._spent[number][1])

    def block(self, until: float) -> None:
        """Let nobody ask before this moment."""
        with self._lock:
            self._blocked = max(self._blocked, until)

    def close(self) -> None:
        """Do nothing: there is no file."""


def until_room(
    spent: Iterable[tuple[float, int]], points: int, per_minute: int, now: float
) -> float:
    """Give the seconds until points may fit beside those that are spent; 0 if they do now.

    Parameters
    ----------
    spent : iterable of (float, int)
        When they are free again, and how many; of requests on their way that is not known, and
        a window from now at the earliest.
    points, per_minute : int
        What is wanted, and the quota.
    now : float
        The present.
    """
    spent = sorted(spent)
    over = sum(cost for _, cost in spent) + points - per_minute
    pause = 0.0
    for frees, cost in spent:
        if over <= 0:
            break
        over -= cost
        pause = min(frees - now, WINDOW)
    return pause
