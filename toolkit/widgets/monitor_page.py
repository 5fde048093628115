"""How the live monitor writes what it shows."""

import math
from html import escape
from typing import Any, Final

import pandas as pd

from toolkit.plots import formats
from toolkit.plots.style import is_simulated
from toolkit.widgets import markup
from toolkit.widgets.markup import Column
from toolkit.widgets.monitor_view import MonitorView, Part

__all__ = ["clock", "page", "problems"]

_SHOWN: Final = 20  # TWAPs


def page(view: MonitorView) -> str:
    """Write a view: the depth ladder, and the TWAPs of the market."""
    return _ladder(view) + _twaps(view)


def problems(view: MonitorView) -> str:
    """Say what is wrong now, and since when; empty where all is well."""
    named = (("No depth", view.depth), ("No TWAPs", view.twaps))
    said = [f"{name} since {clock(p.since)}: {p.problem}." for name, p in named if p.problem]
    return "\n".join([*said, "What is shown below was known before."] if said else [])


def clock(time_ms: int | None) -> str:
    """Write a time of day, UTC."""
    if time_ms is None:
        return MISSING
    return f"{pd.Timestamp(time_ms, unit='ms'):%H:%M:%S} UTC"


MISSING: Final = "never"


def _ladder(view: MonitorView) -> str:
    rows = view.depth.rows
    if rows is None:
        return ""
    rows = rows.sort_values("bps").assign(
        bid_bar=rows["bid_depth_usd"], ask_bar=rows["ask_depth_usd"], balance=_balance(rows)
    )
    most = float(rows[["bid_depth_usd", "ask_depth_usd"]].max().max()) if len(rows) else 0.0
    columns = (
        Column("bps", "within", lambda value: f"{value} bps", "distance from the mid price"),
        Column(
            "bid_depth_usd", "bids", formats.whole_dollars, "cumulative bid depth within it, USD"
        ),
        Column("bid_bar", "", _bar("tk-good tk-left", most), html=True, number=False),
        Column("ask_bar", "", _bar("tk-bad", most), html=True, number=False),
        Column(
            "ask_depth_usd", "asks", formats.whole_dollars, "cumulative ask depth within it, USD"
        ),
        Column("balance", "balance", _percent, "bids less asks, over both: above 0 more bids"),
    )
    caption = f"Depth of {view.request.coin}{_at(rows, 'timestamp_ms', view.depth)}"
    return markup.table(caption, rows, columns, empty="no such market in the answer") + (
        markup.note("Bars are logarithmic: each tenth of their length doubles the depth.")
    )


def _balance(rows: pd.DataFrame) -> Any:
    both = rows["bid_depth_usd"] + rows["ask_depth_usd"]
    return ((rows["bid_depth_usd"] - rows["ask_depth_usd"]) / both).where(both > 0)


def _percent(value: float) -> str:
    return f"{100 * value:+,.1f} %".replace("-", "\N{MINUS SIGN}")


def _bar(kind: str, most: float) -> Any:
    """Write a bar whose length falls by a tenth with each halving."""

    def write(value: float) -> str:
        share = max(1 + math.log2(value / most) / 10, 0.0) if value > 0 else 0.0
        bar = f'<span class="tk-bar {kind}" style="width:{100 * share:.0f}%"></span>'
        return f'<span class="tk-track" aria-hidden="true">{bar}</span>'

    return write


def _twaps(view: MonitorView) -> str:
    rows = view.twaps.rows
    if rows is None:
        return ""
    shown = rows.assign(bar=_progress(rows), average=rows["executed_ntl"] / rows["executed_sz"])
    shown = shown.sort_values(["waiting", "start_time_ms"], kind="stable").head(_SHOWN)
    caption = f"TWAPs on {view.request.coin}{_at(rows, '', view.twaps)}: {_counted(rows)}"
    return markup.table(caption, shown, _TWAP, empty="none runs or waits")


def _counted(rows: pd.DataFrame) -> str:
    waiting = int(rows["waiting"].sum())
    return f"{len(rows) - waiting} running, {waiting} waiting for a trigger"


def _progress(rows: pd.DataFrame) -> list[str]:
    return [
        f'<span class="tk-track tk-frame" role="progressbar" aria-valuemin="0" '
        f'aria-valuemax="100" aria-valuenow="{float(done):.1f}" '
        f'aria-label="TWAP {int(number)} of {escape(formats.short_address(user))}">'
        f'<span class="tk-bar tk-done" style="width:{float(done):.1f}%"></span></span>'
        for done, number, user in zip(
            rows["progress_pct"], rows["twap_id"], rows["address"], strict=True
        )
    ]


def _at(rows: pd.DataFrame, column: str, part: Part) -> str:
    """Say of when the rows are, and of what kind."""
    time = f", {markup.moment(rows[column].iloc[0])} UTC" if column and len(rows) else ""
    invented = part.rows is not None and is_simulated(part.rows)
    return time + (" (simulated)" if invented else "")


def _side(buys: bool) -> str:
    return "buy" if buys else "sell"


def _state(waiting: bool) -> str:
    return "waiting" if waiting else "running"


_TWAP: Final = (
    Column("address", "account", formats.short_address, number=False),
    Column("is_buy", "side", _side, number=False),
    Column("bar", "executed", meaning="share of the size", number=False, html=True),
    Column("progress_pct", "", lambda value: f"{value:.1f} %"),
    Column("executed_sz", "so far", formats.exact_number, "size executed, in coins"),
    Column("total_sz", "of", formats.exact_number, "size to execute, in coins"),
    Column(
        "average", "average price", lambda value: f"{value:,.6g}", "executed notional over size"
    ),
    Column("next_slice_time", "next slice", lambda value: f"{value:%H:%M:%S}", "UTC"),
    Column("waiting", "state", _state, "waiting: for its trigger price", number=False),
)
"""What is shown of a TWAP; the sizes are those of the snapshot."""
