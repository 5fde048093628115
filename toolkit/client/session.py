"""A session: the service, the key and the budget; the one place that sends requests.

A service of this package states in the headers of its answers what its present is, what it is
called and whether it is simulated. Any other service states nothing. Then the arguments of
`tk.connect` count, and its present is the wall clock's.
"""

import os
import reprlib
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from weakref import WeakValueDictionary

import httpx
import stamina

from toolkit.client.budget import Budget, PointReservation, RequestCounts
from toolkit.client.proxies import is_this_machine
from toolkit.client.retry import Retry, counts_as_failed_time, retry_cause
from toolkit.client.wire import PATIENCE, ApiKey, count_rows, read_body
from toolkit.completeness.headers import Completeness, read_completeness, read_source
from toolkit.contract.apis import SERVICE, Api
from toolkit.contract.operations import Operation
from toolkit.contract.requests import DEXES_AT_MOST, request_points, row_points
from toolkit.contract.response_errors import error_in_answer, response_error
from toolkit.contract.source_tables import WorldFacts
from toolkit.display import count_text, facts_table
from toolkit.errors import InvalidKey, NotConnected, ServiceError, Unreachable
from toolkit.public_names import publish_as

_GLANCE: Final = 2.0  # seconds for a service on this machine to introduce itself
_SHORTEST: Final = 0.01  # seconds; a shorter pause is the time of the call itself


@dataclass(eq=False)
class DataSource:
    """What is known of the service that answers.

    Attributes
    ----------
    label : str
        Its name.
    simulated : bool
        Whether its data is simulated.
    has_own_label : bool
        Whether the user chose the label, so that the service's own label does not count.
    own_now_ms : callable or None
        The present, if the user chose it.
    in_process : bool
        Whether it answers in this process, as `tk.local` does.
    has_fixed_clock : bool
        Whether it is known, before it states its present, that the present does not move on.
    has_answered : bool
        Whether an answer has come from it. A local service that has answered may be restarting.
    history : str
        What may be missing, according to the service; for provenance.
    """

    label: str
    simulated: bool
    has_own_label: bool = False
    own_now_ms: Callable[[], int] | None = None
    in_process: bool = field(default=False, init=False)
    has_fixed_clock: bool = field(default=False, init=False)
    has_answered: bool = field(default=False, init=False)
    history: str = field(default="", init=False)
    # The present that it stated, and since when this clock runs; one value, for many threads.
    _stated: tuple[int, float | None] | None = field(default=None, init=False)
    is_known: bool = field(default=False, init=False)  # whether it has stated its present, or not
    first_contact: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def update_from_headers(self, headers: Mapping[str, str]) -> None:
        """Update from the headers of an answer; their names are in lower case."""
        self.is_known = self.has_answered = True
        stated = read_source(headers)
        if stated is None:
            return
        self._stated = stated.now_ms, time.monotonic() if stated.is_live else None
        self.simulated = self.simulated or stated.simulated
        if stated.label and not self.has_own_label:
            self.label = stated.label
        self.history = stated.history

    def stated_now_ms(self) -> int | None:
        """Return the present that the service stated, in Unix milliseconds; None if it did not."""
        if self._stated is None:
            return None
        stated_ms, since = self._stated
        return stated_ms if since is None else stated_ms + int((time.monotonic() - since) * 1_000)

    def has_running_clock(self) -> bool:
        """Return whether the present moves on, so that rows of this millisecond may still come."""
        states_fixed = self._stated is not None and self._stated[1] is None
        return not (self.has_fixed_clock or states_fixed)


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


class ProgressBar(Protocol):
    """A progress bar, such as those of tqdm."""

    def update(self, rows: int, /) -> object:
        """Add rows that have come."""

    def close(self) -> object:
        """End the bar."""


@publish_as("toolkit")
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
    world : dict or None
        What is in a local service: ``users``, ``builders``, ``perp_coins`` and more.
    api : Api
        What the service has, and what its requests cost: the query service's or the exchange's.
    recipe : Recipe or None
        How another process makes a session like it; None if no other process can.
    dexes : int
        How many dexes there are at most: the cost of a request for all dexes depends on it.
    counts : RequestCounts
        Requests, points, retries and seconds waited so far.
    confirm_end : bool or None
        Whether the end of a history is confirmed, as `toolkit.connect` takes it.
    patience : float
        Seconds for one answer in all, from the connection to its last byte.
    markets : dict
        Lists of markets that the service has sent: code -> readable name.
    """

    base_url: str
    key: ApiKey | None = field(repr=False)
    source: DataSource
    world: WorldFacts | None
    api: Api
    progress: bool | Callable[[str], ProgressBar] | None
    budget: Budget
    retry: Retry
    client: httpx.Client = field(repr=False)
    recipe: "Recipe | None" = field(default=None, repr=False)
    dexes: int = field(default=DEXES_AT_MOST, repr=False)
    counts: RequestCounts = field(default_factory=RequestCounts)
    confirm_end: bool | None = field(default=None, repr=False)
    patience: float = field(default=PATIENCE, repr=False)
    markets: dict[str, dict[str, str]] = field(default_factory=dict, init=False, repr=False)

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
        source = self.source
        if source.own_now_ms is not None:
            return source.own_now_ms()
        with source.first_contact:  # other threads wait for what the service states
            is_open = not self.client.is_closed
            if not source.is_known and is_open and is_this_machine(self.base_url):
                health = self.client.stream("GET", "/healthz", auth=None, timeout=_GLANCE)
                with suppress(httpx.HTTPError), health as response:  # failures do not matter
                    headers = self.key.clean(response) if self.key else response.headers
                    source.update_from_headers(headers)
            source.is_known = True
        stated = source.stated_now_ms()
        return time.time_ns() // 1_000_000 if stated is None else stated

    def ask(
        self,
        operation: Operation,
        body: Mapping[str, object],
        counts: RequestCounts | None = None,
        stop: threading.Event | None = None,
    ) -> RawAnswer:
        """Send the body of one request, with retries, and return the answer.

        Parameters
        ----------
        operation : Operation
            The operation.
        body : mapping
            The JSON object, with ``type`` and wire names.
        counts : RequestCounts, optional
            The counts of a pull, from `new_counts`. By default, only the session counts the
            request.
        stop : threading.Event, optional
            Once it is set, every wait ends, and no further attempt is sent.

        Raises
        ------
        ServiceError, Unreachable
            The last failure, if no good answer came.
        BudgetSpent
            If the points of the session do not allow the request.
        Incomplete
            If the service has no answer because its source, such as an archive, does not have it.
            Or if `stop` is set.
        """
        if self.client.is_closed:
            raise NotConnected("this session is closed. Call tk.connect or tk.local again")
        counts, clock = counts or self.counts, self.retry.clock
        failure: BaseException | None = None
        failed_at = begun = clock()
        failures, queued = 0, 0.0  # seconds that the attempts waited for the budget
        wait: float | None = None

        def decide_retry(_: Exception) -> bool | float:
            return False if wait is None else 0.0  # stamina itself does not wait

        for attempt in stamina.retry_context(decide_retry, self.retry.attempts, timeout=None):
            with attempt:
                if failure is not None:
                    if isinstance(failure, ServiceError):
                        stated = self.retry.requested_wait(failure)  # the budget waits as long
                        self.budget.announce_wait(max(wait or 0.0, stated), str(failure))
                    self.budget.wait(wait or 0.0, stop)
                    paused = clock() - failed_at
                    paused = paused if paused >= _SHORTEST else 0.0
                    counts.add(cause=retry_cause(failure), waited=paused)
                try:
                    points = request_points(operation, body, self.dexes)
                    most = points
                    if operation.row_points:
                        most += row_points(operation, operation.most_rows)
                    reservation = self.budget.spend(most, operation, stop)
                    if failure is None or not counts_as_failed_time(failure):
                        queued += reservation.waited
                    counts.add(requests=1, points=points, waited=reservation.waited)
                    answer = self._send(operation, body, reservation)
                    if operation.row_points:
                        more = row_points(operation, count_rows(answer.content))
                        counts.add(points=more)
                        self.budget.settle(reservation, most, points + more)
                    return answer
                except BaseException as error:
                    failure, failed_at, failures = error, clock(), failures + 1
                    wait = self.retry.next_wait(error, failures, failed_at - begun - queued)
                    raise
        # The loop cannot end: the last attempt returns or raises, which mypy cannot see.
        raise AssertionError("a retry context always tries at least once")  # pragma: no cover

    def new_counts(self) -> RequestCounts:
        """Return counts for a pull; what they count, the session counts too."""
        return RequestCounts(session=self.counts)

    @contextmanager
    def show_progress(
        self, title: str, *, hidden: bool = False
    ) -> Iterator[Callable[[int], object]]:
        """Yield a function that counts rows in a progress bar, if one is shown.

        By default one is shown only in a live kernel or terminal, and only if the pull takes long.
        """
        shown = self.progress
        if shown is None:
            has_terminal = sys.stderr is not None and sys.stderr.isatty()
            shown = "ipykernel" in sys.modules or has_terminal
        if hidden or not shown:
            yield lambda rows: None
            return
        if callable(shown):
            bar = shown(title)
        else:
            from tqdm.auto import tqdm

            silent = bool(os.environ.get("TQDM_DISABLE"))  # tqdm's bar for notebooks ignores it
            bar = tqdm(
                desc=title, unit=" rows", unit_scale=True, delay=1.0, leave=False, disable=silent
            )
        try:
            yield bar.update
        finally:
            bar.close()

    def set_recipe(self, recipe: "Recipe") -> None:
        """Set how another process makes a session like this one."""
        self.recipe = recipe
        _sessions[recipe.token, os.getpid()] = self

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
            f"<Session {self.label}, {key}, {count_text(done.requests, 'request')}, "
            f"{count_text(done.points, 'point')} spent>"
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
        self, operation: Operation, body: Mapping[str, object], reservation: PointReservation
    ) -> RawAnswer:
        """Send a request once."""
        failure, deadline = None, time.monotonic() + self.patience
        try:
            with self.client.stream("POST", "/info", json=dict(body)) as response:
                reservation.record_answer()
                content = read_body(operation, response, self.key, deadline)
                headers = self.key.clean(response) if self.key else response.headers
        except httpx.HTTPError as error:
            failure = self._unreachable(operation, error)
        finally:
            reservation.record_answer()
        if failure is not None:
            raise failure  # not above: httpx's error has the request, and the request has the key
        self.source.update_from_headers(headers)
        completeness = read_completeness(headers)
        problem: ServiceError | None = None
        if response.status_code != 200:
            completeness.check_complete()
            problem = response_error(operation, response.status_code, headers, content)
            if self.key is None and isinstance(problem, InvalidKey):
                hint = "There is no key: set TOOLKIT_API_KEY, or call tk.connect with api_key"
                problem.hint = hint
        elif content[:64].lstrip()[:1] == b"{":  # only an object can be an error
            problem = error_in_answer(operation, headers, content)
        if problem is None:
            return RawAnswer(headers, content, completeness)
        self.budget.block(self.retry.requested_wait(problem))
        raise problem

    def _unreachable(self, operation: Operation, error: httpx.HTTPError) -> Unreachable:
        words = str(error) or type(error).__name__
        words = self.key.hide(words) if self.key else words
        # Whether nothing listens at the address; a failed TLS handshake is an answer.
        link: BaseException | None = error
        while link is not None and not isinstance(link, ConnectionRefusedError):
            link = link.__cause__ or link.__context__
        is_local = is_this_machine(self.base_url) and not self.source.has_answered
        advice = "Check the address and the network; tk.local() works without either"
        if has_no_service := link is not None and is_local:
            advice = (
                "No service listens at this address of this machine. Check the port, start one "
                "with toolkit serve, or use tk.local(), which needs no port"
            )
        unreachable = Unreachable(
            f"{operation.type}: no answer from {self.base_url} ({words}). {advice}"
        )
        unreachable.has_no_service = has_no_service
        broken = "no connection" if isinstance(error, httpx.ConnectError) else "connection broken"
        unreachable.cause = "time-out" if isinstance(error, httpx.TimeoutException) else broken
        return unreachable


@dataclass(frozen=True, slots=True)
class Recipe:
    """Makes a session like another one, in another process, without the key.

    A session has a key, sockets and locks, and cannot be pickled; its recipe can.

    Attributes
    ----------
    make : callable
        The function that makes the session; it is pickled by its name.
    arguments : mapping
        The arguments of that function; never a key.
    needs_key : bool
        Whether the session has a key, so that the other process needs one too.
    token : str
        What names the session in every process.
    """

    make: Callable[..., Session]
    arguments: Mapping[str, Any]
    needs_key: bool
    token: str = field(default_factory=lambda: uuid.uuid4().hex, repr=False)

    @property
    def lacks_key(self) -> bool:
        """Whether the environment lacks the key that another process needs."""
        is_at_home = self.arguments.get("base_url", "").lower() in SERVICE.addresses.values()
        names = ("TOOLKIT_API_KEY", "HYDROMANCER_API_KEY")[: 1 + is_at_home]
        return self.needs_key and not any(map(os.environ.get, names))

    def get_session(self) -> Session:
        """Return the session of this recipe; make it if this process has none.

        Raises
        ------
        NotConnected
            If it has to be made and needs a key, and there is no key in the environment.
        """
        # A forked child has its parent's memory, but must not use its parent's sockets.
        place = self.token, os.getpid()
        session = _sessions.get(place)
        if session is None:
            if self.lacks_key:
                raise NotConnected(
                    "the key is not sent to other processes. Set TOOLKIT_API_KEY in the "
                    "environment of the workers, or use threads"
                )
            _sessions[place] = session = self.make(**self.arguments, default=False)
            _made.append(session)
        return session


_sessions: Final[WeakValueDictionary[tuple[str, int], Session]] = WeakValueDictionary()
_made: Final[list[Session]] = []  # by recipes, for as long as the process lives
_current: Session | None = None


def use(session: Session) -> Session:
    """Make a session the default for all fetch functions."""
    global _current  # noqa: PLW0603 - the one default session of a notebook
    _current = session
    return session


def forget() -> None:
    """Remove the default session of the fetch functions."""
    global _current  # noqa: PLW0603 - the one default session of a notebook
    _current = None


def current_session(session: Session | None = None) -> Session:
    """Return the session, or the default session if it is None.

    Raises
    ------
    NotConnected
        If there is none, and the environment names no address.
    TypeError
        If it is no session.
    """
    if session is not None:
        if not isinstance(session, Session):
            raise TypeError(
                f"session must be a result of tk.connect or tk.local, not {reprlib.repr(session)}"
            )
        return session
    if _current is not None and not _current.client.is_closed:
        return _current
    if _current is not None and not os.environ.get("TOOLKIT_BASE_URL"):
        raise NotConnected(
            "the session was closed, and the environment names no address. Call tk.connect or "
            "tk.local again"
        )
    from toolkit.client.connection import connect  # it makes sessions, and so imports this module

    return connect()
