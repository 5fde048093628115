"""Figures inside a widget: SVG whose colours follow the theme of the page."""

import hashlib
import io
import re
import threading
from collections.abc import Callable
from dataclasses import fields
from html import escape
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toolkit.plots import style

__all__ = ["STYLE", "picture"]

# matplotlib promises nothing about threads, and views are drawn on the threads of widgets.
_ONE_AT_A_TIME: Final = threading.Lock()

_NAMELESS: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_NAMES: Final = tuple(field.name for field in fields(style.Theme))
_OUTSIDE: Final = re.compile(
    r"<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->|<metadata>.*?</metadata>", re.S
)
_ID: Final = re.compile(r' id="([^"]+)"')
_USE: Final = re.compile(r'(xlink:href="#|url\(#)([^")]+)')


def _variables(theme: str) -> str:
    colours = style.get_theme(theme)
    return "".join(f"--tk-{name}:{getattr(colours, name)};" for name in _NAMES)


STYLE: Final = (
    f".tk-view{{{_variables('light')}}}"
    f'[data-jp-theme-light="false"] .tk-view,.vscode-dark .tk-view{{{_variables("dark")}}}'
)
"""The colours of both themes, for the style sheet of a view; JupyterLab says which one it is in."""


def picture(draw: Callable[..., Axes | Figure], *arguments: Any) -> str:
    """Draw a figure as HTML: inline SVG, with its alternative text.

    Parameters
    ----------
    draw : callable
        A function of `toolkit.plots`.
    *arguments
        What it draws.

    Returns
    -------
    str
        Legible in light and in dark surroundings of class ``tk-view``: colours are variables of
        `STYLE`. The same figure gives the same text.
    """
    with _ONE_AT_A_TIME:
        drawn = draw(*arguments, theme="light", transparent=True)
        buffer = io.StringIO()
        style.root_figure(drawn).savefig(buffer, format="svg", metadata=_NAMELESS)
    svg = _themed(_own_ids(_OUTSIDE.sub("", buffer.getvalue()).strip()))
    words = escape(style.alt(drawn))
    return f'<figure class="tk-figure">{svg.replace("<svg ", _opening(words), 1)}</figure>'


def _opening(words: str) -> str:
    return f'<svg role="img" aria-label="{words}" '


def _themed(svg: str) -> str:
    """Put variables in place of the colours of the light theme, in which it was drawn."""
    colours = style.get_theme("light")
    for name in _NAMES:
        colour, variable = getattr(colours, name), f"var(--tk-{name})"
        svg = svg.replace(f": {colour}", f": {variable}").replace(f'"{colour}"', f'"{variable}"')
    return svg


def _own_ids(svg: str) -> str:
    """Give ids that are the same each time, and no other figure's: they were drawn at random."""
    numbered: dict[str, str] = {}
    for name in _ID.findall(svg):
        numbered.setdefault(name, f"{len(numbered)}")
    plain = _renamed(svg, numbered)
    mark = "tk" + hashlib.sha256(plain.encode()).hexdigest()[:10]
    return _renamed(svg, {name: f"{mark}-{number}" for name, number in numbered.items()})


def _renamed(svg: str, names: dict[str, str]) -> str:
    svg = _ID.sub(lambda found: f' id="{names[found[1]]}"', svg)
    return _USE.sub(lambda found: found[1] + names.get(found[2], found[2]), svg)
