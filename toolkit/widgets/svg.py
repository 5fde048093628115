"""SVG figures of widgets, with the colours of the page's theme."""

import hashlib
import io
import re
import threading
from collections.abc import Callable, Iterator
from html import escape
from itertools import pairwise
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.dates import ConciseDateFormatter, num2date
from matplotlib.figure import Figure

from toolkit.plots import figures, formats
from toolkit.plots.style import NO_METADATA

# matplotlib is not thread-safe, and views are drawn on several threads.
_DRAWING: Final = threading.Lock()

_PROLOGUE: Final = re.compile(
    r"<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->|<metadata>.*?</metadata>", re.S
)
_ID: Final = re.compile(r'( id="|xlink:href="#|url\(#)([^")]+)')
# By default an SVG contains random ids.
_FIXED_IDS: Final[Any] = {"svg.hashsalt": "toolkit"}


_LIGHT, _DARK = (
    "".join(f"--tk-{name}:{getattr(theme, name)};" for name in figures.COLOUR_NAMES)
    for theme in map(figures.get_theme, ("light", "dark"))
)
STYLE: Final = (
    f'.tk-view{{{_LIGHT}}}[data-jp-theme-light="false"] .tk-view,.vscode-dark .tk-view{{{_DARK}}}'
)
"""CSS variables with the colours of both themes; JupyterLab's attribute selects the theme."""


def draw_svg(draw: Callable[..., Axes | Figure], *arguments: Any) -> str:
    """Return a plot as HTML: inline SVG with its alternative text.

    - ``draw``: a function of `toolkit.plots`
    - ``*arguments``: arguments of `draw`

    The colours are variables of `STYLE`, so the figure is readable on a light and on a dark
    background inside an element of class ``tk-view``. The pointer shows the values. The same plot
    gives the same text.
    """
    with _DRAWING, mpl.rc_context(_FIXED_IDS):
        drawn = draw(*arguments, theme="light", transparent=True)
        buffer = io.StringIO()
        figure = figures.root_figure(drawn)
        figure.savefig(buffer, format="svg", metadata=NO_METADATA)
        areas = hover_areas(figure)
    svg = _PROLOGUE.sub("", buffer.getvalue()).strip()
    own = "tk" + hashlib.sha256(svg.encode()).hexdigest()[:10]  # ids are unique in a page
    svg = _ID.sub(rf"\1{own}-\2", svg)
    colours = figures.get_theme("light")
    for name in figures.COLOUR_NAMES:
        colour, variable = getattr(colours, name), f"var(--tk-{name})"
        svg = svg.replace(f": {colour}", f": {variable}").replace(f'"{colour}"', f'"{variable}"')
    words = escape(figures.alt(drawn))
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{words}" ', 1)
    svg = svg.replace("</svg>", f"{areas}</svg>")
    return f'<figure class="tk-figure">{svg}</figure>'


_POINTS: Final = 72  # points per inch; the SVG files of matplotlib have the unit point
_MAX_AREAS: Final = 300  # in one panel
_AMOUNT: Final = re.compile(r" [+\N{MINUS SIGN}]?[\d,.]+$")  # a label may end with its last value
_MIN_BAR: Final = 4.0  # points: a bar of height 0 can be pointed at, too


def hover_areas(figure: Figure) -> str:
    """Return a group of SVG areas over the panels of a drawn figure.

    The area around each x of a curve, and each bar, has a title, which a browser shows under the
    pointer: x, and the values there. Lines with fewer than three points are no curves.
    """
    areas = [area for axes in figure.axes for area in (*_stripes(axes), *_bars(axes))]
    return f'<g class="tk-hover" fill="none" pointer-events="all">{"".join(areas)}</g>'


def _stripes(axes: Axes) -> Iterator[str]:
    """Yield an area for each x of the curves, up to the middle between it and the next."""
    found: dict[float, list[str]] = {}
    curves = {curve: np.asarray(curve.get_xydata(), dtype=float) for curve in axes.lines}
    step = -(-max(map(len, curves.values()), default=1) // _MAX_AREAS)
    for curve, points in curves.items():
        name = _series_name(axes, str(curve.get_label()))
        places = sorted({*range(0, len(points), step), len(points) - 1})
        for x, y in points[places] if len(points) > 2 else ():
            if np.isfinite(y):
                found.setdefault(float(x), []).append(f"{name}: {_value_text(axes, y)}")
    (first, last), heights = axes.get_xlim(), axes.get_ylim()
    shown = sorted(x for x in found if first <= x <= last)
    if not shown:
        return
    (left, bottom), (right, top) = _place(axes, first, heights[0]), _place(axes, last, heights[1])
    across = [_place(axes, x, heights[0])[0] for x in shown]
    edges = [left, *((one + two) / 2 for one, two in pairwise(across)), right]
    for x, (start, end) in zip(shown, pairwise(edges), strict=True):
        yield _area(start, end, bottom, top, "\n".join([_x_text(axes, x), *found[x]]))


def _bars(axes: Axes) -> Iterator[str]:
    """Yield an area for each vertical bar of a panel that does not print the values itself."""
    for bars in axes.containers if not axes.texts else ():
        name = _series_name(axes, str(bars.get_label()))
        for bar in bars.patches if isinstance(bars, BarContainer) else ():
            x, y, width, height = bar.get_x(), bar.get_y(), bar.get_width(), bar.get_height()
            if not np.isfinite(height):
                continue
            (left, low), (right, high) = _place(axes, x, y), _place(axes, x + width, y + height)
            top, bottom = sorted((low, high))  # in an SVG, y grows downwards
            missing = max(0.0, _MIN_BAR - (bottom - top)) / 2
            text = f"{_x_text(axes, x + width / 2)}\n{name}: {_value_text(axes, height)}"
            yield _area(left, right, bottom + missing, top - missing, text)


def _series_name(axes: Axes, label: str) -> str:
    """Return the label of a curve or of bars, without the amount in it.

    If there is no such label, return the label of the y axis.
    """
    name = _AMOUNT.sub("", label)
    return axes.get_ylabel() if not name or name.startswith("_") else name


def _x_text(axes: Axes, x: float) -> str:
    """Return the text of an x: a time in UTC, or a number."""
    if isinstance(axes.xaxis.get_major_formatter(), ConciseDateFormatter):
        return f"{num2date(x):%Y-%m-%d %H:%M} UTC"
    label = axes.get_xlabel() or axes.figure.axes[-1].get_xlabel()
    return f"{label}: {_number_text(x)}" if label else _number_text(x)


def _value_text(axes: Axes, value: float) -> str:
    """Return the text of a value: a share where the axis has shares, else a number."""
    is_share = axes.yaxis.get_major_formatter()(1.0).endswith("%")
    return formats.percent_share(value) if is_share else _number_text(value)


def _number_text(value: float) -> str:
    return formats.true_minus(f"{float(f'{value:.6g}'):,}".removesuffix(".0"))


def _place(axes: Axes, x: float, y: float) -> tuple[float, float]:
    """Return the place of a point in the SVG, in points from its left and upper edge."""
    figure = figures.root_figure(axes)
    across, up = figure.transFigure.inverted().transform(axes.transData.transform((x, y)))
    width, height = figure.get_size_inches() * _POINTS
    return across * width, (1 - up) * height


def _area(left: float, right: float, bottom: float, top: float, text: str) -> str:
    return (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" '
        f'height="{bottom - top:.1f}"><title>{escape(text)}</title></rect>'
    )
