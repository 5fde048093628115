"""What the live monitor shows, computed: depth of a market and the TWAPs that run on it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pandas as pd

from toolkit.contract.dexes import coin_dex, join_coin
from toolkit.errors import NotReady
from toolkit.fetch import current_depth, perp_twap_snapshot_timestamp, perp_twap_snapshots
from toolkit.frames import frame
from toolkit.widgets.asking import Fetch, in_words

__all__ = ["EVERY", "MonitorRequest", "MonitorView", "Part", "monitor_view"]

EVERY: Final = {"1s": 1.0, "2s": 2.0, "5s": 5.0, "15s": 15.0, "60s": 60.0}
"""How often a monitor may look -> seconds."""


@dataclass(frozen=True, slots=True)
class MonitorRequest:
    """What to watch.

    Attributes
    ----------
    coin : str
        The market: plain on the native dex, ``<dex>:<symbol>`` on a builder-deployed one.
    """

    coin: str


@dataclass(frozen=True)
class Part:
    """One of the two things that are watched.

    Attributes
    ----------
    rows : DataFrame or None
        The last good answer's rows of the market; None until there was one.
    good_at : int or None
        When it came, in Unix milliseconds.
    problem : str
        What is wrong now, in words; empty where nothing is.
    since : int or None
        Since when.
    """

    rows: pd.DataFrame | None = None
    good_at: int | None = None
    problem: str = ""
    since: int | None = None


@dataclass(frozen=True)
class MonitorView:
    """What is shown.

    Attributes
    ----------
    request : MonitorRequest
        What it answers.
    depth : Part
        `tk.current_depth` of the market, one row per distance.
    twaps : Part
        `tk.perp_twap_snapshots` of the market.
    """

    request: MonitorRequest
    depth: Part = field(default_factory=Part)
    twaps: Part = field(default_factory=Part)

    @property
    def good_at(self) -> int | None:
        """When the last good answer came, of either."""
        return max((p.good_at for p in self.parts if p.good_at is not None), default=None)

    @property
    def parts(self) -> tuple[Part, Part]:
        """Both of them."""
        return self.depth, self.twaps

    @property
    def code(self) -> str:
        """The cell that asks for the same."""
        coin, dex = self.request.coin, coin_dex(self.request.coin)
        symbol = coin.removeprefix(f"{dex}:")
        native = 'depth["dex"].isin(["hyperliquid", "main"])'
        place = f'(depth["dex"] == {dex!r})' if dex else native
        return (
            "import toolkit as tk\n\n"
            f"depth = tk.current_depth({f'dex={dex!r}' if dex else ''})\n"
            f'depth = depth[{place} & (depth["coin"] == {symbol!r})]\n'
            f"{self._twap_line}\ndepth"
        )

    @property
    def _twap_line(self) -> str:
        coin, rows = self.request.coin, self.twaps.rows
        if rows is not None and not len(rows):
            return f"# no TWAP snapshot of {coin!r}: tk.perp_twap_snapshots would raise NotReady"
        return f"twaps = tk.perp_twap_snapshots([{coin!r}])"


def monitor_view(
    request: MonitorRequest, fetch: Fetch, now_ms: int, before: MonitorView | None = None
) -> MonitorView:
    """Compute a view; what fails keeps what was known before, and says so.

    Parameters
    ----------
    request : MonitorRequest
        What to watch.
    fetch : Fetch
        How to ask.
    now_ms : int
        The present, in Unix milliseconds.
    before : MonitorView, optional
        The view before this one. TWAPs are fetched only where their snapshot has changed since.
    """
    if before is None or before.request != request:
        before = MonitorView(request)
    return MonitorView(
        request,
        _part(lambda: _depth(request, fetch), now_ms, before.depth),
        _part(lambda: _twaps(request, fetch, before.twaps), now_ms, before.twaps),
    )


def _part(ask: Callable[[], pd.DataFrame], now_ms: int, before: Part) -> Part:
    try:
        return Part(ask(), now_ms)
    except Exception as error:  # whatever it is, the monitor goes on and says it
        since = now_ms if before.since is None else before.since
        return replace(before, problem=in_words(error), since=since)


def _depth(request: MonitorRequest, fetch: Fetch) -> pd.DataFrame:
    # Older sources call the native dex by another name: its markets are picked here.
    dex = coin_dex(request.coin)
    rows: pd.DataFrame = fetch(current_depth, dex=dex or None)
    names = [join_coin(dex, coin) for dex, coin in zip(rows["dex"], rows["coin"], strict=True)]
    return rows[pd.Series(names, index=rows.index, dtype="str") == request.coin]


def _twaps(request: MonitorRequest, fetch: Fetch, before: Part) -> pd.DataFrame:
    stamp: Any = fetch(perp_twap_snapshot_timestamp)["snapshot_id"].iloc[0]
    if before.rows is not None and before.rows.attrs.get("snapshot_id") == stamp:
        return before.rows
    try:
        rows: pd.DataFrame = fetch(perp_twap_snapshots, [request.coin])
    except NotReady:  # there are snapshots, but none of this market
        rows = pd.DataFrame(frame("perpTwapSnapshots", []))
    rows.attrs["snapshot_id"] = stamp
    return rows
