"""Which failures are asked again, and when."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

import stamina

from toolkit.errors import AnswerDamaged, RateLimited, ServiceDown, Unreachable

__all__ = ["Retry"]

T = TypeVar("T")

# Where an application configures logging it sees the retries; elsewhere they are no news.
logging.getLogger("stamina").addHandler(logging.NullHandler())

_LONGEST: Final = 120.0  # seconds; a quota is counted by the minute
_NOTED: Final = 0.01  # seconds; what is shorter is no wait but the time that a call takes


@dataclass(frozen=True, slots=True)
class Retry:
    """Asks again after failures that may pass: exponential waits with jitter, both capped.

    Parameters
    ----------
    attempts : int
        The most tries, the first one included.
    timeout : float
        Seconds after which no further try is begun, those not counted that were waited for the
        budget: a queue is no failure.
    clock : callable
        The present in seconds.
    """

    attempts: int = 6
    timeout: float = 180.0
    clock: Callable[[], float] = time.monotonic

    def call(
        self,
        ask: Callable[[], T],
        on_retry: Callable[[Exception, float], None],
        queued: Callable[[], float] = float,
    ) -> T:
        """Call `ask` until it answers; `on_retry` before every further try.

        Parameters
        ----------
        ask : callable
            What to do.
        on_retry : callable
            Told the failure, and the seconds that were waited after it.
        queued : callable, optional
            Gives the seconds that `ask` has waited for the budget so far.
        """
        failure: Exception | None = None
        failed_at, begun = 0.0, self.clock()

        def pause(error: Exception) -> bool | float:
            late = self.clock() - begun - queued() > self.timeout
            return False if late else self._pause(error)

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
                    on_retry(failure, waited if waited >= _NOTED else 0.0)
                try:
                    return ask()
                except Exception as error:
                    failure, failed_at = error, self.clock()
                    raise
        raise AssertionError("a retry context always tries at least once")  # pragma: no cover

    def told_to_wait(self, error: Exception) -> float:
        """Give the seconds that the service asked to wait; 0 where it said nothing.

        Whoever switches stamina's waiting off, as tests do, switches this one off too.
        """
        if not isinstance(error, RateLimited) or error.retry_after is None:
            return 0.0
        if error.retry_after > self.timeout:  # of one operation: the others need not wait
            return 0.0
        if stamina.is_testing() or not stamina.is_active():
            return 0.0
        return min(error.retry_after, self.timeout, _LONGEST)

    def _pause(self, error: Exception) -> bool | float:
        """Return whether to ask again; where the service said when, the budget does the waiting.

        A wait that is longer than all tries together is not begun.
        """
        if isinstance(error, RateLimited) and error.retry_after is not None:
            return 0.0 if error.retry_after <= self.timeout else False
        return isinstance(error, ServiceDown | RateLimited | Unreachable | AnswerDamaged)
