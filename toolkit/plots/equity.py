"""Equity and drawdown over time, and positions over time."""

from typing import Any, Final, Literal, Unpack, overload

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toolkit.arrays import Floats
from toolkit.errors import MissingColumns
from toolkit.plots import axes, formats, style
from toolkit.plots.axes import Panel
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
@style.draws_panels
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
    size, heights = ((7.2, 4.4), (2.6, 1)) if len(curve) else ((7.2, 3.6), (1,))
    upper, *others = panels = style.open_panels(curve, look, size, heights=heights)
    if note:
        upper.ax.set_title(note, loc="left", fontsize=9, color=upper.theme.text)
        note = f" {note[:1].upper()}{note[1:]}."
    if curve.empty:
        upper.write_note("no data")
        return upper.finish(f"Equity over time: no data.{note}")
    time, last, is_known = rows["time"], rows.iloc[-1], of == "pnl" or rows["equity"].notna().any()
    if of == "pnl":
        _draw_pnl(upper, rows)
    elif is_known:
        # 0 is far from the equity of most accounts, and the axis does not contain it.
        upper.ax.plot(_plain(time), _floats(rows, of), color=upper.theme.good, linewidth=1.8)
        upper.ax.set_ylabel("equity, USD")
    else:
        upper.write_note("equity is not known: pass marks to tk.pnl.equity")
    for lower in others:
        _draw_drawdown(lower, rows, drawdown_of)
    for panel in panels if is_known else others:
        panel.set_time_axis(time.iloc[0], time.iloc[-1], y_ticks=formats.usd_tick)
        if panel is upper:
            panel.ax.margins(x=0.01, y=0.08)
            if others:
                panel.ax.set_xlabel("")
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
    if not len(curve):
        return curve, ""
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


def _draw_pnl(panel: Panel, rows: pd.DataFrame) -> None:
    ax, times, pnl = panel.ax, _plain(rows["time"]), _floats(rows, "pnl")
    if np.isfinite(pnl).any():
        ax.plot(times, pnl, color=panel.theme.good, linewidth=1.8, label="with unrealised")
    ax.plot(
        times, _floats(rows, "realised"), color=panel.theme.bad, linestyle="--", linewidth=1.5,
        marker="o" if len(rows) == 1 else None, drawstyle="steps-post", label="realised",
    )  # fmt: skip
    panel.add_zero_line(is_edge=True)
    ax.set_ylabel("PnL, USD; below 0: a loss")
    panel.add_legend(ncols=2)


def _draw_drawdown(panel: Panel, rows: pd.DataFrame, of: str) -> None:
    ax, theme = panel.ax, panel.theme
    times, drawdown = _plain(rows["time"]), _floats(rows, "drawdown")
    # Realised PnL changes in steps; unrealised PnL changes between its points, too.
    step: Literal["post"] | None = "post" if of else None
    panel.draw_band(times, drawdown, 0, theme.bad, alpha=0.35, step=step)
    ax.plot(
        times, drawdown, color=theme.bad, linewidth=1.2, drawstyle="steps-post" if of else "default"
    )
    if np.isfinite(drawdown).any():
        deepest = int(np.nanargmin(drawdown))
        point = times[deepest], drawdown[deepest]
        ax.plot(*point, "v", color=theme.text, markersize=5)
        offset, side = ((6, -12), "right") if deepest > len(times) / 2 else ((-6, -12), "left")
        panel.label_point(formats.usd_amount(point[1]), point, offset, ha=side, va="center")
    ax.margins(x=0.01, y=0.45)
    ax.set_ylim(top=min(0.05 * abs(ax.get_ylim()[0]), ax.get_ylim()[1]))
    ax.set_ylabel("drawdown of\nrealised, USD" if of else "drawdown, USD")


def _plain(times: "pd.Series[Any]") -> list[Any]:
    return [time.to_pydatetime() for time in times]


def _floats(rows: pd.DataFrame, name: str) -> Floats:
    return rows[name].to_numpy(np.float64)


@style.draws_result
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
    rows, every = positions, []
    if len(positions):
        notional = _floats(positions, "position") * _floats(positions, "px")
        rows = positions.assign(notional=notional, size=np.abs(notional))
        sizes = rows.groupby("coin")["size"].max().fillna(0.0)
        every = sizes.sort_values(ascending=False, kind="stable").index.map(str).tolist()
    coins = every[:_MAX_COINS]
    panel = style.open_panel(positions, look, (7.2, 1.2 + 0.5 * max(3, len(coins))))
    if not coins:
        return panel.no_data("Positions over time")
    ax, theme, last = panel.ax, panel.theme, rows["time"].max()
    # The largest is at the top. Each row has its own scale.
    panel.name_rows(coins[::-1])
    ax.grid(False)
    for number, coin in enumerate(coins[::-1]):
        own = rows[rows["coin"] == coin]
        largest = sizes[coin]
        height = number + 0.42 * own["notional"].to_numpy() / (largest or 1.0)
        # A position lasts until the next fill, and the last one until the end of the figure.
        times, heights = [*_plain(own["time"]), last.to_pydatetime()], np.append(height, height[-1])
        ax.axhline(number, color=theme.muted, linewidth=0.6)
        for is_side, colour in ((heights >= number, theme.good), (heights <= number, theme.bad)):
            side = np.where(is_side, heights, number)
            ax.fill_between(times, side, number, step="post", color=colour, linewidth=0.8)
        is_break = own["chain_break"].to_numpy(dtype=bool)
        if is_break.any():
            breaks = [times[place] for place in np.flatnonzero(is_break)]
            ax.plot(breaks, height[is_break], "x", color=theme.text, markersize=6)
        panel.label_right_edge(number, formats.short_usd(float(f"{largest:.3g}")))
    ax.spines["bottom"].set_visible(False)
    ax.margins(x=0.01)
    left_out = len(every) - len(coins)
    smaller = f"; {left_out} smaller ones not drawn" if left_out else ""
    note = f"; largest size of each coin at the right, USD{smaller}"
    panel.set_time_axis(rows["time"].min(), last, "long above, short below", note=note)
    low, high = (formats.usd_amount(end) for end in (notional.min(), notional.max()))
    return panel.finish(
        f"Positions in {', '.join(coins)} over time, in USD: between {low} and {high}; "
        f"{int(positions['chain_break'].sum())} places where fills are missing."
    )
