"""Fitted slippage: the cost of a size, and the cost by hour of the week."""

from typing import Any, overload

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from toolkit.display import count_text
from toolkit.plots import axes, formats, notebook, style, themes
from toolkit.plots.formats import WEEKDAYS
from toolkit.plots.result_checks import draws_result
from toolkit.plots.themes import Theme, ThemeName
from toolkit.slippage import SlippageFit
from toolkit.slippage._fit import LARGE_MISFIT, misfit_words

_MAX_COINS = 4
_SIDES = ("buy", "sell")


@overload
def slippage_fit(
    fit: SlippageFit, *, ax: None = None, theme: ThemeName = "auto", transparent: bool = False
) -> Figure: ...


@overload
def slippage_fit(
    fit: SlippageFit, *, ax: Axes, theme: ThemeName = "auto", transparent: bool = False
) -> Axes: ...


@draws_result
def slippage_fit(
    fit: SlippageFit,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Figure | Axes:
    """Draw the fitted cost of each size, and the medians of the samples.

    Parameters
    ----------
    fit : SlippageFit
        `tk.slippage.fit` of up to four coins.
    ax : Axes, optional
        Axes to draw one coin on.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Figure or Axes
        A new figure with one panel for each coin; or `ax`, with one coin. Slippage in basis points
        over size in USD, both on logarithmic axes: a line and the band of its interval for each
        side, and medians as marks. A size without a median, since the book was too thin in most
        samples, has a triangle at the top edge. The legend states if the fit misses a sampled mean
        by a tenth or more. Then the power law is wrong, and `tk.slippage.cost` uses the means.

    Raises
    ------
    ValueError
        If there are too many coins.

    Examples
    --------
    >>> import pandas as pd
    >>> from toolkit import slippage
    >>> usd = pd.Series([1e3, 1e4, 1e5])
    >>> rows = pd.DataFrame({"timestamp": pd.to_datetime([0] * 3, unit="ms", utc=True),
    ...     "coin": "XYZ", "amount_usd": usd, "half_spread_bps": 1.0,
    ...     "buy_slippage_bps": [1.3, 2.0, 4.2], "sell_slippage_bps": [1.4, 2.1, 4.0]})
    >>> slippage_fit(slippage.fit(rows)).axes[0].get_xlabel()
    'size, USD'
    """
    coins = list(dict.fromkeys(fit.groups["coin"]))
    limit = 1 if ax is not None else _MAX_COINS
    if len(coins) > limit:
        place = "" if ax is None else "with ax=, "
        raise ValueError(
            f"{place}slippage_fit draws at most {count_text(limit, 'coin')}, and the result has "
            f"{len(coins)}. Fit fewer, for example tk.slippage.fit(samples[samples['coin'] == "
            f"{coins[0]!r}])"
        )
    is_one = len(coins) <= 1
    figure, panels, colours = style.new_panels(
        ax, theme, transparent, ratios=(1,) * max(1, len(coins)), side_by_side=True,
        size=(7.2, 3.6) if is_one else (3.0 * len(coins) + 1, 3.8),
    )  # fmt: skip
    for panel, own in zip(panels, [[coin] for coin in coins] or [[]], strict=True):
        _draw_fit(panel, colours, fit, own[0]) if own else style.draw_no_data(panel, colours)
        style.finish_axes(panel, colours, _describe_fit(fit, own), fit.params)
    return panels[0] if figure is None else figure


def _draw_fit(ax: Axes, theme: Theme, fit: SlippageFit, coin: str) -> None:
    ax.set_xscale("log")
    ax.set_yscale("log")
    for number, side in enumerate(_SIDES):
        group = fit.groups[(fit.groups["coin"] == coin) & (fit.groups["side"] == side)]
        if len(group):
            _draw_side(ax, fit, group.iloc[0], axes.line_style(theme, number))
    axes.set_log_ticks(ax.yaxis, formats.plain_number)
    ax.xaxis.set_major_locator(LogLocator())
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: formats.short_usd(value)))
    ax.set_xlabel("size, USD")
    ax.set_ylabel("slippage against mid, bps")
    has_misfit = any(_is_misfit(group) for group in fit.groups.to_dict("records"))
    axes.set_title(ax, theme, coin, pad=62 if has_misfit else 38)
    axes.add_legend(ax, theme, ncols=1)


def _draw_side(ax: Axes, fit: SlippageFit, group: Any, line: axes.LineStyle) -> None:
    is_group = (fit.samples["coin"] == group["coin"]) & (fit.samples["side"] == group["side"])
    points = fit.samples[is_group]
    known = points[points["q50"].notna()]
    ax.plot(
        known["amount_usd"],
        np.maximum(known["q50"], 0.01),
        linestyle="",
        marker=line.marker,
        markersize=7 if line.is_hollow else 4,
        markerfacecolor="none" if line.is_hollow else line.colour,
        color=line.colour,
    )
    thin = points[points["q50"].isna()]
    ax.plot(
        thin["amount_usd"] * (1.06 if line.is_hollow else 0.94),
        np.full(len(thin), 0.97),
        linestyle="",
        marker="^",
        color=line.colour,
        transform=ax.get_xaxis_transform(),
    )
    blocks, draws = fit.draws[group["coin"], group["side"]]
    sizes = np.geomspace(group["smallest_usd"], group["largest_usd"], 60)
    if not np.isfinite(draws[0]).all() or sizes[0] == sizes[-1]:
        return
    half, a, k = (draws[:, column, None] for column in range(3))
    costs = half + a * (sizes / 1e5) ** k
    ax.plot(sizes, costs[0], color=line.colour, linestyle=line.dashes, label=_fit_label(fit, group))
    if blocks > 1:
        tail = (1 - fit.level) / 2
        low, high = np.quantile(costs[1:], [tail, 1 - tail], axis=0)
        ax.fill_between(sizes, low, high, color=line.colour, alpha=0.2, linewidth=0)


def _fit_label(fit: SlippageFit, group: Any) -> str:
    params = fit.params
    is_group = (params["coin"] == group["coin"]) & (params["side"] == group["side"])
    k = params[is_group & (params["name"] == "k")].iloc[0]
    interval = f" ({k['low']:.3f} to {k['high']:.3f})" if k["low"] == k["low"] else ""
    label = f"{group['side']}: exponent {k['estimate']:.3f}{interval}"
    return label + (
        f"\nmisses a mean by {100 * group['misfit']:.0f} %" if _is_misfit(group) else ""
    )


def _is_misfit(group: Any) -> bool:
    return bool(group["misfit"] > LARGE_MISFIT)


def _describe_fit(fit: SlippageFit, coins: list[str]) -> str:
    if not coins:
        return "Fitted slippage by size: no data."
    parts = []
    for coin in coins:
        for group in fit.groups[fit.groups["coin"] == coin].to_dict("records"):
            params = fit.params
            is_group = (params["coin"] == coin) & (params["side"] == group["side"])
            half, a, k, _ = params.loc[is_group, "estimate"]
            parts.append(
                f"{coin}, {group['side']}: {half:.2f} bps half spread, {a:.2f} bps more at 100k "
                f"USD, exponent {k:.3f}; {group['missing']} of {group['n']} samples too thin"
                + (f"; {misfit_words(group['misfit'])}" if _is_misfit(group) else "")
            )
    return f"Fitted slippage by size. {'. '.join(parts)}."


@draws_result
def slippage_heatmap(
    heatmap: pd.DataFrame,
    *,
    side: str = "buy",
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
    """Draw slippage by hour of the week: days from top to bottom, hours from left to right.

    Parameters
    ----------
    heatmap : DataFrame
        `tk.slippage.heatmap` of one coin and amount.
    side : {"buy", "sell"}
        Side of the order.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        A cell for each hour (UTC), shaded by its slippage. An empty cell has no samples. A hatched
        cell has no value: the book was too thin in too many samples.

    Raises
    ------
    ValueError
        If there is more than one coin or amount, or the side is unknown.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"coin": "XYZ", "amount_usd": 1e4, "hour_of_week": [0, 1],
    ...     "weekday": 0, "hour_of_day": [0, 1], "side": "buy", "bps": [2.0, 3.0]})
    >>> slippage_heatmap(rows).get_xlabel()
    'hour, UTC'
    """
    if side not in _SIDES:
        raise ValueError(f"side must be 'buy' or 'sell', not {side!r}")
    if len(heatmap) and "bps" not in heatmap:  # the rows of fills have sides, too
        raise KeyError("bps")
    rows = heatmap[heatmap["side"] == side] if len(heatmap) else heatmap
    keys = [name for name in ("coin", "amount_usd") if name in rows]
    if len(rows) and len(parts := rows[keys].drop_duplicates()) > 1:
        raise axes.several_parts_error("slippage_heatmap", "coin and amount", "heatmap", parts)
    ax, colours = style.new_axes(ax, theme, transparent, (7.6, 3.2))
    _draw_hours(ax, colours, rows, side) if len(rows) else style.draw_no_data(ax, colours)
    words = _describe_hours(rows, side)
    return style.finish_axes(ax, colours, words, heatmap)


def _draw_hours(ax: Axes, theme: Theme, rows: pd.DataFrame, side: str) -> None:
    grid = np.full((7, 24), np.nan)
    has_samples = np.zeros((7, 24), dtype=bool)
    place = rows["weekday"].to_numpy(), rows["hour_of_day"].to_numpy()
    grid[place], has_samples[place] = rows["bps"].to_numpy(dtype="float64"), True
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    shades = themes.colour_map(theme, "grid", "good")
    mesh = ax.pcolormesh(
        np.arange(25) - 0.5,
        np.arange(8) - 0.5,
        np.ma.masked_invalid(grid),
        cmap=shades,
        edgecolors=theme.background,
        linewidth=0.6,
    )
    for day, hour in zip(*np.nonzero(has_samples & np.isnan(grid)), strict=True):
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
    ax.set_yticks(range(7), WEEKDAYS)
    ax.set_xticks(range(0, 24, 3))
    ax.set_xlabel("hour, UTC")
    coin = rows["coin"].iloc[0] if "coin" in rows else ""
    usd = f"{formats.short_usd(rows['amount_usd'].iloc[0])} USD" if "amount_usd" in rows else ""
    axes.set_title(ax, theme, f"{coin}  {side} {usd}".strip())
    if np.isfinite(grid).any():
        # The colour bar is inside these axes: a figure of several panels keeps its layout.
        bar = notebook.root_figure(ax).colorbar(mesh, cax=ax.inset_axes((1.02, 0.0, 0.025, 1.0)))
        bar.set_label("slippage against mid, bps", color=theme.text, fontsize=9)
        bar.ax.tick_params(colors=theme.muted, labelcolor=theme.text, labelsize=9, length=0)
        bar.outline.set_visible(False)


def _describe_hours(rows: pd.DataFrame, side: str) -> str:
    known = rows[rows["bps"].notna()] if len(rows) else rows
    if not len(known):
        return "Slippage by hour of the week: no data."
    cheapest, dearest = (known.loc[known["bps"].agg(which)] for which in ("idxmin", "idxmax"))
    ends = [
        f"{row['bps']:.2f} bps on {WEEKDAYS[int(row['weekday'])]} "
        f"at {int(row['hour_of_day']):02d}:00"
        for row in (cheapest, dearest)
    ]
    thin = len(rows) - len(known)
    return (
        f"Slippage by hour of the week, {side}: from {ends[0]} to {ends[1]} UTC; "
        f"{thin} hours without a value."
    )
