"""What a size costs: slippage against notional, and how often the book was too thin."""

from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from toolkit.plots import style
from toolkit.plots.style import Theme, ThemeName

_MOST = 4  # coins that can stand beside each other


class _Side(NamedTuple):
    name: str
    line: str
    marker: str
    size: float
    filled: bool  # a filled and a hollow marker can be seen through each other
    hatch: str | None
    shift: float  # of its bar in the panel below, as a factor on the log axis


_SIDES: Final = (
    _Side("buy", "-", "o", 4.0, True, None, 0.90),
    _Side("sell", "--", "s", 7.5, False, "///", 1 / 0.90),
)


def slippage_curve(
    curve: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw slippage against size, buys and sells, with the share of samples without liquidity.

    Parameters
    ----------
    curve : DataFrame
        `tk.slippage.curve` by coin and amount, of up to four coins.
    ax : Axes, optional
        Where to draw one coin, without the panel below; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        Median slippage against mid in basis points over size in USD, both logarithmic, with the
        band between the lowest and the highest quantile. A quantile that falls among samples
        without enough liquidity has no value: the line ends, a triangle at the top edge says
        that the band is open, and the panel below shows the share of those samples.

    Raises
    ------
    ValueError
        If there are too many coins.

    Examples
    --------
    >>> rows = pd.DataFrame({"coin": "X", "amount_usd": [1e3, 1e4] * 2, "q50": [1.0, 2.0] * 2,
    ...     "side": ["buy", "buy", "sell", "sell"], "q10": 0.9, "q90": 2.5, "missing_share": 0.0,
    ...     "half_spread_bps": 0.5, "n": 10})
    >>> len(slippage_curve(rows).axes)  # the curve, and the panel below it
    2
    """
    colours = style.theme_of(theme)
    coins = list(dict.fromkeys(curve["coin"])) if len(curve) else []
    most = 1 if ax is not None else _MOST
    if len(coins) > most:
        raise ValueError(f"at most {most} coins can be drawn here, not {len(coins)}: pick some")
    if not coins or ax is not None:
        figure, ax = style.canvas(colours, ax=ax, transparent=transparent)
        _draw(ax, colours, curve) if coins else style.nothing(ax, colours)
        return style.finish(figure, ax, colours, _words(curve), style.is_simulated(curve))
    return _panels(curve, coins, colours, transparent)


def _panels(curve: pd.DataFrame, coins: list[str], theme: Theme, transparent: bool) -> Figure:
    """One column a coin: its curve, and below it the share of samples without liquidity."""
    figure = style.new_figure(theme, (8.4 if len(coins) > 1 else 7.2, 4.4), transparent)
    grid = figure.subplots(
        2, len(coins), squeeze=False, sharex=True, sharey="row", height_ratios=[3.4, 1]
    )
    for number, coin in enumerate(coins):
        rows = curve[curve["coin"] == coin]
        upper, lower = grid[0][number], grid[1][number]
        style.dress(upper, theme)
        style.dress(lower, theme)
        _draw(upper, theme, rows, first=number == 0)
        _draw_missing(lower, theme, rows, first=number == 0)
        upper.set_xlabel("")
        upper.set_title(
            coin, loc="left", fontsize=10, fontweight="bold", color=theme.text, parse_math=False
        )
        style.finish(figure, upper, theme, _words(rows), style.is_simulated(curve))
    entries: dict[str, Any] = {}
    for upper in grid[0]:
        handles, labels = upper.get_legend_handles_labels()
        entries |= {la: ha for la, ha in zip(labels, handles, strict=True) if la not in entries}
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


def _colour(side: str, theme: Theme) -> str:
    return theme.good if side == "buy" else theme.bad


def _quantiles(curve: pd.DataFrame) -> tuple[str, str, str]:
    """Name the lowest, the middle and the highest quantile column."""
    names = [c for c in curve.columns if c[:1] == "q" and c[1:].replace(".", "").isdigit()]
    names.sort(key=_percent)
    if not names:
        raise ValueError("the curve has no quantiles: give it tk.slippage.curve(samples)")
    return names[0], min(names, key=_from_median), names[-1]


def _percent(name: str) -> float:
    return float(name[1:])


def _from_median(name: str) -> float:
    return abs(_percent(name) - 50)


def _draw(ax: Axes, theme: Theme, curve: pd.DataFrame, first: bool = True) -> None:
    low, middle, high = _quantiles(curve)
    ax.set_xscale("log")
    ax.set_yscale("log")
    for side in _SIDES:
        rows = curve[curve["side"] == side.name].sort_values("amount_usd")
        if len(rows):
            _draw_side(ax, theme, side, rows, (low, middle, high))
    spread = curve.sort_values("amount_usd").drop_duplicates("amount_usd")
    ax.plot(
        spread["amount_usd"],
        _positive(spread["half_spread_bps"]),
        color=theme.muted,
        linestyle=":",
        linewidth=1.4,
        label="half spread",
    )
    _size_axis(ax, curve["amount_usd"])
    low_end, high_end = ax.get_ylim()
    narrow = high_end / low_end < 300  # less than two and a half decades
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if narrow else (1.0,)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(_plain))
    ax.set_ylabel("slippage against mid, bps" if first else "")
    ax.set_xlabel("size, USD")


def _draw_side(
    ax: Axes, theme: Theme, side: _Side, rows: pd.DataFrame, names: tuple[str, str, str]
) -> None:
    low, middle, high = (_positive(rows[name]) for name in names)
    sizes = rows["amount_usd"].to_numpy()
    colour = _colour(side.name, theme)
    ax.plot(
        sizes,
        middle,
        color=colour,
        linestyle=side.line,
        marker=side.marker,
        markersize=side.size,
        markerfacecolor=colour if side.filled else "none",
        linewidth=1.8,
        label=f"{side.name}, median and {names[0][1:]} to {names[2][1:]} % band",
    )
    ax.fill_between(sizes, low, high, color=colour, alpha=0.16, linewidth=0)
    open_above = np.isfinite(low) & ~np.isfinite(high)
    if open_above.any():
        ax.plot(
            sizes[open_above] * side.shift,
            np.full(int(open_above.sum()), 0.97),
            linestyle="",
            marker="^",
            markersize=6,
            color=colour,
            transform=ax.get_xaxis_transform(),
            label="band open above",
        )


def _positive(values: Any) -> Any:
    """Give floats; what a logarithmic axis cannot show (0) is drawn at the rounding, 0.01 bps."""
    array = values.astype("float64").to_numpy()
    return np.where(np.isfinite(array), np.maximum(array, 0.01), np.nan)


def _draw_missing(ax: Axes, theme: Theme, curve: pd.DataFrame, first: bool) -> None:
    for side in _SIDES:
        rows = curve[curve["side"] == side.name]
        centres = rows["amount_usd"].to_numpy() * side.shift
        ax.bar(
            centres,
            rows["missing_share"].to_numpy(),
            width=centres * 0.18,
            color=_colour(side.name, theme),
            hatch=side.hatch,
            edgecolor=theme.background,
            linewidth=0,
        )
    ax.set_ylim(0, 1)
    ax.set_yticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    ax.set_ylabel("book too thin" if first else "")
    ax.set_xlabel("size, USD")


def _size_axis(ax: Axes, sizes: pd.Series) -> None:
    """Put ticks at 1, 10, 100, ... thousand: sizes between them would overlap."""
    low, high = float(sizes.min()), float(sizes.max())
    decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    ax.xaxis.set_major_locator(FixedLocator(decades.tolist()))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(_size))
    ax.set_xlim(low * 0.7, high * 1.4)


def _size(value: float, _: int | None = None) -> str:
    return style.short_usd(value)


def _plain(value: float, _: int | None = None) -> str:
    return f"{value:g}"


def _words(curve: pd.DataFrame) -> str:
    if not len(curve):
        return "Slippage by size: no data."
    _, middle, _ = _quantiles(curve)
    return " ".join(
        _side_words(str(coin), str(side), rows, middle)
        for (coin, side), rows in curve.groupby(["coin", "side"], sort=True)
    )


def _side_words(coin: str, side: str, rows: pd.DataFrame, middle: str) -> str:
    known = rows[rows[middle].notna()].sort_values("amount_usd")
    thin = rows["missing_share"].max()
    words = f"{coin}, {side}: no size has a median"
    if len(known):
        first, last = known.iloc[0], known.iloc[-1]
        words = (
            f"{coin}, {side}: median slippage {first[middle]:.2f} bps at "
            f"{style.short_usd(first['amount_usd'])} USD, {last[middle]:.2f} bps at "
            f"{style.short_usd(last['amount_usd'])} USD"
        )
    return f"{words}; the book was too thin in at most {thin:.0%} of the samples of one size."
