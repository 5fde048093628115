"""The live monitor: depth ladder and TWAP progress, looked at again and again."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from toolkit.client import Session, current_session
from toolkit.client.retry import Retry
from toolkit.contract.dexes import strip_native_dex
from toolkit.widgets.asking import Fetch, coins_of, listed, paced, quiet, through
from toolkit.widgets.monitor_page import clock, page, problems
from toolkit.widgets.monitor_view import EVERY, MonitorRequest, MonitorView, monitor_view
from toolkit.widgets.panel import Panel, button, choice
from toolkit.widgets.polling import Poller

__all__ = ["LiveMonitor", "live_monitor"]

_MOST: Final = 3_600  # looks of one start: an hour at one a second


class LiveMonitor:
    """A widget that watches a market; made by `live_monitor`.

    Attributes
    ----------
    view : MonitorView or None
        What is shown: `view.depth` and `view.twaps`, with `rows`, `good_at` and `problem`.
    widget : ipywidgets.VBox
        To lay it out beside others.
    """

    def __init__(
        self,
        request: MonitorRequest,
        coins: Sequence[str],
        every: str,
        fetch: Fetch,
        now_ms: Callable[[], int],
    ) -> None:
        self._fetch, self._now_ms = fetch, now_ms
        self.view: MonitorView | None = None
        self._coin = choice("Market", coins, request.coin, "Market to watch")
        self._every = choice("Every", list(EVERY), every, "Pause between two looks")
        self._switch = button("Start", "Start or stop looking")
        self._panel = Panel([self._switch, self._coin, self._every])
        self.widget = self._panel.widget
        self._poller = Poller(
            self._look, lambda: EVERY[self._every.value], most=_MOST, on_end=self._tell
        )
        self._switch.on_click(self._toggle)
        for one in (self._coin, self._every):
            one.observe(self._other, "value")
        self._tell()

    @property
    def running(self) -> bool:
        """Whether it looks."""
        return self._poller.running

    @property
    def request(self) -> MonitorRequest:
        """What the controls ask for."""
        return MonitorRequest(self._coin.value)

    @property
    def code(self) -> str:
        """The cell that asks for what is shown, without a widget."""
        return MonitorView(self.request).code if self.view is None else self.view.code

    def start(self) -> "LiveMonitor":
        """Begin to look; returns at once."""
        self._poller.start()
        self._tell()
        return self

    def stop(self) -> "LiveMonitor":
        """Stop looking: at once, also while an answer is awaited."""
        self._poller.stop()
        self._tell()
        return self

    def look(self) -> "LiveMonitor":
        """Look once, now, and wait for it."""
        self._look(lambda: True)
        return self

    def close(self) -> None:
        """Stop, and remove it from the notebook."""
        self._poller.stop()
        self._panel.close()

    def __enter__(self) -> "LiveMonitor":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"tk.widgets.live_monitor({self.request.coin!r}, every={self._every.value!r})"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        return self._panel.bundle(repr(self), **options)

    def _toggle(self, _: object) -> None:
        if self.running:
            self.stop()
        else:
            self.start()

    def _other(self, _: object) -> None:
        """Look at once where something else is asked for."""
        self._poller.wake()
        self._tell()

    def _look(self, wanted: Callable[[], bool]) -> None:
        request = self.request
        view = monitor_view(request, self._fetch, self._now_ms(), self.view)
        html = page(view)
        with self._panel.lock:
            if wanted() and request == self.request:
                self.view = view
                self._panel.show(html, view.code)
                self._tell()

    def _tell(self) -> None:
        """Say whether it looks, when it last had a good answer, and what is wrong."""
        with self._panel.lock:
            running, view = self.running, self.view
            self._switch.description = "Stop" if running else "Start"
            state = f"Looking every {self._every.value}" if running else "Not looking"
            good = None if view is None else view.good_at
            words = f"{state}; last good answer: {clock(good)}."
            self._panel.say(words, "" if view is None else problems(view))


def live_monitor(
    coin: str = "BTC",
    *,
    every: str = "5s",
    coins: str | Sequence[str] | None = None,
    session: Session | None = None,
) -> LiveMonitor:
    """Watch a market: a depth ladder, and the progress of its TWAPs.

    A look costs 5 points for depth (an add-on), 2 for the TWAPs, and 2 more where their snapshot
    has changed; 2 once for the list of coins. It stops by itself after 3,600 looks.

    Parameters
    ----------
    coin : str, default "BTC"
        The market: plain on the native dex, ``<dex>:<symbol>`` on a builder-deployed one.
    every : {"1s", "2s", "5s", "15s", "60s"}, default "5s"
        Pause between two looks.
    coins : str or sequence of str, optional
        The markets to choose from; the perps of the native dex when not given, and those of the
        other dexes of a local source.
    session : Session, optional
        Where to ask; the one of `tk.connect` or `tk.local` when not given.

    Returns
    -------
    LiveMonitor
        Displayed at the end of a cell, where its button starts and stops it; so do its methods
        ``start()``, which returns at once, and ``stop()``. At the end of a ``with`` it is closed.

    Raises
    ------
    ToolkitError
        If the list of coins cannot be had. Later failures are shown in words, with what was
        known before, until an answer comes.

    Notes
    -----
    It looks on a thread of its own, so that cells and other widgets go on. A failed request is
    not asked again before the next look. TWAP snapshots may be asked 5 times in 10 minutes; a
    session with a quota keeps to that, and the widget says so meanwhile.

    Examples
    --------
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny", default=False)
    >>> with live_monitor("BTC", session=session) as monitor:
    ...     monitor.look().view.depth.rows["bps"].tolist()
    [10, 25, 50, 100, 200, 500]
    """
    if every not in EVERY:
        raise ValueError(f"every must be one of {', '.join(EVERY)}, not {every!r}")
    session = current_session(session)
    coin = strip_native_dex(coin)
    names = coins_of(session, through(quiet(session))) if coins is None else listed(coins)
    once = replace(quiet(session), retry=Retry(attempts=1))
    named = list(dict.fromkeys([*names, coin]))
    fetch = through(once)
    if session.budget.per_minute is not None:  # then snapshots have a limit of their own
        fetch = paced(fetch)
    return LiveMonitor(MonitorRequest(coin), named, every, fetch, _wall_clock)


def _wall_clock() -> int:
    return time.time_ns() // 1_000_000
