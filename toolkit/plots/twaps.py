"""TWAP orders: what they will still trade, their schedules, what they achieved."""

from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from toolkit.plots import style, texts
from toolkit.plots.style import Theme, ThemeName

_MOST = 16


def twap_pressure(
    pressure: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw what TWAP orders will still buy and sell in each market.

    Parameters
    ----------
    pressure : DataFrame
        `tk.twaps.pressure` by one column, with prices.
    ax : Axes, optional
        Where to draw; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        Horizontal bars in USD: sells to the left, buys to the right, net as a mark. The 16
        largest; rows without a price are named below, not drawn.

    Examples
    --------
    >>> rows = pd.DataFrame({"market": ["BTC"], "buy_usd": [5.0], "sell_usd": [2.0],
    ...                      "net_usd": [3.0]})
    >>> [text.get_text() for text in twap_pressure(rows).axes[0].get_yticklabels()]
    ['BTC']
    """
    colours = style.theme_of(theme)
    rows, lost = _priced(pressure)
    size = (7.2, 1.5 + 0.3 * max(4, len(rows)))
    figure, ax = style.canvas(colours, ax=ax, size=size, transparent=transparent)
    _draw_pressure(ax, colours, rows, lost) if len(rows) else style.nothing(ax, colours)
    words = _pressure_words(rows, lost)
    return style.finish(figure, ax, colours, words, style.is_simulated(pressure))


def _priced(pressure: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    if not len(pressure):
        return pressure, []
    rows = pressure.assign(name=pressure.iloc[:, 0].astype(str))
    runs = rows["orders"] > 0 if "orders" in rows else True
    lost = rows.loc[rows["net_usd"].isna() & runs, "name"].tolist()
    rows = rows[rows["net_usd"].notna()]
    rows = rows.assign(size=rows["buy_usd"] + rows["sell_usd"]).nlargest(_MOST, "size")
    return rows.sort_values(["net_usd", "name"]).reset_index(drop=True), lost


def _draw_pressure(ax: Axes, theme: Theme, rows: pd.DataFrame, lost: list[str]) -> None:
    style.dress(ax, theme, grid="x")
    at = np.arange(len(rows))
    ax.barh(at, rows["buy_usd"], height=0.6, color=theme.good, label="to buy")
    ax.barh(at, -rows["sell_usd"], height=0.6, color=theme.bad, hatch="///", label="to sell",
            edgecolor=theme.background, linewidth=0)  # fmt: skip
    ax.plot(
        rows["net_usd"],
        at,
        "D",
        color=theme.text,
        markeredgecolor=theme.background,
        markersize=5.5,
        label="net",
    )
    ax.axvline(0, color=theme.muted, linewidth=0.8)
    ax.set_yticks(at, rows["name"].tolist(), parse_math=False)
    ax.set_ylim(-0.7, len(rows) - 0.3)
    without = f"; without a price: {', '.join(lost)}" if lost else ""
    ax.set_xlabel(f"outstanding in TWAP orders, USD{without}", parse_math=False)
    style.usd_axis(ax.xaxis.set_major_formatter)
    style.legend(ax, theme, ncols=3)


def _pressure_words(rows: pd.DataFrame, lost: list[str]) -> str:
    if not len(rows):
        return "Outstanding in TWAP orders: no data."
    parts = [
        f"{row.name} {style.usd(row.net_usd, signed=True)}"
        for _, row in rows.iloc[::-1].set_index("name").iterrows()
    ]
    without = f"; {len(lost)} without a price" if lost else ""
    return f"Outstanding in TWAP orders in USD, net: {', '.join(parts)}{without}."


def twap_adherence(
    adherence: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw what each TWAP order has done against the time that is over.

    Parameters
    ----------
    adherence : DataFrame
        `tk.twaps.adherence`.
    ax : Axes, optional
        Where to draw; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        A mark for each running order: share of its size that is done over share of its time;
        on the diagonal it keeps its schedule, below it is behind. Waiting orders are counted.

    Examples
    --------
    >>> rows = pd.DataFrame({"market": ["BTC"], "is_buy": [True], "elapsed": [0.5],
    ...                      "progress": [0.4]})
    >>> twap_adherence(rows).axes[0].get_xlabel()
    'time over'
    """
    colours = style.theme_of(theme)
    figure, ax = style.canvas(colours, ax=ax, size=(5.2, 4.6), transparent=transparent)
    runs = adherence[adherence["elapsed"].notna()] if len(adherence) else adherence
    waits = len(adherence) - len(runs)
    _draw_adherence(ax, colours, runs, waits) if len(runs) else style.nothing(ax, colours)
    words = _adherence_words(runs, waits)
    return style.finish(figure, ax, colours, words, style.is_simulated(adherence))


def _draw_adherence(ax: Axes, theme: Theme, runs: pd.DataFrame, waits: int) -> None:
    style.dress(ax, theme)
    ax.grid(True, axis="both", color=theme.grid, linewidth=0.8)
    ax.plot([0, 1], [0, 1], color=theme.muted, linestyle=":", linewidth=1.4, label="on schedule")
    for buys, colour, marker, name in (
        (True, theme.good, "o", "buys"),
        (False, theme.bad, "s", "sells"),
    ):
        part = runs[runs["is_buy"].astype(bool) == buys]
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
    if len(runs) <= 12:
        _label_orders(ax, theme, runs)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_aspect("equal")
    ax.set_xlabel(f"time over; {waits} more wait for a trigger" if waits else "time over")
    ax.set_ylabel("size done")
    style.legend(ax, theme, ncols=3)


def _label_orders(ax: Axes, theme: Theme, runs: pd.DataFrame) -> None:
    rows: Any = runs.itertuples()
    for row in rows:
        right = row.elapsed < 0.75
        ax.annotate(
            str(row.market),
            (row.elapsed, row.progress),
            xytext=(6 if right else -6, -2),
            textcoords="offset points",
            ha="left" if right else "right",
            va="top",
            fontsize=8,
            color=theme.text,
            parse_math=False,
        )


def _adherence_words(runs: pd.DataFrame, waits: int) -> str:
    if not len(runs):
        return "Schedules of TWAP orders: no data."
    behind = (runs["elapsed"] - runs["progress"]).median()
    return (
        f"Size done over time passed of {len(runs)} TWAP orders: on the median {behind:.0%} behind "
        f"schedule; {waits} wait for a trigger."
    )


_BENCHMARKS: Final = (
    ("vs_vwap_bps", "volume-weighted", "o"),
    ("vs_twap_bps", "time-weighted", "s"),
    ("vs_arrival_bps", "arrival", "D"),
)


def twap_quality(
    quality: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw how much better TWAP orders were than three benchmarks.

    Parameters
    ----------
    quality : DataFrame
        `tk.twaps.quality`.
    ax : Axes, optional
        Where to draw; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        For each benchmark a mark for each order, in basis points, positive is good for the
        account, and the median as a bar with its figure.

    Examples
    --------
    >>> rows = pd.DataFrame({"vs_vwap_bps": [1.0, -2.0], "vs_twap_bps": [0.5, 0.1],
    ...                      "vs_arrival_bps": [None, 3.0]})
    >>> twap_quality(rows).axes[0].get_xlabel()
    'better than the benchmark, bps'
    """
    colours = style.theme_of(theme)
    figure, ax = style.canvas(colours, ax=ax, size=(7.2, 2.8), transparent=transparent)
    _draw_quality(ax, colours, quality) if len(quality) else style.nothing(ax, colours)
    words = _quality_words(quality)
    return style.finish(figure, ax, colours, words, style.is_simulated(quality))


def _draw_quality(ax: Axes, theme: Theme, quality: pd.DataFrame) -> None:
    style.dress(ax, theme, grid="x")
    colours = (theme.good, theme.accent, theme.bad)
    ax.axvline(0, color=theme.muted, linewidth=0.8)
    for row, ((column, _, marker), colour) in enumerate(zip(_BENCHMARKS, colours, strict=True)):
        values = quality[column].astype("float64").dropna().sort_values().to_numpy()
        if not len(values):
            continue
        # Side by side in turn, so that marks do not hide each other.
        shift = ((np.arange(len(values)) * 7) % 11 - 5) * 0.05
        ax.plot(values, row + shift, marker, color=colour, markersize=4, alpha=0.6)
        middle = float(np.median(values))
        ax.plot([middle] * 2, [row - 0.36, row + 0.36], color=theme.text, linewidth=2)
        style.beside(ax, row, _signed(middle), theme.text)
    ax.set_yticks(range(3), [name for _, name, _ in _BENCHMARKS])
    ax.set_ylim(2.6, -0.6)
    ax.set_xlabel("better than the benchmark, bps")
    ax.set_title("median", loc="right", fontsize=9, color=theme.text)


def _quality_words(quality: pd.DataFrame) -> str:
    if not len(quality):
        return "TWAP orders against benchmarks: no data."
    parts = [
        f"{name} " + _signed(quality[column].astype("float64").median())
        for column, name, _ in _BENCHMARKS
    ]
    return (
        f"How much better {len(quality)} TWAP orders were than benchmarks, median in basis points: "
        f"{', '.join(parts)}."
    )


def _signed(bps: float) -> str:
    return "unknown" if bps != bps else f"{bps:+.1f}".replace("-", texts.MINUS)
