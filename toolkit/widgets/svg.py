"""SVG figures of widgets, with the colours of the page's theme."""

import hashlib
import io
import re
import threading
from collections.abc import Callable
from html import escape
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toolkit.plots import notebook, themes
from toolkit.widgets.hover import hover_areas

# matplotlib is not thread-safe, and views are drawn on several threads.
_DRAWING: Final = threading.Lock()

_NO_METADATA: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_PROLOGUE: Final = re.compile(
    r"<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->|<metadata>.*?</metadata>", re.S
)
_ID: Final = re.compile(r' id="([^"]+)"')
_USE: Final = re.compile(r'(xlink:href="#|url\(#)([^")]+)')


def _css_variables(theme: str) -> str:
    colours = themes.get_theme(theme)
    return "".join(f"--tk-{name}:{getattr(colours, name)};" for name in themes.COLOUR_NAMES)


STYLE: Final = (
    f".tk-view{{{_css_variables('light')}}}"
    f'[data-jp-theme-light="false"] .tk-view,.vscode-dark .tk-view{{{_css_variables("dark")}}}'
)
"""CSS variables with the colours of both themes; JupyterLab's attribute selects the theme."""


def draw_svg(draw: Callable[..., Axes | Figure], *arguments: Any) -> str:
    """Return a plot as HTML: inline SVG with its alternative text.

    - ``draw``: a function of `toolkit.plots`
    - ``*arguments``: arguments of `draw`

    Returns: the colours are variables of `STYLE`, so the figure is readable on a light and on a
    dark background inside an element of class ``tk-view``. The pointer shows the values. The
    same plot gives the same text.
    """
    with _DRAWING:
        drawn = draw(*arguments, theme="light", transparent=True)
        buffer = io.StringIO()
        figure = notebook.root_figure(drawn)
        figure.savefig(buffer, format="svg", metadata=_NO_METADATA)
        areas = hover_areas(figure)
    svg = _use_colour_css_variables(_use_stable_ids(_PROLOGUE.sub("", buffer.getvalue()).strip()))
    words = escape(notebook.alt(drawn))
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{words}" ', 1)
    svg = svg.replace("</svg>", f"{areas}</svg>")
    return f'<figure class="tk-figure">{svg}</figure>'


def _use_colour_css_variables(svg: str) -> str:
    """Replace the colours of the light theme, in which it was drawn, by CSS variables."""
    colours = themes.get_theme("light")
    for name in themes.COLOUR_NAMES:
        colour, variable = getattr(colours, name), f"var(--tk-{name})"
        svg = svg.replace(f": {colour}", f": {variable}").replace(f'"{colour}"', f'"{variable}"')
    return svg


def _use_stable_ids(svg: str) -> str:
    """Replace the random ids by ids that are the same each time and unique to the figure."""
    numbered: dict[str, str] = {}
    for name in _ID.findall(svg):
        numbered.setdefault(name, f"{len(numbered)}")
    plain = _rename_ids(svg, numbered)
    prefix = "tk" + hashlib.sha256(plain.encode()).hexdigest()[:10]
    return _rename_ids(svg, {name: f"{prefix}-{number}" for name, number in numbered.items()})


def _rename_ids(svg: str, names: dict[str, str]) -> str:
    svg = _ID.sub(lambda found: f' id="{names[found[1]]}"', svg)
    return _USE.sub(lambda found: found[1] + names.get(found[2], found[2]), svg)
