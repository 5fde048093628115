"""The view of the live monitor: depth of a market, its TWAPs, and both as HTML."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, Final

import pandas as pd

from toolkit.contract.dexes import coin_dex, join_coin
from toolkit.errors import NotReady
from toolkit.fetch.market import current_depth
from toolkit.fetch.registry import operation_of
from toolkit.fetch.snapshots import perp_twap_snapshot_timestamp, perp_twap_snapshots
from toolkit.frames import frame
from toolkit.plots import formats
from toolkit.plots.axes import is_simulated
from toolkit.plots.tables import Column
from toolkit.widgets import view_html
from toolkit.widgets.fetcher import Fetcher, error_text

EVERY: Final = {"1s": 1.0, "2s": 2.0, "5s": 5.0, "15s": 15.0, "60s": 60.0}
"""Name of an interval -> its seconds."""


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
    request: MonitorRequest, fetch: Fetcher, now_ms: int, before: MonitorView | None = None
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
        return replace(before, problem=error_text(error), since=since)


def _fetch_depth(request: MonitorRequest, fetch: Fetcher) -> pd.DataFrame:
    # Older sources have another name for the native dex, so the rows are filtered here.
    dex = coin_dex(request.coin)
    rows: pd.DataFrame = fetch(current_depth, dex=dex or None)
    names = [join_coin(dex, coin) for dex, coin in zip(rows["dex"], rows["coin"], strict=True)]
    return rows[pd.Series(names, index=rows.index, dtype="str") == request.coin]


def _fetch_twaps(request: MonitorRequest, fetch: Fetcher, before: ViewPart) -> pd.DataFrame:
    stamp: Any = fetch(perp_twap_snapshot_timestamp)["snapshot_id"].iloc[0]
    if before.rows is not None and before.rows.attrs.get("snapshot_id") == stamp:
        return before.rows
    try:
        rows: pd.DataFrame = fetch(perp_twap_snapshots, [request.coin])
    except NotReady:  # there are snapshots, but not of this market
        rows = pd.DataFrame(frame(operation_of(perp_twap_snapshots).type, []))
    rows.attrs["snapshot_id"] = stamp
    return rows


_MAX_TWAPS: Final = 20


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
"""Columns of the TWAPs; the sizes are those of the snapshot."""
