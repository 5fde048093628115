"""The axes of a plot: lines, bars, cells, labels, ticks and legend in the style of all plots."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple, NoReturn

import matplotlib.dates as mdates
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, LogLocator, NullLocator

from toolkit.arrays import Ints
from toolkit.plots.figures import SETTINGS, Theme, colour_map, root_figure

MAX_LINES: Final = 6
"""How many lines of one figure can be told apart."""

INTERVAL: Final = ["estimate", "low", "high"]
"""Columns of an estimate and the ends of its interval."""

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


class Panel(NamedTuple):
    """The axes that a plot draws on, its theme, and the frame whose provenance it states."""

    ax: Axes
    theme: Theme
    frame: pd.DataFrame

    def set_style(self, grid: Literal["x", "y"] = "y") -> None:
        """Set the colours of the axes, and a light grid along one axis; hide the box."""
        ax, theme = self.ax, self.theme
        ax.set_facecolor("none")
        for side, spine in ax.spines.items():
            spine.set(visible=side == "bottom", color=theme.muted, linewidth=0.8)
        ax.tick_params(colors=theme.muted, labelcolor=theme.text, labelsize=9, length=0, pad=5)
        ax.grid(False)
        ax.grid(True, axis=grid, color=theme.grid, linewidth=0.8)
        ax.set_axisbelow(True)
        for axis in (ax.xaxis, ax.yaxis):
            axis.label.set(color=theme.text, fontsize=9)
            axis.get_offset_text().set_color(theme.muted)

    def finish(self, words: str) -> Axes:
        """Set the alternative text, mark simulated data in the corner, and return the axes."""
        simulated = is_simulated(self.frame)
        self.ax.set_label(f"{words} Simulated data: {'yes' if simulated else 'no'}.")
        figure = root_figure(self.ax)
        if simulated and not any(text.get_gid() == "simulated" for text in figure.texts):
            figure.text(
                0.99, 0.985, "simulated", ha="right", va="top", fontsize=8, style="italic",
                color=self.theme.muted, gid="simulated",
            )  # fmt: skip
        return self.ax

    def write_note(self, text: str) -> None:
        """Write a text in place of empty axes."""
        self.ax.set_axis_off()
        middle: Any = {"ha": "center", "va": "center", "transform": self.ax.transAxes}
        self.ax.text(0.5, 0.5, text, color=self.theme.muted, **middle)

    def line_style(self, number: int, *, marks: bool = True) -> dict[str, Any]:
        """Return the look of the line with a number from 0 to 5; odd ones have hollow markers."""
        colour = self.theme.groups[number]
        line = {"color": colour, "linestyle": ("-", "--", "-.", ":", "-", "--")[number]}
        face = self.theme.background if number % 2 else colour
        return line | ({"marker": "os^DvP"[number], "markerfacecolor": face} if marks else {})

    def side_style(self, number: int) -> dict[str, Any]:
        """Return the markers of one of two sides: full and hollow ones at one place are visible."""
        colour = self.theme.groups[number]
        hollow = {"marker": "s", "markersize": 7.5, "markerfacecolor": "none"}
        return {"color": colour} | (hollow if number else {"marker": "o", "markersize": 4})

    def add_legend(self, columns: int) -> None:
        """Add a legend above the axes, where it hides nothing."""
        legend = self.ax.legend(
            loc="lower left", bbox_to_anchor=(0.0, 1.0), frameon=False, fontsize=9, ncols=columns,
            labelcolor=self.theme.text, borderaxespad=0.2, handlelength=2.2, columnspacing=1.3,
        )  # fmt: skip
        for text in legend.get_texts():
            text.set_parse_math(False)

    def add_zero_line(self, *, is_edge: bool = False, vertical: bool = False) -> None:
        """Draw the line between gain and loss; it may replace the lower edge."""
        draw = self.ax.axvline if vertical else self.ax.axhline
        draw(0, color=self.theme.muted, linewidth=0.8)
        if is_edge:
            self.ax.spines["bottom"].set_visible(False)

    def set_title(self, text: str, *, right: bool = False, pad: float = 6.0) -> None:
        """Set the title of the axes, unless `use` has hidden titles.

        A dollar sign in it does not start a formula.
        """
        if SETTINGS.titles:
            self.ax.set_title(
                text, loc="right" if right else "left", pad=pad, fontsize=10, fontweight="bold",
                color=self.theme.text, parse_math=False,
            )  # fmt: skip

    def name_rows(
        self, names: Sequence[str], ends: Iterable[str] = (), *, from_top: bool = False
    ) -> Ints:
        """Name horizontal rows at both ends, with a grid along x; return their heights."""
        self.set_style(grid="x")
        self.ax.set_yticks(range(len(names)), names, parse_math=False)
        self.ax.set_ylim(*((len(names) - 0.4, -0.6) if from_top else (-0.7, len(names) - 0.3)))
        for number, text in enumerate(ends):
            self.label_right_edge(number, text)
        return np.arange(len(names))

    def draw_intervals(
        self, at: Ints, rows: pd.DataFrame, value: str, colour: str, **marks: Any
    ) -> None:
        """Draw the value of each horizontal row, and its interval."""
        self.ax.hlines(at, rows["low"], rows["high"], color=colour, linewidth=1.6)
        look: dict[str, Any] = {"marker": "o", "markersize": 5, "linestyle": ""} | marks
        self.ax.plot(rows[value], at, color=colour, **look)

    def draw_errors(self, x: Any, rows: pd.DataFrame, **options: Any) -> None:
        """Draw estimates as marks, with their intervals upwards and downwards."""
        value, low, high = rows[INTERVAL].to_numpy(np.float64).T
        reach = np.maximum(np.nan_to_num([value - low, high - value]), 0.0)
        self.ax.errorbar(x, value, yerr=reach, **options)

    def draw_measured(self, values: "pd.Series[Any]") -> None:
        """Draw measured values as hollow dots, one row each."""
        look: Any = {"color": self.theme.muted, "markerfacecolor": self.theme.background}
        self.ax.plot(values, range(len(values)), "o", **look, markersize=5, label="measured")

    def draw_net(self, x: Any, y: Any, *, vertical: bool = True) -> None:
        """Draw a diamond at each net amount, and the line between gain and loss."""
        look: Any = {"color": self.theme.text, "markeredgecolor": self.theme.background}
        self.ax.plot(x, y, "D", **look, markersize=5.5, label="net")
        self.add_zero_line(vertical=vertical)

    def draw_band(self, x: Any, low: Any, high: Any, colour: str, **options: Any) -> None:
        """Shade the interval around a line."""
        look: dict[str, Any] = {"alpha": 0.16, "linewidth": 0} | options
        self.ax.fill_between(x, low, high, color=colour, **look)

    def draw_side(self, number: int, x: Any, quantiles: Iterable[Any], label: str) -> None:
        """Draw one of two sides: the middle quantile as a line, the others as a band."""
        low, middle, high = quantiles
        line = self.line_style(number) | self.side_style(number)
        self.ax.plot(x, middle, **line, linewidth=1.8, label=label)
        self.draw_band(x, low, high, line["color"])

    def stack_bars(
        self, at: Any, parts: pd.DataFrame, colours: Iterable[Any], size: float, *,
        horizontal: bool = False, hatches: Sequence[str | None] = (), **options: Any,
    ) -> None:  # fmt: skip
        """Stack the columns of a frame as bars: to one side the amounts above 0."""
        draw: Any = self.ax.barh if horizontal else self.ax.bar
        start = "left" if horizontal else "bottom"
        options |= {"edgecolor": self.theme.background} if hatches else {}
        up, down = np.zeros(len(at)), np.zeros(len(at))
        looks = zip(parts.items(), colours, hatches or [None] * parts.shape[1], strict=False)
        for (label, column), colour, hatch in looks:
            amounts = column.fillna(0.0).to_numpy(np.float64)
            # A part of size 0 starts at 0: an edge at the end of the bar would remove its margin.
            begin = np.where(amounts > 0, up, np.where(amounts < 0, down, 0.0))
            look = {"color": colour, "hatch": hatch, "label": label, start: begin} | options
            draw(at, amounts, size, **{"linewidth": 0} | look)
            up, down = up + np.maximum(amounts, 0), down + np.minimum(amounts, 0)

    def draw_cells(
        self, values: pd.DataFrame, texts: Any, shades: Sequence[str], least: float | None = None,
        most: float | None = None, *, gap: float = 0.0, fontsize: float = 8.0, rotation: int = 0,
    ) -> Any:  # fmt: skip
        """Draw cells with shades from `least` to `most`, and a text in each; NaN has no shade.

        The index and the columns of the values are the names of the rows and columns.
        """
        ax, theme, grid = self.ax, self.theme, values.to_numpy(np.float64)
        ax.grid(False)
        for spine in ax.spines.values():
            spine.set_visible(False)
        look: dict[str, Any] = {"cmap": colour_map(theme, *shades), "vmin": least, "vmax": most}
        if gap:
            rows, columns = (np.arange(count + 1) - 0.5 for count in grid.shape)
            look |= {"edgecolors": theme.background, "linewidth": gap}
            image: Any = ax.pcolormesh(columns, rows, np.ma.masked_invalid(grid), **look)
            ax.set(xlim=columns[[0, -1]], ylim=rows[[-1, 0]])
        else:
            image = ax.imshow(grid, aspect="auto", interpolation="nearest", **look)
        middle: Any = {"ha": "center", "va": "center", "fontsize": fontsize, "parse_math": False}
        for (row, column), text in np.ndenumerate(texts):
            # How far the shade is from the background, which is the first or the middle shade.
            share = float(image.norm(grid[row, column]))
            is_dark = (share if len(shades) == 2 else abs(2 * share - 1)) > 0.65
            if text:
                colour = theme.background if is_dark else theme.text
                ax.text(column, row, text, color=colour, **middle)
        ax.set_yticks(range(len(values)), values.index.map(str), parse_math=False)
        turned = {"rotation": rotation, "ha": "right", "rotation_mode": "anchor"}
        names, look = values.columns.map(str), turned if rotation else {}
        ax.set_xticks(range(len(names)), names, parse_math=False, **look)
        return image

    def hatch_cells(self, cells: Iterable[tuple[int, int]], hatch: str, colour: str) -> None:
        """Hatch cells (row, column) whose value is not known."""
        for row, column in cells:
            look: Any = {"fill": False, "hatch": hatch, "edgecolor": colour, "linewidth": 0}
            self.ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, **look))

    def label_point(
        self, text: str, point: tuple[Any, Any], offset: tuple[int, int], **style: Any
    ) -> None:
        """Write a text next to a point; the offset is in points."""
        options: dict[str, Any] = {"fontsize": 9, "color": self.theme.text, "ha": "center"} | style
        self.ax.annotate(text, point, xytext=offset, textcoords="offset points", **options)

    def label_right_edge(self, y: float, text: str, colour: str | None = None) -> None:
        """Write a text to the right of the axes, at a height in data coordinates."""
        self.ax.annotate(
            text, (1.0, y), xytext=(6, 0), xycoords=("axes fraction", "data"),
            textcoords="offset points", va="center", fontsize=9,
            color=colour or self.theme.text, parse_math=False,
        )  # fmt: skip

    def label_axes(
        self, x: str = "", y: str = "", *, x_ticks: Any = None, y_ticks: Any = None, legend: int = 0
    ) -> None:
        """Set the labels of the axes, and the texts of their ticks: a function or a format.

        A dollar sign in a label does not start a formula. A legend has `legend` columns.
        """
        for axis, text, ticks in ((self.ax.xaxis, x, x_ticks), (self.ax.yaxis, y, y_ticks)):
            if text:
                axis.set_label_text(text, parse_math=False)
            if ticks is not None:
                axis.set_major_formatter(ticks)
        if legend:
            self.add_legend(legend)

    def set_time_axis(self, times: Any, y: str = "", *, note: str = "", **options: Any) -> None:
        """Label the axes; the x axis has few, short dates, and the range of times as its label."""
        locator = mdates.AutoDateLocator(minticks=3, maxticks=8)
        formatter = mdates.ConciseDateFormatter(
            locator, formats=_TICKS, zero_formats=_FIRST_TICKS, show_offset=False
        )
        self.ax.xaxis.set_major_locator(locator)
        x = f"{np.min(times):%d %b %Y} to {np.max(times):%d %b %Y}, UTC{note}"
        self.label_axes(x, y, x_ticks=formatter, **options)


def is_simulated(frame: pd.DataFrame) -> bool:
    """Return whether the provenance of a frame states that its data is simulated."""
    return bool(frame.attrs.get("toolkit", {}).get("simulated", False))


def split_groups(
    rows: pd.DataFrame, not_keys: Iterable[str], whole: str = ""
) -> list[tuple[str, pd.DataFrame]]:
    """Return the name and the rows of each group; `whole` is the name if there are no groups."""
    keys = [name for name in rows.columns if name not in set(not_keys)]
    if not keys:
        return [(whole, rows)]
    groups = rows.groupby(keys, sort=True, dropna=False)
    return [(", ".join(map(str, key)), own) for key, own in groups]


def check_drawable(count: int, most: int, what: str) -> None:
    """Raise ValueError if a figure would show too many coins or groups."""
    if count > most:
        raise ValueError(f"at most {most} {what} can be drawn, not {count}. Select fewer")


def check_one_part(
    plot: str, part: str, name: str, frame: pd.DataFrame, columns: Iterable[str]
) -> None:
    """Raise ValueError if a figure draws one part of a result, and columns have several values."""
    parts = frame[[column for column in columns if column in frame]].dropna(how="all")
    if len(parts.drop_duplicates()) > 1:
        _refuse_parts(plot, part, name, parts)


def check_no_repeats(
    plot: str, part: str, name: str, frame: pd.DataFrame, keys: Sequence[str]
) -> None:
    """Raise ValueError if a figure draws one part of a result, and several have the same keys."""
    if len(frame) > 1 and (not keys or frame.duplicated(keys).any()):
        texts = frame.select_dtypes(include=["str", "category", "datetimetz"])
        ignored = [*keys, "group", "covers"]
        _refuse_parts(plot, part, name, texts.drop(columns=ignored, errors="ignore"))


def _refuse_parts(plot: str, part: str, name: str, rows: pd.DataFrame) -> NoReturn:
    """Raise the error, with a condition that selects the first part."""
    parts = rows.drop_duplicates()
    varying = [column for column in parts.columns if parts[column].nunique() > 1]
    words = f"{plot} draws one {part}, and the result has {len(parts) if varying else 'several'}"
    for first in parts[varying].dropna().head(1).to_dict("records") if varying else ():
        conditions = [
            f"{name}[{column!r}] == {str(value) if isinstance(value, pd.Timestamp) else value!r}"
            for column, value in first.items()
        ]
        text = conditions[0] if len(conditions) == 1 else f"({') & ('.join(conditions)})"
        raise ValueError(f"{words}. Select one, for example {name}[{text}]")
    raise ValueError(f"{words}. Select one")


def quantile_columns(frame: pd.DataFrame) -> list[str]:
    """Return the columns of the lowest, the middle and the highest quantile, such as ``q50``."""
    names = [c for c in frame.columns if c[:1] == "q" and c[1:].replace(".", "").isdigit()]
    names.sort(key=lambda name: float(name[1:]))
    middle = sorted(names, key=lambda name: abs(float(name[1:]) - 50))[:1]
    return [*names[:1], *middle, *names[-1:]]


def sort_periods(frame: pd.DataFrame) -> tuple[str, pd.DataFrame, list[Any]]:
    """Return the column of the hours, days or weeks of a result, its rows by time, and their edges.

    Raises
    ------
    ValueError
        If there is none.
    """
    for name, length in PERIOD_LENGTHS.items():
        if name in frame.columns:
            rows = frame.sort_values(name, kind="stable")
            return name, rows, [rows[name].iloc[0], *(rows[name] + length)]
    raise ValueError(
        "the frame has no column hour, day or week. Call the helper with "
        'by="hour", by="day" or by="week"'
    )


def set_ticks(axis: Axis, places: Sequence[float], text: Callable[[float, float], str]) -> None:
    """Set ticks at some places only, with their texts."""
    axis.set_major_locator(FixedLocator(list(places)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(text)


def set_log_ticks(
    axis: Axis, text: Callable[[float, float], str], *, decades: bool = False
) -> None:
    """Set the ticks of a logarithmic axis: several of each decade if there are few decades."""
    low, high = axis.get_view_interval()
    is_fine = not decades and high / low < 300
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if is_fine else (1.0,)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(text)
