"""What figures draw: the result of a helper. Errors for anything else name this helper."""

import re
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

import pandas as pd
from matplotlib.axes import Axes

from toolkit.display import type_text
from toolkit.drawing import PLOTS
from toolkit.errors import MissingColumns
from toolkit.statistics.estimate import Estimate

P = ParamSpec("P")
R = TypeVar("R")


def draws_result(draw: Callable[P, R]) -> Callable[P, R]:
    """Return a figure's function with clear errors for a first argument that it cannot draw.

    The first helper that its docstring names is the one whose result it draws. If the first
    parameter is a class of results, their method ``plot`` calls the function.

    Raises
    ------
    TypeError
        If the argument is no result at all, or `ax` is no matplotlib Axes.
    MissingColumns
        If it is the result of another helper.
    """
    named = re.search(r"`(tk\.\w+\.\w+)`", draw.__doc__ or "")
    helper = named[1] if named else "a helper"

    @wraps(draw)
    def draw_checked(*arguments: P.args, **options: P.kwargs) -> R:
        result = next(iter((*arguments, *options.values())), None)
        words = f"{draw.__name__} draws the result of {helper}"
        if not (isinstance(result, pd.DataFrame) or type(result).__module__.startswith("toolkit.")):
            raise TypeError(f"{words}, not {type_text(result)}")
        ax = options.get("ax")
        if not (ax is None or isinstance(ax, Axes)):
            raise TypeError(f"ax is the Axes of matplotlib to draw on, not {ax!r}")
        try:
            return draw(*arguments, **options)
        except (KeyError, AttributeError) as error:
            lacking = error.name if isinstance(error, AttributeError) else error
            kind = type(result).__name__
            raise MissingColumns(f"{words}; this {kind} lacks {lacking}") from error

    drawn = next(iter(signature(draw).parameters.values())).annotation
    if isinstance(drawn, type) and issubclass(drawn, Estimate):
        PLOTS[drawn] = draw_checked
    return draw_checked
