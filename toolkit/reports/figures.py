"""Figures of a page: SVG in both themes, inside the page, with the same bytes each time."""

import base64
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toolkit.plots import notebook
from toolkit.plots.style import NO_METADATA

_PIXELS: Final = 120  # per inch: a figure of usual size is as wide as the page

Draw = Callable[..., Axes | Figure]

# By default an SVG contains random ids.
_FIXED_IDS: Final[Any] = {"svg.hashsalt": "toolkit", "svg.fonttype": "path"}


@dataclass(frozen=True, slots=True)
class PageFigure:
    """A figure of a page: data URIs for both themes, alternative text, size in CSS pixels."""

    light: str
    dark: str
    alt: str
    width: int
    height: int


def draw_page_figure(draw: Draw, *results: Any, **options: Any) -> PageFigure:
    """Draw results in both themes, with a transparent background.

    - ``draw``: a function of `toolkit.plots`
    - ``*results``: arguments of `draw`
    - ``**options``: options of `draw`
    """
    drawn = draw(*results, theme="light", transparent=True, **options)
    light = notebook.root_figure(drawn)
    dark = notebook.root_figure(draw(*results, theme="dark", transparent=True, **options))
    width, height = (round(_PIXELS * inches) for inches in light.get_size_inches())
    return PageFigure(_data_uri(light), _data_uri(dark), notebook.alt(drawn), width, height)


def _data_uri(figure: Figure) -> str:
    buffer = io.BytesIO()
    with mpl.rc_context(_FIXED_IDS):
        figure.savefig(buffer, format="svg", metadata=NO_METADATA)
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    return f"data:image/svg+xml;base64,{data}"
