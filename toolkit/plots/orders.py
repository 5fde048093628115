"""Orders: transitions between statuses, last statuses, and times until orders end."""

from itertools import pairwise
from typing import Any, Final, Unpack

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from toolkit.contract.order_states import order_state_group
from toolkit.orders import FillProbability, FillTimes
from toolkit.plots import axes, formats, style

_FIRST, _LAST = "(placed)", "(last)"
_MAX_STATUSES: Final = 24
_MAX_COLUMNS: Final = 9  # of the matrix of transitions; rarer statuses share a column
_END_GROUPS: Final = ("filled", "canceled", "rejected", "active", "unknown")
_CAUSES: Final = (("filled", "-"), ("canceled", "--"), ("rejected", ":"))
_NOT_KEYS: Final = ("cause", "seconds", "probability", "name", "estimate", "low", "high")
_AGE_NAMES: Final = {
    0.001: "1 ms", 0.1: "0.1 s", 1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3600: "1 h",
    21_600: "6 h", 86_400: "1 d", 864_000: "10 d",
}  # fmt: skip


@style.draws_result("Transitions between statuses of orders")
def order_transitions(transitions: pd.DataFrame, **look: Unpack[style.PanelLook]) -> Axes:
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
    keys = ["before", "after"]
    axes.check_no_repeats("order_transitions", "matrix", "transitions", transitions, keys)
    rows = _fold_rare_statuses(transitions)
    size = rows.groupby("after")["orders"].sum().sort_values(ascending=False, kind="stable")
    left = {*rows.loc[rows["after"] != _LAST, "before"]} - {_FIRST}
    after = [*size.index.drop(_LAST, errors="ignore"), _LAST]
    before = [_FIRST, *(name for name in after if name in left)]
    panel = style.open_panel(transitions, look, (7.2, 2.2 + 0.34 * len(before)))
    wide: Any = rows.pivot(index="before", columns="after")
    share, count = (
        wide[name].reindex(index=before, columns=after).rename(columns={_LAST: "no change"})
        for name in ("share", "orders")
    )  # fmt: skip
    texts = count.astype("float64").map(lambda number: f"{number:,.0f}" if number > 0 else "")
    panel.draw_cells(share, texts, ("background", "good"), 0, 1, rotation=40)
    panel.label_axes("to; number of orders, shaded by their share of the row", "from")
    is_first = transitions["before"] == _FIRST
    moved = transitions[~is_first & (transitions["after"] != _LAST)]
    moved = moved.sort_values("orders", ascending=False, kind="stable").head(5)
    parts = [
        f"{row['before']} to {row['after']} {row['orders']:,} ({row['share']:.0%})"
        for row in moved.to_dict("records")
    ]
    placed = transitions.loc[is_first, "orders"].sum()
    words = f"Transitions of {placed:,} orders between statuses: {', '.join(parts) or 'none'}."
    return panel.finish(words)


def _fold_rare_statuses(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the transitions; the rarest statuses of each group have one common name."""
    entered = rows[rows["after"] != _LAST]
    size = entered.groupby("after")["orders"].sum()
    ranked = size.sort_values(ascending=False, kind="stable").index
    if len(ranked) <= _MAX_COLUMNS:
        return rows
    kept = {_FIRST, _LAST, *ranked[: _MAX_COLUMNS - 2], *entered["before"]}
    groups = {name: order_state_group(name) for name in sorted(set(rows["after"]) - kept)}
    names = {
        name: f"{count} other {group}"
        for name, group in groups.items()
        if (count := [*groups.values()].count(group)) > 1
    }
    folded = rows.assign(after=rows["after"].replace(names))
    sums = folded.groupby(["before", "after"])["orders"].sum().reset_index()
    return sums.assign(share=sums["orders"] / sums.groupby("before")["orders"].transform("sum"))


@style.draws_result("Last statuses of orders")
def order_mix(mix: pd.DataFrame, **look: Unpack[style.PanelLook]) -> Axes:
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
    axes.check_no_repeats("order_mix", "mix", "mix", mix, ["status"])
    rows = mix.sort_values(["orders", "status"], ascending=[False, True]).head(_MAX_STATUSES)
    panel = style.open_panel(mix, look, (7.2, 1.5 + 0.24 * max(4, len(rows))))
    ax, theme, upwards = panel.ax, panel.theme, rows.iloc[::-1]
    counts = upwards["orders"].map("{:,}".format)
    at = panel.name_rows(upwards["status"].tolist(), counts)
    colours = (theme.good, theme.accent, theme.bad, theme.total, theme.muted)
    for name, colour, marker in zip(_END_GROUPS, colours, "osDv^", strict=True):
        own = (upwards["group"] == name).to_numpy()
        if own.any():
            marks = {"marker": marker, "markersize": 5.5, "label": name}
            panel.draw_intervals(at[own], upwards[own], "share", colour, **marks)
    ax.set_xscale("log")
    ax.set_xlim(None, 1.3)
    ax.xaxis.set_minor_locator(NullLocator())
    x = "share of orders by last status; number of orders at the right"
    panel.label_axes(x, x_ticks=lambda share, _: f"{100 * share:g} %", legend=5)
    first = rows.head(8)
    parts = ", ".join(first["status"] + " " + first["share"].map(formats.percent_share))
    return panel.finish(f"Last statuses of {rows['n'].iloc[0]:,} orders: {parts}.")


@style.draws_result("Ends of orders by age")
def fill_times(times: FillTimes, **look: Unpack[style.PanelLook]) -> Axes:
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
    panel, curves = style.open_panel(times.curves, look), style.not_empty(times.curves)
    ax, lines, groups = panel.ax, [], axes.split_groups(curves, _NOT_KEYS)
    if groups[0][0] == "":
        colours = (panel.theme.good, panel.theme.accent, panel.theme.bad)
        for (cause, dashes), colour in zip(_CAUSES, colours, strict=True):
            line: dict[str, Any] = {"color": colour, "linestyle": dashes}
            name = cause.replace("canceled", "cancelled")
            lines.append((line, name, curves[curves["cause"] == cause]))
    else:
        axes.check_drawable(len(groups), axes.MAX_LINES, "groups")
        for number, (name, rows) in enumerate(groups):
            own = rows[rows["cause"] == "filled"]
            # A line goes on to the last age if all orders of its group have ended.
            if rows.groupby("cause")["probability"].last().sum() > 1 - 1e-9:
                own = pd.concat([own, own.tail(1).assign(seconds=curves["seconds"].max())])
                own = own.drop_duplicates("seconds")
            lines.append((panel.line_style(number, marks=False), name, own))
    lines = [line for line in lines if len(line[2])]
    ages = np.concatenate([own["seconds"] for *_, own in lines])
    # A logarithmic axis has no 0: orders that ended at once are drawn at its left edge.
    edge = max(float(ages[ages > 0].min(initial=np.inf)) / 2, 0.001) if (ages > 0).any() else 0.001
    last = max(float(ages.max()), 2 * edge)
    for line, label, own in lines:
        x = own["seconds"].clip(lower=edge)
        panel.draw_band(x, own["low"], own["high"], line["color"], alpha=0.18, step="post")
        ax.step(x, own["probability"], where="post", label=label, **line)
    ax.set_xscale("log")
    ticks = [age for age in _AGE_NAMES if edge <= age <= last]
    axes.set_ticks(ax.xaxis, ticks, lambda seconds, _: _AGE_NAMES.get(seconds, f"{seconds:g} s"))
    ax.set(xlim=(edge, last), ylim=(0, 1))
    x_label, y = "time since the order was placed", "share of orders"
    panel.label_axes(x_label, y, y_ticks="{x:.0%}", legend=3)
    filled = times.params.dropna(subset="estimate")
    filled = filled[filled["name"].str.startswith("filled")]
    parts = [
        f"{group + ': ' if group else ''}{row['name']} {row['estimate']:.0%}"
        for group, own in axes.split_groups(filled, _NOT_KEYS)
        for row in own.to_dict("records")
    ]
    return panel.finish(
        f"Ends of {times.n:,} orders by age, {times.open:,} still open: {', '.join(parts)}."
    )


@style.draws_result("Fills by distance")
def fill_probability(
    times: FillProbability, seconds: float | None = None, **look: Unpack[style.PanelLook]
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
    rows = times.params[times.params["name"].str.startswith("filled within ")]
    rows = rows[rows["distance_bps"].notna()]
    ages = rows["name"].str.extract(r"within (\S+) s", expand=False).astype("float64")
    known = sorted(ages.unique().tolist())
    if seconds is not None and seconds not in known:
        raise ValueError(f"there is no horizon of {seconds:g} s; choose one of {known}")
    wanted = known if seconds is None else [float(seconds)]
    axes.check_drawable(len(wanted), axes.MAX_LINES, "horizons")
    panel = style.open_panel(times.params, look)
    places = np.unique(style.not_empty(rows)["distance_bps"])
    words = []
    for number, age in enumerate(wanted):
        own = rows[ages == age].sort_values("distance_bps")
        x = np.searchsorted(places, own["distance_bps"]) + 0.05 * (number - (len(wanted) - 1) / 2)
        line, label = panel.line_style(number), f"within {formats.time_span(age)}"
        panel.draw_errors(x, own, markersize=5, capsize=3, linewidth=1.4, label=label, **line)
        words.append(f"{label} " + ", ".join(f"{share:.0%}" for share in own["estimate"]))
    ends = [*(f"{place:g}" for place in places), ""]
    names = [
        f"below {high or 0}" if low == "-inf" else f"{low} to {high}" if high else f"{low} or more"
        for low, high in pairwise(ends)
    ]
    panel.ax.set_xticks(range(len(places)), names)
    panel.ax.set_ylim(0, 1.02)
    x_label, y = "distance from the mid, bps", "probability of a fill"
    panel.label_axes(x_label, y, y_ticks="{x:.0%}", legend=3)
    return panel.finish(
        f"Fills of {times.n:,} resting orders by distance from the mid: {'; '.join(words)}."
    )
