"""Builders: where their users trade, how many users stay, what a user pays."""

from typing import Any, Final, Unpack

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from toolkit.builders import LifetimeValue
from toolkit.plots import axes, formats, style

_ROUTES: Final = {
    "routed_usd": "through the builder",
    "elsewhere_usd": "through another one",
    "direct_usd": "direct",
    "unroutable_usd": "could not be routed",
}
_MOST: Final = 20
_AXIS_HEIGHT: Final = 3.0  # the axis is at most this many times as high as the curve


@style.draws_result("Where the users of a builder trade")
def builder_routing(routing: pd.DataFrame, **look: Unpack[style.PanelLook]) -> Axes:
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
    key, rows = routing.iloc[:, 0], routing
    if pd.api.types.is_datetime64_any_dtype(key.dtype):
        pattern = "%d %b, %H:%M" if key.name == "hour" else "%d %b"
        rows = rows.assign(name=key.dt.strftime(pattern)).head(_MOST)
    elif key.name == "fills":
        rows = rows.assign(name="all")
    else:
        rows = rows.assign(name=[formats.short_name(str(value)) for value in key])
        rows = rows.nlargest(_MOST, "volume")
    rows, total = rows.iloc[::-1], rows["volume"].sum()  # the first row is at the top
    panel = style.open_panel(routing, look, (7.2, 1.6 + 0.27 * max(4, len(rows))))
    theme, parts = panel.theme, rows[[*_ROUTES]].rename(columns=_ROUTES)
    panel.stack_bars(
        panel.name_rows(rows["name"].tolist()), parts,
        (theme.good, theme.bad, theme.accent, theme.muted), 0.64,
        horizontal=True, hatches=(None, "///", "...", "xxx"),
    )  # fmt: skip
    panel.ax.xaxis.set_major_locator(MaxNLocator(6))
    panel.label_axes("volume, USD", x_ticks=formats.usd_tick, legend=2)
    sums: Any = parts.sum() / total if total else {}
    words = ", ".join(f"{name} {share:.0%}" for name, share in sums.items())
    usd = formats.usd_amount(total)
    return panel.finish(f"Where the users of a builder traded {usd} USD: {words}.")


@style.draws_result("Users of a builder")
def builder_activity(activity: pd.DataFrame, **look: Unpack[style.PanelLook]) -> Axes:
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
    axes.check_one_part("builder_activity", "builder", "activity", activity, ["builder"])
    panel = style.open_panel(activity, look)
    ax, theme, rows = panel.ax, panel.theme, activity.sort_values("time", ignore_index=True)
    places, is_open = np.arange(len(rows)), ~rows["complete"].to_numpy(bool)
    panel.stack_bars(places, rows[["returning", "new"]], (theme.good, theme.accent), 0.74)
    whole = (rows["returning"] + rows["new"]).to_numpy(np.float64)
    look_of_open: Any = {"fill": False, "hatch": "///", "edgecolor": theme.background}
    ax.bar(places[is_open], whole[is_open], width=0.74, linewidth=0, **look_of_open)
    has_shares = len(rows) <= _MOST
    for place, total, share in zip(places, whole, rows["retention"], strict=True):
        if pd.notna(share) and has_shares:
            panel.label_point(f"{share:.0%}", (place, total), (0, 3), fontsize=8)
    every = max(1, -(-len(rows) // 10))
    ax.set_xticks(places[::every], rows["time"].dt.strftime("%d %b")[::every])
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    note = "; hatched: not complete" if is_open.any() else ""
    y = "active users, share that came back" if has_shares else "active users"
    panel.label_axes(f"start of the period, UTC{note}", y, legend=2)
    ax.set_ylim(0, 1.12 * max(1.0, float(whole.max())))
    last = rows.iloc[-1]
    return panel.finish(
        f"Users of a builder in {len(rows)} periods: {int(last['returning'])} returning and "
        f"{int(last['new'])} new in the last one; its share of the routed volume is "
        f"{last['volume_share']:.0%}."
    )


@style.draws_result("Cohorts of a builder's users")
def builder_cohorts(cohorts: pd.DataFrame, **look: Unpack[style.PanelLook]) -> Axes:
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
    cohorts = style.not_empty(cohorts.dropna(subset=["cohort", "age"]))
    starts, ages = cohorts["cohort"].nunique(), int(cohorts["age"].max()) + 1
    size = (max(5.0, 2.4 + 0.55 * ages), 1.3 + 0.36 * max(2, starts))
    panel = style.open_panel(cohorts, look, size)
    first = cohorts.drop_duplicates("cohort").sort_values("cohort")
    names = [
        f"{row['cohort']:%d %b %Y}{'*' if row['earlier'] else ''} ({row['users']:,})"
        for row in first.to_dict("records")
    ]
    wide = cohorts.astype({"complete": "float64"}).pivot(index="cohort", columns="age")
    share: Any = wide["retention"].set_axis(names).astype("float64")
    is_open = wide["complete"].to_numpy() == 0
    texts = share.mask(is_open).map(lambda value: "" if value != value else f"{value:.0%}")
    panel.draw_cells(share, texts, ("background", "good"), 0, 1)
    panel.hatch_cells(np.argwhere(is_open), "///", panel.theme.grid)
    note = "; * or earlier" if first["earlier"].any() else ""
    panel.label_axes(f"weeks since; hatched: not over yet{note}", "first week (users)")
    known = cohorts[cohorts["complete"] & (cohorts["age"] > 0)]
    back = (known["retention"] * known["users"]).sum() / max(known["users"].sum(), 1)
    users = cohorts.loc[cohorts["age"] == 0, "users"].sum()
    later = f"{back:.0%} of them trade in a later week" if len(known) else "no later week is over"
    return panel.finish(f"{users:,} users of a builder by their first week: {later}.")


@style.draws_result("Revenue of a builder from a user")
def lifetime_value(value: LifetimeValue, **look: Unpack[style.PanelLook]) -> Axes:
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
    panel = style.open_panel(value.curve, look)
    curve = style.not_empty(value.curve[value.curve["value"].notna()])
    ax, colour = panel.ax, panel.theme.good
    columns = ("weeks", "value", "low", "high")
    weeks, usd, low, high = (np.append(0.0, curve[name]) for name in columns)
    panel.draw_band(weeks, low, high, colour, alpha=0.18)
    ax.plot(weeks, usd, "-o", color=colour, markersize=4)
    for week, users, top in zip(weeks[1:], curve["at_risk"], usd[1:], strict=True):
        panel.label_point(f"{users:,}", (week, top), (0, 7), fontsize=8, color=panel.theme.muted)
    ax.set_xlim(0, weeks[-1] + 0.3)
    # The band of two or three users is very wide: it is cut off, or the curve would look flat.
    ax.set_ylim(0, min(ax.get_ylim()[1], _AXIS_HEIGHT * usd.max()) if usd.max() > 0 else None)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    x = "weeks since the first routed fill; numbers: users with that many weeks"
    panel.label_axes(x, "revenue a user, USD")
    return panel.finish(
        f"Revenue of a builder from a user: {formats.usd_amount(usd[-1])} USD within "
        f"{int(weeks[-1])} weeks."
    )
