"""Where a report's kernel gets its data: a line of code that makes the session."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from toolkit.client import Session
from toolkit.errors import ReportFailed

__all__ = ["Source", "archived", "live", "recorded", "simulated", "source_of"]


class Source(NamedTuple):
    """A source of data that another process can open.

    Attributes
    ----------
    code : str
        An expression that makes the session; it holds no key.
    environment : mapping
        Environment variables that it needs.
    """

    code: str
    environment: Mapping[str, str] = {}


def simulated(seed: int, size: str) -> Source:
    """Name a simulated exchange."""
    return Source(f"tk.local(seed={seed!r}, size={size!r})")


def recorded(folder: str | os.PathLike[str]) -> Source:
    """Name a folder of recorded answers."""
    return Source(f"tk.local(recordings={os.path.abspath(folder)!r})")


def archived(archive: str) -> Source:
    """Name an archive, ``@<id>`` behind it for a freeze."""
    return Source(f"tk.local(archive={archive!r})")


def live() -> Source:
    """Name the service of ``TOOLKIT_BASE_URL``."""
    return Source("tk.connect()")


def source_of(session: Session) -> Source:
    """Name the source of a session, so that another process can open it.

    Raises
    ------
    ReportFailed
        If it cannot be opened again.
    """
    world = session.world or {}
    if session.simulated and "size" in world:
        return simulated(world["seed"], world["size"])
    raise ReportFailed("cannot be opened")
