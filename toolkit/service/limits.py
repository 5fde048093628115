"""The limits of the service; docs/service.md describes each. Tests shorten them."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """The limits of a service. Times are in seconds.

    Attributes
    ----------
    body_bytes : int
        Bytes of a request body.
    list_entries : int
        Entries of a list in a request.
    body_seconds : float
        From the end of the headers to the end of the body.
    idle_seconds : int
        From a response to the first byte of the next request.
    answer_seconds : float
        Longest time that an answer reads rows. No page needs so long. The limit stops searches in
        very large accounts.
    stop_seconds : int
        Longest time that the service finishes responses before it stops.
    workers : int
        Requests that are computed at once.
    workers_per_key : int
        Requests of one key that are computed at once.
    forwards : int
        Replaces `workers` if the service forwards requests to an upstream, because most of them
        only wait. One key may use half of them.
    """

    body_bytes: int = 2**20
    list_entries: int = 2_000
    body_seconds: float = 30.0
    idle_seconds: int = 60
    answer_seconds: float = 60.0
    stop_seconds: int = 8
    workers: int = 4
    workers_per_key: int = 1
    forwards: int = 32


DEFAULT_LIMITS: Final = ServiceLimits()
