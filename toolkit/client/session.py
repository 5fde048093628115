"""A session: where to ask, with which key, how fast; and the one place that sends."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from toolkit.client.budget import Budget, Spending
from toolkit.client.counts import Counts, cause_of
from toolkit.client.key import Key
from toolkit.client.recipe import Recipe
from toolkit.client.retry import Retry
from toolkit.client.source import Source
from toolkit.completeness.headers import Completeness, read_completeness
from toolkit.contract.answers import response_error
from toolkit.contract.compression import inflate
from toolkit.contract.costs import DEXES_AT_MOST, request_points
from toolkit.contract.operations import Operation
from toolkit.contract.requests import request_body
from toolkit.display import facts_table
from toolkit.errors import (
    AnswerDamaged,
    AnswerInvalid,
    InvalidKey,
    NotConnected,
    ServiceError,
    Unreachable,
)

__all__ = ["LARGEST_JSON", "LARGEST_SNAPSHOTS", "PATIENCE", "Answer", "Session", "is_binary"]

LARGEST_JSON: Final = 2**28
"""Bytes of the largest JSON answer that is read, compression undone."""

LARGEST_SNAPSHOTS: Final = 2**30
"""Bytes of the largest binary answer that is read; what comes out of it has a limit of its own."""

PATIENCE: Final = 600.0
"""Seconds until a body that trickles is given up."""

_GLANCE: Final = 2.0  # seconds for a service on this machine to say who it is
# How a request failed -> what the certificate calls it; the first that fits.
_CAUSES: Final[tuple[tuple[type[httpx.HTTPError], str], ...]] = (
    (httpx.TimeoutException, "time-out"),
    (httpx.ConnectError, "no connection"),
)
_ENDS: Final = {b"[": b"]", b"{": b"}"}
_BINARY: Final = ("application/octet-stream", "application/msgpack", "application/x-msgpack")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: status 200, headers with names in lower case, body, how complete it is."""

    headers: Mapping[str, str]
    content: bytes
    completeness: Completeness = field(default_factory=Completeness)


@dataclass(eq=False)
class Session:
    """Where to ask, with which key, and how fast.

    Make one with `toolkit.connect` or `toolkit.local`. It may be used from many threads.

    Attributes
    ----------
    base_url : str
        Address of the service, without ``/info``.
    source : Source
        Who answers: as given, else as the service says of itself.
    world : object
        What is in a local service, or None.
    recipe : Recipe or None
        How another process makes a session like it; None where none can.
    dexes : int
        How many dexes there are, or at most: a request for all of them costs so many times more.
    counts : Counts
        Requests, points, retries and seconds waited so far.
    """

    base_url: str
    key: Key | None = field(repr=False)
    source: Source
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
        """What the source is, for provenance: as given or as the service says, or its address."""
        return self.source.label

    @property
    def simulated(self) -> bool:
        """Whether the source is invented."""
        return self.source.simulated

    def now_ms(self) -> int:
        """Give the present, in Unix milliseconds: ages such as ``"7d"`` count back from it.

        It is what was given, else the service's own, where it tells one in its answers, else the
        wall clock's. Before its first answer, a service on this machine is asked at ``/healthz``,
        once and without the key; one elsewhere is not.
        """
        return self.source.now_ms(self._look)

    def ask(
        self,
        operation: Operation,
        parameters: Mapping[str, Any],
        counts: Counts | None = None,
    ) -> Answer:
        """Send one request, again where a failure may pass, and give the good answer.

        Parameters
        ----------
        operation : Operation
            What to ask.
        parameters : mapping
            Python name -> value.
        counts : Counts, optional
            Where to count what is done, besides the session's own; make them with `counting`.

        Raises
        ------
        ServiceError, Unreachable
            If no good answer came, the last failure.
        BudgetSpent
            If the session's points do not allow it.
        Incomplete
            If the service has no answer since its source, as an archive, does not hold it.
        """
        return self.send(operation, request_body(operation, parameters), counts)

    def send(
        self, operation: Operation, request: Mapping[str, Any], counts: Counts | None = None
    ) -> Answer:
        """Send a request body as it is; else like `ask`."""
        counted = self.counts if counts is None else counts

        def on_retry(failure: Exception, waited: float) -> None:
            counted.retry(cause_of(failure))
            counted.wait(waited)

        queued: list[float] = []
        return self.retry.call(
            lambda: self._send(operation, request, counted, queued),
            on_retry,
            lambda: sum(queued),
        )

    def counting(self) -> Counts:
        """Give counts of their own for a pull; the session's count the same."""
        return Counts(within=self.counts)

    def made_by(self, recipe: Recipe) -> None:
        """Take note of how another process makes a session like this one."""
        self.recipe = recipe
        recipe.remember(self)

    def close(self) -> None:
        """Close the connections; a closed session is no default any more."""
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
    ) -> Answer:
        if self.client.is_closed:
            raise NotConnected("this session is closed: call tk.connect or tk.local again")
        points = request_points(operation, request, self.dexes)
        with self.budget.spend(points, operation) as spending:
            counts.wait(spending.waited)
            queued.append(spending.waited)
            counts.sent(points)
            response, content = self._post(operation, request, spending)
        self.source.hear(response.headers)
        completeness = self._completeness(response.headers)
        if response.status_code != 200:
            completeness.check_complete()
            error = self._failure(operation, response, content)
            self.budget.back_off(self.retry.told_to_wait(error))
            raise error
        return Answer(response.headers, content, completeness)

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
                spending.answered()
                return response, self._read(operation, response)
        except httpx.HTTPError as error:
            unreachable = self._unreachable(operation, error)
        # Raised here, not above: httpx's error holds the request, and the request the key.
        raise unreachable

    def _look(self) -> None:
        """Ask a service on this machine who it is; nothing is lost where it does not say."""
        if self.client.is_closed or not _is_near(self.base_url):
            return
        try:
            with self.client.stream("GET", "/healthz", auth=None, timeout=_GLANCE) as response:
                self.source.hear(response.headers)
        except httpx.HTTPError:
            pass

    def _read(self, operation: Operation, response: httpx.Response) -> bytes:
        """Read a body as it comes, and undo its compression: never more than the limit."""
        limit = LARGEST_SNAPSHOTS if operation.binary else LARGEST_JSON
        parts, size, begun = [], 0, time.monotonic()
        # A transport may hand over a body that httpx has read and decoded already.
        whole = response.is_stream_consumed
        for part in [response.content] if whole else response.iter_raw():
            size += len(part)
            parts.append(part)
            if size > limit:
                raise AnswerInvalid(
                    f"the answer is longer than {limit:,} bytes", operation=operation.type
                )
            if time.monotonic() - begun > PATIENCE:
                raise httpx.ReadTimeout(f"the answer did not end within {PATIENCE:.0f} s")
        if not whole:
            _refuse_a_part(response.headers, size)
        content = b"".join(parts)
        if operation.binary:
            return content
        plain = bytes(inflate(content, limit))
        if response.status_code != 200 or is_binary(operation, response.headers):
            return plain
        return _whole_json(operation, plain)

    def _failure(
        self, operation: Operation, response: httpx.Response, content: bytes
    ) -> ServiceError:
        error = response_error(operation, response.status_code, response.headers, content)
        if self.key is not None:
            error.message = self.key.scrub(error.message)
            error.args = (error.message,)
        elif isinstance(error, InvalidKey):
            error.hint = "No key was given: set TOOLKIT_API_KEY, or give tk.connect an api_key"
        return error

    def _unreachable(self, operation: Operation, error: httpx.HTTPError) -> Unreachable:
        words = str(error) or type(error).__name__
        if self.key is not None:
            words = self.key.scrub(words)
        made = Unreachable(
            f"{operation.type}: no answer from {self.base_url} ({words}). Check the address and "
            "the network; tk.local() works without either"
        )
        causes = [word for kind, word in _CAUSES if isinstance(error, kind)]
        made.cause = causes[0] if causes else "connection broken"
        return made


def is_binary(operation: Operation, headers: Mapping[str, str]) -> bool:
    """Whether an answer is binary: as the contract says, or the headers if it does not know."""
    if operation.tables:
        return operation.binary
    return headers.get("content-type", "").partition(";")[0].strip().lower() in _BINARY


def _is_near(base_url: str) -> bool:
    """Whether an address is this machine's own."""
    host = urlsplit(base_url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _refuse_a_part(headers: httpx.Headers, size: int) -> None:
    """Refuse a body that is shorter than its headers say."""
    announced = headers.get("content-length", "")
    if announced.isascii() and announced.isdigit() and size < int(announced):
        raise httpx.RemoteProtocolError(f"the answer broke off after {size} of {announced} bytes")


def _whole_json(operation: Operation, content: bytes) -> bytes:
    """Refuse JSON that was cut off; what is no JSON at all, `decode` refuses."""
    bare = content.strip()
    if not bare or bare[-1:] != _ENDS.get(bare[:1], bare[-1:]):
        raise AnswerDamaged(
            "the answer cannot be read: it ends too early",
            operation=operation.type,
            value=content[:80],
        )
    return content
