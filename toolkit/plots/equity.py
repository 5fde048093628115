"""Equity over time with how far it fell, and positions as they ran."""

from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toolkit.errors import MissingColumns
from toolkit.plots import style
from toolkit.plots.periods import time_axis
from toolkit.plots.style import Theme, ThemeName

_MOST: Final = 6
_KINDS: Final = {
    "equity": "Equity",
    "pnl": "PnL with what is unrealised",
    "realised": "realised PnL",
}
_DASHES: Final = ("-", "--", "-.", ":")


def equity_curve(
    curve: pd.DataFrame,
    *,
    of: Literal["pnl", "equity"] = "pnl",
    note: str = "",
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw an account's PnL or equity over time, and below it how far PnL lies under its height.

    Without marks (`tk.pnl.equity`) what is unrealised is not known: then the panel shows the
    drawdown of what was realised, and says so.

    Parameters
    ----------
    curve : DataFrame
        `tk.pnl.equity` of one account, or `tk.pnl.drawdown` of it: ``time, realised, pnl``, and
        ``equity`` where that is drawn.
    of : {"pnl", "equity"}, default "pnl"
        Whether to draw PnL, or equity: with what flowed in and out. Drawdowns are of PnL.
    note : str
        What else to say above it, such as how positions were marked.
    ax : Axes, optional
        Where to draw the curve alone; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        USD over time (UTC). Realised PnL is dashed; with what is unrealised, where that is
        known, it is a full line. A gap is a gap, not a 0. Drawdowns are those of the column
        ``drawdown``; where that is missing, or all of it, of ``pnl``, else of ``realised``.

    Raises
    ------
    MissingColumns
        If a column is missing.
    ValueError
        If the curve is of several accounts.

    Examples
    --------
    >>> rows = pd.DataFrame({"time": pd.to_datetime([0, 1, 2], unit="h", utc=True),
    ...     "realised": [0.0, 5.0, 3.0], "pnl": [1.0, 6.0, 2.0], "drawdown": [0.0, 0.0, -4.0]})
    >>> len(equity_curve(rows).axes)  # the curve, and the panel below it
    2
    """
    colours = style.theme_of(theme)
    if "user" in curve.columns and curve["user"].nunique() > 1:
        raise ValueError(f"a curve is of one account, not {curve['user'].nunique()}: pick one")
    rows, fell = _with_falls(curve, of)
    draw = _curve if of == "pnl" else _equity
    if ax is not None or not len(curve):
        figure, ax = style.canvas(colours, ax=ax, transparent=transparent)
        draw(ax, colours, rows) if len(curve) else style.nothing(ax, colours)
    else:
        figure = style.new_figure(colours, (7.2, 4.4), transparent)
        ax, lower = figure.subplots(2, 1, sharex=True, height_ratios=[2.6, 1])
        for one in (ax, lower):
            style.dress(one, colours)
        draw(ax, colours, rows)
        _under(lower, colours, rows, fell)
        ax.set_xlabel("")
    if note:
        ax.set_title(note, loc="left", fontsize=9, color=colours.text)
    words = " ".join(
        filter(None, (_words(rows, fell, of), note and f"{note[:1].upper()}{note[1:]}."))
    )
    return style.finish(figure, ax, colours, words, style.is_simulated(curve))


def _with_falls(curve: pd.DataFrame, drawn: str) -> tuple[pd.DataFrame, str]:
    """Give the rows in order of time with their drawdown, and of what, if not of PnL."""
    if not len(curve):
        return curve, ""
    needed = ("time", "realised", "pnl", *([drawn] if drawn != "pnl" else []))
    if missing := [name for name in needed if name not in curve.columns]:
        raise MissingColumns(
            f"curve: columns {', '.join(missing)} missing; "
            "give what tk.pnl.equity or tk.pnl.drawdown gives"
        )
    rows = curve.sort_values("time", kind="stable")
    of = "pnl" if rows["pnl"].notna().any() else "realised"
    if "drawdown" not in rows.columns or rows["drawdown"].isna().all():
        values = rows[of].astype("float64")
        # The account began at 0; a gap stays one.
        rows = rows.assign(drawdown=values - values.cummax().clip(lower=0.0))
    return rows, "" if of == "pnl" else of


def positions_over_time(
    positions: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw the notional of an account's positions over time, by coin.

    Parameters
    ----------
    positions : DataFrame
        `tk.pnl.positions`, of one account and up to six coins.
    ax : Axes, optional
        Where to draw; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        Signed notional in USD at the price of the last fill, over time (UTC); above 0
        is long. A cross marks where fills are missing.

    Raises
    ------
    ValueError
        If there are several accounts, or too many coins.

    Examples
    --------
    >>> rows = pd.DataFrame({"coin": "BTC", "position": [1.0, 0.0], "px": [100.0, 110.0],
    ...     "time": pd.to_datetime([0, 1], unit="h", utc=True), "chain_break": False})
    >>> positions_over_time(rows).axes[0].get_ylabel()
    'position, USD'
    """
    colours = style.theme_of(theme)
    if "user" in positions.columns and positions["user"].nunique() > 1:
        raise ValueError(f"positions of one account, not {positions['user'].nunique()}: pick one")
    coins = list(dict.fromkeys(positions["coin"])) if len(positions) else []
    if len(coins) > _MOST:
        raise ValueError(f"at most {_MOST} coins can be drawn here, not {len(coins)}: pick some")
    figure, ax = style.canvas(colours, ax=ax, transparent=transparent)
    _runs(ax, colours, positions, coins) if coins else style.nothing(ax, colours)
    simulated = style.is_simulated(positions)
    return style.finish(figure, ax, colours, _position_words(positions, coins), simulated)


def _moments(rows: pd.DataFrame) -> list[Any]:
    return [time.to_pydatetime() for time in rows["time"]]


def _floats(rows: pd.DataFrame, name: str) -> Any:
    return rows[name].astype("float64").to_numpy()


def _curve(ax: Axes, theme: Theme, rows: pd.DataFrame) -> None:
    moments = _moments(rows)
    realised, whole = _floats(rows, "realised"), _floats(rows, "pnl")
    if np.isfinite(whole).any():
        ax.plot(moments, whole, color=theme.good, linewidth=1.8, label="with unrealised")
    ax.plot(
        moments,
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
    ax.set_ylabel("PnL, USD")
    time_axis(ax, rows["time"].iloc[0], rows["time"].iloc[-1])
    style.usd_axis(ax.yaxis.set_major_formatter)
    style.legend(ax, theme, ncols=2)


def _equity(ax: Axes, theme: Theme, rows: pd.DataFrame) -> None:
    """Draw equity; 0 is far from most accounts, and is not drawn in."""
    ax.plot(_moments(rows), _floats(rows, "equity"), color=theme.good, linewidth=1.8)
    ax.margins(x=0.01, y=0.08)
    ax.set_ylabel("equity, USD")
    time_axis(ax, rows["time"].iloc[0], rows["time"].iloc[-1])
    style.usd_axis(ax.yaxis.set_major_formatter)


def _under(ax: Axes, theme: Theme, rows: pd.DataFrame, of: str) -> None:
    fall = _floats(rows, "drawdown")
    moments = _moments(rows)
    ax.fill_between(moments, fall, 0, color=theme.bad, alpha=0.35, linewidth=0)
    ax.plot(moments, fall, color=theme.bad, linewidth=1.2)
    if np.isfinite(fall).any():
        deepest = int(np.nanargmin(fall))
        ax.plot(moments[deepest], fall[deepest], "v", color=theme.text, markersize=5)
        left = deepest > len(moments) / 2
        ax.annotate(
            style.usd(fall[deepest]),
            (moments[deepest], fall[deepest]),
            xytext=(-7 if left else 7, 0),
            textcoords="offset points",
            ha="right" if left else "left",
            va="center",
            fontsize=9,
            color=theme.text,
        )
    ax.margins(x=0.01, y=0.22)
    ax.set_ylabel("drawdown of\nrealised, USD" if of else "drawdown, USD")
    time_axis(ax, rows["time"].iloc[0], rows["time"].iloc[-1])
    style.usd_axis(ax.yaxis.set_major_formatter)


def _words(rows: pd.DataFrame, of: str, drawn: str) -> str:
    if not len(rows):
        return "Equity over time: no data."
    times = rows["time"]
    last = rows.iloc[-1]
    name = drawn if drawn == "equity" else "realised" if pd.isna(last["pnl"]) else "pnl"
    falls = rows["drawdown"].dropna()
    deepest = style.usd(falls.min()) if len(falls) else "not known"
    kind = _KINDS[name]
    told = "not known" if pd.isna(last[name]) else style.usd(last[name], signed=name != "equity")
    return (
        f"{kind} in USD from {times.iloc[0]:%Y-%m-%d %H:%M} to {times.iloc[-1]:%Y-%m-%d %H:%M} "
        f"UTC: it ends at {told}; "
        f"the deepest drawdown{' of what was realised' * bool(of)} is {deepest}."
    )


def _runs(ax: Axes, theme: Theme, positions: pd.DataFrame, coins: list[str]) -> None:
    colours = (theme.good, theme.bad, theme.accent, theme.total)
    for number, coin in enumerate(coins):
        rows = positions[positions["coin"] == coin]
        notional = _floats(rows, "position") * _floats(rows, "px")
        moments = _moments(rows)
        colour = colours[number % len(colours)]
        ax.plot(
            moments,
            notional,
            drawstyle="steps-post",
            color=colour,
            linestyle=_DASHES[(number + number // len(colours)) % len(_DASHES)],
            linewidth=1.4,
            marker="o" if len(rows) == 1 else None,
            label=coin,
        )
        broken = rows["chain_break"].to_numpy(dtype=bool)
        if broken.any():
            where = [moment for moment, odd in zip(moments, broken, strict=True) if odd]
            ax.plot(where, notional[broken], "x", color=theme.text, markersize=6)
    ax.axhline(0, color=theme.muted, linewidth=0.8)
    ax.spines["bottom"].set_visible(False)
    ax.margins(x=0.01, y=0.08)
    ax.set_ylabel("position, USD")
    time_axis(ax, positions["time"].min(), positions["time"].max())
    style.usd_axis(ax.yaxis.set_major_formatter)
    style.legend(ax, theme, ncols=min(len(coins), 6))


def _position_words(positions: pd.DataFrame, coins: list[str]) -> str:
    if not coins:
        return "Positions over time: no data."
    notional = _floats(positions, "position") * _floats(positions, "px")
    return (
        f"Positions in {', '.join(coins)} over time, in USD: between "
        f"{style.usd(notional.min())} and {style.usd(notional.max())}; "
        f"{int(positions['chain_break'].sum())} places where fills are missing."
    )
