"""Profit and loss: attribution, curves of PnL and equity, positions, and round trips."""

from typing import Any, Final, Literal, Unpack, overload

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toolkit.arrays import Floats
from toolkit.plots import axes, formats, style
from toolkit.plots.style import Look, PanelLook

Drawn = Literal["pnl", "equity"]
_MAX_COINS: Final = 12
_CURVE_NAMES: Final = {
    "equity": "Equity",
    "pnl": "PnL with unrealised PnL",
    "realised": "Realised PnL",
}
STEP_NAMES: Final = {
    "closed_pnl": "closed PnL",
    "trading_fee": "trading fees",
    "builder_fee": "builder fees",
    "deployer_fee": "deployer fees",
    "rebate": "rebates",
    "funding": "funding",
    "net": "net",
}


@style.draws_result("Attribution of PnL")
def waterfall(attribution: pd.DataFrame, **look: Unpack[PanelLook]) -> Axes:
    """Draw an attribution as a waterfall, from closed PnL to net.

    Parameters
    ----------
    attribution : DataFrame
        One row of `tk.pnl.attribution`, float or exact. USD; positive is good for the account.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        Bars in USD. A part that is not covered has a label that states it; it is not drawn as 0.

    Raises
    ------
    ValueError
        If the frame has several rows. Pick one, or leave out ``by``.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"closed_pnl": 10.0, "trading_fee": -2.0, "builder_fee": -1.0, "deployer_fee": 0.0,
    ...        "rebate": 0.0, "funding": None, "net": 7.0}
    >>> [text.get_text() for text in waterfall(pd.DataFrame([row])).texts][0]
    '+10.00'
    """
    panel = style.open_panel(attribution, look)
    if "net" in attribution:
        axes.check_no_repeats("waterfall", "row", "attribution", attribution, [])
    ax, theme, row = panel.ax, panel.theme, attribution.iloc[0]
    # Each bar begins where the previous one ends, and the total begins at 0.
    level, levels, names, words = 0.0, [0.0], [], []
    for x, (column, label) in enumerate(STEP_NAMES.items()):
        is_covered, text, look_of = pd.notna(row[column]), "not\ncovered", {"style": "italic"}
        is_total = column == "net" and is_covered
        value = float(row[column]) if is_covered else 0.0
        start = 0.0 if is_total else level
        level = start + value
        levels.append(level)
        if column == "net" and pd.isna(row["funding"]):
            label = "net, without\nfunding"
        if is_covered:
            colour = theme.total if is_total else theme.good if value >= 0 else theme.bad
            ax.bar(x, abs(value), bottom=min(start, level), width=0.62, color=colour)
            text = formats.usd_amount(row[column], signed=True)
            look_of = {"fontweight": "bold" if is_total else "normal"}
        # A value is above its bar, or below a negative total.
        end, up, va = max(start, level), 3, "bottom"
        if is_total and level < 0:
            end, up, va = level, -3, "top"
        colour = theme.text if is_covered else theme.muted
        panel.label_point(text, (x, end), (0, up), va=va, color=colour, **look_of)
        if column != "net":
            begin = x + 0.31 if value else x - 0.31
            ax.plot([begin, x + 0.69], [level, level], color=theme.muted, linewidth=0.9)
        names.append(label)
        words.append(f"{' '.join(label.split())} {' '.join(text.split())}")
    panel.add_zero_line(is_edge=True)
    ax.set_xticks(range(len(names)), names)
    ax.set_xlim(-0.6, len(names) - 0.4)
    low, high = min(levels), max(levels)
    span = (high - low) or 1.0
    ax.set_ylim(low - 0.1 * span if low < 0 else 0.0, high + 0.14 * span)
    panel.label_axes(y="USD, costs and losses go down", y_ticks=formats.usd_tick)
    return panel.finish(f"Waterfall of PnL in USD: {', '.join(words)}.")


@style.draws_result("Cumulative PnL")
def cumulative_pnl(attribution: pd.DataFrame, **look: Unpack[PanelLook]) -> Axes:
    """Draw cumulative closed PnL, the same after fees, and after fees and funding.

    Parameters
    ----------
    attribution : DataFrame
        `tk.pnl.attribution` by ``"hour"``, ``"day"`` or ``"week"``, float or exact. With
        ``by=["user", "hour"]`` and up to six accounts, each has one line: after fees and funding.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        USD over time (UTC). The sum of an hour, day or week is drawn at its end. Without funding
        rows there is no third line. Unrealised PnL is not included.

    Raises
    ------
    ValueError
        If the attribution is not by time, or has more than six accounts.

    Examples
    --------
    >>> import pandas as pd
    >>> hours = pd.DataFrame({"hour": pd.to_datetime([0], unit="ms", utc=True), "funding": [1.0],
    ...     "closed_pnl": [10.0], "trading_fee": [-2.0], "builder_fee": [0.0],
    ...     "deployer_fee": [0.0], "rebate": [0.0]})
    >>> [line.get_label() for line in cumulative_pnl(hours).lines[:3]]
    ['gross +10.00', 'after fees +8.00', 'after fees and funding +9.00']
    """
    panel = style.open_panel(attribution, look)
    theme, parts = (
        panel.theme,
        ["closed_pnl", "trading_fee", "builder_fee", "deployer_fee", "rebate"],
    )
    lines: list[tuple[str, pd.DataFrame, list[str], dict[str, Any]]] = []
    if "user" in attribution.columns and attribution["user"].nunique() > 1:
        accounts = attribution.groupby("user", sort=False)
        axes.check_drawable(len(accounts), axes.MAX_LINES, "accounts")
        for number, (user, own) in enumerate(accounts):
            line = panel.line_style(number, marks=False)
            lines.append((formats.short_address(user), own, [*parts, "funding"], line))
    else:
        _, whole, _ = axes.sort_periods(attribution)
        lines.append(("gross", whole, parts[:1], {"color": theme.good}))
        look_of_fees = {"color": theme.bad, "linestyle": "--"}
        lines.append(("after fees", whole, parts, look_of_fees))
        if whole["funding"].notna().any():
            of_net = {"color": theme.total, "linewidth": 1.9, "marker": "o", "markersize": 4.5}
            lines.append(("after fees and funding", whole, [*parts, "funding"], of_net))
    labels, ends, every = [], [], []
    for name, own, columns, line in lines:
        _, rows, times = axes.sort_periods(own)
        steps = rows[columns].astype("float64").fillna(0.0).sum(axis=1)
        values = np.append(0.0, steps.cumsum())
        labels.append(f"{name} {formats.usd_amount(values[-1], signed=True)}")
        line = {"linewidth": 1.5, "markevery": max(1, len(times) // 12)} | line
        panel.ax.plot(times, values, drawstyle="steps-post", label=labels[-1], **line)
        ends += [times[0], times[-1]]
        every += [values.min(), values.max()]
    panel.add_zero_line(is_edge=True)
    panel.ax.margins(x=0.01, y=0.08)
    y, width = "USD, cumulative; below 0: a loss", 3 if len(lines) <= 3 else 2
    panel.set_time_axis(ends, y, y_ticks=formats.usd_tick, legend=width)
    return panel.finish(
        f"Cumulative PnL in USD from {min(ends):%Y-%m-%d %H:%M} to {max(ends):%Y-%m-%d %H:%M} UTC: "
        f"it ends at {', '.join(labels)}; the lines lie between {formats.usd_amount(min(every))} "
        f"and {formats.usd_amount(max(every))}."
    )


@style.draws_result("Round trips")
def trip_returns(trips: pd.DataFrame, **look: Unpack[PanelLook]) -> Axes:
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
    panel = style.open_panel(trips, look)
    rows = style.not_empty(trips[trips["status"].isin(["closed", "liquidated"])])
    ax, theme, side = panel.ax, panel.theme, rows["side"]
    is_forced = rows.get("forced", pd.Series(False, rows.index)).fillna(False).astype(bool)
    numbers = rows[["duration_hours", "return_", "net"]].astype("float64")
    hours, returns = numbers["duration_hours"].clip(lower=1 / 3600), 100 * numbers["return_"]
    for is_own, name, marker, colour, size, face, alpha in (
        (side == "long", "long", "o", theme.good, 4.5, theme.good, 0.75),
        (side == "short", "short", "s", theme.bad, 4.5, "none", 0.75),
        (is_forced, "closed by the exchange", "x", theme.text, 9, theme.text, 1),
    ):
        if is_own.any():
            ax.plot(
                hours[is_own], returns[is_own], marker, color=colour, markersize=size, mfc=face,
                alpha=alpha, label=f"{name} ({is_own.sum()})",
            )  # fmt: skip
    panel.add_zero_line(is_edge=True)
    ax.set_xscale("log")
    axes.set_log_ticks(ax.xaxis, formats.plain_number)
    y, ticks = "net return, %", formats.signed_tick
    panel.label_axes("hours from flat to flat", y, y_ticks=ticks, legend=3)
    forced = f" The exchange closed {is_forced.sum()} of them." if is_forced.any() else ""
    net, half = numbers["net"], numbers["duration_hours"].median()
    return panel.finish(
        f"{len(rows)} round trips by duration and net return: {100 * (net > 0).mean():.0f} % had a "
        f"gain, the median duration was {half:.1f} hours, the total is "
        f"{formats.usd_amount(net.sum(), signed=True)} USD.{forced}"
    )


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
    rows = curve[[*dict.fromkeys(("time", "realised", "pnl", of))]]
    rows = rows.assign(drawdown=curve.get("drawdown")).sort_values("time", kind="stable")
    time, known = rows["time"], rows.drop(columns="time").astype("float64")
    has_pnl, drawdown = known["pnl"].notna().any(), known["drawdown"]
    if drawdown.isna().all():
        values = known["pnl" if has_pnl else "realised"]
        # PnL began at 0. A missing value stays missing.
        drawdown = values - values.cummax().clip(lower=0.0)
    upper, *others = panels = style.open_panels(curve, look, (7.2, 4.4), heights=(2.6, 1))
    ax, theme, is_known = upper.ax, upper.theme, of == "pnl" or known[of].notna().any()
    if note:
        ax.set_title(note, loc="left", fontsize=9, color=theme.text)
        note = f" {note[:1].upper()}{note[1:]}."
    if not is_known:
        upper.write_note("equity is not known: pass marks to tk.pnl.equity")
    elif of == "equity":
        # 0 is far from the equity of most accounts, and the axis does not contain it.
        ax.plot(time, known[of], color=theme.good, linewidth=1.8)
    else:
        if has_pnl:
            ax.plot(time, known["pnl"], color=theme.good, linewidth=1.8, label="with unrealised")
        ax.plot(
            time, known["realised"], color=theme.bad, linestyle="--", linewidth=1.5,
            marker="o" if len(rows) == 1 else None, drawstyle="steps-post", label="realised",
        )  # fmt: skip
        upper.add_zero_line(is_edge=True)
        upper.add_legend(2)
    ax.margins(x=0.01, y=0.08)
    y = "PnL, USD; below 0: a loss" if of == "pnl" else "equity, USD"
    for panel in panels if is_known else others:
        panel.set_time_axis(time, y if panel is upper else "", y_ticks=formats.usd_tick)
    for lower in others:
        ax.set_xlabel("")
        _draw_drawdown(lower, time, drawdown.to_numpy(np.float64), is_stepped=not has_pnl)
    last = known.iloc[-1]
    name = of if of == "equity" else "realised" if pd.isna(last["pnl"]) else "pnl"
    deepest, end = drawdown.min(), "not known"
    if pd.notna(last[name]):
        end = formats.usd_amount(last[name], signed=name != "equity")
    return upper.finish(
        f"{_CURVE_NAMES[name]} in USD from {time.iloc[0]:%Y-%m-%d %H:%M} to "
        f"{time.iloc[-1]:%Y-%m-%d %H:%M} UTC: it ends at {end}; "
        f"the deepest drawdown{'' if has_pnl else ' of realised PnL'} is "
        f"{'not known' if pd.isna(deepest) else formats.usd_amount(deepest)}.{note}"
    )


def _draw_drawdown(panel: axes.Panel, times: Any, drawdown: Floats, *, is_stepped: bool) -> None:
    ax, theme = panel.ax, panel.theme
    # Realised PnL changes in steps; unrealised PnL changes between its points, too.
    panel.draw_band(times, drawdown, 0, theme.bad, alpha=0.35, step="post" if is_stepped else None)
    steps: Any = "steps-post" if is_stepped else "default"
    ax.plot(times, drawdown, color=theme.bad, linewidth=1.2, drawstyle=steps)
    if np.isfinite(drawdown).any():
        deepest = int(np.nanargmin(drawdown))
        point = times.iloc[deepest], drawdown[deepest]
        ax.plot(*point, "v", color=theme.text, markersize=5)
        offset, side = ((6, -12), "right") if deepest > len(times) / 2 else ((-6, -12), "left")
        panel.label_point(formats.usd_amount(point[1]), point, offset, ha=side, va="center")
    ax.margins(x=0.01, y=0.45)
    ax.set_ylim(top=min(0.05 * abs(ax.get_ylim()[0]), ax.get_ylim()[1]))
    ax.set_ylabel("drawdown of\nrealised, USD" if is_stepped else "drawdown, USD")


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
    rows, sizes = (
        positions.assign(notional=notional),
        notional.abs().groupby(positions["coin"]).max(),
    )
    sizes = sizes.fillna(0.0).sort_values(ascending=False, kind="stable")
    drawn = style.not_empty(sizes.head(_MAX_COINS))[::-1]  # the largest is at the top
    panel = style.open_panel(positions, look, (7.2, 1.2 + 0.5 * max(3, len(drawn))))
    ax, theme, coins = panel.ax, panel.theme, [*drawn.index.map(str)]
    panel.name_rows(coins, [formats.short_usd(float(f"{size:.3g}")) for size in drawn])
    ax.grid(False)
    for number, (coin, size) in enumerate(drawn.items()):
        own = rows[rows["coin"] == coin]
        # Each row has its own scale.
        height = number + 0.42 * own["notional"].to_numpy() / (size or 1.0)
        # A position lasts until the next fill, and the last one until the end of the figure.
        times, heights = [*own["time"], rows["time"].max()], np.append(height, height[-1])
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
    low, high = (formats.usd_amount(end) for end in (notional.min(), notional.max()))
    names = ", ".join(coins[::-1])
    unknown = f", {notional.isna().sum()} not known" if notional.isna().any() else ""
    return panel.finish(
        f"Positions in {names} over time, in USD: between {low} and {high}{unknown}; "
        f"{int(positions['chain_break'].sum())} places where fills are missing."
    )
