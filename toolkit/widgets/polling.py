"""Looking again and again, on one daemon thread that can be stopped at once."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["Poller"]


@dataclass(frozen=True, slots=True)
class _Run:
    """What one start began: whether it was stopped, and what ends its pauses."""

    stopped: threading.Event = field(default_factory=threading.Event)
    woken: threading.Event = field(default_factory=threading.Event)

    def wanted(self) -> bool:
        return not self.stopped.is_set()


class Poller:
    """Calls a function again and again until it is stopped.

    Parameters
    ----------
    look : callable
        What to do. It is given a function that tells whether it is still wanted: an answer that
        comes after the stop is not to be shown. It must not raise.
    pause : callable
        Seconds between the end of one look and the next.
    most : int
        The most looks of one start: whoever walks away does not poll for ever.
    on_end : callable
        Called where they are done, not when it is stopped.
    """

    def __init__(
        self,
        look: Callable[[Callable[[], bool]], None],
        pause: Callable[[], float],
        *,
        most: int,
        on_end: Callable[[], None],
    ) -> None:
        self._look = look
        self._pause = pause
        self._most = most
        self._on_end = on_end
        self._lock = threading.Lock()
        self._run: _Run | None = None

    @property
    def running(self) -> bool:
        """Whether it looks."""
        return self._run is not None

    def start(self) -> None:
        """Begin to look; does nothing where it already does."""
        with self._lock:
            if self._run is not None:
                return
            self._run = run = _Run()
        threading.Thread(target=self._go, args=(run,), name="poll", daemon=True).start()

    def stop(self) -> None:
        """Stop: at once, whatever the thread waits for; its last answer is not shown."""
        with self._lock:
            run, self._run = self._run, None
        if run is not None:
            run.stopped.set()
            run.woken.set()

    def wake(self) -> None:
        """Look now instead of at the end of the pause."""
        run = self._run
        if run is not None:
            run.woken.set()

    def _go(self, run: _Run) -> None:
        for _ in range(self._most):
            self._look(run.wanted)
            run.woken.wait(self._pause())
            if run.stopped.is_set():
                return
            run.woken.clear()
        with self._lock:
            if self._run is not run:
                return
            self._run = None
        self._on_end()
