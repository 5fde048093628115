"""TWAP orders: outstanding sizes, progress against schedule, and quality of execution."""

from typing import Final, Unpack

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from toolkit.plots import axes, formats, style

_MAX_BARS: Final = 16
_LABEL_HEIGHT: Final = 0.045  # of the name of an order, as a share of the height of the axes
_LABEL_WIDTH: Final = 0.25  # of the longest names with their line, as a share of the width
_BENCHMARKS: Final = (
    ("vs_vwap_bps", "volume-weighted", "o"),
    ("vs_twap_bps", "time-weighted", "s"),
    ("vs_arrival_bps", "arrival", "D"),
)


@style.draws_result("Outstanding in TWAP orders")
def twap_pressure(pressure: pd.DataFrame, **look: Unpack[style.PanelLook]) -> Axes:
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
    rows = pressure.assign(name=pressure.iloc[:, 0].astype(str))
    has_orders = rows["orders"] > 0 if "orders" in rows else True
    unpriced = rows.loc[rows["net_usd"].isna() & has_orders, "name"].tolist()
    rows = style.not_empty(rows[rows["net_usd"].notna()])
    rows = rows.assign(size=rows["buy_usd"] + rows["sell_usd"]).nlargest(_MAX_BARS, "size")
    rows = rows.sort_values(["net_usd", "name"])
    panel = style.open_panel(pressure, look, (7.2, 1.5 + 0.3 * max(4, len(rows))))
    at, colours = panel.name_rows(rows["name"].tolist()), (panel.theme.good, panel.theme.bad)
    parts = pd.DataFrame({"to buy": rows["buy_usd"], "to sell": -rows["sell_usd"]})
    panel.stack_bars(at, parts, colours, 0.6, horizontal=True, hatches=(None, "///"))
    panel.draw_net(rows["net_usd"], at)
    without = f"; without a price: {', '.join(unpriced)}" if unpriced else ""
    x = f"outstanding in TWAP orders, USD{without}"
    panel.label_axes(x, x_ticks=formats.usd_tick, legend=3)
    words = ", ".join(
        f"{name} {formats.usd_amount(net, signed=True)}"
        for name, net in zip(rows["name"][::-1], rows["net_usd"][::-1], strict=True)
    )
    count = f"; {len(unpriced)} without a price" if unpriced else ""
    return panel.finish(f"Outstanding in TWAP orders in USD, net: {words}{count}.")


@style.draws_result("Schedules of TWAP orders")
def twap_adherence(adherence: pd.DataFrame, **look: Unpack[style.PanelLook]) -> Axes:
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
    panel = style.open_panel(adherence, look, (5.2, 4.6))
    running = style.not_empty(adherence[adherence["elapsed"].notna()])
    ax, theme, waiting = panel.ax, panel.theme, len(adherence) - len(running)
    ax.grid(True, axis="both", color=theme.grid, linewidth=0.8)
    ax.plot([0, 1], [0, 1], color=theme.muted, linestyle=":", linewidth=1.4, label="on schedule")
    is_buy = running["is_buy"].astype(bool)
    sides = ((is_buy, theme.good, "o", "buys"), (~is_buy, theme.bad, "s", "sells"))
    for is_own, colour, marker, name in sides:
        own = running[is_own]
        ax.plot(
            own["elapsed"], own["progress"], marker, color=colour, markersize=6, label=name,
            markeredgecolor=theme.background, clip_on=False,
        )  # fmt: skip
    if len(running) <= 12:
        _label_orders(panel, running)
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    x = f"elapsed time; {waiting} more wait for a trigger" if waiting else "elapsed time"
    panel.label_axes(x, "size done", x_ticks="{x:.0%}", y_ticks="{x:.0%}", legend=3)
    behind = (running["elapsed"] - running["progress"]).median()
    return panel.finish(
        f"Executed size over elapsed time of {len(running)} TWAP orders: the median is "
        f"{behind:.0%} behind schedule; {waiting} wait for a trigger."
    )


def _label_orders(panel: axes.Panel, running: pd.DataFrame) -> None:
    """Name the orders: above the diagonal at the left, below it at the right, one per line.

    Near the left axis there is no room for a name at the left.
    """
    theme, leaders, heights = panel.theme, [], {"left": -1.0, "right": -1.0}
    rows = running.sort_values("progress").astype({"elapsed": "float64", "progress": "float64"})
    for x, y, market in zip(rows["elapsed"], rows["progress"], rows["market"], strict=True):
        side, shift = ("right", -0.06) if y > x > _LABEL_WIDTH else ("left", 0.06)
        heights[side] = max(y - 0.02, heights[side] + _LABEL_HEIGHT)
        place, look = (x + shift, heights[side]), {"fontsize": 8, "color": theme.text}
        leaders.append([(x, y), place])
        panel.ax.text(*place, str(market), look, ha=side, va="center", parse_math=False)
    lines = LineCollection(leaders, colors=theme.muted, linewidths=0.5, clip_on=False)
    panel.ax.add_collection(lines, autolim=False)


@style.draws_result("TWAP orders against benchmarks")
def twap_quality(quality: pd.DataFrame, **look: Unpack[style.PanelLook]) -> Axes:
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
    panel = style.open_panel(quality, look, (7.2, 2.8))
    ax, theme, words = panel.ax, panel.theme, []
    panel.name_rows([name for _, name, _ in _BENCHMARKS], from_top=True)
    panel.add_zero_line(vertical=True)
    colours = (theme.good, theme.accent, theme.bad)
    for row, ((column, name, marker), colour) in enumerate(zip(_BENCHMARKS, colours, strict=True)):
        values = quality[column].astype("float64").dropna().sort_values().to_numpy()
        if not len(values):
            words.append(f"{name} unknown")
            continue
        # Marks are shifted in turn, so that they do not hide each other.
        shift = ((np.arange(len(values)) * 7) % 11 - 5) * 0.05
        ax.plot(values, row + shift, marker, color=colour, markersize=4, alpha=0.6)
        median = float(np.median(values))
        ax.plot([median] * 2, [row - 0.36, row + 0.36], color=theme.text, linewidth=2)
        text = formats.true_minus(f"{median:+.1f}")
        panel.label_right_edge(row, text)
        words.append(f"{name} {text}")
    panel.label_axes("gain against the benchmark, bps (below 0: a cost)")
    ax.set_title("median", loc="right", fontsize=9, color=theme.text)
    return panel.finish(
        f"Prices of {len(quality)} TWAP orders, better than benchmarks by a median in basis points "
        f"of: {', '.join(words)}."
    )
