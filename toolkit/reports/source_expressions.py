"""Sources of data for the kernel of a report: expressions that make a session."""

import inspect
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from toolkit.client import Session, connect
from toolkit.contract.apis import EXCHANGE
from toolkit.errors import ReportFailed

_FOLDERS: Final = ("recordings", "archive")


def simulated_source(seed: int, size: str) -> str:
    """Return the expression for a simulated exchange."""
    return f"tk.local(seed={seed!r}, size={size!r})"


def recording_source(folder: str | os.PathLike[str]) -> str:
    """Return the expression for a folder of recorded answers."""
    return f"tk.local(recordings={os.path.abspath(folder)!r})"


def archive_source(archive: str) -> str:
    """Return the expression for an archive; ``@<id>`` after its path names a freeze."""
    return f"tk.local(archive={_literal('archive', archive)!r})"


def live_source(exchange: str | None = None) -> str:
    """Return the expression for the service of the environment, or for an exchange's own API."""
    return f"tk.connect({exchange!r})" if exchange else "tk.connect()"


def session_source(session: Session) -> str:
    """Return the expression with which another process opens the same source, without the key.

    Raise ReportFailed if the source cannot be opened again, or its key is not in the environment.

    >>> import toolkit as tk
    >>> session_source(tk.local(seed=7, size="tiny", default=False))
    "tk.local(seed=7, size='tiny')"
    """
    recipe = session.recipe
    if recipe is None:
        raise ReportFailed(
            f"a report runs in a process of its own, which cannot open {session.label} again. "
            "Make the session with tk.local, or with tk.connect without transport="
        )
    if recipe.lacks_key:
        raise ReportFailed(
            "a report runs in a process of its own, and the key is not sent to it. Set "
            "TOOLKIT_API_KEY in the environment"
        )
    arguments = recipe.arguments
    if "base_url" in arguments:  # the others are of tests
        if session.api is EXCHANGE:
            arguments = {**arguments, "exchange": EXCHANGE.name}
        names = inspect.signature(connect).parameters
        arguments = {name: value for name, value in arguments.items() if name in names}
        return f"tk.connect({_argument_text(arguments)})"
    return f"tk.local({_argument_text(arguments)})"


def _argument_text(arguments: Mapping[str, Any]) -> str:
    chosen = {name: _literal(name, value) for name, value in arguments.items() if value is not None}
    if chosen.keys() & set(_FOLDERS):
        chosen = {name: value for name, value in chosen.items() if name not in ("seed", "size")}
    defaults = {"cursors": "exclusive", "clock": "fixed", "strict": False, "like": "service"}
    return ", ".join(
        f"{name}={value!r}" for name, value in chosen.items() if defaults.get(name) != value
    )


def _literal(name: str, value: Any) -> Any:
    """Return a value whose repr is valid code; folders become absolute paths."""
    if name not in _FOLDERS or "://" in str(value):
        return str(value) if isinstance(value, Path) else value
    return os.path.abspath(value)
