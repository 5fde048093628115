"""Funding as it adds up."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toolkit.plots import series, style
from toolkit.plots.periods import time_axis
from toolkit.plots.style import Theme, ThemeName

_OWN = {"time", "usdc", "payments", "total"}


def funding_accrual(
    accrual: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw funding as it adds up over time, a line for each group.

    Parameters
    ----------
    accrual : DataFrame
        `tk.funding.accrual`, float or exact.
    ax : Axes, optional
        Where to draw; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        Steps in USD over time (UTC), positive where received. Of more than six groups those that
        end furthest from 0; how many are left out stands below.

    Examples
    --------
    >>> rows = pd.DataFrame({"coin": "BTC", "time": pd.to_datetime([0, 1], unit="h", utc=True),
    ...                      "usdc": [1.0, 2.0], "payments": 1, "total": [1.0, 3.0]})
    >>> funding_accrual(rows).axes[0].get_ylabel()
    'funding received, USD'
    """
    colours = style.theme_of(theme)
    figure, ax = style.canvas(colours, ax=ax, transparent=transparent)
    lines = _lines(accrual) if len(accrual) else []
    _draw(ax, colours, lines) if lines else style.nothing(ax, colours)
    return style.finish(figure, ax, colours, _words(lines), style.is_simulated(accrual))


def _lines(accrual: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    keys = [name for name in accrual.columns if name not in _OWN]
    rows = accrual.assign(total=accrual["total"].astype("float64"))
    split = rows.groupby(keys, sort=True) if keys else [("all", rows)]
    lines = [(series.named(key), group.sort_values("time")) for key, group in split]
    return sorted(lines, key=lambda line: -abs(float(line[1]["total"].iloc[-1])))


def _draw(ax: Axes, theme: Theme, lines: list[tuple[str, pd.DataFrame]]) -> None:
    first = min(rows["time"].iloc[0] for _, rows in lines)
    last = max(rows["time"].iloc[-1] for _, rows in lines)
    series.zero_line(ax, theme)
    for number, (name, rows) in enumerate(lines[: series.MOST]):
        look = series.look(theme, number)
        ax.plot(
            [*rows["time"], last],
            [*rows["total"], rows["total"].iloc[-1]],
            drawstyle="steps-post",
            color=look.colour,
            linestyle=look.line,
            linewidth=1.8,
            marker=look.marker,
            markevery=[len(rows)],
            markersize=6,
            label=name,
        )
    style.usd_axis(ax.yaxis.set_major_formatter)
    time_axis(ax, first, last)
    left_out = len(lines) - series.MOST
    if left_out > 0:
        ax.set_xlabel(f"{ax.get_xlabel()}; {left_out} smaller ones not drawn")
    ax.set_ylabel("funding received, USD")
    handles, labels = ax.get_legend_handles_labels()
    style.legend(ax, theme, ncols=min(6, len(labels)), handles=handles)


def _words(lines: list[tuple[str, pd.DataFrame]]) -> str:
    if not lines:
        return "Funding as it adds up: no data."
    ends = [
        f"{name} {style.usd(rows['total'].iloc[-1], signed=True)}"
        for name, rows in lines[: series.MOST]
    ]
    more = len(lines) - series.MOST
    others = f"; {more} smaller ones not drawn" if more > 0 else ""
    return f"Funding as it adds up, in USD at the end: {', '.join(ends)}{others}."
