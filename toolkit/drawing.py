"""The figure of each class of results.

`toolkit.plots` registers its functions here, and a result looks up its own. So results do not
import the plots, which import the results.
"""

from collections.abc import Callable
from typing import Any, Final

PLOTS: Final[dict[type, Callable[..., Any]]] = {}
"""Class of a result -> function of `toolkit.plots`."""

_loaders: Final[list[Callable[[], object]]] = []


def load_with(load: Callable[[], object]) -> None:
    """Set the function that imports `toolkit.plots`; the top-level package calls this."""
    _loaders[:] = [load]


def plot_of(kind: type) -> Callable[..., Any]:
    """Return the function of `toolkit.plots` that draws a class of results."""
    if kind not in PLOTS:
        for load in _loaders:
            plots = load()
            for name in dir(plots):  # the modules of the plots are imported with their names
                getattr(plots, name)
    return PLOTS[kind]
