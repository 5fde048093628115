"""Price impact: the law by size of orders, the response to single orders, and their sides."""

from typing import Final, overload

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from toolkit.arrays import Floats
from toolkit.execution import Impact
from toolkit.plots import axes, formats, style
from toolkit.plots.result_checks import draws_result
from toolkit.plots.themes import Theme, ThemeName

_UNIT: Final = 0.01  # share of a day's volume at which the law is stated


@overload
def impact(
    impact: Impact, *, ax: None = None, theme: ThemeName = "auto", transparent: bool = False
) -> Figure: ...


@overload
def impact(
    impact: Impact, *, ax: Axes, theme: ThemeName = "auto", transparent: bool = False
) -> Axes: ...


@draws_result
def impact(
    impact: Impact,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Figure | Axes:
    """Draw price impact by size of orders, the response by lag, and how sides follow each other.

    Parameters
    ----------
    impact : Impact
        `tk.execution.impact`.
    ax : Axes, optional
        Axes to draw the impact by size on, without the other panels.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Figure or Axes
        A new figure with three panels; or `ax`, with the first. Left: mean impact in basis points
        over the share of a day's volume, with intervals, the fitted law and a square root; both
        axes are logarithmic if all means are positive. Middle: response and kernel over the lag.
        Right: autocorrelation of the sides of orders. Bands are intervals.

    Examples
    --------
    >>> import pandas as pd
    >>> from toolkit import execution
    >>> ms = lambda *at: pd.to_datetime(at, unit="ms", utc=True)
    >>> fills = pd.DataFrame({"oid": [1, 2, 3], "coin": "XYZ", "px": 100.0, "sz": [1.0, 4.0, 16.0],
    ...     "side": "B", "crossed": True, "time": ms(1_000, 101_000, 201_000)})
    >>> mids = pd.DataFrame({"coin": "XYZ", "mid_px": [100, 100.01, 100, 100.02, 100, 100.04],
    ...     "time": ms(0, 2_000, 100_000, 102_000, 200_000, 202_000)})
    >>> len(impact(execution.impact(fills, mids)).axes)
    3
    """
    has_values = len(impact.sizes) > 0
    ratios = (1.25, 1, 0.9) if has_values else (1,)
    figure, panels, colours = style.new_panels(
        ax, theme, transparent, size=(10.2, 3.5), ratios=ratios, side_by_side=True
    )
    if has_values:
        _draw_law(panels[0], colours, impact)
        if len(panels) > 1:
            _draw_response(panels[1], colours, impact.lags)
            _draw_sides(panels[2], colours, impact.lags)
    else:
        style.draw_no_data(panels[0], colours)
    words = _describe_impact(impact) if has_values else "Price impact: no data."
    style.finish_axes(panels[0], colours, words, impact.params)
    return panels[0] if figure is None else figure


def _draw_law(ax: Axes, theme: Theme, found: Impact) -> None:
    sizes = found.sizes
    share, mean, low, high = (
        sizes[name].to_numpy(np.float64) for name in ("share", "estimate", "low", "high")
    )
    is_log = bool((mean > 0).all())
    ax.set_xscale("log")
    shares = np.geomspace(share.min() / 1.3, share.max() * 1.3, 60)
    exponent, scale, root = (found[name] for name in ("exponent", "impact_bps", "root_bps"))
    if np.isfinite(exponent):
        law = scale * (shares / _UNIT) ** exponent
        label = f"fitted: exponent {exponent:.2f}{_interval_text(found)}"
        ax.plot(shares, law, color=theme.good, linewidth=1.8, label=label)
        square = root * (shares / _UNIT) ** 0.5
        if not is_log or root > 0:
            ax.plot(shares, square, color=theme.bad, linestyle="--", linewidth=1.4,
                    label="square root")  # fmt: skip
    least = 0.2 * mean.min() if is_log else -np.inf
    ends = np.array([mean - np.maximum(low, least), high - mean])
    ax.errorbar(
        share, mean, yerr=np.maximum(np.nan_to_num(ends), 0.0), color=theme.text, linestyle="",
        marker="o", markersize=5, capsize=3, linewidth=1.2, label="mean of orders of a size",
    )  # fmt: skip
    if is_log:
        ax.set_yscale("log")
        ax.set_ylim(bottom=0.45 * mean.min())
        axes.set_log_ticks(ax.yaxis, formats.plain_number)
    else:
        axes.add_zero_line(ax, theme)
        ax.yaxis.set_major_formatter(FuncFormatter(formats.signed_number))
    ax.xaxis.set_major_locator(LogLocator())
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    ax.set_xlabel("size of the order, share of a day's volume")
    ax.set_ylabel("price impact, bps")
    axes.add_legend(ax, theme, ncols=1)


def _interval_text(found: Impact) -> str:
    row = found.params.set_index("name").loc["exponent"]
    return f" ({row['low']:.2f} to {row['high']:.2f})" if row["low"] == row["low"] else ""


def _draw_response(ax: Axes, theme: Theme, lags: pd.DataFrame) -> None:
    axes.add_zero_line(ax, theme)
    for number, (name, label) in enumerate(
        (("response", "response"), ("kernel", "kernel (own part)"))
    ):
        line = axes.line_style(theme, number)
        _draw_band(ax, lags, f"{name}_bps", name, line, label)
    ax.yaxis.set_major_formatter(FuncFormatter(formats.signed_number))
    ax.set_ylabel("price change, bps")
    _set_lags(ax, theme)


def _draw_sides(ax: Axes, theme: Theme, lags: pd.DataFrame) -> None:
    axes.add_zero_line(ax, theme)
    line = axes.line_style(theme, 2)
    _draw_band(ax, lags, "autocorrelation", "autocorrelation", line, "same side again")
    ax.set_ylabel("autocorrelation of sides")
    _set_lags(ax, theme)


def _draw_band(
    ax: Axes, lags: pd.DataFrame, column: str, name: str, line: axes.LineStyle, label: str
) -> None:
    at, values, low, high = (
        lags[part].to_numpy(np.float64) for part in ("lag", column, f"{name}_low", f"{name}_high")
    )
    ax.plot(
        at, values, color=line.colour, linestyle=line.dashes, marker=line.marker, markersize=3,
        linewidth=1.6, label=label,
    )  # fmt: skip
    ax.fill_between(at, low, high, color=line.colour, alpha=0.16, linewidth=0)


def _set_lags(ax: Axes, theme: Theme) -> None:
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    ax.set_xlabel("lag, orders")
    ax.spines["bottom"].set_visible(False)
    axes.add_legend(ax, theme, ncols=1)


def _describe_impact(found: Impact) -> str:
    rows = found.params.set_index("name")
    exponent: Floats = rows.loc["exponent", ["estimate", "low", "high"]].to_numpy(np.float64)
    if np.isnan(exponent[0]):
        return f"Price impact of {found.n:,} orders: no law fits."
    ends = f" ({exponent[1]:.2f} to {exponent[2]:.2f})" if exponent[1] == exponent[1] else ""
    return (
        f"Price impact of {found.n:,} orders grows with their size to the power of "
        f"{exponent[0]:.2f}{ends}. An order of 1 % of a day's volume moves the price by "
        f"{formats.basis_points(rows.loc['impact_bps', 'estimate'])} bps."
    )
