"""Provenance of a report: the request and digest of each frame, and versions of libraries."""

import hashlib
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final

import pandas as pd

from toolkit.display import count_text
from toolkit.times import to_iso

_LIBRARIES: Final = ("exchange-toolkit", "pandas", "numpy", "pyarrow", "narwhals", "matplotlib")
_TIMES: Final = ("start", "end")
_MAX_NAMES: Final = 12  # of a list that the page shows


@dataclass(frozen=True, slots=True)
class FrameSource:
    """The provenance of one frame of a report.

    - ``name``, ``operation``: name of the frame in the report, and operation of the service
    - ``parameters``: parameters of the request as ``name = value``
    - ``rows``: number of rows
    - ``complete``: ``yes``, or how complete the rows are
    - ``digest``: SHA-256 of the rows, as `frame_digest` computes it
    """

    name: str
    operation: str
    parameters: list[str]
    rows: int
    complete: str
    digest: str


def describe_frames(frames: Mapping[str, pd.DataFrame | None]) -> list[FrameSource]:
    """Return the provenance of the frames of a report; missing frames are left out.

    The time of the request is left out, too: the same data must give the same page.
    """
    return [_describe_frame(name, frame) for name, frame in frames.items() if frame is not None]


def frame_digest(frame: pd.DataFrame) -> str:
    r"""Return the SHA-256 of a frame as CSV.

    Examples
    --------
    >>> frame_digest(pd.DataFrame({"a": [1]})) == hashlib.sha256(b"a\n1\n").hexdigest()
    True
    """
    csv = frame.to_csv(index=False, lineterminator="\n")
    return hashlib.sha256(csv.encode()).hexdigest()


def library_versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that compute and draw."""
    libraries = {name: version(name) for name in _LIBRARIES}
    return {**libraries, "Python": platform.python_version()}


def _describe_frame(name: str, frame: pd.DataFrame) -> FrameSource:
    facts: Mapping[str, Any] = frame.attrs.get("toolkit", {})
    parameters = facts.get("parameters", {})
    return FrameSource(
        name=name,
        operation=str(facts.get("operation", "")),
        parameters=[f"{key} = {_parameter_text(key, value)}" for key, value in parameters.items()],
        rows=len(frame),
        complete=str(facts.get("complete", "")),
        digest=frame_digest(frame),
    )


def _parameter_text(name: str, value: Any) -> str:
    if isinstance(value, list | tuple):
        others = len(value) - _MAX_NAMES
        shown = ", ".join(map(str, value[:_MAX_NAMES]))
        return f"{shown} and {count_text(others, 'other')}" if others > 0 else shown
    return to_iso(value) if name in _TIMES and isinstance(value, int) else str(value) or '""'
