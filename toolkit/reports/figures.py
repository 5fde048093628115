"""Figures inside a page: SVG in both themes, always the same bytes, nothing outside the page."""

import base64
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toolkit.plots import style

__all__ = ["PageFigure", "page_figure"]

_PIXELS: Final = 120  # to the inch: a usual figure is as wide as the page

Draw = Callable[..., Axes | Figure]

# Without these an SVG names the moment and the program that made it, and draws random ids.
_NAMELESS: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_SAME_BYTES: Final[Any] = {"svg.hashsalt": "toolkit", "svg.fonttype": "path"}


@dataclass(frozen=True, slots=True)
class PageFigure:
    """A figure of a page: data URIs for light and dark, words, size in CSS pixels."""

    light: str
    dark: str
    alt: str
    width: int
    height: int


def page_figure(draw: Draw, *results: Any, **options: Any) -> PageFigure:
    """Draw results for light and for dark, with a transparent background.

    Parameters
    ----------
    draw : callable
        A function of `toolkit.plots`.
    *results
        What it draws.
    **options
        Passed on to `draw`.
    """
    drawn = draw(*results, theme="light", transparent=True, **options)
    light = style.root_figure(drawn)
    dark = style.root_figure(draw(*results, theme="dark", transparent=True, **options))
    width, height = (round(_PIXELS * inches) for inches in light.get_size_inches())
    return PageFigure(_uri(light), _uri(dark), style.alt(drawn), width, height)


def _uri(figure: Figure) -> str:
    buffer = io.BytesIO()
    with mpl.rc_context(_SAME_BYTES):
        figure.savefig(buffer, format="svg", metadata=_NAMELESS)
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    return f"data:image/svg+xml;base64,{data}"
