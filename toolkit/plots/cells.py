"""Tables as pictures: a shade for each cell, its figure in it, hatches where nothing is known."""

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_rgb
from matplotlib.patches import Rectangle

from toolkit.plots import style
from toolkit.plots.style import Theme

Grid = npt.NDArray[np.float64]


def shaded(
    ax: Axes, theme: Theme, values: Grid, texts: npt.NDArray[np.object_], most: float = 1.0
) -> None:
    """Draw cells from 0 to `most`; NaN is left bare, and hatched where its text is ``"..."``."""
    style.dress(ax, theme)
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    scale = LinearSegmentedColormap.from_list("", [theme.background, theme.good])
    shades = scale.with_extremes(bad=(0, 0, 0, 0))
    ax.imshow(values, cmap=shades, vmin=0, vmax=most, aspect="auto", interpolation="nearest")
    for (row, column), text in np.ndenumerate(texts):
        if text == "...":
            _hatched(ax, theme, row, column)
        elif text:
            colour = _readable(theme, shades, float(values[row, column]) / most)
            ax.text(column, row, text, ha="center", va="center", fontsize=8, color=colour)


def names(ax: Axes, rows: list[str], columns: list[str], turned: bool = False) -> None:
    """Name rows and columns; long names of columns stand aslant."""
    ax.set_yticks(range(len(rows)), rows, parse_math=False)
    ax.set_xticks(range(len(columns)), columns, parse_math=False)
    if turned:
        for label in ax.get_xticklabels():
            label.set(rotation=40, ha="right", rotation_mode="anchor")


def _hatched(ax: Axes, theme: Theme, row: int, column: int) -> None:
    ax.add_patch(
        Rectangle(
            (column - 0.5, row - 0.5),
            1,
            1,
            fill=False,
            hatch="///",
            edgecolor=theme.grid,
            linewidth=0,
        )
    )


def _readable(theme: Theme, shades: Colormap, share: float) -> str:
    """Give the one of the theme's two ends that stands out from a shade."""
    light = _brightness(shades(float(share))[:3])
    ends = (theme.text, theme.background)
    return max(ends, key=lambda colour: abs(_brightness(to_rgb(colour)) - light))


def _brightness(rgb: tuple[float, float, float]) -> float:
    red, green, blue = rgb
    return 0.299 * red + 0.587 * green + 0.114 * blue
