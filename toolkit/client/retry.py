"""Retries: after which failures a request is sent again, and when."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

import stamina

from toolkit.errors import AnswerDamaged, RateLimited, ServiceDown, Unreachable

__all__ = ["Retry"]

T = TypeVar("T")

# An application that configures logging sees the retries; otherwise they are not logged.
logging.getLogger("stamina").addHandler(logging.NullHandler())

_LONGEST: Final = 120.0  # seconds; a quota is counted by the minute
_SHORTEST: Final = 0.01  # seconds; a shorter pause is the time of the call itself


@dataclass(frozen=True, slots=True)
class Retry:
    """Retries after failures that may pass.

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

    def call(
        self,
        send: Callable[[], T],
        on_retry: Callable[[Exception, float], None],
        queued: Callable[[], float] = float,
    ) -> T:
        """Call `send` until it succeeds.

        Parameters
        ----------
        send : callable
            The function to call.
        on_retry : callable
            Called before every further attempt, with the failure and the seconds waited after it.
        queued : callable, optional
            Returns the seconds that `send` has waited for the budget so far.
        """
        failure: Exception | None = None
        failed_at, begun = 0.0, self.clock()

        def pause(error: Exception) -> bool | float:
            is_late = self.clock() - begun - queued() > self.timeout
            return False if is_late else self._pause(error)

        for attempt in stamina.retry_context(
            on=pause,
            attempts=self.attempts,
            timeout=None,
            wait_initial=0.25,
            wait_max=20.0,
            wait_jitter=1.0,
        ):
            with attempt:
                if failure is not None:
                    waited = self.clock() - failed_at
                    on_retry(failure, waited if waited >= _SHORTEST else 0.0)
                try:
                    return send()
                except Exception as error:
                    failure, failed_at = error, self.clock()
                    raise
        raise AssertionError("a retry context always tries at least once")  # pragma: no cover

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

    def _pause(self, error: Exception) -> bool | float:
        """Return whether to retry. If the service named a wait, the budget does the waiting.

        If the service asks for a wait longer than `timeout`, there is no retry.
        """
        if isinstance(error, RateLimited) and error.retry_after is not None:
            return 0.0 if error.retry_after <= self.timeout else False
        return isinstance(error, ServiceDown | RateLimited | Unreachable | AnswerDamaged)
