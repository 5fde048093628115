"""The live monitor: the depth ladder and the TWAPs of a market, updated at an interval."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import ipywidgets as ipw

from toolkit.client import Session, current_session
from toolkit.client.retry import Retry
from toolkit.fetch.markets import market_code
from toolkit.widgets import monitor_view as views
from toolkit.widgets.fetcher import Fetcher, bind_session, limit_calls, list_choices
from toolkit.widgets.monitor_view import EVERY, MonitorRequest, MonitorView
from toolkit.widgets.panel import PanelWidget, make_control, push_button
from toolkit.widgets.threads import Poller

_MAX_UPDATES: Final = 3_600  # after one start: an hour of one update a second


class LiveMonitor(PanelWidget[MonitorView]):
    """A widget that watches a market; returned by `live_monitor`.

    Attributes
    ----------
    view : MonitorView or None
        The view: `view.depth` and `view.twaps`, each with `rows`, `good_at` and `problem`.
    widget : ipywidgets.VBox
        The widget, to place it next to others.
    """

    def __init__(
        self,
        request: MonitorRequest,
        coins: Sequence[str],
        every: str,
        fetch: Fetcher,
        now_ms: Callable[[], int],
    ) -> None:
        self._fetch, self._now_ms = fetch, now_ms
        choose = partial(make_control, ipw.Dropdown)
        self._coin = choose("Market", "Market to watch", options=coins, value=request.coin)
        self._every = choose("Every", "Pause between two updates", options=[*EVERY], value=every)
        self._switch = push_button("Start", "Start or stop updates")
        super().__init__([self._switch, self._coin, self._every])
        self._poller = Poller(
            self._update,
            lambda: EVERY[self._every.value],
            most=_MAX_UPDATES,
            on_end=self._show_state,
        )
        self._switch.on_click(lambda _: self.stop() if self.running else self.start())
        for control in (self._coin, self._every):
            control.observe(self._on_change, "value")
        self._show_state()

    @property
    def running(self) -> bool:
        """Whether it updates its view."""
        return self._poller.running

    @property
    def request(self) -> MonitorRequest:
        """The request of the controls."""
        return MonitorRequest(self._coin.value)

    @property
    def code(self) -> str:
        """The code of the view, without a widget."""
        return super().code or MonitorView(self.request).code

    def start(self) -> "LiveMonitor":
        """Start the updates, and return at once."""
        self._poller.start()
        self._show_state()
        return self

    def stop(self) -> "LiveMonitor":
        """Stop the updates at once, also during a request."""
        self._poller.stop()
        self._show_state()
        return self

    def look(self) -> "LiveMonitor":
        """Update the view once, and wait for it."""
        self._update(lambda: True)
        return self

    def close(self) -> None:
        """Stop the updates, and remove the widget from the notebook."""
        self._poller.stop()
        super().close()

    def __repr__(self) -> str:
        return f"tk.widgets.live_monitor({self.request.coin!r}, every={self._every.value!r})"

    def _on_change(self, _: object) -> None:
        """Update at once after a change of the controls."""
        self._poller.wake()
        self._show_state()

    def _update(self, is_active: Callable[[], bool]) -> None:
        request = self.request
        view = views.monitor_view(request, self._fetch, self._now_ms(), self.view)
        html = views.monitor_html(view)
        with self._lock:
            if is_active() and request == self.request:
                self.view = view
                self._show(view, html)
                self._show_state()

    def _show_state(self) -> None:
        """Show whether it updates, the time of the last good answer, and errors."""
        with self._lock:
            view = self.view or MonitorView(self.request)
            self._switch.description = "Stop" if self.running else "Start"
            state = f"Updates every {self._every.value}" if self.running else "Stopped"
            words = f"{state}; last good answer: {views.clock_time(view.good_at)}."
            self._show_status(words, views.list_problems(view))


def live_monitor(
    coin: str = "BTC",
    *,
    every: str = "5s",
    coins: str | Sequence[str] | None = None,
    session: Session | None = None,
) -> LiveMonitor:
    """Watch a market: the depth ladder, and the progress of its TWAPs.

    An update costs 5 points for depth (an add-on), 2 for the TWAPs, and 2 more if their snapshot
    has changed. The list of coins costs 2 points once. The monitor stops after 3,600 updates.

    Parameters
    ----------
    coin : str, default "BTC"
        The market: plain on the native dex, ``<dex>:<symbol>`` on a builder-deployed one.
    every : {"1s", "2s", "5s", "15s", "60s"}, default "5s"
        Pause between two updates.
    coins : str or sequence of str, optional
        Markets to choose from; by default the perps of the native dex, and of a local source also
        those of its other dexes.
    session : Session, optional
        Session to fetch with; by default that of `tk.connect` or `tk.local`.

    Returns
    -------
    LiveMonitor
        To show it, write it as the last line of a cell. Its button starts and stops it, as do its
        methods ``start()``, which returns at once, and ``stop()``. The end of a ``with`` block
        closes it.

    Raises
    ------
    ToolkitError
        If the list of coins cannot be fetched. The widget shows later errors as text, with the
        last view, until the next answer.

    Notes
    -----
    It updates on a thread of its own, so that cells and other widgets can run. A failed request is
    not repeated before the next update. TWAP snapshots may be fetched 5 times in 10 minutes; with a
    session that has a quota, the widget shows a message instead of a sixth call.

    Examples
    --------
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny", default=False)
    >>> with live_monitor("BTC", session=session) as monitor:
    ...     monitor.look().view.depth.rows["bps"].tolist()
    [10, 25, 50, 100, 200, 500]
    """
    if every not in EVERY:
        raise ValueError(f"unknown every={every!r}; choose one of {', '.join(EVERY)}")
    # Progress bars cannot be shown on a widget's thread.
    session = replace(current_session(session), progress=False)
    coin = market_code(session, coin)
    choices = [*list_choices(session, coins, coin)]
    fetch = bind_session(replace(session, retry=Retry(attempts=1)))
    if session.budget.per_minute is not None:  # the service then limits snapshots separately
        fetch = limit_calls(fetch)
    return LiveMonitor(MonitorRequest(coin), choices, every, fetch, session.now_ms)
