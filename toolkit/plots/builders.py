"""Builders: where their users' trading goes, who stays, what a user brings."""

from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from toolkit.plots import cells, style
from toolkit.plots.style import Theme, ThemeName

if TYPE_CHECKING:
    from toolkit.builders import LifetimeValue

_WAYS: Final = (
    ("routed_usd", "through the builder", None),
    ("elsewhere_usd", "through another one", "///"),
    ("direct_usd", "direct", "..."),
    ("unroutable_usd", "could not be routed", "xxx"),
)
_MOST = 20
_ROOM = 3.0  # heights of a curve that its axis shows at most


def builder_routing(
    routing: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw where the volume of a builder's users went.

    Parameters
    ----------
    routing : DataFrame
        `tk.builders.routing` by one column (``"user"``, ``"coin"``, ``"week"``, ...).
    ax : Axes, optional
        Where to draw; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        A stacked bar in USD for each row; times in their order, others by volume, the 20
        largest.

    Examples
    --------
    >>> rows = pd.DataFrame({"coin": ["BTC"], "volume": [3.0], "routed_usd": [2.0],
    ...     "elsewhere_usd": [1.0], "direct_usd": [0.0], "unroutable_usd": [0.0]})
    >>> [text.get_text() for text in builder_routing(rows).axes[0].get_yticklabels()]
    ['BTC']
    """
    colours = style.theme_of(theme)
    rows = _named(routing) if len(routing) else routing
    size = (7.2, 1.6 + 0.27 * max(4, len(rows)))
    figure, ax = style.canvas(colours, ax=ax, size=size, transparent=transparent)
    _draw_routing(ax, colours, rows) if len(rows) else style.nothing(ax, colours)
    return style.finish(figure, ax, colours, _routing_words(rows), style.is_simulated(routing))


def _named(routing: pd.DataFrame) -> pd.DataFrame:
    key = routing.iloc[:, 0]
    if key.name == "fills":
        return routing.assign(name="all")
    if pd.api.types.is_datetime64_any_dtype(key.dtype):
        pattern = "%d %b, %H:%M" if key.name == "hour" else "%d %b"
        return routing.assign(name=key.dt.strftime(pattern)).iloc[::-1].tail(_MOST)
    made = routing.assign(name=[_short(str(one)) for one in key])
    return made.nlargest(_MOST, "volume").iloc[::-1]


def _short(name: str) -> str:
    return f"{name[:6]}...{name[-4:]}" if name[:2] == "0x" and len(name) > 14 else name


def _draw_routing(ax: Axes, theme: Theme, rows: pd.DataFrame) -> None:
    style.dress(ax, theme, grid="x")
    at = np.arange(len(rows))
    left = np.zeros(len(rows))
    colours = (theme.good, theme.bad, theme.accent, theme.muted)
    for (column, label, hatch), colour in zip(_WAYS, colours, strict=True):
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
    ax.set_yticks(at, rows["name"].tolist(), parse_math=False)
    ax.set_ylim(-0.7, len(rows) - 0.3)
    ax.set_xlabel("volume, USD")
    style.usd_axis(ax.xaxis.set_major_formatter)
    ax.xaxis.set_major_locator(MaxNLocator(6))
    style.legend(ax, theme, ncols=4)


def _routing_words(rows: pd.DataFrame) -> str:
    if not len(rows):
        return "Where a builder's users trade: no data."
    total = rows["volume"].sum()
    parts = [f"{label} {rows[column].sum() / total:.0%}" for column, label, _ in _WAYS if total]
    return f"Where a builder's users traded {style.usd(total)} USD: {', '.join(parts)}."


def builder_cohorts(
    cohorts: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw how many of each week's new users come back.

    Parameters
    ----------
    cohorts : DataFrame
        `tk.builders.cohorts`.
    ax : Axes, optional
        Where to draw; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        A row for each cohort with its size, a column for each week since; shades and figures
        are the share that traded in that week. Hatched: the week is not over. An asterisk: the
        users may have come before the data begins.

    Examples
    --------
    >>> rows = pd.DataFrame({"cohort": pd.to_datetime(["2025-09-01"], utc=True), "age": [0],
    ...     "users": [4], "retention": [1.0], "complete": [True], "earlier": [False]})
    >>> [text.get_text() for text in builder_cohorts(rows).axes[0].get_yticklabels()]
    ['01 Sep 2025 (4)']
    """
    colours = style.theme_of(theme)
    starts = cohorts["cohort"].nunique() if len(cohorts) else 0
    ages = int(cohorts["age"].max()) + 1 if starts else 0
    size = (max(5.0, 2.4 + 0.55 * ages), 1.6 + 0.36 * max(3, starts))
    figure, ax = style.canvas(colours, ax=ax, size=size, transparent=transparent)
    _draw_cohorts(ax, colours, cohorts) if starts else style.nothing(ax, colours)
    return style.finish(figure, ax, colours, _cohort_words(cohorts), style.is_simulated(cohorts))


def _draw_cohorts(ax: Axes, theme: Theme, cohorts: pd.DataFrame) -> None:
    wide = {
        name: cohorts.assign(complete=cohorts["complete"].astype("float64")).pivot(
            index="cohort", columns="age", values=name
        )
        for name in ("retention", "complete")
    }
    share, over = (one.to_numpy(dtype="float64") for one in wide.values())
    texts = np.array(
        [
            ["..." if done == 0 else "" if kept != kept else f"{kept:.0%}" for kept, done in pairs]
            for pairs in (zip(a, b, strict=True) for a, b in zip(share, over, strict=True))
        ],
        dtype=object,
    )
    cells.shaded(ax, theme, share, texts)
    first = cohorts.drop_duplicates("cohort").sort_values("cohort")
    rows = [
        f"{row.cohort:%d %b %Y}{'*' if row.earlier else ''} ({row.users:,})"
        for row in first.itertuples()
    ]
    cells.names(ax, rows, [str(age) for age in wide["retention"].columns])
    ax.set_ylabel("first week (users)")
    note = "; * or earlier" if first["earlier"].any() else ""
    ax.set_xlabel(f"weeks since; hatched: not over yet{note}")


def _cohort_words(cohorts: pd.DataFrame) -> str:
    if not len(cohorts):
        return "Cohorts of a builder's users: no data."
    known = cohorts[cohorts["complete"] & (cohorts["age"] > 0)]
    kept = (known["retention"] * known["users"]).sum() / max(known["users"].sum(), 1)
    users = cohorts.loc[cohorts["age"] == 0, "users"].sum()
    said = f"{kept:.0%} of them trade in a later week" if len(known) else "no later week is over"
    return f"{users:,} users of a builder by the week they came in: {said}."


def lifetime_value(
    value: "LifetimeValue",
    *,
    ax: Axes | None = None,
    theme: ThemeName = "light",
    transparent: bool = False,
) -> Figure:
    """Draw what a user brings a builder, by weeks.

    Parameters
    ----------
    value : LifetimeValue
        `tk.builders.lifetime_value`.
    ax : Axes, optional
        Where to draw; a new figure when not given.
    theme : {"light", "dark"}
        Colours for light or dark surroundings.
    transparent : bool
        Leave out the background of a new figure.

    Returns
    -------
    Figure
        Mean revenue in USD, cumulative, with its interval, and how many users were watched so
        long. It ends where nobody was. An interval of many times the mean runs off the axis.

    Examples
    --------
    >>> from toolkit.builders import lifetime_value as estimate
    >>> fills = pd.DataFrame({
    ...     "user": ["a", "b"], "coin": "BTC", "px": 100.0, "sz": 1.0, "side": "B", "fee": 0.2,
    ...     "time": pd.to_datetime(["2025-09-01", "2025-09-02"], utc=True),
    ...     "builder": "0xb", "builder_fee": [0.1, 0.3]})
    >>> lifetime_value(estimate(fills, "0xb", until="2025-09-16")).axes[0].get_ylabel()
    'revenue a user, USD'
    """
    colours = style.theme_of(theme)
    figure, ax = style.canvas(colours, ax=ax, transparent=transparent)
    curve = value.curve[value.curve["value"].notna()]
    _draw_value(ax, colours, curve) if len(curve) else style.nothing(ax, colours)
    words = _value_words(curve)
    return style.finish(figure, ax, colours, words, style.is_simulated(value.curve))


def _draw_value(ax: Axes, theme: Theme, curve: pd.DataFrame) -> None:
    weeks = np.concatenate([[0], curve["weeks"]])
    value, low, high = (np.concatenate([[0.0], curve[n]]) for n in ("value", "low", "high"))
    ax.fill_between(weeks, low, high, color=theme.good, alpha=0.18, linewidth=0)
    ax.plot(weeks, value, "-o", color=theme.good, markersize=4)
    for week, users, top in zip(curve["weeks"], curve["at_risk"], curve["value"], strict=True):
        ax.annotate(
            f"{users:,}",
            (week, top),
            xytext=(0, 7),
            textcoords="offset points",
            ha="center",
            fontsize=8,
            color=theme.muted,
        )
    ax.set_xlim(0, float(weeks[-1]) + 0.3)
    # Of two or three users little is known: their band runs off, or the curve would lie flat.
    ax.set_ylim(0, min(ax.get_ylim()[1], _ROOM * value.max()) if value.max() > 0 else None)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("weeks since the first routed fill; figures: users watched so long")
    ax.set_ylabel("revenue a user, USD")


def _value_words(curve: pd.DataFrame) -> str:
    if not len(curve):
        return "What a user brings a builder: no data."
    last = curve.iloc[-1]
    return (
        f"What a user brings a builder: {style.usd(last['value'])} USD within "
        f"{int(last['weeks'])} weeks."
    )
