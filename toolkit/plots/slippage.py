"""Slippage: the cost of a size, sampled and fitted, and the cost by hour of the week."""

from typing import Any, Final, Unpack, overload

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toolkit.plots import axes, figures, formats, style
from toolkit.plots.formats import WEEKDAYS
from toolkit.plots.style import Look, PanelLook
from toolkit.slippage import SlippageFit
from toolkit.slippage._fit import LARGE_MISFIT, misfit_words

_MAX_COINS: Final = 4  # more panels side by side are too narrow
_SIDES: Final = {"buy": 0.90, "sell": 1 / 0.90}
"""Side -> shift of its marks and bars, a factor on the log axis: both sides are visible."""


@overload
def slippage_curve(curve: pd.DataFrame, *, ax: None = None, **look: Unpack[Look]) -> Figure: ...
@overload
def slippage_curve(curve: pd.DataFrame, *, ax: Axes, **look: Unpack[Look]) -> Axes: ...
@style.draws_result("Slippage by size")
def slippage_curve(curve: pd.DataFrame, **look: Unpack[PanelLook]) -> Figure | Axes:
    """Draw slippage of buys and sells by size, and the share of samples whose book was too thin.

    Parameters
    ----------
    curve : DataFrame
        `tk.slippage.curve` by coin and amount, of up to four coins.
    ax : Axes, optional
        Axes to draw one coin on, without the panel below.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Figure or Axes
        A new figure with a panel for each coin; or `ax`, with the curve of one coin. Median
        slippage against mid in basis points over size in USD, both on logarithmic axes, with the
        band from the lowest to the highest quantile. A quantile among the samples whose book was
        too thin has no value: the line ends there, and a triangle at the top edge marks an open
        band. A panel below shows the share of these samples, if there are any.

    Raises
    ------
    ValueError
        If there are too many coins.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"coin": "X", "amount_usd": [1e3, 1e4] * 2, "q50": [1.0, 2.0] * 2,
    ...     "side": ["buy", "buy", "sell", "sell"], "q10": 0.9, "q90": 2.5, "missing_share": 0.1,
    ...     "half_spread_bps": 0.5, "n": 10})
    >>> len(slippage_curve(rows).axes)  # the curve, and the panel below it
    2
    """
    coins = list(dict.fromkeys(curve["coin"]))
    axes.check_drawable(len(coins), _MAX_COINS if look["ax"] is None else 1, "coins")
    has_thin_books = bool((curve["missing_share"] > 0).any())
    names = axes.quantile_columns(curve)
    if not names:
        raise ValueError(
            "the curve has no quantile columns: pass the result of tk.slippage.curve(samples)"
        )
    panels = style.open_panels(
        curve, look, (8.4 if len(coins) > 1 else 7.2, 4.4 if has_thin_books else 3.8),
        heights=(3.4, 1) if has_thin_books else (1,), widths=(1,) * len(coins), sharex=True,
        sharey="row",
    )  # fmt: skip
    entries: dict[str, Any] = {}
    for number, coin in enumerate(coins):
        upper, *lowers = panels[number :: len(coins)]
        rows, words = curve[curve["coin"] == coin].sort_values("amount_usd"), []
        _draw_curve(upper, rows, names)
        for side, own in rows.groupby("side"):
            known = own[own[names[1]].notna()]
            ends = [
                f"{row[names[1]]:.2f} bps at {formats.short_usd(row['amount_usd'])} USD"
                for row in known.iloc[[0, -1] if len(known) else []].to_dict("records")
            ]
            median = f"median slippage {', '.join(ends)}" if ends else "no size has a median"
            words.append(
                f"{coin}, {side}: {median}; the book was too thin in at most "
                f"{own['missing_share'].max():.0%} of the samples of one size."
            )
        for lower in lowers:
            for place, (side, shift) in enumerate(_SIDES.items()):
                own = rows[rows["side"] == side]
                centres, colour = own["amount_usd"] * shift, lower.theme.groups[place]
                hatch: Any = {
                    "hatch": "///" if place else None,
                    "edgecolor": lower.theme.background,
                }
                lower.ax.bar(
                    centres,
                    own["missing_share"],
                    centres * 0.18,
                    color=colour,
                    linewidth=0,
                    **hatch,
                )
            lower.ax.set_ylim(0, 1)
            lower.ax.set_yticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
            lower.label_axes("size, USD", "book too thin")
            upper.ax.set_xlabel("")
        for panel in (upper, *lowers) if number else ():
            panel.ax.set_ylabel("")
        if look["ax"] is None:
            upper.set_title(coin)
        upper.finish(" ".join(words))
        handles, labels = upper.ax.get_legend_handles_labels()
        entries = dict(zip(labels, handles, strict=True)) | entries
    if look["ax"] is None:
        figures.root_figure(upper.ax).legend(
            [*entries.values()], [*entries], loc="outside lower left", frameon=False, fontsize=9,
            ncols=2 if len(entries) > 3 else 3, labelcolor=upper.theme.text,
        )  # fmt: skip
    return panels[0].ax


def _draw_curve(panel: axes.Panel, curve: pd.DataFrame, names: list[str]) -> None:
    ax = panel.ax
    ax.set(xscale="log", yscale="log")
    # A logarithmic axis cannot show 0, and costs are rounded to 0.01 bps.
    shown = curve[[*dict.fromkeys(names), "half_spread_bps"]].astype("float64").clip(lower=0.01)
    shown = shown.where(np.isfinite(shown)).assign(usd=curve["amount_usd"])
    for number, (side, shift) in enumerate(_SIDES.items()):
        own = shown[curve["side"] == side]
        if own.empty:
            continue
        label = f"{side}, median and {names[0][1:]} to {names[2][1:]} % band"
        panel.draw_side(number, own["usd"], [own[name] for name in names], label)
        is_open = own[names[0]].notna() & own[names[2]].isna()
        _mark_top(panel, number, own["usd"][is_open] * shift, "band open above")
    spread = shown.drop_duplicates("usd")
    ax.plot(
        spread["usd"], spread["half_spread_bps"], ":", color=panel.theme.muted, linewidth=1.4,
        label="half spread",
    )  # fmt: skip
    # Ticks at 1, 10, 100, ... thousand: ticks at all sizes would overlap.
    first, last = float(shown["usd"].min()), float(shown["usd"].max())
    decades = 10.0 ** np.arange(np.floor(np.log10(first)), np.ceil(np.log10(last)) + 1)
    axes.set_ticks(ax.xaxis, decades.tolist(), formats.short_usd)
    ax.set_xlim(first * 0.7, last * 1.4)
    axes.set_log_ticks(ax.yaxis, formats.plain_number)
    panel.label_axes("size, USD", "slippage against mid, bps")


def _mark_top(panel: axes.Panel, side: int, sizes: Any, label: str | None = None) -> None:
    """Mark sizes whose band or median is open above, with triangles at the top edge."""
    if len(sizes):
        ax, colour = panel.ax, panel.theme.groups[side]
        height, at_top = [0.97] * len(sizes), ax.get_xaxis_transform()
        ax.plot(sizes, height, "^", markersize=6, color=colour, transform=at_top, label=label)


@overload
def slippage_fit(fit: SlippageFit, *, ax: None = None, **look: Unpack[Look]) -> Figure: ...
@overload
def slippage_fit(fit: SlippageFit, *, ax: Axes, **look: Unpack[Look]) -> Axes: ...
@style.draws_result("Fitted slippage by size")
def slippage_fit(fit: SlippageFit, **look: Unpack[PanelLook]) -> Figure | Axes:
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
    coins = list(dict.fromkeys(style.not_empty(fit.groups)["coin"]))
    axes.check_drawable(len(coins), _MAX_COINS if look["ax"] is None else 1, "coins")
    size = (3.0 * len(coins) + 1, 3.8) if len(coins) > 1 else (7.2, 3.6)
    panels = style.open_panels(fit.params, look, size, widths=(1,) * len(coins))
    has_misfit = bool((fit.groups["misfit"] > LARGE_MISFIT).any())
    for panel, coin in zip(panels, coins, strict=True):
        ax, own = panel.ax, fit.groups[fit.groups["coin"] == coin]
        ax.set(xscale="log", yscale="log")
        words = [
            _draw_fit(panel, number, fit, group)
            for number, side in enumerate(_SIDES)
            for group in own[own["side"] == side].to_dict("records")
        ]
        axes.set_log_ticks(ax.yaxis, formats.plain_number)
        axes.set_log_ticks(ax.xaxis, formats.short_usd, decades=True)
        panel.label_axes("size, USD", "slippage against mid, bps", legend=1)
        panel.set_title(coin, pad=62 if has_misfit else 38)
        panel.finish(f"Fitted slippage by size. {'. '.join(words)}.")
    return panels[0].ax


def _draw_fit(panel: axes.Panel, number: int, fit: SlippageFit, group: dict[Any, Any]) -> str:
    """Draw the medians of a side, the fitted line and its band; return them in words."""
    ax, key = panel.ax, (group["coin"], group["side"])
    points, params = (
        rows[(rows["coin"] == key[0]) & (rows["side"] == key[1])]
        for rows in (fit.samples, fit.params)
    )
    known, is_thin = points["q50"].clip(lower=0.01), points["q50"].isna()
    ax.plot(points["amount_usd"], known, linestyle="", **panel.side_style(number))
    _mark_top(panel, number, points["amount_usd"][is_thin] * (1.06 if number else 0.94))
    half, a, k, _ = params["estimate"]
    row: Any = params.set_index("name").loc["k"]
    misfit = group["misfit"] if group["misfit"] > LARGE_MISFIT else 0.0
    blocks, draws = fit.draws[key]
    sizes = np.geomspace(group["smallest_usd"], group["largest_usd"], 60)
    if np.isfinite(draws[0]).all() and sizes[0] != sizes[-1]:
        starts, factors, exponents = draws[:, :3].T[:, :, None]
        costs, line = starts + factors * (sizes / 1e5) ** exponents, panel.line_style(number)
        label = f"{key[1]}: exponent {k:.3f}"
        label += f" ({row['low']:.3f} to {row['high']:.3f})" if pd.notna(row["low"]) else ""
        label += f"\nmisses a mean by {100 * misfit:.0f} %" if misfit else ""
        ax.plot(sizes, costs[0], **line | {"marker": ""}, label=label)
        if blocks > 1:
            tail = (1 - fit.level) / 2
            low, high = np.quantile(costs[1:], [tail, 1 - tail], axis=0)
            panel.draw_band(sizes, low, high, line["color"], alpha=0.2)
    return (
        f"{', '.join(key)}: {half:.2f} bps half spread, {a:.2f} bps more at 100k USD, exponent "
        f"{k:.3f}; {group['missing']} of {group['n']} samples too thin"
        + (f"; {misfit_words(misfit)}" if misfit else "")
    )


@style.draws_result("Slippage by hour of the week")
def slippage_heatmap(
    heatmap: pd.DataFrame, *, side: str = "buy", **look: Unpack[PanelLook]
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
    if "bps" not in heatmap:  # the rows of fills have sides, too
        raise KeyError("bps")
    rows = style.not_empty(heatmap[heatmap["side"] == side])
    part, keys = "coin and amount", ("coin", "amount_usd")
    axes.check_one_part("slippage_heatmap", part, "heatmap", rows, keys)
    panel = style.open_panel(heatmap, look, (7.6, 3.2))
    ax, theme, cells = panel.ax, panel.theme, np.full((7, 24), np.nan)
    cells[rows["weekday"], rows["hour_of_day"]] = rows["bps"].astype("float64")
    known, thin = rows[rows["bps"].notna()], rows[rows["bps"].isna()]
    mesh = panel.draw_cells(pd.DataFrame(cells, WEEKDAYS), [], ("grid", "good"), gap=0.6)
    panel.hatch_cells(zip(thin["weekday"], thin["hour_of_day"], strict=True), "////", theme.muted)
    ax.set_xticks(range(0, 24, 3))
    ax.set_xlabel("hour, UTC")
    coin = rows["coin"].iloc[0] if "coin" in rows else ""
    usd = f"{formats.short_usd(rows['amount_usd'].iloc[0])} USD" if "amount_usd" in rows else ""
    panel.set_title(f"{coin}  {side} {usd}".strip())
    if known.empty:
        return panel.finish("Slippage by hour of the week: no data.")
    # The colour bar is inside these axes: a figure of several panels keeps its layout.
    bar = figures.root_figure(ax).colorbar(mesh, cax=ax.inset_axes((1.02, 0.0, 0.025, 1.0)))
    bar.set_label("slippage against mid, bps", color=theme.text, fontsize=9)
    bar.ax.tick_params(colors=theme.muted, labelcolor=theme.text, labelsize=9, length=0)
    bar.outline.set_visible(False)
    first, last = (
        f"{row['bps']:.2f} bps on {WEEKDAYS[int(row['weekday'])]} at {row['hour_of_day']:02d}:00"
        for row in known.sort_values("bps", kind="stable").iloc[[0, -1]].to_dict("records")
    )
    return panel.finish(
        f"Slippage by hour of the week, {side}: from {first} to {last} UTC; "
        f"{len(thin)} hours without a value."
    )
