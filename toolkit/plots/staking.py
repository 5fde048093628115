"""Staking: yields of validators, and their ranks week by week."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from toolkit.plots import axes, formats, style
from toolkit.plots.result_checks import draws_result
from toolkit.plots.themes import Theme, ThemeName
from toolkit.staking import RankStability

_MAX_VALIDATORS = 20
_DASHES = ("-", "--", "-.", ":")
_MARKERS = "osDv^<>ph*"


@draws_result
def validator_yields(
    yields: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
    """Draw the yearly yield of each validator with its interval.

    Parameters
    ----------
    yields : DataFrame
        `tk.staking.apy`.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        A mark for each of the 20 best validators in percent a year, the best on top.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"validator": ["0xa"], "n": [3], "apy": [0.02], "low": [0.019],
    ...                      "high": [0.021]})
    >>> validator_yields(rows).get_xlabel()
    'yield of a year, compounded weekly'
    """
    rows = yields
    if len(yields):
        known = yields[yields["apy"].notna()]
        rows = known.sort_values(["apy", "validator"]).tail(_MAX_VALIDATORS).reset_index(drop=True)
    size = (7.2, 1.4 + 0.3 * max(3, len(rows)))
    ax, colours = style.new_axes(ax, theme, transparent, size)
    _draw_yields(ax, colours, rows) if len(rows) else style.draw_no_data(ax, colours)
    return style.finish_axes(ax, colours, _describe_yields(rows), yields)


def _draw_yields(ax: Axes, theme: Theme, rows: pd.DataFrame) -> None:
    at = axes.name_rows(ax, theme, [_validator_name(name) for name in rows["validator"]])
    ax.hlines(at, rows["low"], rows["high"], color=theme.good, linewidth=1.8)
    ax.plot(rows["apy"], at, "o", color=theme.good, markersize=6)
    for y, row in enumerate(rows.itertuples()):
        axes.label_right_edge(ax, y, f"{row.apy:.2%}", theme.text)
    ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=1))
    ax.set_xlabel("yield of a year, compounded weekly")


def _validator_name(name: str) -> str:
    return formats.short_name(name) or "validator"


def _describe_yields(rows: pd.DataFrame) -> str:
    if not len(rows):
        return "Yields of validators: no data."
    parts = [
        f"{_validator_name(str(row.validator))} {row.apy:.2%}"
        for row in rows.iloc[::-1].itertuples()
    ]
    return f"Yields of a year of {len(rows)} validators: {', '.join(parts)}."


@draws_result
def validator_ranks(
    stability: RankStability,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
    """Draw the rank of each validator week by week.

    Parameters
    ----------
    stability : RankStability
        `tk.staking.rank_stability`.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        A line for each validator, with its name at the end and rank 1 on top. Of more than 20
        validators, those with the best mean rank are drawn.

    Examples
    --------
    >>> import pandas as pd
    >>> from toolkit.staking import rank_stability
    >>> history = pd.DataFrame({"validator": ["a", "b"] * 2, "gross_apr": 0.05,
    ...     "net_apr": [0.03, 0.02, 0.04, 0.02],
    ...     "week": pd.to_datetime(["2025-09-01"] * 2 + ["2025-09-08"] * 2, utc=True)})
    >>> validator_ranks(rank_stability(history, now="2025-09-15")).get_ylabel()
    'rank by net APR'
    """
    ranks = stability.ranks
    if len(ranks):
        best = ranks.groupby("validator")["rank"].mean().nsmallest(_MAX_VALIDATORS).index
        ranks = ranks[ranks["validator"].isin(best)]
    count = ranks["validator"].nunique() if len(ranks) else 0
    size = (7.2, 1.6 + 0.3 * max(4, count))
    ax, colours = style.new_axes(ax, theme, transparent, size)
    _draw_ranks(ax, colours, ranks) if count else style.draw_no_data(ax, colours)
    words = _describe_ranks(stability) if count else "Ranks of validators: no data."
    return style.finish_axes(ax, colours, words, stability.ranks)


def _draw_ranks(ax: Axes, theme: Theme, ranks: pd.DataFrame) -> None:
    palette = (
        theme.good, theme.bad, theme.accent, theme.fourth, theme.fifth, theme.text
    )  # fmt: skip
    for number, (name, own) in enumerate(ranks.groupby("validator", sort=True)):
        own = own.sort_values("week")
        colour = palette[number % len(palette)]
        ax.plot(
            own["week"].to_numpy(),
            own["rank"],
            color=colour,
            linestyle=_DASHES[number % len(_DASHES)],
            marker=_MARKERS[number % len(_MARKERS)],
            markersize=5.5,
            linewidth=1.6,
        )
        label_colour = colour if number % len(palette) < 3 else theme.text
        axes.label_right_edge(ax, own["rank"].iloc[-1], _validator_name(str(name)), label_colour)
    axes.set_time_axis(ax, ranks["week"].min(), ranks["week"].max())
    ax.invert_yaxis()
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_ylabel("rank by net APR")


def _describe_ranks(stability: RankStability) -> str:
    return (
        f"Ranks of {stability.ranks['validator'].nunique()} validators over {stability.n} weeks: "
        f"concordance {stability['concordance']:.2f}, "
        f"from week to week {stability['next_week']:.2f}."
    )
