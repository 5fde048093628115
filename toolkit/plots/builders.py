"""Builders: where their users trade, how many users stay, what a user pays."""

from typing import Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from toolkit.builders import LifetimeValue
from toolkit.plots import axes, formats, matrix, style
from toolkit.plots.result_checks import draws_result
from toolkit.plots.themes import Theme, ThemeName

_ROUTES: Final = (
    ("routed_usd", "through the builder", None),
    ("elsewhere_usd", "through another one", "///"),
    ("direct_usd", "direct", "..."),
    ("unroutable_usd", "could not be routed", "xxx"),
)
_MOST = 20
_AXIS_HEIGHT = 3.0  # the axis is at most this many times as high as the curve


@draws_result
def builder_routing(
    routing: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
    """Draw how the volume of a builder's users was routed.

    Parameters
    ----------
    routing : DataFrame
        `tk.builders.routing` by one column (``"user"``, ``"coin"``, ``"week"``, ...).
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        A stacked bar in USD for each row, at most 20. Periods are in the order of time. Other
        groups are sorted by volume, and the largest are drawn.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"coin": ["BTC"], "volume": [3.0], "routed_usd": [2.0],
    ...     "elsewhere_usd": [1.0], "direct_usd": [0.0], "unroutable_usd": [0.0]})
    >>> [text.get_text() for text in builder_routing(rows).get_yticklabels()]
    ['BTC']
    """
    rows = _name_rows(routing) if len(routing) else routing
    size = (7.2, 1.6 + 0.27 * max(4, len(rows)))
    ax, colours = style.new_axes(ax, theme, transparent, size)
    _draw_routing(ax, colours, rows) if len(rows) else style.draw_no_data(ax, colours)
    return style.finish_axes(ax, colours, _describe_routing(rows), routing)


@draws_result
def builder_activity(
    activity: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
    """Draw the new and the returning users of a builder over time.

    Parameters
    ----------
    activity : DataFrame
        `tk.builders.activity` of one builder.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        A bar for each period: users who came back, and new users above them. The number above is
        the share of the users of the period before that came back; with more than 20 periods, there
        are no numbers. Periods that are not complete are hatched.

    Raises
    ------
    ValueError
        If there are several builders.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"builder": "0xb", "new": [2, 1], "returning": [0, 1],
    ...     "time": pd.date_range("2025-09-01", periods=2, freq="W-MON", tz="UTC"),
    ...     "retention": [float("nan"), 0.5], "volume_share": [0.5, 0.6], "complete": True})
    >>> builder_activity(rows).get_ylabel()
    'active users, share that came back'
    """
    ax, colours = style.new_axes(ax, theme, transparent)
    if not len(activity):
        style.draw_no_data(ax, colours)
        return style.finish_axes(ax, colours, "Users of a builder: no data.", activity)
    if len(builders := activity[["builder"]].drop_duplicates()) > 1:
        raise axes.several_parts_error("builder_activity", "builder", "activity", builders)
    rows = activity.sort_values("time", ignore_index=True)
    _draw_activity(ax, colours, rows)
    last = rows.iloc[-1]
    words = (
        f"Users of a builder in {len(rows)} periods: {int(last['returning'])} returning and "
        f"{int(last['new'])} new in the last one; its share of the routed volume is "
        f"{last['volume_share']:.0%}."
    )
    return style.finish_axes(ax, colours, words, activity)


def _draw_activity(ax: Axes, theme: Theme, rows: pd.DataFrame) -> None:
    places = np.arange(len(rows))
    returning, new = (rows[name].to_numpy(np.float64) for name in ("returning", "new"))
    is_open = ~rows["complete"].to_numpy(bool)
    bars = (("returning", theme.good, returning, 0.0), ("new", theme.accent, new, returning))
    for label, colour, height, bottom in bars:
        ax.bar(places, height, bottom=bottom, width=0.74, color=colour, label=label)
    if is_open.any():
        whole = (returning + new)[is_open]
        ax.bar(
            places[is_open], whole, width=0.74, fill=False, hatch="///",
            edgecolor=theme.background, linewidth=0,
        )  # fmt: skip
    has_shares = len(rows) <= _MOST
    for place, total, share in zip(places, returning + new, rows["retention"], strict=True):
        if share == share and has_shares:
            axes.label_point(ax, theme, f"{share:.0%}", (place, total), (0, 3), fontsize=8)
    every = max(1, -(-len(rows) // 10))
    ax.set_xticks(places[::every], rows["time"].dt.strftime("%d %b")[::every])
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_ylabel("active users, share that came back" if has_shares else "active users")
    note = "; hatched: not complete" if is_open.any() else ""
    ax.set_xlabel(f"start of the period, UTC{note}")
    ax.set_ylim(0, 1.12 * max(1.0, float((returning + new).max())))
    axes.add_legend(ax, theme, ncols=2)


def _name_rows(routing: pd.DataFrame) -> pd.DataFrame:
    key = routing.iloc[:, 0]
    if key.name == "fills":
        return routing.assign(name="all")
    if pd.api.types.is_datetime64_any_dtype(key.dtype):
        pattern = "%d %b, %H:%M" if key.name == "hour" else "%d %b"
        return routing.assign(name=key.dt.strftime(pattern)).iloc[::-1].tail(_MOST)
    rows = routing.assign(name=[formats.short_name(str(value)) for value in key])
    return rows.nlargest(_MOST, "volume").iloc[::-1]


def _draw_routing(ax: Axes, theme: Theme, rows: pd.DataFrame) -> None:
    at = axes.name_rows(ax, theme, rows["name"].tolist())
    left = np.zeros(len(rows))
    colours = (theme.good, theme.bad, theme.accent, theme.muted)
    for (column, label, hatch), colour in zip(_ROUTES, colours, strict=True):
        width = rows[column].to_numpy(dtype="float64")
        ax.barh(
            at,
            width,
            left=left,
            height=0.64,
            color=colour,
            hatch=hatch,
            edgecolor=theme.background,
            linewidth=0,
            label=label,
        )
        left = left + width
    ax.set_xlabel("volume, USD")
    axes.set_usd_ticks(ax.xaxis)
    ax.xaxis.set_major_locator(MaxNLocator(6))
    axes.add_legend(ax, theme, ncols=2)


def _describe_routing(rows: pd.DataFrame) -> str:
    if not len(rows):
        return "Where the users of a builder trade: no data."
    total = rows["volume"].sum()
    parts = [f"{label} {rows[column].sum() / total:.0%}" for column, label, _ in _ROUTES if total]
    return (
        f"Where the users of a builder traded {formats.usd_amount(total)} USD: {', '.join(parts)}."
    )


@draws_result
def builder_cohorts(
    cohorts: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
    """Draw the share of each week's new users that comes back.

    Parameters
    ----------
    cohorts : DataFrame
        `tk.builders.cohorts`.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        A row for each cohort with its number of users, a column for each week since. Shades and
        numbers are the share of users that traded in that week. A week that is not over is
        hatched. An asterisk means that the users may have started before the data begins.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"cohort": pd.to_datetime(["2025-09-01"], utc=True), "age": [0],
    ...     "users": [4], "retention": [1.0], "complete": [True], "earlier": [False]})
    >>> [text.get_text() for text in builder_cohorts(rows).get_yticklabels()]
    ['01 Sep 2025 (4)']
    """
    starts = cohorts["cohort"].nunique() if len(cohorts) else 0
    ages = int(cohorts["age"].max()) + 1 if starts else 0
    size = (max(5.0, 2.4 + 0.55 * ages), 1.3 + 0.36 * max(2, starts))
    ax, colours = style.new_axes(ax, theme, transparent, size)
    _draw_cohorts(ax, colours, cohorts) if starts else style.draw_no_data(ax, colours)
    return style.finish_axes(ax, colours, _describe_cohorts(cohorts), cohorts)


def _draw_cohorts(ax: Axes, theme: Theme, cohorts: pd.DataFrame) -> None:
    wide = {
        name: cohorts.assign(complete=cohorts["complete"].astype("float64")).pivot(
            index="cohort", columns="age", values=name
        )
        for name in ("retention", "complete")
    }
    share, is_over = (table.to_numpy(dtype="float64") for table in wide.values())
    texts = np.array(
        [
            [
                matrix.UNKNOWN if over == 0 else "" if value != value else f"{value:.0%}"
                for value, over in zip(shares, overs, strict=True)
            ]
            for shares, overs in zip(share, is_over, strict=True)
        ],
        dtype=object,
    )
    matrix.draw_matrix(ax, theme, share, texts)
    first = cohorts.drop_duplicates("cohort").sort_values("cohort")
    rows = [
        f"{row.cohort:%d %b %Y}{'*' if row.earlier else ''} ({row.users:,})"
        for row in first.itertuples()
    ]
    matrix.name_rows_and_columns(ax, rows, [str(age) for age in wide["retention"].columns])
    ax.set_ylabel("first week (users)")
    note = "; * or earlier" if first["earlier"].any() else ""
    ax.set_xlabel(f"weeks since; hatched: not over yet{note}")


def _describe_cohorts(cohorts: pd.DataFrame) -> str:
    if not len(cohorts):
        return "Cohorts of a builder's users: no data."
    known = cohorts[cohorts["complete"] & (cohorts["age"] > 0)]
    share = (known["retention"] * known["users"]).sum() / max(known["users"].sum(), 1)
    users = cohorts.loc[cohorts["age"] == 0, "users"].sum()
    later = f"{share:.0%} of them trade in a later week" if len(known) else "no later week is over"
    return f"{users:,} users of a builder by their first week: {later}."


@draws_result
def lifetime_value(
    value: LifetimeValue,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
    """Draw the revenue of a builder from a user, by weeks since the first fill.

    Parameters
    ----------
    value : LifetimeValue
        `tk.builders.lifetime_value`.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        Cumulative mean revenue in USD, with its interval and the number of users that were
        observed for that long. The curve ends where no user was. An interval of many times the
        mean is cut off by the axis.

    Examples
    --------
    >>> import pandas as pd
    >>> from toolkit.builders import lifetime_value as estimate
    >>> fills = pd.DataFrame({
    ...     "user": ["a", "b"], "coin": "BTC", "px": 100.0, "sz": 1.0, "side": "B", "fee": 0.2,
    ...     "time": pd.to_datetime(["2025-09-01", "2025-09-02"], utc=True),
    ...     "builder": "0xb", "builder_fee": [0.1, 0.3]})
    >>> lifetime_value(estimate(fills, "0xb", until="2025-09-16")).get_ylabel()
    'revenue a user, USD'
    """
    ax, colours = style.new_axes(ax, theme, transparent)
    curve = value.curve[value.curve["value"].notna()]
    _draw_value(ax, colours, curve) if len(curve) else style.draw_no_data(ax, colours)
    words = _describe_value(curve)
    return style.finish_axes(ax, colours, words, value.curve)


def _draw_value(ax: Axes, theme: Theme, curve: pd.DataFrame) -> None:
    weeks = np.concatenate([[0], curve["weeks"]])
    value, low, high = (np.concatenate([[0.0], curve[n]]) for n in ("value", "low", "high"))
    ax.fill_between(weeks, low, high, color=theme.good, alpha=0.18, linewidth=0)
    ax.plot(weeks, value, "-o", color=theme.good, markersize=4)
    for week, users, top in zip(curve["weeks"], curve["at_risk"], curve["value"], strict=True):
        axes.label_point(
            ax, theme, f"{users:,}", (week, top), (0, 7), fontsize=8, color=theme.muted
        )
    ax.set_xlim(0, float(weeks[-1]) + 0.3)
    # The band of two or three users is very wide: it is cut off, or the curve would look flat.
    ax.set_ylim(0, min(ax.get_ylim()[1], _AXIS_HEIGHT * value.max()) if value.max() > 0 else None)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("weeks since the first routed fill; numbers: users with that many weeks")
    ax.set_ylabel("revenue a user, USD")


def _describe_value(curve: pd.DataFrame) -> str:
    if not len(curve):
        return "Revenue of a builder from a user: no data."
    last = curve.iloc[-1]
    return (
        f"Revenue of a builder from a user: {formats.usd_amount(last['value'])} USD within "
        f"{int(last['weeks'])} weeks."
    )
