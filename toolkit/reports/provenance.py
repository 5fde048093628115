"""Where a report comes from: what was asked, what came, which programs made the page of it."""

import hashlib
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final

import pandas as pd

from toolkit.times import to_iso

__all__ = ["Source", "digest", "sources_of", "versions"]

_PROGRAMS: Final = ("exchange-toolkit", "pandas", "numpy", "pyarrow", "narwhals", "matplotlib")
_TIMES: Final = ("start", "end")


@dataclass(frozen=True, slots=True)
class Source:
    """One frame of a report: what was asked for it, and what came.

    Attributes
    ----------
    name, operation : str
        What the report calls it, and what the service does.
    parameters : list of str
        What was asked, ``name = value``.
    rows : int
        How many came.
    complete : str
        ``yes``, or what is known.
    digest : str
        SHA-256 of the rows, as `digest` computes it.
    """

    name: str
    operation: str
    parameters: list[str]
    rows: int
    complete: str
    digest: str


def sources_of(frames: Mapping[str, pd.DataFrame | None]) -> list[Source]:
    """Describe the frames of a report; those that could not be had are left out.

    The moment of asking is left out as well: the same data must give the same page.
    """
    return [_source(name, frame) for name, frame in frames.items() if frame is not None]


def digest(frame: pd.DataFrame) -> str:
    r"""Give the SHA-256 of a frame written as CSV.

    Examples
    --------
    >>> digest(pd.DataFrame({"a": [1]})) == hashlib.sha256(b"a\n1\n").hexdigest()
    True
    """
    written = frame.to_csv(index=False, lineterminator="\n")
    return hashlib.sha256(written.encode()).hexdigest()


def versions() -> dict[str, str]:
    """Give the versions of what computes and draws."""
    programs = {name: version(name) for name in _PROGRAMS}
    return {**programs, "Python": platform.python_version()}


def _source(name: str, frame: pd.DataFrame) -> Source:
    facts: Mapping[str, Any] = frame.attrs.get("toolkit", {})
    asked = facts.get("parameters", {})
    return Source(
        name=name,
        operation=str(facts.get("operation", "")),
        parameters=[f"{key} = {_shown(key, value)}" for key, value in asked.items()],
        rows=len(frame),
        complete=str(facts.get("complete", "")),
        digest=digest(frame),
    )


def _shown(name: str, value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return to_iso(value) if name in _TIMES and isinstance(value, int) else str(value) or '""'
