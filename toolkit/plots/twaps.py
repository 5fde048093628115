"""TWAP orders: outstanding sizes, progress against schedule, and quality of execution."""

from typing import Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.ticker import PercentFormatter

from toolkit.plots import axes, formats, style
from toolkit.plots.result_checks import draws_result
from toolkit.plots.themes import Theme, ThemeName

_MAX_BARS = 16
_LABEL_HEIGHT = 0.045  # of the name of an order, as a share of the height of the axes
_LABEL_WIDTH = 0.25  # of the longest names with their line, as a share of the width of the axes


@draws_result
def twap_pressure(
    pressure: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
    """Draw the notional that TWAP orders will still buy and sell in each market.

    Parameters
    ----------
    pressure : DataFrame
        `tk.twaps.pressure` by one column, with prices.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        Horizontal bars in USD of the 16 largest rows: sells to the left, buys to the right, and a
        mark at net. Rows without a price are not drawn; the label lists them.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"market": ["BTC"], "buy_usd": [5.0], "sell_usd": [2.0],
    ...                      "net_usd": [3.0]})
    >>> [text.get_text() for text in twap_pressure(rows).get_yticklabels()]
    ['BTC']
    """
    rows, unpriced = _split_by_price(pressure)
    size = (7.2, 1.5 + 0.3 * max(4, len(rows)))
    ax, colours = style.new_axes(ax, theme, transparent, size)
    _draw_pressure(ax, colours, rows, unpriced) if len(rows) else style.draw_no_data(ax, colours)
    words = _describe_pressure(rows, unpriced)
    return style.finish_axes(ax, colours, words, pressure)


def _split_by_price(pressure: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    if not len(pressure):
        return pressure, []
    rows = pressure.assign(name=pressure.iloc[:, 0].astype(str))
    has_orders = rows["orders"] > 0 if "orders" in rows else True
    unpriced = rows.loc[rows["net_usd"].isna() & has_orders, "name"].tolist()
    rows = rows[rows["net_usd"].notna()]
    rows = rows.assign(size=rows["buy_usd"] + rows["sell_usd"]).nlargest(_MAX_BARS, "size")
    return rows.sort_values(["net_usd", "name"]).reset_index(drop=True), unpriced


def _draw_pressure(ax: Axes, theme: Theme, rows: pd.DataFrame, unpriced: list[str]) -> None:
    at = axes.name_rows(ax, theme, rows["name"].tolist())
    ax.barh(at, rows["buy_usd"], height=0.6, color=theme.good, label="to buy")
    ax.barh(at, -rows["sell_usd"], height=0.6, color=theme.bad, hatch="///", label="to sell",
            edgecolor=theme.background, linewidth=0)  # fmt: skip
    axes.draw_net(ax, theme, rows["net_usd"], at)
    without = f"; without a price: {', '.join(unpriced)}" if unpriced else ""
    ax.set_xlabel(f"outstanding in TWAP orders, USD{without}", parse_math=False)
    axes.set_usd_ticks(ax.xaxis)
    axes.add_legend(ax, theme, ncols=3)


def _describe_pressure(rows: pd.DataFrame, unpriced: list[str]) -> str:
    if not len(rows):
        return "Outstanding in TWAP orders: no data."
    parts = [
        f"{row.name} {formats.usd_amount(row.net_usd, signed=True)}"
        for _, row in rows.iloc[::-1].set_index("name").iterrows()
    ]
    without = f"; {len(unpriced)} without a price" if unpriced else ""
    return f"Outstanding in TWAP orders in USD, net: {', '.join(parts)}{without}."


@draws_result
def twap_adherence(
    adherence: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
    """Draw the executed share of each TWAP order over its elapsed share of time.

    Parameters
    ----------
    adherence : DataFrame
        `tk.twaps.adherence`.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        A mark for each running order: share of its size that is executed over share of its time
        that has elapsed. On the diagonal an order is on schedule, below it is behind. The label
        counts waiting orders.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"market": ["BTC"], "is_buy": [True], "elapsed": [0.5],
    ...                      "progress": [0.4]})
    >>> twap_adherence(rows).get_xlabel()
    'elapsed time'
    """
    ax, colours = style.new_axes(ax, theme, transparent, (5.2, 4.6))
    running = adherence[adherence["elapsed"].notna()] if len(adherence) else adherence
    waiting = len(adherence) - len(running)
    _draw_adherence(ax, colours, running, waiting) if len(running) else style.draw_no_data(
        ax, colours
    )
    words = _describe_adherence(running, waiting)
    return style.finish_axes(ax, colours, words, adherence)


def _draw_adherence(ax: Axes, theme: Theme, running: pd.DataFrame, waiting: int) -> None:
    style.style_axes(ax, theme)
    ax.grid(True, axis="both", color=theme.grid, linewidth=0.8)
    ax.plot([0, 1], [0, 1], color=theme.muted, linestyle=":", linewidth=1.4, label="on schedule")
    for is_buy, colour, marker, name in (
        (True, theme.good, "o", "buys"),
        (False, theme.bad, "s", "sells"),
    ):
        part = running[running["is_buy"].astype(bool) == is_buy]
        ax.plot(
            part["elapsed"],
            part["progress"],
            marker,
            color=colour,
            markersize=6,
            markeredgecolor=theme.background,
            label=name,
            clip_on=False,
        )
    if len(running) <= 12:
        _label_orders(ax, theme, running)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_aspect("equal")
    ax.set_xlabel(f"elapsed time; {waiting} more wait for a trigger" if waiting else "elapsed time")
    ax.set_ylabel("size done")
    axes.add_legend(ax, theme, ncols=3)


def _label_orders(ax: Axes, theme: Theme, running: pd.DataFrame) -> None:
    """Name the orders: above the diagonal at the left, below it at the right, one per line.

    Near the left axis there is no room for a name at the left.
    """
    rows = running.sort_values("progress").astype({"elapsed": "float64", "progress": "float64"})
    is_above = (rows["progress"] > rows["elapsed"]) & (rows["elapsed"] > _LABEL_WIDTH)
    leaders = []
    for own, sign, side in ((rows[is_above], -1, "right"), (rows[~is_above], 1, "left")):
        height = -1.0
        for row in own.to_dict("records"):
            point = (row["elapsed"], row["progress"])
            height = max(point[1] - 0.02, height + _LABEL_HEIGHT)
            place = (point[0] + sign * 0.06, height)
            leaders.append([point, place])
            ax.text(
                *place, str(row["market"]), ha=side, va="center", fontsize=8, color=theme.text,
                parse_math=False,
            )  # fmt: skip
    ax.add_collection(
        LineCollection(leaders, colors=theme.muted, linewidths=0.5, clip_on=False), autolim=False
    )


def _describe_adherence(running: pd.DataFrame, waiting: int) -> str:
    if not len(running):
        return "Schedules of TWAP orders: no data."
    behind = (running["elapsed"] - running["progress"]).median()
    return (
        f"Executed size over elapsed time of {len(running)} TWAP orders: the median is "
        f"{behind:.0%} behind schedule; {waiting} wait for a trigger."
    )


_BENCHMARKS: Final = (
    ("vs_vwap_bps", "volume-weighted", "o"),
    ("vs_twap_bps", "time-weighted", "s"),
    ("vs_arrival_bps", "arrival", "D"),
)


@draws_result
def twap_quality(
    quality: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
    """Draw the prices of TWAP orders against three benchmarks.

    Parameters
    ----------
    quality : DataFrame
        `tk.twaps.quality`.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        For each benchmark, a mark for each order and a bar with a label at the median. In basis
        points; positive is good for the account.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"vs_vwap_bps": [1.0, -2.0], "vs_twap_bps": [0.5, 0.1],
    ...                      "vs_arrival_bps": [None, 3.0]})
    >>> twap_quality(rows).get_xlabel()
    'gain against the benchmark, bps (below 0: a cost)'
    """
    ax, colours = style.new_axes(ax, theme, transparent, (7.2, 2.8))
    _draw_quality(ax, colours, quality) if len(quality) else style.draw_no_data(ax, colours)
    words = _describe_quality(quality)
    return style.finish_axes(ax, colours, words, quality)


def _draw_quality(ax: Axes, theme: Theme, quality: pd.DataFrame) -> None:
    style.style_axes(ax, theme, grid="x")
    colours = (theme.good, theme.accent, theme.bad)
    ax.axvline(0, color=theme.muted, linewidth=0.8)
    for row, ((column, _, marker), colour) in enumerate(zip(_BENCHMARKS, colours, strict=True)):
        values = quality[column].astype("float64").dropna().sort_values().to_numpy()
        if not len(values):
            continue
        # Marks are shifted in turn, so that they do not hide each other.
        shift = ((np.arange(len(values)) * 7) % 11 - 5) * 0.05
        ax.plot(values, row + shift, marker, color=colour, markersize=4, alpha=0.6)
        median = float(np.median(values))
        ax.plot([median] * 2, [row - 0.36, row + 0.36], color=theme.text, linewidth=2)
        axes.label_right_edge(ax, row, _bps_text(median), theme.text)
    ax.set_yticks(range(3), [name for _, name, _ in _BENCHMARKS])
    ax.set_ylim(2.6, -0.6)
    ax.set_xlabel("gain against the benchmark, bps (below 0: a cost)")
    ax.set_title("median", loc="right", fontsize=9, color=theme.text)


def _describe_quality(quality: pd.DataFrame) -> str:
    if not len(quality):
        return "TWAP orders against benchmarks: no data."
    parts = [
        f"{name} " + _bps_text(quality[column].astype("float64").median())
        for column, name, _ in _BENCHMARKS
    ]
    return (
        f"Prices of {len(quality)} TWAP orders, better than benchmarks by a median in basis points "
        f"of: {', '.join(parts)}."
    )


def _bps_text(bps: float) -> str:
    return "unknown" if bps != bps else formats.true_minus(f"{bps:+.1f}")
