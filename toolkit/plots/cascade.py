"""Liquidation cascades: how far a shock carries the price, and what is liquidated on the way."""

from typing import Final, overload

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from toolkit.arrays import Floats
from toolkit.liquidations import Cascade
from toolkit.plots import axes, formats, style
from toolkit.plots.result_checks import draws_result
from toolkit.plots.themes import Theme, ThemeName

_OPACITIES: Final = (1.0, 0.62, 0.36, 0.16)
"""The opacity of each round; the last one is for all further rounds together."""


@overload
def cascade(
    cascade: Cascade, *, ax: None = None, theme: ThemeName = "auto", transparent: bool = False
) -> Figure: ...


@overload
def cascade(
    cascade: Cascade, *, ax: Axes, theme: ThemeName = "auto", transparent: bool = False
) -> Axes: ...


@draws_result
def cascade(
    cascade: Cascade,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Figure | Axes:
    """Draw the price change after all liquidations over the shock, and what each round liquidates.

    Parameters
    ----------
    cascade : Cascade
        `tk.liquidations.cascade`.
    ax : Axes, optional
        Axes to draw the price changes on, without the panel below.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Figure or Axes
        A new figure with two panels; or `ax` with the upper one. The upper panel has the final
        price change in percent, with its interval, and a dashed line for the shock alone. The lower
        panel has the liquidated notional in USD, stacked by round.

    Examples
    --------
    >>> import pandas as pd
    >>> from toolkit import liquidations
    >>> rows = pd.DataFrame({"user": ["a"], "coin": "X", "szi": [1.0], "position_value": 1e5,
    ...     "leverage_type": "cross", "margin_used": 0.0})
    >>> owners = pd.DataFrame({"user": ["a"], "cross_account_value": [12e3]})
    >>> depth = pd.DataFrame({"coin": "X", "bps": [15, 30], "bid_depth_usd": [5e4, 1e5],
    ...     "ask_depth_usd": [5e4, 1e5], "timestamp_ms": pd.Timestamp(0, unit="ms", tz="UTC")})
    >>> made = liquidations.cascade(rows, owners, depth, "X", max_leverage={"X": 10})
    >>> len(cascade(made).axes)
    2
    """
    rows = cascade.params.sort_values("shock", ignore_index=True)
    has_values = cascade.n > 0 and bool(rows["estimate"].notna().any())
    ratios = (1.7, 1) if has_values else (1,)
    figure, panels, colours = style.new_panels(
        ax, theme, transparent, size=(7.2, 4.8), ratios=ratios
    )
    if has_values:
        _draw_moves(panels[0], colours, rows)
        for lower in panels[1:]:
            _draw_rounds(lower, colours, cascade.rounds, rows["shock"].to_numpy(np.float64))
        shock_text = f"shock to the price of {cascade.coin}, %"
        panels[-1].set_xlabel(shock_text, parse_math=False)
    else:
        style.draw_no_data(panels[0], colours)
    words = _describe_cascade(rows, cascade.coin) if has_values else "Cascade: no data."
    style.finish_axes(panels[0], colours, words, cascade.params)
    return panels[0] if figure is None else figure


def _draw_moves(ax: Axes, theme: Theme, rows: pd.DataFrame) -> None:
    shock, final = (100 * rows[name].to_numpy(np.float64) for name in ("shock", "estimate"))
    ends = np.array([min(shock.min(), 0.0), max(shock.max(), 0.0)])
    ax.plot(ends, ends, color=theme.muted, linestyle="--", linewidth=1, label="shock alone")
    for side in (shock < 0, shock > 0):
        if not side.any():
            continue
        low, high = (100 * rows.loc[side, name].to_numpy(np.float64) for name in ("low", "high"))
        is_first = bool(side[0])
        ax.fill_between(
            shock[side], shock[side], final[side], color=theme.bad, alpha=0.14, linewidth=0,
            label="added by liquidations" if is_first else None,
        )  # fmt: skip
        ax.vlines(shock[side], low, high, color=theme.text, linewidth=1.3, zorder=3)
        ax.plot(
            shock[side], final[side], color=theme.bad, marker="o", markersize=4.5, linewidth=1.6,
            label="final price" if is_first else None,
        )  # fmt: skip
        factors = rows["amplification"].where(side).fillna(0.0).to_numpy(np.float64)
        worst = int(factors.argmax())
        if factors[worst] > 1.01:
            is_fall = shock[worst] < 0
            axes.label_point(
                ax, theme, f"largest: {factors[worst]:.2f} times the shock",
                (shock[worst], final[worst]), (8, -10) if is_fall else (-8, 6),
                ha="left" if is_fall else "right",
            )  # fmt: skip
    axes.add_zero_line(ax, theme)
    ax.margins(x=0.04, y=0.08)
    ax.spines["bottom"].set_visible(False)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(FuncFormatter(formats.signed_tick))
    ax.set_ylabel("final price change, %")
    axes.add_legend(ax, theme, ncols=3)


def _draw_rounds(ax: Axes, theme: Theme, rounds: pd.DataFrame, shocks: Floats) -> None:
    gaps = np.diff(100 * shocks)
    width = 0.75 * gaps.min() if len(gaps) else 1.0
    last = len(_OPACITIES)
    number = rounds["round"].clip(upper=last)
    table = rounds.assign(_round=number).pivot_table(
        index="shock", columns="_round", values="forced_usd", aggfunc="sum", fill_value=0.0
    )
    places = 100 * table.index.to_numpy(np.float64)
    # The grid must not show through the shades.
    ax.bar(places, table.sum(axis=1), width=width, color=theme.background, linewidth=0)
    bottom = np.zeros(len(table))
    for place in map(int, table.columns):
        label = f"round {place}" if place < last else f"round {place} and later"
        usd = table[place].to_numpy(np.float64)
        ax.bar(
            places, usd, width=width, bottom=bottom, color=theme.bad,
            alpha=_OPACITIES[place - 1], linewidth=0, label=label,
        )  # fmt: skip
        bottom = bottom + usd
    ax.set_ylabel("liquidated, USD")
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: formats.short_usd(value)))
    if len(table):
        axes.add_legend(ax, theme, ncols=last)


def _describe_cascade(rows: pd.DataFrame, coin: str) -> str:
    row = rows.sort_values("amplification", na_position="first").iloc[-1]
    return (
        f"Liquidation cascade of {coin} after {len(rows)} shocks. The largest amplification is "
        f"{row['amplification']:.2f}: a shock of {100 * row['shock']:.0f} % becomes "
        f"{100 * row['estimate']:.1f} % in {int(row['rounds'])} rounds, which liquidate "
        f"{formats.usd_amount(row['forced_usd'])} USD."
    )
