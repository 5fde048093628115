"""Refresh: pull what is missing of histories and append it, so that a kill loses nothing.

`refresh_all` refreshes one or many series of an operation. The steps for a history are: the
request, the runs that are not complete, the rows of each run in portions, the check that they
follow the archived rows, the commit, and the entry in the refresh log. For any other operation one
more answer is archived. The first call is made in this thread, the others by workers. The portions
of many histories share a commit, and so do their entries in the refresh log.

A run is continued from the time of its last row. The rows of that time are pulled again and must
equal the archived ones. Each portion thus proves that the new rows follow the archived ones, for
inclusive and for exclusive cursors of the service.

If no end is requested, the range begins where the archived rows before it end, so that no gap is
left. If another process appends to a history, its refresh begins again.
"""

import copy
import inspect
import json
import operator
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from toolkit import errors
from toolkit.archive import coverage, schemas
from toolkit.archive.coverage import HistoryWriter, RefreshResult, Run
from toolkit.archive.schemas import ANSWERS, RowOrigin, Series
from toolkit.archive.storage import MAX_TRIES, ArchiveTables, retry_append
from toolkit.client import Session
from toolkit.completeness.checks import BreakLog, HistoryChecks
from toolkit.completeness.covered_ranges import TimeRange, enclosing_range
from toolkit.contract.answers import answer_rows, decode
from toolkit.contract.apis import SERVICE
from toolkit.contract.fields import table_columns
from toolkit.display import count_text
from toolkit.errors import ArchiveError, CommitConflict, HistoryMismatch, ToolkitError
from toolkit.fetch import pull
from toolkit.fetch.many import FATAL_ERRORS, ClusterClient, Workers, executor_error
from toolkit.fetch.markets import with_codes
from toolkit.fetch.registry import operation_of
from toolkit.fetch.remarks import answer_remarks, join_remarks, request_remarks
from toolkit.frames import Collector
from toolkit.times import HOUR, to_iso, to_ms

ROWS_PER_COMMIT: Final = 50_000
"""A commit costs as much time as a few pages, so several pages share one."""

_ROWS_PER_CALL: Final = 8_000  # if several histories are pulled at once
_CALLS_AT_ONCE: Final = 64  # more would only wait, with their rows in memory
_SERIES_PER_COMMIT: Final = 500
_BYTES_PER_COMMIT: Final = 32 * 2**20  # of answers
_ROWS_BEFORE: Final = 100_000  # the archived rows against which the rows of a refresh are checked
_START: Final = operator.attrgetter("start")
_ANSWER_HEADERS: Final = ("content-type", "content-encoding", "x-payload-format", "x-compression")


@dataclass(frozen=True, slots=True)
class RefreshRequest:
    """What is to be refreshed."""

    series: Series
    times: Mapping[str, Any]  # `start` and `end` as the caller passed them; None if not passed
    start_ms: int | None
    end_ms: int | None
    page_size: int | None  # rows per page; None for the default


RefreshOutcome = tuple[RefreshRequest, RefreshResult | ToolkitError]
"""A request, and its result or why it failed."""


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
    series = schemas.make_series(operation, (), values)
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
    series = requests[0].series
    refresh = _Refresh(tables, requests, session, rows_per_commit)
    try:
        with session.show_progress(f"archive {series.operation.type}") as count_rows:
            while refresh.waiting or refresh.finished:
                for item, result in refresh.make_calls(executor, count_rows):
                    refresh.take(item, result)
                    if refresh.is_due():
                        yield from refresh.commit()
                yield from refresh.commit()
    except KeyboardInterrupt as interrupt:
        refresh.keep()
        name = series.operation.type if requests[1:] else series.name
        interrupt.add_note(_resume_note(name, refresh.new_rows))
        raise
    finally:
        if refresh.words:
            text = f"{series.operation.function}: {'; '.join(refresh.words)}"
            errors.warn_caller(text, errors.HistoryWarning)


def is_fatal(error: object) -> bool:
    """Return whether it is an error that every other series would have, too."""
    is_common = isinstance(error, (*FATAL_ERRORS, ArchiveError))
    return is_common and not isinstance(error, HistoryMismatch)


def _resume_note(name: str, rows: int) -> str:
    archived = count_text(rows, "new row is", "new rows are")
    return f"{name}: {archived} archived; refresh again to continue"


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


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of the service: an answer, or a portion of a run.

    It can be sent to another process.
    """

    series: Series  # of a portion with the parameters of the request, and its time range
    origin: RowOrigin
    run: Any = None  # the `Run` that the rows follow
    most_rows: int = 0  # after about so many rows the portion ends


@dataclass(frozen=True, slots=True)
class PulledRows:
    """What was pulled of a run."""

    asked: Asked
    # From the time of the run's last row on, without series and run; None if nothing is new.
    rows: pa.Table | None
    until_ms: int | None  # up to which the service has rows, if it states a time
    is_end: bool  # whether all rows of the request have come
    error: ToolkitError | KeyboardInterrupt | None  # why no more rows came
    begin_ms: int | None = None  # where a new run begins, because the service lacks earlier rows
    lacks: str = ""  # which rows it lacks


@dataclass(frozen=True, slots=True)
class FetchedAnswer:
    """An answer to archive, and what was asked."""

    asked: Asked
    body: bytes
    headers: Mapping[str, str]  # those that are needed to decode the body
    error: None = None


class SeriesPull:
    """The refresh of one series: what to ask next, and what came and is not committed."""

    steps: Generator[Asked, Any, None]  # yields what to ask, and gets what came

    def __init__(self, request: RefreshRequest, session: Session) -> None:
        now, api = session.now_ms(), session.api
        self.request, self.series = request, request.series
        operation = self.series.operation
        self._operation = operation if api is SERVICE else api.adapt(operation)
        self.origin = RowOrigin(session.label, session.simulated, now)
        # The history is complete up to this time afterwards. Rows of this millisecond may come.
        last = now - 1 if session.source.has_running_clock() else now
        self.until_ms = last if request.end_ms is None else min(request.end_ms, last)
        self.start_ms = self.new_rows = self._unlogged = 0
        self.lacks = ""  # which rows the service may lack
        self.breaks = BreakLog()  # where the rows that were appended contradict each other
        self.error: ToolkitError | None = None  # why the refresh failed
        self.asked: Asked | None = None  # None if nothing can be missing
        self.answer: FetchedAnswer | None = None  # of an operation that is not a history
        self.done: Any = None  # its RefreshResult
        self.is_begun = False  # else the state of the archive has to be read
        self.runs: dict[int, Run] = {}  # the archived runs, by start
        # Rows that were pulled and are not committed, the runs with them, and their breaks.
        self.portions: list[Any] = []

    def advance(self, came: Any = None) -> None:
        """Take what came, and find what to ask next, if there is anything."""
        try:
            self.asked = self.steps.send(came)
        except StopIteration:
            self.asked = None
        except ToolkitError as error:
            self.error = error

    def ask(self, tables: ArchiveTables) -> Generator[Asked, FetchedAnswer, None]:
        """Yield what to ask for one more answer, if no archived one is later than the present."""
        self.is_begun = True
        rows = tables.read_rows(ANSWERS, ["_fetched"], series=self.series)
        self._check_clock(rows["_fetched"].to_pylist())
        self.answer = yield Asked(self.series, self.origin)

    def _check_clock(self, archived: Sequence[int]) -> None:
        """Raise an ArchiveError if the present is long before the last archived time."""
        now, last = self.origin.fetched_ms, max(archived, default=0)
        if last - now > HOUR:
            raise ArchiveError(
                f"{self.series.name}: the present is {to_iso(now)}, but the archive goes up to "
                f"{to_iso(last)}. Correct the clock of this machine, or use the session with which "
                "the archive was refreshed"
            )

    def begin(self, writer: HistoryWriter) -> list[TimeRange]:
        """Read the state of the history, and find where the refresh starts.

        Return the ranges that were pulled before.
        """
        request, series, since = self.request, self.series, self._operation.since
        runs, entries = writer.read_state(series)
        self.runs, self.is_begun = {run.start: run for run in runs}, True
        pulled = coverage.pulled_ranges(entries)
        self._noted = coverage.contradictory_ranges(entries)
        self.start_ms = request.start_ms or 0
        if request.start_ms is None:  # from the first archived row, else the service's first day
            firsts = [*self.runs] + [first for first, _ in pulled]
            self.start_ms = min(firsts, default=to_ms(since) if since else 0)
        elif request.end_ms is None:  # from the archived rows before the start, to leave no gap
            ranges = [(start, start - 1) for start in self.runs] + [*pulled]
            ends = [last + 1 for first, last in ranges if first <= self.start_ms]
            self.start_ms = min(self.start_ms, max(ends, default=self.start_ms))
        if request.end_ms is None:
            self._check_clock([until for _, until in pulled])
        self._unlogged = sum(run.rows for run in runs) - coverage.count_logged_rows(entries)
        return pulled

    def pull_portions(
        self, writer: HistoryWriter, most_rows: int
    ) -> Generator[Asked, PulledRows, None]:
        """Yield the portions to pull, of the runs that are not complete, and get what came.

        If their rows contradict each other or have a gap for the first time, all rows that are not
        committed are pulled once more, and archived as they come.
        """
        pulled, series, is_first_pull = self.begin(writer), self.series, True
        size = {} if self.request.page_size is None else {"page_size": self.request.page_size}
        waiting = select_runs(self.runs.values(), pulled, self.start_ms)
        doubt: HistoryMismatch | None = None
        run = checks = None
        while run is not None or waiting:
            if run is None:
                run = waiting.pop(0)
                # A refresh was killed before it noted its breaks.
                checks = self._begin_checks(writer, run) if self._unlogged > 0 else None
            start = run.start if run.last is None else run.last
            end = self.until_ms if run.bound is None else min(run.bound, self.until_ms)
            if start > end:
                run = None
                continue
            parameters = {**series.parameters, "start": start, "end": end, **size}
            portion = replace(series, parameters=parameters)
            came = yield Asked(portion, self.origin, run, most_rows)
            if doubt is not None and not came.lacks:
                raise doubt
            if came.until_ms is not None:
                self.until_ms = min(self.until_ms, came.until_ms)
            if came.begin_ms is not None:
                run, checks = Run(came.begin_ms, run.bound), None
                self.lacks, self.start_ms = came.lacks, max(self.start_ms, run.start)
            rows, doubt = came.rows, None
            expected = [] if rows is None else [*map(json.loads, run.last_texts)]
            if expected:  # the rows of the run's last time must come again
                rows = coverage.rows_after(series, start, expected, rows)
            if expected and came.error is None:
                doubt = coverage.mismatch(series, run.last, expected)
                if not self._operation.reach or start == end:
                    raise doubt
                # The service may keep only later rows: then a new run begins with them.
                run, checks = Run(start + 1, run.bound), None
                continue
            if rows and not expected:
                checks = checks or self._begin_checks(writer, run)
                rows, run = coverage.place_in_run(series, run, rows)
                breaks = checks.add_page(coverage.checked_columns(rows))
                self.portions.append((rows, run, breaks))
                if is_first_pull and any(found.group != "unproved" for found in breaks):
                    run, is_first_pull, self.portions = None, False, []
                    waiting = select_runs(self.runs.values(), pulled, self.start_ms)
            run = None if came.is_end else run

    def _begin_checks(self, writer: HistoryWriter, run: Run) -> HistoryChecks:
        """Return the checks of a run, which have seen its last archived rows."""
        series = self.series
        checks = HistoryChecks(series.operation, series.parameters)
        if run.rows:
            first = run.rows - max(_ROWS_BEFORE, self._unlogged)
            is_late = (ds.field("_part") == run.start) & (ds.field("_row") >= first)
            checked = schemas.CHECKED_COLUMNS.get(series.table, ())
            names = [*dict.fromkeys([*series.keys, *checked]), "_row"]
            rows = writer.tables.read_rows(writer.handle, names, is_late, series).sort_by("_row")
            self.breaks += [
                found
                for found in checks.add_page(coverage.checked_columns(rows))
                if found.group == "breaks"
                and not enclosing_range(self._noted, found.time, found.time)
            ]
        return checks


class _Refresh:
    """The refresh of series: what waits, what is finished, and the words of the warning."""

    def __init__(
        self,
        tables: ArchiveTables,
        requests: Sequence[RefreshRequest],
        session: Session,
        rows_per_commit: int,
    ) -> None:
        sample, self.is_single = requests[0].series, len(requests) == 1
        self.is_history = sample.operation.is_history
        self._tables, self._session, self._rows_per_commit = tables, session, rows_per_commit
        self._writer: Any = None  # a HistoryWriter
        if self.is_history:
            self._writer = HistoryWriter(tables, sample, is_only=self.is_single)
        self._pulled: dict[str, SeriesPull] = {}
        self.waiting: deque[RefreshRequest | SeriesPull] = deque(requests)
        self.finished: list[SeriesPull] = []
        self.new_rows = self._tries = 0
        self.words: dict[str, None] = {}  # one warning is issued for all series

    def make_calls(
        self, executor: Executor | ClusterClient | None, count_rows: Callable[[int], object]
    ) -> Iterator[tuple[SeriesPull, Any]]:
        """Yield each series with the result of its call, its error, or None without a call.

        The first call is made in this thread: an error that all would have costs one.
        """
        running: dict[Future[Any], SeriesPull] = {}
        session, workers, is_here = self._session, None, True
        call = pull_rows if self.is_history else fetch_answer
        with ExitStack() as stack:
            try:
                while self.waiting or running:
                    while self.waiting and len(running) < _CALLS_AT_ONCE:
                        result: Any = None
                        item = self._begin(self.waiting.popleft())
                        try:
                            if item.asked and is_here:
                                result = call(item.asked, session, count_rows)
                            elif item.asked:
                                workers = workers or stack.enter_context(Workers(session, executor))
                                running[workers.submit(call, {"asked": item.asked})] = item
                                continue
                        except ToolkitError as error:
                            result = error
                        is_here = self.is_single
                        yield item, result
                    done = wait(running, return_when=FIRST_COMPLETED).done if running else ()
                    for future in done:
                        item, result = running.pop(future), _result_of(future, workers)
                        count_rows(len(result.rows or ()) if isinstance(result, PulledRows) else 1)
                        yield item, result
            finally:
                for future in running:
                    future.cancel()

    def _begin(self, item: RefreshRequest | SeriesPull) -> SeriesPull:
        """Return the refresh of a series; read its state in the archive if need be."""
        if not isinstance(item, SeriesPull):
            item = SeriesPull(item, self._session)
        self._pulled[item.series.subject] = item
        if not item.is_begun:
            most_rows = self._rows_per_commit if self.is_single else _ROWS_PER_CALL
            is_history, writer = self.is_history, self._writer
            portions = item.pull_portions(writer, most_rows) if is_history else None
            item.steps = portions or item.ask(self._tables)
            item.advance()
        return item

    def take(self, item: Any, result: Any) -> None:
        """Keep the result of a call until it is committed, if it is of what was asked."""
        if not (item.is_begun or item.error):  # another process has changed its history
            self.waiting.appendleft(item)
            return
        if isinstance(result, ToolkitError):
            item.error = result
        elif isinstance(result, PulledRows | FetchedAnswer) and result.asked == item.asked:
            item.advance(result)
            if isinstance(result.error, KeyboardInterrupt):
                raise result.error
            item.error = item.error or result.error
        elif result is not None:
            what = "the executor returned another answer than that of this call"
            item.error = executor_error(TypeError(f"{item.series.name}: {what}"))
        if item.asked and not item.error:
            self.waiting.appendleft(item)
            return
        self.finished.append(item)
        if is_fatal(item.error):
            self.waiting.clear()

    def is_due(self) -> bool:
        """Return whether there are enough rows, answers or finished series for a commit."""
        pulled, answers = self._pulled.values(), (item.answer for item in self.finished)
        return (
            sum(rows.num_rows for item in pulled for rows, *_ in item.portions)
            >= self._rows_per_commit
            or sum(len(answer.body) for answer in answers if answer) >= _BYTES_PER_COMMIT
            or len(self.finished) >= _SERIES_PER_COMMIT
        )

    def commit(self) -> Iterator[RefreshOutcome]:
        """Commit what came, then the entries of the finished histories in the refresh log."""
        self.keep()
        changed = [item for item in self.finished if not (item.is_begun or item.error)]
        finished, self.finished = [item for item in self.finished if item not in changed], []
        self.waiting.extendleft(changed)
        entries = []
        for item in finished:
            del self._pulled[item.series.subject]
            if self.is_history and not item.error:
                series, runs = item.series, sorted(item.runs.values(), key=_START)
                rows = (item.new_rows, sum(run.rows for run in runs))
                times = (item.start_ms, item.until_ms)
                done = RefreshResult(series.operation.type, series.subject, *rows, *times)
                entries.append(coverage.log_entry(done, item.origin, item.breaks, runs, item.lacks))
                item.done = done
        if entries:
            coverage.log_refreshes(self._tables, entries, self._writer.log)
        for item in finished:
            if item.error is None:
                yield item.request, self._announce(item)
                continue
            if self.is_history and not isinstance(item.error, ArchiveError):
                item.error.add_note(_resume_note(item.series.name, item.new_rows))
            yield item.request, item.error

    def keep(self) -> None:
        """Commit the answers, or the portions of all histories in one commit.

        If another process has changed a history, its refresh begins again. An interrupt can come
        during a commit: nobody knows then whether it was done, so its portions are given up.
        """
        answered = [item for item in self.finished if item.answer and not item.done]
        if answers := [item.answer for item in answered if item.answer]:
            for item, done in zip(answered, append_answers(self._tables, answers), strict=True):
                item.done = done
                self.new_rows += done.rows
        pulled = self._pulled.values()
        # Readers of one account skip the row groups of others.
        while taken := [
            (each, *portion)
            for each in sorted(pulled, key=lambda each: each.series.subject)
            for portion in each.portions
        ]:
            for each in pulled:
                each.portions = []
            try:
                new = [(each.series, run, rows) for each, rows, run, _ in taken]
                is_shared = self._writer.append(new)
            except CommitConflict:
                is_shared, self._tries = True, self._tries + 1
                for each, *portion in taken:
                    each.portions.append(portion)
            else:
                for each, rows, run, breaks in taken:
                    each.runs[run.start] = run
                    each.breaks += breaks
                    each.new_rows += rows.num_rows
                    self.new_rows += rows.num_rows
            if is_shared:
                self._writer.open()
                for each in pulled:
                    if each.is_begun and self._writer.has_changed(each.series, each.runs.values()):
                        each.is_begun, each.portions = False, []
                        self._tries += 1
            if self._tries >= MAX_TRIES + len(pulled):
                raise ArchiveError(
                    f"other processes wrote to the archive during each of {self._tries} tries. "
                    "Refresh again when they are done"
                )

    def _announce(self, item: SeriesPull) -> RefreshResult:
        """Return the result of a series with remarks about what the service does not have."""
        done: RefreshResult = item.done
        request, answer = item.request, item.answer
        operation, chosen = item.series.operation, item.series.parameters
        if operation.binary:
            return done
        has_start, times = request.start_ms is not None or answer is not None, request.times
        if answer is not None:
            times = {}  # they are among the parameters
        elif not has_start:
            times = {**times, "start": done.start_ms}
        whole = pull.prepare_request(operation, session=self._session, **chosen, **times)
        remarks = request_remarks(whole, has_start=has_start)
        if item.lacks:
            remarks[item.lacks] = True
        # Remarks about very active accounts depend on the rows of the most active one.
        rows = done.total
        if answer is not None:
            decoded = decode(operation, 200, answer.headers, answer.body, parameters=chosen)
            rows = max(map(len, answer_rows(operation, decoded, chosen)), default=0)
        elif "user" in {column.name for column in table_columns(operation.tables[0])}:
            users = self._tables.read_rows(item.series.table, ["user"], series=item.series)
            counts = users.group_by("user").aggregate([([], "count_all")])
            rows = pc.max(counts["count_all"]).as_py() or 0
        frame = pd.DataFrame(index=range(rows))
        frame.attrs["toolkit"] = item.breaks.facts()
        noted, warning = join_remarks(remarks | answer_remarks(whole, [frame]))
        if warning:
            self.words[warning] = None
        # Some sources, such as recordings, lack rows: their gaps are noted, but no fault.
        if (reason := item.breaks.reason) and not self._session.source.history:
            text = f"incomplete: {item.series.name}: {reason}"
            errors.warn_caller(text, errors.IncompleteWarning)
            noted = "; ".join(filter(None, (noted, reason)))
        return replace(done, history=noted)


def select_runs(known: Iterable[Run], pulled: Sequence[TimeRange], start: int) -> list[Run]:
    """Return the runs that cover all times from `start` on and are not complete.

    The first of them is the archived run that is complete up to `start`, which can be continued. If
    there is none, it is a new run that begins at `start`. `pulled` are the ranges of the series
    that were pulled, according to the refresh log.
    """
    runs = sorted(known, key=_START)
    earlier = [run for run in runs if run.start <= start]
    later = runs[len(earlier) :]
    first = Run(start, later[0].start - 1 if later else None)
    if earlier:
        run = earlier[-1]
        # Whether no row is missing between the rows of the run and `start`.
        is_near = start <= max(run.start, run.last or 0)
        if is_near or any(begin <= run.start and start <= last + 1 for begin, last in pulled):
            first = run
    return [
        run
        for run in (first, *later)
        if run.bound is None or not enclosing_range(pulled, run.start, run.bound)
    ]


def pull_rows(
    asked: Asked, session: Session, count_rows: Callable[[int], object] = int
) -> PulledRows:
    """Pull pages of a run from the time of its last archived row on, until the portion is full.

    If the service keeps only the latest rows, and may lack some of a new run, the run begins where
    its rows are complete.
    """
    series, begin_ms, until_ms, is_end, lacks = asked.series, None, None, True, ""
    kept: list[tuple[bytes, Any]] = []  # texts and records
    failure: ToolkitError | KeyboardInterrupt | None = None
    try:
        request = pull.prepare_request(series.operation, session=session, **series.parameters)
        if request.operation.reach and asked.run.last is None:
            begin_ms = pull.first_complete_ms(request)
        if begin_ms is not None:
            lacks = pull.reach_message(request, begin_ms)
            request = replace(request, parameters={**request.parameters, "start": begin_ms})
        is_empty = begin_ms is not None and begin_ms > series.parameters["end"]
        for page in () if is_empty else pull.read_pages(request):
            page.completeness.check_complete()
            if page.completeness.covered is not None:
                until_ms = page.completeness.covered[1]
            kept += zip(page.texts(), page.tables[0], strict=True)
            count_rows(len(page.tables[0]))
            if len(kept) >= asked.most_rows + len(asked.run.last_texts):
                is_end = page.is_last
                break
    except (ToolkitError, KeyboardInterrupt) as error:
        failure, is_end = error, False
    rows = None
    if [text for text, _ in kept] != [text.encode() for text in asked.run.last_texts]:
        collector = Collector(series.operation, "float")
        collector.add(([record for _, record in kept],))
        rows = schemas.collected_rows(collector, series, [text for text, _ in kept], asked.origin)
    return PulledRows(asked, rows, until_ms, is_end, failure, begin_ms, lacks)


def fetch_answer(
    asked: Asked, session: Session, count_rows: Callable[[int], object] = int
) -> FetchedAnswer:
    """Return an answer. Pages are joined: their rows, unchanged, in one array."""
    series = asked.series
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
    return FetchedAnswer(asked, body, headers)


def append_answers(tables: ArchiveTables, answers: Sequence[FetchedAnswer]) -> list[RefreshResult]:
    """Append the answers that are not archived yet in one commit, and return their results."""
    times = ds.field("_fetched").isin([answer.asked.origin.fetched_ms for answer in answers])

    def append() -> list[RefreshResult]:
        handle = tables.open_for_append(ANSWERS)
        same = tables.read_rows(handle, ["_operation", "_subject", "_body"], times)
        archived = {(row["_operation"], row["_subject"], row["_body"]) for row in same.to_pylist()}
        counters, counts = tables.read_counters(handle) or {}, dict[str, int]()
        new, done = [], []
        for answer in answers:
            series, origin = answer.asked.series, answer.asked.origin
            identity = (series.operation.type, series.subject, answer.body)
            is_new = identity not in archived
            total = counts.get(series.name, counters.get(series.name, 0)) + is_new
            if is_new:
                archived.add(identity)
                stored = {"_body": answer.body, "_headers": json.dumps(dict(answer.headers))}
                place = {"_operation": series.operation.type, "_subject": series.subject}
                new.append({**place, **stored, **origin.columns})
                counts[series.name] = total  # makes Delta refuse a second writer of the series
            moment = origin.fetched_ms
            done.append(RefreshResult(*identity[:2], int(is_new), total, moment, moment))
        if new:
            rows = pa.Table.from_pylist(new, schema=schemas.SCHEMAS[ANSWERS])
            tables.append_rows(handle, rows, counts=counts)
        return done

    names = ", ".join(dict.fromkeys(answer.asked.series.name for answer in answers[:3]))
    done = retry_append(names, append)
    pairs = zip(done, answers, strict=True)
    entries = [coverage.log_entry(result, answer.asked.origin) for result, answer in pairs]
    coverage.log_refreshes(tables, entries)
    return done
