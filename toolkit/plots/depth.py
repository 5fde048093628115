"""Depth by distance from mid, and its recovery after a shock."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from toolkit.depth import Resilience
from toolkit.plots import axes, formats, style
from toolkit.plots.result_checks import draws_result
from toolkit.plots.themes import Theme, ThemeName

_SIDES = ("ask", "bid")
_SIDE_NAMES = {"ask": "asks, for buyers", "bid": "bids, for sellers"}


@draws_result
def depth_profile(
    profile: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
    """Draw the depth within each distance of mid.

    Parameters
    ----------
    profile : DataFrame
        `tk.depth.profile` of one market.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        Cumulative depth in USD over distance in basis points, both on logarithmic axes: the
        middle quantile, and the band from the lowest quantile to the highest.

    Raises
    ------
    ValueError
        If there is more than one market.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"dex": "hyperliquid", "coin": "XYZ", "side": ["ask", "bid"], "bps": 10,
    ...                      "n": 5, "q10": 1e3, "q50": 2e3, "q90": 3e3})
    >>> depth_profile(rows).get_ylabel()
    'depth within that distance, USD'
    """
    keys = [name for name in ("dex", "coin") if name in profile]
    if len(markets := profile[keys].drop_duplicates()) > 1:
        raise axes.several_parts_error("depth_profile", "market", "profile", markets)
    ax, colours = style.new_axes(ax, theme, transparent)
    names = axes.quantile_columns(profile) if len(profile) else None
    _draw_profile(ax, colours, profile, names) if names else style.draw_no_data(ax, colours)
    words = (
        _describe_profile(profile, names[1]) if names else "Depth by distance from mid: no data."
    )
    return style.finish_axes(ax, colours, words, profile)


def _draw_profile(
    ax: Axes, theme: Theme, profile: pd.DataFrame, names: tuple[str, str, str]
) -> None:
    ax.set_xscale("log")
    ax.set_yscale("log")
    for number, side in enumerate(_SIDES):
        rows = profile[profile["side"] == side].sort_values("bps")
        line = axes.line_style(theme, number)
        low, middle, high = (rows[name].where(rows[name] > 0) for name in names)
        ax.plot(
            rows["bps"],
            middle,
            color=line.colour,
            linestyle=line.dashes,
            marker=line.marker,
            markersize=7.5 if line.is_hollow else 4,
            markerfacecolor="none" if line.is_hollow else line.colour,
            linewidth=1.8,
            label=_SIDE_NAMES[side],
        )
        ax.fill_between(rows["bps"], low, high, color=line.colour, alpha=0.16, linewidth=0)
    axes.set_ticks(ax.xaxis, sorted(profile["bps"].unique()), formats.plain_number)
    bottom, top = ax.get_ylim()
    if top / bottom < 10:
        ax.set_ylim(bottom / 3, top * 3)
    axes.set_log_ticks(ax.yaxis, formats.short_usd)
    ax.set_xlabel("distance from mid, bps")
    ax.set_ylabel("depth within that distance, USD")
    axes.add_legend(ax, theme, ncols=2)
    coin = str(profile["coin"].iloc[0]) if "coin" in profile else ""
    axes.set_title(ax, theme, coin, right=True)


def _describe_profile(profile: pd.DataFrame, middle: str) -> str:
    coin = str(profile["coin"].iloc[0]) if "coin" in profile else ""
    parts = []
    for side in _SIDES:
        rows = profile[profile["side"] == side].sort_values("bps")
        ends = [
            f"{formats.usd_amount(row[middle])} USD within {row['bps']:g} bps of mid"
            for _, row in rows.iloc[[0, -1]].iterrows()
        ] if len(rows) else ["none"]  # fmt: skip
        parts.append(f"{_SIDE_NAMES[side]}: {' and '.join(dict.fromkeys(ends))}")
    return f"Depth by distance from mid, {coin}. {'; '.join(parts)}."


@draws_result
def resilience(
    resilience: Resilience,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
    """Draw the recovery of depth after a shock, and its half-life.

    Parameters
    ----------
    resilience : Resilience
        `tk.depth.resilience`.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        Share of the lost depth that is back, over seconds since the shock: the median, the band
        that contains four fifths of the shocks, the fitted curve, the half-life and its interval.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from toolkit import depth
    >>> seconds = np.arange(-20, 200, 10)
    >>> usd = np.where(seconds < 0, 1000.0, 1000 - 800 * 2.0 ** (-seconds / 30))
    >>> batches = pd.DataFrame({"dex": "hyperliquid", "coin": "XYZ", "bps": 10,
    ...     "timestamp_ms": pd.to_datetime(1000 * (seconds + 20), unit="ms", utc=True),
    ...     "bid_depth_usd": usd, "ask_depth_usd": 5e5})
    >>> resilience(depth.resilience(batches)).get_xlabel()
    'seconds since the shock'
    """
    ax, colours = style.new_axes(ax, theme, transparent)
    has_path = len(resilience.path) > 0
    _draw_path(ax, colours, resilience) if has_path else style.draw_no_data(ax, colours)
    return style.finish_axes(ax, colours, _describe_recovery(resilience), resilience.params)


def _draw_path(ax: Axes, theme: Theme, resilience: Resilience) -> None:
    path = resilience.path
    row: Any = resilience.params.set_index("name").loc["half_life"]
    seconds = np.linspace(0, path["seconds"].max(), 200)
    ax.fill_between(
        path["seconds"], path["q10"], path["q90"], color=theme.good, alpha=0.2, linewidth=0,
        label="four fifths of the recoveries",
    )  # fmt: skip
    ax.plot(path["seconds"], path["q50"], "o", markersize=4, color=theme.good, label="median")
    label = f"half-life {row['estimate']:.1f} s"
    if row["low"] == row["low"]:
        label += f" ({row['low']:.1f} to {row['high']:.1f})"
        ax.axvspan(row["low"], row["high"], color=theme.bad, alpha=0.25, linewidth=0)
    ax.plot(seconds, 1 - 2 ** (-seconds / row["estimate"]), "--", color=theme.bad, label=label)
    ax.plot([row["estimate"]] * 2, [0, 0.5], ":", color=theme.bad)
    ax.set_xlim(0, seconds[-1])
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.set_xlabel("seconds since the shock")
    ax.set_ylabel(f"returned share of the depth\nlost within {resilience.bps} bps of mid")
    axes.add_legend(ax, theme, ncols=3)


def _describe_recovery(resilience: Resilience) -> str:
    if not len(resilience.path):
        return "Recovery of depth after shocks: no data."
    life, lost = (resilience.params.set_index("name").loc[name] for name in ("half_life", "taken"))
    interval = f" ({life['low']:.1f} to {life['high']:.1f})" if life["low"] == life["low"] else ""
    return (
        f"Recovery of depth within {resilience.bps} bps of mid after {resilience.n} shocks, which "
        f"took {lost['estimate']:.0%} of it on average: half-life {life['estimate']:.1f} seconds"
        f"{interval}."
    )
