"""A session: where to ask, with which key, how fast; and the one place that sends."""

import os
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NoReturn
from urllib.parse import urlsplit

import httpx

from toolkit.client.budget import Budget
from toolkit.client.counts import Counts, cause_of
from toolkit.client.ledger import Shared, file_of
from toolkit.client.recipe import Recipe
from toolkit.client.retry import Retry
from toolkit.contract.answers import failure
from toolkit.contract.compression import inflate
from toolkit.contract.operations import Operation
from toolkit.contract.requests import body
from toolkit.display import facts_table
from toolkit.errors import (
    AnswerDamaged,
    AnswerInvalid,
    NotConnected,
    ServiceError,
    Unreachable,
)

__all__ = ["Answer", "Session", "connect", "current_session", "forget", "use"]

LARGEST_JSON: Final = 2**28
"""Bytes of the largest JSON answer that is read, compression undone."""

LARGEST_SNAPSHOTS: Final = 2**30
"""Bytes of the largest binary answer that is read; what comes out of it has a limit of its own."""

_PATIENCE: Final = 600.0  # seconds until a body that trickles is given up
_MOST_ATTEMPTS: Final = 100
_CONNECTIONS: Final = 8  # beyond eight, httpcore's pool takes more time than the requests
# How a request failed -> what the certificate calls it; the first that fits.
_CAUSES: Final[tuple[tuple[type[httpx.HTTPError], str], ...]] = (
    (httpx.TimeoutException, "time-out"),
    (httpx.ConnectError, "no connection"),
)
_ENDS: Final = {b"[": b"]", b"{": b"}"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: status 200, headers with names in lower case, body."""

    headers: Mapping[str, str]
    content: bytes


class _Key(httpx.Auth):
    """Adds the API key to a request; it has no other way out."""

    def __init__(self, secret: str) -> None:
        self._secret = secret

    @property
    def is_sendable(self) -> bool:
        """Whether it can stand in a header."""
        return self._secret.isascii() and self._secret.isprintable()

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["Authorization"] = f"Bearer {self._secret}"
        yield request

    def scrub(self, text: str) -> str:
        # A shorter one would be found by chance in any message.
        return text.replace(self._secret, "***") if len(self._secret) >= 6 else text

    def file_in(self, folder: Path, base_url: str) -> Path:
        """Name the file that counts the key's points, by a hash."""
        return file_of(folder, base_url, self._secret)

    def __repr__(self) -> str:
        return "***"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an API key is not pickled")


@dataclass(eq=False)
class Session:
    """Where to ask, with which key, and how fast.

    Make one with `toolkit.connect` or `toolkit.local`. It may be used from many threads.

    Attributes
    ----------
    base_url : str
        Address of the service, without ``/info``.
    label : str
        What the source is, for provenance; the address unless given.
    simulated : bool
        Whether the source is invented.
    world : object
        What is in a local service, or None.
    recipe : Recipe or None
        How another process makes a session like it; None where none can.
    counts : Counts
        Requests, points, retries and seconds waited so far.
    """

    base_url: str
    key: _Key | None = field(repr=False)
    label: str
    simulated: bool
    world: Any
    progress: bool | Callable[[str], Any] | None
    budget: Budget
    retry: Retry
    client: httpx.Client = field(repr=False)
    now_ms: Callable[[], int] = field(repr=False)
    recipe: Recipe | None = field(default=None, repr=False)
    counts: Counts = field(default_factory=Counts)

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
        """
        return self.send(operation, body(operation, parameters), counts)

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
        if _current is self:
            forget()

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
            "simulated": self.simulated,
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
        with self.budget.spend(operation.points) as spending:
            counts.wait(spending.waited)
            queued.append(spending.waited)
            counts.sent(operation.points)
            response, content = self._post(operation, request)
        if response.status_code != 200:
            error = self._failure(operation, response, content)
            self.budget.back_off(self.retry.told_to_wait(error))
            raise error
        return Answer(response.headers, content)

    def _post(
        self, operation: Operation, request: Mapping[str, Any]
    ) -> tuple[httpx.Response, bytes]:
        try:
            with self.client.stream("POST", "/info", json=dict(request)) as response:
                return response, self._read(operation, response)
        except httpx.HTTPError as error:
            unreachable = self._unreachable(operation, error)
        # Raised here, not above: httpx's error holds the request, and the request the key.
        raise unreachable

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
            if time.monotonic() - begun > _PATIENCE:
                raise httpx.ReadTimeout(f"the answer did not end within {_PATIENCE:.0f} s")
        if not whole:
            _refuse_a_part(response.headers, size)
        content = b"".join(parts)
        if operation.binary or response.status_code != 200:
            return content if operation.binary else bytes(inflate(content, limit))
        return _whole_json(operation, bytes(inflate(content, limit)))

    def _failure(
        self, operation: Operation, response: httpx.Response, content: bytes
    ) -> ServiceError:
        error = failure(operation, response.status_code, response.headers, content)
        if self.key is not None:
            error.message = self.key.scrub(error.message)
            error.args = (error.message,)
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


def connect(
    base_url: str | None = None,
    api_key: str | None = None,
    *,
    points_per_minute: int | None = None,
    most_points: int | None = None,
    attempts: int = 6,
    timeout: float = 60.0,
    user_agent: str | None = None,
    progress: bool | Callable[[str], Any] | None = None,
    label: str = "",
    simulated: bool = False,
    world: Any = None,
    transport: httpx.BaseTransport | None = None,
    now_ms: Callable[[], int] | None = None,
    budget_folder: str | Path | Literal[False] | None = None,
    clock: Callable[[], float] | None = None,
    sleep: Callable[[float], None] = time.sleep,
    default: bool = True,
) -> Session:
    """Connect to a query service.

    Nothing is sent yet. The session becomes the default for all fetch functions.

    Parameters
    ----------
    base_url : str, optional
        Address of the service, without ``/info``; else the environment's
        ``TOOLKIT_BASE_URL``. There is no default address.
    api_key : str, optional
        The key; else the environment's ``TOOLKIT_API_KEY``. It is never shown.
    points_per_minute : int, optional
        The key's quota; with it requests wait instead of meeting 429. All threads and processes
        of this machine that use the key at this address keep to it together.
    most_points : int, optional
        Points that the session may spend altogether; a request beyond raises `BudgetSpent`.
    attempts : int, default 6
        The most tries of one request.
    timeout : float, default 60
        Seconds to wait for an answer.
    user_agent : str, optional
        What to call ourselves; some gateways refuse the default of HTTP libraries.
    progress : bool or callable, optional
        Whether long pulls show a progress bar; by default only in a live kernel or terminal. Or
        what makes a bar of your own, from a text: it has ``update(rows)`` and ``close()``.
    label : str, optional
        What to call the source in provenance.
    simulated : bool, default False
        Whether the source is invented; figures drawn from it say so.
    world : object, optional
        What is in the source, for `Session.world`.
    transport : httpx.BaseTransport, optional
        How bytes travel; by default over the network.
    now_ms : callable, optional
        The present, in Unix milliseconds; ages such as ``"7d"`` count back from it.
    budget_folder : path or False, optional
        Where processes count the points of a key together; by default the user's cache folder.
        False counts for this session alone, as do sessions over a `transport` of their own.
    clock, sleep : callable, optional
        The present in seconds, the same for all who share a budget, and how to wait for it.
        By default those of the machine.
    default : bool, default True
        Whether the session becomes the default.

    Returns
    -------
    Session

    Raises
    ------
    NotConnected
        If there is no address.
    ValueError
        If the address is not one, or a number makes no sense.

    Examples
    --------
    >>> connect("http://127.0.0.1:8787", "a-secret", default=False)
    <Session http://127.0.0.1:8787, with key, 0 requests, 0 points spent>
    """
    secret = api_key or os.environ.get("TOOLKIT_API_KEY")
    key = _Key(secret) if secret else None
    del api_key, secret  # tracebacks may show local variables
    if key is not None and not key.is_sendable:
        raise ValueError("the API key must be printable ASCII text")
    base_url = base_url or os.environ.get("TOOLKIT_BASE_URL")
    if not base_url:
        raise NotConnected(
            "no address: call tk.connect(base_url, api_key), set TOOLKIT_BASE_URL, or work "
            "offline with tk.local()"
        )
    base_url = _checked(base_url)
    _check_numbers(attempts, timeout)
    if budget_folder is None and transport is None and points_per_minute is not None:
        budget_folder = _cache_folder()
    ledger = _ledger(budget_folder, base_url, key) if budget_folder else None
    # Processes agree on the time of day alone; for one session the steady clock is better.
    clock = clock or (time.monotonic if ledger is None else time.time)
    session = Session(
        base_url=base_url,
        key=key,
        label=label or base_url,
        simulated=simulated,
        world=world,
        progress=progress,
        budget=Budget(points_per_minute, most_points, clock=clock, sleep=sleep, ledger=ledger),
        retry=Retry(attempts=attempts, clock=clock),
        client=httpx.Client(
            base_url=base_url,
            auth=key,
            headers={
                "User-Agent": user_agent or _user_agent(),
                "Accept-Encoding": "gzip, zstd",  # what `inflate` undoes
            },
            timeout=httpx.Timeout(timeout, connect=min(timeout, 10.0)),
            limits=httpx.Limits(max_connections=_CONNECTIONS),
            transport=transport,
        ),
        now_ms=now_ms or _wall_clock,
    )
    if transport is None:
        session.made_by(
            Recipe(
                connect,
                {
                    "base_url": base_url,
                    "points_per_minute": points_per_minute,
                    "most_points": most_points,
                    "attempts": attempts,
                    "timeout": timeout,
                    "user_agent": user_agent,
                    "label": label,
                    "simulated": simulated,
                    "progress": False,
                    "budget_folder": budget_folder,
                },
                needs_key=key is not None,
            )
        )
    return use(session) if default else session


_current: Session | None = None


def use(session: Session) -> Session:
    """Make a session the default for all fetch functions."""
    global _current  # noqa: PLW0603 - the one default session of a notebook
    _current = session
    return session


def forget() -> None:
    """Leave the fetch functions without a default session."""
    global _current  # noqa: PLW0603 - the one default session of a notebook
    _current = None


def current_session(session: Session | None = None) -> Session:
    """Give the session, or the default one.

    Raises
    ------
    NotConnected
        If there is none, and the environment names no address.
    """
    if session is not None:
        return session
    return _current if _current is not None else connect()


def _checked(base_url: str) -> str:
    parts = urlsplit(base_url)
    if "@" in base_url or parts.query or parts.fragment:
        raise ValueError("give the key as api_key, not inside the address")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{base_url!r} is no address: give one such as https://host")
    return base_url.rstrip("/").removesuffix("/info")


def _check_numbers(attempts: object, timeout: object) -> None:
    whole = isinstance(attempts, int) and not isinstance(attempts, bool)
    if not whole or not 1 <= attempts <= _MOST_ATTEMPTS:  # type: ignore[operator]
        raise ValueError(
            f"attempts is how often one request is tried: a whole number from 1 to "
            f"{_MOST_ATTEMPTS}, not {attempts!r}"
        )
    number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if not number or not 0 < timeout <= _PATIENCE:  # type: ignore[operator]
        raise ValueError(
            f"timeout is the seconds to wait for an answer: more than 0 and at most "
            f"{_PATIENCE:.0f}, not {timeout!r}"
        )


def _ledger(folder: str | Path, base_url: str, key: _Key | None) -> Shared:
    where = Path(folder)
    return Shared(file_of(where, base_url, "") if key is None else key.file_in(where, base_url))


def _cache_folder() -> Path:
    import platformdirs

    return platformdirs.user_cache_path("exchange-toolkit") / "budgets"


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


def _wall_clock() -> int:
    return time.time_ns() // 1_000_000


def _user_agent() -> str:
    from importlib.metadata import version

    return f"exchange-toolkit/{version('exchange-toolkit')}"
