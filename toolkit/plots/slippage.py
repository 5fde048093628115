"""Slippage: the cost of a size, and the share of samples whose book was too thin."""

from typing import Any, Final, NamedTuple, overload

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toolkit.plots import axes, formats, notebook, style, themes
from toolkit.plots.result_checks import draws_result
from toolkit.plots.themes import Theme, ThemeName

_MAX_COINS = 4  # more panels side by side are too narrow


class _SideStyle(NamedTuple):
    name: str
    dashes: str
    marker: str
    size: float
    is_filled: bool  # a filled and a hollow marker at the same place are both visible
    hatch: str | None
    shift: float  # of its bar in the panel below, as a factor on the log axis


_SIDES: Final = (
    _SideStyle("buy", "-", "o", 4.0, True, None, 0.90),
    _SideStyle("sell", "--", "s", 7.5, False, "///", 1 / 0.90),
)


@overload
def slippage_curve(
    curve: pd.DataFrame, *, ax: None = None, theme: ThemeName = "auto", transparent: bool = False
) -> Figure: ...


@overload
def slippage_curve(
    curve: pd.DataFrame, *, ax: Axes, theme: ThemeName = "auto", transparent: bool = False
) -> Axes: ...


@draws_result
def slippage_curve(
    curve: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Figure | Axes:
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
    coins = list(dict.fromkeys(curve["coin"])) if len(curve) else []
    limit = 1 if ax is not None else _MAX_COINS
    axes.check_drawable(len(coins), limit, "coins")
    if ax is None and coins:
        return _draw_panels(curve, coins, themes.get_theme(theme), transparent)
    drawn, colours = style.new_axes(ax, theme, transparent)
    _draw_curve(drawn, colours, curve) if coins else style.draw_no_data(drawn, colours)
    style.finish_axes(drawn, colours, _describe_curve(curve), curve)
    return notebook.root_figure(drawn) if ax is None else drawn


def _draw_panels(curve: pd.DataFrame, coins: list[str], theme: Theme, transparent: bool) -> Figure:
    """Return a figure with one column for each coin: the curve, and thin books below it."""
    has_thin_books = bool((curve["missing_share"] > 0).any())
    size = (8.4 if len(coins) > 1 else 7.2, 4.4 if has_thin_books else 3.8)
    figure = style.new_figure(theme, size, transparent)
    heights = [3.4, 1] if has_thin_books else [1]
    grid = figure.subplots(
        len(heights), len(coins), squeeze=False, sharex=True, sharey="row", height_ratios=heights
    )
    for number, coin in enumerate(coins):
        rows = curve[curve["coin"] == coin]
        upper = grid[0][number]
        style.style_axes(upper, theme)
        _draw_curve(upper, theme, rows, first=number == 0)
        if has_thin_books:
            lower = grid[1][number]
            style.style_axes(lower, theme)
            _draw_thin_books(lower, theme, rows, first=number == 0)
            upper.set_xlabel("")
        axes.set_title(upper, theme, coin)
        style.finish_axes(upper, theme, _describe_curve(rows), curve)
    entries: dict[str, Any] = {}
    for upper in grid[0]:
        handles, labels = upper.get_legend_handles_labels()
        entries = dict(zip(labels, handles, strict=True)) | entries
    figure.legend(
        list(entries.values()),
        list(entries),
        loc="outside lower left",
        ncols=2 if len(entries) > 3 else 3,
        frameon=False,
        fontsize=9,
        labelcolor=theme.text,
    )
    return figure


def _side_colour(side: str, theme: Theme) -> str:
    return theme.good if side == "buy" else theme.bad


def _quantile_names(curve: pd.DataFrame) -> tuple[str, str, str]:
    """Return the names of the lowest, the middle and the highest quantile column."""
    names = axes.quantile_columns(curve)
    if not names:
        raise ValueError(
            "the curve has no quantile columns: pass the result of tk.slippage.curve(samples)"
        )
    return names


def _draw_curve(ax: Axes, theme: Theme, curve: pd.DataFrame, first: bool = True) -> None:
    low, middle, high = _quantile_names(curve)
    ax.set_xscale("log")
    ax.set_yscale("log")
    for side in _SIDES:
        rows = curve[curve["side"] == side.name].sort_values("amount_usd")
        if len(rows):
            _draw_side(ax, theme, side, rows, (low, middle, high))
    spread = curve.sort_values("amount_usd").drop_duplicates("amount_usd")
    ax.plot(
        spread["amount_usd"],
        _loggable(spread["half_spread_bps"]),
        color=theme.muted,
        linestyle=":",
        linewidth=1.4,
        label="half spread",
    )
    _set_size_axis(ax, curve["amount_usd"])
    axes.set_log_ticks(ax.yaxis, formats.plain_number)
    ax.set_ylabel("slippage against mid, bps" if first else "")
    ax.set_xlabel("size, USD")


def _draw_side(
    ax: Axes, theme: Theme, side: _SideStyle, rows: pd.DataFrame, names: tuple[str, str, str]
) -> None:
    low, middle, high = (_loggable(rows[name]) for name in names)
    sizes = rows["amount_usd"].to_numpy()
    colour = _side_colour(side.name, theme)
    ax.plot(
        sizes,
        middle,
        color=colour,
        linestyle=side.dashes,
        marker=side.marker,
        markersize=side.size,
        markerfacecolor=colour if side.is_filled else "none",
        linewidth=1.8,
        label=f"{side.name}, median and {names[0][1:]} to {names[2][1:]} % band",
    )
    ax.fill_between(sizes, low, high, color=colour, alpha=0.16, linewidth=0)
    is_open = np.isfinite(low) & ~np.isfinite(high)
    if is_open.any():
        ax.plot(
            sizes[is_open] * side.shift,
            np.full(int(is_open.sum()), 0.97),
            linestyle="",
            marker="^",
            markersize=6,
            color=colour,
            transform=ax.get_xaxis_transform(),
            label="band open above",
        )


def _loggable(values: Any) -> Any:
    """Return floats of at least 0.01 bps, the rounding: a logarithmic axis cannot show 0."""
    array = values.astype("float64").to_numpy()
    return np.where(np.isfinite(array), np.maximum(array, 0.01), np.nan)


def _draw_thin_books(ax: Axes, theme: Theme, curve: pd.DataFrame, first: bool) -> None:
    for side in _SIDES:
        rows = curve[curve["side"] == side.name]
        centres = rows["amount_usd"].to_numpy() * side.shift
        ax.bar(
            centres,
            rows["missing_share"].to_numpy(),
            width=centres * 0.18,
            color=_side_colour(side.name, theme),
            hatch=side.hatch,
            edgecolor=theme.background,
            linewidth=0,
        )
    ax.set_ylim(0, 1)
    ax.set_yticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    ax.set_ylabel("book too thin" if first else "")
    ax.set_xlabel("size, USD")


def _set_size_axis(ax: Axes, sizes: pd.Series) -> None:
    """Set ticks at 1, 10, 100, ... thousand: ticks at all sizes would overlap."""
    low, high = float(sizes.min()), float(sizes.max())
    decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    axes.set_ticks(ax.xaxis, decades.tolist(), lambda value, _: formats.short_usd(value))
    ax.set_xlim(low * 0.7, high * 1.4)


def _describe_curve(curve: pd.DataFrame) -> str:
    if not len(curve):
        return "Slippage by size: no data."
    _, middle, _ = _quantile_names(curve)
    return " ".join(
        _describe_side(str(coin), str(side), rows, middle)
        for (coin, side), rows in curve.groupby(["coin", "side"], sort=True)
    )


def _describe_side(coin: str, side: str, rows: pd.DataFrame, middle: str) -> str:
    known = rows[rows[middle].notna()].sort_values("amount_usd")
    thin = rows["missing_share"].max()
    words = f"{coin}, {side}: no size has a median"
    if len(known):
        first, last = known.iloc[0], known.iloc[-1]
        words = (
            f"{coin}, {side}: median slippage {first[middle]:.2f} bps at "
            f"{formats.short_usd(first['amount_usd'])} USD, {last[middle]:.2f} bps at "
            f"{formats.short_usd(last['amount_usd'])} USD"
        )
    return f"{words}; the book was too thin in at most {thin:.0%} of the samples of one size."
