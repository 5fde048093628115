"""PnL: from closed PnL to net in steps, cumulative over time, and returns of round trips."""

from typing import Any, Final, Unpack

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from toolkit.arrays import Floats
from toolkit.plots import axes, formats, style

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
def waterfall(attribution: pd.DataFrame, **look: Unpack[style.PanelLook]) -> Axes:
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
def cumulative_pnl(attribution: pd.DataFrame, **look: Unpack[style.PanelLook]) -> Axes:
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
    theme, closed = panel.theme, ["closed_pnl"]
    fees = [*closed, "trading_fee", "builder_fee", "deployer_fee", "rebate"]
    lines: dict[str, tuple[list[Any], Floats, dict[str, Any]]] = {}
    if "user" in attribution.columns and attribution["user"].nunique() > 1:
        accounts = list(attribution.groupby("user", sort=False))
        axes.check_drawable(len(accounts), axes.MAX_LINES, "accounts")
        for number, (user, own) in enumerate(accounts):
            line = panel.line_style(number, marks=False)
            lines[formats.short_address(user)] = *_running_sum(own, [*fees, "funding"]), line
    else:
        lines["gross"] = *_running_sum(attribution, closed), {"color": theme.good}
        look_of_fees = {"color": theme.bad, "linestyle": "--"}
        lines["after fees"] = *_running_sum(attribution, fees), look_of_fees
        if attribution["funding"].notna().any():
            of_net = {"color": theme.total, "linewidth": 1.9, "marker": "o", "markersize": 4.5}
            net = *_running_sum(attribution, [*fees, "funding"]), of_net
            lines["after fees and funding"] = net
    labels, ends, every = [], [], []
    for name, (times, values, line) in lines.items():
        labels.append(f"{name} {formats.usd_amount(values[-1], signed=True)}")
        line = {"linewidth": 1.5, "markevery": max(1, len(times) // 12)} | line
        panel.ax.plot(times, values, drawstyle="steps-post", label=labels[-1], **line)
        ends += [times[0], times[-1]]
        every += [values.min(), values.max()]
    panel.add_zero_line(is_edge=True)
    panel.ax.margins(x=0.01, y=0.08)
    y, columns = "USD, cumulative; below 0: a loss", 3 if len(lines) <= 3 else 2
    panel.set_time_axis(ends, y, y_ticks=formats.usd_tick, legend=columns)
    return panel.finish(
        f"Cumulative PnL in USD from {min(ends):%Y-%m-%d %H:%M} to {max(ends):%Y-%m-%d %H:%M} UTC: "
        f"it ends at {', '.join(labels)}; the lines lie between {formats.usd_amount(min(every))} "
        f"and {formats.usd_amount(max(every))}."
    )


def _running_sum(rows: pd.DataFrame, names: list[str]) -> tuple[list[Any], Floats]:
    """Return the start and the ends of the periods, and the running sum of columns from 0."""
    _, rows, edges = axes.sort_periods(rows)
    steps = rows[names].astype("float64").fillna(0.0).sum(axis=1)
    return edges, np.append(0.0, steps.cumsum())


@style.draws_result("Round trips")
def trip_returns(trips: pd.DataFrame, **look: Unpack[style.PanelLook]) -> Axes:
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
    ax, theme, is_forced = panel.ax, panel.theme, pd.Series(False, index=rows.index)
    if "forced" in rows:
        is_forced = rows["forced"].fillna(False).astype(bool)
    sides, returns = rows["side"], 100 * rows["return_"].astype("float64")
    hours = rows["duration_hours"].astype("float64").clip(lower=1 / 3600)
    for is_own, name, marker, colour, size, face, alpha in (
        (sides == "long", "long", "o", theme.good, 4.5, theme.good, 0.75),
        (sides == "short", "short", "s", theme.bad, 4.5, "none", 0.75),
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
    net = rows["net"].astype("float64")
    forced = f" The exchange closed {is_forced.sum()} of them." if is_forced.any() else ""
    return panel.finish(
        f"{len(rows)} round trips by duration and net return: {100 * (net > 0).mean():.0f} % "
        f"had a gain, the median duration was {rows['duration_hours'].median():.1f} hours, the "
        f"total is {formats.usd_amount(net.sum(), signed=True)} USD.{forced}"
    )
