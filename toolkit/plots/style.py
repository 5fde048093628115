"""What every figure looks like: themes, numbers, axes, the mark of simulated data.

Nothing here touches pyplot or rcParams: a figure belongs to whoever made it, also on the
threads of widgets.
"""

import base64
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any, Final, Literal

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter

from toolkit.plots.texts import MINUS

__all__ = ["Picture", "Theme", "ThemeName", "alt", "theme_of"]

ThemeName = Literal["light", "dark"]


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of a figure: Okabe and Ito's, which most eyes tell apart.

    Attributes
    ----------
    text, muted, grid, background : str
        Colours of labels, of what stands back, of grid lines, of the paper.
    good, bad, total, accent : str
        Colours of gains (also: buys, received), losses (sells, paid), totals, a third series.
    """

    text: str
    muted: str
    grid: str
    background: str
    good: str
    bad: str
    total: str
    accent: str


_THEMES: Final[Mapping[str, Theme]] = {
    "light": Theme(
        text="#1f2328",
        muted="#5c6570",
        grid="#dfe3e8",
        background="#ffffff",
        good="#0072b2",
        bad="#d55e00",
        total="#3c444d",
        accent="#009e73",
    ),
    "dark": Theme(
        text="#e6e8eb",
        muted="#9aa4af",
        grid="#343a42",
        background="#16191d",
        good="#56b4e9",
        bad="#e69f00",
        total="#c3cad2",
        accent="#2fbf95",
    ),
}


class Picture(Figure):
    """A figure that a notebook shows with its alternative text."""

    def _repr_html_(self) -> str:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        data = base64.b64encode(buffer.getvalue()).decode()
        width = int(self.get_figwidth() * 96)
        return (
            f'<img alt="{escape(alt(self))}" width="{width}" src="data:image/png;base64,{data}"/>'
        )


def alt(figure: Figure) -> str:
    """Give the alternative text of a figure: what its axes show, in words.

    Parameters
    ----------
    figure : Figure
        A figure drawn here, or one with axes drawn here.

    Returns
    -------
    str
        One or more sentences; empty for a figure without any.

    Examples
    --------
    >>> from toolkit import plots
    >>> figure = plots.funding_by_coin(pd.DataFrame())
    >>> alt(figure)
    'Funding by coin: no data. Simulated data: no.'
    """
    labels = [str(ax.get_label()) for ax in figure.axes if str(ax.get_label())[:1] != "<"]
    return " ".join(label for label in labels if label)


def theme_of(name: str) -> Theme:
    """Give the theme of a name.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    if name not in _THEMES:
        raise ValueError(f"theme must be {' or '.join(map(repr, _THEMES))}, not {name!r}")
    return _THEMES[name]


def canvas(
    theme: Theme,
    *,
    ax: Axes | None = None,
    size: tuple[float, float] = (7.2, 3.6),
    transparent: bool = False,
) -> tuple[Figure, Axes]:
    """Give the axes to draw on: those given, or those of a new figure."""
    if ax is None:
        figure: Figure = new_figure(theme, size, transparent)
        ax = figure.add_subplot()
    else:
        figure = root(ax.figure)
    dress(ax, theme)
    return figure, ax


def new_figure(theme: Theme, size: tuple[float, float], transparent: bool) -> Picture:
    """Make an empty figure, its layout computed when it is drawn."""
    figure = Picture(figsize=size, dpi=144)
    # The strip at the top is for the mark of simulated data.
    strip = (0.0, 0.0, 1.0, 1.0 - 0.14 / size[1])
    figure.set_layout_engine(ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06, rect=strip))
    figure.set_facecolor("none" if transparent else theme.background)
    return figure


def root(figure: Figure | SubFigure | None) -> Figure:
    """Give the whole figure that axes stand on."""
    if figure is None:
        raise ValueError("these axes belong to no figure")
    whole = figure.get_figure(root=True)
    if whole is None:
        raise ValueError("these axes belong to no figure")
    return whole


def dress(ax: Axes, theme: Theme, grid: Literal["x", "y"] = "y") -> None:
    """Give axes their colours: a light grid along one axis, no box."""
    ax.set_facecolor("none")
    for side, spine in ax.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(theme.muted)
        spine.set_linewidth(0.8)
    ax.tick_params(colors=theme.muted, labelcolor=theme.text, labelsize=9, length=0, pad=5)
    ax.grid(False)
    ax.grid(True, axis=grid, color=theme.grid, linewidth=0.8)
    ax.set_axisbelow(True)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_color(theme.text)
        axis.label.set_fontsize(9)
        axis.get_offset_text().set_color(theme.muted)


def legend(ax: Axes, theme: Theme, **options: Any) -> None:
    """Put the legend in one line above the axes, so that it hides nothing."""
    made = ax.legend(
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
    for text in made.get_texts():
        text.set_parse_math(False)


def beside(ax: Axes, y: float, text: str, colour: str) -> None:
    """Write beside the right edge of the axes, at a height of the data."""
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


def finish(figure: Figure, ax: Axes, theme: Theme, words: str, simulated: bool) -> Figure:
    """Set the alternative text, and mark simulated data in a corner."""
    ax.set_label(f"{words} Simulated data: {'yes' if simulated else 'no'}.")
    if simulated and not any(text.get_gid() == "simulated" for text in figure.texts):
        figure.text(
            0.99,
            0.985,
            "simulated",
            ha="right",
            va="top",
            fontsize=8,
            style="italic",
            color=theme.muted,
            gid="simulated",
        )
    return figure


def nothing(ax: Axes, theme: Theme, text: str = "no data") -> None:
    """Say that there is nothing to show, instead of showing empty axes."""
    ax.set_axis_off()
    ax.text(0.5, 0.5, text, ha="center", va="center", color=theme.muted, transform=ax.transAxes)


def is_simulated(frame: pd.DataFrame) -> bool:
    """Tell whether a frame's provenance says that its data is invented."""
    return bool(frame.attrs.get("toolkit", {}).get("simulated", False))


def usd(value: Any, signed: bool = False) -> str:
    """Write an amount: cents below 10,000, whole dollars above, a true minus sign.

    Examples
    --------
    >>> usd(1234.5), usd(1234567.8), usd(12, signed=True), usd(0, signed=True)
    ('1,234.50', '1,234,568', '+12.00', '0.00')
    """
    digits = 2 if abs(value) < 10_000 else 0
    text = f"{abs(value):,.{digits}f}"
    zero = not text.strip("0.,")
    sign = "" if zero else MINUS if value < 0 else "+" if signed else ""
    return sign + text


def short_usd(value: float) -> str:
    """Write a size in as few characters as it needs.

    Examples
    --------
    >>> [short_usd(size) for size in (500, 1_000, 250_000, 1_000_000)]
    ['500', '1k', '250k', '1M']
    """
    for unit, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g}{letter}".replace("-", MINUS)
    return f"{value:g}".replace("-", MINUS)


def _axis_usd(value: float, _: int | None = None) -> str:
    text = f"{value:,.0f}" if abs(value) >= 10 or value == int(value) else f"{value:,.4g}"
    return text.replace("-", MINUS)


def usd_axis(set_formatter: Callable[[FuncFormatter], None]) -> None:
    """Give an axis thousands separators and a true minus sign."""
    set_formatter(FuncFormatter(_axis_usd))
