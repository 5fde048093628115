"""Validators and auctions: yields and ranks of validators, and how prices of auctions fall."""

from typing import Any, Final, Unpack

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from toolkit.plots import axes, formats, style
from toolkit.plots.style import PanelLook
from toolkit.staking import RankStability

_MAX_VALIDATORS: Final = 20
_DASHES: Final = ("-", "--", "-.", ":")
_MARKERS: Final = "osDv^<>ph*"


@style.draws_result
def validator_yields(yields: pd.DataFrame, **look: Unpack[PanelLook]) -> Axes:
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
        rows = known.sort_values(["apy", "validator"]).tail(_MAX_VALIDATORS)
    panel = style.open_panel(yields, look, (7.2, 1.4 + 0.3 * max(3, len(rows))))
    if rows.empty:
        return panel.no_data("Yields of validators")
    names = rows["validator"].map(_validator_name).tolist()
    at = panel.name_rows(names)
    panel.draw_intervals(at, rows["apy"], rows["low"], rows["high"], panel.theme.good, size=6)
    texts = [f"{apy:.2%}" for apy in rows["apy"]]
    for y, text in enumerate(texts):
        panel.label_right_edge(y, text)
    panel.label_axes("yield of a year, compounded weekly", x_ticks="{x:.1%}")
    parts = ", ".join(f"{name} {text}" for name, text in zip(names[::-1], texts[::-1], strict=True))
    return panel.finish(f"Yields of a year of {len(rows)} validators: {parts}.")


def _validator_name(name: object) -> str:
    return formats.short_name(str(name)) or "validator"


@style.draws_result
def validator_ranks(stability: RankStability, **look: Unpack[PanelLook]) -> Axes:
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
    panel = style.open_panel(stability.ranks, look, (7.2, 1.6 + 0.3 * max(4, count)))
    if not count:
        return panel.no_data("Ranks of validators")
    for number, (name, own) in enumerate(ranks.groupby("validator", sort=True)):
        own = own.sort_values("week")
        colour = panel.theme.groups[number % axes.MAX_LINES]
        panel.ax.plot(
            own["week"].to_numpy(), own["rank"], color=colour, linestyle=_DASHES[number % 4],
            marker=_MARKERS[number % 10], markersize=5.5, linewidth=1.6,
        )  # fmt: skip
        label_colour = colour if number % axes.MAX_LINES < 3 else panel.theme.text
        panel.label_right_edge(own["rank"].iloc[-1], _validator_name(name), label_colour)
    panel.set_time_axis(ranks["week"].min(), ranks["week"].max(), "rank by net APR")
    panel.ax.invert_yaxis()
    panel.ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    return panel.finish(
        f"Ranks of {stability.ranks['validator'].nunique()} validators over {stability.n} weeks: "
        f"concordance {stability['concordance']:.2f}, "
        f"from week to week {stability['next_week']:.2f}."
    )


@style.draws_result
def auction_line(decay: pd.DataFrame, **look: Unpack[PanelLook]) -> Axes:
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
    if decay.empty:
        return panel.no_data("Deploy auctions")
    ax = panel.ax
    axes.check_drawable(len(decay), axes.MAX_LINES, "auctions")
    parts = []
    rows: Any = decay.itertuples()
    for number, row in enumerate(rows):
        line = panel.line_style(number)
        share = float(row.elapsed)
        if row.over and row.floor_gas < row.start_gas:  # where the line reached the price paid
            share = (row.start_gas - row.gas) / (row.start_gas - row.floor_gas)
        stop = row.start + (row.end - row.start) * share
        times = _naive_times([row.start, stop, row.end])
        # Lines may lie on each other: the first one is the widest, so each of them is seen.
        width = 1.6 * (len(decay) - number)
        ax.plot(times[:2], [row.start_gas, row.gas], color=line.color, linewidth=width)
        if pd.notna(row.floor_gas):
            after = [row.gas, row.floor_gas]
            ax.plot(times[1:], after, color=line.color, linestyle=":", linewidth=1.6)
        first, last = formats.usd_amount(row.start_gas), formats.usd_amount(row.gas)
        parts.append(f"from {first}, {'paid' if row.over else 'now'} {last}")
        name = getattr(row, "auction", "over" if row.over else "running")
        ax.plot(
            times[1:2], [row.gas], line.marker, color=line.color, markersize=8,
            markeredgecolor=panel.theme.background, label=f"{name}: {parts[-1]}",
        )  # fmt: skip
    ax.set_ylim(bottom=0)
    first, last, note = (
        decay["start"].min(),
        decay["end"].max(),
        "; dotted: the line after the mark",
    )
    panel.set_time_axis(first, last, "gas price", y_ticks=formats.usd_tick, note=note)
    panel.add_legend(ncols=2)
    return panel.finish(f"Prices of {len(decay)} deploy auctions in gas: {'; '.join(parts)}.")


def _naive_times(times: list[pd.Timestamp]) -> Any:
    return np.array([stamp.tz_convert("UTC").tz_localize(None) for stamp in times], dtype="M8[ms]")
