"""The points budget of a session: how fast it may ask, and how much altogether."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from toolkit.errors import BudgetSpent

if TYPE_CHECKING:
    from toolkit.client.ledger import Ledger

__all__ = ["LEASE", "Budget", "Spending"]

LEASE: Final = 120.0
"""Seconds that a request may be on its way before anybody hears of it."""


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
        self._blocked = float("-inf")  # until when this session may not ask
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
        waited, name = 0.0, ""
        try:
            while True:
                pause = self._blocked - self._clock()
                if pause <= 0 and self._ledger is not None:
                    pause, name = self._ledger.take(points)
                if pause <= 0:
                    return Spending(self._ledger, name, waited)
                self._sleep(pause)
                waited += pause
        except BaseException:  # interrupted while it waited: nothing was sent
            with self._lock:
                self.spent -= points
            raise

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
        if self._ledger is not None:
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
    """Points that a request takes; a context from before it is sent until it is answered.

    Attributes
    ----------
    waited : float
        Seconds that were waited for them.
    """

    def __init__(self, ledger: "Ledger | None", name: str, waited: float) -> None:
        self.waited = waited
        self._ledger = ledger
        self._name = name

    def __enter__(self) -> "Spending":
        return self

    def __exit__(self, *_: object) -> None:
        self.answered()

    def answered(self) -> None:
        """Say that the answer begins, well or badly: the request is counted, its minute runs."""
        if self._ledger is not None and self._name:
            self._ledger.settle(self._name)
            self._name = ""


def _ledger(
    per_minute: int, clock: Callable[[], float], path: Path | None, lease: float
) -> "Ledger":
    from toolkit.client.ledger import Ledger  # its library, only where there is a quota

    return Ledger(per_minute, clock, path, lease)
