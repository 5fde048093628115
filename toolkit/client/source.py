"""The source of data: what is known of the service that answers.

A service of this package states in the headers of its answers what its present is, what it is
called and whether it is simulated. Any other service states nothing. Then the arguments of
`tk.connect` count, and its present is the wall clock's.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from toolkit.completeness.headers import read_source

__all__ = ["DataSource"]


@dataclass(eq=False)
class DataSource:
    """What is known of the service that answers.

    Attributes
    ----------
    label : str
        Its name.
    simulated : bool
        Whether its data is simulated.
    has_own_label : bool
        Whether the user chose the label, so that the service's own label does not count.
    own_now_ms : callable or None
        The present, if the user chose it.
    in_process : bool
        Whether it answers in this process, as `tk.local` does.
    history : str
        What the service says that may be missing, for provenance.
    """

    label: str
    simulated: bool
    has_own_label: bool = False
    own_now_ms: Callable[[], int] | None = None
    in_process: bool = field(default=False, init=False)
    history: str = field(default="", init=False)
    _stated_ms: int | None = field(default=None, init=False)
    _runs_from: float | None = field(default=None, init=False)
    _is_known: bool = field(default=False, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _first_contact: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def update_from_headers(self, headers: Mapping[str, str]) -> None:
        """Update from the headers of an answer; their names are in lower case."""
        self._is_known = True
        stated = read_source(headers)
        if stated is None:
            return
        with self._lock:
            self._stated_ms = stated.now_ms
            self._runs_from = time.monotonic() if stated.is_live else None
        self.simulated = self.simulated or stated.simulated
        if stated.label and not self.has_own_label:
            self.label = stated.label
        self.history = stated.history

    def stated_now_ms(self) -> int | None:
        """Return the present that the service stated, in Unix milliseconds; None if it did not."""
        with self._lock:
            if self._stated_ms is None or self._runs_from is None:
                return self._stated_ms
            return self._stated_ms + int((time.monotonic() - self._runs_from) * 1_000)

    def now_ms(self, introduce: Callable[[], None]) -> int:
        """Return the present: the user's, else the service's, else the wall clock's.

        Before the first answer `introduce` is called once; it may send a request.
        """
        if self.own_now_ms is not None:
            return self.own_now_ms()
        with self._first_contact:  # other threads wait for what the service states
            if not self._is_known:
                introduce()
                self._is_known = True
        stated = self.stated_now_ms()
        return time.time_ns() // 1_000_000 if stated is None else stated
