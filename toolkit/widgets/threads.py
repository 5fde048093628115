"""Background threads of widgets: the newest of several requests, and polling."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

WidgetRequest = TypeVar("WidgetRequest")


class NewestRequestWorker(Generic[WidgetRequest]):
    """Answers requests one after the other, on a thread that ends when there are none.

    A request that comes while another one is answered replaces the waiting one. Requests may come
    from any thread.

    - ``answer``: called with a request and with a function that returns whether it is still the
      newest; an older one must not be shown. It must not raise.
    """

    def __init__(self, answer: Callable[[WidgetRequest, Callable[[], bool]], None]) -> None:
        self._answer = answer
        self._changed = threading.Condition()
        self._waiting: tuple[int, WidgetRequest] | None = None
        self._number = 0
        self._is_working = False

    def ask(self, request: WidgetRequest) -> None:
        """Answer a request on the thread, and return at once."""
        with self._changed:
            self._number += 1
            self._waiting = (self._number, request)
            if self._is_working:
                return
            self._is_working = True
        threading.Thread(target=self._answer_requests, name="widget view", daemon=True).start()

    def drop(self) -> None:
        """Drop the waiting request, and mark the current one as outdated."""
        with self._changed:
            self._number += 1
            self._waiting = None

    def settle(self, seconds: float | None = None) -> bool:
        """Wait until every request is answered. Return False if the time ran out."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._is_working, seconds)

    def _is_newest(self, number: int) -> bool:
        return number == self._number

    def _answer_requests(self) -> None:
        while True:
            with self._changed:
                taken, self._waiting = self._waiting, None
                if taken is None:
                    self._is_working = False
                    self._changed.notify_all()
                    return
            number, request = taken
            self._answer(request, partial(self._is_newest, number))


class Poller:
    """Calls a function repeatedly until it is stopped.

    - ``look``: called with a function that returns whether the poller still runs: an answer that
      comes after the stop must not be shown. It must not raise.
    - ``pause``: returns the seconds between the end of one call and the next
    - ``most``: maximum number of calls after one start, so that a forgotten poller ends
    - ``on_end``: called after the last of these calls, but not after a stop
    """

    def __init__(
        self,
        look: Callable[[Callable[[], bool]], None],
        pause: Callable[[], float],
        *,
        most: int,
        on_end: Callable[[], None],
    ) -> None:
        self._look, self._pause = look, pause
        self._most, self._on_end = most, on_end
        self._changed = threading.Condition()
        self._run: object | None = None  # a new object for each start
        self._is_woken = False

    @property
    def running(self) -> bool:
        """Whether it runs."""
        return self._run is not None

    def start(self) -> None:
        """Start the thread, unless it runs already."""
        with self._changed:
            if self._run is not None:
                return
            self._is_woken = False
            self._run = run = object()
        threading.Thread(target=self._poll, args=(run,), name="poll", daemon=True).start()

    def stop(self) -> None:
        """Stop at once, also during a call; its answer is not shown."""
        with self._changed:
            self._run = None
            self._changed.notify_all()

    def wake(self) -> None:
        """End the pause and call the function now."""
        with self._changed:
            self._is_woken = True
            self._changed.notify_all()

    def _poll(self, run: object) -> None:
        def is_active() -> bool:
            return self._run is run

        for _ in range(self._most):
            self._look(is_active)
            with self._changed:
                self._changed.wait_for(lambda: self._is_woken or not is_active(), self._pause())
                if not is_active():
                    return
                self._is_woken = False
        with self._changed:
            if not is_active():
                return
            self._run = None
        self._on_end()
