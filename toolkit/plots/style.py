"""Style of the figures: new figures and axes, and the mark of simulated data.

Nothing here uses pyplot or rcParams. A figure belongs to its caller, no list keeps it open, and
figures can be drawn on the threads of widgets.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.layout_engine import ConstrainedLayoutEngine

from toolkit.plots.notebook import NotebookAxes, NotebookFigure, root_figure
from toolkit.plots.themes import Theme, ThemeName, get_theme

NO_METADATA: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))
"""By default an SVG contains the time and the name of the program."""


def new_axes(
    ax: Axes | None, theme: ThemeName, transparent: bool, size: tuple[float, float] = (7.2, 3.6)
) -> tuple[Axes, Theme]:
    """Return styled axes to draw on, `ax` or by default those of a new figure, and the colours."""
    colours = get_theme(theme)
    if ax is None:
        ax = new_figure(colours, size, transparent).add_subplot(axes_class=NotebookAxes)
    style_axes(ax, colours)
    return ax, colours


def new_figure(theme: Theme, size: tuple[float, float], transparent: bool) -> NotebookFigure:
    """Return an empty figure; its layout is computed when it is drawn."""
    figure = NotebookFigure(figsize=size, dpi=144)
    figure.theme = theme
    # The strip at the top is for the mark of simulated data.
    strip = (0.0, 0.0, 1.0, 1.0 - 0.14 / size[1])
    figure.set_layout_engine(ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06, rect=strip))
    figure.set_facecolor("none" if transparent else theme.background)
    return figure


def new_panels(
    ax: Axes | None,
    theme: ThemeName,
    transparent: bool,
    *,
    size: tuple[float, float],
    ratios: Sequence[float],
    side_by_side: bool = False,
) -> tuple[NotebookFigure | None, list[Axes], Theme]:
    """Return a new figure and its panels, styled; or None and `ax` alone; and the colours.

    - ``ratios``: heights of the panels, which share the x axis; or widths if `side_by_side`
    """
    figure: NotebookFigure | None = None
    colours = get_theme(theme)
    panels = [ax] if ax is not None else []
    if ax is None:
        figure = new_figure(colours, size, transparent)
        shape: dict[str, Any] = (
            {"ncols": len(ratios), "width_ratios": ratios}
            if side_by_side
            else {"nrows": len(ratios), "height_ratios": ratios, "sharex": True}
        )
        panels = list(figure.subplots(squeeze=False, **shape).ravel())
    for panel in panels:
        style_axes(panel, colours)
    return figure, panels, colours


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


def finish_axes(ax: Axes, theme: Theme, words: str, drawn: pd.DataFrame) -> Axes:
    """Set the alternative text, and mark simulated data in the corner of the figure."""
    simulated = is_simulated(drawn)
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
