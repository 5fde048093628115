"""Refresh: pull what is missing of histories and append it, so that a kill loses nothing.

`refresh_all` refreshes one or many series of an operation. The steps for a history are: the
request, the runs that are not complete, the rows of each run in portions (`history_pull`), the
check that they follow the archived rows, the commit, and the entry in the refresh log.
The first call is made in this thread, the others by workers. The portions of many histories share a
commit, and so do their entries in the refresh log.

If no end is requested, the range begins where the archived rows before it end, so that no gap is
left. If another process appends to a history, its refresh begins again.
"""

import copy
import inspect
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from toolkit import errors
from toolkit.archive import history_pull
from toolkit.archive.coverage import RefreshResult, log_entry, log_refreshes
from toolkit.archive.history_pull import HistoryPull, PulledRows, RefreshRequest
from toolkit.archive.schemas import ANSWERS, SCHEMAS, RowOrigin, Series, make_series
from toolkit.archive.storage import MAX_TRIES, ArchiveTables, retry_append
from toolkit.client import Session
from toolkit.contract.answers import answer_rows, decode
from toolkit.contract.fields import table_columns
from toolkit.display import count_text
from toolkit.errors import ArchiveError, CommitConflict, ToolkitError
from toolkit.fetch import pull
from toolkit.fetch.markets import with_codes
from toolkit.fetch.registry import operation_of
from toolkit.fetch.remarks import Remark, answer_remarks, join_remarks, request_remarks
from toolkit.fetch.workers import FATAL_ERRORS, ClusterClient, Workers, executor_error
from toolkit.times import to_ms

ROWS_PER_COMMIT: Final = 50_000
"""A commit costs as much time as a few pages, so several pages share one."""

_ROWS_PER_CALL: Final = 8_000  # if several histories are pulled at once
_CALLS_AT_ONCE: Final = 64  # more would only wait, with their rows in memory
_SERIES_PER_COMMIT: Final = 500
_BYTES_PER_COMMIT: Final = 32 * 2**20  # of answers
_ANSWER_HEADERS: Final = ("content-type", "content-encoding", "x-payload-format", "x-compression")

RefreshOutcome = tuple[RefreshRequest, RefreshResult | ToolkitError]
"""A request, and its result or why it failed."""
Call = tuple[Callable[..., Any], Mapping[str, Any]]
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
    series, words = requests[0].series, dict[str, None]()
    kind = _HistoryRefresh if series.operation.is_history else _AnswerRefresh
    refresh: _AnyRefresh = kind(tables, requests, session, rows_per_commit)
    try:
        with session.show_progress(f"archive {series.operation.type}") as count_rows:
            while refresh.waiting or refresh.finished:
                for item, result in _make_calls(refresh, session, executor, count_rows):
                    refresh.take(item, result)
                    if refresh.is_due():
                        yield from refresh.commit(words)
                yield from refresh.commit(words)
    except KeyboardInterrupt as interrupt:
        refresh.keep()
        name = series.operation.type if requests[1:] else series.name
        interrupt.add_note(_resume_note(name, refresh.new_rows))
        raise
    finally:
        if words:
            text = f"{series.operation.function}: {'; '.join(words)}"
            errors.warn_caller(text, errors.HistoryWarning)


def is_fatal(error: object) -> bool:
    """Return whether it is an error that every other series would have, too."""
    is_common = isinstance(error, (*FATAL_ERRORS, ArchiveError))
    return is_common and not isinstance(error, errors.HistoryMismatch)


def _resume_note(name: str, rows: int) -> str:
    archived = count_text(rows, "new row is", "new rows are")
    return f"{name}: {archived} archived; refresh again to continue"


def _make_calls(
    refresh: "_AnyRefresh",
    session: Session,
    executor: Executor | ClusterClient | None,
    count_rows: Callable[[int], object],
) -> Iterator[tuple[Any, Any]]:
    """Yield each item of a refresh with the result of its call, its error, or None without a call.

    The first call is made in this thread: an error that all would have costs one.
    """
    running: dict[Future[Any], Any] = {}
    workers: Workers | None = None
    is_here = True
    with ExitStack() as stack:
        try:
            while refresh.waiting or running:
                while refresh.waiting and len(running) < _CALLS_AT_ONCE:
                    item, result = refresh.waiting.popleft(), None
                    try:
                        item, call = refresh.begin(item)
                        if call and is_here:
                            result = call[0](**call[1], session=session, count_rows=count_rows)
                        elif call:
                            workers = workers or stack.enter_context(Workers(session, executor))
                            running[workers.submit(*call)] = item
                            continue
                    except ToolkitError as error:
                        result = error
                    is_here = refresh.is_single
                    yield item, result
                for future in wait(running, return_when=FIRST_COMPLETED).done if running else ():
                    item, result = running.pop(future), _result_of(future, workers)
                    count_rows(result.rows.num_rows if isinstance(result, PulledRows) else 1)
                    yield item, result
        finally:
            for future in running:
                future.cancel()


def _result_of(future: "Future[Any]", workers: Workers | None) -> Any:
    try:
        return future.result()
    except KeyboardInterrupt:
        raise
    except ToolkitError as error:
        return error
    except BaseException as error:  # of the executor; a worker may even exit
        fatal = workers.fatal_error if workers and isinstance(error, CancelledError) else None
        return copy.copy(fatal) or executor_error(error)


def _error_of(result: Any, series: Series) -> ToolkitError:
    """Return the error of a call, whose result is not the one that was asked."""
    if isinstance(result, ToolkitError):
        return result
    what = "the executor returned another answer than that of this call"
    return executor_error(TypeError(f"{series.name}: {what}"))


def _announce(
    done: RefreshResult,
    request: pull.Request,
    remarks: Sequence[Remark],
    frame: pd.DataFrame,
    words: dict[str, None],
) -> RefreshResult:
    """Return the result with the remarks; add what fetching would warn of to `words`."""
    noted, warning = join_remarks([*remarks, *answer_remarks(request, [frame])])
    if warning:  # one warning is issued for all series
        words[warning] = None
    return replace(done, history=noted)


class _Refresh:
    """The refresh of series: what waits, and what is finished."""

    def __init__(
        self,
        tables: ArchiveTables,
        requests: Sequence[RefreshRequest],
        session: Session,
        rows_per_commit: int,
    ) -> None:
        self.is_single = len(requests) == 1
        self.waiting: deque[Any] = deque(requests)
        self.finished: list[Any] = []
        self.new_rows = 0
        self._tables, self._session, self._rows_per_commit = tables, session, rows_per_commit
        self._sample = requests[0].series


class _HistoryRefresh(_Refresh):
    """The refresh of histories, also what is pulled of each."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        sample, is_only = self._sample, self.is_single
        self._writer = history_pull.HistoryWriter(self._tables, sample, is_only=is_only)
        self._pulled: dict[str, HistoryPull] = {}
        self._tries = 0

    def begin(self, item: Any) -> tuple[HistoryPull, Call | None]:
        """Return a history, and the call for its next portion."""
        history = item if isinstance(item, HistoryPull) else HistoryPull(item, self._session)
        self._pulled[history.series.subject] = history
        if history.runs is None:
            most_rows = self._rows_per_commit if self.is_single else _ROWS_PER_CALL
            history.portions_to_pull = history.pull_portions(self._writer, most_rows)
            history.asked = None
            history.advance()
        asked = history.asked
        return history, None if asked is None else (history_pull.pull_rows, {"pull": asked})

    def take(self, history: HistoryPull, result: Any) -> None:
        """Check the rows of a portion, and keep them until they are committed."""
        if history.runs is None and not history.error:  # another process has changed it
            self.waiting.appendleft(history)
            return
        if isinstance(result, PulledRows) and result.pull == history.asked:
            history.pulled = result
            history.advance()
            if isinstance(result.error, KeyboardInterrupt):
                raise result.error
            history.error = history.error or result.error
        elif result is not None:
            history.error = _error_of(result, history.series)
        if history.asked and not history.error:
            self.waiting.appendleft(history)
            return
        self.finished.append(history)
        if history.error and is_fatal(history.error):
            self.waiting.clear()

    def is_due(self) -> bool:
        """Return whether there are enough rows or finished histories for a commit."""
        pending = (
            rows.num_rows for history in self._pulled.values() for rows, *_ in history.portions
        )
        return sum(pending) >= self._rows_per_commit or len(self.finished) >= _SERIES_PER_COMMIT

    def commit(self, words: dict[str, None]) -> Iterator[RefreshOutcome]:
        """Commit the portions, then the entries of the finished histories in the refresh log."""
        self.keep()
        changed = [each for each in self.finished if each.runs is None and not each.error]
        finished = [each for each in self.finished if each not in changed]
        self.finished = []
        self.waiting.extendleft(changed)
        for history in finished:
            del self._pulled[history.series.subject]
        entries = [
            log_entry(each.refreshed(), each.origin, each.breaks, each.runs or (), each.lacks)
            for each in finished
            if not each.error
        ]
        if entries:
            log_refreshes(self._tables, entries, self._writer.log)
        for history in finished:
            if (error := history.error) is None:
                yield history.request, self._announce(history, words)
                continue
            if not isinstance(error, ArchiveError):
                error.add_note(_resume_note(history.series.name, history.new_rows))
            yield history.request, error

    def keep(self) -> None:
        """Commit the portions of all histories in one commit.

        If another process has changed a history, its refresh begins again. An interrupt can come
        during a commit: nobody knows then whether it was done, so its portions are given up.
        """
        pulled = self._pulled.values()
        while histories := [history for history in pulled if history.portions]:
            # Readers of one account skip the row groups of others.
            histories.sort(key=lambda history: history.series.subject)
            taken = [(history, history.portions) for history in histories]
            for history in histories:
                history.portions = []
            series = histories[0].series
            note = f"{len(histories)} of {series.operation.type}" if histories[1:] else series.name
            try:
                rows = [(each.series, run, new) for each, got in taken for new, run, _ in got]
                is_shared = self._writer.append(rows, note)
                self.new_rows += sum(history.note_commit(portions) for history, portions in taken)
            except CommitConflict:
                is_shared = True
                self._writer.open()
                for history, portions in taken:
                    history.portions = portions
                self._tries += 1
            for history in pulled if is_shared else ():
                if history.runs is not None and self._writer.has_changed(
                    history.series, history.runs
                ):
                    history.runs, history.portions = None, []
                    self._tries += 1
                    self._writer.open()
            if self._tries >= MAX_TRIES + len(pulled):
                raise ArchiveError(
                    f"other processes wrote to the archive during each of {self._tries} tries. "
                    "Refresh again when they are done"
                )

    def _announce(self, history: HistoryPull, words: dict[str, None]) -> RefreshResult:
        """Return the result of a history with remarks about what the service does not have."""
        request, done, series = history.request, history.refreshed(), history.request.series
        has_start = request.start_ms is not None
        times = request.times if has_start else {**request.times, "start": done.start_ms}
        whole = pull.prepare_request(
            series.operation, session=self._session, **series.parameters, **times
        )
        remarks = request_remarks(whole, has_start=has_start)
        if history.lacks:
            remarks.append(Remark(history.lacks, True))
        # Remarks about very active accounts depend on the rows of the most active one.
        most_rows = done.total
        if "user" in {column.name for column in table_columns(series.operation.tables[0])}:
            users = self._tables.read_rows(series.table, ["user"], series=series)
            counts = users.group_by("user").aggregate([([], "count_all")])
            most_rows = pc.max(counts["count_all"]).as_py() or 0
        archived = pd.DataFrame(index=range(most_rows))
        archived.attrs["toolkit"] = history.breaks.facts()
        done = _announce(done, whole, remarks, archived, words)
        # Some sources, such as recordings, lack rows: their gaps are noted, but no fault.
        if (reason := history.breaks.reason) and not self._session.source.history:
            text = f"incomplete: {series.name}: {reason}"
            errors.warn_caller(text, errors.IncompleteWarning)
            done = replace(done, history="; ".join(filter(None, (done.history, reason))))
        return done


@dataclass(frozen=True, slots=True)
class FetchedAnswer:
    """An answer to archive, and what was asked."""

    series: Series
    body: bytes
    headers: Mapping[str, str]  # those that are needed to decode the body
    origin: RowOrigin


class _AnswerRefresh(_Refresh):
    """The refresh of an operation that is not a history: one more answer of each series."""

    def begin(self, request: RefreshRequest) -> tuple[RefreshRequest, Call]:
        """Return the call for an answer, if no archived answer is later than the present."""
        series, session = request.series, self._session
        origin = RowOrigin(session.label, session.simulated, session.now_ms())
        archived = self._tables.read_rows(ANSWERS, ["_fetched"], series=series)["_fetched"]
        history_pull.check_clock(series, origin.fetched_ms, archived.to_pylist())
        return request, (fetch_answer, {"series": series, "origin": origin})

    def take(self, request: RefreshRequest, result: Any) -> None:
        """Keep an answer, if it is the one that was asked."""
        if not (isinstance(result, FetchedAnswer) and result.series == request.series):
            result = _error_of(result, request.series)
        if is_fatal(result):
            self.waiting.clear()
        self.finished.append((request, result))

    def is_due(self) -> bool:
        """Return whether there are enough answers for a commit."""
        answers = (answer for _, answer in self.finished if isinstance(answer, FetchedAnswer))
        size = sum(len(answer.body) for answer in answers)
        return size >= _BYTES_PER_COMMIT or len(self.finished) >= _SERIES_PER_COMMIT

    def commit(self, words: dict[str, None]) -> Iterator[RefreshOutcome]:
        """Commit the answers, and yield what came of each."""
        finished, self.finished = self.finished, []
        answers = [answer for _, answer in finished if isinstance(answer, FetchedAnswer)]
        done = iter(append_answers(self._tables, answers) if answers else ())
        for request, answer in finished:
            if isinstance(answer, ToolkitError):
                yield request, answer
                continue
            result, operation = next(done), answer.series.operation
            self.new_rows += result.rows
            if not operation.binary:
                chosen = answer.series.parameters
                sent = pull.prepare_request(operation, session=self._session, **chosen)
                decoded = decode(operation, 200, answer.headers, answer.body, parameters=chosen)
                # Remarks depend on the number of rows only, so the frame needs no columns.
                parts = answer_rows(operation, decoded, chosen)
                frame = pd.DataFrame(index=range(max(map(len, parts), default=0)))
                result = _announce(result, sent, request_remarks(sent), frame, words)
            yield request, result

    def keep(self) -> None:
        """Commit the answers."""
        for _ in self.commit({}):
            pass


_AnyRefresh = _HistoryRefresh | _AnswerRefresh


def fetch_answer(
    series: Series, origin: RowOrigin, session: Session, count_rows: Callable[[int], object] = int
) -> FetchedAnswer:
    """Return an answer. Pages are joined: their rows, unchanged, in one array."""
    request = pull.prepare_request(series.operation, session=session, **series.parameters)
    if request.operation.paging != "none" or request.max_rows is not None:
        texts: list[bytes] = []
        for page in pull.read_pages(request):
            page.completeness.check_complete()
            texts += page.texts()
        body, headers = b"[%b]" % b",".join(texts), {}
    else:
        answer = pull.ask(session, request.operation, request.parameters)
        answer.completeness.check_complete()
        body = answer.content
        headers = {name: answer.headers[name] for name in _ANSWER_HEADERS if name in answer.headers}
    count_rows(1)
    return FetchedAnswer(series, body, headers, origin)


def append_answers(tables: ArchiveTables, answers: Sequence[FetchedAnswer]) -> list[RefreshResult]:
    """Append the answers that are not archived yet in one commit, and return their results."""
    times = ds.field("_fetched").isin([answer.origin.fetched_ms for answer in answers])

    def append() -> list[RefreshResult]:
        handle = tables.open_for_append(ANSWERS)
        same = tables.read_rows(handle, ["_operation", "_subject", "_body"], times)
        archived = {(row["_operation"], row["_subject"], row["_body"]) for row in same.to_pylist()}
        counters, counts = tables.read_counters(handle) or {}, dict[str, int]()
        new, done = [], []
        for answer in answers:
            series, moment = answer.series, answer.origin.fetched_ms
            identity = (series.operation.type, series.subject, answer.body)
            is_new = identity not in archived
            total = counts.get(series.name, counters.get(series.name, 0)) + is_new
            if is_new:
                archived.add(identity)
                stored = {"_body": answer.body, "_headers": json.dumps(dict(answer.headers))}
                place = {"_operation": series.operation.type, "_subject": series.subject}
                new.append({**place, **stored, **answer.origin.columns})
                counts[series.name] = total  # makes Delta refuse a second writer of the series
            done.append(RefreshResult(*identity[:2], int(is_new), total, moment, moment))
        if new:
            rows = pa.Table.from_pylist(new, schema=SCHEMAS[ANSWERS])
            tables.append_rows(handle, rows, counts=counts)
        return done

    names = ", ".join(dict.fromkeys(answer.series.name for answer in answers[:3]))
    done = retry_append(names, append)
    pairs = zip(done, answers, strict=True)
    log_refreshes(tables, [log_entry(result, answer.origin) for result, answer in pairs])
    return done
