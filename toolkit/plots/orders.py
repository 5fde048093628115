"""What becomes of orders: from status to status, and how they end."""

from typing import Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from toolkit.plots import cells, style
from toolkit.plots.style import Theme, ThemeName

_FIRST, _LAST = "(placed)", "(last)"
_MOST = 24
_CELLS: Final = ("share", "orders")
_ENDS: Final = ("filled", "canceled", "rejected", "active", "unknown")


def order_transitions(
    transitions: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw the matrix of statuses: of the orders in one, how many went to which other.

    Parameters
    ----------
    transitions : DataFrame
        `tk.orders.transitions` without groups.
    ax : Axes, optional
        Where to draw; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        A row for each status that orders left, a column for each they came to, shaded by the
        share of the row, with the number of orders.

    Raises
    ------
    ValueError
        If there are several matrices.

    Examples
    --------
    >>> rows = pd.DataFrame({"before": ["(placed)", "open"], "after": ["open", "filled"],
    ...                      "orders": [2, 2], "share": [1.0, 1.0]})
    >>> [text.get_text() for text in order_transitions(rows).axes[0].get_yticklabels()]
    ['(placed)', 'open']
    """
    colours = style.theme_of(theme)
    if len(transitions) and transitions.duplicated(["before", "after"]).any():
        raise ValueError("one matrix can be drawn, not one for each group: pick a group")
    before, after = _statuses(transitions) if len(transitions) else ([], [])
    size = (max(6.0, 2.2 + 0.5 * len(after)), 2.4 + 0.3 * len(before))
    figure, ax = style.canvas(colours, ax=ax, size=size, transparent=transparent)
    if before:
        _draw_matrix(ax, colours, transitions, before, after)
    else:
        style.nothing(ax, colours)
    words = _matrix_words(transitions)
    return style.finish(figure, ax, colours, words, style.is_simulated(transitions))


def _statuses(rows: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Give the statuses that can be left, and those that can be entered, the most frequent first.

    One that only ever ends an order needs no row: all that was there stayed.
    """
    size = rows.groupby("after")["orders"].sum().sort_values(ascending=False, kind="stable")
    left = set(rows.loc[rows["after"] != _LAST, "before"]) - {_FIRST}
    entered = [name for name in size.index if name != _LAST]
    before = [_FIRST, *(name for name in entered if name in left)]
    return before, [*entered, _LAST]


def _draw_matrix(
    ax: Axes, theme: Theme, rows: pd.DataFrame, before: list[str], after: list[str]
) -> None:
    wide = {name: rows.pivot(index="before", columns="after", values=name) for name in _CELLS}
    share, count = (wide[name].reindex(index=before, columns=after) for name in _CELLS)
    texts = np.array(
        [
            ["" if n != n else f"{int(n):,}" for n in line]
            for line in count.to_numpy(dtype="float64")
        ],
        dtype=object,
    )
    cells.shaded(ax, theme, share.to_numpy(dtype="float64"), texts)
    shown = ["stays so" if name == _LAST else name for name in after]
    cells.names(ax, before, shown, turned=True)
    ax.set_ylabel("from")
    ax.set_xlabel("to; number of orders, shaded by their share of the row")


def _matrix_words(rows: pd.DataFrame) -> str:
    if not len(rows):
        return "From status to status: no data."
    moved = rows[(rows["before"] != _FIRST) & (rows["after"] != _LAST)]
    top = moved.sort_values("orders", ascending=False, kind="stable").head(5)
    parts = [f"{r.before} to {r.after} {r.orders:,} ({r.share:.0%})" for r in top.itertuples()]
    placed = rows.loc[rows["before"] == _FIRST, "orders"].sum()
    return f"How {placed:,} orders go from status to status: {', '.join(parts) or 'none moves'}."


def order_mix(
    mix: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw how orders ended: the share of each status, with its interval.

    Parameters
    ----------
    mix : DataFrame
        `tk.orders.mix` without groups.
    ax : Axes, optional
        Where to draw; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        A dot for each status on a logarithmic axis in per cent, with its interval and number;
        the 24 most frequent.

    Raises
    ------
    ValueError
        If there are several mixes.

    Examples
    --------
    >>> rows = pd.DataFrame({"group": ["filled"], "status": ["filled"], "orders": [3], "n": [4],
    ...                      "share": [0.75], "low": [0.3], "high": [0.95]})
    >>> [text.get_text() for text in order_mix(rows).axes[0].get_yticklabels()]
    ['filled']
    """
    colours = style.theme_of(theme)
    if len(mix) and mix.duplicated("status").any():
        raise ValueError("one mix can be drawn, not one for each group: pick a group")
    rows = mix
    if len(mix):
        rows = mix.sort_values(["orders", "status"], ascending=[False, True]).head(_MOST)
    size = (7.2, 1.5 + 0.24 * max(4, len(rows)))
    figure, ax = style.canvas(colours, ax=ax, size=size, transparent=transparent)
    _draw_mix(ax, colours, rows) if len(rows) else style.nothing(ax, colours)
    return style.finish(figure, ax, colours, _mix_words(rows), style.is_simulated(mix))


def _marks(theme: Theme) -> dict[str, tuple[str, str]]:
    colours = (theme.good, theme.accent, theme.bad, theme.total, theme.muted)
    return dict(zip(_ENDS, zip(colours, "osDv^", strict=True), strict=True))


def _draw_mix(ax: Axes, theme: Theme, rows: pd.DataFrame) -> None:
    style.dress(ax, theme, grid="x")
    rows = rows.iloc[::-1].reset_index(drop=True)
    marks = _marks(theme)
    for name in _ENDS:
        part = rows[rows["group"] == name]
        if part.empty:
            continue
        colour, marker = marks[name]
        at = part.index.to_numpy()
        span = part[["low", "high"]].to_numpy(dtype="float64")
        ax.hlines(at, span[:, 0], span[:, 1], color=colour, linewidth=1.6)
        ax.plot(part["share"], at, marker, color=colour, markersize=5.5, label=name)
    ax.set_xscale("log")
    ax.set_xlim(None, 1.3)
    ax.xaxis.set_major_formatter(FuncFormatter(_percent))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_yticks(range(len(rows)), rows["status"].tolist(), parse_math=False)
    ax.set_ylim(-0.7, len(rows) - 0.3)
    for y, count in enumerate(rows["orders"]):
        style.beside(ax, y, f"{count:,}", theme.text)
    ax.set_xlabel("share of orders by last status; their number at the right")
    style.legend(ax, theme, ncols=5)


def _percent(share: float, _: int | None = None) -> str:
    return f"{100 * share:g} %"


def _mix_words(rows: pd.DataFrame) -> str:
    if not len(rows):
        return "How orders ended: no data."
    parts = [f"{r.status} {r.share:.1%}" for r in rows.head(8).itertuples()]
    return f"How {rows['n'].iloc[0]:,} orders ended: {', '.join(parts)}."
