"""The fitted cost of a size, and when trading is dear."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from toolkit.analysis.market.slippage_fit import LARGE_MISFIT, misfit_words
from toolkit.plots import series, style
from toolkit.plots.style import Theme, ThemeName

_MOST = 4
_SIDES = ("buy", "sell")
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def slippage_fit(
    fit: Any,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw fitted costs by size over the medians of the samples.

    Parameters
    ----------
    fit : SlippageFit
        `tk.slippage.fit` of up to four coins.
    ax : Axes, optional
        Where to draw one coin; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        Slippage in basis points over size in USD, both logarithmic: a line and the band of its
        interval for each side, medians as marks. A size whose median book was too thin has no
        median: a triangle at the top edge stands for it. The legend says where the law misses a
        sampled mean by a tenth of it or more: it does not hold then, `tk.slippage.cost` goes by
        the means.

    Raises
    ------
    ValueError
        If there are too many coins.

    Examples
    --------
    >>> from toolkit import slippage
    >>> usd = pd.Series([1e3, 1e4, 1e5])
    >>> rows = pd.DataFrame({"timestamp": pd.to_datetime([0] * 3, unit="ms", utc=True),
    ...     "coin": "XYZ", "amount_usd": usd, "half_spread_bps": 1.0,
    ...     "buy_slippage_bps": [1.3, 2.0, 4.2], "sell_slippage_bps": [1.4, 2.1, 4.0]})
    >>> slippage_fit(slippage.fit(rows)).axes[0].get_xlabel()
    'size, USD'
    """
    colours = style.theme_of(theme)
    coins = list(dict.fromkeys(fit.groups["coin"]))
    most = 1 if ax is not None else _MOST
    if len(coins) > most:
        raise ValueError(f"at most {most} coins can be drawn here, not {len(coins)}: fit fewer")
    simulated = style.is_simulated(fit.params)
    if len(coins) <= 1:
        figure, ax = style.canvas(colours, ax=ax, transparent=transparent)
        _draw(ax, colours, fit, coins[0]) if coins else style.nothing(ax, colours)
        return style.finish(figure, ax, colours, _words(fit, coins), simulated)
    figure = style.new_figure(colours, (3.0 * len(coins) + 1, 3.8), transparent)
    for one, coin in zip(figure.subplots(1, len(coins)), coins, strict=True):
        style.dress(one, colours)
        _draw(one, colours, fit, coin)
        style.finish(figure, one, colours, _words(fit, [coin]), simulated)
    return figure


def _draw(ax: Axes, theme: Theme, fit: Any, coin: str) -> None:
    ax.set_xscale("log")
    ax.set_yscale("log")
    for number, side in enumerate(_SIDES):
        group = fit.groups[(fit.groups["coin"] == coin) & (fit.groups["side"] == side)]
        if len(group):
            _draw_side(ax, theme, fit, group.iloc[0], series.look(theme, number))
    low, high = ax.get_ylim()
    subs = (1.0, 2.0, 5.0) if high / low < 300 else (1.0,)
    ax.yaxis.set_major_locator(LogLocator(subs=subs))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_major_locator(LogLocator())
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: style.short_usd(value)))
    ax.set_xlabel("size, USD")
    ax.set_ylabel("slippage against mid, bps")
    taller = any(_missed(group) for group in fit.groups.to_dict("records"))
    series.title(ax, theme, coin, pad=62 if taller else 38)
    style.legend(ax, theme, ncols=1)


def _draw_side(ax: Axes, theme: Theme, fit: Any, group: Any, look: series.Look) -> None:
    mine = (fit.samples["coin"] == group["coin"]) & (fit.samples["side"] == group["side"])
    points = fit.samples[mine]
    known = points[points["q50"].notna()]
    ax.plot(
        known["amount_usd"],
        np.maximum(known["q50"], 0.01),
        linestyle="",
        marker=look.marker,
        markersize=7 if look.hollow else 4,
        markerfacecolor="none" if look.hollow else look.colour,
        color=look.colour,
    )
    thin = points[points["q50"].isna()]
    ax.plot(
        thin["amount_usd"] * (1.06 if look.hollow else 0.94),
        np.full(len(thin), 0.97),
        linestyle="",
        marker="^",
        color=look.colour,
        transform=ax.get_xaxis_transform(),
    )
    blocks, draws = fit.draws[group["coin"], group["side"]]
    sizes = np.geomspace(group["smallest_usd"], group["largest_usd"], 60)
    if not np.isfinite(draws[0]).all() or sizes[0] == sizes[-1]:
        return
    half, a, k = (draws[:, place, None] for place in range(3))
    costs = half + a * (sizes / 1e5) ** k
    ax.plot(sizes, costs[0], color=look.colour, linestyle=look.line, label=_label(fit, group))
    if blocks > 1:
        tail = (1 - fit.level) / 2
        low, high = np.quantile(costs[1:], [tail, 1 - tail], axis=0)
        ax.fill_between(sizes, low, high, color=look.colour, alpha=0.2, linewidth=0)


def _label(fit: Any, group: Any) -> str:
    params = fit.params
    mine = (params["coin"] == group["coin"]) & (params["side"] == group["side"])
    k = params[mine & (params["name"] == "k")].iloc[0]
    interval = f" ({k['low']:.3f} to {k['high']:.3f})" if k["low"] == k["low"] else ""
    label = f"{group['side']}: exponent {k['estimate']:.3f}{interval}"
    return label + (f"\nmisses a mean by {100 * group['misfit']:.0f} %" if _missed(group) else "")


def _missed(group: Any) -> bool:
    return bool(group["misfit"] > LARGE_MISFIT)


def _words(fit: Any, coins: list[str]) -> str:
    if not coins:
        return "Fitted slippage by size: no data."
    parts = []
    for coin in coins:
        for group in fit.groups[fit.groups["coin"] == coin].to_dict("records"):
            params = fit.params
            mine = (params["coin"] == coin) & (params["side"] == group["side"])
            half, a, k, _ = params.loc[mine, "estimate"]
            parts.append(
                f"{coin}, {group['side']}: {half:.2f} bps half spread, {a:.2f} bps more at 100k "
                f"USD, exponent {k:.3f}; {group['missing']} of {group['n']} samples too thin"
                + (f"; {misfit_words(group['misfit'])}" if _missed(group) else "")
            )
    return f"Fitted slippage by size. {'. '.join(parts)}."


def slippage_heatmap(
    heatmap: pd.DataFrame,
    *,
    side: str = "buy",
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw slippage by hour of the week: days from top to bottom, hours from left to right.

    Parameters
    ----------
    heatmap : DataFrame
        `tk.slippage.heatmap` of one coin and amount.
    side : {"buy", "sell"}
        Which side.
    ax : Axes, optional
        Where to draw; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        A cell for each hour (UTC), the darker or brighter the dearer. Bare cells have no
        samples, hatched ones no value: the book was too thin too often.

    Raises
    ------
    ValueError
        If there is more than one coin or amount, or no such side.

    Examples
    --------
    >>> rows = pd.DataFrame({"coin": "XYZ", "amount_usd": 1e4, "hour_of_week": [0, 1],
    ...     "weekday": 0, "hour_of_day": [0, 1], "side": "buy", "bps": [2.0, 3.0]})
    >>> slippage_heatmap(rows).axes[0].get_xlabel()
    'hour, UTC'
    """
    colours = style.theme_of(theme)
    if side not in _SIDES:
        raise ValueError(f"side must be 'buy' or 'sell', not {side!r}")
    rows = heatmap[heatmap["side"] == side] if len(heatmap) else heatmap
    what = [name for name in ("coin", "amount_usd") if name in rows]
    if len(rows) and len(rows[what].drop_duplicates()) > 1:
        raise ValueError("a heatmap shows one coin and amount: pick one")
    figure, ax = style.canvas(colours, ax=ax, size=(7.6, 3.2), transparent=transparent)
    _draw_hours(figure, ax, colours, rows, side) if len(rows) else style.nothing(ax, colours)
    words = _hour_words(rows, side)
    return style.finish(figure, ax, colours, words, style.is_simulated(heatmap))


def _draw_hours(figure: Figure, ax: Axes, theme: Theme, rows: pd.DataFrame, side: str) -> None:
    grid = np.full((7, 24), np.nan)
    there = np.zeros((7, 24), dtype=bool)
    place = rows["weekday"].to_numpy(), rows["hour_of_day"].to_numpy()
    grid[place], there[place] = rows["bps"].to_numpy(dtype="float64"), True
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    shades = LinearSegmentedColormap.from_list("", [theme.grid, theme.good])
    mesh = ax.pcolormesh(
        np.arange(25) - 0.5,
        np.arange(8) - 0.5,
        np.ma.masked_invalid(grid),
        cmap=shades.with_extremes(bad=(0, 0, 0, 0)),
        edgecolors=theme.background,
        linewidth=0.6,
    )
    for day, hour in zip(*np.nonzero(there & np.isnan(grid)), strict=True):
        ax.fill(
            [hour - 0.5, hour + 0.5, hour + 0.5, hour - 0.5],
            [day - 0.5, day - 0.5, day + 0.5, day + 0.5],
            fill=False,
            hatch="////",
            edgecolor=theme.muted,
            linewidth=0,
        )
    ax.set_ylim(6.5, -0.5)
    ax.set_xlim(-0.5, 23.5)
    ax.set_yticks(range(7), _DAYS)
    ax.set_xticks(range(0, 24, 3))
    ax.set_xlabel("hour, UTC")
    coin = rows["coin"].iloc[0] if "coin" in rows else ""
    usd = f"{style.short_usd(rows['amount_usd'].iloc[0])} USD" if "amount_usd" in rows else ""
    series.title(ax, theme, f"{coin}  {side} {usd}".strip())
    if np.isfinite(grid).any():
        # Inside of the axes given: a figure of several keeps the axes that it has.
        bar = figure.colorbar(mesh, cax=ax.inset_axes((1.02, 0.0, 0.025, 1.0)))
        bar.set_label("slippage against mid, bps", color=theme.text, fontsize=9)
        bar.ax.tick_params(colors=theme.muted, labelcolor=theme.text, labelsize=9, length=0)
        bar.outline.set_visible(False)


def _hour_words(rows: pd.DataFrame, side: str) -> str:
    known = rows[rows["bps"].notna()] if len(rows) else rows
    if not len(known):
        return "Slippage by hour of the week: no data."
    cheap, dear = (known.loc[known["bps"].agg(which)] for which in ("idxmin", "idxmax"))
    ends = [
        f"{row['bps']:.2f} bps on {_DAYS[int(row['weekday'])]} at {int(row['hour_of_day']):02d}:00"
        for row in (cheap, dear)
    ]
    thin = len(rows) - len(known)
    return (
        f"Slippage by hour of the week, {side}: from {ends[0]} to {ends[1]} UTC; "
        f"{thin} hours without a value."
    )
