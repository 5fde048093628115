"""Polling: ask the cheap operation often, the heavy one only when something changed."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd

from toolkit.errors import NotReady
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
    seen: pd.DataFrame | None = None
    done = 0
    while rounds is None or done < rounds:
        if done:
            wait(seconds)
        done += 1
        try:
            stamp = timestamp_fetch(session=session)
            if seen is None or not stamp.equals(seen):
                yield fetch(*arguments, **named)
                seen = stamp
        except NotReady:
            continue
