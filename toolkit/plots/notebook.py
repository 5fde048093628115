"""Figures in a notebook: their picture, in the theme of the notebook."""

import base64
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from typing import Any, Final

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure, SubFigure

from toolkit.plots.themes import COLOUR_NAMES, SETTINGS, Theme, colour_map, get_theme
from toolkit.public_names import publish_as

_STYLE: Final = (
    "<style>.tk-plot .tk-dark{display:none}"
    "[data-jp-theme-light='false'] .tk-plot .tk-dark,.vscode-dark .tk-plot .tk-dark"
    "{display:inline}"
    "[data-jp-theme-light='false'] .tk-plot .tk-light,.vscode-dark .tk-plot .tk-light"
    "{display:none}</style>"
)
"""Shows one of two pictures: JupyterLab and VS Code mark a page with their theme."""


_PROPERTIES: Final = ("color", "edgecolor", "markerfacecolor", "markeredgecolor", "hatchcolor")


class NotebookFigure(Figure):
    """A figure that a notebook shows at the end of a cell, with its alternative text."""

    theme: Theme | None = None

    def _repr_html_(self) -> str:
        if self.theme is None or not self.theme.follows_notebook:
            return self._picture("", self.get_facecolor())
        # The light picture is opaque: a program without a known theme shows it as it is.
        light = self._picture("tk-light", self.theme.background)
        with recolour_figure(self, self.theme, get_theme("dark")):
            dark = self._picture("tk-dark", "none")
        return f'<div class="tk-plot">{_STYLE}{light}{dark}</div>'

    def _picture(self, name: str, background: Any) -> str:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=SETTINGS.dpi, facecolor=background)
        data = base64.b64encode(buffer.getvalue()).decode()
        width = int(self.get_figwidth() * 96)
        css = f'class="{name}" ' if name else ""
        return (
            f'<img {css}alt="{escape(alt(self))}" width="{width}" '
            f'src="data:image/png;base64,{data}"/>'
        )


class NotebookAxes(Axes):
    """Axes of a figure of their own: at the end of a cell a notebook shows that figure."""

    def _repr_html_(self) -> str | None:
        figure = root_figure(self)
        return figure._repr_html_() if isinstance(figure, NotebookFigure) else None


@publish_as("toolkit.plots")
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
    >>> import pandas as pd
    >>> from toolkit import plots
    >>> alt(plots.funding_by_coin(pd.DataFrame()))
    'Funding by coin: no data. Simulated data: no.'
    """
    every_axes = drawn.axes if isinstance(drawn, Figure) else [drawn]
    # matplotlib's own labels of axes begin with "<".
    labels = [str(ax.get_label()) for ax in every_axes if str(ax.get_label())[:1] != "<"]
    return " ".join(label for label in labels if label)


def root_figure(drawn: Axes | Figure | SubFigure) -> Figure:
    """Return the outermost figure of axes or of a subfigure.

    Raises
    ------
    ValueError
        If the axes belong to no figure.
    """
    figure = drawn.get_figure(root=True)
    if figure is None:
        raise ValueError(
            "these axes belong to no figure. Pass axes of a figure, such as plt.subplots()[1]"
        )
    return figure


@contextmanager
def recolour_figure(figure: Figure, old: Theme, new: Theme) -> Iterator[None]:
    """Return a context in which a figure has the colours of another theme.

    Other colours and shades, such as those that a user chose, stay as they are.
    """
    names = {getattr(old, name): getattr(new, name) for name in COLOUR_NAMES}
    before: list[tuple[Artist, dict[str, Any]]] = []
    try:
        for artist in figure.findobj():
            scale = None
            if isinstance(artist, ScalarMappable) and artist.get_array() is not None:
                scale = artist.get_cmap()
            # All values are read first: the colour of a hatch may be that of the edge.
            values = {
                name: getattr(artist, f"get_{name}")()
                for name in ("facecolor",) * (scale is None) + _PROPERTIES
                if hasattr(artist, f"get_{name}") and hasattr(artist, f"set_{name}")
            }
            after = {name: _replace(value, names) for name, value in values.items()}
            if scale is not None and set(scale.name.split()) <= set(COLOUR_NAMES):
                values["cmap"], after["cmap"] = scale, colour_map(new, *scale.name.split())
            before.append((artist, values))
            _set(artist, after)
        yield
    finally:
        for artist, values in reversed(before):
            _set(artist, values)


def _set(artist: Artist, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        getattr(artist, f"set_{name}")(value)


def _replace(colour: Any, names: Mapping[str, str]) -> Any:
    """Return the colour of the new theme for one of the old theme; others as they are."""
    if isinstance(colour, str) and colour in ("none", "auto", "face", "edge", "inherit"):
        return colour
    if np.ndim(colour) == 2:  # the colours of a collection
        return [_replace(each, names) for each in colour]
    rgba = to_rgba(colour)
    return to_rgba(names.get(to_hex(rgba[:3]), rgba[:3]), rgba[3])
