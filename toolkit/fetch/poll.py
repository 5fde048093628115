"""Polling: fetch the cheap operation often, and the expensive one only after a change."""

import itertools
import time
from collections.abc import Callable, Iterator
from typing import cast

import pandas as pd

from toolkit.client import Session, current_session
from toolkit.contract.operations import known_operation
from toolkit.errors import NotReady, RateLimited
from toolkit.public_names import publish_as
from toolkit.times import SECOND, to_ms


@publish_as("toolkit")
def poll(
    timestamp_fetch: Callable[..., pd.DataFrame],
    fetch: Callable[..., pd.DataFrame],
    *arguments: object,
    every: str | int = "15s",
    rounds: int | None = None,
    wait: Callable[[float], object] = time.sleep,
    **named: object,
) -> Iterator[pd.DataFrame]:
    """Yield a new snapshot whenever there is one.

    Parameters
    ----------
    timestamp_fetch : callable
        The fetch function of the cheap operation, such as `account_value_snapshot_timestamp`.
    fetch : callable
        The fetch function of the expensive operation, such as `account_value_snapshots`.
    *arguments, **named
        Arguments of `fetch`; `session` goes to both functions.
    every : str or int, default "15s"
        Time between two polls: text such as ``"30s"``, or whole milliseconds.
    rounds : int, optional
        Number of polls; by default polling does not end.
    wait : callable, optional
        A function that waits for a number of seconds. With the ``wait`` of a `threading.Event`,
        another thread can end the wait.

    Yields
    ------
    DataFrame
        The frame of `fetch`, once per snapshot. If a newer snapshot appears between the poll and
        the fetch, the frame has the newer one, and it is not fetched again.

    Notes
    -----
    While there is no snapshot at all (404), polling continues.

    Each kind of snapshot can be requested 5 times in 10 minutes. If this limit is reached, or if
    the service refuses a snapshot (429), polling continues, and fetches the newest snapshot later.
    `tk.local` and services of simulated data have no limit, unless the session has
    ``points_per_minute``.

    Examples
    --------
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny")
    >>> looks = tk.poll(tk.meta, tk.meta, rounds=3, wait=lambda seconds: None)
    >>> len(list(looks))                            # nothing changes between the looks
    1
    """
    seconds = (-to_ms(every, now_ms=0) if isinstance(every, str) else every) / SECOND
    if seconds <= 0:
        raise ValueError(f"every must be longer than 0, not {every!r}")
    given = cast("Session | None", named.get("session"))
    limit = known_operation(getattr(fetch, "__operation__", "")).limit
    calls: list[float] = []  # when the last snapshots came, in seconds that were waited
    last_stamp: pd.DataFrame | None = None
    last_ids: set[str] = set()
    for poll in itertools.count() if rounds is None else range(rounds):
        if poll:
            wait(seconds)
        now = poll * seconds
        try:
            stamp = timestamp_fetch(session=given)
        except NotReady:
            continue
        try:
            is_known = last_stamp is not None and stamp.equals(last_stamp)
            if is_known or (last_ids and _snapshot_ids(stamp) == last_ids):
                continue
            if limit is not None:
                calls = [call for call in calls if now - call < limit.seconds]
                session = current_session(given)
                # Without a quota, a service of simulated data has no limit.
                is_limited = session.budget.per_minute is not None or not (
                    session.source.in_process or session.simulated
                )
                if is_limited and len(calls) >= limit.calls:
                    continue
            snapshot = fetch(*arguments, **named)
        except NotReady:
            continue
        except RateLimited:
            if limit is None:
                raise
            continue
        calls.append(now)
        ids = _snapshot_ids(snapshot)
        if ids and ids == last_ids:
            continue  # the service still answers with the snapshot before
        # The snapshot can be newer than the stamp: another one may appear between the two requests.
        last_stamp, last_ids = stamp, ids
        yield snapshot


def _snapshot_ids(answer: object) -> set[str]:
    """Return the ids of the snapshots in a frame; an empty set if no row has one."""
    if not isinstance(answer, pd.DataFrame) or "snapshot_id" not in answer.columns:
        return set()
    return set(answer["snapshot_id"].unique())
