"""Depth by distance from mid, and how it comes back after a shock."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator, PercentFormatter

from toolkit.plots import series, style
from toolkit.plots.style import Theme, ThemeName

_SIDES = ("ask", "bid")
_MEANING = {"ask": "asks, for buyers", "bid": "bids, for sellers"}


def depth_profile(
    profile: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw how much rests within each distance of mid.

    Parameters
    ----------
    profile : DataFrame
        `tk.depth.profile` of one market.
    ax : Axes, optional
        Where to draw; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        Cumulative depth in USD over distance in basis points, both logarithmic: the middle
        quantile, and the band from the lowest to the highest.

    Raises
    ------
    ValueError
        If there is more than one market.

    Examples
    --------
    >>> rows = pd.DataFrame({"dex": "hyperliquid", "coin": "XYZ", "side": ["ask", "bid"], "bps": 10,
    ...                      "n": 5, "q10": 1e3, "q50": 2e3, "q90": 3e3})
    >>> depth_profile(rows).axes[0].get_ylabel()
    'depth within that distance, USD'
    """
    colours = style.theme_of(theme)
    keys = [name for name in ("dex", "coin") if name in profile]
    if len(profile) and len(profile[keys].drop_duplicates()) > 1:
        raise ValueError("a profile is drawn for one market: pick one")
    figure, ax = style.canvas(colours, ax=ax, transparent=transparent)
    names = sorted((n for n in profile.columns if _is_quantile(n)), key=lambda n: float(n[1:]))
    drawable = len(profile) and bool(names)
    _draw_profile(ax, colours, profile, names) if drawable else style.nothing(ax, colours)
    words = _profile_words(profile, names)
    return style.finish(figure, ax, colours, words, style.is_simulated(profile))


def _is_quantile(name: str) -> bool:
    return name[:1] == "q" and name[1:].replace(".", "", 1).isdigit()


def _middle(names: list[str]) -> str:
    return min(names, key=lambda name: abs(float(name[1:]) - 50))


def _draw_profile(ax: Axes, theme: Theme, profile: pd.DataFrame, names: list[str]) -> None:
    ax.set_xscale("log")
    ax.set_yscale("log")
    for number, side in enumerate(_SIDES):
        rows = profile[profile["side"] == side].sort_values("bps")
        look = series.look(theme, number)
        low, middle, high = (
            rows[n].where(rows[n] > 0) for n in (names[0], _middle(names), names[-1])
        )
        ax.plot(
            rows["bps"],
            middle,
            color=look.colour,
            linestyle=look.line,
            marker=look.marker,
            markersize=7.5 if look.hollow else 4,
            markerfacecolor="none" if look.hollow else look.colour,
            linewidth=1.8,
            label=_MEANING[side],
        )
        ax.fill_between(rows["bps"], low, high, color=look.colour, alpha=0.16, linewidth=0)
    widths = sorted(profile["bps"].unique())
    ax.xaxis.set_major_locator(FixedLocator(widths))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    bottom, top = ax.get_ylim()
    narrow = top / bottom < 300
    if top / bottom < 10:
        ax.set_ylim(bottom / 3, top * 3)
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if narrow else (1.0,)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: style.short_usd(value)))
    ax.set_xlabel("distance from mid, bps")
    ax.set_ylabel("depth within that distance, USD")
    style.legend(ax, theme, ncols=2)
    coin = str(profile["coin"].iloc[0]) if "coin" in profile else ""
    series.title(ax, theme, coin, right=True)


def _profile_words(profile: pd.DataFrame, names: list[str]) -> str:
    if not len(profile) or not names:
        return "Depth by distance from mid: no data."
    coin = str(profile["coin"].iloc[0]) if "coin" in profile else ""
    parts = []
    for side in _SIDES:
        rows = profile[profile["side"] == side].sort_values("bps")
        ends = [
            f"{style.usd(row[_middle(names)])} USD within {row['bps']:g} bps of mid"
            for _, row in rows.iloc[[0, -1]].iterrows()
        ] if len(rows) else ["none"]  # fmt: skip
        parts.append(f"{_MEANING[side]}: {' and '.join(dict.fromkeys(ends))}")
    return f"Depth by distance from mid, {coin}. {'; '.join(parts)}."


def resilience(
    resilience: Any,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw how depth comes back after a shock, and the half-life.

    Parameters
    ----------
    resilience : Resilience
        `tk.depth.resilience`.
    ax : Axes, optional
        Where to draw; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        Share of the lost depth that is back, over seconds since the shock: median and the band
        of four fifths of the shocks, the fitted curve, the half-life and its interval.

    Examples
    --------
    >>> from toolkit import depth
    >>> seconds = np.arange(-20, 200, 10)
    >>> usd = np.where(seconds < 0, 1000.0, 1000 - 800 * 2.0 ** (-seconds / 30))
    >>> batches = pd.DataFrame({"dex": "hyperliquid", "coin": "XYZ", "bps": 10,
    ...     "timestamp_ms": pd.to_datetime(1000 * (seconds + 20), unit="ms", utc=True),
    ...     "bid_depth_usd": usd, "ask_depth_usd": 5e5})
    >>> resilience(depth.resilience(batches)).axes[0].get_xlabel()
    'seconds since the shock'
    """
    colours = style.theme_of(theme)
    figure, ax = style.canvas(colours, ax=ax, transparent=transparent)
    there = len(resilience.path) > 0
    _draw_path(ax, colours, resilience) if there else style.nothing(ax, colours)
    simulated = style.is_simulated(resilience.params)
    return style.finish(figure, ax, colours, _recovery_words(resilience), simulated)


def _draw_path(ax: Axes, theme: Theme, found: Any) -> None:
    path, row = found.path, found.params.set_index("name").loc["half_life"]
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
    ax.set_ylabel(f"of the lost depth within\n{found.bps} bps of mid that is back")
    style.legend(ax, theme, ncols=3)


def _recovery_words(found: Any) -> str:
    if not len(found.path):
        return "Recovery of depth after shocks: no data."
    life, taken = (found.params.set_index("name").loc[name] for name in ("half_life", "taken"))
    interval = f" ({life['low']:.1f} to {life['high']:.1f})" if life["low"] == life["low"] else ""
    return (
        f"Recovery of depth within {found.bps} bps of mid after {found.n} shocks that took "
        f"{taken['estimate']:.0%} in the mean: half-life {life['estimate']:.1f} seconds{interval}."
    )
