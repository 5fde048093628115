"""Axes: ticks of time and USD, legend, labels, and the line styles of several groups."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import matplotlib.dates as mdates
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from toolkit.arrays import Ints
from toolkit.plots.formats import MINUS
from toolkit.plots.style import style_axes
from toolkit.plots.themes import SETTINGS, Theme

MAX_LINES: Final = 6
"""How many lines of one figure can be told apart."""

PERIOD_LENGTHS: Final = {
    "hour": pd.Timedelta(hours=1),
    "day": pd.Timedelta(days=1),
    "week": pd.Timedelta(days=7),
}
"""Column of a result by time -> length of its periods."""

# Formats of years, months, days, hours, minutes and seconds; and the formats of the ticks at which
# the next longer unit begins.
_TICKS: Final = ["%Y", "%b", "%d %b", "%H:%M", "%H:%M", "%H:%M:%S"]
_FIRST_TICKS: Final = ["", "%Y", "%d %b", "%d %b", "%H:%M", "%H:%M"]


class LineStyle(NamedTuple):
    """Colour, dashes and marker of one line."""

    colour: str
    dashes: str
    marker: str
    is_hollow: bool


def line_style(theme: Theme, number: int) -> LineStyle:
    """Return the style of the line with a number from 0 to 5."""
    colours = (theme.good, theme.bad, theme.accent, theme.fourth, theme.fifth, theme.text)
    dashes, markers = ("-", "--", "-.", ":", "-", "--"), ("o", "s", "^", "D", "v", "P")
    return LineStyle(colours[number], dashes[number], markers[number], number % 2 == 1)


def group_name(keys: object) -> str:
    """Return the key of a pandas group as text."""
    return ", ".join(map(str, keys)) if isinstance(keys, tuple) else str(keys)


def check_drawable(count: int, most: int, what: str) -> None:
    """Raise ValueError if a figure would show too many coins or groups."""
    if count > most:
        raise ValueError(f"at most {most} {what} can be drawn, not {count}. Select fewer")


def several_parts_error(plot: str, part: str, name: str, parts: pd.DataFrame) -> ValueError:
    """Return the error for a result with several parts, if a figure draws only one of them.

    - ``plot``: function that draws the figure
    - ``part``: what it draws, such as ``"market"``
    - ``name``: its parameter that has the result
    - ``parts``: a row for each part, with the columns to select by

    >>> parts = pd.DataFrame({"coin": ["BTC", "ETH"]})
    >>> print(several_parts_error("plot", "coin", "rows", parts))
    plot draws one coin, and the result has 2. Select one, for example rows[rows['coin'] == 'BTC']
    >>> parts["amount_usd"] = [1_000.0, 5_000.0]
    >>> print(several_parts_error("plot", "size", "rows", parts).args[0].partition("example ")[2])
    rows[(rows['coin'] == 'BTC') & (rows['amount_usd'] == 1000.0)]
    """
    varying = [column for column in parts.columns if parts[column].nunique() > 1]
    words = f"{plot} draws one {part}, and the result has {len(parts) or 'several'}"
    examples = parts[varying].dropna().head(1).to_dict("records")
    if not varying or not examples:
        return ValueError(f"{words}. Select one")
    conditions = [
        f"{name}[{column!r}] == {str(value) if isinstance(value, pd.Timestamp) else value!r}"
        for column, value in examples[0].items()
    ]
    condition = conditions[0] if len(conditions) == 1 else f"({') & ('.join(conditions)})"
    return ValueError(f"{words}. Select one, for example {name}[{condition}]")


def quantile_columns(frame: pd.DataFrame) -> tuple[str, str, str] | None:
    """Return the columns of the lowest, the middle and the highest quantile, such as ``q50``."""
    names = [c for c in frame.columns if c[:1] == "q" and c[1:].replace(".", "").isdigit()]
    names.sort(key=lambda name: float(name[1:]))
    if not names:
        return None
    return names[0], min(names, key=lambda name: abs(float(name[1:]) - 50)), names[-1]


def add_legend(ax: Axes, theme: Theme, **options: Any) -> None:
    """Add a legend in one line above the axes, where it hides nothing."""
    legend = ax.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        frameon=False,
        fontsize=9,
        labelcolor=theme.text,
        borderaxespad=0.2,
        handlelength=2.2,
        columnspacing=1.3,
        **options,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def add_zero_line(ax: Axes, theme: Theme) -> None:
    """Draw the line between gain and loss."""
    ax.axhline(0, color=theme.muted, linewidth=0.8)


def set_title(ax: Axes, theme: Theme, text: str, *, right: bool = False, pad: float = 6.0) -> None:
    """Set the title of the axes, unless `use` has hidden titles.

    A dollar sign in it does not start a formula.
    """
    if not SETTINGS.titles:
        return
    ax.set_title(
        text,
        loc="right" if right else "left",
        pad=pad,
        fontsize=10,
        fontweight="bold",
        color=theme.text,
        parse_math=False,
    )


def name_rows(ax: Axes, theme: Theme, names: Sequence[str]) -> Ints:
    """Name horizontal rows from bottom to top, with a grid along x; return their heights."""
    style_axes(ax, theme, grid="x")
    ax.set_yticks(range(len(names)), names, parse_math=False)
    ax.set_ylim(-0.7, len(names) - 0.3)
    return np.arange(len(names))


def draw_net(ax: Axes, theme: Theme, net: pd.Series, at: Ints) -> None:
    """Draw a diamond at the net amount of each row, and the line between gain and loss."""
    ax.plot(
        net, at, "D", color=theme.text, markeredgecolor=theme.background, markersize=5.5,
        label="net",
    )  # fmt: skip
    ax.axvline(0, color=theme.muted, linewidth=0.8)


def label_point(
    ax: Axes, theme: Theme, text: str, point: tuple[Any, Any], offset: tuple[int, int], **style: Any
) -> None:
    """Write a text next to a point; the offset is in points."""
    options: dict[str, Any] = {"fontsize": 9, "color": theme.text, "ha": "center"} | style
    ax.annotate(text, point, xytext=offset, textcoords="offset points", **options)


def label_right_edge(ax: Axes, y: float, text: str, colour: str) -> None:
    """Write a text to the right of the axes, at a height in data coordinates."""
    ax.annotate(
        text,
        (1.0, y),
        xytext=(6, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        va="center",
        fontsize=9,
        color=colour,
        parse_math=False,
    )


def check_account_count(count: int) -> None:
    """Raise ValueError if there are more accounts than one figure can have lines."""
    if count > MAX_LINES:
        raise ValueError(
            f"this figure can show at most {MAX_LINES} accounts, not {count}. Select fewer accounts"
        )


def period_column(frame: pd.DataFrame) -> str:
    """Return the name of the column with the hours, days or weeks of a result.

    Raises
    ------
    ValueError
        If there is none.
    """
    for name in PERIOD_LENGTHS:
        if name in frame.columns:
            return name
    raise ValueError(
        "the frame has no column hour, day or week. Call the helper with "
        'by="hour", by="day" or by="week"'
    )


def set_time_axis(ax: Axes, first: pd.Timestamp, last: pd.Timestamp) -> None:
    """Set few, short dates as ticks of the x axis, and the time range as its label."""
    locator = mdates.AutoDateLocator(minticks=3, maxticks=8)
    formatter = mdates.ConciseDateFormatter(
        locator, formats=_TICKS, zero_formats=_FIRST_TICKS, show_offset=False
    )
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(formatter)
    ax.set_xlabel(f"{first:%d %b %Y} to {last:%d %b %Y}, UTC")


def set_ticks(
    axis: Axis, places: Sequence[float], text: Callable[[float, int | None], str]
) -> None:
    """Set ticks at some places only, with their texts."""
    axis.set_major_locator(FixedLocator(list(places)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(text))


def set_log_ticks(axis: Axis, text: Callable[[float], str]) -> None:
    """Set the ticks of a logarithmic axis: several of each decade if there are few decades."""
    low, high = axis.get_view_interval()
    subs = (1.0, 2.0, 5.0) if high / low < 300 else (1.0,)
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))


def set_usd_ticks(axis: Axis) -> None:
    """Set tick labels with thousands separators and a true minus sign."""
    axis.set_major_formatter(FuncFormatter(_usd_tick))


def _usd_tick(value: float, _: int | None = None) -> str:
    text = f"{value:,.0f}" if abs(value) >= 10 or value == int(value) else f"{value:,.4g}"
    return text.replace("-", MINUS)
