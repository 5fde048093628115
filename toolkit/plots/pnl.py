"""PnL: from closed PnL to net in steps, and cumulative over time."""

from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from toolkit.arrays import Floats
from toolkit.plots import axes, formats, style
from toolkit.plots.result_checks import draws_result
from toolkit.plots.themes import Theme, ThemeName

STEP_NAMES: Final = {
    "closed_pnl": "closed PnL",
    "trading_fee": "trading fees",
    "builder_fee": "builder fees",
    "deployer_fee": "deployer fees",
    "rebate": "rebates",
    "funding": "funding",
    "net": "net",
}


_FEE_COLUMNS: Final = ("trading_fee", "builder_fee", "deployer_fee", "rebate")


class _Bar(NamedTuple):
    label: str
    value: Any  # float or Decimal; None if it is not covered
    bottom: float
    top: float
    is_total: bool


@draws_result
def waterfall(
    attribution: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
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
    ax, colours = style.new_axes(ax, theme, transparent)
    if len(attribution) > 1 and "net" in attribution:
        texts = attribution.select_dtypes(include=["str", "category", "datetimetz"])
        groups = texts.drop(columns="covers", errors="ignore")
        raise axes.several_parts_error("waterfall", "row", "attribution", groups)
    bars = _waterfall_bars(attribution.iloc[0]) if len(attribution) else []
    _draw_waterfall(ax, colours, bars) if bars else style.draw_no_data(ax, colours)
    return style.finish_axes(ax, colours, _describe_waterfall(bars), attribution)


def _waterfall_bars(row: pd.Series) -> list[_Bar]:
    """Return the bars: each begins where the previous one ends, and the total begins at 0."""
    bars, level = [], 0.0
    for column, label in STEP_NAMES.items():
        value = row[column]
        if column == "net" and pd.isna(row["funding"]):
            label = "net, without\nfunding"
        if pd.isna(value):
            bars.append(_Bar(label, None, level, level, False))
            continue
        end = float(value) if column == "net" else level + float(value)
        start = 0.0 if column == "net" else level
        bars.append(_Bar(label, value, start, end, column == "net"))
        level = end
    return bars


def _draw_waterfall(ax: Axes, theme: Theme, bars: list[_Bar]) -> None:
    for x, bar in enumerate(bars):
        if bar.value is not None:
            height = bar.top - bar.bottom
            ax.bar(x, height, bottom=bar.bottom, width=0.62, color=_bar_colour(bar, theme))
        _label_bar(ax, theme, x, bar)
        if x + 1 < len(bars):
            begin = x + 0.31 if bar.value else x - 0.31
            ax.plot([begin, x + 0.69], [bar.top, bar.top], color=theme.muted, linewidth=0.9)
    ax.axhline(0, color=theme.muted, linewidth=0.8)
    ax.set_xticks(range(len(bars)), [bar.label for bar in bars])
    ax.set_xlim(-0.6, len(bars) - 0.4)
    _extend_y_axis(ax, bars)
    ax.spines["bottom"].set_visible(False)
    ax.set_ylabel("USD, costs and losses go down")
    axes.set_usd_ticks(ax.yaxis)


def _extend_y_axis(ax: Axes, bars: list[_Bar]) -> None:
    """Extend the y axis for the values above the bars, and below a negative total."""
    levels = [0.0, *(end for bar in bars for end in (bar.bottom, bar.top))]
    low, high = min(levels), max(levels)
    span = (high - low) or 1.0
    ax.set_ylim(low - 0.1 * span if low < 0 else 0.0, high + 0.14 * span)


def _bar_colour(bar: _Bar, theme: Theme) -> str:
    if bar.is_total:
        return theme.total
    return theme.good if bar.value >= 0 else theme.bad


def _label_bar(ax: Axes, theme: Theme, x: int, bar: _Bar) -> None:
    """Write a value above its bar, or below a negative total."""
    is_covered = bar.value is not None
    is_below = is_covered and bar.is_total and bar.top < 0
    text = formats.usd_amount(bar.value, signed=True) if is_covered else "not\ncovered"
    place, offset, side = (min, -3, "top") if is_below else (max, 3, "bottom")
    axes.label_point(
        ax, theme, text, (x, place(bar.bottom, bar.top)), (0, offset), va=side,
        fontweight="bold" if bar.is_total else "normal",
        style="normal" if is_covered else "italic",
        color=theme.text if is_covered else theme.muted,
    )  # fmt: skip


def _describe_waterfall(bars: list[_Bar]) -> str:
    if not bars:
        return "Attribution of PnL: no data."
    parts = [
        f"{' '.join(bar.label.split())} "
        + ("not covered" if bar.value is None else formats.usd_amount(bar.value, signed=True))
        for bar in bars
    ]
    return f"Waterfall of PnL in USD: {', '.join(parts)}."


class _PnlLine(NamedTuple):
    label: str
    times: list[pd.Timestamp]
    values: Floats
    colour: str
    dashes: str
    marker: str


@draws_result
def cumulative_pnl(
    attribution: pd.DataFrame,
    *,
    ax: Axes | None = None,
    theme: ThemeName = "auto",
    transparent: bool = False,
) -> Axes:
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
    ax, colours = style.new_axes(ax, theme, transparent)
    lines = _pnl_lines(attribution, colours) if len(attribution) else []
    _draw_lines(ax, colours, lines) if lines else style.draw_no_data(ax, colours)
    return style.finish_axes(ax, colours, _describe_lines(lines), attribution)


def _pnl_lines(rows: pd.DataFrame, theme: Theme) -> list[_PnlLine]:
    if "user" in rows.columns and rows["user"].nunique() > 1:
        return _account_lines(rows, theme)
    times, rows = _step_times(rows)
    gross = _running_sum(rows, ("closed_pnl",))
    after = gross + _running_sum(rows, _FEE_COLUMNS)
    lines = [
        _PnlLine("gross", times, gross, theme.good, "-", ""),
        _PnlLine("after fees", times, after, theme.bad, "--", ""),
    ]
    if rows["funding"].notna().any():
        net = after + _running_sum(rows, ("funding",))
        lines.append(_PnlLine("after fees and funding", times, net, theme.total, "-", "o"))
    return lines


def _account_lines(rows: pd.DataFrame, theme: Theme) -> list[_PnlLine]:
    """Return a line of the net for each account, in the order of the rows."""
    accounts = list(rows.groupby("user", sort=False))
    axes.check_account_count(len(accounts))
    lines = []
    for number, (user, own) in enumerate(accounts):
        times, steps = _step_times(own)
        net = _running_sum(steps, ("closed_pnl", *_FEE_COLUMNS, "funding"))
        look = axes.line_style(theme, number)
        name = formats.short_address(str(user))
        lines.append(_PnlLine(name, times, net, look.colour, look.dashes, ""))
    return lines


def _step_times(rows: pd.DataFrame) -> tuple[list[pd.Timestamp], pd.DataFrame]:
    """Return the start and the ends of the periods of rows, and the rows in their order."""
    key = axes.period_column(rows)
    rows = rows.sort_values(key, kind="stable")
    return [rows[key].iloc[0], *(rows[key] + axes.PERIOD_LENGTHS[key])], rows


def _running_sum(rows: pd.DataFrame, names: tuple[str, ...]) -> Floats:
    """Return the running sum of columns from 0, in floats also if the amounts are decimals."""
    steps = sum(rows[name].astype("float64").fillna(0.0).to_numpy() for name in names)
    return np.concatenate([[0.0], np.cumsum(steps)])


def _draw_lines(ax: Axes, theme: Theme, lines: list[_PnlLine]) -> None:
    for line in lines:
        points: Any = [time.to_pydatetime() for time in line.times]
        ax.plot(
            points,
            line.values,
            drawstyle="steps-post",
            color=line.colour,
            linestyle=line.dashes,
            linewidth=1.9 if line.marker else 1.5,
            marker=line.marker or None,
            markersize=4.5,
            markevery=max(1, len(points) // 12),
            label=f"{line.label} {formats.usd_amount(line.values[-1], signed=True)}",
        )
    ax.axhline(0, color=theme.muted, linewidth=0.8)
    ax.spines["bottom"].set_visible(False)
    ax.margins(x=0.01, y=0.08)
    ax.set_ylabel("USD, cumulative; below 0: a loss")
    axes.set_time_axis(ax, *_time_span(lines))
    axes.set_usd_ticks(ax.yaxis)
    axes.add_legend(ax, theme, ncols=3 if len(lines) <= 3 else 2)


def _time_span(lines: list[_PnlLine]) -> tuple[pd.Timestamp, pd.Timestamp]:
    return min(line.times[0] for line in lines), max(line.times[-1] for line in lines)


def _describe_lines(lines: list[_PnlLine]) -> str:
    if not lines:
        return "Cumulative PnL: no data."
    ends = ", ".join(
        f"{line.label} {formats.usd_amount(line.values[-1], signed=True)}" for line in lines
    )
    first, last = _time_span(lines)
    period = f"from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC"
    low, high = min(line.values.min() for line in lines), max(line.values.max() for line in lines)
    return (
        f"Cumulative PnL in USD {period}: it ends at {ends}; "
        f"the lines lie between {formats.usd_amount(low)} and {formats.usd_amount(high)}."
    )
