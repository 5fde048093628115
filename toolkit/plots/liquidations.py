"""Where liquidations wait, and how trips came out."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from toolkit.plots import style, texts
from toolkit.plots.style import Theme, ThemeName

_HATCH = {"long": "", "short": "////"}


def liquidation_map(
    levels: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw the notional that a move of the price would liquidate, longs and shorts.

    Parameters
    ----------
    levels : DataFrame
        `tk.liquidations.levels`, of one coin.
    ax : Axes, optional
        Where to draw; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        Bars of USD over the distance from the mark price in percent, lines of what is reached
        on the way, and the share of open interest that the map covers.

    Raises
    ------
    ValueError
        If there are several coins.

    Examples
    --------
    >>> rows = pd.DataFrame({"coin": "X", "side": ["long"], "distance": [-0.05], "low": [94.0],
    ...     "high": [95.0], "notional": [1e3], "cumulative": [1e3], "unplaced": [0.0],
    ...     "covered": [0.5]})
    >>> liquidation_map(rows).axes[0].get_xlabel()
    'distance of the liquidation price from the mark price of X, %'
    """
    colours = style.theme_of(theme)
    coins = list(dict.fromkeys(levels["coin"])) if len(levels) else []
    if len(coins) > 1:
        raise ValueError(f"a map is of one coin, not {len(coins)}: pick one")
    figure, ax = style.canvas(colours, ax=ax, transparent=transparent)
    rows = levels.dropna(subset="distance") if len(levels) else levels
    _map(ax, colours, rows, coins[0]) if len(rows) else style.nothing(ax, colours)
    return style.finish(figure, ax, colours, _words(levels, rows), style.is_simulated(levels))


def trip_returns(
    trips: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw what round trips returned against how long they took.

    Parameters
    ----------
    trips : DataFrame
        `tk.pnl.round_trips`; only closed and liquidated trips are drawn.
    ax : Axes, optional
        Where to draw; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        Return in percent of what was opened, net of fees and funding, over hours (logarithmic);
        long and short trips apart.

    Examples
    --------
    >>> rows = pd.DataFrame({"side": ["long"], "status": "closed", "duration_hours": [2.0],
    ...     "return_": [0.01], "net": [5.0]})
    >>> trip_returns(rows).axes[0].get_ylabel()
    'net return, %'
    """
    colours = style.theme_of(theme)
    figure, ax = style.canvas(colours, ax=ax, transparent=transparent)
    rows = trips[trips["status"].isin(["closed", "liquidated"])] if len(trips) else trips
    _trips(ax, colours, rows) if len(rows) else style.nothing(ax, colours)
    return style.finish(figure, ax, colours, _trip_words(rows), style.is_simulated(trips))


def _map(ax: Axes, theme: Theme, rows: pd.DataFrame, coin: str) -> None:
    width = _width(rows)
    for side, colour, dashes in (("long", theme.bad, "-"), ("short", theme.good, "--")):
        mine = rows[rows["side"] == side].sort_values("distance", key=abs, kind="stable")
        if mine.empty:
            continue
        edge = mine["distance"].to_numpy()
        below = np.array([not _above(one, side) for one in edge])
        outward = np.where(below, -width, width)
        ax.bar(
            100 * (edge + outward / 2), mine["notional"], width=92 * width, color=colour,
            alpha=0.55, hatch=_HATCH[side], edgecolor=colour, linewidth=0.4, label=f"{side}s",
        )  # fmt: skip
        far = edge + outward  # there the whole bin has been passed
        for away in (below, ~below):
            if away.any():
                ax.step(
                    100 * np.concatenate([[0], far[away]]),
                    np.concatenate([[0], mine["cumulative"].to_numpy()[away]]),
                    where="post", color=colour, linestyle=dashes, linewidth=1.3,
                )  # fmt: skip
    ax.axvline(0, color=theme.text, linewidth=1)
    ax.spines["bottom"].set_visible(False)
    ax.set_xlabel(
        f"distance of the liquidation price from the mark price of {coin}, %", parse_math=False
    )
    ax.set_ylabel("notional, USD (lines: on the way)")
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: style.short_usd(value)))
    ax.xaxis.set_major_formatter(FuncFormatter(_percent))
    style.legend(ax, theme, ncols=2)
    ax.text(
        1.0, 1.02, _coverage(rows), transform=ax.transAxes, ha="right", va="bottom", fontsize=8,
        color=theme.muted,
    )  # fmt: skip


def _above(distance: float, side: str) -> bool:
    """Tell whether a bin lies above the mark price; at 0 its sign does not say."""
    return distance > 0 or (distance == 0 and side == "short")


def _width(rows: pd.DataFrame) -> float:
    """Give the width of a bin, as a share of the mark price."""
    row = rows.iloc[0]
    edge = row["low"] if _above(row["distance"], row["side"]) else row["high"]
    mark = edge / (1 + row["distance"])
    return float((row["high"] - row["low"]) / mark)


def _percent(value: float, _: int | None = None) -> str:
    return f"{value:+g}".replace("-", texts.MINUS) if value else "0"


def _coverage(rows: pd.DataFrame) -> str:
    shares = rows.groupby("side")["covered"].first()
    if shares.isna().all():
        return "share of open interest not known"
    parts = [f"{100 * share:.0f} % of {side}s" for side, share in shares.items()]
    return f"covers {', '.join(parts)}"


def _words(levels: pd.DataFrame, rows: pd.DataFrame) -> str:
    if not len(rows):
        return "Liquidation map: no data."
    sums = rows.groupby("side")["notional"].sum()
    sides = ", ".join(f"{style.usd(amount)} of {side}s" for side, amount in sums.items())
    left = levels.groupby("side")["unplaced"].first().sum()
    return (
        f"Liquidation map of {rows['coin'].iloc[0]}: {sides} in USD would be liquidated within "
        f"{100 * rows['distance'].abs().max():.0f} % of the mark price, {style.usd(left)} are "
        f"not placed; it {_coverage(rows)}."
    )


def _trips(ax: Axes, theme: Theme, rows: pd.DataFrame) -> None:
    for side, colour, marker in (("long", theme.good, "o"), ("short", theme.bad, "s")):
        mine = rows[rows["side"] == side]
        if mine.empty:
            continue
        hours = mine["duration_hours"].astype("float64").clip(lower=1 / 3600)
        ax.plot(
            hours, 100 * mine["return_"].astype("float64"), marker, color=colour, markersize=4.5,
            alpha=0.75, fillstyle="full" if side == "long" else "none", linestyle="none",
            label=f"{side} ({len(mine)})",
        )  # fmt: skip
    ax.axhline(0, color=theme.muted, linewidth=0.8)
    ax.set_xscale("log")
    ax.spines["bottom"].set_visible(False)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.set_xlabel("hours from flat to flat")
    ax.set_ylabel("net return, %")
    ax.yaxis.set_major_formatter(FuncFormatter(_percent))
    style.legend(ax, theme, ncols=2)


def _trip_words(rows: pd.DataFrame) -> str:
    if not len(rows):
        return "Round trips: no data."
    net = rows["net"].astype("float64")
    return (
        f"{len(rows)} round trips by duration and net return: {100 * (net > 0).mean():.0f} % "
        f"gained, the median took {rows['duration_hours'].median():.1f} hours, all together "
        f"brought {style.usd(net.sum(), signed=True)} USD."
    )
