"""Execution: price changes after fills, half spreads, shortfall, and the days of a maker."""

from typing import Any, Final, Unpack

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from toolkit.execution import Markout, Shortfall, Spreads
from toolkit.plots import axes, formats, style

_NOT_KEYS: Final = ("seconds", "name", "estimate", "low", "high", "usd", "n", "missing", "clusters",
        "age_seconds")  # fmt: skip
_SHORTFALL: Final = ["delay", "trading", "opportunity", "fees", "total"]
_DAY_PARTS: Final = {
    "spread": "spread",
    "taking": "taking",
    "adverse": "adverse selection",
    "inventory": "inventory",
    "costs": "fees and rebates",
    "funding": "funding",
}


def _split_groups(params: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    style.not_empty(params["estimate"].dropna())
    groups = axes.split_groups(params, _NOT_KEYS, "all fills")
    axes.check_drawable(len(groups), axes.MAX_LINES, "groups")
    return groups


def _bps_text(row: dict[Any, Any]) -> str:
    """Return an estimate with its interval in brackets, if that is known."""
    value, *ends = (
        formats.signed_number(round(row[name], 2)) for name in ("estimate", "low", "high")
    )
    return f"{value} bps" + (f" ({' to '.join(ends)})" if pd.notna(row["low"]) else "")


@style.draws_result("Gain after fills")
def markout(markout: Markout, **look: Unpack[style.PanelLook]) -> Axes:
    """Draw the gain of fills from later prices, with intervals.

    Parameters
    ----------
    markout : Markout
        `tk.execution.markout`, of up to six groups.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        Gain in basis points over time since the fill, on a logarithmic axis; times before the fill
        are negative. Each group has a line, and the band of its intervals; each point has its
        number of fills.

    Raises
    ------
    ValueError
        If there are too many groups.

    Examples
    --------
    >>> import pandas as pd
    >>> from toolkit import execution
    >>> fills = pd.DataFrame({"coin": "XYZ", "px": [100.0], "sz": [2.0], "side": ["B"],
    ...     "crossed": [True], "time": pd.to_datetime([1000], unit="ms", utc=True)})
    >>> mids = pd.DataFrame({"coin": "XYZ", "mid_px": [100.5],
    ...     "time": pd.to_datetime([9000], unit="ms", utc=True)})
    >>> markout(execution.markout(fills, mids, ["10s", "1m"])).get_xlabel()
    'time since the fill; numbers: fills'
    """
    groups = _split_groups(markout.params)
    panel = style.open_panel(markout.params, look)
    ax, seconds, words = panel.ax, np.unique(markout.params["seconds"]), []
    ax.set_xscale("log")
    if seconds[0] < 0:
        ax.set_xscale("symlog", linthresh=float(np.abs(seconds).min()), linscale=0.3)
        panel.add_zero_line(vertical=True)
    panel.add_zero_line()
    for number, (name, rows) in enumerate(groups):
        line, rows = panel.line_style(number), rows.sort_values("seconds")
        ax.plot(rows["seconds"], rows["estimate"], **line, markersize=6, linewidth=1.8, label=name)
        panel.draw_band(rows["seconds"], rows["low"], rows["high"], line["color"])
        known = rows[rows["estimate"].notna()].to_dict("records")
        for row in known:
            point, offset = (row["seconds"], row["estimate"]), (0, -14 if number % 2 else 7)
            panel.label_point(f"{row['n']:,}", point, offset, fontsize=7.5, color=line["color"])
        for row in known[-1:]:
            words.append(
                f"{name}: {_bps_text(row)} {'after' if row['seconds'] > 0 else 'before'} "
                f"{formats.time_span(abs(row['seconds']))}, {row['missing']} fills without a price"
            )
    axes.set_ticks(ax.xaxis, seconds.tolist(), formats.time_span)
    ax.margins(x=0.06)
    x, y = "time since the fill; numbers: fills", "gain of the account, bps (below 0: a loss)"
    panel.label_axes(x, y, y_ticks=formats.signed_number, legend=min(3, len(groups)))
    return panel.finish(f"Gain after fills. {'; '.join(words)}.")


@style.draws_result("Spreads of fills")
def spreads(spreads: Spreads, **look: Unpack[style.PanelLook]) -> Axes:
    """Draw effective and realised half spreads and price impact, with intervals.

    Parameters
    ----------
    spreads : Spreads
        `tk.execution.spreads`, of up to six groups.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        Costs in basis points, positive if the account of the fill pays.

    Raises
    ------
    ValueError
        If there are too many groups.

    Examples
    --------
    >>> import pandas as pd
    >>> from toolkit import execution
    >>> fills = pd.DataFrame({"coin": "XYZ", "px": [100.1], "sz": [2.0], "side": ["B"],
    ...     "crossed": [True], "time": pd.to_datetime([1000], unit="ms", utc=True)})
    >>> mids = pd.DataFrame({"coin": "XYZ", "mid_px": [100.0, 100.04],
    ...     "time": pd.to_datetime([0, 60_000], unit="ms", utc=True)})
    >>> spreads(execution.spreads(fills, mids, "1m")).get_ylabel()
    'cost of the account, bps (below 0: it earns)'
    """
    groups = _split_groups(spreads.params)
    panel = style.open_panel(spreads.params, look)
    panel.add_zero_line()
    words = []
    for number, (name, own) in enumerate(groups):
        rows = own.set_index("name").loc[["effective", "realised", "impact"]]
        places = np.arange(3) + 0.16 * (number - (len(groups) - 1) / 2)
        marks = panel.line_style(number) | {"linestyle": "", "markersize": 7, "capsize": 4}
        panel.draw_errors(places, rows, label=f"{name} (n = {rows['n'].max():,})", **marks)
        parts = (f"{row['name']} {_bps_text(row)}" for row in own.to_dict("records"))
        words.append(f"{name}: {', '.join(parts)}")
    # Parts from the tape have no time after which they were measured.
    is_timed = np.isfinite(spreads.seconds)
    after = f" after {formats.time_span(spreads.seconds)}" if is_timed else ""
    panel.ax.set_xticks(range(3), ["effective", f"realised{after}", f"impact{after}"])
    panel.ax.set_xlim(-0.6, 2.6)
    y = "cost of the account, bps (below 0: it earns)"
    panel.label_axes(y=y, y_ticks=formats.signed_number, legend=min(3, len(groups)))
    return panel.finish(f"Half spreads of fills and impact{after}. {'; '.join(words)}.")


@style.draws_result("Implementation shortfall")
def shortfall(shortfall: Shortfall, **look: Unpack[style.PanelLook]) -> Axes:
    """Draw the parts of the implementation shortfall, with intervals.

    Parameters
    ----------
    shortfall : Shortfall
        `tk.execution.shortfall`.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        A bar for each part and one for the total, in basis points of the decided value. Costs are
        negative. Lines are intervals.

    Examples
    --------
    >>> import pandas as pd
    >>> from toolkit import execution
    >>> at = pd.to_datetime([1000, 9000], unit="ms", utc=True)
    >>> orders = pd.DataFrame({"oid": 1, "status": ["open", "filled"], "coin": "XYZ", "side": "B",
    ...     "status_timestamp": at, "timestamp": at[[0, 0]], "orig_sz": 1.0})
    >>> fills = pd.DataFrame({"oid": 1, "coin": "XYZ", "px": [101.0], "sz": 1.0, "side": "B",
    ...     "time": at[1:], "crossed": True, "fee": 0.1})
    >>> mids = pd.DataFrame({"coin": "XYZ", "mid_px": [100.0], "time": at[:1]})
    >>> found = execution.shortfall(orders, fills, mids)
    >>> [text.get_text() for text in shortfall(found).get_xticklabels()]
    ['delay', 'trading', 'opportunity', 'fees', 'total']
    """
    panel = style.open_panel(shortfall.params, look)
    rows = shortfall.params.set_index("name").loc[_SHORTFALL]
    style.not_empty(rows["estimate"].dropna())
    values, low, high = (rows[key].to_numpy(np.float64) for key in ("estimate", "low", "high"))
    ax, theme, places = panel.ax, panel.theme, np.arange(len(rows))
    colours = [theme.good if value >= 0 else theme.bad for value in values[:-1]]
    ax.bar(places, values, width=0.62, color=[*colours, theme.total], linewidth=0)
    ax.vlines(places, low, high, color=theme.text, linewidth=1.3)
    panel.add_zero_line()
    texts = [formats.signed_number(round(value, 2)) for value in values]
    for place, text in enumerate(texts):
        is_up = values[place] >= 0
        end = np.fmax(values, high) if is_up else np.fmin(values, low)
        panel.label_point(text, (place, end[place]), (0, 4 if is_up else -12))
    ax.margins(y=0.16)
    ax.set_xticks(places, _SHORTFALL)
    n, missing = int(rows["n"].iloc[0]), int(rows["missing"].iloc[0])
    x = f"part of the shortfall of {n:,} orders; {missing:,} more have no price"
    y = "gain of the account (below 0: a cost),\nbps of the decided value"
    panel.label_axes(x, y, y_ticks=formats.signed_number)
    parts = ", ".join(f"{name} {text} bps" for name, text in zip(_SHORTFALL, texts, strict=True))
    return panel.finish(f"Implementation shortfall of {n:,} orders: {parts}.")


@style.draws_result("Days")
def maker_days(days: pd.DataFrame, **look: Unpack[style.PanelLook]) -> Axes:
    """Draw what a maker earned and lost on each day, and the net.

    Parameters
    ----------
    days : DataFrame
        `tk.execution.maker_days` by day, of one account or of all together.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        For each day one bar with the gains upwards and one with the losses downwards, in USD, and a
        diamond at the net. Adverse selection is that of the longest horizon. A day whose inventory
        is not known has no diamond.

    Raises
    ------
    ValueError
        If a day has several rows, or the frame is not by day.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"day": pd.Timestamp("2025-09-01", tz="UTC"), "spread": 9.0, "taking": -1.0,
    ...        "adverse_300s": -3.0, "inventory": 2.0, "rebates": 0.5, "fees": -1.0,
    ...        "funding": 0.5, "net": 7.0}
    >>> maker_days(pd.DataFrame([row])).get_ylabel()
    'USD, losses go down'
    """
    panel = style.open_panel(days, look)
    axes.check_no_repeats("maker_days", "row of each day", "days", days, ["day"])
    last = [name for name in days.columns if name.startswith("adverse_")][-1]
    rows = days.assign(adverse=days[last], costs=days["rebates"] + days["fees"]).sort_values("day")
    parts, at = rows[[*_DAY_PARTS]].rename(columns=_DAY_PARTS), np.array(rows["day"])
    panel.stack_bars(at, parts, panel.theme.groups, 0.7)
    panel.draw_net(at, rows["net"], vertical=False)
    panel.set_time_axis(rows["day"], "USD, losses go down", y_ticks=formats.usd_tick, legend=4)
    sums = parts.sum(min_count=1).dropna().items()
    words = ", ".join(f"{label} {formats.usd_amount(usd, signed=True)}" for label, usd in sums)
    return panel.finish(f"{len(days)} days: {words} USD.")
