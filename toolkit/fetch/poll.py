"""Polling: ask the cheap operation often, the heavy one only when something changed."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd

from toolkit.client import Session, current_session
from toolkit.contract.operations import OPERATIONS
from toolkit.errors import NotReady, RateLimited
from toolkit.times import SECOND, to_ms

__all__ = ["poll"]


def poll(
    timestamp_fetch: Callable[..., pd.DataFrame],
    fetch: Callable[..., pd.DataFrame],
    *arguments: Any,
    every: str | int = "15s",
    rounds: int | None = None,
    wait: Callable[[float], object] = time.sleep,
    **named: Any,
) -> Iterator[pd.DataFrame]:
    """Give a new snapshot whenever there is one.

    Parameters
    ----------
    timestamp_fetch : callable
        The cheap operation, such as `account_value_snapshot_timestamp`.
    fetch : callable
        The heavy one, such as `account_value_snapshots`.
    *arguments, **named
        What `fetch` is called with; `session` goes to both.
    every : str or int, default "15s"
        Time between two looks: text such as ``"30s"``, or whole milliseconds.
    rounds : int, optional
        How often to look; for ever when not given.
    wait : callable, optional
        How to wait, given seconds; an ``Event.wait`` can be woken.

    Yields
    ------
    DataFrame
        The frame of `fetch`, once per snapshot.

    Notes
    -----
    While there is no snapshot at all (404) it goes on looking.

    The heavy snapshots may be asked 5 times in 10 minutes, and polling keeps to that: while the
    limit is reached, it goes on looking, and then fetches the newest snapshot. Only `tk.local` and
    services of simulated data have no limit, unless the session has ``points_per_minute``. If the
    service itself refuses a snapshot (429), polling goes on looking, too.

    Examples
    --------
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny")
    >>> looks = tk.poll(tk.meta, tk.meta, rounds=3, wait=lambda seconds: None)
    >>> len(list(looks))                            # nothing changes between the looks
    1
    """
    pause = -to_ms(every, now_ms=0) if isinstance(every, str) else every
    seconds = pause / SECOND
    if seconds <= 0:
        raise ValueError(f"every must be a time longer than nothing, not {every!r}")
    session = named.get("session")
    pace = _Pace(fetch, session)
    seen: pd.DataFrame | None = None
    done = 0
    while rounds is None or done < rounds:
        if done:
            wait(seconds)
            pace.pass_time(seconds)
        done += 1
        try:
            stamp = timestamp_fetch(session=session)
        except NotReady:
            continue
        if (seen is not None and stamp.equals(seen)) or not pace.has_room():
            continue
        try:
            snapshot = fetch(*arguments, **named)
        except NotReady:
            continue
        except RateLimited:
            if pace.limit is None:
                raise
            continue
        pace.count()
        seen = stamp
        yield snapshot


class _Pace:
    """Keeps the heavy operation to its own limit, counted in the time that polling waits.

    That time is never longer than what the clock of the service counts.
    """

    def __init__(self, fetch: Callable[..., Any], session: Session | None) -> None:
        type = getattr(fetch, "__operation__", "")
        self.limit = OPERATIONS[type].limit if type in OPERATIONS else None
        self._session = session
        self._ages: deque[float] = deque()  # seconds since each of the last calls

    def pass_time(self, seconds: float) -> None:
        """Note that so many seconds went by."""
        self._ages = deque(age + seconds for age in self._ages)

    def has_room(self) -> bool:
        """Whether one more call keeps to the limit."""
        if self.limit is None or not _is_limited(self._session):
            return True
        window = self.limit.seconds
        self._ages = deque(age for age in self._ages if age < window)
        return len(self._ages) < self.limit.calls

    def count(self) -> None:
        """Note a call."""
        self._ages.append(0.0)


def _is_limited(session: Session | None) -> bool:
    """Return whether the service counts; an answer may have told that its data is simulated."""
    asked = current_session(session)
    unlimited = asked.source.in_process or asked.simulated
    return asked.budget.per_minute is not None or not unlimited
