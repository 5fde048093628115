"""The live monitor: the depth ladder and the TWAPs of a market, updated at an interval."""

import math
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from typing import Any, Final, Protocol

import ipywidgets as ipw
import pandas as pd

from toolkit.client import Session, current_session
from toolkit.client.retry import Retry
from toolkit.contract.dexes import coin_dex, join_coin
from toolkit.errors import NotReady, ToolkitError
from toolkit.fetch.market import current_depth
from toolkit.fetch.markets import market_code
from toolkit.fetch.registry import operation_of
from toolkit.fetch.snapshots import perp_twap_snapshot_timestamp, perp_twap_snapshots
from toolkit.frames import frame
from toolkit.plots import formats
from toolkit.plots.axes import is_simulated
from toolkit.plots.tables import Column
from toolkit.widgets import view_html
from toolkit.widgets.panel import PanelWidget, list_choices, make_control, push_button


class Fetch(Protocol):
    """Calls a fetch function without its session: ``fetch(function, *arguments, **options)``."""

    def __call__(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
        """Return the result of the function."""


EVERY: Final = {"1s": 1.0, "2s": 2.0, "5s": 5.0, "15s": 15.0, "60s": 60.0}
"""Name of an interval -> its seconds."""

_MAX_UPDATES: Final = 3_600  # after one start: an hour of one update a second
_MAX_TWAPS: Final = 20
_DEPTH_COLUMNS: Final = (
    Column("bps", "within", "{} bps".format, "distance from the mid price"),
    Column("bid_depth_usd", "bids", formats.whole_dollars, "cumulative bid depth within it, USD"),
    Column("bid_bar", "", html=True, number=False),
    Column("ask_bar", "", html=True, number=False),
    Column("ask_depth_usd", "asks", formats.whole_dollars, "cumulative ask depth within it, USD"),
    Column(
        "balance",
        "balance",
        lambda value: f"{100 * value:+,.1f} %".replace("-", formats.MINUS),
        "bids less asks, over both: above 0 more bids",
    ),
)
_TWAP_COLUMNS: Final = (
    Column("address", "account", formats.short_address, number=False),
    Column("is_buy", "side", lambda buys: "buy" if buys else "sell", number=False),
    Column("bar", "executed", meaning="share of the size", number=False, html=True),
    Column("progress_pct", "", "{:.1f} %".format),
    Column("executed_sz", "so far", formats.exact_number, "size executed, in coins"),
    Column("total_sz", "of", formats.exact_number, "size to execute, in coins"),
    Column("average", "average price", "{:,.6g}".format, "executed notional over size"),
    Column("next_slice_time", "next slice", "{:%H:%M:%S}".format, "UTC"),
    Column(
        "waiting",
        "state",
        lambda waiting: "waiting" if waiting else "running",
        "waiting: for its trigger price",
        number=False,
    ),
)


@dataclass(frozen=True, slots=True)
class MonitorRequest:
    """The request of the live monitor.

    - ``coin``: the market: plain on the native dex, ``<dex>:<symbol>`` on a builder-deployed one
    """

    coin: str


@dataclass(frozen=True)
class ViewPart:
    """One of the two parts of the view.

    - ``rows``: rows of the market in the last good answer; None before the first one
    - ``good_at``: time of the last good answer in Unix milliseconds
    - ``problem``: message of the current error; empty without an error
    - ``since``: time of the first error since the last good answer, in Unix milliseconds
    """

    rows: pd.DataFrame | None = None
    good_at: int | None = None
    problem: str = ""
    since: int | None = None


@dataclass(frozen=True)
class MonitorView:
    """The view of the live monitor.

    - ``request``: the request
    - ``depth``: `tk.current_depth` of the market, one row per distance
    - ``twaps``: `tk.perp_twap_snapshots` of the market
    """

    request: MonitorRequest
    depth: ViewPart = field(default_factory=ViewPart)
    twaps: ViewPart = field(default_factory=ViewPart)

    @property
    def good_at(self) -> int | None:
        """Time of the last good answer of either part."""
        times = (self.depth.good_at, self.twaps.good_at)
        return max((time for time in times if time is not None), default=None)

    @property
    def code(self) -> str:
        """The code of the view."""
        coin, dex = self.request.coin, coin_dex(self.request.coin)
        symbol = coin.removeprefix(f"{dex}:")
        native = 'depth["dex"].isin(["hyperliquid", "main"])'
        place = f'(depth["dex"] == {dex!r})' if dex else native
        twaps = f"twaps = tk.perp_twap_snapshots([{coin!r}])"
        if self.twaps.rows is not None and not len(self.twaps.rows):
            twaps = f"# no TWAP snapshot of {coin!r}: tk.perp_twap_snapshots would raise NotReady"
        return (
            "import toolkit as tk\n\n"
            f"depth = tk.current_depth({f'dex={dex!r}' if dex else ''})\n"
            f'depth = depth[{place} & (depth["coin"] == {symbol!r})]\n'
            f"{twaps}\ndepth"
        )


def monitor_view(
    request: MonitorRequest, fetch: Fetch, now_ms: int, before: MonitorView | None = None
) -> MonitorView:
    """Return the view of a request. A part that fails keeps its former rows and has a message.

    - ``request``: the request
    - ``fetch``: fetches depth and TWAPs
    - ``now_ms``: current time in Unix milliseconds
    - ``before``: the view before this one. TWAPs are fetched only if their snapshot has changed
      since then.
    """
    if before is None or before.request != request:
        before = MonitorView(request)
    return MonitorView(
        request,
        _update_part(lambda: _fetch_depth(request, fetch), now_ms, before.depth),
        _update_part(lambda: _fetch_twaps(request, fetch, before.twaps), now_ms, before.twaps),
    )


def _update_part(fetch_rows: Callable[[], pd.DataFrame], now_ms: int, before: ViewPart) -> ViewPart:
    try:
        return ViewPart(fetch_rows(), now_ms)
    except Exception as error:  # the monitor shows every error and continues
        since = now_ms if before.since is None else before.since
        return replace(before, problem=view_html.error_text(error), since=since)


def _fetch_depth(request: MonitorRequest, fetch: Fetch) -> pd.DataFrame:
    # Older sources have another name for the native dex, so the rows are filtered here.
    dex = coin_dex(request.coin)
    rows: pd.DataFrame = fetch(current_depth, dex=dex or None)
    names = [join_coin(dex, coin) for dex, coin in zip(rows["dex"], rows["coin"], strict=True)]
    return rows[pd.Series(names, index=rows.index, dtype="str") == request.coin]


def _fetch_twaps(request: MonitorRequest, fetch: Fetch, before: ViewPart) -> pd.DataFrame:
    stamp: Any = fetch(perp_twap_snapshot_timestamp)["snapshot_id"].iloc[0]
    if before.rows is not None and before.rows.attrs.get("snapshot_id") == stamp:
        return before.rows
    try:
        rows: pd.DataFrame = fetch(perp_twap_snapshots, [request.coin])
    except NotReady:  # there are snapshots, but not of this market
        rows = pd.DataFrame(frame(operation_of(perp_twap_snapshots).type, []))
    rows.attrs["snapshot_id"] = stamp
    return rows


def limit_calls(fetch: Fetch, clock: Callable[[], float] = time.monotonic) -> Fetch:
    """Return a fetcher that raises ToolkitError where an operation's own limit forbids a call.

    It does not wait. A widget shows the message and continues with its other parts.
    """
    calls: defaultdict[str, deque[float]] = defaultdict(deque)

    def fetch_within_limit(function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
        limit = operation_of(function).limit
        if limit is not None:
            times, now = calls[function.__name__], clock()
            while times and now - times[0] >= limit.seconds:
                times.popleft()
            if len(times) >= limit.calls:
                left = limit.seconds - (now - times[0])
                raise ToolkitError(
                    f"{function.__name__} may be called {limit.calls} times in "
                    f"{limit.seconds // 60} minutes; the next call is possible in {left:.0f} s"
                )
            times.append(now)
        return fetch(function, *arguments, **options)

    return fetch_within_limit


def monitor_html(view: MonitorView) -> str:
    """Return a view as HTML: the depth ladder, and the TWAPs of the market."""
    return _depth_table(view) + _twap_table(view)


def list_problems(view: MonitorView) -> str:
    """Return the current errors with their start times; empty without errors."""
    problems = [
        f"{name} since {clock_time(part.since)}: {part.problem}."
        for name, part in (("No depth", view.depth), ("No TWAPs", view.twaps))
        if part.problem
    ]
    return "\n".join([*problems, "The view below is older."] if problems else [])


def clock_time(time_ms: int | None) -> str:
    """Return a time of day, UTC."""
    return "never" if time_ms is None else f"{pd.Timestamp(time_ms, unit='ms'):%H:%M:%S} UTC"


def _depth_table(view: MonitorView) -> str:
    rows = view.depth.rows
    if rows is None:
        return ""
    bids, asks = rows["bid_depth_usd"], rows["ask_depth_usd"]
    most = max(bids.max(), asks.max())
    rows = rows.assign(
        balance=((bids - asks) / (bids + asks)).where(bids + asks > 0),
        bid_bar=[_draw_bar("tk-good tk-left", usd, most) for usd in bids],
        ask_bar=[_draw_bar("tk-bad", usd, most) for usd in asks],
    )
    time = f", {view_html.time_text(rows['timestamp_ms'].iloc[0])} UTC" if len(rows) else ""
    caption = f"Depth of {view.request.coin}{time}{_simulated_text(rows)}"
    note = view_html.note("Bars are logarithmic: each tenth of their length doubles the depth.")
    empty = "no such market in the answer"
    return view_html.table(caption, rows.sort_values("bps"), _DEPTH_COLUMNS, empty=empty) + note


def _draw_bar(kind: str, value: float, most: float) -> str:
    """Return a bar; half the value has a bar that is shorter by a tenth of the full length."""
    share = max(1 + math.log2(value / most) / 10, 0.0) if value > 0 else 0.0
    bar = f'<span class="tk-bar {kind}" style="width:{100 * share:.0f}%"></span>'
    return f'<span class="tk-track" aria-hidden="true">{bar}</span>'


def _twap_table(view: MonitorView) -> str:
    rows = view.twaps.rows
    if rows is None:
        return ""
    names = rows["address"].map(formats.short_address).map(escape)
    bars = [
        f'<span class="tk-track tk-frame" role="progressbar" aria-valuemin="0" '
        f'aria-valuemax="100" aria-valuenow="{done:.1f}" aria-label="TWAP {number} of {name}">'
        f'<span class="tk-bar tk-done" style="width:{done:.1f}%"></span></span>'
        for done, number, name in zip(rows["progress_pct"], rows["twap_id"], names, strict=True)
    ]
    shown = rows.assign(bar=bars, average=rows["executed_ntl"] / rows["executed_sz"])
    shown = shown.sort_values(["waiting", "start_time_ms"], kind="stable").head(_MAX_TWAPS)
    waiting = int(rows["waiting"].sum())
    counts = f"{len(rows) - waiting} running, {waiting} waiting for a trigger"
    caption = f"TWAPs on {view.request.coin}{_simulated_text(rows)}: {counts}"
    return view_html.table(caption, shown, _TWAP_COLUMNS, empty="no TWAP runs or waits")


def _simulated_text(rows: pd.DataFrame) -> str:
    return " (simulated)" if is_simulated(rows) else ""


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
        fetch: Fetch,
        now_ms: Callable[[], int],
        most: int = _MAX_UPDATES,
    ) -> None:
        self._fetch, self._now_ms, self._most = fetch, now_ms, most
        # It is set to end a pause. Each start has a new one, and a stop takes it away.
        self._run: threading.Event | None = None
        choose = partial(make_control, ipw.Dropdown)
        self._coin = choose("Market", "Market to watch", options=coins, value=request.coin)
        self._every = choose("Every", "Pause between two updates", options=[*EVERY], value=every)
        self._switch = push_button("Start", "Start or stop updates")
        super().__init__([self._switch, self._coin, self._every])
        self._switch.on_click(lambda _: self.stop() if self.running else self.start())
        for control in (self._coin, self._every):
            control.observe(self._on_change, "value")
        self._show_state()

    @property
    def running(self) -> bool:
        """Whether it updates its view."""
        return self._run is not None

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
        with self._lock:
            if self._run is None:
                self._run = run = threading.Event()
                threading.Thread(target=self._poll, args=(run,), name="poll", daemon=True).start()
            self._show_state()
        return self

    def stop(self) -> "LiveMonitor":
        """Stop the updates at once, also during a request."""
        with self._lock:
            run, self._run = self._run, None
            if run is not None:
                run.set()
            self._show_state()
        return self

    def look(self) -> "LiveMonitor":
        """Update the view once, and wait for it."""
        self._update()
        return self

    def close(self) -> None:
        """Stop the updates, and remove the widget from the notebook."""
        self.stop()
        super().close()

    def __repr__(self) -> str:
        return f"tk.widgets.live_monitor({self.request.coin!r}, every={self._every.value!r})"

    def _on_change(self, _: object) -> None:
        """Update at once after a change of the controls."""
        with self._lock:
            if self._run is not None:
                self._run.set()
            self._show_state()

    def _poll(self, run: threading.Event) -> None:
        """Update until the run is stopped, so that a forgotten monitor ends."""
        for _ in range(self._most):
            self._update(run)
            run.wait(EVERY[self._every.value])
            run.clear()
            if self._run is not run:
                return
        with self._lock:
            if self._run is run:
                self.stop()

    def _update(self, run: threading.Event | None = None) -> None:
        """Fetch and show the view, unless its run was stopped or the request has changed."""
        request = self.request
        view = monitor_view(request, self._fetch, self._now_ms(), self.view)
        html = monitor_html(view)
        with self._lock:
            if run in (None, self._run) and request == self.request:
                self.view = view
                self._show(view, html)
                self._show_state()

    def _show_state(self) -> None:
        """Show whether it updates, the time of the last good answer, and errors."""
        with self._lock:
            view = self.view or MonitorView(self.request)
            self._switch.description = "Stop" if self.running else "Start"
            state = f"Updates every {self._every.value}" if self.running else "Stopped"
            words = f"{state}; last good answer: {clock_time(view.good_at)}."
            self._show_status(words, list_problems(view))


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
    choices, hasty = list_choices(session, coins, coin), replace(session, retry=Retry(attempts=1))

    def fetch(function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
        return function(*arguments, session=hasty, **options)

    # With a quota, the service limits snapshots separately.
    limited = fetch if session.budget.per_minute is None else limit_calls(fetch)
    return LiveMonitor(MonitorRequest(coin), choices, every, limited, session.now_ms)
