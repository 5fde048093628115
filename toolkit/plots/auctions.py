"""Deploy auctions: how their price falls."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from toolkit.plots import axes, formats, style
from toolkit.plots.result_checks import draws_result
from toolkit.plots.themes import Theme, ThemeName


@draws_result
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
        `tk.auctions.decay`, of up to six auctions. A column ``auction``, if there is one, has
        their names.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        A line for each auction in gas over time (UTC). A running auction has a mark at its price
        now. An auction that is over has a mark at the price that was paid. The line is dotted
        after the mark; if the lowest price is not known, it ends there.

    Raises
    ------
    ValueError
        If there are too many auctions.

    Examples
    --------
    >>> import pandas as pd
    >>> stamps = pd.to_datetime(["2025-09-30", "2025-10-01"], utc=True)
    >>> rows = pd.DataFrame({"start": stamps[:1], "end": stamps[1:], "start_gas": [600.0],
    ...     "gas": [575.0], "floor_gas": [500.0], "elapsed": [0.25], "over": [False]})
    >>> auction_line(rows).get_ylabel()
    'gas price'
    """
    ax, colours = style.new_axes(ax, theme, transparent)
    _draw_auctions(ax, colours, decay) if len(decay) else style.draw_no_data(ax, colours)
    return style.finish_axes(ax, colours, _describe_auctions(decay), decay)


def _draw_auctions(ax: Axes, theme: Theme, decay: pd.DataFrame) -> None:
    axes.check_drawable(len(decay), axes.MAX_LINES, "auctions")
    rows: Any = decay.itertuples()
    for number, row in enumerate(rows):
        line = axes.line_style(theme, number)
        # Lines may lie on each other: the first one is the widest, so each of them is seen.
        width = 1.6 * (len(decay) - number)
        stop = row.start + (row.end - row.start) * _mark_position(row)
        before = _naive_times([row.start, stop])
        ax.plot(before, [row.start_gas, row.gas], color=line.colour, linewidth=width)
        if row.floor_gas == row.floor_gas:  # it is not NaN
            after = _naive_times([stop, row.end])
            prices = [row.gas, row.floor_gas]
            ax.plot(after, prices, color=line.colour, linestyle=":", linewidth=1.6)
        ax.plot(
            before[1:],
            [row.gas],
            line.marker,
            color=line.colour,
            markersize=8,
            markeredgecolor=theme.background,
            label=_auction_name(row),
        )
    axes.set_time_axis(ax, decay["start"].min(), decay["end"].max())
    ax.set_xlabel(f"{ax.get_xlabel()}; dotted: the line after the mark")
    ax.set_ylim(0, None)
    ax.set_ylabel("gas price")
    axes.set_usd_ticks(ax.yaxis)
    axes.add_legend(ax, theme, ncols=2)


def _auction_name(row: Any) -> str:
    name = getattr(row, "auction", "over" if row.over else "running")
    state = "paid" if row.over else "now"
    prices = [formats.usd_amount(price) for price in (row.start_gas, row.gas)]
    return f"{name}: from {prices[0]}, {state} {prices[1]}"


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
