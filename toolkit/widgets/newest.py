"""Views computed beside the kernel's main thread; of several requests the last one wins."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

__all__ = ["Newest"]

Request = TypeVar("Request")


class Newest(Generic[Request]):
    """Answers requests one after the other, on a thread that lives while there are any.

    A request that comes while another one is answered replaces those that wait. Requests may
    come from any thread.

    Parameters
    ----------
    answer : callable
        Called with a request, and with a function that tells whether it is still the newest:
        what is not is not to be shown. It must not raise.
    """

    def __init__(self, answer: Callable[[Request, Callable[[], bool]], None]) -> None:
        self._answer = answer
        self._changed = threading.Condition()
        self._waiting: tuple[int, Request] | None = None
        self._number = 0
        self._working = False

    def ask(self, request: Request) -> None:
        """Have a request answered; returns at once."""
        with self._changed:
            self._number += 1
            self._waiting = (self._number, request)
            if self._working:
                return
            self._working = True
        threading.Thread(target=self._work, name="widget view", daemon=True).start()

    def drop(self) -> None:
        """Forget what waits, and show nothing of what is being answered."""
        with self._changed:
            self._number += 1
            self._waiting = None

    def settle(self, seconds: float | None = None) -> bool:
        """Wait until every request is answered; tells whether that is so."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._working, seconds)

    def _work(self) -> None:
        while (taken := self._take()) is not None:
            number, request = taken
            self._answer(request, partial(self._is_newest, number))

    def _is_newest(self, number: int) -> bool:
        return number == self._number

    def _take(self) -> tuple[int, Request] | None:
        with self._changed:
            taken, self._waiting = self._waiting, None
            if taken is None:
                self._working = False
                self._changed.notify_all()
            return taken
