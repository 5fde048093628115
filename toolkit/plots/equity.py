"""Equity and drawdown over time, and positions over time."""

from typing import Final, Literal, Unpack, overload

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toolkit.errors import MissingColumns
from toolkit.plots import axes, formats, style
from toolkit.plots.style import Look, PanelLook

Drawn = Literal["pnl", "equity"]

_MAX_COINS: Final = 12
_CURVE_NAMES: Final = {
    "equity": "Equity",
    "pnl": "PnL with unrealised PnL",
    "realised": "Realised PnL",
}


@overload
def equity_curve(
    curve: pd.DataFrame, *, of: Drawn = "pnl", note: str = "", ax: None = None, **look: Unpack[Look]
) -> Figure: ...
@overload
def equity_curve(
    curve: pd.DataFrame, *, of: Drawn = "pnl", note: str = "", ax: Axes, **look: Unpack[Look]
) -> Axes: ...
@style.draws_result("Equity over time")
def equity_curve(
    curve: pd.DataFrame, *, of: Drawn = "pnl", note: str = "", **look: Unpack[PanelLook]
) -> Figure | Axes:
    """Draw PnL or equity of an account over time, and the drawdown of PnL in a panel below.

    Without marks (`tk.pnl.equity`) unrealised PnL is not known. The panel then shows the drawdown
    of realised PnL, and its label states this.

    Parameters
    ----------
    curve : DataFrame
        `tk.pnl.equity` of one account, or `tk.pnl.drawdown` of it: ``time, realised, pnl``, and
        ``equity`` if you draw it.
    of : {"pnl", "equity"}, default "pnl"
        Whether to draw PnL, or equity, which contains deposits and withdrawals. The drawdown is
        always of PnL.
    note : str
        Text above the curve, such as how positions were marked.
    ax : Axes, optional
        Axes to draw the curve on, without the panel below.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Figure or Axes
        A new figure with both panels; or `ax`, with the curve. USD over time (UTC). Realised PnL
        is a dashed line; PnL with unrealised PnL, if it is known, is a solid line. Missing values
        are gaps, not 0. The drawdown is the column ``drawdown``; if it is missing or empty, it is
        computed from ``pnl``, or else from ``realised``.

    Raises
    ------
    MissingColumns
        If a column is missing.
    ValueError
        If the curve is of several accounts.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"time": pd.to_datetime([0, 1, 2], unit="h", utc=True),
    ...     "realised": [0.0, 5.0, 3.0], "pnl": [1.0, 6.0, 2.0], "drawdown": [0.0, 0.0, -4.0]})
    >>> len(equity_curve(rows).axes)  # the curve, and the panel below it
    2
    """
    axes.check_one_part("equity_curve", "account", "curve", curve, ["user"])
    rows, drawdown_of = _with_drawdown(curve, of)
    upper, *others = panels = style.open_panels(curve, look, (7.2, 4.4), heights=(2.6, 1))
    ax, theme = upper.ax, upper.theme
    if note:
        ax.set_title(note, loc="left", fontsize=9, color=theme.text)
        note = f" {note[:1].upper()}{note[1:]}."
    time, last, is_known = rows["time"], rows.iloc[-1], of == "pnl" or rows["equity"].notna().any()
    if not is_known:
        upper.write_note("equity is not known: pass marks to tk.pnl.equity")
    elif of == "equity":
        # 0 is far from the equity of most accounts, and the axis does not contain it.
        ax.plot(time, rows[of].to_numpy(np.float64), color=theme.good, linewidth=1.8)
    else:
        if rows["pnl"].notna().any():
            pnl = rows["pnl"].to_numpy(np.float64)
            ax.plot(time, pnl, color=theme.good, linewidth=1.8, label="with unrealised")
        ax.plot(
            time, rows["realised"].to_numpy(np.float64), color=theme.bad, linestyle="--",
            linewidth=1.5, marker="o" if len(rows) == 1 else None, drawstyle="steps-post",
            label="realised",
        )  # fmt: skip
        upper.add_zero_line(is_edge=True)
        upper.add_legend(2)
    ax.margins(x=0.01, y=0.08)
    y = "PnL, USD; below 0: a loss" if of == "pnl" else "equity, USD"
    for panel in panels if is_known else others:
        panel.set_time_axis(time, y if panel is upper else "", y_ticks=formats.usd_tick)
    for lower in others:
        ax.set_xlabel("")
        _draw_drawdown(lower, rows, drawdown_of)
    name = of if of == "equity" else "realised" if pd.isna(last["pnl"]) else "pnl"
    deepest, end = rows["drawdown"].min(), "not known"
    if pd.notna(last[name]):
        end = formats.usd_amount(last[name], signed=name != "equity")
    return upper.finish(
        f"{_CURVE_NAMES[name]} in USD from {time.iloc[0]:%Y-%m-%d %H:%M} to "
        f"{time.iloc[-1]:%Y-%m-%d %H:%M} UTC: it ends at {end}; "
        f"the deepest drawdown{' of realised PnL' * bool(drawdown_of)} is "
        f"{'not known' if pd.isna(deepest) else formats.usd_amount(deepest)}.{note}"
    )


def _with_drawdown(curve: pd.DataFrame, drawn: str) -> tuple[pd.DataFrame, str]:
    """Return the rows by time with their drawdown, and ``"realised"`` if it is not of PnL."""
    needed = dict.fromkeys(("time", "realised", "pnl", drawn))
    if missing := [name for name in needed if name not in curve.columns]:
        raise MissingColumns(
            f"curve: the frame lacks the column{'s' * (len(missing) > 1)} {', '.join(missing)}. "
            "Pass a result of tk.pnl.equity or tk.pnl.drawdown"
        )
    rows = curve.sort_values("time", kind="stable")
    of = "pnl" if rows["pnl"].notna().any() else "realised"
    if "drawdown" not in rows.columns or rows["drawdown"].isna().all():
        values = rows[of].astype("float64")
        # PnL began at 0. A missing value stays missing.
        rows = rows.assign(drawdown=values - values.cummax().clip(lower=0.0))
    return rows, "" if of == "pnl" else of


def _draw_drawdown(panel: axes.Panel, rows: pd.DataFrame, of: str) -> None:
    ax, theme, times = panel.ax, panel.theme, rows["time"]
    drawdown = rows["drawdown"].to_numpy(np.float64)
    # Realised PnL changes in steps; unrealised PnL changes between its points, too.
    panel.draw_band(times, drawdown, 0, theme.bad, alpha=0.35, step="post" if of else None)
    steps: Literal["steps-post", "default"] = "steps-post" if of else "default"
    ax.plot(times, drawdown, color=theme.bad, linewidth=1.2, drawstyle=steps)
    if np.isfinite(drawdown).any():
        deepest = int(np.nanargmin(drawdown))
        point = times.iloc[deepest], drawdown[deepest]
        ax.plot(*point, "v", color=theme.text, markersize=5)
        offset, side = ((6, -12), "right") if deepest > len(times) / 2 else ((-6, -12), "left")
        panel.label_point(formats.usd_amount(point[1]), point, offset, ha=side, va="center")
    ax.margins(x=0.01, y=0.45)
    ax.set_ylim(top=min(0.05 * abs(ax.get_ylim()[0]), ax.get_ylim()[1]))
    ax.set_ylabel("drawdown of\nrealised, USD" if of else "drawdown, USD")


@style.draws_result("Positions over time")
def positions_over_time(positions: pd.DataFrame, **look: Unpack[PanelLook]) -> Axes:
    """Draw the notional of an account's positions over time, a row for each coin.

    Parameters
    ----------
    positions : DataFrame
        `tk.pnl.positions`, of one account.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        Notional at the price of the last fill, over time (UTC): long above the line of a coin,
        short below it. Each row has its own scale; the number at the right is its largest notional
        in USD. Of more than 12 coins, those with the largest notional are drawn, and the label
        states how many are left out. A cross marks a place where fills are missing.

    Raises
    ------
    ValueError
        If there are several accounts.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"coin": "BTC", "position": [1.0, 0.0], "px": [100.0, 110.0],
    ...     "time": pd.to_datetime([0, 1], unit="h", utc=True), "chain_break": False})
    >>> [text.get_text() for text in positions_over_time(rows).get_yticklabels()]
    ['BTC']
    """
    axes.check_one_part("positions_over_time", "account", "positions", positions, ["user"])
    notional = (positions["position"] * positions["px"]).astype("float64")
    rows = positions.assign(notional=notional)
    sizes = notional.abs().groupby(rows["coin"]).max().fillna(0.0)
    sizes = sizes.sort_values(ascending=False, kind="stable")
    drawn = style.not_empty(sizes.head(_MAX_COINS))
    panel = style.open_panel(positions, look, (7.2, 1.2 + 0.5 * max(3, len(drawn))))
    ax, theme, last, coins = panel.ax, panel.theme, rows["time"].max(), [*drawn.index.map(str)]
    # The largest is at the top. Each row has its own scale.
    largest = [formats.short_usd(float(f"{size:.3g}")) for size in drawn[::-1]]
    panel.name_rows(coins[::-1], largest)
    ax.grid(False)
    for number, (coin, size) in enumerate(drawn[::-1].items()):
        own = rows[rows["coin"] == coin]
        height = number + 0.42 * own["notional"].to_numpy() / (size or 1.0)
        # A position lasts until the next fill, and the last one until the end of the figure.
        times, heights = [*own["time"], last], np.append(height, height[-1])
        ax.axhline(number, color=theme.muted, linewidth=0.6)
        for is_side, colour in ((heights >= number, theme.good), (heights <= number, theme.bad)):
            side = np.where(is_side, heights, number)
            ax.fill_between(times, side, number, step="post", color=colour, linewidth=0.8)
        is_break = own["chain_break"].to_numpy(bool)
        if is_break.any():
            ax.plot(own["time"][is_break], height[is_break], "x", color=theme.text, markersize=6)
    ax.spines["bottom"].set_visible(False)
    ax.margins(x=0.01)
    left_out = len(sizes) - len(drawn)
    smaller = f"; {left_out} smaller ones not drawn" if left_out else ""
    note = f"; largest size of each coin at the right, USD{smaller}"
    panel.set_time_axis(rows["time"], "long above, short below", note=note)
    low, high = map(formats.usd_amount, (notional.min(), notional.max()))
    unknown = f", {notional.isna().sum()} not known" if notional.isna().any() else ""
    return panel.finish(
        f"Positions in {', '.join(coins)} over time, in USD: between {low} and {high}{unknown}; "
        f"{int(positions['chain_break'].sum())} places where fills are missing."
    )
