"""Themes: the colours of figures, and the settings that hold for all figures of a session."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Final, Literal

from matplotlib.colors import Colormap, LinearSegmentedColormap

from toolkit.public_names import publish_as

ThemeName = Literal["auto", "light", "dark"]
"""``auto`` is the theme of `use`; without it, the theme of the notebook."""


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

_THEMES: Final[Mapping[str, Theme]] = {
    "light": Theme(
        text="#1f2328", muted="#5c6570", grid="#dfe3e8", background="#ffffff",
        good="#0072b2", bad="#d55e00", total="#3c444d", accent="#009e73",
        fourth="#aa4499", fifth="#8f7300",
    ),
    "dark": Theme(
        text="#e6e8eb", muted="#9aa4af", grid="#343a42", background="#16191d",
        good="#56b4e9", bad="#e69f00", total="#c3cad2", accent="#2fbf95",
        fourth="#e08fc4", fifth="#f0e442",
    ),
}  # fmt: skip


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
    if theme != "auto":
        get_theme(theme)
    if not 50 <= dpi <= 1200:
        raise ValueError(f"dpi must be from 50 to 1200, not {dpi!r}")
    SETTINGS.theme, SETTINGS.titles, SETTINGS.dpi = theme, titles, dpi


def get_theme(name: str) -> Theme:
    """Return the theme with a name.

    Raises
    ------
    ValueError
        If there is no such theme.
    """
    if name == "auto":
        if SETTINGS.theme == "auto":
            return replace(_THEMES["light"], follows_notebook=True)
        name = SETTINGS.theme
    if name not in _THEMES:
        raise ValueError(f"theme must be 'auto', {' or '.join(map(repr, _THEMES))}, not {name!r}")
    return _THEMES[name]


def colour_map(theme: Theme, *names: str) -> Colormap:
    """Return shades between colours of a theme; missing values have no colour.

    The name of the map are the names of its colours, so that it can be made again in another theme.
    """
    colours = [getattr(theme, name) for name in names]
    scale = LinearSegmentedColormap.from_list(" ".join(names), colours)
    return scale.with_extremes(bad=(0, 0, 0, 0))
