"""Orders: transitions between statuses, last statuses, and times until orders end."""

from collections import Counter
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullLocator, PercentFormatter

from toolkit.contract.order_states import order_state_group
from toolkit.orders import FillProbability, FillTimes
from toolkit.plots import axes, formats, matrix, style
from toolkit.plots.result_checks import draws_result
from toolkit.plots.themes import Theme, ThemeName

_FIRST, _LAST = "(placed)", "(last)"
_MAX_STATUSES = 24
_MAX_COLUMNS = 9  # of the matrix of transitions; rarer statuses share a column
_END_GROUPS: Final = ("filled", "canceled", "rejected", "active", "unknown")


class _Cause(NamedTuple):
    name: str
    dashes: str
    label: str


_CAUSES: Final = (
    _Cause("filled", "-", "filled"),
    _Cause("canceled", "--", "cancelled"),
    _Cause("rejected", ":", "rejected"),
)
_NOT_KEYS: Final = ("cause", "seconds", "probability", "name", "estimate", "low", "high")
_AGE_NAMES: Final = {
    0.001: "1 ms", 0.1: "0.1 s", 1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3600: "1 h",
    21_600: "6 h", 86_400: "1 d", 864_000: "10 d",
}  # fmt: skip


@draws_result
def order_transitions(
    transitions: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
    """Draw the matrix of transitions between statuses of orders.

    Parameters
    ----------
    transitions : DataFrame
        `tk.orders.transitions` without groups.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        A row for each status before, a column for each status after. A cell has the number of
        orders and is shaded by its share of the row. The rarest statuses share a column for each
        group, such as "20 other rejected".

    Raises
    ------
    ValueError
        If there are several matrices.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"before": ["(placed)", "open"], "after": ["open", "filled"],
    ...                      "orders": [2, 2], "share": [1.0, 1.0]})
    >>> [text.get_text() for text in order_transitions(rows).get_yticklabels()]
    ['(placed)', 'open']
    """
    if len(transitions) and transitions.duplicated(["before", "after"]).any():
        own = ["before", "after", "orders", "share"]
        groups = transitions[transitions.columns.difference(own, sort=False)].drop_duplicates()
        raise axes.several_parts_error("order_transitions", "matrix", "transitions", groups)
    rows = _fold_rare_statuses(transitions) if len(transitions) else transitions
    before, after = _sort_statuses(rows) if len(rows) else ([], [])
    size = (7.2, 2.2 + 0.34 * len(before))
    ax, colours = style.new_axes(ax, theme, transparent, size)
    if before:
        _draw_matrix(ax, colours, rows, before, after)
    else:
        style.draw_no_data(ax, colours)
    words = _describe_matrix(transitions)
    return style.finish_axes(ax, colours, words, transitions)


def _fold_rare_statuses(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the transitions; the rarest statuses of each group have one common name."""
    size = rows[rows["after"] != _LAST].groupby("after")["orders"].sum()
    ranked = size.sort_values(ascending=False, kind="stable").index
    if len(ranked) <= _MAX_COLUMNS:
        return rows
    kept = {_FIRST, _LAST, *ranked[: _MAX_COLUMNS - 2]}
    kept |= set(rows.loc[rows["after"] != _LAST, "before"])
    rare = sorted(set(rows["after"]) - kept)
    counts = Counter(map(order_state_group, rare))
    names = {
        name: f"{counts[group]} other {group}"
        for name in rare
        if counts[group := order_state_group(name)] > 1
    }
    folded = rows.assign(after=rows["after"].replace(names))
    sums = folded.groupby(["before", "after"])["orders"].sum().reset_index()
    left = sums.groupby("before")["orders"].transform("sum")
    return sums.assign(share=sums["orders"] / left)


def _sort_statuses(rows: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Return the statuses before and the statuses after, the most frequent first.

    A status that always ends an order has no row.
    """
    size = rows.groupby("after")["orders"].sum().sort_values(ascending=False, kind="stable")
    left = set(rows.loc[rows["after"] != _LAST, "before"]) - {_FIRST}
    entered = [name for name in size.index if name != _LAST]
    before = [_FIRST, *(name for name in entered if name in left)]
    return before, [*entered, _LAST]


def _draw_matrix(
    ax: Axes, theme: Theme, rows: pd.DataFrame, before: list[str], after: list[str]
) -> None:
    share, count = (
        rows.pivot(index="before", columns="after", values=name).reindex(
            index=before, columns=after
        )
        for name in ("share", "orders")
    )
    texts = np.array(
        [
            ["" if number != number else f"{int(number):,}" for number in row]
            for row in count.to_numpy(dtype="float64")
        ],
        dtype=object,
    )
    matrix.draw_matrix(ax, theme, share.to_numpy(dtype="float64"), texts)
    columns = ["no change" if name == _LAST else name for name in after]
    matrix.name_rows_and_columns(ax, before, columns, has_long_names=True)
    ax.set_ylabel("from")
    ax.set_xlabel("to; number of orders, shaded by their share of the row")


def _describe_matrix(rows: pd.DataFrame) -> str:
    if not len(rows):
        return "Transitions between statuses of orders: no data."
    moved = rows[(rows["before"] != _FIRST) & (rows["after"] != _LAST)]
    top = moved.sort_values("orders", ascending=False, kind="stable").head(5)
    parts = [f"{r.before} to {r.after} {r.orders:,} ({r.share:.0%})" for r in top.itertuples()]
    placed = rows.loc[rows["before"] == _FIRST, "orders"].sum()
    return f"Transitions of {placed:,} orders between statuses: {', '.join(parts) or 'none'}."


@draws_result
def order_mix(
    mix: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
    """Draw the share of each last status of orders, with its interval.

    Parameters
    ----------
    mix : DataFrame
        `tk.orders.mix` without groups.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        A dot for each of the 24 most frequent statuses on a logarithmic axis in percent, with its
        interval and its number of orders.

    Raises
    ------
    ValueError
        If there are several mixes.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"group": ["filled"], "status": ["filled"], "orders": [3], "n": [4],
    ...                      "share": [0.75], "low": [0.3], "high": [0.95]})
    >>> [text.get_text() for text in order_mix(rows).get_yticklabels()]
    ['filled']
    """
    if len(mix) and mix.duplicated("status").any():
        own = ["group", "status", "orders", "n", "share", "low", "high"]
        groups = mix[mix.columns.difference(own, sort=False)].drop_duplicates()
        raise axes.several_parts_error("order_mix", "mix", "mix", groups)
    rows = mix
    if len(mix):
        rows = mix.sort_values(["orders", "status"], ascending=[False, True]).head(_MAX_STATUSES)
    size = (7.2, 1.5 + 0.24 * max(4, len(rows)))
    ax, colours = style.new_axes(ax, theme, transparent, size)
    _draw_mix(ax, colours, rows) if len(rows) else style.draw_no_data(ax, colours)
    return style.finish_axes(ax, colours, _describe_mix(rows), mix)


def _draw_mix(ax: Axes, theme: Theme, rows: pd.DataFrame) -> None:
    rows = rows.iloc[::-1].reset_index(drop=True)
    axes.name_rows(ax, theme, rows["status"].tolist())
    colours = (theme.good, theme.accent, theme.bad, theme.total, theme.muted)
    for name, colour, marker in zip(_END_GROUPS, colours, "osDv^", strict=True):
        part = rows[rows["group"] == name]
        if part.empty:
            continue
        at = part.index.to_numpy()
        interval = part[["low", "high"]].to_numpy(dtype="float64")
        ax.hlines(at, interval[:, 0], interval[:, 1], color=colour, linewidth=1.6)
        ax.plot(part["share"], at, marker, color=colour, markersize=5.5, label=name)
    ax.set_xscale("log")
    ax.set_xlim(None, 1.3)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g} %"))
    ax.xaxis.set_minor_locator(NullLocator())
    for y, count in enumerate(rows["orders"]):
        axes.label_right_edge(ax, y, f"{count:,}", theme.text)
    ax.set_xlabel("share of orders by last status; number of orders at the right")
    axes.add_legend(ax, theme, ncols=5)


def _describe_mix(rows: pd.DataFrame) -> str:
    if not len(rows):
        return "Last statuses of orders: no data."
    parts = [f"{r.status} {formats.percent_share(r.share)}" for r in rows.head(8).itertuples()]
    return f"Last statuses of {rows['n'].iloc[0]:,} orders: {', '.join(parts)}."


@draws_result
def fill_times(
    times: FillTimes,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
    """Draw the probability of each end of an order by its age.

    Parameters
    ----------
    times : FillTimes
        `tk.orders.time_to_fill`; with groups, of at most six.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        Steps of the cumulative incidence of fills, cancellations and rejections over time on a
        logarithmic axis, with the bands of the intervals. With groups, there is one line of
        fills for each group.

    Raises
    ------
    ValueError
        If there are too many groups.

    Examples
    --------
    >>> import pandas as pd
    >>> from toolkit.orders import time_to_fill
    >>> stamps = pd.to_datetime([0, 1, 2], unit="s", utc=True)
    >>> orders = pd.DataFrame({"oid": [1, 2, 3], "status": "filled", "timestamp": stamps[0],
    ...                        "status_timestamp": stamps})
    >>> fill_times(time_to_fill(orders)).get_ylabel()
    'share of orders'
    """
    ax, colours = style.new_axes(ax, theme, transparent)
    curves = times.curves
    _draw_times(ax, colours, _time_lines(curves, colours)) if len(curves) else style.draw_no_data(
        ax, colours
    )
    return style.finish_axes(ax, colours, _describe_times(times), curves)


def _group_columns(frame: pd.DataFrame) -> list[str]:
    return [str(name) for name in frame.columns if name not in _NOT_KEYS]


def _time_lines(
    curves: pd.DataFrame, theme: Theme
) -> list[tuple[axes.LineStyle, str, pd.DataFrame]]:
    """Return the style, the label and the points of each line: one for each cause or group."""
    keys, last = _group_columns(curves), float(curves["seconds"].max())
    if not keys:
        cause_colours = (theme.good, theme.accent, theme.bad)
        return [
            (axes.LineStyle(colour, cause.dashes, "", False), cause.label, own)
            for cause, colour in zip(_CAUSES, cause_colours, strict=True)
            if len(own := curves[curves["cause"] == cause.name])
        ]
    groups = curves.groupby(keys, sort=True, dropna=False)
    axes.check_drawable(groups.ngroups, axes.MAX_LINES, "groups")
    return [
        (axes.line_style(theme, number), axes.group_name(key), _extend_line(own, group, last))
        for number, (key, group) in enumerate(groups)
        if len(own := group[group["cause"] == "filled"])
    ]


def _extend_line(own: pd.DataFrame, group: pd.DataFrame, last: float) -> pd.DataFrame:
    """Return a line that goes on to the last age if all orders of its group have ended."""
    ended = group.groupby("cause")["probability"].last().sum()
    end = own.iloc[[-1]]
    if ended < 1 - 1e-9 or end["seconds"].item() >= last:
        return own
    return pd.concat([own, end.assign(seconds=last)], ignore_index=True)


def _draw_times(
    ax: Axes, theme: Theme, lines: list[tuple[axes.LineStyle, str, pd.DataFrame]]
) -> None:
    ages = np.concatenate([own["seconds"].to_numpy(dtype="float64") for *_, own in lines])
    positive = ages[ages > 0]
    # A logarithmic axis has no 0: orders that ended at once are drawn at its left edge.
    edge = max(float(positive.min()) / 2, 0.001) if len(positive) else 0.001
    last = max(float(ages.max()), 2 * edge)
    for line, label, own in lines:
        x: Any = np.maximum(own["seconds"].to_numpy(dtype="float64"), edge)
        ax.fill_between(
            x, own["low"], own["high"], step="post", color=line.colour, alpha=0.18, linewidth=0
        )
        look: Any = {"color": line.colour, "linestyle": line.dashes, "label": label}
        ax.step(x, own["probability"], where="post", **look)
    ax.set_xscale("log")
    ticks = [age for age in _AGE_NAMES if edge <= age <= last]
    axes.set_ticks(ax.xaxis, ticks, lambda seconds, _: _AGE_NAMES.get(seconds, f"{seconds:g} s"))
    ax.set_xlim(edge, last)
    ax.set_ylim(0, 1)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.set_xlabel("time since the order was placed")
    ax.set_ylabel("share of orders")
    axes.add_legend(ax, theme, ncols=3)


def _describe_times(times: FillTimes) -> str:
    if not len(times.curves):
        return "Ends of orders by age: no data."
    keys = _group_columns(times.params)
    parts = [
        " ".join([*(f"{row[key]}:" for key in keys), f"{row['name']} {row['estimate']:.0%}"])
        for row in times.params.dropna(subset="estimate").to_dict("records")
        if row["name"].startswith("filled")
    ]
    return f"Ends of {times.n:,} orders by age, {times.open:,} still open: {', '.join(parts)}."


@draws_result
def fill_probability(
    times: FillProbability,
    seconds: float | None = None,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
    """Draw how probable a fill of a resting order is, by its distance from the mid.

    Parameters
    ----------
    times : FillProbability
        `tk.orders.fill_probability`, without further groups.
    seconds : float, optional
        One of its horizons. By default each has a line, at most six.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        The probability of a fill within each horizon, with its interval, for each range of
        distances in basis points. Orders without a mid are left out.

    Raises
    ------
    ValueError
        If there is no such horizon, or there are too many.

    Examples
    --------
    >>> import pandas as pd
    >>> from toolkit import orders
    >>> ms = lambda *at: pd.to_datetime(at, unit="ms", utc=True)
    >>> rows = pd.DataFrame({"oid": [1, 1, 2], "status": ["open", "filled", "open"],
    ...     "coin": "XYZ", "side": "B", "limit_px": [99.9, 99.9, 99.0], "timestamp": ms(9, 9, 9),
    ...     "status_timestamp": ms(9, 2_009, 9)})
    >>> mids = pd.DataFrame({"coin": "XYZ", "mid_px": [100.0], "time": ms(0)})
    >>> found = orders.fill_probability(rows, mids, horizons=[1, 2])
    >>> fill_probability(found).get_xlabel()
    'distance from the mid, bps'
    """
    ax, colours = style.new_axes(ax, theme, transparent)
    rows = times.params[times.params["name"].str.startswith("filled within ")]
    rows = rows[rows["distance_bps"].notna()]
    ages = rows["name"].str.extract(r"within (\S+) s", expand=False).astype("float64")
    wanted = sorted(ages.unique()) if seconds is None else [float(seconds)]
    if seconds is not None and seconds not in set(ages):
        raise ValueError(f"there is no horizon of {seconds:g} s; choose one of {sorted(set(ages))}")
    axes.check_drawable(len(wanted), axes.MAX_LINES, "horizons")
    places = np.unique(rows["distance_bps"])
    words = []
    for number, age in enumerate(wanted):
        own = rows[ages == age].sort_values("distance_bps")
        line = axes.line_style(colours, number)
        at = np.searchsorted(places, own["distance_bps"]) + 0.05 * (number - (len(wanted) - 1) / 2)
        middle = own["estimate"].to_numpy(np.float64)
        reach = np.abs(own[["low", "high"]].to_numpy(np.float64).T - middle)
        ax.errorbar(
            at, middle, yerr=reach, color=line.colour, linestyle=line.dashes, marker=line.marker,
            markersize=5, capsize=3, linewidth=1.4, label=f"within {formats.time_span(age)}",
        )  # fmt: skip
        words.append(f"within {formats.time_span(age)} " + ", ".join(f"{p:.0%}" for p in middle))
    if not len(rows):
        style.draw_no_data(ax, colours)
        text = "Fills by distance: no data."
        return style.finish_axes(ax, colours, text, times.params)
    ends = [*(f"{place:g}" for place in places), ""]
    names = [
        f"below {high or 0}" if low == "-inf" else f"{low} to {high}" if high else f"{low} or more"
        for low, high in pairwise(ends)
    ]
    ax.set_xticks(range(len(places)), names)
    ax.set_ylim(0, 1.02)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.set_xlabel("distance from the mid, bps")
    ax.set_ylabel("probability of a fill")
    axes.add_legend(ax, colours, ncols=3)
    text = f"Fills of {times.n:,} resting orders by distance from the mid: {'; '.join(words)}."
    return style.finish_axes(ax, colours, text, times.params)
