"""Execution: price changes after fills, and half spreads."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from toolkit.execution import Markout, Spreads
from toolkit.plots import axes, formats, style
from toolkit.plots.result_checks import draws_result
from toolkit.plots.themes import Theme, ThemeName

_NOT_KEYS = {"seconds", "name", "estimate", "low", "high", "usd", "n", "missing", "clusters",
        "age_seconds"}  # fmt: skip
_NAMES = ("effective", "realised", "impact")


@draws_result
def markout(
    markout: Markout,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
    """Draw the gain of fills from later prices, with intervals.

    Parameters
    ----------
    markout : Markout
        `tk.execution.markout`, of up to six groups.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        Gain in basis points over time since the fill, on a logarithmic axis; times before the fill
        are negative. Each group has a line, and the band of its intervals; each point has its
        number of fills.

    Raises
    ------
    ValueError
        If there are too many groups.

    Examples
    --------
    >>> import pandas as pd
    >>> from toolkit import execution
    >>> fills = pd.DataFrame({"coin": "XYZ", "px": [100.0], "sz": [2.0], "side": ["B"],
    ...     "crossed": [True], "time": pd.to_datetime([1000], unit="ms", utc=True)})
    >>> mids = pd.DataFrame({"coin": "XYZ", "mid_px": [100.5],
    ...     "time": pd.to_datetime([9000], unit="ms", utc=True)})
    >>> markout(execution.markout(fills, mids, ["10s", "1m"])).get_xlabel()
    'time since the fill; numbers: fills'
    """
    groups = _split_groups(markout.params)
    ax, colours = style.new_axes(ax, theme, transparent)
    has_values = bool(markout.params["estimate"].notna().any())
    _draw_markout(ax, colours, markout, groups) if has_values else style.draw_no_data(ax, colours)
    words = _describe_markout(groups) if has_values else "Gain after fills: no data."
    return style.finish_axes(ax, colours, words, markout.params)


def _split_groups(params: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    keys = [name for name in params.columns if name not in _NOT_KEYS]
    split = params.groupby(keys, sort=True) if keys else [((), params)]
    groups = [(axes.group_name(key), rows) for key, rows in split]
    axes.check_drawable(len(groups), axes.MAX_LINES, "groups")
    return groups


def _draw_markout(
    ax: Axes, theme: Theme, estimate: Markout, groups: list[tuple[str, pd.DataFrame]]
) -> None:
    seconds = np.unique(estimate.params["seconds"])
    if seconds[0] < 0:
        ax.set_xscale("symlog", linthresh=float(np.abs(seconds).min()), linscale=0.3)
        ax.axvline(0, color=theme.muted, linewidth=0.8)
    else:
        ax.set_xscale("log")
    axes.add_zero_line(ax, theme)
    for number, (name, rows) in enumerate(groups):
        line = axes.line_style(theme, number)
        rows = rows.sort_values("seconds")
        ax.plot(
            rows["seconds"],
            rows["estimate"],
            color=line.colour,
            linestyle=line.dashes,
            marker=line.marker,
            markerfacecolor=theme.background if line.is_hollow else line.colour,
            markersize=6,
            linewidth=1.8,
            label=name or "all fills",
        )
        for place, count in zip(
            rows[["seconds", "estimate"]].to_numpy(dtype="float64"), rows["n"], strict=True
        ):
            if np.isfinite(place[1]):
                offset = (0, -14 if number % 2 else 7)
                axes.label_point(
                    ax, theme, f"{count:,}", tuple(place), offset, fontsize=7.5, color=line.colour
                )
        ax.fill_between(
            rows["seconds"], rows["low"], rows["high"], color=line.colour, alpha=0.16, linewidth=0
        )
    axes.set_ticks(ax.xaxis, seconds.tolist(), formats.time_span)
    ax.yaxis.set_major_formatter(FuncFormatter(formats.signed_number))
    ax.margins(x=0.06)
    ax.set_ylabel("gain of the account, bps (below 0: a loss)")
    ax.set_xlabel("time since the fill; numbers: fills")
    axes.add_legend(ax, theme, ncols=min(3, len(groups)))


def _describe_markout(groups: list[tuple[str, pd.DataFrame]]) -> str:
    parts = []
    for name, rows in groups:
        last = rows[rows["estimate"].notna()].sort_values("seconds").tail(1)
        for row in last.to_dict("records"):
            parts.append(
                f"{name or 'all fills'}: {formats.signed_number(round(row['estimate'], 2))} bps"
                f"{_interval_text(row)} "
                f"{'after' if row['seconds'] > 0 else 'before'} "
                f"{formats.time_span(abs(row['seconds']))}, {row['missing']} fills without a price"
            )
    return f"Gain after fills. {'; '.join(parts)}."


def _interval_text(row: Mapping[Any, Any]) -> str:
    """Return an interval in brackets; empty if it is not known."""
    if row["low"] != row["low"]:
        return ""
    ends = " to ".join(formats.signed_number(round(row[name], 2)) for name in ("low", "high"))
    return f" ({ends})"


@draws_result
def spreads(
    spreads: Spreads,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
    """Draw effective and realised half spreads and price impact, with intervals.

    Parameters
    ----------
    spreads : Spreads
        `tk.execution.spreads`, of up to six groups.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        Costs in basis points, positive if the account of the fill pays.

    Raises
    ------
    ValueError
        If there are too many groups.

    Examples
    --------
    >>> import pandas as pd
    >>> from toolkit import execution
    >>> fills = pd.DataFrame({"coin": "XYZ", "px": [100.1], "sz": [2.0], "side": ["B"],
    ...     "crossed": [True], "time": pd.to_datetime([1000], unit="ms", utc=True)})
    >>> mids = pd.DataFrame({"coin": "XYZ", "mid_px": [100.0, 100.04],
    ...     "time": pd.to_datetime([0, 60_000], unit="ms", utc=True)})
    >>> spreads(execution.spreads(fills, mids, "1m")).get_ylabel()
    'cost of the account, bps (below 0: it earns)'
    """
    groups = _split_groups(spreads.params)
    ax, colours = style.new_axes(ax, theme, transparent)
    has_values = bool(spreads.params["estimate"].notna().any())
    _draw_spreads(ax, colours, spreads, groups) if has_values else style.draw_no_data(ax, colours)
    words = _describe_spreads(spreads, groups) if has_values else "Spreads of fills: no data."
    return style.finish_axes(ax, colours, words, spreads.params)


def _draw_spreads(
    ax: Axes, theme: Theme, estimate: Spreads, groups: list[tuple[str, pd.DataFrame]]
) -> None:
    axes.add_zero_line(ax, theme)
    for number, (name, rows) in enumerate(groups):
        line = axes.line_style(theme, number)
        rows = rows.set_index("name").loc[list(_NAMES)]
        at = np.arange(3) + 0.16 * (number - (len(groups) - 1) / 2)
        reach = np.abs(rows[["low", "high"]].to_numpy().T - rows["estimate"].to_numpy())
        ax.errorbar(
            at,
            rows["estimate"],
            yerr=np.nan_to_num(reach),
            color=line.colour,
            linestyle="",
            marker=line.marker,
            markerfacecolor=theme.background if line.is_hollow else line.colour,
            markersize=7,
            capsize=4,
            label=f"{name or 'all fills'} (n = {rows['n'].max():,})",
        )
    after = _after_text(estimate)
    ax.set_xticks(range(3), ["effective", f"realised{after}", f"impact{after}"])
    ax.set_xlim(-0.6, 2.6)
    ax.yaxis.set_major_formatter(FuncFormatter(formats.signed_number))
    ax.set_ylabel("cost of the account, bps (below 0: it earns)")
    axes.add_legend(ax, theme, ncols=min(3, len(groups)))


def _after_text(estimate: Spreads) -> str:
    """Return the time after which the parts were measured; empty for parts from the tape."""
    return f" after {formats.time_span(estimate.seconds)}" if np.isfinite(estimate.seconds) else ""


def _describe_spreads(estimate: Spreads, groups: list[tuple[str, pd.DataFrame]]) -> str:
    parts = [
        f"{name or 'all fills'}: "
        + ", ".join(
            f"{row['name']} {formats.signed_number(round(row['estimate'], 2))} bps"
            f"{_interval_text(row)}"
            for row in rows.to_dict("records")
        )
        for name, rows in groups
    ]
    return f"Half spreads of fills and impact{_after_text(estimate)}. {'; '.join(parts)}."


_PARTS: Final = {
    "spread": "spread",
    "taking": "taking",
    "adverse": "adverse selection",
    "inventory": "inventory",
    "costs": "fees and rebates",
    "funding": "funding",
}


@draws_result
def maker_days(
    days: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
    """Draw what a maker earned and lost on each day, and the net.

    Parameters
    ----------
    days : DataFrame
        `tk.execution.maker_days` by day, of one account or of all together.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        For each day one bar with the gains upwards and one with the losses downwards, in USD, and a
        diamond at the net. Adverse selection is that of the longest horizon. A day whose inventory
        is not known has no diamond.

    Raises
    ------
    ValueError
        If a day has several rows, or the frame is not by day.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"day": pd.Timestamp("2025-09-01", tz="UTC"), "spread": 9.0, "taking": -1.0,
    ...        "adverse_300s": -3.0, "inventory": 2.0, "rebates": 0.5, "fees": -1.0,
    ...        "funding": 0.5, "net": 7.0}
    >>> maker_days(pd.DataFrame([row])).get_ylabel()
    'USD, losses go down'
    """
    ax, colours = style.new_axes(ax, theme, transparent)
    if not len(days):
        style.draw_no_data(ax, colours)
        return style.finish_axes(ax, colours, "Days: no data.", days)
    if days["day"].duplicated().any():
        keys = days.select_dtypes(include=["str", "category", "datetimetz"])
        raise axes.several_parts_error("maker_days", "row of each day", "days", keys)
    days = days.sort_values("day")
    last = [name for name in days.columns if name.startswith("adverse_")][-1]
    parts = days.assign(adverse=days[last], costs=days["rebates"] + days["fees"])
    at: Any = days["day"].dt.to_pydatetime()
    ends = {1: np.zeros(len(days)), -1: np.zeros(len(days))}
    for number, (name, label) in enumerate(_PARTS.items()):
        values = parts[name].fillna(0.0).to_numpy(np.float64)
        colour: Any = axes.line_style(colours, number).colour
        for sign, bottom in ends.items():
            height = np.where(np.sign(values) == sign, values, 0.0)
            ax.bar(at, height, bottom=bottom, width=0.7, color=colour,
                   label=label if sign > 0 else None)  # fmt: skip
            bottom += height
    ax.plot(at, days["net"], "D", color=colours.text, markeredgecolor=colours.background,
            markersize=5.5, label="net")  # fmt: skip
    axes.add_zero_line(ax, colours)
    axes.set_time_axis(ax, days["day"].iloc[0], days["day"].iloc[-1])
    axes.set_usd_ticks(ax.yaxis)
    ax.set_ylabel("USD, losses go down")
    axes.add_legend(ax, colours, ncols=4)
    sums = [f"{label} {formats.usd_amount(parts[name].sum(), signed=True)}"
            for name, label in _PARTS.items() if parts[name].notna().any()]  # fmt: skip
    words = f"{len(days)} days: {', '.join(sums)} USD."
    return style.finish_axes(ax, colours, words, days)
