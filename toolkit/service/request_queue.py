"""The queue of requests: worker threads compute responses, and every key gets its turn."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

__all__ = ["RequestQueue"]

_Work = tuple[Callable[[], Any], Callable[[Any], None]]
"""A function that computes a response, and one that takes it."""


class RequestQueue:
    """Requests that wait for a worker thread, by key.

    The next request is always one of the key that has waited for its turn the longest, so a key
    with many requests delays the others by one request at most. All methods are called on the
    event loop, so they need no lock.

    Parameters
    ----------
    loop : asyncio.AbstractEventLoop
        The event loop on which responses are delivered.
    workers : int
        Requests that are computed at once.
    workers_per_key : int
        Requests of one key that are computed at once.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, workers: int, workers_per_key: int) -> None:
        self._loop = loop
        self._workers = workers
        self._workers_per_key = workers_per_key
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="request")
        self._running: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[_Work]] = OrderedDict()

    def add(self, key: str, compute: Callable[[], Any], deliver: Callable[[Any], None]) -> None:
        """Add a request of a key.

        `compute` runs on a worker thread; `deliver` receives its result on the event loop.
        """
        self._waiting.setdefault(key, deque()).append((compute, deliver))
        self._start_next()

    def close(self) -> None:
        """Drop the requests that wait, and end the threads after what they compute."""
        self._waiting.clear()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _start_next(self) -> None:
        """Start a request on each free worker, in turns of the keys."""
        while self._running.total() < self._workers and (key := self._next_key()):
            self._running[key] += 1
            requests = self._waiting.pop(key)
            compute, deliver = requests.popleft()
            if requests:
                self._waiting[key] = requests  # at the end: the other keys come first
            done = self._pool.submit(compute)
            done.add_done_callback(partial(self._announce_end, key, deliver))

    def _next_key(self) -> str | None:
        return next(
            (key for key in self._waiting if self._running[key] < self._workers_per_key), None
        )

    def _announce_end(self, key: str, deliver: Callable[[Any], None], done: "Future[Any]") -> None:
        """Pass a result from a worker thread to the event loop."""
        if not done.cancelled():
            self._loop.call_soon_threadsafe(self._finish, key, deliver, done.result())

    def _finish(self, key: str, deliver: Callable[[Any], None], result: Any) -> None:
        self._running[key] -= 1
        if not self._running[key]:
            del self._running[key]
        self._start_next()
        deliver(result)
