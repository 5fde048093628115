"""What has been done: by a session altogether, and by each pull for its certificate."""

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from toolkit.errors import ServiceError, Unreachable

__all__ = ["Counts", "cause_of"]


@dataclass(eq=False, slots=True)
class Counts:
    """Requests, points, retries by cause, and waits; safe to use from many threads.

    Attributes
    ----------
    requests, points : int
        Requests that were sent, every attempt, and what they cost.
    retries : int
        Attempts after the first.
    causes : Counter
        What each retry was for -> how many: a status such as ``429``, or how the connection
        failed.
    waits : int
        How often a request was held back, by the budget or before a retry.
    waited : float
        Seconds of that.
    within : Counts, optional
        The counts that these are a part of: whatever is added here is added there.
    """

    requests: int = 0
    points: int = 0
    retries: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    waits: int = 0
    waited: float = 0.0
    within: "Counts | None" = field(default=None, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def sent(self, points: int) -> None:
        """Count a request."""
        with self._lock:
            self.requests += 1
            self.points += points
        if self.within is not None:
            self.within.sent(points)

    def wait(self, seconds: float) -> None:
        """Count a time of waiting; none where there was none."""
        if seconds <= 0:
            return
        with self._lock:
            self.waits += 1
            self.waited += seconds
        if self.within is not None:
            self.within.wait(seconds)

    def retry(self, cause: str) -> None:
        """Count a further attempt."""
        with self._lock:
            self.retries += 1
            self.causes[cause] += 1
        if self.within is not None:
            self.within.retry(cause)

    def facts(self) -> dict[str, Any]:
        """Give them as plain values, for provenance."""
        with self._lock:
            return {
                "requests": self.requests,
                "points": self.points,
                "retries": dict(sorted(self.causes.items())),
                "waits": self.waits,
                "waited_seconds": round(self.waited, 3),
            }


def cause_of(error: Exception) -> str:
    """Say in a word or two why a request had to be sent again."""
    if isinstance(error, ServiceError):
        return str(error.status)
    return error.cause if isinstance(error, Unreachable) else "answer cut short"
