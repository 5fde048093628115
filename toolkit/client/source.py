"""Who answers: as it was given, else as the service says of itself in the headers of its answers.

A service of this package says what its present is, what it is called and whether it is invented.
Any other service says nothing, and is what it was given as; its present is the wall clock's.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

__all__ = ["Source"]

_LONGEST_WORDS: Final = 200
_LONGEST_TIME: Final = 15  # digits of milliseconds; thirty thousand years


@dataclass(eq=False)
class Source:
    """What is known of who answers.

    Attributes
    ----------
    label : str
        What it is called.
    simulated : bool
        Whether it is invented.
    given_label : bool
        Whether the label was given, so that the service's own does not count.
    given_now_ms : callable or None
        Gives the present, where that was given.
    in_process : bool
        Whether it answers in this process, as `tk.local` does.
    history : str
        What the service says that it may lack, for provenance.
    """

    label: str
    simulated: bool
    given_label: bool = False
    given_now_ms: Callable[[], int] | None = None
    in_process: bool = field(default=False, init=False)
    history: str = field(default="", init=False)
    _told: int | None = field(default=None, init=False)
    _runs_from: float | None = field(default=None, init=False)
    _introduced: bool = field(default=False, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _meeting: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def hear(self, headers: Mapping[str, str]) -> None:
        """Take note of what an answer says of its service; `headers` has names in lower case."""
        self._introduced = True
        now = headers.get("x-toolkit-now", "")
        if not (now.isascii() and now.isdigit() and len(now) <= _LONGEST_TIME):
            return
        runs = headers.get("x-toolkit-clock") == "live"
        with self._lock:
            self._told, self._runs_from = int(now), time.monotonic() if runs else None
        self.simulated = self.simulated or headers.get("x-toolkit-simulated") == "true"
        if (label := _words(headers, "x-toolkit-source")) and not self.given_label:
            self.label = label
        self.history = _words(headers, "x-toolkit-history")

    def told_now_ms(self) -> int | None:
        """Give the present of the service, in Unix milliseconds, if it has told."""
        with self._lock:
            if self._told is None or self._runs_from is None:
                return self._told
            return self._told + int((time.monotonic() - self._runs_from) * 1_000)

    def now_ms(self, introduce: Callable[[], None]) -> int:
        """Give the present: as given, as the service told, or the wall clock's.

        Before the first answer `introduce` is called, once: it may ask who is there.
        """
        if self.given_now_ms is not None:
            return self.given_now_ms()
        with self._meeting:  # threads that come meanwhile wait for what it says
            if not self._introduced:
                introduce()
                self._introduced = True
        told = self.told_now_ms()
        return time.time_ns() // 1_000_000 if told is None else told


def _words(headers: Mapping[str, str], name: str) -> str:
    """Read words that may stand below a figure; others count as none."""
    words = unquote(headers.get(name, ""))[:_LONGEST_WORDS]
    return words if words.isprintable() else ""
