"""Liquidations: the map of liquidation prices, their history, and cascades."""

from typing import Any, Final, Unpack, overload

import matplotlib.dates as mdates
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toolkit.arrays import Floats
from toolkit.liquidations import Cascade
from toolkit.plots import axes, formats, style
from toolkit.plots.axes import Panel
from toolkit.plots.style import Look, PanelLook

_HISTORY: Final = {
    "time", "method", "side", "fills", "accounts", "notional", "closed_pnl", "marked",
    "slippage_bps",
}  # fmt: skip
_OPACITIES: Final = (1.0, 0.62, 0.36, 0.16)
"""The opacity of each round; the last one is for all further rounds together."""


@style.draws_result
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
    rows = levels.dropna(subset="distance") if len(levels) else levels
    if rows.empty:
        return panel.no_data("Liquidation map")
    ax, theme, coin, width = panel.ax, panel.theme, rows["coin"].iloc[0], _bin_width(rows)
    sides = (("long", theme.bad, "-", ""), ("short", theme.good, "--", "////"))
    for side, colour, dashes, hatch in sides:
        own = rows[rows["side"] == side].sort_values("distance", key=abs, kind="stable")
        if own.empty:
            continue
        edge, total = own["distance"].to_numpy(), own["cumulative"].to_numpy()
        is_above = _is_above(edge, side)
        far = edge + np.where(is_above, width, -width)  # the price has passed all of the bin there
        ax.bar(
            50 * (edge + far), own["notional"], width=92 * width, color=colour,
            alpha=0.55, hatch=hatch, edgecolor=colour, linewidth=0.4, label=f"{side}s",
        )  # fmt: skip
        label = f"{side}s up to here"
        for is_chosen in (~is_above, is_above):
            if is_chosen.any():
                ax.step(
                    100 * np.append(0, far[is_chosen]), np.append(0, total[is_chosen]),
                    where="post", color=colour, linestyle=dashes, linewidth=1.3, label=label,
                )  # fmt: skip
                label = ""
    ax.axvline(0, color=theme.text, linewidth=1)
    ax.spines["bottom"].set_visible(False)
    shares = rows.groupby("side")["covered"].first()
    coverage = "share of open interest not known"
    if shares.notna().any():
        parts = [f"{100 * share:.0f} % of {side}s" for side, share in shares.items()]
        coverage = f"covers {', '.join(parts)}"
    label = f"distance of the liquidation price from the mark price of {coin}, %\n({coverage})"
    usd = formats.short_usd
    panel.label_axes(label, "notional, USD", x_ticks=formats.signed_tick, y_ticks=usd)
    panel.add_legend(ncols=4)
    sums = rows.groupby("side")["notional"].sum()
    amounts = ", ".join(f"{formats.usd_amount(usd)} of {side}s" for side, usd in sums.items())
    unplaced = levels.groupby("side")["unplaced"].first().sum()
    return panel.finish(
        f"Liquidation map of {coin}: {amounts} in USD would be liquidated within "
        f"{100 * rows['distance'].abs().max():.0f} % of the mark price, "
        f"{formats.usd_amount(unplaced)} USD are not on the map; it {coverage}."
    )


def _is_above(distance: Any, side: str) -> Any:
    """Return whether bins lie above the mark price; at distance 0 the side decides."""
    return (distance > 0) | ((distance == 0) & (side == "short"))


def _bin_width(rows: pd.DataFrame) -> float:
    """Return the width of a bin as a share of the mark price."""
    row = rows.iloc[0]
    edge = row["low"] if _is_above(row["distance"], row["side"]) else row["high"]
    return float((row["high"] - row["low"]) / (edge / (1 + row["distance"])))


@style.draws_result
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
    if history.empty:
        return panel.no_data("Liquidations over time")
    theme = panel.theme
    groups = [name for name in history.columns if name not in _HISTORY]
    if history.duplicated(["time", "method", "side"]).any():
        parts = history[groups[:1] or ["time"]].drop_duplicates()
        raise axes.several_parts_error("liquidation_history", "group", "history", parts)
    times = pd.DatetimeIndex(history["time"].drop_duplicates().sort_values())
    places = mdates.date2num(times)
    width = np.diff(places).min(initial=7.0) if len(places) > 1 else 1 / 24
    bars, words = [], []
    colours = {"market": theme.bad, "backstop": theme.accent, "deleveraging": theme.good}
    for method, colour in (colours | {"unknown": theme.muted}).items():
        own = history[history["method"] == method]
        if own.empty:
            continue
        marked = own["marked"].sum()
        slippage = (own["slippage_bps"] * own["marked"]).sum() / marked if marked else np.nan
        label = f"{method}: {formats.basis_points(slippage)} bps" if marked else method
        for side, sign in (("long", 1.0), ("short", -1.0)):
            sums = own[own["side"] == side].groupby("time")["notional"].sum()
            usd = sign * sums.reindex(times, fill_value=0.0).to_numpy(np.float64)
            bars.append(
                (usd, {"color": colour, "linewidth": 0, "label": label if sign > 0 else None})
            )
        words.append(f"{label}, {formats.usd_amount(own['notional'].sum())} USD")
    panel.stack_bars(places + width / 2, bars, 0.86 * width)
    panel.add_zero_line(is_edge=True)
    y, ticks = "longs (above) and shorts\nclosed, USD", lambda usd, _: formats.short_usd(abs(usd))
    panel.set_time_axis(times.min(), times.max(), y, y_ticks=ticks)
    panel.add_legend(ncols=4)
    text = f"Liquidations over time, worse than the mark price by: {'; '.join(words)}."
    return panel.finish(text)


@overload
def cascade(cascade: Cascade, *, ax: None = None, **look: Unpack[Look]) -> Figure: ...
@overload
def cascade(cascade: Cascade, *, ax: Axes, **look: Unpack[Look]) -> Axes: ...
@style.draws_panels
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
    has_values = cascade.n > 0 and bool(rows["estimate"].notna().any())
    heights = (1.7, 1) if has_values else (1,)
    upper, *others = style.open_panels(cascade.params, look, (7.2, 4.8), heights=heights)
    if not has_values:
        return upper.no_data("Cascade")
    shock = 100 * rows["shock"].to_numpy(np.float64)
    _draw_moves(upper, rows, shock)
    for lower in others:
        _draw_rounds(lower, cascade.rounds, 0.75 * np.diff(shock).min(initial=np.inf))
    for panel in others or [upper]:
        panel.label_axes(f"shock to the price of {cascade.coin}, %")
    row = rows.sort_values("amplification", na_position="first").iloc[-1]
    return upper.finish(
        f"Liquidation cascade of {cascade.coin} after {len(rows)} shocks. The largest "
        f"amplification is {row['amplification']:.2f}: a shock of {100 * row['shock']:.0f} % "
        f"becomes {100 * row['estimate']:.1f} % in {int(row['rounds'])} rounds, which liquidate "
        f"{formats.usd_amount(row['forced_usd'])} USD."
    )


def _draw_moves(panel: Panel, rows: pd.DataFrame, shock: Floats) -> None:
    ax, theme = panel.ax, panel.theme
    final, low, high = (100 * rows[n].to_numpy(np.float64) for n in ("estimate", "low", "high"))
    ends = [min(shock.min(), 0.0), max(shock.max(), 0.0)]
    ax.plot(ends, ends, color=theme.muted, linestyle="--", linewidth=1, label="shock alone")
    labels = ["added by liquidations", "final price"]
    for side in (shock < 0, shock > 0):
        if not side.any():
            continue
        panel.draw_band(
            shock[side], shock[side], final[side], theme.bad, alpha=0.14, label=labels[0]
        )
        ax.vlines(shock[side], low[side], high[side], color=theme.text, linewidth=1.3, zorder=3)
        ax.plot(
            shock[side], final[side], color=theme.bad, marker="o", markersize=4.5, linewidth=1.6,
            label=labels[1],
        )  # fmt: skip
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
    panel.label_axes(y="final price change, %", x_ticks=ticks, y_ticks=ticks)
    panel.add_legend(ncols=3)


def _draw_rounds(panel: Panel, rounds: pd.DataFrame, width: float) -> None:
    theme, last = panel.theme, len(_OPACITIES)
    table = rounds.assign(_round=rounds["round"].clip(upper=last)).pivot_table(
        index="shock", columns="_round", values="forced_usd", aggfunc="sum", fill_value=0.0
    )
    places, width = 100 * table.index.to_numpy(np.float64), width if np.isfinite(width) else 1.0
    # The grid must not show through the shades.
    panel.ax.bar(places, table.sum(axis=1), width=width, color=theme.background, linewidth=0)
    bars = []
    for number in map(int, table.columns):
        look = {"alpha": _OPACITIES[number - 1], "color": theme.bad, "linewidth": 0}
        label = f"round {number}{' and later' * (number == last)}"
        bars.append((table[number].to_numpy(np.float64), look | {"label": label}))
    panel.stack_bars(places, bars, width)
    panel.label_axes(y="liquidated, USD", y_ticks=formats.short_usd)
    if len(table):
        panel.add_legend(ncols=last)
