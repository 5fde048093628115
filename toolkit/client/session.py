"""A session: the service, the key and the budget; the one place that sends requests."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from toolkit.client.budget import Budget, Spending
from toolkit.client.counts import Counts, retry_cause
from toolkit.client.key import ApiKey
from toolkit.client.recipe import Recipe
from toolkit.client.retry import Retry
from toolkit.client.source import DataSource
from toolkit.completeness.headers import Completeness, read_completeness
from toolkit.contract.compression import decompress
from toolkit.contract.costs import DEXES_AT_MOST, request_points
from toolkit.contract.operations import Operation
from toolkit.contract.requests import request_body
from toolkit.contract.response_errors import response_error
from toolkit.display import facts_table
from toolkit.errors import (
    AnswerDamaged,
    AnswerInvalid,
    InvalidKey,
    NotConnected,
    ServiceError,
    Unreachable,
)

__all__ = ["LARGEST_JSON", "LARGEST_SNAPSHOTS", "PATIENCE", "RawAnswer", "Session", "is_binary"]

LARGEST_JSON: Final = 2**28
"""Bytes of the largest JSON answer that is read, after decompression."""

LARGEST_SNAPSHOTS: Final = 2**30
"""Bytes of the largest binary answer that is read; its decompressed size has another limit."""

PATIENCE: Final = 600.0
"""Seconds after which a body that comes too slowly is given up."""

_GLANCE: Final = 2.0  # seconds for a service on this machine to introduce itself
# Failure of the connection -> its name in the certificate; the first that fits.
_CAUSES: Final[tuple[tuple[type[httpx.HTTPError], str], ...]] = (
    (httpx.TimeoutException, "time-out"),
    (httpx.ConnectError, "no connection"),
)
_ENDS: Final = {b"[": b"]", b"{": b"}"}
_BINARY: Final = ("application/octet-stream", "application/msgpack", "application/x-msgpack")


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """An answer with status 200, before it is decoded.

    Attributes
    ----------
    headers : mapping
        Header names in lower case -> values.
    content : bytes
        The body, decompressed unless it is binary.
    completeness : Completeness
        What the service states about the completeness of the answer.
    """

    headers: Mapping[str, str]
    content: bytes
    completeness: Completeness = field(default_factory=Completeness)


@dataclass(eq=False)
class Session:
    """A connection to a service, with key and budget.

    Make one with `toolkit.connect` or `toolkit.local`. It may be used from many threads.

    Attributes
    ----------
    base_url : str
        Address of the service, without ``/info``.
    source : DataSource
        What is known of the service that answers.
    world : object
        What is in a local service, or None.
    recipe : Recipe or None
        How another process makes a session like it; None if no other process can.
    dexes : int
        How many dexes there are at most: the cost of a request for all dexes depends on it.
    counts : Counts
        Requests, points, retries and seconds waited so far.
    """

    base_url: str
    key: ApiKey | None = field(repr=False)
    source: DataSource
    world: Any
    progress: bool | Callable[[str], Any] | None
    budget: Budget
    retry: Retry
    client: httpx.Client = field(repr=False)
    recipe: Recipe | None = field(default=None, repr=False)
    dexes: int = field(default=DEXES_AT_MOST, repr=False)
    counts: Counts = field(default_factory=Counts)

    @property
    def label(self) -> str:
        """Name of the source for provenance: the user's, the service's own, or the address."""
        return self.source.label

    @property
    def simulated(self) -> bool:
        """Whether the data is simulated."""
        return self.source.simulated

    def now_ms(self) -> int:
        """Return the present, in Unix milliseconds: ages such as ``"7d"`` count back from it.

        It is the user's, else the service's own if its answers state one, else the wall clock's.
        Before its first answer, a service on this machine is asked once at ``/healthz``, without
        the key; any other service is not asked.
        """
        return self.source.now_ms(self._look_at_health)

    def ask(
        self,
        operation: Operation,
        parameters: Mapping[str, Any],
        counts: Counts | None = None,
    ) -> RawAnswer:
        """Send one request, with retries, and return the answer.

        Parameters
        ----------
        operation : Operation
            The operation.
        parameters : mapping
            Python name -> value.
        counts : Counts, optional
            Counts of a pull, of `new_counts`; else the request counts for the session only.

        Raises
        ------
        ServiceError, Unreachable
            The last failure, if no good answer came.
        BudgetSpent
            If the points of the session do not allow the request.
        Incomplete
            If the service has no answer because its source, such as an archive, does not have it.
        """
        return self.send(operation, request_body(operation, parameters), counts)

    def send(
        self, operation: Operation, request: Mapping[str, Any], counts: Counts | None = None
    ) -> RawAnswer:
        """Send a request body unchanged; otherwise like `ask`."""
        counted = self.counts if counts is None else counts

        def on_retry(failure: Exception, waited: float) -> None:
            counted.add_retry(retry_cause(failure))
            counted.add_wait(waited)

        queued: list[float] = []
        return self.retry.call(
            lambda: self._send(operation, request, counted, queued),
            on_retry,
            lambda: sum(queued),
        )

    def new_counts(self) -> Counts:
        """Return counts for a pull; what they count, the session counts too."""
        return Counts(within=self.counts)

    def set_recipe(self, recipe: Recipe) -> None:
        """Set how another process makes a session like this one."""
        self.recipe = recipe
        recipe.register_session(self)

    def close(self) -> None:
        """Close the connections; a closed session is not the default any more."""
        self.client.close()
        self.budget.close()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        key = "with key" if self.key else "without key"
        done = self.counts
        return (
            f"<Session {self.label}, {key}, {done.requests} requests, {done.points} points spent>"
        )

    def _repr_html_(self) -> str:
        quota = self.budget.per_minute
        facts = {
            "source": self.label,
            **({"simulated": True} if self.simulated else {}),
            "address": self.base_url,
            "key": "given, never shown" if self.key else "none",
            "requests": self.counts.requests,
            "points spent": self.counts.points,
            "points a minute": "no limit set" if quota is None else quota,
            "state": "closed" if self.client.is_closed else "open",
        }
        return facts_table("Session", facts)

    def _send(
        self,
        operation: Operation,
        request: Mapping[str, Any],
        counts: Counts,
        queued: list[float],
    ) -> RawAnswer:
        if self.client.is_closed:
            raise NotConnected("This session is closed. Call tk.connect or tk.local again")
        points = request_points(operation, request, self.dexes)
        with self.budget.spend(points, operation) as spending:
            counts.add_wait(spending.waited)
            queued.append(spending.waited)
            counts.add_request(points)
            response, content = self._post(operation, request, spending)
        self.source.update_from_headers(response.headers)
        completeness = self._completeness(response.headers)
        if response.status_code != 200:
            completeness.check_complete()
            error = self._error_of(operation, response, content)
            self.budget.block(self.retry.requested_wait(error))
            raise error
        return RawAnswer(response.headers, content, completeness)

    def _completeness(self, headers: Mapping[str, str]) -> Completeness:
        """Return what the service states about the completeness of an answer, without the key."""
        stated = read_completeness(headers)
        if self.key is None:
            return stated
        return replace(stated, missing_reason=self.key.scrub(stated.missing_reason))

    def _post(
        self, operation: Operation, request: Mapping[str, Any], spending: Spending
    ) -> tuple[httpx.Response, bytes]:
        try:
            with self.client.stream("POST", "/info", json=dict(request)) as response:
                spending.settle()
                return response, self._read_body(operation, response)
        except httpx.HTTPError as error:
            unreachable = self._unreachable(operation, error)
        # Raised here, not above: httpx's error has the request, and the request has the key.
        raise unreachable

    def _look_at_health(self) -> None:
        """Read the headers of ``/healthz`` of a service on this machine; failures do not matter."""
        if self.client.is_closed or not _is_this_machine(self.base_url):
            return
        try:
            with self.client.stream("GET", "/healthz", auth=None, timeout=_GLANCE) as response:
                self.source.update_from_headers(response.headers)
        except httpx.HTTPError:
            pass

    def _read_body(self, operation: Operation, response: httpx.Response) -> bytes:
        """Read and decompress a body as it comes, never more than the limit."""
        limit = LARGEST_SNAPSHOTS if operation.binary else LARGEST_JSON
        parts, size, begun = [], 0, time.monotonic()
        # With a transport of its own, httpx may have read and decoded the body already.
        is_decoded = response.is_stream_consumed
        for part in [response.content] if is_decoded else response.iter_raw():
            size += len(part)
            parts.append(part)
            if size > limit:
                raise AnswerInvalid(
                    f"the answer is longer than {limit:,} bytes", operation=operation.type
                )
            if time.monotonic() - begun > PATIENCE:
                raise httpx.ReadTimeout(f"the answer did not end within {PATIENCE:.0f} s")
        if not is_decoded:
            _check_length(response.headers, size)
        content = b"".join(parts)
        if operation.binary:
            return content
        plain = bytes(decompress(content, limit))
        if response.status_code != 200 or is_binary(operation, response.headers):
            return plain
        _check_json_end(operation, plain)
        return plain

    def _error_of(
        self, operation: Operation, response: httpx.Response, content: bytes
    ) -> ServiceError:
        error = response_error(operation, response.status_code, response.headers, content)
        if self.key is not None:
            error.message = self.key.scrub(error.message)
            error.args = (error.message,)
        elif isinstance(error, InvalidKey):
            error.hint = "There is no key: set TOOLKIT_API_KEY, or call tk.connect with api_key"
        return error

    def _unreachable(self, operation: Operation, error: httpx.HTTPError) -> Unreachable:
        words = str(error) or type(error).__name__
        if self.key is not None:
            words = self.key.scrub(words)
        unreachable = Unreachable(
            f"{operation.type}: no answer from {self.base_url} ({words}). Check the address and "
            "the network; tk.local() works without either"
        )
        causes = [word for kind, word in _CAUSES if isinstance(error, kind)]
        unreachable.cause = causes[0] if causes else "connection broken"
        return unreachable


def is_binary(operation: Operation, headers: Mapping[str, str]) -> bool:
    """Return whether an answer is binary, by the contract or, if it does not know, by headers."""
    if operation.tables:
        return operation.binary
    return headers.get("content-type", "").partition(";")[0].strip().lower() in _BINARY


def _is_this_machine(base_url: str) -> bool:
    """Return whether an address is this machine's own."""
    host = urlsplit(base_url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _check_length(headers: httpx.Headers, size: int) -> None:
    """Raise an error if a body is shorter than its headers say."""
    announced = headers.get("content-length", "")
    if announced.isascii() and announced.isdigit() and size < int(announced):
        raise httpx.RemoteProtocolError(f"the answer broke off after {size} of {announced} bytes")


def _check_json_end(operation: Operation, content: bytes) -> None:
    """Raise an error if JSON was cut off; `decode` refuses what is not JSON at all."""
    bare = content.strip()
    if not bare or bare[-1:] != _ENDS.get(bare[:1], bare[-1:]):
        raise AnswerDamaged(
            "the answer cannot be read: it ends too early",
            operation=operation.type,
            value=content[:80],
        )
