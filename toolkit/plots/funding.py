"""Funding: who paid, who received; by coin, and over time."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toolkit.plots import style
from toolkit.plots.periods import LENGTHS, period_of, time_axis
from toolkit.plots.style import Theme, ThemeName

_MOST = 16  # bars that can be read in one figure


def funding_by_coin(
    sums: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw funding paid and received for each coin, the best net on top.

    Parameters
    ----------
    sums : DataFrame
        `tk.funding.sums` by one column (``"coin"``, ``"user"``, ``"dex"``, ...), float or exact.
    ax : Axes, optional
        Where to draw; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        Horizontal bars in USD: paid to the left, received to the right, net as a mark. Beyond
        16 rows the smallest are joined in one.

    Examples
    --------
    >>> rows = pd.DataFrame({"coin": ["BTC", "ETH"], "paid": [-2.0, 0.0],
    ...                      "received": [0.5, 1.0], "net": [-1.5, 1.0]})
    >>> [text.get_text() for text in funding_by_coin(rows).axes[0].get_yticklabels()]
    ['BTC', 'ETH']
    """
    colours = style.theme_of(theme)
    rows = _ranked(sums) if len(sums) else sums
    size = (7.2, 1.5 + 0.27 * max(4, len(rows)))
    figure, ax = style.canvas(colours, ax=ax, size=size, transparent=transparent)
    _draw_coins(ax, colours, rows) if len(rows) else style.nothing(ax, colours)
    words = _coin_words(rows)
    return style.finish(figure, ax, colours, words, style.is_simulated(sums))


def _ranked(sums: pd.DataFrame) -> pd.DataFrame:
    """Give names and floats, worst net first (bars are drawn from below), the small ones joined."""
    key = next(name for name in sums.columns if name not in ("paid", "received", "net"))
    rows = sums[["paid", "received", "net"]].astype("float64").reset_index(drop=True)
    rows.insert(0, "name", sums[key].astype(str).to_numpy())
    if len(rows) > _MOST:
        size = (rows["received"] - rows["paid"]).sort_values(ascending=False, kind="stable")
        rest = rows.loc[size.index[_MOST - 1 :]]
        joined = rest[["paid", "received", "net"]].sum().to_frame().T
        joined.insert(0, "name", f"{len(rest)} others")
        rows = pd.concat([rows.drop(rest.index), joined])
    return rows.sort_values(["net", "name"], kind="stable").reset_index(drop=True)


def _draw_coins(ax: Axes, theme: Theme, rows: pd.DataFrame) -> None:
    style.dress(ax, theme, grid="x")
    at = np.arange(len(rows))
    ax.barh(at, rows["paid"], height=0.62, color=theme.bad, label="paid")
    ax.barh(at, rows["received"], height=0.62, color=theme.good, label="received")
    ax.plot(
        rows["net"],
        at,
        "D",
        color=theme.text,
        markeredgecolor=theme.background,
        markersize=5.5,
        label="net",
    )
    ax.axvline(0, color=theme.muted, linewidth=0.8)
    for y, net in enumerate(rows["net"]):
        style.beside(ax, y, style.usd(net, signed=True), theme.text)
    ax.set_yticks(at, rows["name"].tolist(), parse_math=False)
    ax.set_ylim(-0.7, len(rows) - 0.3)
    ax.set_xlabel("USD; net in figures at the right")
    style.usd_axis(ax.xaxis.set_major_formatter)
    handles, _ = ax.get_legend_handles_labels()
    style.legend(ax, theme, ncols=3, handles=[*handles[1:], handles[0]])


def _coin_words(rows: pd.DataFrame) -> str:
    if not len(rows):
        return "Funding by coin: no data."
    parts = [
        f"{row.name_} {style.usd(row.net, signed=True)}"
        for row in rows.rename(columns={"name": "name_"}).iloc[::-1].itertuples()
    ]
    total = style.usd(rows["net"].sum(), signed=True)
    return f"Funding by coin in USD, net {total} in all: {', '.join(parts)}."


def funding_over_time(
    sums: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw funding paid and received in each hour, day or week, and the running net.

    Parameters
    ----------
    sums : DataFrame
        `tk.funding.sums` by ``"hour"``, ``"day"`` or ``"week"``, float or exact.
    ax : Axes, optional
        Where to draw; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        Bars and a line in USD over time (UTC).

    Raises
    ------
    ValueError
        If the sums are not by time.

    Examples
    --------
    >>> rows = pd.DataFrame({"day": pd.to_datetime([0], unit="ms", utc=True), "paid": [-2.0],
    ...                      "received": [0.5], "net": [-1.5]})
    >>> funding_over_time(rows).axes[0].get_xlabel()
    '01 Jan 1970 to 01 Jan 1970, UTC'
    """
    colours = style.theme_of(theme)
    figure, ax = style.canvas(colours, ax=ax, transparent=transparent)
    words = "Funding over time: no data."
    if len(sums):
        words = _draw_times(ax, colours, sums)
    else:
        style.nothing(ax, colours)
    return style.finish(figure, ax, colours, words, style.is_simulated(sums))


def _draw_times(ax: Axes, theme: Theme, sums: pd.DataFrame) -> str:
    key = period_of(sums)
    rows = sums.sort_values(key, kind="stable")
    net = rows["net"].astype("float64").to_numpy().cumsum()
    for name, colour in (("paid", theme.bad), ("received", theme.good)):
        heights = rows[name].astype("float64")
        width = 0.86 * (LENGTHS[key] / LENGTHS["day"])
        ax.bar(rows[key], heights, width=width, align="edge", color=colour, label=name)
    label = f"running net {style.usd(net[-1], signed=True)}"
    ax.plot(rows[key] + LENGTHS[key], net, color=theme.text, linewidth=1.8, label=label)
    ax.axhline(0, color=theme.muted, linewidth=0.8)
    ax.spines["bottom"].set_visible(False)
    time_axis(ax, rows[key].iloc[0], rows[key].iloc[-1])
    ax.set_ylabel("USD")
    style.usd_axis(ax.yaxis.set_major_formatter)
    style.legend(ax, theme, ncols=3)
    first, last = f"{rows[key].iloc[0]:%Y-%m-%d}", f"{rows[key].iloc[-1]:%Y-%m-%d}"
    return (
        f"Funding in USD by {key} from {first} to {last} UTC; "
        f"the running net ends at {style.usd(net[-1], signed=True)}."
    )
