"""Deploy auctions: how their price falls."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from toolkit.plots import axes, formats, style, themes
from toolkit.plots.themes import Theme, ThemeName

_DASHES = ("-", "--", "-.", ":")


def auction_line(
    decay: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
    """Draw the falling price of each auction, and the price now or the price paid.

    Parameters
    ----------
    decay : DataFrame
        `tk.auctions.decay`.
    ax, theme, transparent
        Axes to draw on (default: a new figure), see `use`; no background if `transparent`.

    Returns
    -------
    Axes
        A line for each auction in gas over time (UTC). A running auction has a mark at its price
        now. An auction that is over has a mark at the price that was paid. If the lowest price
        is not known, the line ends at the mark.

    Examples
    --------
    >>> stamps = pd.to_datetime(["2025-09-30", "2025-10-01"], utc=True)
    >>> rows = pd.DataFrame({"start": stamps[:1], "end": stamps[1:], "start_gas": [600.0],
    ...     "gas": [575.0], "floor_gas": [500.0], "elapsed": [0.25], "over": [False]})
    >>> auction_line(rows).get_ylabel()
    'gas price'
    """
    colours = themes.get_theme(theme)
    ax = style.new_axes(colours, ax=ax, transparent=transparent)
    _draw_auctions(ax, colours, decay) if len(decay) else style.draw_no_data(ax, colours)
    return style.finish_axes(ax, colours, _describe_auctions(decay), style.is_simulated(decay))


def _draw_auctions(ax: Axes, theme: Theme, decay: pd.DataFrame) -> None:
    has_labels = len(decay) <= 6
    rows: Any = decay.itertuples()
    for number, row in enumerate(rows):
        colour = theme.bad if row.over else theme.good
        stop = row.start + (row.end - row.start) * _mark_position(row)
        has_floor = row.floor_gas == row.floor_gas  # it is not NaN
        end, low = (row.end, row.floor_gas) if has_floor else (stop, row.gas)
        ax.plot(
            _naive_times([row.start, end]),
            [row.start_gas, low],
            color=colour,
            linestyle=_DASHES[number % len(_DASHES)],
            linewidth=1.6,
        )
        ax.plot(
            _naive_times([stop]),
            [row.gas],
            "s" if row.over else "o",
            color=colour,
            markersize=7,
            markeredgecolor=theme.background,
        )
        if has_labels:
            word = "paid" if row.over else "now"
            point = (_naive_times([stop])[0], row.gas)
            offset, side = ((-8, -12), "right") if row.over else ((8, 4), "left")
            text = f"{word} {formats.usd_amount(row.gas)}"
            axes.label_point(ax, theme, text, point, offset, ha=side)
    axes.set_time_axis(ax, decay["start"].min(), decay["end"].max())
    ax.set_ylim(0, None)
    ax.set_ylabel("gas price")
    axes.set_usd_ticks(ax.yaxis)


def _mark_position(row: Any) -> float:
    """Return the position of the mark on the line, from 0 to 1.

    For an auction that is over, this is where the line reached the price that was paid.
    """
    if row.over and row.floor_gas < row.start_gas:
        return float((row.start_gas - row.gas) / (row.start_gas - row.floor_gas))
    return float(row.elapsed)


def _naive_times(times: list[pd.Timestamp]) -> Any:
    return np.array([stamp.tz_convert("UTC").tz_localize(None) for stamp in times], dtype="M8[ms]")


def _describe_auctions(decay: pd.DataFrame) -> str:
    if not len(decay):
        return "Deploy auctions: no data."
    parts = [
        f"from {formats.usd_amount(row.start_gas)}, "
        f"{'paid' if row.over else 'now'} {formats.usd_amount(row.gas)}"
        for row in decay.itertuples()
    ]
    return f"Prices of {len(decay)} deploy auctions in gas: {'; '.join(parts)}."
