"""Equity and drawdown over time, and positions over time."""

from typing import Any, Final, Literal, overload

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toolkit.errors import MissingColumns
from toolkit.plots import axes, formats, style
from toolkit.plots.result_checks import draws_result
from toolkit.plots.themes import Theme, ThemeName

_MAX_COINS: Final = 12
_CURVE_NAMES: Final = {
    "equity": "Equity",
    "pnl": "PnL with unrealised PnL",
    "realised": "Realised PnL",
}


@overload
def equity_curve(
    curve: pd.DataFrame,
    *,
    of: Literal["pnl", "equity"] = "pnl",
    note: str = "",
    ax: None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Figure: ...


@overload
def equity_curve(
    curve: pd.DataFrame,
    *,
    of: Literal["pnl", "equity"] = "pnl",
    note: str = "",
    ax: Axes,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes: ...


@draws_result
def equity_curve(
    curve: pd.DataFrame,
    *,
    of: Literal["pnl", "equity"] = "pnl",
    note: str = "",
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
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
    if "user" in curve.columns and curve["user"].nunique() > 1:
        users = curve[["user"]].drop_duplicates()
        raise axes.several_parts_error("equity_curve", "account", "curve", users)
    rows, drawdown_of = _with_drawdown(curve, of)
    draw = _draw_pnl if of == "pnl" else _draw_equity
    figure, panels, colours = style.new_panels(
        ax, theme, transparent, size=(7.2, 4.4 if len(curve) else 3.6),
        ratios=(2.6, 1) if len(curve) else (1,),
    )  # fmt: skip
    upper, *others = panels
    draw(upper, colours, rows) if len(curve) else style.draw_no_data(upper, colours)
    for lower in others:
        _draw_drawdown(lower, colours, rows, drawdown_of)
        upper.set_xlabel("")
    if note:
        upper.set_title(note, loc="left", fontsize=9, color=colours.text)
    words = _describe_curve(rows, drawdown_of, of)
    if note:
        words = f"{words} {note[:1].upper()}{note[1:]}."
    style.finish_axes(upper, colours, words, curve)
    return upper if figure is None else figure


def _with_drawdown(curve: pd.DataFrame, drawn: str) -> tuple[pd.DataFrame, str]:
    """Return the rows by time with their drawdown, and ``"realised"`` if it is not of PnL."""
    if not len(curve):
        return curve, ""
    needed = ("time", "realised", "pnl", *([drawn] if drawn != "pnl" else []))
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


@draws_result
def positions_over_time(
    positions: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
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
    if "user" in positions.columns and positions["user"].nunique() > 1:
        users = positions[["user"]].drop_duplicates()
        raise axes.several_parts_error("positions_over_time", "account", "positions", users)
    every = _rank_coins(positions) if len(positions) else []
    coins, left_out = every[:_MAX_COINS], len(every[_MAX_COINS:])
    size = (7.2, 1.2 + 0.5 * max(3, len(coins)))
    ax, colours = style.new_axes(ax, theme, transparent, size)
    if coins:
        _draw_positions(ax, colours, positions, coins, left_out)
    else:
        style.draw_no_data(ax, colours)
    return style.finish_axes(ax, colours, _describe_positions(positions, coins), positions)


def _rank_coins(positions: pd.DataFrame) -> list[str]:
    """Return the coins, that with the largest notional first."""
    notional = (positions["position"].astype("float64") * positions["px"].astype("float64")).abs()
    largest = notional.groupby(positions["coin"]).max().fillna(0.0)
    return [str(coin) for coin in largest.sort_values(ascending=False, kind="stable").index]


def _plain_times(rows: pd.DataFrame) -> list[Any]:
    return [time.to_pydatetime() for time in rows["time"]]


def _float_column(rows: pd.DataFrame, name: str) -> Any:
    return rows[name].astype("float64").to_numpy()


def _draw_pnl(ax: Axes, theme: Theme, rows: pd.DataFrame) -> None:
    times = _plain_times(rows)
    realised, pnl = _float_column(rows, "realised"), _float_column(rows, "pnl")
    if np.isfinite(pnl).any():
        ax.plot(times, pnl, color=theme.good, linewidth=1.8, label="with unrealised")
    ax.plot(
        times,
        realised,
        color=theme.bad,
        linestyle="--",
        linewidth=1.5,
        marker="o" if len(rows) == 1 else None,
        drawstyle="steps-post",
        label="realised",
    )
    ax.axhline(0, color=theme.muted, linewidth=0.8)
    ax.spines["bottom"].set_visible(False)
    ax.margins(x=0.01, y=0.08)
    ax.set_ylabel("PnL, USD; below 0: a loss")
    axes.set_time_axis(ax, rows["time"].iloc[0], rows["time"].iloc[-1])
    axes.set_usd_ticks(ax.yaxis)
    axes.add_legend(ax, theme, ncols=2)


def _draw_equity(ax: Axes, theme: Theme, rows: pd.DataFrame) -> None:
    """Draw equity; 0 is far from the equity of most accounts, and the axis does not contain it."""
    if rows["equity"].isna().all():
        style.draw_no_data(ax, theme, "equity is not known: pass marks to tk.pnl.equity")
        return
    ax.plot(_plain_times(rows), _float_column(rows, "equity"), color=theme.good, linewidth=1.8)
    ax.margins(x=0.01, y=0.08)
    ax.set_ylabel("equity, USD")
    axes.set_time_axis(ax, rows["time"].iloc[0], rows["time"].iloc[-1])
    axes.set_usd_ticks(ax.yaxis)


def _draw_drawdown(ax: Axes, theme: Theme, rows: pd.DataFrame, of: str) -> None:
    drawdown = _float_column(rows, "drawdown")
    times = _plain_times(rows)
    # Realised PnL changes in steps; unrealised PnL changes between its points, too.
    step: Literal["post"] | None = "post" if of else None
    look = "steps-post" if of else "default"
    ax.fill_between(times, drawdown, 0, step=step, color=theme.bad, alpha=0.35, linewidth=0)
    ax.plot(times, drawdown, color=theme.bad, linewidth=1.2, drawstyle=look)
    if np.isfinite(drawdown).any():
        deepest = int(np.nanargmin(drawdown))
        ax.plot(times[deepest], drawdown[deepest], "v", color=theme.text, markersize=5)
        is_right_half = deepest > len(times) / 2
        text, point = formats.usd_amount(drawdown[deepest]), (times[deepest], drawdown[deepest])
        offset, side = ((6, -12), "right") if is_right_half else ((-6, -12), "left")
        axes.label_point(ax, theme, text, point, offset, ha=side, va="center")
    ax.margins(x=0.01, y=0.45)
    ax.set_ylim(top=min(0.05 * abs(ax.get_ylim()[0]), ax.get_ylim()[1]))
    ax.set_ylabel("drawdown of\nrealised, USD" if of else "drawdown, USD")
    axes.set_time_axis(ax, rows["time"].iloc[0], rows["time"].iloc[-1])
    axes.set_usd_ticks(ax.yaxis)


def _describe_curve(rows: pd.DataFrame, of: str, drawn: str) -> str:
    if not len(rows):
        return "Equity over time: no data."
    time = rows["time"]
    last = rows.iloc[-1]
    name = drawn if drawn == "equity" else "realised" if pd.isna(last["pnl"]) else "pnl"
    drawdowns = rows["drawdown"].dropna()
    deepest = formats.usd_amount(drawdowns.min()) if len(drawdowns) else "not known"
    end = "not known"
    if pd.notna(last[name]):
        end = formats.usd_amount(last[name], signed=name != "equity")
    return (
        f"{_CURVE_NAMES[name]} in USD from {time.iloc[0]:%Y-%m-%d %H:%M} to "
        f"{time.iloc[-1]:%Y-%m-%d %H:%M} UTC: it ends at {end}; "
        f"the deepest drawdown{' of realised PnL' * bool(of)} is {deepest}."
    )


def _draw_positions(
    ax: Axes, theme: Theme, positions: pd.DataFrame, coins: list[str], left_out: int
) -> None:
    """Draw one row for each coin, the largest at the top, each to its own scale."""
    first, last = positions["time"].min(), positions["time"].max()
    names = coins[::-1]
    axes.name_rows(ax, theme, names)
    ax.grid(False)
    for number, coin in enumerate(names):
        rows = positions[positions["coin"] == coin]
        notional = _float_column(rows, "position") * _float_column(rows, "px")
        largest = np.nanmax(np.abs(notional)) if np.isfinite(notional).any() else 0.0
        height = number + 0.42 * notional / (largest or 1.0)
        # A position lasts until the next fill, and the last one until the end of the figure.
        times, heights = [*_plain_times(rows), last.to_pydatetime()], np.append(height, height[-1])
        ax.axhline(number, color=theme.muted, linewidth=0.6)
        for is_side, colour in ((heights >= number, theme.good), (heights <= number, theme.bad)):
            side = np.where(is_side, heights, number)
            ax.fill_between(times, side, number, step="post", color=colour, linewidth=0.8)
        is_break = rows["chain_break"].to_numpy(dtype=bool)
        if is_break.any():
            breaks = [times[place] for place in np.flatnonzero(is_break)]
            ax.plot(breaks, height[is_break], "x", color=theme.text, markersize=6)
        axes.label_right_edge(ax, number, formats.short_usd(float(f"{largest:.3g}")), theme.text)
    ax.spines["bottom"].set_visible(False)
    ax.margins(x=0.01)
    ax.set_ylabel("long above, short below")
    axes.set_time_axis(ax, first, last)
    smaller = f"; {left_out} smaller ones not drawn" if left_out else ""
    ax.set_xlabel(f"{ax.get_xlabel()}; largest size of each coin at the right, USD{smaller}")


def _describe_positions(positions: pd.DataFrame, coins: list[str]) -> str:
    if not coins:
        return "Positions over time: no data."
    notional = _float_column(positions, "position") * _float_column(positions, "px")
    return (
        f"Positions in {', '.join(coins)} over time, in USD: between "
        f"{formats.usd_amount(notional.min())} and {formats.usd_amount(notional.max())}; "
        f"{int(positions['chain_break'].sum())} places where fills are missing."
    )
