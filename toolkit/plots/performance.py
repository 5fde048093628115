"""Performance: growth and drawdown, a calendar of returns, rankings of accounts."""

from typing import Any, Final, Unpack, overload

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toolkit.arrays import Ints
from toolkit.performance import Skill
from toolkit.plots import axes, style
from toolkit.plots.formats import MINUS, WEEKDAYS
from toolkit.plots.style import Look, PanelLook

_MAX_LABELLED_WEEKS: Final = 9
_RATIOS: Final = {"sharpe": "Sharpe ratio per year", "sortino": "Sortino ratio per year"}
_MAX_RANKED: Final = 30


@overload
def growth_curve(returns: pd.DataFrame, *, ax: None = None, **look: Unpack[Look]) -> Figure: ...
@overload
def growth_curve(returns: pd.DataFrame, *, ax: Axes, **look: Unpack[Look]) -> Axes: ...
@style.draws_result("Return over time")
def growth_curve(returns: pd.DataFrame, **look: Unpack[PanelLook]) -> Figure | Axes:
    """Draw the compounded return of accounts over time, and the drawdown in a panel below.

    Parameters
    ----------
    returns : DataFrame
        `tk.performance.returns` of up to six accounts: ``time, growth, drawdown`` (and ``user``);
        or `tk.performance.vault_shares` of a vault.
    ax : Axes, optional
        Axes to draw the return on, without the panel below.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Figure or Axes
        A new figure with both panels; or `ax`, with the return since the beginning, in percent,
        over time (UTC). The drawdown is the distance from the highest value so far, in percent.

    Raises
    ------
    MissingColumns
        If a column is missing.
    ValueError
        If there are more than six accounts.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"time": pd.date_range("2025-09-01", periods=3, tz="UTC"),
    ...     "growth": [1.0, 1.2, 1.1], "drawdown": [0.0, 0.0, -0.083]})
    >>> len(growth_curve(rows).axes)
    2
    """
    rows = returns.sort_values("time", kind="stable")
    split = rows.groupby("user", sort=False) if "user" in rows else [("", rows)]
    curves = {_short_name(user): own for user, own in split}
    axes.check_drawable(len(curves), axes.MAX_LINES, "accounts")
    upper, *others = panels = style.open_panels(returns, look, (7.2, 4.4), heights=(2.6, 1))
    words = []
    for number, (name, own) in enumerate(curves.items()):
        line = upper.line_style(number, marks=False)
        # Values are those of the ends of periods. The first period begins without gain or loss.
        times = own["time"].dt.tz_convert("UTC")
        step = times.diff().min() if len(own) > 1 else pd.Timedelta(days=1)
        edges = [times.iloc[0], *(times + step)]
        gain = np.append(0.0, own["growth"].astype("float64") - 1)
        fall = np.append(0.0, own["drawdown"].astype("float64"))
        upper.ax.plot(edges, gain, label=name, **line)
        for lower in others:
            if len(curves) == 1:
                line["color"] = upper.theme.bad
                lower.draw_band(edges, fall, 0, upper.theme.bad, alpha=0.25)
            lower.ax.plot(edges, fall, linewidth=1.2, **line)
        words.append(
            f"{name or 'the account'} {gain[-1]:+.1%}, deepest drawdown {own['drawdown'].min():.1%}"
        )
    for panel, label in zip(panels, ("return since the beginning", "drawdown"), strict=False):
        panel.add_zero_line()
        panel.ax.margins(x=0.01, y=0.1)
        panel.set_time_axis(
            rows["time"], label,
            y_ticks=lambda share, _: f"{100 * share:.3g} %".replace("-", MINUS),
        )  # fmt: skip
    if len(curves) > 1:
        upper.add_legend(3)
    if others:
        upper.ax.set_xlabel("")
    return upper.finish(f"Return over time: {'; '.join(words)}.")


def _short_name(user: Any) -> str:
    text = str(user)
    return text if len(text) <= 13 else f"{text[:6]}…{text[-4:]}"


@style.draws_result("Calendar of returns")
def return_calendar(returns: pd.DataFrame, **look: Unpack[PanelLook]) -> Axes:
    """Draw daily returns as a calendar: one column per week, one row per day of the week.

    Parameters
    ----------
    returns : DataFrame
        `tk.performance.returns` of one account by day: ``time, return_``.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        One cell per day (UTC). Gains and losses have two colours; the scale is the same for both.
        Up to nine weeks show the return in percent in each cell. Days without a return are empty.

    Raises
    ------
    MissingColumns
        If a column is missing.
    ValueError
        If there are several accounts, or if the periods are not days.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"time": pd.date_range("2025-09-01", periods=10, tz="UTC"),
    ...     "return_": [0.01, -0.02] * 5})
    >>> return_calendar(rows).get_xlabel()
    'week from Monday, UTC'
    """
    axes.check_one_part("return_calendar", "account", "returns", returns, ["user"])
    days = returns["time"].dt.tz_convert("UTC").dt.normalize()
    if days.duplicated().any():
        raise ValueError('return_calendar draws days. Pass tk.performance.returns(curve, by="day")')
    panel = style.open_panel(returns, look, (7.2, 2.5))
    first = days.min() - pd.Timedelta(days=days.min().weekday())
    weeks = pd.date_range(first, days.max(), freq="7D")
    values, grid = returns["return_"].astype("float64"), np.full((7, len(weeks)), np.nan)
    grid[days.dt.day_of_week, (days - first).dt.days // 7] = values
    cells = pd.DataFrame(grid, WEEKDAYS, weeks.strftime("%d %b"))
    most = float(np.nan_to_num(values.abs().max()))
    texts: Any = []
    title = f"shades from {MINUS}{most:.1%} to {most:.1%} a day"
    is_labelled = len(weeks) <= _MAX_LABELLED_WEEKS
    if is_labelled:
        texts = cells.map(lambda x: "" if x != x else f"{100 * x:+.2f}".replace("-", MINUS))
        title = "return of a day, %"
    scale = ("bad", "background", "good"), -(most or 1), most or 1
    panel.draw_cells(cells, texts, *scale, gap=1.5)
    every = max(1, -(-len(weeks) // 10))
    panel.ax.set_xticks(range(0, len(weeks), every), cells.columns[::every])
    panel.label_axes("week from Monday, UTC", "day of the week")
    panel.set_title(title, right=not is_labelled)
    known = values.dropna()
    if known.empty:
        return panel.finish("Calendar of returns: no data.")
    return panel.finish(
        f"Calendar of returns: {len(known)} days, {int((known > 0).sum())} with a gain, "
        f"best {known.max():+.2%}, worst {known.min():+.2%}."
    )


@style.draws_result("Leaderboard")
def leaderboard(ranking: pd.DataFrame, **look: Unpack[PanelLook]) -> Axes:
    """Draw a figure of ranked accounts with its intervals, the best account at the top.

    Parameters
    ----------
    ranking : DataFrame
        `tk.performance.leaderboard`: ``rank, user, figure, value, low, high, n``. The first 30
        accounts are drawn.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        One row per account: the figure as a dot, its interval as a line. The band is the interval
        of the first account: accounts whose interval reaches into it do not differ clearly.

    Raises
    ------
    MissingColumns
        If a column is missing.

    Examples
    --------
    >>> import pandas as pd
    >>> ranking = pd.DataFrame({"rank": [1, 2], "user": ["0xa", "0xb"], "value": [2.0, 0.5],
    ...     "low": [1.0, -0.5], "high": [3.0, 1.5], "n": [90, 90], "figure": "sharpe"})
    >>> leaderboard(ranking).get_xlabel()
    'Sharpe ratio per year with its interval'
    """
    rows = ranking.head(_MAX_RANKED)
    panel = style.open_panel(ranking, look, (7.2, max(1.6, 0.26 * len(rows) + 0.9)))
    name, best, ends = str(rows["figure"].iloc[0]), rows.iloc[0], "without an interval"
    if np.isfinite([best["low"], best["high"]]).all():
        ends = f"interval {best['low']:.3g} to {best['high']:.3g}"
        panel.ax.axvspan(best["low"], best["high"], color=panel.theme.grid, alpha=0.5, linewidth=0)
    panel.draw_intervals(_name_accounts(panel, rows), rows, "value", panel.theme.good)
    is_least = ranking.attrs.get("toolkit", {}).get("ascending", False)
    label = f"{_RATIOS.get(name, name.replace('_', ' '))} with its interval"
    panel.label_axes(f"{label}; the lowest is first" if is_least else label)
    return panel.finish(
        f"Leaderboard by {name}: {len(rows)} accounts, the {'lowest' if is_least else 'best'} "
        f"{_short_name(best['user'])} with {best['value']:.3g}, {ends}."
    )


@style.draws_result("Skill")
def skill(skill: Skill, **look: Unpack[PanelLook]) -> Axes:
    """Draw the performance of accounts before and after shrinkage, the best account at the top.

    Parameters
    ----------
    skill : Skill
        `tk.performance.skill`. The first 30 accounts are drawn.
    ax : Axes, optional
        Axes to draw on. By default, a new figure.
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of the figure. "auto" takes the theme of `tk.plots.use`.
    transparent : bool, default False
        Whether a new figure has no background.

    Returns
    -------
    Axes
        One row per account: the measured value as a hollow dot, the value after shrinkage as a full
        dot with its interval. The vertical band is the mean of all accounts with its interval.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from toolkit import performance
    >>> noise = np.tile([0.01, -0.01], 20)
    >>> parts = [pd.DataFrame({"user": f"0x{k}", "return_": noise + k / 1000,
    ...     "time": pd.date_range("2025-09-01", periods=40, tz="UTC")}) for k in range(6)]
    >>> skill(performance.skill(pd.concat(parts))).get_xlabel()
    'Sharpe ratio per year'
    """
    table = skill.accounts
    rows = style.not_empty(table[table["shrunk"].notna()].head(_MAX_RANKED))
    panel = style.open_panel(table, look, (7.2, max(1.9, 0.26 * len(rows) + 1.2)))
    theme, mean = panel.theme, skill.params.iloc[0]
    middle = mean["estimate"]
    panel.ax.axvspan(mean["low"], mean["high"], color=theme.grid, alpha=0.5, linewidth=0)
    panel.ax.axvline(middle, color=theme.muted, linewidth=0.8, linestyle="--", label="mean of all")
    at = _name_accounts(panel, rows)
    panel.draw_measured(rows["value"])
    panel.draw_intervals(at, rows, "shrunk", theme.good, label="after shrinkage")
    name = "Sharpe ratio per year" if skill.measure == "sharpe" else "mean return per year"
    panel.label_axes(name, legend=3)
    best = rows.iloc[0]
    return panel.finish(
        f"Skill of {len(rows)} accounts, {name}: the best {_short_name(best['user'])} with "
        f"{best['value']:.3g} measured and {best['shrunk']:.3g} after shrinkage "
        f"({best['low']:.3g} to {best['high']:.3g}); mean of all accounts {middle:.3g}."
    )


def _name_accounts(panel: axes.Panel, rows: pd.DataFrame) -> Ints:
    """Name the rows by rank and account; draw the line between gain and loss."""
    names = rows["rank"].astype(str) + "  " + rows["user"].astype("str").map(_short_name)
    panel.add_zero_line(vertical=True)
    panel.ax.set_ylabel("rank and account")
    return panel.name_rows(names.tolist(), from_top=True)
