"""Retries: after which failures a request is sent again, and when."""

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import stamina

from toolkit.errors import AnswerDamaged, RateLimited, ServiceDown, ServiceError, Unreachable

# An application that configures logging sees the retries; otherwise they are not logged.
logging.getLogger("stamina").addHandler(logging.NullHandler())

_QUOTA_WAITS: Final = (10.0, 20.0, 60.0)  # seconds; a quota is counted by the minute
_FIRST: Final = 0.25  # seconds; the wait after any other failure doubles from here
_LONGEST: Final = 20.0  # seconds
_LOCAL_START: Final = 2.0  # seconds in which a service on this machine may begin to listen


@dataclass(frozen=True, slots=True)
class Retry:
    """Rules for retries after failures that may pass.

    Waits grow from one failure to the next, with jitter. After status 429 without a stated wait
    they last more than a minute in all, because a quota is counted by the minute. Attempts and
    total time are limited.

    Parameters
    ----------
    attempts : int
        The most attempts, with the first one.
    timeout : float
        Seconds after which no further attempt begins. Waits for the budget, and those that a 429
        states, do not count: a queue is no failure.
    clock : callable
        The present in seconds.
    draw : callable
        Returns a random number from 0 to 1, for the jitter.
    """

    attempts: int = 6
    timeout: float = 180.0
    clock: Callable[[], float] = time.monotonic
    draw: Callable[[], float] = random.random

    def next_wait(self, error: BaseException, failures: int, elapsed: float) -> float | None:
        """Return the seconds to wait before the next attempt; None if there is none.

        If the service stated a longer wait, the budget waits instead, and the result is 0. If the
        stated wait is longer than `timeout` (or, if the service is down, than what is left of it),
        there is no further attempt.

        - ``error``: the last failure
        - ``failures``: the number of failures so far
        - ``elapsed``: seconds since the first attempt, without waits for the budget or a quota
        """
        is_temporary = isinstance(error, ServiceDown | RateLimited | Unreachable | AnswerDamaged)
        is_starting = isinstance(error, Unreachable) and error.has_no_service
        left = (_LOCAL_START if is_starting else self.timeout) - elapsed
        stated = _stated_wait(error)
        longest = left if counts_as_failed_time(error) else self.timeout
        if not is_temporary or left <= 0 or stated > longest:
            return None
        if isinstance(error, RateLimited) and not error.retry_after:
            wait = _QUOTA_WAITS[min(failures, len(_QUOTA_WAITS)) - 1] * (1 + self.draw() / 4)
        else:
            wait = min(_LONGEST, _FIRST * 2.0 ** (failures - 1)) + self.draw()
        return 0.0 if not _is_waiting() or stated >= wait else min(wait, left)

    def requested_wait(self, error: BaseException) -> float:
        """Return the seconds for which the service asked to wait; 0 if it did not ask."""
        stated = _stated_wait(error)
        # A longer wait belongs to the limit of one operation: other requests need not wait.
        return stated if stated <= self.timeout and _is_waiting() else 0.0


def _stated_wait(error: BaseException) -> float:
    """Return the seconds to wait that the service stated, 0 if it stated none."""
    return (error.retry_after or 0.0) if isinstance(error, RateLimited | ServiceDown) else 0.0


def counts_as_failed_time(error: BaseException) -> bool:
    """Return whether the time limit includes the wait that a failure states: service is down."""
    return isinstance(error, ServiceDown) and bool(error.retry_after)


def _is_waiting() -> bool:
    """Return whether to wait. If a test switches off the waits of stamina, there are none."""
    return stamina.is_active() and not stamina.is_testing()


def retry_cause(error: BaseException) -> str:
    """Return in a word or two why a request has to be sent again."""
    if isinstance(error, ServiceError):
        return "rate limit" if error.status == 200 else str(error.status)
    return error.cause if isinstance(error, Unreachable) else "answer cut short"
