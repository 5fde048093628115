"""Staking: what validators yield, and whether the best ones stay so."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from toolkit.plots import style
from toolkit.plots.periods import time_axis
from toolkit.plots.style import Theme, ThemeName

if TYPE_CHECKING:
    from toolkit.staking import RankStability

_MOST = 20
_LINES = ("-", "--", "-.", ":")
_MARKERS = "osDv^<>ph*"


def validator_yields(
    yields: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw the yearly yield of each validator with its interval.

    Parameters
    ----------
    yields : DataFrame
        `tk.staking.apy`.
    ax : Axes, optional
        Where to draw; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        A mark for each validator, the best on top, in per cent a year; the 20 best.

    Examples
    --------
    >>> rows = pd.DataFrame({"validator": ["0xa"], "n": [3], "apy": [0.02], "low": [0.019],
    ...                      "high": [0.021]})
    >>> validator_yields(rows).axes[0].get_xlabel()
    'yield of a year, compounded weekly'
    """
    colours = style.theme_of(theme)
    rows = yields
    if len(yields):
        known = yields[yields["apy"].notna()]
        rows = known.sort_values(["apy", "validator"]).tail(_MOST).reset_index(drop=True)
    size = (7.2, 1.4 + 0.3 * max(3, len(rows)))
    figure, ax = style.canvas(colours, ax=ax, size=size, transparent=transparent)
    _draw_yields(ax, colours, rows) if len(rows) else style.nothing(ax, colours)
    return style.finish(figure, ax, colours, _yield_words(rows), style.is_simulated(yields))


def _draw_yields(ax: Axes, theme: Theme, rows: pd.DataFrame) -> None:
    style.dress(ax, theme, grid="x")
    at = np.arange(len(rows))
    ax.hlines(at, rows["low"], rows["high"], color=theme.good, linewidth=1.8)
    ax.plot(rows["apy"], at, "o", color=theme.good, markersize=6)
    for y, row in enumerate(rows.itertuples()):
        style.beside(ax, y, f"{row.apy:.2%}", theme.text)
    ax.set_yticks(at, [short(name) for name in rows["validator"]], parse_math=False)
    ax.set_ylim(-0.7, len(rows) - 0.3)
    ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=1))
    ax.set_xlabel("yield of a year, compounded weekly")


def short(name: str) -> str:
    """Give an address in few characters."""
    if not name:
        return "validator"
    return f"{name[:6]}...{name[-4:]}" if name[:2] == "0x" and len(name) > 14 else name


def _yield_words(rows: pd.DataFrame) -> str:
    if not len(rows):
        return "Yields of validators: no data."
    parts = [f"{short(str(row.validator))} {row.apy:.2%}" for row in rows.iloc[::-1].itertuples()]
    return f"Yields of a year of {len(rows)} validators: {', '.join(parts)}."


def validator_ranks(
    stability: "RankStability",
    *,
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw the rank of each validator week by week.

    Parameters
    ----------
    stability : RankStability
        `tk.staking.rank_stability`.
    ax : Axes, optional
        Where to draw; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        A line for each validator, rank 1 on top, named where it ends; beyond 20 validators
        those with the best mean rank.

    Examples
    --------
    >>> from toolkit.staking import rank_stability
    >>> history = pd.DataFrame({"validator": ["a", "b"] * 2, "gross_apr": 0.05,
    ...     "net_apr": [0.03, 0.02, 0.04, 0.02],
    ...     "week": pd.to_datetime(["2025-09-01"] * 2 + ["2025-09-08"] * 2, utc=True)})
    >>> validator_ranks(rank_stability(history, now="2025-09-15")).axes[0].get_ylabel()
    'rank by net APR'
    """
    colours = style.theme_of(theme)
    ranks = stability.ranks
    if len(ranks):
        best = ranks.groupby("validator")["rank"].mean().nsmallest(_MOST).index
        ranks = ranks[ranks["validator"].isin(best)]
    names = ranks["validator"].nunique() if len(ranks) else 0
    size = (7.2, 1.6 + 0.3 * max(4, names))
    figure, ax = style.canvas(colours, ax=ax, size=size, transparent=transparent)
    _draw_ranks(ax, colours, ranks) if names else style.nothing(ax, colours)
    words = _rank_words(stability) if names else "Ranks of validators: no data."
    return style.finish(figure, ax, colours, words, style.is_simulated(stability.ranks))


def _draw_ranks(ax: Axes, theme: Theme, ranks: pd.DataFrame) -> None:
    palette = (theme.good, theme.bad, theme.accent, theme.total, theme.muted)
    for place, (name, own) in enumerate(ranks.groupby("validator", sort=True)):
        own = own.sort_values("week")
        colour = palette[place % len(palette)]
        ax.plot(
            own["week"].to_numpy(),
            own["rank"],
            color=colour,
            linestyle=_LINES[place % len(_LINES)],
            marker=_MARKERS[place % len(_MARKERS)],
            markersize=5.5,
            linewidth=1.6,
        )
        clear = colour if place % len(palette) < 3 else theme.text
        style.beside(ax, own["rank"].iloc[-1], short(str(name)), clear)
    time_axis(ax, ranks["week"].min(), ranks["week"].max())
    ax.invert_yaxis()
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_ylabel("rank by net APR")


def _rank_words(stability: "RankStability") -> str:
    return (
        f"Ranks of {stability.ranks['validator'].nunique()} validators over {stability.n} weeks: "
        f"concordance {stability['concordance']:.2f}, "
        f"from week to week {stability['next_week']:.2f}."
    )
