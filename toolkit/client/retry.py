"""Retries: after which failures a request is sent again, and when."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import stamina

from toolkit.errors import AnswerDamaged, RateLimited, ServiceDown, ServiceError, Unreachable

__all__ = ["Retry", "retry_cause"]

# An application that configures logging sees the retries; otherwise they are not logged.
logging.getLogger("stamina").addHandler(logging.NullHandler())

_LONGEST: Final = 120.0  # seconds; a quota is counted by the minute
_LOCAL_START: Final = 2.0  # seconds in which a service on this machine may begin to listen


@dataclass(frozen=True, slots=True)
class Retry:
    """Rules for retries after failures that may pass.

    Waits grow exponentially, with jitter. Attempts and total time are limited.

    Parameters
    ----------
    attempts : int
        The most attempts, with the first one.
    timeout : float
        Seconds after which no further attempt begins. Waits for the budget do not count: a queue
        is no failure.
    clock : callable
        The present in seconds.
    """

    attempts: int = 6
    timeout: float = 180.0
    clock: Callable[[], float] = time.monotonic

    def retry_decision(self, error: Exception, elapsed: float) -> bool | float:
        """Return whether to try again `elapsed` seconds after the first attempt; or when, if known.

        If the service named a wait, the budget does the waiting. If that wait is longer than
        `timeout`, there is no retry.
        """
        limit = (
            _LOCAL_START
            if isinstance(error, Unreachable) and error.has_no_service
            else self.timeout
        )
        if elapsed > limit:
            return False
        if isinstance(error, RateLimited) and error.retry_after is not None:
            return 0.0 if error.retry_after <= self.timeout else False
        return isinstance(error, ServiceDown | RateLimited | Unreachable | AnswerDamaged)

    def requested_wait(self, error: Exception) -> float:
        """Return the seconds for which the service asked to wait; 0 if it did not ask.

        Tests that switch off the waits of stamina switch off this wait too.
        """
        if not isinstance(error, RateLimited) or error.retry_after is None:
            return 0.0
        if error.retry_after > self.timeout:  # of one operation: other requests need not wait
            return 0.0
        if stamina.is_testing() or not stamina.is_active():
            return 0.0
        return min(error.retry_after, self.timeout, _LONGEST)


def retry_cause(error: Exception) -> str:
    """Return in a word or two why a request has to be sent again."""
    if isinstance(error, ServiceError):
        return str(error.status)
    return error.cause if isinstance(error, Unreachable) else "answer cut short"
