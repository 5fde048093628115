"""Validators and auctions: yields and ranks of validators, and how prices of auctions fall."""

from typing import Any, Final, Unpack

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from toolkit.plots import axes, formats, style
from toolkit.staking import RankStability

_MAX_VALIDATORS: Final = 20
_DASHES: Final = ("-", "--", "-.", ":")
_MARKERS: Final = "osDv^<>ph*"


@style.draws_result("Yields of validators")
def validator_yields(yields: pd.DataFrame, **look: Unpack[style.PanelLook]) -> Axes:
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
    known = style.not_empty(yields[yields["apy"].notna()])
    rows = known.sort_values(["apy", "validator"]).tail(_MAX_VALIDATORS)
    panel = style.open_panel(yields, look, (7.2, 1.4 + 0.3 * max(3, len(rows))))
    names, texts = rows["validator"].map(_validator_name).tolist(), rows["apy"].map("{:.2%}".format)
    at = panel.name_rows(names, texts)
    panel.draw_intervals(at, rows, "apy", panel.theme.good, markersize=6)
    panel.label_axes("yield of a year, compounded weekly", x_ticks="{x:.1%}")
    parts = ", ".join(f"{name} {text}" for name, text in zip(names[::-1], texts[::-1], strict=True))
    return panel.finish(f"Yields of a year of {len(rows)} validators: {parts}.")


def _validator_name(name: object) -> str:
    return formats.short_name(str(name)) or "validator"


@style.draws_result("Ranks of validators")
def validator_ranks(stability: RankStability, **look: Unpack[style.PanelLook]) -> Axes:
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
    ranks = style.not_empty(stability.ranks)
    best = ranks.groupby("validator")["rank"].mean().nsmallest(_MAX_VALIDATORS).index
    ranks = ranks[ranks["validator"].isin(best)]
    panel = style.open_panel(stability.ranks, look, (7.2, 1.6 + 0.3 * max(4, len(best))))
    for number, (name, own) in enumerate(ranks.sort_values("week").groupby("validator")):
        colour = panel.theme.groups[number % axes.MAX_LINES]
        look_of = f"{_DASHES[number % 4]}{_MARKERS[number % 10]}"
        sizes: Any = {"markersize": 5.5, "linewidth": 1.6}
        panel.ax.plot(own["week"], own["rank"], look_of, color=colour, **sizes)
        label_colour = colour if number % axes.MAX_LINES < 3 else panel.theme.text
        panel.label_right_edge(own["rank"].iloc[-1], _validator_name(name), label_colour)
    panel.set_time_axis(ranks["week"], "rank by net APR")
    panel.ax.invert_yaxis()
    panel.ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    return panel.finish(
        f"Ranks of {stability.ranks['validator'].nunique()} validators over {stability.n} weeks: "
        f"concordance {stability['concordance']:.2f}, "
        f"from week to week {stability['next_week']:.2f}."
    )


@style.draws_result("Deploy auctions")
def auction_line(decay: pd.DataFrame, **look: Unpack[style.PanelLook]) -> Axes:
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
    panel = style.open_panel(decay, look)
    ax = panel.ax
    axes.check_drawable(len(decay), axes.MAX_LINES, "auctions")
    parts = []
    rows: Any = decay.itertuples()
    for number, row in enumerate(rows):
        colour, share = panel.theme.groups[number], float(row.elapsed)
        if row.over and row.floor_gas < row.start_gas:  # where the line reached the price paid
            share = (row.start_gas - row.gas) / (row.start_gas - row.floor_gas)
        stop = row.start + (row.end - row.start) * share
        # Lines may lie on each other: the first one is the widest, so each of them is seen.
        width, prices = 1.6 * (len(decay) - number), [row.start_gas, row.gas]
        ax.plot([row.start, stop], prices, color=colour, linewidth=width)
        if pd.notna(row.floor_gas):
            ax.plot([stop, row.end], [row.gas, row.floor_gas], ":", color=colour, linewidth=1.6)
        first, last = map(formats.usd_amount, prices)
        parts.append(f"from {first}, {'paid' if row.over else 'now'} {last}")
        name = getattr(row, "auction", "over" if row.over else "running")
        ax.plot(
            [stop], [row.gas], panel.line_style(number)["marker"], color=colour, markersize=8,
            markeredgecolor=panel.theme.background, label=f"{name}: {parts[-1]}",
        )  # fmt: skip
    ax.set_ylim(bottom=0)
    times, note = [*decay["start"], *decay["end"]], "; dotted: the line after the mark"
    panel.set_time_axis(times, "gas price", y_ticks=formats.usd_tick, note=note, legend=2)
    return panel.finish(f"Prices of {len(decay)} deploy auctions in gas: {'; '.join(parts)}.")
