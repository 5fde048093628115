"""Refresh: pull what is missing of histories and append it, so that a kill loses nothing.

`refresh_all` refreshes one or many series of an operation. The steps for a history are: the
request, the runs that are not complete, the rows of each run in portions (`history_pull`), the
check that they follow the archived rows, the commit, and the entry in the refresh log. The first
call is made in this thread, the others by workers. The portions of many histories share a commit,
and so do their entries in the refresh log.

If no end is requested, the range begins where the archived rows before it end, so that no gap is
left.

A commit sets two counters of the Delta table for each history: one with the name of the run and
its new length, and one with the name of the series. If two processes refresh the same series, Delta
refuses the second commit. The second process then compares the lengths of all runs with those that
it knows. It begins again with the histories that have changed, and commits the others.
"""

import contextlib
import copy
import inspect
import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from toolkit.archive.coverage import (
    RefreshResult,
    log_entry,
    log_refreshes,
    read_log,
    read_series_log,
)
from toolkit.archive.history_pull import (
    HistoryPull,
    PulledRows,
    RefreshRequest,
    RowsDisagree,
    RunLengths,
    check_clock,
    count_run_rows,
    pull_rows,
)
from toolkit.archive.schemas import ANSWERS, PULLS, SCHEMAS, RowOrigin, Series, make_series
from toolkit.archive.storage import MAX_TRIES, ArchiveTables, retry_append
from toolkit.client import Session
from toolkit.completeness.certificate import Remark
from toolkit.contract.answers import answer_rows, decode
from toolkit.contract.columns import table_columns
from toolkit.display import count_text, type_text
from toolkit.errors import (
    ArchiveError,
    CommitConflict,
    HistoryMismatch,
    HistoryWarning,
    IncompleteWarning,
    ToolkitError,
    warn_caller,
)
from toolkit.fetch.markets import with_codes
from toolkit.fetch.pull import (
    Request,
    answer_remarks,
    ask,
    pop_deferred_warning,
    prepare_request,
    publish_remarks,
    read_pages,
    request_remarks,
    work_for_many,
)
from toolkit.fetch.registry import operation_of
from toolkit.fetch.workers import FATAL_ERRORS, ClusterClient, Workers, executor_error
from toolkit.times import to_ms

__all__ = [
    "ROWS_PER_COMMIT",
    "FetchedAnswer",
    "append_answers",
    "is_fatal",
    "prepare_refresh",
    "refresh_all",
]

ROWS_PER_COMMIT: Final = 50_000
"""A commit costs as much time as a few pages, so several pages share one."""

_ROWS_PER_CALL: Final = 8_000  # if several histories are pulled at once
_CALLS_AT_ONCE: Final = 64  # more would only wait, with their rows in memory
_SERIES_PER_COMMIT: Final = 500
_BYTES_PER_COMMIT: Final = 32 * 2**20  # of answers
_SECONDS_TO_STOP: Final = 5
_ANSWER_HEADERS: Final = ("content-type", "content-encoding", "x-payload-format", "x-compression")

RefreshOutcome = tuple[RefreshRequest, RefreshResult | ToolkitError]
"""A request, and its result or why it failed."""
NextCall = tuple[Callable[..., Any], Mapping[str, Any]]
"""A function and its arguments."""


def prepare_refresh(
    fetch: Callable[..., Any],
    arguments: Sequence[Any],
    named: Mapping[str, Any],
    now_ms: int,
    session: Session | None = None,
) -> RefreshRequest:
    """Return the request that a call of a fetch function stands for.

    Nothing is sent, except for a list of markets if there is a session and a name is not a code.

    Raises
    ------
    BadRequest
        If the service would refuse the request.
    ArchiveError
        If the call asks for a part of the rows only.
    TypeError
        If the fetch function does not take these arguments.
    """
    operation = operation_of(fetch)
    bound = inspect.signature(fetch).bind_partial(*arguments, **named)
    values = {name: value for name, value in bound.arguments.items() if value is not None}
    for name in ("numbers", "on_incomplete", "session", "cursor"):
        if name in values:
            raise ArchiveError(f"leave out {name}: an archive stores every row unchanged")
    times = {name: values.pop(name, None) for name in ("start", "end")}
    page_size = values.pop("page_size", None)
    times_ms = {
        name: None if time is None else to_ms(time, now_ms=now_ms) for name, time in times.items()
    }
    if not operation.is_history:
        values |= {name: time for name, time in times_ms.items() if time is not None}
    names_markets = any(item.dex_form in ("coin", "market") for item in operation.parameters)
    if session is not None and names_markets:
        values = with_codes(session, operation, values)
    series = make_series(operation, (), values)
    return RefreshRequest(series, times, times_ms["start"], times_ms["end"], page_size)


def refresh_all(
    tables: ArchiveTables,
    requests: Sequence[RefreshRequest],
    session: Session,
    rows_per_commit: int = ROWS_PER_COMMIT,
    executor: Executor | ClusterClient | None = None,
) -> Iterator[RefreshOutcome]:
    """Refresh series of one operation, and yield the outcome of each when it is archived.

    After an error that every other series would have, too, no further series is refreshed. An
    ArchiveError is raised if the archive cannot be written.
    """
    if not requests:
        return
    make_refresh = _HistoryRefresh if requests[0].series.operation.is_history else _AnswerRefresh
    refresh: _Refresh = make_refresh(tables, requests, session, rows_per_commit)
    try:
        yield from refresh.run(executor)
    finally:
        if refresh.deferred_warnings:
            words = "; ".join(refresh.deferred_warnings)
            warn_caller(f"{refresh.operation.function}: {words}", HistoryWarning)


def is_fatal(error: object) -> bool:
    """Return whether it is an error that every other series would have, too."""
    is_common = isinstance(error, (*FATAL_ERRORS, ArchiveError))
    return is_common and not isinstance(error, HistoryMismatch)


class _CallsHere:
    """Makes calls in this thread, with the interface of `Workers`."""

    def __init__(self, session: Session, count_rows: Callable[[int], object]) -> None:
        self.fatal_error = None
        self._named = {"session": session, "count_rows": count_rows}

    def submit(self, function: Callable[..., Any], call: Mapping[str, Any]) -> "Future[Any]":
        """Call a function, and return its result as a future."""
        future: Future[Any] = Future()
        future.set_result(function(**call, **self._named))
        return future


@dataclass(eq=False)
class _Refresh:
    """The refresh of many series of one operation: what waits, what runs, what is finished.

    A subclass says what the pull of a series is, its next call, what to do with the result, and
    how the results are committed.
    """

    tables: ArchiveTables
    requests: Sequence[RefreshRequest]
    session: Session
    rows_per_commit: int

    pull_type: ClassVar[type[Any]]

    def __post_init__(self) -> None:
        first = self.requests[0].series
        self.operation = first.operation
        self.is_single = len(self.requests) == 1
        self.name = first.name if self.is_single else self.operation.type
        self.waiting: deque[Any] = deque(self.requests)
        self.running: dict[Future[Any], Any] = {}
        self.finished: list[Any] = []
        self._places = {request.series.name: place for place, request in enumerate(self.requests)}
        self.new_rows = 0
        self.deferred_warnings: dict[str, None] = {}  # of all series, for one warning at the end

    def run(self, executor: Executor | ClusterClient | None) -> Iterator[RefreshOutcome]:
        """Yield the outcome of each series."""
        with self.session.show_progress(f"archive {self.operation.type}") as count_rows:
            try:
                # The first call is made in this thread: an error that all would have costs one.
                yield from self._make_calls(_CallsHere(self.session, count_rows), 1)
                if self.waiting:
                    with Workers(self.session, executor) as workers:
                        yield from self._use_workers(workers, count_rows)
            except KeyboardInterrupt as interrupt:
                self.keep_results()
                interrupt.add_note(_resume_note(self.name, self.new_rows))
                raise

    def next_call(self, state: Any) -> NextCall | None:
        """Return the next call of a series; None if it has everything."""
        raise NotImplementedError

    def take_result(self, state: Any, result: Any) -> int:
        """Keep the result of a call until it is committed, and return the number of its rows.

        Raise TypeError if an executor returned something else than the result of this call.
        """
        raise NotImplementedError

    def is_due(self) -> bool:
        """Return whether the results are enough for a commit."""
        raise NotImplementedError

    def commit_results(self) -> Iterator[RefreshOutcome]:
        """Commit all results, and yield the outcomes of the finished series."""
        raise NotImplementedError

    def keep_results(self) -> None:
        """Commit the results alone."""
        raise NotImplementedError

    def fail(self, state: Any, error: ToolkitError) -> None:
        """Finish a series with an error. If all others would have it, drop those that wait."""
        state.error = error
        self.finished.append(state)
        if is_fatal(error):
            self.waiting.clear()

    def take_finished(self) -> list[Any]:
        """Return the finished series in the order of their requests, and forget them."""
        finished, self.finished = self.finished, []
        return sorted(finished, key=lambda state: self._places[state.request.series.name])

    def announce_remarks(
        self, done: RefreshResult, request: Request, remarks: Sequence[Remark], frame: pd.DataFrame
    ) -> RefreshResult:
        """Warn as fetching does, and return the result with the remarks."""
        every = [*remarks, *answer_remarks(request, [frame])]
        if self.is_single:
            return replace(done, history=publish_remarks(self.operation, every))
        noted = pd.DataFrame()
        noted.attrs["toolkit"] = {}
        with work_for_many(threading.Event()):  # one warning is issued for all series
            text = publish_remarks(self.operation, every, [noted])
        if words := pop_deferred_warning(noted):
            self.deferred_warnings[words] = None
        return replace(done, history=text)

    def _use_workers(
        self, workers: Workers, count_rows: Callable[[int], object]
    ) -> Iterator[RefreshOutcome]:
        try:
            yield from self._make_calls(workers, _CALLS_AT_ONCE, count_rows)
        except KeyboardInterrupt:
            workers.stop.set()
            for future in self.running:
                future.cancel()
            for future in wait(self.running, _SECONDS_TO_STOP).done:
                if not future.cancelled() and future.exception() is None:
                    with contextlib.suppress(TypeError):  # the answer of another call
                        self.take_result(self.running[future], future.result())
            raise

    def _make_calls(
        self, workers: Workers | _CallsHere, at_once: int, count_rows: Callable[[int], object] = int
    ) -> Iterator[RefreshOutcome]:
        while self.waiting or self.running or self.finished:
            while self.waiting and len(self.running) < at_once:
                self._begin_call(workers)
            done = wait(self.running, return_when=FIRST_COMPLETED).done if self.running else ()
            for future in done:
                count_rows(self._end_call(self.running.pop(future), future, workers))
            if self.is_due() or not (self.waiting or self.running):
                yield from self.commit_results()
            if at_once == 1 and not self.is_single:
                return

    def _begin_call(self, workers: Workers | _CallsHere) -> None:
        item = self.waiting.popleft()
        is_new = isinstance(item, RefreshRequest)
        state = self.pull_type(item, self.session) if is_new else item
        try:
            call = self.next_call(state)
            if call is None:
                self.finished.append(state)
            else:
                self.running[workers.submit(*call)] = state
        except ToolkitError as error:
            self.fail(state, error)

    def _end_call(self, state: Any, future: "Future[Any]", workers: Workers | _CallsHere) -> int:
        """Return the number of new rows."""
        try:
            return self.take_result(state, future.result())
        except KeyboardInterrupt:
            raise
        except ToolkitError as error:
            self.fail(state, error)
        except BaseException as error:  # of the executor; a worker may even exit
            is_cancelled = isinstance(error, CancelledError)
            reason = copy.copy(workers.fatal_error) if is_cancelled else None
            self.fail(state, reason or executor_error(error))
        return 0


def _resume_note(name: str, rows: int) -> str:
    archived = count_text(rows, "new row is", "new rows are")
    return f"{name}: {archived} archived; refresh again to continue"


class _HistoryRefresh(_Refresh):
    """The refresh of histories."""

    pull_type = HistoryPull

    def __post_init__(self) -> None:
        super().__post_init__()
        self._rows_per_call = self.rows_per_commit if self.is_single else _ROWS_PER_CALL
        self._begun: dict[str, HistoryPull] = {}
        self._tries = self._version = 0
        series = self.requests[0].series
        self._table = series.table
        self._open_table()
        self._log = self.tables.open_for_append(PULLS)
        if self.is_single:
            self._entries = {series.name: read_series_log(self.tables, series, self._log)}
        else:
            found = read_log(self.tables, self._log, self.operation.type)
            self._entries = {f"{type} {subject}": found[type, subject] for type, subject in found}

    def next_call(self, history: HistoryPull) -> NextCall | None:
        """Return the call for the next portion of a history."""
        name = history.request.series.name
        self._begun.setdefault(name, history)
        if history.is_changed:
            entries = self._entries.get(name, ())
            lengths = None if self._lengths is None else self._lengths.get(name, {})
            history.begin(self.tables, self._handle, entries, lengths)
        pull = history.next_pull(self._rows_per_call)
        return None if pull is None else (pull_rows, {"pull": pull})

    def take_result(self, history: HistoryPull, pulled: PulledRows) -> int:
        """Check the rows of a portion, keep them, and return their number."""
        if history.is_changed:
            self._begin_again(history)
            return 0
        history.check_answer(pulled)
        try:
            history.add_portion(pulled)
        except RowsDisagree:
            # The rows are pulled once more. After an error they are not kept.
            if pulled.error is None:
                self._read_again(history)
                return 0
        if isinstance(pulled.error, KeyboardInterrupt):
            raise pulled.error
        if pulled.error is not None:
            self.fail(history, pulled.error)
        else:
            self.waiting.appendleft(history)
        return int(pulled.rows.num_rows)

    def is_due(self) -> bool:
        """Return whether there are enough rows or finished histories for a commit."""
        pending = (portion for history in self._begun.values() for portion in history.portions)
        is_large = sum(portion.rows.num_rows for portion in pending) >= self.rows_per_commit
        return is_large or len(self.finished) >= _SERIES_PER_COMMIT

    def commit_results(self) -> Iterator[RefreshOutcome]:
        """Commit the portions, then the entries of the finished histories in the refresh log."""
        self.keep_results()
        finished = self.take_finished()
        changed = [history for history in finished if history.is_changed and not history.error]
        for history in changed:
            self._begin_again(history)
        done = [history for history in finished if not history.is_changed and not history.error]
        if done:
            entries = [
                log_entry(history.refreshed(), history.origin, history.breaks, history.runs)
                for history in done
            ]
            log_refreshes(self.tables, entries, self._log)
        for history in finished:
            if history in changed:
                continue
            self._begun.pop(history.request.series.name, None)
            if history.error is None:
                yield history.request, self._announce(history)
                continue
            if not isinstance(history.error, ArchiveError):
                name = history.request.series.name
                history.error.add_note(_resume_note(name, history.new_rows))
            yield history.request, history.error

    def keep_results(self) -> None:
        """Commit the portions of all histories in one commit.

        An interrupt can come directly after a commit, before any line of ours notes it. Only the
        version of the handle shows that the commit was done.
        """
        histories = [history for history in self._begun.values() if history.portions]
        if not histories:
            return
        if self._handle.version() == self._version:
            try:
                self._append_portions(histories)
            except CommitConflict:
                self._count_try()
                self._open_table()
                self._find_changed()
                self.keep_results()
                return
        for history in histories:
            self.new_rows += history.note_commit()
        version, self._version = self._version, self._handle.version()
        if self._version > version + 1:  # other processes committed, too
            self._find_changed()

    def _append_portions(self, histories: Sequence[HistoryPull]) -> None:
        counts: dict[str, int] = {}
        for history in histories:
            for portion in history.portions:
                counts |= portion.counts
        # Readers of one account skip the row groups of others.
        ordered = sorted(histories, key=lambda history: history.request.series.subject)
        rows = [portion.rows for history in ordered for portion in history.portions]
        name = histories[0].request.series.name
        notes = {"series": name if len(histories) == 1 else f"{len(histories)} of {self.name}"}
        self.tables.append_rows(self._handle, pa.concat_tables(rows), counts=counts, notes=notes)

    def _open_table(self) -> None:
        self._handle = self.tables.open_for_append(self._table)
        self._version = self._handle.version()
        self._lengths = self._read_lengths()

    def _read_lengths(self) -> Mapping[str, RunLengths] | None:
        """Return the lengths of all runs, if that is worth the requests to a store."""
        if self.is_single and "://" in self.tables.location:
            return None
        return count_run_rows(self.tables, self._handle)

    def _find_changed(self) -> None:
        """Mark the histories to which another process has appended, and drop their portions."""
        self._lengths = self._read_lengths()
        for name, history in self._begun.items():
            if self._lengths is None or self._lengths.get(name, {}) != history.lengths:
                history.is_changed, history.portions = True, []

    def _begin_again(self, history: HistoryPull) -> None:
        """Continue a history that another process has changed."""
        self._count_try()
        self._read_again(history)

    def _read_again(self, history: HistoryPull) -> None:
        """Read the runs of a history again, and continue from there."""
        series = history.request.series
        history.is_changed = True
        self._entries[series.name] = read_series_log(self.tables, series)
        self._lengths = self._read_lengths()
        self.waiting.appendleft(history)

    def _count_try(self) -> None:
        self._tries += 1
        if self._tries >= MAX_TRIES + len(self._begun):
            raise ArchiveError(
                f"{self.name}: other processes wrote to the archive during each of "
                f"{self._tries} tries. Refresh again when they are done"
            )

    def _announce(self, history: HistoryPull) -> RefreshResult:
        """Return the result of a history with remarks about what the service does not have."""
        request, done, series = history.request, history.refreshed(), history.request.series
        has_start = request.start_ms is not None
        times = request.times if has_start else {**request.times, "start": done.start_ms}
        type = self.operation.type
        whole = prepare_request(type, session=self.session, **series.parameters, **times)
        remarks = request_remarks(whole, has_start=has_start)
        archived = _archived_rows(self.tables, series, done.total)
        archived.attrs["toolkit"] = history.breaks.facts()
        done = self.announce_remarks(done, whole, remarks, archived)
        # Some sources, such as recordings, lack rows: their gaps are noted, but no fault.
        if (reason := history.breaks.reason) and not self.session.source.history:
            warn_caller(f"incomplete: {series.name}: {reason}", IncompleteWarning)
            done = replace(done, history="; ".join(filter(None, (done.history, reason))))
        return done


def _archived_rows(tables: ArchiveTables, series: Series, total: int) -> pd.DataFrame:
    """Return an empty frame with as many rows as the most active account has in the archive.

    Remarks about very active accounts depend on the rows of one account. A history of one account
    has `total` rows; a builder's history has the rows of many accounts.
    """
    if "user" not in {column.name for column in table_columns(series.operation.tables[0])}:
        return pd.DataFrame(index=range(total))
    users = tables.read_rows(series.table, ["user"], series=series)
    counts = users.group_by("user").aggregate([([], "count_all")])
    return pd.DataFrame(index=range(pc.max(counts["count_all"]).as_py() or 0))


@dataclass(frozen=True, slots=True)
class FetchedAnswer:
    """An answer to archive, and what was asked."""

    series: Series
    body: bytes
    headers: Mapping[str, str]  # those that are needed to decode the body
    origin: RowOrigin

    @property
    def row(self) -> dict[str, Any]:
        """The row of the table."""
        return {
            "_operation": self.series.operation.type,
            "_subject": self.series.subject,
            "_body": self.body,
            "_headers": json.dumps(dict(self.headers)),
            **self.origin.columns,
        }


class _AnswerPull:
    """The request of one answer, and the answer."""

    def __init__(self, request: RefreshRequest, session: Session) -> None:
        self.request = request
        self.origin = RowOrigin(session.label, session.simulated, session.now_ms())
        self.answer: FetchedAnswer | None = None
        self.error: ToolkitError | None = None


class _AnswerRefresh(_Refresh):
    """The refresh of an operation that is not a history: one more answer of each series."""

    pull_type = _AnswerPull

    def next_call(self, state: _AnswerPull) -> NextCall:
        """Return the call for an answer, if no archived answer is later than the present."""
        series = state.request.series
        archived = self.tables.read_rows(ANSWERS, ["_fetched"], series=series)["_fetched"]
        check_clock(series, state.origin.fetched_ms, archived.to_pylist())
        return fetch_answer, {"series": series, "origin": state.origin}

    def take_result(self, state: _AnswerPull, result: object) -> int:
        """Check that an answer is the one that was asked, and keep it."""
        series = state.request.series
        if not isinstance(result, FetchedAnswer):
            raise TypeError(
                f"{series.name}: the executor returned {type_text(result)}, not the answer of this "
                "call"
            )
        if result.series != series:
            raise TypeError(
                f"{series.name}: the executor returned the answer of {result.series.name}"
            )
        state.answer = result
        self.finished.append(state)
        return 1

    def is_due(self) -> bool:
        """Return whether there are enough answers."""
        size = sum(len(state.answer.body) for state in self.finished if state.answer)
        return size >= _BYTES_PER_COMMIT or len(self.finished) >= _SERIES_PER_COMMIT

    def commit_results(self) -> Iterator[RefreshOutcome]:
        """Commit the answers, and yield what came of each."""
        finished = self.take_finished()
        answers = [state.answer for state in finished if state.answer]
        done = iter(append_answers(self.tables, answers) if answers else ())
        for state in finished:
            if state.answer is None:
                yield state.request, state.error
            else:
                result = next(done)
                self.new_rows += result.rows
                yield state.request, self._announce(state.answer, result)

    def keep_results(self) -> None:
        """Commit the answers."""
        for _ in self.commit_results():
            pass

    def _announce(self, answer: FetchedAnswer, done: RefreshResult) -> RefreshResult:
        series = answer.series
        if self.operation.binary:
            return done
        sent = prepare_request(self.operation.type, session=self.session, **series.parameters)
        decoded = decode(
            self.operation, 200, answer.headers, answer.body, parameters=series.parameters
        )
        # Remarks depend on the number of rows only, so the frame needs no columns.
        parts = answer_rows(self.operation, decoded, series.parameters)
        rows = max(map(len, parts), default=0)
        frame = pd.DataFrame(index=range(rows))
        return self.announce_remarks(done, sent, request_remarks(sent), frame)


def fetch_answer(
    series: Series, origin: RowOrigin, session: Session, count_rows: Callable[[int], object] = int
) -> FetchedAnswer:
    """Return an answer. Pages are joined: their rows, unchanged, in one array."""
    operation = series.operation
    if operation.paging != "none":
        texts: list[bytes] = []
        request = prepare_request(operation.type, session=session, **series.parameters)
        for page in read_pages(request):
            page.completeness.check_complete()
            texts += page.texts()
        body, headers = b"[%b]" % b",".join(texts), {}
    else:
        answer = ask(session, operation, series.parameters)
        answer.completeness.check_complete()
        body = answer.content
        headers = {name: answer.headers[name] for name in _ANSWER_HEADERS if name in answer.headers}
    count_rows(1)
    return FetchedAnswer(series, body, headers, origin)


def append_answers(tables: ArchiveTables, answers: Sequence[FetchedAnswer]) -> list[RefreshResult]:
    """Append the answers that are not archived yet in one commit, and return their results."""
    names = ", ".join(dict.fromkeys(answer.series.name for answer in answers[:3]))
    return retry_append(names, _append_new_answers, tables, answers)


def _append_new_answers(
    tables: ArchiveTables, answers: Sequence[FetchedAnswer]
) -> list[RefreshResult]:
    times = ds.field("_fetched").isin([answer.origin.fetched_ms for answer in answers])
    handle = tables.open_for_append(ANSWERS)
    same = tables.read_rows(handle, ["_operation", "_subject", "_body"], times)
    archived = {(row["_operation"], row["_subject"], row["_body"]) for row in same.to_pylist()}
    counters = tables.read_counters(handle)
    counts: dict[str, int] = {}
    new, done = [], []
    for answer in answers:
        series, moment = answer.series, answer.origin.fetched_ms
        identity = (series.operation.type, series.subject, answer.body)
        is_new = identity not in archived
        if series.name in counts:
            before = counts[series.name]
        elif counters is None:
            before = handle.transaction_version(series.name) or 0
        else:
            before = counters.get(series.name, 0)
        if is_new:
            archived.add(identity)
            new.append(answer.row)
            # The counter makes Delta refuse a second writer of the same series.
            counts[series.name] = before + 1
        done.append(RefreshResult(*identity[:2], int(is_new), before + is_new, moment, moment))
    if new:
        rows = pa.Table.from_pylist(new, schema=SCHEMAS[ANSWERS])
        tables.append_rows(handle, rows, counts=counts)
    pairs = zip(done, answers, strict=True)
    log_refreshes(tables, [log_entry(result, answer.origin) for result, answer in pairs])
    return done
