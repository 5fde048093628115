"""What prices did after fills; half spreads paid and kept."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from toolkit.plots import series, style
from toolkit.plots.style import Theme, ThemeName

_OWN = {"seconds", "name", "estimate", "low", "high", "usd", "n", "missing", "clusters",
        "age_seconds"}  # fmt: skip
_NAMES = ("effective", "realised", "impact")


def markout(
    markout: Any,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw what prices did after fills, with intervals.

    Parameters
    ----------
    markout : Markout
        `tk.execution.markout`, of up to six groups.
    ax : Axes, optional
        Where to draw; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        Gain in basis points over time since the fill, which is logarithmic: a line and the band
        of its intervals for each group.

    Raises
    ------
    ValueError
        If there are too many groups.

    Examples
    --------
    >>> from toolkit import execution
    >>> fills = pd.DataFrame({"coin": "XYZ", "px": [100.0], "sz": [2.0], "side": ["B"],
    ...     "crossed": [True], "time": pd.to_datetime([1000], unit="ms", utc=True)})
    >>> mids = pd.DataFrame({"coin": "XYZ", "mid_px": [100.5],
    ...     "time": pd.to_datetime([9000], unit="ms", utc=True)})
    >>> markout(execution.markout(fills, mids, ["10s", "1m"])).axes[0].get_xlabel()
    'time since the fill'
    """
    colours = style.theme_of(theme)
    groups = _groups(markout.params)
    figure, ax = style.canvas(colours, ax=ax, transparent=transparent)
    known = bool(markout.params["estimate"].notna().any())
    _draw_markout(ax, colours, markout, groups) if known else style.nothing(ax, colours)
    words = _markout_words(groups) if known else "Gain after fills: no data."
    return style.finish(figure, ax, colours, words, style.is_simulated(markout.params))


def _groups(params: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    keys = [name for name in params.columns if name not in _OWN]
    split = params.groupby(keys, sort=True) if keys else [((), params)]
    made = [(series.named(key), rows) for key, rows in split]
    if len(made) > series.MOST:
        raise ValueError(f"at most {series.MOST} groups can be drawn, not {len(made)}: pick some")
    return made


def _draw_markout(
    ax: Axes, theme: Theme, found: Any, groups: list[tuple[str, pd.DataFrame]]
) -> None:
    ax.set_xscale("log")
    series.zero_line(ax, theme)
    for number, (name, rows) in enumerate(groups):
        look = series.look(theme, number)
        rows = rows.sort_values("seconds")
        ax.plot(
            rows["seconds"],
            rows["estimate"],
            color=look.colour,
            linestyle=look.line,
            marker=look.marker,
            markerfacecolor=theme.background if look.hollow else look.colour,
            markersize=6,
            linewidth=1.8,
            label=f"{name or 'all fills'} (n = {rows['n'].max():,})",
        )
        ax.fill_between(
            rows["seconds"], rows["low"], rows["high"], color=look.colour, alpha=0.16, linewidth=0
        )
    _time_axis(ax, found.params["seconds"])
    ax.yaxis.set_major_formatter(FuncFormatter(series.signed))
    ax.set_ylabel("gain of the account, bps")
    ax.set_xlabel("time since the fill")
    style.legend(ax, theme, ncols=min(3, len(groups)))


def _time_axis(ax: Axes, seconds: pd.Series) -> None:
    ax.xaxis.set_major_locator(FixedLocator(sorted(seconds.unique())))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(series.span))


def _markout_words(groups: list[tuple[str, pd.DataFrame]]) -> str:
    parts = []
    for name, rows in groups:
        last = rows[rows["estimate"].notna()].sort_values("seconds").tail(1)
        for row in last.to_dict("records"):
            parts.append(
                f"{name or 'all fills'}: {series.signed(round(row['estimate'], 2))} bps"
                f"{_interval(row)} "
                f"after {series.span(row['seconds'])}, {row['missing']} fills without a price"
            )
    return f"Gain after fills. {'; '.join(parts)}."


def _interval(row: Mapping[Any, Any]) -> str:
    """Return an interval in brackets; nothing where it is not known."""
    if row["low"] != row["low"]:
        return ""
    ends = " to ".join(series.signed(round(row[one], 2)) for one in ("low", "high"))
    return f" ({ends})"


def spreads(
    spreads: Any,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw effective and realised half spreads and impact, with intervals.

    Parameters
    ----------
    spreads : Spreads
        `tk.execution.spreads`, of up to six groups.
    ax : Axes, optional
        Where to draw; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        Costs in basis points, positive where the account of the fill pays.

    Raises
    ------
    ValueError
        If there are too many groups.

    Examples
    --------
    >>> from toolkit import execution
    >>> fills = pd.DataFrame({"coin": "XYZ", "px": [100.1], "sz": [2.0], "side": ["B"],
    ...     "crossed": [True], "time": pd.to_datetime([1000], unit="ms", utc=True)})
    >>> mids = pd.DataFrame({"coin": "XYZ", "mid_px": [100.0, 100.04],
    ...     "time": pd.to_datetime([0, 60_000], unit="ms", utc=True)})
    >>> spreads(execution.spreads(fills, mids, "1m")).axes[0].get_ylabel()
    'cost of the account, bps'
    """
    colours = style.theme_of(theme)
    groups = _groups(spreads.params)
    figure, ax = style.canvas(colours, ax=ax, transparent=transparent)
    known = bool(spreads.params["estimate"].notna().any())
    _draw_spreads(ax, colours, spreads, groups) if known else style.nothing(ax, colours)
    words = _spread_words(spreads, groups) if known else "Spreads of fills: no data."
    return style.finish(figure, ax, colours, words, style.is_simulated(spreads.params))


def _draw_spreads(
    ax: Axes, theme: Theme, found: Any, groups: list[tuple[str, pd.DataFrame]]
) -> None:
    series.zero_line(ax, theme)
    for number, (name, rows) in enumerate(groups):
        look = series.look(theme, number)
        rows = rows.set_index("name").loc[list(_NAMES)]
        at = np.arange(3) + 0.16 * (number - (len(groups) - 1) / 2)
        reach = np.abs(rows[["low", "high"]].to_numpy().T - rows["estimate"].to_numpy())
        ax.errorbar(
            at,
            rows["estimate"],
            yerr=np.nan_to_num(reach),
            color=look.colour,
            linestyle="",
            marker=look.marker,
            markerfacecolor=theme.background if look.hollow else look.colour,
            markersize=7,
            capsize=4,
            label=f"{name or 'all fills'} (n = {rows['n'].max():,})",
        )
    after = _after(found)
    ax.set_xticks(range(3), ["effective", f"realised{after}", f"impact{after}"])
    ax.set_xlim(-0.6, 2.6)
    ax.yaxis.set_major_formatter(FuncFormatter(series.signed))
    ax.set_ylabel("cost of the account, bps")
    style.legend(ax, theme, ncols=min(3, len(groups)))


def _after(found: Any) -> str:
    """Return after which time the parts were measured; nothing for those of the tape."""
    return f" after {series.span(found.seconds)}" if np.isfinite(found.seconds) else ""


def _spread_words(found: Any, groups: list[tuple[str, pd.DataFrame]]) -> str:
    parts = [
        f"{name or 'all fills'}: "
        + ", ".join(
            f"{row['name']} {series.signed(round(row['estimate'], 2))} bps{_interval(row)}"
            for row in rows.to_dict("records")
        )
        for name, rows in groups
    ]
    return f"Half spreads of fills and impact{_after(found)}. {'; '.join(parts)}."
