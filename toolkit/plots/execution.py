"""Execution: gains after fills, spreads, shortfall, maker days, impact, counterparties."""

from typing import Any, Final, Unpack, overload

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from toolkit.execution import Impact, Markout, Shortfall, Spreads
from toolkit.plots import axes, formats, style
from toolkit.plots.style import Look, PanelLook

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
_UNIT: Final = 0.01  # share of a day's volume at which the law is stated
_MOST_NAMES: Final = 8
_MOST_RANKED: Final = 20


def _split_groups(params: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    style.not_empty(params["estimate"].dropna())
    groups = axes.split_groups(params, _NOT_KEYS, "all fills")
    axes.check_drawable(len(groups), axes.MAX_LINES, "groups")
    return groups


def _bps_text(row: dict[Any, Any]) -> str:
    """Return an estimate with its interval in brackets, if that is known."""
    value, *ends = (formats.signed_number(round(row[name], 2)) for name in axes.INTERVAL)
    return f"{value} bps" + (f" ({' to '.join(ends)})" if pd.notna(row["low"]) else "")


@style.draws_result("Gain after fills")
def markout(markout: Markout, **look: Unpack[PanelLook]) -> Axes:
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
def spreads(spreads: Spreads, **look: Unpack[PanelLook]) -> Axes:
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
def shortfall(shortfall: Shortfall, **look: Unpack[PanelLook]) -> Axes:
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
    values, low, high = rows[axes.INTERVAL].to_numpy(np.float64).T
    ax, theme, places = panel.ax, panel.theme, np.arange(len(rows))
    colours = [theme.good if value >= 0 else theme.bad for value in values[:-1]]
    ax.bar(places, values, width=0.62, color=[*colours, theme.total], linewidth=0)
    ax.vlines(places, low, high, color=theme.text, linewidth=1.3)
    panel.add_zero_line()
    texts = [formats.signed_number(round(value, 2)) for value in values]
    ends = np.where(values >= 0, np.fmax(values, high), np.fmin(values, low))
    for place, text in enumerate(texts):
        panel.label_point(text, (place, ends[place]), (0, 4 if values[place] >= 0 else -12))
    ax.margins(y=0.16)
    ax.set_xticks(places, _SHORTFALL)
    n, missing = int(rows["n"].iloc[0]), int(rows["missing"].iloc[0])
    x = f"part of the shortfall of {n:,} orders; {missing:,} more have no price"
    y = "gain of the account (below 0: a cost),\nbps of the decided value"
    panel.label_axes(x, y, y_ticks=formats.signed_number)
    parts = ", ".join(f"{name} {text} bps" for name, text in zip(_SHORTFALL, texts, strict=True))
    return panel.finish(f"Implementation shortfall of {n:,} orders: {parts}.")


@style.draws_result("Days")
def maker_days(days: pd.DataFrame, **look: Unpack[PanelLook]) -> Axes:
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


@overload
def impact(impact: Impact, *, ax: None = None, **look: Unpack[Look]) -> Figure: ...
@overload
def impact(impact: Impact, *, ax: Axes, **look: Unpack[Look]) -> Axes: ...
@style.draws_result("Price impact")
def impact(impact: Impact, **look: Unpack[PanelLook]) -> Figure | Axes:
    """Draw price impact by size of orders, the response by lag, and how sides follow each other.

    Parameters
    ----------
    impact : Impact
        `tk.execution.impact`.
    ax : Axes, optional
        Axes to draw the impact by size on, without the other panels.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Figure or Axes
        A new figure with three panels; or `ax`, with the first. Left: mean impact in basis points
        over the share of a day's volume, with intervals, the fitted law and a square root; both
        axes are logarithmic if all means are positive. Middle: response and kernel over the lag.
        Right: autocorrelation of the sides of orders. Bands are intervals.

    Examples
    --------
    >>> import pandas as pd
    >>> from toolkit import execution
    >>> ms = lambda *at: pd.to_datetime(at, unit="ms", utc=True)
    >>> fills = pd.DataFrame({"oid": [1, 2, 3], "coin": "XYZ", "px": 100.0, "sz": [1.0, 4.0, 16.0],
    ...     "side": "B", "crossed": True, "time": ms(1_000, 101_000, 201_000)})
    >>> mids = pd.DataFrame({"coin": "XYZ", "mid_px": [100, 100.01, 100, 100.02, 100, 100.04],
    ...     "time": ms(0, 2_000, 100_000, 102_000, 200_000, 202_000)})
    >>> len(impact(execution.impact(fills, mids)).axes)
    3
    """
    style.not_empty(impact.sizes)
    panels = style.open_panels(impact.params, look, (10.2, 3.5), widths=(1.25, 1, 0.9))
    words = _draw_law(panels[0], impact)
    for panel in panels[1:2]:
        _draw_lags(panel, 0, impact.lags, "response_bps", "response")
        _draw_lags(panel, 1, impact.lags, "kernel_bps", "kernel (own part)")
        panel.label_axes(y="price change, bps", y_ticks=formats.signed_number)
    for panel in panels[2:]:
        _draw_lags(panel, 2, impact.lags, "autocorrelation", "same side again")
        panel.label_axes(y="autocorrelation of sides")
    for panel in panels[1:]:
        panel.add_zero_line(is_edge=True)
        panel.ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
        panel.label_axes("lag, orders", legend=1)
    return panels[0].finish(words)


def _draw_law(panel: axes.Panel, found: Impact) -> str:
    """Draw the mean impact by size and the fitted law; return the law in words."""
    ax, theme, sizes = panel.ax, panel.theme, found.sizes
    share, mean = (sizes[name].to_numpy(np.float64) for name in ("share", "estimate"))
    is_log = bool((mean > 0).all())
    shares = np.geomspace(share.min() / 1.3, share.max() * 1.3, 60)
    rows = found.params.set_index("name")
    exponent, *ends = rows.loc["exponent", axes.INTERVAL].to_numpy(np.float64)
    words = f"Price impact of {found.n:,} orders: no law fits."
    if np.isfinite(exponent):
        interval = f" ({ends[0]:.2f} to {ends[1]:.2f})" if pd.notna(ends[0]) else ""
        label = f"fitted: exponent {exponent:.2f}{interval}"
        law = found["impact_bps"] * (shares / _UNIT) ** exponent
        ax.plot(shares, law, color=theme.good, linewidth=1.8, label=label)
        root = found["root_bps"]
        if not is_log or root > 0:
            square = root * (shares / _UNIT) ** 0.5
            ax.plot(shares, square, "--", color=theme.bad, linewidth=1.4, label="square root")
        words = (
            f"Price impact of {found.n:,} orders grows with their size to the power of "
            f"{exponent:.2f}{interval}. An order of 1 % of a day's volume moves the price by "
            f"{formats.basis_points(found['impact_bps'])} bps."
        )
    marks = {"linestyle": "", "marker": "o", "markersize": 5, "capsize": 3, "linewidth": 1.2}
    least = 0.2 * mean.min() if is_log else -np.inf
    rows = sizes.assign(low=sizes["low"].clip(lower=least))
    panel.draw_errors(share, rows, color=theme.text, label="mean of orders of a size", **marks)
    ax.set_xscale("log")
    if is_log:
        ax.set_yscale("log")
        ax.set_ylim(bottom=0.45 * mean.min())
        axes.set_log_ticks(ax.yaxis, formats.plain_number)
    else:
        panel.add_zero_line()
        ax.yaxis.set_major_formatter(formats.signed_number)
    axes.set_log_ticks(ax.xaxis, lambda share, _: f"{100 * share:g} %", decades=True)
    x = "size of the order, share of a day's volume"
    panel.label_axes(x, "price impact, bps", legend=1)
    return words


def _draw_lags(panel: axes.Panel, number: int, lags: pd.DataFrame, column: str, label: str) -> None:
    line, name, x = panel.line_style(number), column.removesuffix("_bps"), lags["lag"]
    panel.ax.plot(x, lags[column], **line, markersize=3, linewidth=1.6, label=label)
    panel.draw_band(x, lags[f"{name}_low"], lags[f"{name}_high"], line["color"])


@style.draws_result("Who trades against whom")
def counterparties(pairs: pd.DataFrame, **look: Unpack[PanelLook]) -> Axes:
    """Draw what takers gained from makers: one cell for each pair.

    Parameters
    ----------
    pairs : DataFrame
        `tk.execution.counterparties`. The eight takers and the eight makers with the largest
        volume are drawn.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        Rows are takers, columns are makers. The shade and the first number are the gain of the
        taker in basis points, the second number is the volume in USD.

    Examples
    --------
    >>> import pandas as pd
    >>> pairs = pd.DataFrame({"taker": ["0xa"], "maker": ["0xb"], "volume_usd": [200.0],
    ...     "gain_bps": [50.0]})
    >>> counterparties(pairs).get_ylabel()
    'taker'
    """
    names = pairs[["taker", "maker"]].map(
        lambda name: formats.short_name(name) if isinstance(name, str) else "not known"
    )
    rows = pairs.assign(taker=names["taker"], maker=names["maker"])
    takers, makers = (
        rows.groupby(side)["volume_usd"].sum().sort_values(ascending=False, kind="stable")
        .head(_MOST_NAMES).index.tolist()
        for side in ("taker", "maker")
    )  # fmt: skip
    size = (1.9 + 0.85 * max(3, len(makers)), 1.5 + 0.42 * max(3, len(takers)))
    panel = style.open_panel(pairs, look, size)
    gains, volumes = (
        rows.drop_duplicates(["taker", "maker"]).pivot(index="taker", columns="maker", values=name)
        .reindex(index=takers, columns=makers).astype("float64")
        for name in ("gain_bps", "volume_usd")
    )  # fmt: skip
    texts = np.full(gains.shape, "", dtype=object)
    for place in np.argwhere(volumes.notna()):
        gain, volume = gains.iloc[*place], volumes.iloc[*place]
        known = "no price" if not np.isfinite(gain) else formats.signed_number(round(gain, 1))
        texts[*place] = f"{known}\n{formats.short_usd(float(f'{volume:.3g}'))}"
    # Gains and losses have the same scale of shades.
    most = float(np.nan_to_num(gains.abs().to_numpy(), posinf=0.0).max()) or 1.0
    scale = ("bad", "background", "good"), -most, most
    panel.draw_cells(gains, texts, *scale, fontsize=7.5, rotation=30)
    x = "maker; cells: gain of the taker in bps (below 0: a loss), and volume in USD"
    panel.label_axes(x, "taker")
    top = rows.iloc[0]
    return panel.finish(
        f"Who trades against whom: {len(rows)} pairs. The largest is {top['taker']} taking from "
        f"{top['maker']}: {formats.usd_amount(top['volume_usd'])} USD, gain of the taker "
        f"{formats.signed_number(round(top['gain_bps'], 2))} bps."
    )


@style.draws_result("Gain after trades by account")
def toxicity(ranking: pd.DataFrame, **look: Unpack[PanelLook]) -> Axes:
    """Draw how far prices follow the trades of each account, the most toxic at the top.

    Parameters
    ----------
    ranking : DataFrame
        `tk.execution.toxicity`. The first 20 names are drawn.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        One row per name: the measured gain as a hollow dot, the gain after shrinkage as a full dot
        with its interval, in basis points.

    Examples
    --------
    >>> import pandas as pd
    >>> ranking = pd.DataFrame({"name": ["0xa"], "fills": [9], "gain_bps": [3.0],
    ...     "shrunk_bps": [2.0], "low": [1.0], "high": [3.0]})
    >>> toxicity(ranking).get_xlabel()
    'gain after the trade, bps (below 0: a loss)'
    """
    rows = ranking.head(_MOST_RANKED)
    style.not_empty(rows["gain_bps"].dropna())
    panel = style.open_panel(ranking, look, (7.2, max(1.9, 0.27 * len(rows) + 1.1)))
    texts = [
        f"{formats.short_name(str(name)) if pd.notna(name) else 'no name'} ({fills:,})"
        for name, fills in zip(rows["name"], rows["fills"], strict=True)
    ]
    at = panel.name_rows(texts, from_top=True)
    panel.add_zero_line(vertical=True)
    panel.draw_measured(rows["gain_bps"])
    if rows["shrunk_bps"].notna().any():
        label = "after shrinkage, with interval"
        panel.draw_intervals(at, rows, "shrunk_bps", panel.theme.bad, label=label)
    panel.label_axes("gain after the trade, bps (below 0: a loss)", "name (fills)", legend=2)
    gain = formats.signed_number(round(rows["gain_bps"].iloc[0], 2))
    return panel.finish(
        f"Gain after trades of {len(ranking)} names. The highest is {texts[0]} fills: "
        f"{gain} bps measured."
    )
