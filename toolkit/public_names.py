"""The path under which users find a public function or class."""

import inspect
import sys
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T", bound=Callable[..., Any])


def publish_names(module: str) -> None:
    """Make a module the public path of the names in its ``__all__``.

    Pickles, tracebacks, documentation and `repr` then show where users import a name from, and not
    the module that implements it. ``dir()`` of the module lists these names only.

    Parameters
    ----------
    module : str
        ``__name__`` of the module. It calls this function after its last import.

    Examples
    --------
    >>> import toolkit as tk
    >>> tk.plots.waterfall.__module__, tk.archive.Archive.__module__
    ('toolkit.plots', 'toolkit.archive')
    """
    namespace = vars(sys.modules[module])
    names: list[str] = namespace["__all__"]
    for name in names:
        if inspect.isfunction(namespace[name]) or inspect.isclass(namespace[name]):
            namespace[name].__module__ = module
    namespace["__dir__"] = lambda: list(names)


def publish_as(path: str) -> Callable[[T], T]:
    """Return a decorator that sets the public path of one function or class.

    It is for the names of `toolkit` itself, which are imported when they are first used.

    Parameters
    ----------
    path : str
        The module from which users import the name.

    Examples
    --------
    >>> from toolkit.fetch.concat import concat
    >>> concat.__module__
    'toolkit'
    """

    def publish(value: T) -> T:
        value.__module__ = path
        return value

    return publish
