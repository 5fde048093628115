"""The points budget of a session: how fast it may ask, and how much altogether."""

import threading
from collections import deque
from collections.abc import Callable

from toolkit.errors import BudgetSpent

__all__ = ["Budget"]

_WINDOW = 60.0


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
    """

    def __init__(
        self,
        per_minute: int | None,
        most: int | None,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        for name, value in (("points_per_minute", per_minute), ("most_points", most)):
            if value is not None and value < 1:
                raise ValueError(f"{name} must be 1 or more, not {value}")
        self.per_minute = per_minute
        self.most = most
        self.spent = 0
        self._clock = clock
        self._sleep = sleep
        self._recent: deque[tuple[float, int]] = deque()
        self._lock = threading.Lock()

    def spend(self, points: int) -> float:
        """Take points, waiting for the minute to have room.

        Returns
        -------
        float
            Seconds waited.

        Raises
        ------
        BudgetSpent
            If the points are more than are left, or than a whole minute allows.
        """
        waited = 0.0
        while (pause := self._take(points)) > 0:
            self._sleep(pause)
            waited += pause
        return waited

    def _take(self, points: int) -> float:
        """Take the points if there is room now; else give the seconds until there may be."""
        with self._lock:
            self._refuse(points)
            now = self._clock()
            while self._recent and self._recent[0][0] <= now - _WINDOW:
                self._recent.popleft()
            busy = sum(cost for _, cost in self._recent)
            if self.per_minute is not None and busy + points > self.per_minute:
                return max(self._recent[0][0] + _WINDOW - now, 0.001)
            if self.per_minute is not None:
                self._recent.append((now, points))
            self.spent += points
            return 0.0

    def _refuse(self, points: int) -> None:
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
