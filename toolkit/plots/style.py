"""Style of the figures: themes, new figures and axes, alternative text, mark of simulated data.

Nothing here uses pyplot or rcParams. A figure belongs to its caller, no list keeps it open, and
figures can be drawn on the threads of widgets.
"""

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Final, Literal

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine

ThemeName = Literal["light", "dark"]


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of a figure, by Okabe and Ito: most people can tell them apart.

    Attributes
    ----------
    text, muted, grid, background : str
        Colours of labels, of secondary elements, of grid lines, of the background.
    good, bad, total, accent : str
        Colours of gains (also: buys, received), of losses (sells, paid), of totals, of a third
        group.
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
        text="#1f2328", muted="#5c6570", grid="#dfe3e8", background="#ffffff",
        good="#0072b2", bad="#d55e00", total="#3c444d", accent="#009e73",
    ),
    "dark": Theme(
        text="#e6e8eb", muted="#9aa4af", grid="#343a42", background="#16191d",
        good="#56b4e9", bad="#e69f00", total="#c3cad2", accent="#2fbf95",
    ),
}  # fmt: skip


class NotebookFigure(Figure):
    """A figure that a notebook shows at the end of a cell, with its alternative text."""

    def _repr_html_(self) -> str:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        data = base64.b64encode(buffer.getvalue()).decode()
        width = int(self.get_figwidth() * 96)
        return (
            f'<img alt="{escape(alt(self))}" width="{width}" src="data:image/png;base64,{data}"/>'
        )


class NotebookAxes(Axes):
    """Axes of a figure of their own: at the end of a cell a notebook shows that figure."""

    def _repr_html_(self) -> str | None:
        figure = root_figure(self)
        return figure._repr_html_() if isinstance(figure, NotebookFigure) else None


def alt(drawn: Axes | Figure) -> str:
    """Return the alternative text of a plot: what it shows, in words.

    Parameters
    ----------
    drawn : Axes or Figure
        What a function of `toolkit.plots` returned. For a figure, the texts of all of its axes.

    Returns
    -------
    str
        One or more sentences; empty if nothing of `toolkit.plots` was drawn there.

    Examples
    --------
    >>> from toolkit import plots
    >>> alt(plots.funding_by_coin(pd.DataFrame()))
    'Funding by coin: no data. Simulated data: no.'
    """
    every_axes = drawn.axes if isinstance(drawn, Figure) else [drawn]
    # matplotlib's own labels of axes begin with "<".
    labels = [str(ax.get_label()) for ax in every_axes if str(ax.get_label())[:1] != "<"]
    return " ".join(label for label in labels if label)


def get_theme(name: str) -> Theme:
    """Return the theme with a name.

    Raises
    ------
    ValueError
        If there is no such theme.
    """
    if name not in _THEMES:
        raise ValueError(f"theme must be {' or '.join(map(repr, _THEMES))}, not {name!r}")
    return _THEMES[name]


def new_axes(
    theme: Theme,
    *,
    ax: Axes | None = None,
    size: tuple[float, float] = (7.2, 3.6),
    transparent: bool = False,
) -> Axes:
    """Return the axes to draw on, styled: `ax`, or by default those of a new figure."""
    if ax is None:
        ax = new_figure(theme, size, transparent).add_subplot(axes_class=NotebookAxes)
    style_axes(ax, theme)
    return ax


def new_figure(theme: Theme, size: tuple[float, float], transparent: bool) -> NotebookFigure:
    """Return an empty figure; its layout is computed when it is drawn."""
    figure = NotebookFigure(figsize=size, dpi=144)
    # The strip at the top is for the mark of simulated data.
    strip = (0.0, 0.0, 1.0, 1.0 - 0.14 / size[1])
    figure.set_layout_engine(ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06, rect=strip))
    figure.set_facecolor("none" if transparent else theme.background)
    return figure


def root_figure(drawn: Axes | Figure | SubFigure) -> Figure:
    """Return the outermost figure of axes or of a subfigure.

    Raises
    ------
    ValueError
        If the axes belong to no figure.
    """
    figure = drawn.get_figure(root=True)
    if figure is None:
        raise ValueError("these axes belong to no figure")
    return figure


def style_axes(ax: Axes, theme: Theme, grid: Literal["x", "y"] = "y") -> None:
    """Set the colours of the axes, and a light grid along one axis; hide the box."""
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


def finish_axes(ax: Axes, theme: Theme, words: str, simulated: bool) -> Axes:
    """Set the alternative text, and mark simulated data in the corner of the figure."""
    ax.set_label(f"{words} Simulated data: {'yes' if simulated else 'no'}.")
    figure = root_figure(ax)
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
    return ax


def draw_no_data(ax: Axes, theme: Theme, text: str = "no data") -> None:
    """Write that there is no data, in place of empty axes."""
    ax.set_axis_off()
    ax.text(0.5, 0.5, text, ha="center", va="center", color=theme.muted, transform=ax.transAxes)


def is_simulated(frame: pd.DataFrame) -> bool:
    """Return whether the provenance of a frame states that its data is simulated."""
    return bool(frame.attrs.get("toolkit", {}).get("simulated", False))
