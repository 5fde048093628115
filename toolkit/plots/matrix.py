"""Matrices: one shaded cell for each row and column, with a text in it."""

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, to_rgb
from matplotlib.patches import Rectangle

from toolkit.arrays import Floats
from toolkit.plots import style
from toolkit.plots.themes import Theme, colour_map

UNKNOWN = "..."
"""The text of a cell whose value is not known yet: the cell is hatched."""


def draw_matrix(
    ax: Axes, theme: Theme, values: Floats, texts: npt.NDArray[np.object_], most: float = 1.0
) -> None:
    """Draw cells with shades from 0 to `most`; NaN has no shade, and `UNKNOWN` is hatched."""
    style.style_axes(ax, theme)
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    shades = colour_map(theme, "background", "good")
    ax.imshow(values, cmap=shades, vmin=0, vmax=most, aspect="auto", interpolation="nearest")
    for (row, column), text in np.ndenumerate(texts):
        if text == UNKNOWN:
            cell = (column - 0.5, row - 0.5), 1, 1
            ax.add_patch(
                Rectangle(*cell, fill=False, hatch="///", edgecolor=theme.grid, linewidth=0)
            )
        elif text:
            colour = _readable_colour(theme, shades, float(values[row, column]) / most)
            ax.text(column, row, text, ha="center", va="center", fontsize=8, color=colour)


def name_rows_and_columns(
    ax: Axes, rows: list[str], columns: list[str], has_long_names: bool = False
) -> None:
    """Write the names of rows and columns; long names of columns are rotated."""
    ax.set_yticks(range(len(rows)), rows, parse_math=False)
    ax.set_xticks(range(len(columns)), columns, parse_math=False)
    if has_long_names:
        for label in ax.get_xticklabels():
            label.set(rotation=40, ha="right", rotation_mode="anchor")


def _readable_colour(theme: Theme, shades: Colormap, share: float) -> str:
    """Return the colour of the text or of the background, whichever contrasts with a shade."""
    shade = _brightness(shades(float(share))[:3])
    colours = (theme.text, theme.background)
    return max(colours, key=lambda colour: abs(_brightness(to_rgb(colour)) - shade))


def _brightness(rgb: tuple[float, float, float]) -> float:
    red, green, blue = rgb
    return 0.299 * red + 0.587 * green + 0.114 * blue
