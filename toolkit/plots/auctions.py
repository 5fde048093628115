"""Deploy auctions: the line their price falls along."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toolkit.plots import style
from toolkit.plots.periods import time_axis
from toolkit.plots.style import Theme, ThemeName

_LINES = ("-", "--", "-.", ":")


def auction_line(
    decay: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw how the price of each auction falls, and where it stands or stopped.

    Parameters
    ----------
    decay : DataFrame
        `tk.auctions.decay`.
    ax : Axes, optional
        Where to draw; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        A line for each auction in gas over time (UTC). A running one has a mark at its price
        now, one that is over at the price that was paid; without a known floor the line stops
        there.

    Examples
    --------
    >>> stamps = pd.to_datetime(["2025-09-30", "2025-10-01"], utc=True)
    >>> rows = pd.DataFrame({"start": stamps[:1], "end": stamps[1:], "start_gas": [600.0],
    ...     "gas": [575.0], "floor_gas": [500.0], "elapsed": [0.25], "over": [False]})
    >>> auction_line(rows).axes[0].get_ylabel()
    'gas price'
    """
    colours = style.theme_of(theme)
    figure, ax = style.canvas(colours, ax=ax, transparent=transparent)
    _draw(ax, colours, decay) if len(decay) else style.nothing(ax, colours)
    return style.finish(figure, ax, colours, _words(decay), style.is_simulated(decay))


def _draw(ax: Axes, theme: Theme, decay: pd.DataFrame) -> None:
    few = len(decay) <= 6
    rows: Any = decay.itertuples()
    for place, row in enumerate(rows):
        colour = theme.bad if row.over else theme.good
        stop = row.start + (row.end - row.start) * _share(row)
        known = row.floor_gas == row.floor_gas
        end, low = (row.end, row.floor_gas) if known else (stop, row.gas)
        ax.plot(
            _plain([row.start, end]),
            [row.start_gas, low],
            color=colour,
            linestyle=_LINES[place % len(_LINES)],
            linewidth=1.6,
        )
        ax.plot(
            _plain([stop]),
            [row.gas],
            "s" if row.over else "o",
            color=colour,
            markersize=7,
            markeredgecolor=theme.background,
        )
        if few:
            word = "paid" if row.over else "now"
            ax.annotate(
                f"{word} {style.usd(row.gas)}",
                (_plain([stop])[0], row.gas),
                xytext=(-8, -12) if row.over else (8, 4),
                textcoords="offset points",
                ha="right" if row.over else "left",
                fontsize=9,
                color=theme.text,
            )
    time_axis(ax, decay["start"].min(), decay["end"].max())
    ax.set_ylim(0, None)
    ax.set_ylabel("gas price")
    style.usd_axis(ax.yaxis.set_major_formatter)


def _share(row: Any) -> float:
    """Give where on the line the mark is: for one that is over, where the line was at its price."""
    if row.over and row.floor_gas < row.start_gas:
        return float((row.start_gas - row.gas) / (row.start_gas - row.floor_gas))
    return float(row.elapsed)


def _plain(times: list[pd.Timestamp]) -> Any:
    return np.array([stamp.tz_convert("UTC").tz_localize(None) for stamp in times], dtype="M8[ms]")


def _words(decay: pd.DataFrame) -> str:
    if not len(decay):
        return "Deploy auctions: no data."
    parts = [
        f"from {style.usd(row.start_gas)}, {'paid' if row.over else 'now'} {style.usd(row.gas)}"
        for row in decay.itertuples()
    ]
    return f"The price of {len(decay)} deploy auctions, in gas: {'; '.join(parts)}."
