"""The steps of every fetch function, from a call to its complete frames.

1. `prepare_request` checks the call; nothing is sent.
2. `request_remarks` says what the service cannot have.
3. `read_pages` sends the request page by page; a `Collector` turns the rows into columns.
4. A `Pull` counts the pages and keeps the evidence that they are complete: the certificate.
5. The frames are returned with their certificate and the remarks as provenance.
"""

import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import msgspec
import pandas as pd

from toolkit import errors
from toolkit.client import RawAnswer, RequestCounts, Session, current_session
from toolkit.completeness.checks import BreakLog, HistoryChecks, check_answer, row_proof
from toolkit.completeness.headers import Completeness
from toolkit.contract import paging, requests
from toolkit.contract.answers import answer_rows, decode
from toolkit.contract.apis import EXCHANGE, SERVICE
from toolkit.contract.dexes import ALL_DEXES
from toolkit.contract.operations import FETCHED, VIEWS, Operation
from toolkit.contract.value_kinds import Numbers
from toolkit.display import count_text
from toolkit.fetch.markets import check_markets, with_codes
from toolkit.fetch.registry import operation_of
from toolkit.fetch.remarks import answer_remarks, join_remarks, request_remarks
from toolkit.frames import Collector, Extra
from toolkit.frames.answer_frames import cut_facts
from toolkit.times import is_date, to_iso, to_ms, whole_number

__all__ = ["Extra", "Numbers", "OnIncomplete", "fetch_frame", "fetch_frames", "prepare_request"]

AnswerFrames = tuple[pd.DataFrame, ...]

OnIncomplete = Literal["raise", "warn"]
"""What to do if rows are missing."""

DEFERRED_WARNING: Final = "not warned of"
"""Key in provenance, between a quiet call and the call that it works for."""


def fetch_frame(operation: str, **arguments: Any) -> pd.DataFrame:
    """Return the frame of a call whose answer is one frame; `prepare_request` has the arguments."""
    (frame,) = fetch_frames(operation, **arguments)
    return frame


def fetch_frames(operation: str, **arguments: Any) -> AnswerFrames:
    """Return the frames of a call, one per kind of record, with certificate and remarks."""
    request = prepare_request(operation, **arguments)
    remarks, pull, facts = request_remarks(request), Pull(request), dict[str, Any]()
    kind, session, is_quiet = request.operation, request.session, _worker.get() is not None
    try:
        with session.show_progress(kind.type, hidden=is_quiet) as count_rows:
            for rows in pull.read():
                count_rows(rows)
        pull.check_source()  # only now: all rows that there are have come
        pull.check_rows()
        # Some sources, such as recordings, lack rows: their gaps are noted, but no fault.
        if pull.breaks and (why := pull.breaks.reason) and not session.source.history:
            facts = {"complete": "no", "why": why}
            errors.warn_caller(f"incomplete: {kind.type}: {why}", errors.IncompleteWarning)
        if kind.paging == "none":
            facts |= cut_facts(kind, pull.rows)
        frames = pull.frames(**facts)
    except errors.ToolkitError as error:
        if not pull.pages and not isinstance(error, errors.Incomplete):
            raise
        frames = _incomplete_frames(pull, error)
    except (KeyboardInterrupt, Exception) as error:
        is_interrupt = isinstance(error, KeyboardInterrupt)
        why = "interrupted" if is_interrupt else f"{type(error).__name__}: {error}"
        _attach_rows(error, pull.frames(complete="no", why=why))
        raise
    try:
        publish_remarks(kind, remarks | answer_remarks(request, frames), frames)
    except KeyboardInterrupt as interrupt:
        _attach_rows(interrupt, frames)
        raise
    return frames


@dataclass(frozen=True, slots=True)
class Request:
    """One call of a fetch function, checked, with its session.

    Attributes
    ----------
    operation : Operation
        The operation.
    parameters : mapping
        Python name -> value, with times in milliseconds and every default filled in.
    max_rows : int or None
        The most rows to return.
    on_incomplete : {"raise", "warn"}
        What to do if rows are missing.
    numbers : {"float", "exact", "text"}
        The form of numbers.
    session : Session
        The session that sends the request.
    asked_ms : int
        The present at the time of the call; 0 for an operation without times.
    is_aged : bool
        Whether the range was given as an age, such as ``"7d"``, counted back from `asked_ms`.
    extra : {"drop", "keep"}
        Whether unknown fields are left out or kept as columns.
    ends_on_date : bool
        Whether the end was given as a date without a time.
    """

    operation: Operation
    parameters: Mapping[str, Any]
    max_rows: int | None
    on_incomplete: OnIncomplete
    numbers: Numbers
    session: Session
    asked_ms: int
    is_aged: bool = False
    extra: Extra = "drop"
    ends_on_date: bool = False


def prepare_request(
    operation: str | Operation,
    *,
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
    on_incomplete: OnIncomplete = "raise",
    **parameters: Any,
) -> Request:
    """Check a call and return it as a request.

    Nothing is sent, except for a list of markets if a name is not a code; see `with_codes`.

    Parameters
    ----------
    operation : str or Operation
        The operation, by its ``type`` or the name of a view.
    numbers, extra, session, on_incomplete
        As in every fetch function.
    **parameters
        The operation's parameters in Python names, and `max_rows` of paged operations.

    Raises
    ------
    BadRequest
        If the service would refuse the request.
    NotConnected
        If there is no session.
    ValueError
        If `max_rows`, `numbers`, `extra` or `on_incomplete` is not allowed.
    """
    if isinstance(operation, str):
        operation = VIEWS.get(operation) or FETCHED[operation]
    for name, value, choices in (
        ("numbers", numbers, ("float", "exact", "text")),
        ("extra", extra, ("drop", "keep")),
        ("on_incomplete", on_incomplete, ("raise", "warn")),
    ):
        if value not in choices:
            raise ValueError(f"{name} must be {' or '.join(map(repr, choices))}, not {value!r}")
    session = current_session(session)
    if session.api is not SERVICE:
        operation, parameters = session.api.adapt_call(operation, parameters)
    is_sent = any(item.python == "max_rows" for item in operation.parameters)
    limit = None if is_sent else parameters.pop("max_rows", None)
    max_rows = None if limit is None else whole_number(limit)
    if limit is not None and (max_rows is None or max_rows < 1):
        raise ValueError(f"max_rows must be a whole number of at least 1, or None, not {limit!r}")
    time_names = [item.python for item in operation.parameters if item.kind == "time"]
    asked_ms = session.now_ms() if time_names else 0
    times = {name: parameters[name] for name in time_names if parameters.get(name) is not None}
    for name, time in times.items():
        try:
            parameters[name] = to_ms(time, now_ms=asked_ms)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    # An age gives another moment for another present; a date does not.
    is_aged = any(parameters[name] != to_ms(times[name], now_ms=asked_ms + 1) for name in times)
    if any(item.dex_form in ("coin", "market") for item in operation.parameters):
        parameters = with_codes(session, operation, parameters)
    checked = requests.check_request(operation, requests.request_body(operation, parameters))
    ends_on_date = is_date(times.get("end"))
    return Request(
        operation, checked, max_rows, on_incomplete, numbers, session, asked_ms, is_aged, extra,
        ends_on_date,
    )  # fmt: skip


def request_of(
    fetch: Callable[..., object], arguments: tuple[object, ...], named: Mapping[str, object]
) -> Request:
    """Return ``fetch(*arguments, **named)`` as a request. Nothing is sent."""
    operation = operation_of(fetch)
    try:
        bound = inspect.signature(fetch).bind(*arguments, **named)
    except TypeError as error:
        raise TypeError(
            f"{operation.function}: {error}. Its arguments follow the function itself"
        ) from None
    bound.apply_defaults()
    return prepare_request(operation, **bound.arguments)


@dataclass(frozen=True, slots=True)
class Page:
    """The certain rows of one page of an answer.

    Attributes
    ----------
    tables : tuple
        For each table of the operation its rows, or its columns by name.
    is_last : bool
        Whether all rows have come.
    completeness : Completeness
        What the service stated with the first page about the complete answer.
    content : bytes
        The body of the page as it came.
    first : int
        Position in the body of the first row.
    cursor : str or None
        The cursor after which to continue.
    ties : int
        How many ties at the end of a page were requested again, up to this page.
    """

    tables: tuple[Any, ...]
    is_last: bool
    completeness: Completeness
    content: bytes = field(default=b"[]", repr=False)
    first: int = 0
    cursor: str | None = None
    ties: int = 0

    def texts(self) -> list[bytes]:
        """Return the JSON text of each row, for an operation that answers with a list."""
        rows = msgspec.json.decode(self.content, type=list[msgspec.Raw])
        return [bytes(row) for row in rows[self.first : self.first + len(self.tables[0])]]


class Pull:
    """The pages of a request so far: their rows, and the evidence that they are complete.

    Parameters
    ----------
    request : Request
        The request.

    Attributes
    ----------
    collector : Collector
        The rows.
    rows : int
        How many rows of the first table came.
    pages : int
        How many pages came.
    page : Page
        The last page; it has no rows before the first one came.
    breaks : BreakLog
        Where the rows contradict each other.
    first : str or None
        The key of the first row, written as a cursor is.
    counts : RequestCounts
        Requests, points, retries and waits.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.collector = Collector(request.operation, request.numbers, request.extra)
        self.rows = self.pages = self._checked_pages = 0
        self.page = Page(((),), is_last=False, completeness=Completeness())
        self.breaks = BreakLog()
        self.first: str | None = None
        self._last: str | None = None
        self._checks = HistoryChecks(request.operation, request.parameters)
        self.counts = request.session.new_counts()

    def read(self) -> Iterator[int]:
        """Read the pages; yield how many rows of the first table came with each."""
        operation = self.request.operation
        for page in read_pages(self.request, self.counts):
            new = self.collector.add(page.tables)
            self.pages, self.page = self.pages + 1, page
            rows = page.tables[0]
            if operation.key and len(rows):
                first, last = paging.row_keys(operation, [rows[0], rows[-1]])
                self.first = self.first or requests.make_cursor(first)
                self._last = requests.make_cursor(last)
            self.rows += new
            yield new

    def check_rows(self) -> None:
        """Check the rows in `collector` that were not checked, and add their faults to `breaks`."""
        operation, checks, checked = self.request.operation, copy(self._checks), self._checked_pages
        if checked == self.pages or operation.binary:
            return
        self._checked_pages = self.pages
        try:
            columns = self.collector.columns()
            if operation.key:
                found = checks.add_page(columns[0])
            else:
                found = [*check_answer(operation, self.request.parameters, columns)]
        except KeyboardInterrupt:  # the rows that the error has are checked again
            self._checked_pages = checked
            raise
        self._checks = checks
        self.breaks += found

    def frames(self, **facts: Any) -> AnswerFrames:
        """Return the frames of the rows in `collector`.

        Their provenance is the request and the certificate of its pages, as plain values, and
        `facts`.
        """
        self.check_rows()
        request, session, page = self.request, self.request.session, self.page
        operation, parameters, source = request.operation, request.parameters, session.source
        complete = "yes" if page.is_last else f"first {count_text(request.max_rows or 0, 'row')}"
        covered = page.completeness.covered
        certificate = {
            "operation": operation.type,
            **({"view": operation.view} if operation.view else {}),
            "parameters": {name: value for name, value in parameters.items() if value is not None},
            "numbers": request.numbers,
            **({"extra": request.extra} if request.extra != "drop" else {}),
            "source": source.label,
            "simulated": source.simulated,
            "asked_at": to_iso(request.asked_ms or session.now_ms()),
            "complete": "latest" if operation.latest else complete,
            **({"covered": [tuple(map(to_iso, covered))]} if covered else {}),
            **(row_proof(operation, parameters) if operation.key else {}),
            **(self.breaks.facts() if self.breaks else {}),
            "pages": self.pages,
            "ties": page.ties,
            "first": self.first,
            "last": self._last,
            **self.counts.facts(),
        }
        return self.collector.frames(certificate | facts)

    def check_source(self) -> None:
        """Raise Incomplete if the source may lack rows of the requested range.

        It may state so. Or it keeps a number of the latest rows (`Operation.reach`), whatever range
        is requested. Or fills lack the part of their key that only the service has. Then the
        exchange's own API may answer at an address that is not its own: it ignores filters, and
        keeps only the latest fills. Recordings and archives state themselves what may be missing.
        """
        request, operation, session = self.request, self.request.operation, self.request.session
        parameters, changes = request.parameters, (EXCHANGE.changes or {}).get(operation.type, {})
        reach = 0 if session.api is EXCHANGE or session.source.history else changes.get("reach", 0)
        if self.page.completeness.missing_reason:
            raise errors.Incomplete(self.page.completeness.missing_reason)
        if operation.reach:
            begin_ms = None
            is_to_present = (parameters["end"] or request.asked_ms) >= request.asked_ms
            is_counted = not parameters.get("aggregate_by_time") and operation.paging != "windows"
            if not (self.page.is_last and is_to_present and is_counted):
                begin_ms = first_complete_ms(request, self.counts)
            elif self.rows >= operation.reach:
                begin_ms = int((self.first or "0").partition("_")[0]) + 1
            if begin_ms is not None:
                raise errors.Incomplete(reach_message(request, begin_ms))
        elif reach and (self.first or "").endswith("_None"):
            known = {item.python for item in EXCHANGE.adapt(operation).parameters}
            filters = requests.filters_of(operation, parameters)
            ignored = [name for name in filters if name not in known]
            if (ignored or self.rows >= reach) and self.page.completeness.covered is None:
                what = f"ignores {', '.join(ignored)}" if ignored else f"keeps only {reach:,} fills"
                raise errors.Incomplete(
                    f"{operation.type}: the rows lack {operation.key[-1]}, as those of "
                    f"{EXCHANGE.title}, which {what}. If it answers here, connect with "
                    f"exchange={EXCHANGE.name!r}"
                )


def first_complete_ms(request: Request, counts: RequestCounts | None = None) -> int | None:
    """Return the time from which on a service that keeps only the latest rows has all of them.

    Return None if it has all from the start of the request. The rows from there to the present are
    counted, unless they are rows of intervals.
    """
    operation, rows, first_ms = request.operation, 0, 0
    if operation.paging == "windows":
        return paging.first_kept_ms(operation, request.parameters, request.asked_ms)
    parameters = {**request.parameters, "end": None}
    if "aggregate_by_time" in parameters:  # it keeps a number of fills, not of merged ones
        parameters["aggregate_by_time"] = False
    later = replace(request, parameters=parameters, max_rows=operation.reach)
    for page in read_pages(later, counts):
        if not rows and page.tables[0]:
            first_ms = paging.row_keys(operation, page.tables[0][:1])[0][0]
        rows += len(page.tables[0])
    return None if rows < operation.reach else first_ms + 1  # others of this time may be missing


def reach_message(request: Request, begin_ms: int) -> str:
    """Return what is missing before `begin_ms`, and what to do."""
    begin = to_iso(begin_ms)
    return (
        f"{request.operation.type}: {request.session.api.title} keeps only the "
        f"{request.operation.reach:,} latest rows, so rows before {begin} may be missing. From "
        f"then on the rows are complete: request start={begin!r}. {SERVICE.title.capitalize()} "
        "has more"
    )


def _incomplete_frames(pull: Pull, error: errors.ToolkitError) -> AnswerFrames:
    """Return the rows so far with a warning, or raise Incomplete with these rows."""
    why = error.args[0] if isinstance(error, errors.ServiceError) else str(error)
    frames = pull.frames(complete="no", why=why)
    if pull.request.on_incomplete == "warn":
        errors.warn_caller(f"incomplete: {error}", errors.IncompleteWarning)
        return frames
    cursor = error.cursor if isinstance(error, errors.Incomplete) else None
    is_whole = not pull.page.completeness.missing_reason and not pull.breaks.reason
    if cursor is None and is_whole:  # no earlier row is missing
        cursor = pull.page.cursor
    resume = f"; continue with cursor={cursor!r}" if cursor else ""
    raise errors.Incomplete(
        f"{error} [error.rows has the {count_text(pull.rows, 'row')} that came before{resume}]",
        rows=frames[0] if len(frames) == 1 else frames,
        cursor=cursor,
    ) from error


def _attach_rows(error: BaseException, frames: AnswerFrames) -> None:
    vars(error)["rows"] = frames[0] if len(frames) == 1 else frames
    error.add_note(f"error.rows has the {count_text(len(frames[0]), 'row')} that came before")


def read_pages(request: Request, counts: RequestCounts | None = None) -> Iterator[Page]:
    """Send a request page by page until the answer is complete, or has `max_rows` rows.

    Parameters
    ----------
    request : Request
        The request.
    counts : RequestCounts, optional
        Counts of this pull, as `Session.ask` takes them.

    Yields
    ------
    Page
        Rows in the order of the operation. Every row comes once.

    Raises
    ------
    ServiceError, Unreachable, AnswerInvalid, Incomplete, BudgetSpent
    """
    operation, session, numbers = request.operation, request.session, request.numbers

    def ask_page(parameters: Mapping[str, Any]) -> tuple[tuple[Any, RawAnswer], Any]:
        answer = ask(session, operation, parameters, counts)
        decoded = decode(
            operation, 200, answer.headers, answer.content, numbers=numbers, parameters=parameters
        )
        tables = (decoded,) if operation.binary else answer_rows(operation, decoded, parameters)
        if operation.user_points and parameters.get("dex") == ALL_DEXES and tables[0]:
            session.dexes = len({row.dex for row in tables[0]})  # costs depend on it
        return (tables, answer), tables[0]

    completeness: Completeness | None = None
    has_rows = False
    limits: dict[str, Any] = {"confirm_end": session.confirm_end, "max_rows": request.max_rows}
    for kept in paging.read_pages(
        operation, request.parameters, ask_page, asked_ms=request.asked_ms, **limits
    ):
        tables, answer = kept.page
        if operation.paging != "none":
            has_rows |= bool(tables[0])
            is_first = completeness is None
            if operation.paging == "windows":  # earlier ones may be empty
                is_first = kept.is_last and not has_rows
            if is_first and answer.completeness == Completeness() and not tables[0]:
                check_markets(session, operation, request.parameters)
        completeness = completeness or answer.completeness
        rows = (tables[0][kept.first : kept.stop],) if operation.key else tables
        place = (kept.first, kept.cursor, kept.ties)
        yield Page(rows, kept.is_last, completeness, answer.content, *place)


def publish_remarks(
    operation: Operation, remarks: Mapping[str, bool], frames: Sequence[pd.DataFrame] = ()
) -> None:
    """Write remarks into the provenance of frames, and issue one warning for those that warn."""
    noted, warning = join_remarks(remarks)
    is_quiet = _worker.get() is not None
    for frame in frames if noted else ():
        frame.attrs["toolkit"]["history"] = noted
        if warning and is_quiet:
            frame.attrs["toolkit"][DEFERRED_WARNING] = warning
    if warning and not is_quiet:
        errors.warn_caller(f"{operation.function}: {warning}", errors.HistoryWarning)


_worker: ContextVar[tuple[threading.Event, "threading.Lock | None"] | None] = ContextVar(
    "worker", default=None
)
"""What a thread that works for `tk.many` shares with the others: the arguments of
`work_for_many`. Such a thread issues no warning."""


@contextmanager
def work_for_many(stop: threading.Event, turn: "threading.Lock | None" = None) -> Iterator[None]:
    """Let the calls of this thread work for `tk.many`.

    They issue no warning and show no bar: `tk.many` does it for all. Once `stop` is set, they send
    no further request. `turn` is a lock of all threads: many of them wait for answers at
    once, but only its holder works on an answer. Threads that compete for Python's lock need 1.3 to
    1.6 times the processor time.
    """
    token = _worker.set((stop, turn))
    try:
        with turn or nullcontext():
            yield
    finally:
        _worker.reset(token)


def ask(
    session: Session,
    operation: Operation,
    parameters: Mapping[str, Any],
    counts: RequestCounts | None = None,
) -> RawAnswer:
    """Send one request and return its answer, as `Session.ask` does.

    A thread that works for `tk.many` lets another one work while it waits. A service in this
    process needs the processor itself, so the thread keeps its turn.
    """
    body = requests.request_body(operation, parameters)
    stop, turn = _worker.get() or (None, None)
    if turn is None or session.source.in_process:
        return session.ask(operation, body, counts, stop)
    turn.release()
    try:
        return session.ask(operation, body, counts, stop)
    finally:
        turn.acquire()
