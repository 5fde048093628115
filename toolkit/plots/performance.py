"""Performance: growth and drawdown, a calendar of returns, rankings of accounts."""

from typing import Any, Final, overload

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from toolkit.performance import Skill
from toolkit.plots import axes, ranking_rows, style, themes
from toolkit.plots.formats import MINUS, WEEKDAYS
from toolkit.plots.result_checks import draws_result
from toolkit.plots.themes import Theme, ThemeName

_MAX_LABELLED_WEEKS: Final = 9
_RATIOS: Final = {"sharpe": "Sharpe ratio per year", "sortino": "Sortino ratio per year"}
_MAX_RANKED: Final = 30


@overload
def growth_curve(
    returns: pd.DataFrame,
    *,
    ax: None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Figure: ...


@overload
def growth_curve(
    returns: pd.DataFrame, *, ax: Axes, theme: ThemeName = "auto", transparent: bool = False
) -> Axes: ...


@draws_result
def growth_curve(
    returns: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Figure | Axes:
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
    curves = _split_accounts(returns)
    figure, panels, colours = style.new_panels(
        ax, theme, transparent, size=(7.2, 4.4), ratios=(2.6, 1) if curves else (1,)
    )
    upper, *others = panels
    if curves:
        _draw_growth(upper, others[0] if others else None, colours, curves)
    else:
        style.draw_no_data(upper, colours)
    style.finish_axes(upper, colours, _describe_growth(curves), returns)
    return upper if figure is None else figure


@draws_result
def return_calendar(
    returns: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
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
    if "user" in returns.columns and returns["user"].nunique() > 1:
        users = returns[["user"]].drop_duplicates()
        raise axes.several_parts_error("return_calendar", "account", "returns", users)
    days = returns["time"].dt.tz_convert("UTC").dt.normalize() if len(returns) else None
    if days is not None and days.duplicated().any():
        raise ValueError('return_calendar draws days. Pass tk.performance.returns(curve, by="day")')
    ax, colours = style.new_axes(ax, theme, transparent, (7.2, 2.5))
    if days is None:
        style.draw_no_data(ax, colours)
    else:
        _draw_calendar(ax, colours, days, returns["return_"].astype("float64"))
    return style.finish_axes(ax, colours, _describe_days(returns), returns)


@draws_result
def leaderboard(
    ranking: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
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
    height = max(1.6, 0.26 * len(rows) + 0.9)
    ax, colours = style.new_axes(ax, theme, transparent, (7.2, height))
    if rows.empty:
        style.draw_no_data(ax, colours)
        return style.finish_axes(ax, colours, "Leaderboard: no data.", ranking)
    style.style_axes(ax, colours, "x")
    name = str(rows["figure"].iloc[0])
    values, low, high = (rows[key].to_numpy(np.float64) for key in ("value", "low", "high"))
    has_interval = bool(np.isfinite([low[0], high[0]]).all())
    if has_interval:
        ax.axvspan(low[0], high[0], color=colours.grid, alpha=0.5, linewidth=0)
    ranking_rows.draw_intervals(ax, rows, "value", colours.good)
    _name_accounts(ax, colours, rows)
    is_least = ranking.attrs.get("toolkit", {}).get("ascending", False)
    label = f"{_RATIOS.get(name, name.replace('_', ' '))} with its interval"
    ax.set_xlabel(f"{label}; the lowest is first" if is_least else label)
    words = (
        f"Leaderboard by {name}: {len(rows)} accounts, the {'lowest' * is_least or 'best'} "
        f"{_short_name(rows['user'].iloc[0])} with {values[0]:.3g}, "
        f"{f'interval {low[0]:.3g} to {high[0]:.3g}' if has_interval else 'without an interval'}."
    )
    return style.finish_axes(ax, colours, words, ranking)


@draws_result
def skill(
    skill: Skill, *, ax: Axes | None = None, theme: ThemeName = "auto", transparent: bool = False
) -> Axes:
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
    rows = table[table["shrunk"].notna()].head(_MAX_RANKED)
    height = max(1.9, 0.26 * len(rows) + 1.2)
    ax, colours = style.new_axes(ax, theme, transparent, (7.2, height))
    if rows.empty:
        style.draw_no_data(ax, colours)
        return style.finish_axes(ax, colours, "Skill: no data.", table)
    style.style_axes(ax, colours, "x")
    _, mean, low, high = next(skill.params.itertuples(index=False, name=None))
    ax.axvspan(low, high, color=colours.grid, alpha=0.5, linewidth=0)
    ax.axvline(mean, color=colours.muted, linewidth=0.8, linestyle="--", label="mean of all")
    ranking_rows.draw_measured(ax, colours, rows["value"])
    ranking_rows.draw_intervals(ax, rows, "shrunk", colours.good, "after shrinkage")
    _name_accounts(ax, colours, rows)
    name = "Sharpe ratio per year" if skill.measure == "sharpe" else "mean return per year"
    ax.set_xlabel(name)
    axes.add_legend(ax, colours, ncols=3)
    best = rows.iloc[0]
    words = (
        f"Skill of {len(rows)} accounts, {name}: the best {_short_name(best['user'])} with "
        f"{best['value']:.3g} measured and {best['shrunk']:.3g} after shrinkage "
        f"({best['low']:.3g} to {best['high']:.3g}); mean of all accounts {mean:.3g}."
    )
    return style.finish_axes(ax, colours, words, table)


def _name_accounts(ax: Axes, theme: Theme, rows: pd.DataFrame) -> None:
    """Name the rows by rank and account; draw the line between gain and loss."""
    ax.axvline(0, color=theme.muted, linewidth=0.8)
    pairs = zip(rows["rank"], rows["user"], strict=True)
    ranking_rows.name_ranks(ax, [f"{rank}  {_short_name(user)}" for rank, user in pairs])
    ax.set_ylabel("rank and account")


def _split_accounts(returns: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the rows of each account in the order of time."""
    if not len(returns):
        return {}
    rows = returns.sort_values("time", kind="stable")
    if "user" not in rows.columns:
        return {"": rows}
    curves = {_short_name(user): each for user, each in rows.groupby("user", sort=False)}
    axes.check_account_count(len(curves))
    return curves


def _short_name(user: Any) -> str:
    text = str(user)
    return text if len(text) <= 13 else f"{text[:6]}…{text[-4:]}"


def _step_edges(rows: pd.DataFrame, name: str, before: float) -> tuple[list[Any], Any]:
    """Return times and values from the start of the first period on: values are of period ends."""
    times = rows["time"].dt.tz_convert("UTC")
    step = times.diff().min() if len(rows) > 1 else pd.Timedelta(days=1)
    edges = [times.iloc[0], *(times + step)]
    values = np.concatenate([[before], rows[name].to_numpy(np.float64)])
    return [edge.to_pydatetime() for edge in edges], values


def _draw_growth(
    ax: Axes, lower: Axes | None, theme: Theme, curves: dict[str, pd.DataFrame]
) -> None:
    """Draw the growth of each account, and its drawdown in the panel below."""
    for number, (name, rows) in enumerate(curves.items()):
        line = axes.line_style(theme, number)
        look: dict[str, Any] = {"color": line.colour, "linestyle": line.dashes}
        times, growth = _step_edges(rows, "growth", 1.0)
        ax.plot(times, growth - 1, label=name, **look)
        if lower is None:
            continue
        times, fall = _step_edges(rows, "drawdown", 0.0)
        if len(curves) == 1:
            look["color"] = theme.bad
            lower.fill_between(times, fall, 0, color=theme.bad, alpha=0.25, linewidth=0)
        lower.plot(times, fall, linewidth=1.2, **look)
    first = min(rows["time"].iloc[0] for rows in curves.values())
    last = max(rows["time"].iloc[-1] for rows in curves.values())
    for panel in (ax,) if lower is None else (ax, lower):
        axes.add_zero_line(panel, theme)
        panel.margins(x=0.01, y=0.1)
        panel.yaxis.set_major_formatter(FuncFormatter(_percent_tick))
        axes.set_time_axis(panel, first, last)
    ax.set_ylabel("return since the beginning")
    if len(curves) > 1:
        axes.add_legend(ax, theme, ncols=3)
    if lower is not None:
        ax.set_xlabel("")
        lower.set_ylabel("drawdown")


def _percent_tick(value: float, _: int | None = None) -> str:
    return f"{100 * value:.3g} %".replace("-", MINUS)


def _draw_calendar(
    ax: Axes, theme: Theme, days: "pd.Series[Any]", values: "pd.Series[Any]"
) -> None:
    first = days.min() - pd.Timedelta(days=int(days.min().weekday()))
    places = ((days - first) / pd.Timedelta(days=1)).to_numpy().astype(int)
    weeks = int(places.max()) // 7 + 1
    grid = np.full((7, weeks), np.nan)
    grid[places % 7, places // 7] = values.to_numpy()
    most = float(np.nanmax(np.abs(grid))) if np.isfinite(grid).any() else 1.0
    shades = themes.colour_map(theme, "bad", "background", "good")
    ax.grid(False)
    ax.spines["bottom"].set_visible(False)
    ax.pcolormesh(
        np.arange(weeks + 1) - 0.5, np.arange(8) - 0.5, np.ma.masked_invalid(grid), cmap=shades,
        vmin=-(most or 1), vmax=most or 1, edgecolors=theme.background, linewidth=1.5,
    )  # fmt: skip
    ax.set_xlim(-0.5, weeks - 0.5)
    ax.set_ylim(6.5, -0.5)
    ax.set_yticks(range(7), WEEKDAYS)
    starts = [first + pd.Timedelta(days=7 * week) for week in range(weeks)]
    every = max(1, -(-weeks // 10))
    ax.set_xticks(range(0, weeks, every), [f"{day:%d %b}" for day in starts[::every]])
    ax.set_xlabel("week from Monday, UTC")
    ax.set_ylabel("day of the week")
    if weeks > _MAX_LABELLED_WEEKS:
        axes.set_title(ax, theme, f"shades from {MINUS}{most:.1%} to {most:.1%} a day", right=True)
        return
    for (row, column), value in np.ndenumerate(grid):
        if np.isfinite(value):
            text = f"{100 * value:+.2f}".replace("-", MINUS)
            shade = abs(value) / (most or 1)
            colour = theme.background if shade > 0.65 else theme.text
            ax.text(column, row, text, ha="center", va="center", fontsize=8, color=colour)
    axes.set_title(ax, theme, "return of a day, %")


def _describe_growth(curves: dict[str, pd.DataFrame]) -> str:
    if not curves:
        return "Return over time: no data."
    parts = [
        f"{name or 'the account'} {rows['growth'].iloc[-1] - 1:+.1%}, "
        f"deepest drawdown {rows['drawdown'].min():.1%}"
        for name, rows in curves.items()
    ]
    return f"Return over time: {'; '.join(parts)}."


def _describe_days(returns: pd.DataFrame) -> str:
    known = returns["return_"].dropna() if len(returns) else returns
    if known.empty:
        return "Calendar of returns: no data."
    return (
        f"Calendar of returns: {len(known)} days, {int((known > 0).to_numpy().sum())} with a gain, "
        f"best {known.max():+.2%}, worst {known.min():+.2%}."
    )
