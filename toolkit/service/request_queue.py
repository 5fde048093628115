"""The queue of requests: worker threads compute responses, and every key gets its turn."""

import asyncio
import contextlib
import logging
import queue
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Any

__all__ = ["RequestQueue"]

_Work = tuple[Callable[[], Any], Callable[[Any], None]]
"""A function that computes a response, and a function that receives it."""

_log = logging.getLogger(__name__)


class RequestQueue:
    """Requests that wait for a worker thread, by key.

    The keys take turns: the next request is from the key that has waited the longest. So a key with
    many requests delays each other key by at most one request. All methods are called on the event
    loop, so they need no lock.

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
        self._running: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[_Work]] = OrderedDict()
        self._handed_over: queue.SimpleQueue[tuple[str, _Work] | None] = queue.SimpleQueue()
        for _ in range(workers):
            # A daemon does not keep the process alive, even if its request takes long.
            threading.Thread(target=self._compute_requests, daemon=True).start()

    def add(self, key: str, compute: Callable[[], Any], deliver: Callable[[Any], None]) -> None:
        """Add a request of a key.

        `compute` runs on a worker thread. `deliver` receives its result on the event loop, or None
        if `compute` raised an error.
        """
        self._waiting.setdefault(key, deque()).append((compute, deliver))
        self._start_next()

    def close(self) -> None:
        """Drop the waiting requests. Each thread ends after its current request."""
        self._waiting.clear()
        for _ in range(self._workers):
            self._handed_over.put(None)

    def _start_next(self) -> None:
        """Start a request on each free worker, in turns of the keys."""
        while self._running.total() < self._workers and (key := self._next_key()) is not None:
            self._running[key] += 1
            requests = self._waiting.pop(key)
            self._handed_over.put((key, requests.popleft()))
            if requests:
                self._waiting[key] = requests  # at the end: the other keys come first

    def _next_key(self) -> str | None:
        return next(
            (key for key in self._waiting if self._running[key] < self._workers_per_key), None
        )

    def _compute_requests(self) -> None:
        """Compute one request after the other, on a worker thread."""
        while (started := self._handed_over.get()) is not None:
            key, (compute, deliver) = started
            try:
                result = compute()
            except Exception:  # no fault of a request may end its worker
                _log.exception("a request failed")
                result = None
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._finish, key, deliver, result)

    def _finish(self, key: str, deliver: Callable[[Any], None], result: Any) -> None:
        self._running[key] -= 1
        if not self._running[key]:
            del self._running[key]
        self._start_next()
        deliver(result)
