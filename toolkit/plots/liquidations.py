"""Liquidations: the map of liquidation prices, their history; and returns of round trips."""

import matplotlib.dates as mdates
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from toolkit.plots import axes, formats, style
from toolkit.plots.result_checks import draws_result
from toolkit.plots.themes import Theme, ThemeName

_HATCHES = {"long": "", "short": "////"}
_METHODS = ("market", "backstop", "deleveraging", "unknown")
_HISTORY = {
    "time", "method", "side", "fills", "accounts", "notional", "closed_pnl", "marked",
    "slippage_bps",
}  # fmt: skip


@draws_result
def liquidation_map(
    levels: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
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
    coins = list(dict.fromkeys(levels["coin"])) if len(levels) else []
    if len(coins) > 1:
        parts = levels[["coin"]].drop_duplicates()
        raise axes.several_parts_error("liquidation_map", "coin", "levels", parts)
    ax, colours = style.new_axes(ax, theme, transparent)
    rows = levels.dropna(subset="distance") if len(levels) else levels
    _draw_map(ax, colours, rows, coins[0]) if len(rows) else style.draw_no_data(ax, colours)
    return style.finish_axes(ax, colours, _describe_map(levels, rows), levels)


@draws_result
def liquidation_history(
    history: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
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
    ax, colours = style.new_axes(ax, theme, transparent)
    if history.empty:
        style.draw_no_data(ax, colours)
        return style.finish_axes(ax, colours, "Liquidations over time: no data.", history)
    groups = [name for name in history.columns if name not in _HISTORY]
    if history.duplicated(["time", "method", "side"]).any():
        parts = history[groups[:1] or ["time"]].drop_duplicates()
        raise axes.several_parts_error("liquidation_history", "group", "history", parts)
    times = pd.DatetimeIndex(history["time"].drop_duplicates().sort_values())
    places = mdates.date2num(times)
    width = np.diff(places).min(initial=7.0) if len(places) > 1 else 1 / 24
    bottom = {side: np.zeros(len(times)) for side in ("long", "short")}
    words = []
    for method, colour in zip(_METHODS, _method_colours(colours), strict=True):
        own = history[history["method"] == method]
        if own.empty:
            continue
        marked = own["marked"].sum()
        slippage = (own["slippage_bps"] * own["marked"]).sum() / marked if marked else np.nan
        label = method if not marked else f"{method}: {formats.basis_points(slippage)} bps"
        for side, sign in (("long", 1.0), ("short", -1.0)):
            sums = own[own["side"] == side].groupby("time")["notional"].sum()
            usd = sign * sums.reindex(times, fill_value=0.0).to_numpy(np.float64)
            ax.bar(
                places + width / 2, usd, width=0.86 * width, bottom=bottom[side], color=colour,
                linewidth=0, label=label if side == "long" else None,
            )  # fmt: skip
            bottom[side] = bottom[side] + usd
        words.append(f"{label}, {formats.usd_amount(own['notional'].sum())} USD")
    axes.add_zero_line(ax, colours)
    axes.set_time_axis(ax, times.min(), times.max())
    ax.spines["bottom"].set_visible(False)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: formats.short_usd(abs(value))))
    ax.set_ylabel("longs (above) and shorts\nclosed, USD")
    axes.add_legend(ax, colours, ncols=4)
    text = f"Liquidations over time, worse than the mark price by: {'; '.join(words)}."
    return style.finish_axes(ax, colours, text, history)


def _method_colours(theme: Theme) -> tuple[str, ...]:
    return theme.bad, theme.accent, theme.good, theme.muted


@draws_result
def trip_returns(
    trips: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
    """Draw the returns of round trips over their durations.

    Parameters
    ----------
    trips : DataFrame
        `tk.pnl.round_trips`. Only closed and liquidated trips are drawn.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        Return in percent of the opened notional, net of fees and funding, over hours on a
        logarithmic axis. Long and short trips have different marks, and a cross marks those that
        the exchange closed.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"side": ["long"], "status": "closed", "duration_hours": [2.0],
    ...     "return_": [0.01], "net": [5.0]})
    >>> trip_returns(rows).get_ylabel()
    'net return, %'
    """
    ax, colours = style.new_axes(ax, theme, transparent)
    rows = trips[trips["status"].isin(["closed", "liquidated"])] if len(trips) else trips
    _draw_trips(ax, colours, rows) if len(rows) else style.draw_no_data(ax, colours)
    return style.finish_axes(ax, colours, _describe_trips(rows), trips)


def _draw_map(ax: Axes, theme: Theme, rows: pd.DataFrame, coin: str) -> None:
    width = _bin_width(rows)
    for side, colour, dashes in (("long", theme.bad, "-"), ("short", theme.good, "--")):
        own = rows[rows["side"] == side].sort_values("distance", key=abs, kind="stable")
        if own.empty:
            continue
        edge = own["distance"].to_numpy()
        is_below = np.array([not _is_above(distance, side) for distance in edge])
        outward = np.where(is_below, -width, width)
        ax.bar(
            100 * (edge + outward / 2), own["notional"], width=92 * width, color=colour,
            alpha=0.55, hatch=_HATCHES[side], edgecolor=colour, linewidth=0.4, label=f"{side}s",
        )  # fmt: skip
        far = edge + outward  # the price has passed all of the bin there
        label = f"{side}s up to here"
        for is_chosen in (is_below, ~is_below):
            if is_chosen.any():
                ax.step(
                    100 * np.concatenate([[0], far[is_chosen]]),
                    np.concatenate([[0], own["cumulative"].to_numpy()[is_chosen]]),
                    where="post", color=colour, linestyle=dashes, linewidth=1.3, label=label,
                )  # fmt: skip
                label = ""
    ax.axvline(0, color=theme.text, linewidth=1)
    ax.spines["bottom"].set_visible(False)
    ax.set_xlabel(
        f"distance of the liquidation price from the mark price of {coin}, %\n"
        f"({_coverage_text(rows)})",
        parse_math=False,
    )
    ax.set_ylabel("notional, USD")
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: formats.short_usd(value)))
    ax.xaxis.set_major_formatter(FuncFormatter(formats.signed_tick))
    axes.add_legend(ax, theme, ncols=4)


def _is_above(distance: float, side: str) -> bool:
    """Return whether a bin lies above the mark price; at distance 0 the side decides."""
    return distance > 0 or (distance == 0 and side == "short")


def _bin_width(rows: pd.DataFrame) -> float:
    """Return the width of a bin as a share of the mark price."""
    row = rows.iloc[0]
    edge = row["low"] if _is_above(row["distance"], row["side"]) else row["high"]
    mark = edge / (1 + row["distance"])
    return float((row["high"] - row["low"]) / mark)


def _coverage_text(rows: pd.DataFrame) -> str:
    shares = rows.groupby("side")["covered"].first()
    if shares.isna().all():
        return "share of open interest not known"
    parts = [f"{100 * share:.0f} % of {side}s" for side, share in shares.items()]
    return f"covers {', '.join(parts)}"


def _describe_map(levels: pd.DataFrame, rows: pd.DataFrame) -> str:
    if not len(rows):
        return "Liquidation map: no data."
    sums = rows.groupby("side")["notional"].sum()
    sides = ", ".join(f"{formats.usd_amount(amount)} of {side}s" for side, amount in sums.items())
    unplaced = levels.groupby("side")["unplaced"].first().sum()
    return (
        f"Liquidation map of {rows['coin'].iloc[0]}: {sides} in USD would be liquidated within "
        f"{100 * rows['distance'].abs().max():.0f} % of the mark price, "
        f"{formats.usd_amount(unplaced)} USD are not on the map; it {_coverage_text(rows)}."
    )


def _draw_trips(ax: Axes, theme: Theme, rows: pd.DataFrame) -> None:
    for side, colour, marker in (("long", theme.good, "o"), ("short", theme.bad, "s")):
        own = rows[rows["side"] == side]
        if own.empty:
            continue
        ax.plot(
            *_trip_places(own), marker, color=colour, markersize=4.5, alpha=0.75,
            fillstyle="full" if side == "long" else "none", linestyle="none",
            label=f"{side} ({len(own)})",
        )  # fmt: skip
    forced = _forced_trips(rows)
    if len(forced):
        ax.plot(
            *_trip_places(forced), "x", color=theme.text, markersize=9, linestyle="none",
            label=f"closed by the exchange ({len(forced)})",
        )  # fmt: skip
    ax.axhline(0, color=theme.muted, linewidth=0.8)
    ax.set_xscale("log")
    ax.spines["bottom"].set_visible(False)
    axes.set_log_ticks(ax.xaxis, formats.plain_number)
    ax.set_xlabel("hours from flat to flat")
    ax.set_ylabel("net return, %")
    ax.yaxis.set_major_formatter(FuncFormatter(formats.signed_tick))
    axes.add_legend(ax, theme, ncols=3)


def _trip_places(rows: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Return the hours of trips, and their returns in percent."""
    hours = rows["duration_hours"].astype("float64").clip(lower=1 / 3600)
    return hours, 100 * rows["return_"].astype("float64")


def _forced_trips(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the trips that the exchange closed: liquidations and auto-deleveraging."""
    if "forced" not in rows:
        return rows.head(0)
    return rows[rows["forced"].fillna(False).astype(bool)]


def _describe_trips(rows: pd.DataFrame) -> str:
    if not len(rows):
        return "Round trips: no data."
    net = rows["net"].astype("float64")
    count = len(_forced_trips(rows))
    forced = f" The exchange closed {count} of them." if count else ""
    return (
        f"{len(rows)} round trips by duration and net return: {100 * (net > 0).mean():.0f} % "
        f"had a gain, the median duration was {rows['duration_hours'].median():.1f} hours, the "
        f"total is {formats.usd_amount(net.sum(), signed=True)} USD.{forced}"
    )
