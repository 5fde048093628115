"""Where a report's kernel gets its data: an expression that makes the session."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from toolkit.client import Session
from toolkit.errors import ReportFailed

__all__ = ["archived", "live", "recorded", "simulated", "source_of"]

_FOLDERS: Final = ("recordings", "archive")


def simulated(seed: int, size: str) -> str:
    """Name a simulated exchange."""
    return f"tk.local(seed={seed!r}, size={size!r})"


def recorded(folder: str | os.PathLike[str]) -> str:
    """Name a folder of recorded answers."""
    return f"tk.local(recordings={os.path.abspath(folder)!r})"


def archived(archive: str) -> str:
    """Name an archive, ``@<id>`` behind it for a freeze."""
    return f"tk.local(archive={_literal('archive', archive)!r})"


def live() -> str:
    """Name the service of ``TOOLKIT_BASE_URL``; its key is that of ``TOOLKIT_API_KEY``."""
    return "tk.connect()"


def source_of(session: Session) -> str:
    """Name the source of a session, so that another process can open it; without its key.

    Raises
    ------
    ReportFailed
        If it cannot be opened again, or its key is not in the environment.

    Examples
    --------
    >>> import toolkit as tk
    >>> source_of(tk.local(seed=7, size="tiny", default=False))
    "tk.local(seed=7, size='tiny')"
    """
    recipe = session.recipe
    if recipe is None:
        raise ReportFailed(
            f"a report runs in a process of its own, which cannot open {session.label} again: "
            "make the session with tk.connect or tk.local"
        )
    if recipe.needs_key and not os.environ.get("TOOLKIT_API_KEY"):
        raise ReportFailed(
            "a report runs in a process of its own, and the key is not sent to it: set "
            "TOOLKIT_API_KEY in the environment"
        )
    return f"tk.{recipe.make.__name__}({_written(recipe.arguments)})"


def _written(arguments: Mapping[str, Any]) -> str:
    given = {name: _literal(name, value) for name, value in arguments.items() if value is not None}
    if given.keys() & set(_FOLDERS):
        given = {name: value for name, value in given.items() if name not in ("seed", "size")}
    usual = {"cursors": "exclusive", "clock": "fixed", "strict": False}
    return ", ".join(
        f"{name}={value!r}" for name, value in given.items() if usual.get(name) != value
    )


def _literal(name: str, value: Any) -> Any:
    """Give a value that can be written down; a folder from wherever the kernel runs."""
    if name not in _FOLDERS or "://" in str(value):
        return str(value) if isinstance(value, Path) else value
    return os.path.abspath(value)
