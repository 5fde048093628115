"""What `verify` says."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Finding", "error_in", "notice_in"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that `verify` found.

    Attributes
    ----------
    kind : str
        ``damage``, ``lost``, ``run``, ``typed``, ``duplicate``, ``order``, ``chain``, ``grid``,
        ``hours``, ``gap`` or ``digest``.
    severity : {"error", "notice"}
        A notice may have an innocent cause.
    table, series : str
        Where.
    what : str
        What is wrong.
    """

    kind: str
    severity: Literal["error", "notice"]
    table: str
    series: str
    what: str


def error_in(table: str, series: str, kind: str, what: str) -> Finding:
    """Find what must not be."""
    return Finding(kind, "error", table, series, what)


def notice_in(table: str, series: str, kind: str, what: str) -> Finding:
    """Find what may have an innocent cause."""
    return Finding(kind, "notice", table, series, what)
