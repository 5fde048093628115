"""Liquidations: the map of liquidation prices, their history, and cascades."""

from typing import Any, Final, Unpack, overload

import matplotlib.dates as mdates
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from toolkit.arrays import Floats
from toolkit.liquidations import Cascade
from toolkit.plots import axes, formats, style
from toolkit.plots.style import Look, PanelLook

_OPACITIES: Final = (1.0, 0.62, 0.36, 0.16)
"""The opacity of each round; the last one is for all further rounds together."""


@style.draws_result("Liquidation map")
def liquidation_map(levels: pd.DataFrame, **look: Unpack[PanelLook]) -> Axes:
    """Draw the notional of longs and shorts that a price change would liquidate.

    Parameters
    ----------
    levels : DataFrame
        `tk.liquidations.levels`, of one coin.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        Bars in USD over the distance from the mark price in percent, lines of the notional from
        the mark price up to there, and the share of open interest that the map covers.

    Raises
    ------
    ValueError
        If there are several coins.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"coin": "X", "side": ["long"], "distance": [-0.05], "low": [94.0],
    ...     "high": [95.0], "notional": [1e3], "cumulative": [1e3], "unplaced": [0.0],
    ...     "covered": [0.5]})
    >>> liquidation_map(rows).get_ylabel()
    'notional, USD'
    """
    axes.check_one_part("liquidation_map", "coin", "levels", levels, ["coin"])
    panel = style.open_panel(levels, look)
    rows = style.not_empty(levels.dropna(subset="distance"))
    ax, theme, coin, near = panel.ax, panel.theme, rows["coin"].iloc[0], rows["distance"]
    # At distance 0 the side decides whether a bin lies above the mark price.
    above = (near > 0) | ((near == 0) & (rows["side"] == "short"))
    low, high, first = (rows[name].iloc[0] for name in ("low", "high", "distance"))
    width = (high - low) / ((low if above.iloc[0] else high) / (1 + first))
    # The price has passed all of the bin at its far edge.
    rows = rows.assign(above=above, far=near + np.where(above, width, -width))
    sides = (("long", theme.bad, "-", ""), ("short", theme.good, "--", "////"))
    for side, colour, dashes, hatch in sides:
        own = rows[rows["side"] == side].sort_values("distance", key=abs, kind="stable")
        if len(own):
            ax.bar(
                50 * (own["distance"] + own["far"]), own["notional"], width=92 * width, alpha=0.55,
                color=colour, hatch=hatch, edgecolor=colour, linewidth=0.4, label=f"{side}s",
            )  # fmt: skip
        line: Any = {
            "where": "post",
            "color": colour,
            "linewidth": 1.3,
            "label": f"{side}s up to here",
        }
        for _, part in own.groupby("above"):
            far, total = (np.append(0, part[name]) for name in ("far", "cumulative"))
            ax.step(100 * far, total, dashes, **line)
            line["label"] = ""
    ax.axvline(0, color=theme.text, linewidth=1)
    ax.spines["bottom"].set_visible(False)
    shares = rows.groupby("side")["covered"].first()
    coverage = "share of open interest not known"
    if shares.notna().any():
        parts = [f"{100 * share:.0f} % of {side}s" for side, share in shares.items()]
        coverage = f"covers {', '.join(parts)}"
    x = f"distance of the liquidation price from the mark price of {coin}, %\n({coverage})"
    ticks = {"x_ticks": formats.signed_tick, "y_ticks": formats.short_usd}
    panel.label_axes(x, "notional, USD", **ticks, legend=4)
    sums = rows.groupby("side")["notional"].sum()
    amounts = ", ".join(f"{formats.usd_amount(usd)} of {side}s" for side, usd in sums.items())
    unplaced = levels.groupby("side")["unplaced"].first().sum()
    return panel.finish(
        f"Liquidation map of {coin}: {amounts} in USD would be liquidated within "
        f"{100 * rows['distance'].abs().max():.0f} % of the mark price, "
        f"{formats.usd_amount(unplaced)} USD are not on the map; it {coverage}."
    )


@style.draws_result("Liquidations over time")
def liquidation_history(history: pd.DataFrame, **look: Unpack[PanelLook]) -> Axes:
    """Draw liquidated longs and shorts over time, by method.

    Parameters
    ----------
    history : DataFrame
        `tk.liquidations.history`, without further groups or of one of them.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        Bars in USD by period (UTC): closed longs above 0, closed shorts below. Each method has its
        own colour, and its mean slippage to the mark price in the legend.

    Raises
    ------
    ValueError
        If the result has several groups, such as coins.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"time": pd.to_datetime(["2025-10-10T21:00Z"]), "method": "market",
    ...     "side": "long", "fills": 1, "notional": 980.0, "marked": 980.0, "slippage_bps": 200.0})
    >>> liquidation_history(rows).get_legend().get_texts()[0].get_text()
    'market: 200.00 bps'
    """
    panel = style.open_panel(history, look)
    keys, theme = ["time", "method", "side"], panel.theme
    axes.check_no_repeats("liquidation_history", "group", "history", history, keys)
    colours = {"market": theme.bad, "backstop": theme.accent, "deleveraging": theme.good}
    colours["unknown"] = theme.muted
    sums: Any = history.set_index(["time", "side", "method"])["notional"].astype("float64")
    usd, labels, words = sums.unstack(fill_value=0.0), {}, []
    sign = usd.index.get_level_values("side").map({"long": 1.0, "short": -1.0})
    usd = usd.mul(sign.astype("float64"), axis=0)
    for method in colours:
        own = history[history["method"] == method]
        marked, name = own["marked"].sum(), method
        if marked:
            slippage = (own["slippage_bps"] * own["marked"]).sum() / marked
            name = f"{method}: {formats.basis_points(slippage)} bps"
        if len(own):
            labels[method] = name
            words.append(f"{name}, {formats.usd_amount(own['notional'].sum())} USD")
    places = mdates.date2num(usd.index.get_level_values("time"))
    every = np.unique(places)
    width = np.diff(every).min(initial=7.0) if len(every) > 1 else 1 / 24
    bars, looks = usd[[*labels]].rename(columns=labels), [colours[method] for method in labels]
    panel.stack_bars(places + width / 2, bars, looks, 0.86 * width)
    panel.add_zero_line(is_edge=True)
    y, ticks = "longs (above) and shorts\nclosed, USD", lambda usd, _: formats.short_usd(abs(usd))
    panel.set_time_axis(history["time"], y, y_ticks=ticks, legend=4)
    text = f"Liquidations over time, worse than the mark price by: {'; '.join(words)}."
    return panel.finish(text)


@overload
def cascade(cascade: Cascade, *, ax: None = None, **look: Unpack[Look]) -> Figure: ...
@overload
def cascade(cascade: Cascade, *, ax: Axes, **look: Unpack[Look]) -> Axes: ...
@style.draws_result("Cascade")
def cascade(cascade: Cascade, **look: Unpack[PanelLook]) -> Figure | Axes:
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
    style.not_empty(rows["estimate"].dropna() if cascade.n else [])
    upper, *others = style.open_panels(cascade.params, look, (7.2, 4.8), heights=(1.7, 1))
    shock = 100 * rows["shock"].to_numpy(np.float64)
    _draw_moves(upper, rows, shock)
    for lower in others:
        theme, last = lower.theme, len(_OPACITIES)
        table = cascade.rounds.assign(_round=cascade.rounds["round"].clip(upper=last)).pivot_table(
            index="shock", columns="_round", values="forced_usd", aggfunc="sum", fill_value=0.0
        )
        places, numbers = 100 * table.index.to_numpy(np.float64), [*map(int, table.columns)]
        width = 0.75 * np.diff(shock).min(initial=np.inf)
        width = width if np.isfinite(width) else 1.0
        # The grid must not show through the shades.
        lower.ax.bar(places, table.sum(axis=1), width=width, color=theme.background, linewidth=0)
        colours = [to_rgba(theme.bad, _OPACITIES[number - 1]) for number in numbers]
        names = [f"round {number}{' and later' * (number == last)}" for number in numbers]
        lower.stack_bars(places, table.set_axis(names, axis=1), colours, width)
        legend = last if len(table) else 0
        lower.label_axes(y="liquidated, USD", y_ticks=formats.short_usd, legend=legend)
    (others or [upper])[0].label_axes(f"shock to the price of {cascade.coin}, %")
    row = rows.sort_values("amplification", na_position="first").iloc[-1]
    return upper.finish(
        f"Liquidation cascade of {cascade.coin} after {len(rows)} shocks. The largest "
        f"amplification is {row['amplification']:.2f}: a shock of {100 * row['shock']:.0f} % "
        f"becomes {100 * row['estimate']:.1f} % in {int(row['rounds'])} rounds, which liquidate "
        f"{formats.usd_amount(row['forced_usd'])} USD."
    )


def _draw_moves(panel: axes.Panel, rows: pd.DataFrame, shock: Floats) -> None:
    ax, theme = panel.ax, panel.theme
    final, low, high = 100 * rows[axes.INTERVAL].to_numpy(np.float64).T
    ends = [min(shock.min(), 0.0), max(shock.max(), 0.0)]
    ax.plot(ends, ends, color=theme.muted, linestyle="--", linewidth=1, label="shock alone")
    labels = ["added by liquidations", "final price"]
    for side in (shock < 0, shock > 0):
        if not side.any():
            continue
        x, y = shock[side], final[side]
        panel.draw_band(x, x, y, theme.bad, alpha=0.14, label=labels[0])
        ax.vlines(x, low[side], high[side], color=theme.text, linewidth=1.3, zorder=3)
        ax.plot(x, y, "o-", color=theme.bad, markersize=4.5, linewidth=1.6, label=labels[1])
        labels = ["", ""]
        factors = rows["amplification"].where(side).fillna(0.0).to_numpy(np.float64)
        worst = int(factors.argmax())
        if factors[worst] > 1.01:
            offset, edge = ((8, -10), "left") if shock[worst] < 0 else ((-8, 6), "right")
            text = f"largest: {factors[worst]:.2f} times the shock"
            panel.label_point(text, (shock[worst], final[worst]), offset, ha=edge)
    panel.add_zero_line(is_edge=True)
    ax.margins(x=0.04, y=0.08)
    ticks = formats.signed_tick
    panel.label_axes(y="final price change, %", x_ticks=ticks, y_ticks=ticks, legend=3)
