"""Style of the figures: new figures and their panels, and what every plot takes and checks.

Nothing here uses pyplot or rcParams. A figure belongs to its caller, no list keeps it open, and
figures can be drawn on the threads of widgets.
"""

import re
from collections.abc import Callable, Sequence, Sized
from functools import wraps
from inspect import Parameter, signature
from typing import Any, Final, ParamSpec, TypedDict, TypeVar, get_type_hints

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.layout_engine import ConstrainedLayoutEngine

from toolkit.display import type_text
from toolkit.drawing import PLOTS
from toolkit.errors import MissingColumns
from toolkit.plots.axes import Panel
from toolkit.plots.figures import NotebookAxes, NotebookFigure, ThemeName, get_theme, root_figure
from toolkit.statistics import Estimate

NO_METADATA: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))
"""By default an SVG contains the time and the name of the program."""

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=Sized)


class Look(TypedDict, total=False):
    """The keyword parameters of every plot."""

    theme: ThemeName
    transparent: bool


class PanelLook(Look, total=False):
    """The keyword parameters of every plot, and the axes to draw on."""

    ax: Axes | None


_LOOK: Final = [
    Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)
    for name, default in (("ax", None), ("theme", "auto"), ("transparent", False))
    for hint in (get_type_hints(PanelLook)[name],)
]


def open_panel(
    frame: pd.DataFrame, look: PanelLook, size: tuple[float, float] = (7.2, 3.6)
) -> Panel:
    """Return the panel to draw on: the axes of `look`, or by default those of a new figure."""
    return open_panels(frame, look, size)[0]


def open_panels(
    frame: pd.DataFrame,
    look: PanelLook,
    size: tuple[float, float],
    *,
    heights: Sequence[float] = (1,),
    widths: Sequence[float] = (1,),
    **shared: Any,
) -> list[Panel]:
    """Return the panels of a new figure, row by row; or the axes of `look` alone.

    - ``frame``: the result, whose provenance states whether its data is simulated
    - ``heights``, ``widths``: of the rows and columns of panels; a column shares the x axis
    - ``**shared``: which other axes are shared, as in ``Figure.subplots``
    """
    theme, ax = get_theme(look["theme"]), look["ax"]
    if ax is not None:
        every = [ax]
    else:
        figure = NotebookFigure(figsize=size, dpi=144)
        figure.theme = theme
        # The strip at the top is for the mark of simulated data.
        strip = (0.0, 0.0, 1.0, 1.0 - 0.14 / size[1])
        figure.set_layout_engine(ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06, rect=strip))
        figure.set_facecolor("none" if look["transparent"] else theme.background)
        grid = figure.subplots(
            len(heights), len(widths), squeeze=False, height_ratios=heights, width_ratios=widths,
            subplot_kw={"axes_class": NotebookAxes}, **{"sharex": "col", **shared},
        )  # fmt: skip
        every = list(grid.ravel())
    panels = [Panel(each, theme, frame) for each in every]
    for panel in panels:
        panel.set_style()
    return panels


class NoData(Exception):
    """A result has nothing to draw."""


def not_empty(rows: T) -> T:
    """Return the rows to draw; without any, the figure says that there is no data."""
    if not len(rows):
        raise NoData
    return rows


def draws_result(subject: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of a plot: it checks its arguments, and says if there is no data.

    - ``subject``: what the figure shows, for the words of a figure without data

    A function that draws several panels gives the Axes of the first one. Its caller gets the
    Figure, unless ``ax`` was passed. A wrong result is reported with the helper that makes the
    right one. The class of a result finds its plot in `toolkit.drawing`.
    """

    def decorate(draw: Callable[P, R]) -> Callable[P, R]:
        named = re.search(r"`(tk\.\w+\.\w+)`", draw.__doc__ or "")
        words = f"{draw.__name__} draws the result of {named[1] if named else 'a helper'}"
        *own, _ = signature(draw).parameters.values()
        shown = signature(draw).replace(parameters=[*own, *_LOOK])
        call: Callable[..., Any] = draw

        @wraps(draw)
        def draw_checked(*arguments: P.args, **options: P.kwargs) -> Any:
            try:
                bound = shown.bind(*arguments, **options)
            except TypeError as error:
                raise TypeError(f"{draw.__name__}() {error}") from None
            bound.apply_defaults()
            result, ax = bound.arguments[own[0].name], bound.arguments["ax"]
            is_frame = isinstance(result, pd.DataFrame)
            if not (is_frame or type(result).__module__.startswith("toolkit.")):
                raise TypeError(f"{words}, not {type_text(result)}")
            if not (ax is None or isinstance(ax, Axes)):
                raise TypeError(f"ax is the Axes of matplotlib to draw on, not {ax!r}")
            try:
                if is_frame:
                    not_empty(result)
                drawn = call(*bound.args, **bound.kwargs)
            except NoData:
                look: Any = {name: bound.arguments[name] for name in ("ax", "theme", "transparent")}
                panel = open_panel(getattr(result, "params", result), look)
                panel.write_note("no data")
                drawn = panel.finish(f"{subject}: no data.")
            except (KeyError, AttributeError) as error:
                listed = re.search(r"\[('.*?')\]", str(error))
                lacking = listed[1] if listed else getattr(error, "name", None) or error
                kind = type(result).__name__
                raise MissingColumns(f"{words}; this {kind} lacks {lacking}") from error
            return drawn if ax or shown.return_annotation is Axes else root_figure(drawn)

        vars(draw_checked)["__signature__"] = shown
        draw_checked.__module__ = "toolkit.plots"
        if isinstance(own[0].annotation, type) and issubclass(own[0].annotation, Estimate):
            PLOTS[own[0].annotation] = draw_checked
        return draw_checked

    return decorate
