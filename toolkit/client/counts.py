"""Counts of what was sent: by a session altogether, and by each pull for its certificate."""

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from toolkit.errors import ServiceError, Unreachable

__all__ = ["Counts", "retry_cause"]


@dataclass(eq=False, slots=True)
class Counts:
    """Requests, points, retries by cause, and waits; safe to use from many threads.

    Attributes
    ----------
    requests, points : int
        Requests that were sent, with every attempt, and their cost.
    retries : int
        Attempts after the first.
    causes : Counter
        Cause of a retry -> how many: a status such as ``429``, or how the connection failed.
    waits : int
        How often a request was delayed, by the budget or before a retry.
    waited : float
        Seconds of these delays.
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

    def add_request(self, points: int) -> None:
        """Count a request and its points."""
        with self._lock:
            self.requests += 1
            self.points += points
        if self.within is not None:
            self.within.add_request(points)

    def add_wait(self, seconds: float) -> None:
        """Count a wait; 0 seconds are none."""
        if seconds <= 0:
            return
        with self._lock:
            self.waits += 1
            self.waited += seconds
        if self.within is not None:
            self.within.add_wait(seconds)

    def add_retry(self, cause: str) -> None:
        """Count a further attempt."""
        with self._lock:
            self.retries += 1
            self.causes[cause] += 1
        if self.within is not None:
            self.within.add_retry(cause)

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


def retry_cause(error: Exception) -> str:
    """Return in a word or two why a request has to be sent again."""
    if isinstance(error, ServiceError):
        return str(error.status)
    return error.cause if isinstance(error, Unreachable) else "answer cut short"
