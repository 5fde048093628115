"""The path under which users find a public function or class."""

import inspect
from typing import Any

__all__ = ["set_public_path"]


def set_public_path(namespace: dict[str, Any], path: str | None = None) -> None:
    """Set ``__module__`` of the public names of a module to the module itself.

    Pickles, documentation and `repr` then show where users import a name from, and not the module
    that implements it.

    Parameters
    ----------
    namespace : dict
        ``globals()`` of the module, with its ``__all__``.
    path : str, optional
        Another public path than the module's own name.

    Examples
    --------
    >>> import toolkit as tk
    >>> tk.pnl.attribution.__module__, tk.user_fills.__module__
    ('toolkit.pnl', 'toolkit')
    """
    for name in namespace["__all__"]:
        value = namespace[name]
        if inspect.isfunction(value) or inspect.isclass(value):
            value.__module__ = path or namespace["__name__"]
