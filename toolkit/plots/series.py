"""Several lines in one figure: each with its own colour, line and marker."""

from typing import NamedTuple

from matplotlib.axes import Axes

from toolkit.plots.style import Theme
from toolkit.plots.texts import MINUS


class Look(NamedTuple):
    """How one line looks."""

    colour: str
    line: str
    marker: str
    hollow: bool


MOST = 6


def look(theme: Theme, number: int) -> Look:
    """Give the look of the line of a number, from 0 to 5."""
    colours = (theme.good, theme.bad, theme.accent, theme.total, theme.muted, theme.text)
    lines, markers = ("-", "--", "-.", ":", "-", "--"), ("o", "s", "^", "D", "v", "P")
    return Look(colours[number], lines[number], markers[number], number % 2 == 1)


def named(keys: object) -> str:
    """Write the key of a group."""
    return ", ".join(map(str, keys)) if isinstance(keys, tuple) else str(keys)


def title(ax: Axes, theme: Theme, text: str, *, right: bool = False, pad: float = 6.0) -> None:
    """Name what the axes show; the text is no mathematics."""
    ax.set_title(
        text,
        loc="right" if right else "left",
        pad=pad,
        fontsize=10,
        fontweight="bold",
        color=theme.text,
        parse_math=False,
    )


def zero_line(ax: Axes, theme: Theme) -> None:
    """Draw the line between gain and loss."""
    ax.axhline(0, color=theme.muted, linewidth=0.8)


def signed(value: float, _: int | None = None) -> str:
    """Write a number with a true minus sign."""
    return f"{value:g}".replace("-", MINUS)


def span(seconds: float, _: int | None = None) -> str:
    """Write a span of time.

    Examples
    --------
    >>> [span(one) for one in (0.5, 30, 300, 7200)]
    ['0.5 s', '30 s', '5 min', '2 h']
    """
    if seconds < 60:
        return f"{seconds:g} s"
    return f"{seconds / 60:g} min" if seconds < 3600 else f"{seconds / 3600:g} h"
