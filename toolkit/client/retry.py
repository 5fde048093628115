"""Which failures are asked again, and when."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

import stamina

from toolkit.errors import RateLimited, ServiceDown, Unreachable

__all__ = ["Retry"]

T = TypeVar("T")

# Where an application configures logging it sees the retries; elsewhere they are no news.
logging.getLogger("stamina").addHandler(logging.NullHandler())

_LONGEST: Final = 120.0  # seconds; a quota is counted by the minute


@dataclass(frozen=True, slots=True)
class Retry:
    """Asks again after failures that may pass: exponential waits with jitter, both capped.

    Parameters
    ----------
    attempts : int
        The most tries, the first one included.
    timeout : float
        Seconds after which no further try is begun.
    """

    attempts: int = 6
    timeout: float = 180.0

    def call(self, ask: Callable[[], T], on_retry: Callable[[], None]) -> T:
        """Call `ask` until it answers, and `on_retry` before every further try."""
        for attempt in stamina.retry_context(
            on=self._pause,
            attempts=self.attempts,
            timeout=self.timeout,
            wait_initial=0.25,
            wait_max=20.0,
            wait_jitter=1.0,
        ):
            with attempt:
                if attempt.num > 1:
                    on_retry()
                return ask()
        raise AssertionError("a retry context always tries at least once")  # pragma: no cover

    def _pause(self, error: Exception) -> bool | float:
        """Say whether to ask again, or how many seconds to wait where the service said so."""
        if isinstance(error, RateLimited) and error.retry_after is not None:
            return min(error.retry_after, self.timeout, _LONGEST)
        return isinstance(error, ServiceDown | RateLimited | Unreachable)
