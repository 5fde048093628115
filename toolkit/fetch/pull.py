"""The steps of every fetch function, from a call to its complete frames.

1. `prepare_request` checks the call; nothing is sent.
2. `request_remarks` says what the service cannot have.
3. `read_pages` sends the request page by page; a `Collector` turns the rows into columns.
4. A `Certificate` counts the pages and keeps the evidence that they are complete.
5. The frames are returned with their certificate and the remarks as provenance.
"""

import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import pandas as pd

from toolkit.client import RawAnswer, RequestCounts, Session, current_session
from toolkit.completeness.certificate import (
    Certificate,
    Page,
    Remark,
    active_account_remark,
    builder_remarks,
    clock_remarks,
    coverage_remarks,
    date_remark,
    first_row_remarks,
    gap_remarks,
    name_remarks,
    range_remarks,
)
from toolkit.completeness.headers import Completeness
from toolkit.contract.answers import answer_rows, decode
from toolkit.contract.apis import EXCHANGE, SERVICE
from toolkit.contract.dexes import ALL_DEXES
from toolkit.contract.extra_operations import FETCHED
from toolkit.contract.operations import DEX, VIEWS, Operation
from toolkit.contract.paging import first_kept_ms, row_keys
from toolkit.contract.paging import read_pages as read_certain_rows
from toolkit.contract.records import Fill
from toolkit.contract.requests import check_request, filters_of, request_body
from toolkit.contract.value_kinds import Numbers
from toolkit.display import count_text
from toolkit.errors import (
    HistoryWarning,
    Incomplete,
    IncompleteWarning,
    ServiceError,
    ToolkitError,
    warn_caller,
)
from toolkit.fetch.markets import check_markets, with_codes
from toolkit.fetch.registry import operation_of
from toolkit.frames import Collector, Extra
from toolkit.frames.answer_frames import cut_facts
from toolkit.times import is_date, to_iso, to_ms, whole_number

__all__ = [
    "Extra",
    "Numbers",
    "OnIncomplete",
    "Page",
    "Request",
    "answer_remarks",
    "ask",
    "check_one_frame",
    "check_reach",
    "fetch_frame",
    "fetch_frames",
    "first_complete_ms",
    "pop_deferred_warning",
    "prepare_request",
    "publish_remarks",
    "reach_message",
    "read_pages",
    "request_facts",
    "request_of",
    "request_remarks",
    "warn_incomplete",
    "work_for_many",
]

AnswerFrames = tuple[pd.DataFrame, ...]

OnIncomplete = Literal["raise", "warn"]
"""What to do if rows are missing."""

_DEFERRED_WARNING: Final = "not warned of"
"""Key in provenance, between a quiet call and the call that it works for."""


def fetch_frame(operation: str, **arguments: Any) -> pd.DataFrame:
    """Return the frame of a call whose answer is one frame; `prepare_request` has the arguments."""
    (frame,) = fetch_frames(operation, **arguments)
    return frame


def fetch_frames(operation: str, **arguments: Any) -> AnswerFrames:
    """Return the frames of a call, one per kind of record, with certificate and remarks."""
    request = prepare_request(operation, **arguments)
    remarks = request_remarks(request)
    frames = _pull_frames(request)
    try:
        publish_remarks(request.operation, [*remarks, *answer_remarks(request, frames)], frames)
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
    checked = check_request(operation, request_body(operation, parameters, is_checked=True))
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


def request_remarks(request: Request, *, has_start: bool = True) -> list[Remark]:
    """Return remarks about data that the service cannot have for the range of a request.

    Parameters
    ----------
    request : Request
        The request. Nothing is sent.
    has_start : bool, default True
        Whether the caller chose where the range begins. If not, gaps are noted without a warning.
    """
    return range_remarks(
        request.operation,
        request.parameters,
        request.asked_ms,
        simulated=request.session.simulated,
        has_start=has_start,
    )


def request_facts(request: Request) -> dict[str, Any]:
    """Return what was requested, from which source and when, as plain values for provenance."""
    operation, session = request.operation, request.session
    return {
        "operation": operation.type,
        **({"view": operation.view} if operation.view else {}),
        "parameters": {
            name: value for name, value in request.parameters.items() if value is not None
        },
        "numbers": request.numbers,
        **({"extra": request.extra} if request.extra != "drop" else {}),
        "source": session.label,
        "simulated": session.simulated,
        "asked_at": to_iso(request.asked_ms or session.now_ms()),
    }


def check_one_frame(operation: Operation) -> None:
    """Raise TypeError if the answer of an operation becomes several frames."""
    if len(operation.tables) > 1:
        names = ", ".join(table.name for table in operation.tables)
        raise TypeError(
            f"{operation.function} returns several frames ({names}): call it directly, for each "
            "subject"
        )


def _pull_frames(request: Request) -> AnswerFrames:
    """Read every page of a request into frames."""
    collector = Collector(request.operation, request.numbers, request.extra)
    certificate = Certificate(request.operation, request.parameters)
    counts = request.session.new_counts()
    try:
        title = request.operation.type
        with request.session.show_progress(title, hidden=_is_quiet()) as count_rows:
            for page in read_pages(request, counts):
                rows_before = collector.rows
                collector.add(page.tables)
                certificate.add_page(page, collector.last_page())
                count_rows(collector.rows - rows_before)
        # Only now: all rows that there are have come.
        certificate.completeness.check_complete()
        if request.operation.reach:
            check_reach(request, certificate, collector.rows, counts)
        _check_api(request, certificate, collector.rows)
        facts = _provenance(request, certificate, counts)
        # Some sources, such as recordings, lack rows: their gaps are noted, but no fault.
        if (reason := certificate.breaks.reason) and not request.session.source.history:
            facts |= {"complete": "no", "why": reason}
            warn_caller(f"incomplete: {request.operation.type}: {reason}", IncompleteWarning)
        if request.operation.paging == "none":
            facts |= cut_facts(request.operation, collector.rows)
        return collector.frames(facts)
    except ToolkitError as error:
        if certificate.pages == 0 and not isinstance(error, Incomplete):
            raise
        return _incomplete_frames(request, collector, certificate, counts, error)
    except (KeyboardInterrupt, Exception) as error:
        facts = _provenance(request, certificate, counts)
        is_interrupt = isinstance(error, KeyboardInterrupt)
        why = "interrupted" if is_interrupt else f"{type(error).__name__}: {error}"
        _attach_rows(error, collector.frames(facts | {"complete": "no", "why": why}))
        raise


def _check_api(request: Request, certificate: Certificate, rows: int) -> None:
    """Raise Incomplete if fills lack the part of their key that only the service has.

    Then the exchange's own API may answer at an address that is not its own: it ignores filters,
    and keeps only the latest fills. Recordings and archives state themselves what may be missing.
    """
    operation, source = request.operation, request.session.source
    reach = (EXCHANGE.changes or {}).get(operation.type, {}).get("reach", 0)
    has_key = not (certificate.first or "").endswith("_None")
    if request.session.api is EXCHANGE or not reach or has_key or source.history:
        return
    known = {item.python for item in EXCHANGE.adapt(operation).parameters}
    ignored = [name for name in filters_of(operation, request.parameters) if name not in known]
    if (ignored or rows >= reach) and certificate.completeness.covered is None:
        what = f"ignores {', '.join(ignored)}" if ignored else f"keeps only {reach:,} fills"
        raise Incomplete(
            f"{operation.type}: the rows lack {operation.key[-1]}, as those of {EXCHANGE.title}, "
            f"which {what}. If it answers here, connect with exchange={EXCHANGE.name!r}"
        )


def check_reach(
    request: Request, certificate: Certificate, rows: int, counts: RequestCounts
) -> None:
    """Raise Incomplete if the service may lack rows at the start of the requested range.

    It keeps a number of the latest rows (`Operation.reach`), whatever range is requested.
    """
    parameters = request.parameters
    is_to_present = (parameters["end"] or request.asked_ms) >= request.asked_ms
    is_counted = request.operation.paging != "windows" and not parameters.get("aggregate_by_time")
    if certificate.is_at_end and is_to_present and is_counted:
        first = int((certificate.first or "0").partition("_")[0])
        begin_ms = _complete_from(request, rows, first)
    else:
        begin_ms = first_complete_ms(request, counts)
    if begin_ms is not None:
        raise Incomplete(reach_message(request, begin_ms))


def first_complete_ms(request: Request, counts: RequestCounts | None = None) -> int | None:
    """Return the time from which on a service that keeps only the latest rows has all of them.

    Return None if it has all from the start of the request. The rows from there to the present are
    counted, unless they are rows of intervals.
    """
    operation, rows, first_ms = request.operation, 0, 0
    if operation.paging == "windows":
        return first_kept_ms(operation, request.parameters, request.asked_ms)
    parameters = {**request.parameters, "end": None}
    if "aggregate_by_time" in parameters:  # it keeps a number of fills, not of merged ones
        parameters["aggregate_by_time"] = False
    later = replace(request, parameters=parameters, max_rows=operation.reach)
    for page in read_pages(later, counts):
        if not rows and page.tables[0]:
            first_ms = row_keys(operation, page.tables[0][:1])[0][0]
        rows += len(page.tables[0])
    return _complete_from(request, rows, first_ms)


def _complete_from(request: Request, rows: int, first_ms: int) -> int | None:
    """Return the time from which on all rows came, if rows before the first may be missing."""
    # Others of the first time may be missing, too.
    return None if rows < request.operation.reach else first_ms + 1


def reach_message(request: Request, begin_ms: int) -> str:
    """Return what is missing before `begin_ms`, and what to do."""
    begin = to_iso(begin_ms)
    return (
        f"{request.operation.type}: {request.session.api.title} keeps only the "
        f"{request.operation.reach:,} latest rows, so rows before {begin} may be missing. From "
        f"then on the rows are complete: request start={begin!r}. {SERVICE.title.capitalize()} "
        "has more"
    )


def _provenance(
    request: Request, certificate: Certificate, counts: RequestCounts
) -> dict[str, Any]:
    """Return where the rows of a request come from, and whether they are complete."""
    if request.operation.latest:
        complete = "latest"
    else:
        complete = (
            "yes" if certificate.is_at_end else f"first {count_text(request.max_rows or 0, 'row')}"
        )
    return request_facts(request) | {"complete": complete} | certificate.facts(counts.facts())


def _incomplete_frames(
    request: Request,
    collector: Collector,
    certificate: Certificate,
    counts: RequestCounts,
    error: ToolkitError,
) -> AnswerFrames:
    """Return the rows so far with a warning, or raise Incomplete with these rows."""
    why = error.args[0] if isinstance(error, ServiceError) else str(error)
    facts = _provenance(request, certificate, counts) | {"complete": "no", "why": why}
    frames = collector.frames(facts)
    if request.on_incomplete == "warn":
        warn_caller(f"incomplete: {error}", IncompleteWarning)
        return frames
    cursor = (error.cursor if isinstance(error, Incomplete) else None) or certificate.resume_cursor
    resume = f"; continue with cursor={cursor!r}" if cursor else ""
    raise Incomplete(
        f"{error} [error.rows has the {count_text(collector.rows, 'row')} that came before"
        f"{resume}]",
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
    operation, session = request.operation, request.session

    def ask_page(parameters: Mapping[str, Any]) -> tuple[Page, Any]:
        answer = ask(session, operation, parameters, counts)
        decoded = decode(
            operation,
            200,
            answer.headers,
            answer.content,
            numbers=request.numbers,
            parameters=parameters,
        )
        tables = (decoded,) if operation.binary else answer_rows(operation, decoded, parameters)
        scale = operation.scale
        if scale is not None and parameters.get(scale.dex) == ALL_DEXES and tables[0]:
            session.dexes = len({row.dex for row in tables[0]})  # costs depend on it
        return Page(tables, False, answer.completeness, answer.content), tables[0]

    completeness: Completeness | None = None
    has_rows = False
    for kept in read_certain_rows(
        operation,
        request.parameters,
        ask_page,
        asked_ms=request.asked_ms,
        confirm_end=session.confirm_end,
        max_rows=request.max_rows,
    ):
        page, tables = kept.page, kept.page.tables
        if operation.key:
            tables = (tables[0][kept.first : kept.stop],)
        if operation.paging != "none":
            has_rows |= bool(page.tables[0])
            is_first = completeness is None
            if operation.paging == "windows":  # earlier ones may be empty
                is_first = kept.is_last and not has_rows
            if is_first and page.completeness == Completeness() and not page.tables[0]:
                check_markets(session, operation, request.parameters)
        completeness = completeness or page.completeness
        yield replace(
            page,
            tables=tables,
            is_last=kept.is_last,
            completeness=completeness,
            first=kept.first,
            cursor=kept.cursor,
            ties=kept.ties,
        )


def answer_remarks(request: Request, frames: Sequence[pd.DataFrame]) -> list[Remark]:
    """Return remarks about data that is, or may be, missing from an answer."""
    session, parameters, operation = request.session, request.parameters, request.operation
    facts = frames[0].attrs.get("toolkit", {})
    # Some sources, such as recordings, lack rows: their gaps are noted, but no fault.
    remarks = [] if session.source.history else gap_remarks(facts.get("gaps", ()))
    if operation.paging == "windows" and facts.get("first"):
        remarks += first_row_remarks(parameters, facts["first"], facts["last"])
    if operation.paging == "none" and (cut := cut_facts(operation, len(frames[0]))):
        remarks.append(Remark(cut["why"], True))
    if operation.tables[0].record is Fill and not session.simulated:
        has_user = "user" in frames[0].columns
        counts = frames[0]["user"].value_counts().tolist() if has_user else [len(frames[0])]
        remarks.append(active_account_remark(max(counts, default=0)))
    if history := session.source.history:
        remarks.append(Remark(history, False))
    if covered := facts.get("covered"):
        until_ms = to_ms(covered[-1][1])
        remarks += coverage_remarks(until_ms, parameters.get("end"), session.now_ms())
    is_empty = not any(len(frame) for frame in frames)
    world = session.world if isinstance(session.world, Mapping) else {}
    tables, first = operation.tables, operation.parameters[:1]
    remarks += name_remarks(
        parameters, world, is_empty=is_empty, lists_markets=first == (DEX,) and len(tables) == 1
    )
    if is_empty:
        remarks += builder_remarks(operation.type)
        service_ms = session.source.stated_now_ms()
        remarks += clock_remarks(parameters, request.asked_ms, service_ms, is_aged=request.is_aged)
        if request.ends_on_date:
            remarks.append(date_remark(parameters["end"]))
    return remarks


def publish_remarks(
    operation: Operation, remarks: Sequence[Remark], frames: Sequence[pd.DataFrame] = ()
) -> str:
    """Write remarks into the provenance of frames, and issue one warning for those that warn.

    Returns
    -------
    str
        All remarks.
    """
    noted = "; ".join(remark.words for remark in remarks)
    if noted:
        for frame in frames:
            frame.attrs["toolkit"]["history"] = noted
    warning = "; ".join(remark.words for remark in remarks if remark.warns)
    if warning and _is_quiet():
        for frame in frames:
            frame.attrs["toolkit"][_DEFERRED_WARNING] = warning
    elif warning:
        warn_caller(f"{operation.function}: {warning}", HistoryWarning)
    return noted


def pop_deferred_warning(frame: pd.DataFrame) -> str:
    """Remove from a frame the warning that a quiet call did not issue, and return it."""
    warning: str = frame.attrs["toolkit"].pop(_DEFERRED_WARNING, "")
    return warning


@dataclass(frozen=True, slots=True)
class _WorkerRole:
    """What a thread that works for `tk.many` shares with the others: `work_for_many`."""

    stop: threading.Event
    turn: "threading.Lock | None"


_worker_role: ContextVar[_WorkerRole | None] = ContextVar("worker_role", default=None)


@contextmanager
def work_for_many(stop: threading.Event, turn: "threading.Lock | None" = None) -> Iterator[None]:
    """Let the calls of this thread work for `tk.many`.

    They issue no warning and show no bar: `tk.many` does it for all. Once `stop` is set, they send
    no further request. `turn` is a lock of all threads: many of them wait for answers at
    once, but only its holder works on an answer. Threads that compete for Python's lock need 1.3 to
    1.6 times the processor time.
    """
    token = _worker_role.set(_WorkerRole(stop, turn))
    try:
        with turn or nullcontext():
            yield
    finally:
        _worker_role.reset(token)


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
    body, call = request_body(operation, parameters, is_checked=True), _worker_role.get()
    if call is None:
        return session.ask(operation, body, counts)
    if call.turn is None or session.source.in_process:
        return session.ask(operation, body, counts, call.stop)
    call.turn.release()
    try:
        return session.ask(operation, body, counts, call.stop)
    finally:
        call.turn.acquire()


def _is_quiet() -> bool:
    """Return whether this thread works for another call, which issues the warnings."""
    return _worker_role.get() is not None


def warn_incomplete(operation: Operation, completeness: Completeness) -> None:
    """Warn the caller if the service states that rows may be missing."""
    if reason := completeness.missing_reason:
        warn_caller(f"incomplete: {operation.type}: {reason}", IncompleteWarning)
