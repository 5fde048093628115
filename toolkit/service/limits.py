"""The limits of the service: how much one client, one request and one connection may take.

docs/service.md describes every limit. Tests shorten them, so that they need not wait.
"""

import contextlib
from dataclasses import dataclass
from typing import Final

__all__ = ["DEFAULT_LIMITS", "ServiceLimits", "connection_limit"]

_RESERVED_FILES: Final = 100
"""File descriptors that connections leave free, for the store, an upstream and the log."""


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """The limits of a service. Times are in seconds.

    Attributes
    ----------
    connections : int
        Open connections. Fewer are allowed if the process may not open so many files.
    header_count : int
        Headers of a request.
    header_bytes : int
        Bytes of the request line and all headers.
    body_bytes : int
        Bytes of a request body.
    list_entries : int
        Entries of a list in a request.
    pipelined_requests : int
        Requests that a connection may send before it has the first response.
    refusals_at_once : int
        Refusals for one address that are sent at once.
    refusals_per_second : float
        Refusals for one address that are sent in a second, beyond those at once.
    refusal_wait_seconds : float
        Longest time that a refusal waits. After it, the connection is closed without a response.
    first_byte_seconds : float
        From the start of a connection to its first byte.
    header_seconds : float
        From the first byte of a request to the end of its headers.
    body_seconds : float
        From the end of the headers to the end of the body.
    idle_seconds : float
        From a response to the first byte of the next request.
    answer_seconds : float
        Longest time that an answer reads rows. No page needs so long. The limit stops searches in
        very large accounts.
    send_seconds : float
        From the first to the last byte of a response.
    linger_seconds : float
        Time that the service continues to read from a connection that it closes, so that the client
        receives the last response.
    stop_seconds : float
        Longest time that the service finishes responses before it stops.
    workers : int
        Requests that are computed at once.
    workers_per_key : int
        Requests of one key that are computed at once.
    forwards : int
        Replaces `workers` if the service forwards requests to an upstream, because most of them
        only wait. One key may use half of them.
    """

    connections: int = 1_000
    header_count: int = 100
    header_bytes: int = 32_768
    body_bytes: int = 2**20
    list_entries: int = 2_000
    pipelined_requests: int = 100
    refusals_at_once: int = 200
    refusals_per_second: float = 50.0
    refusal_wait_seconds: float = 5.0
    first_byte_seconds: float = 10.0
    header_seconds: float = 10.0
    body_seconds: float = 30.0
    idle_seconds: float = 60.0
    answer_seconds: float = 60.0
    send_seconds: float = 120.0
    linger_seconds: float = 2.0
    stop_seconds: float = 8.0
    workers: int = 4
    workers_per_key: int = 1
    forwards: int = 32


DEFAULT_LIMITS: Final = ServiceLimits()


def connection_limit(limits: ServiceLimits) -> int:
    """Return how many connections this process may have open."""
    with contextlib.suppress(ImportError):  # Windows has no such limit
        import resource

        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if files != resource.RLIM_INFINITY:
            return max(1, min(limits.connections, files - _RESERVED_FILES))
    return limits.connections
