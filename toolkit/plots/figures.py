"""Figures: their themes, their alternative texts, and their pictures in a notebook."""

import base64
import copy
import io
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from html import escape
from typing import Any, Final, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_hex, to_rgba
from matplotlib.figure import Figure, SubFigure

from toolkit.public_names import publish_as

ThemeName = Literal["auto", "light", "dark"]


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
    fourth, fifth : str
        Colours of a fourth and a fifth group.
    follows_notebook : bool
        Whether a notebook shows the figure in its own theme.
    """

    text: str
    muted: str
    grid: str
    background: str
    good: str
    bad: str
    total: str
    accent: str
    fourth: str
    fifth: str
    follows_notebook: bool = False

    @property
    def groups(self) -> tuple[str, ...]:
        """The colours of six groups."""
        return self.good, self.bad, self.accent, self.fourth, self.fifth, self.text


COLOUR_NAMES: Final = tuple(field.name for field in fields(Theme) if field.type is str)

_LIGHT: Final = Theme(
    text="#1f2328", muted="#5c6570", grid="#dfe3e8", background="#ffffff",
    good="#0072b2", bad="#d55e00", total="#3c444d", accent="#009e73",
    fourth="#aa4499", fifth="#8f7300",
)  # fmt: skip
_DARK: Final = Theme(
    text="#e6e8eb", muted="#9aa4af", grid="#343a42", background="#16191d",
    good="#56b4e9", bad="#e69f00", total="#c3cad2", accent="#2fbf95",
    fourth="#e08fc4", fifth="#f0e442",
)  # fmt: skip
_THEMES: Final = {"auto": replace(_LIGHT, follows_notebook=True), "light": _LIGHT, "dark": _DARK}


@dataclass(slots=True)
class _Settings:
    theme: ThemeName = "auto"
    titles: bool = True
    dpi: int = 192


SETTINGS: Final = _Settings()


@publish_as("toolkit.plots")
def use(theme: ThemeName = "auto", *, titles: bool = True, dpi: int = 192) -> None:
    """Set the look of all figures that are drawn after this call.

    Parameters
    ----------
    theme : {"auto", "light", "dark"}, default "auto"
        Theme of figures that are drawn without ``theme=``. With "auto", JupyterLab and VS Code show
        a figure in their own theme, and files are light.
    titles : bool, default True
        Whether figures have titles. A paper has captions instead.
    dpi : int, default 192
        Pixels per inch of a notebook's figures; 192 is sharp on screens with two pixels a point.

    Raises
    ------
    ValueError
        If `theme` is unknown, or `dpi` is not from 50 to 1200.

    Examples
    --------
    >>> from toolkit import plots
    >>> plots.use(theme="dark", titles=False)
    >>> plots.use()
    """
    get_theme(theme)
    if not 50 <= dpi <= 1200:
        raise ValueError(f"dpi must be from 50 to 1200, not {dpi!r}")
    SETTINGS.theme, SETTINGS.titles, SETTINGS.dpi = theme, titles, dpi


def get_theme(name: str) -> Theme:
    """Return the theme with a name; "auto" is the one that `use` has set.

    Raises
    ------
    ValueError
        If there is no such theme.
    """
    if name not in _THEMES:
        raise ValueError(f"theme must be 'auto', 'light' or 'dark', not {name!r}")
    return _THEMES[SETTINGS.theme if name == "auto" else name]


def colour_map(theme: Theme, *names: str) -> Colormap:
    """Return shades between colours of a theme; missing values have no colour.

    The name of the map are the names of its colours, so that it can be made again in another theme.
    """
    colours = [getattr(theme, name) for name in names]
    scale = LinearSegmentedColormap.from_list(" ".join(names), colours)
    return scale.with_extremes(bad=(0, 0, 0, 0))


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
        light = self._picture('class="tk-light" ', self.theme.background)
        twin = copy.deepcopy(self)
        recolour_figure(twin, self.theme, _DARK)
        dark = twin._picture('class="tk-dark" ', "none")
        return f'<div class="tk-plot">{_STYLE}{light}{dark}</div>'

    def _picture(self, css: str, background: Any) -> str:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=SETTINGS.dpi, facecolor=background)
        data = base64.b64encode(buffer.getvalue()).decode()
        width = int(self.get_figwidth() * 96)
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
    labels = [str(ax.get_label()) for ax in every_axes]
    return " ".join(label for label in labels if label[:1] not in ("", "<"))


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


def recolour_figure(figure: Figure, old: Theme, new: Theme) -> None:
    """Give a figure the colours of another theme.

    Other colours and shades, such as those that a user chose, stay as they are.
    """
    names = {getattr(old, name): getattr(new, name) for name in COLOUR_NAMES}
    artist: Any
    for artist in figure.findobj():
        is_shaded = isinstance(artist, ScalarMappable) and artist.get_array() is not None
        # All values are read first: the colour of a hatch may be that of the edge.
        values = {
            name: getattr(artist, f"get_{name}")()
            for name in ("facecolor",) * (not is_shaded) + _PROPERTIES
            if hasattr(artist, f"get_{name}") and hasattr(artist, f"set_{name}")
        }
        for name, value in values.items():
            getattr(artist, f"set_{name}")(_replace(value, names))
        if is_shaded and set(shades := artist.get_cmap().name.split()) <= set(COLOUR_NAMES):
            artist.set_cmap(colour_map(new, *shades))


def _replace(colour: Any, names: Mapping[str, str]) -> Any:
    """Return the colour of the new theme for one of the old theme; others as they are."""
    if isinstance(colour, str) and colour in ("none", "auto", "face", "edge", "inherit"):
        return colour
    if np.ndim(colour) == 2:  # the colours of a collection
        return [_replace(each, names) for each in colour]
    rgba = to_rgba(colour)
    return to_rgba(names.get(to_hex(rgba[:3]), rgba[:3]), rgba[3])
