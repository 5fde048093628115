"""Fetch what is missing, and append it with where the reading stands, so that a kill loses nothing.

A history is read in runs: from a moment on, or up to where a later run begins. A range that a run
reaches goes on from the time of its last row; else it is a new run. A range without an end begins
where what is archived before it ends, so that no gap comes about. That moment's rows come again
and must be those that are archived, so that every refresh proves that it joins on, whichever way
the service reads cursors; only what follows is appended. A commit holds the rows of some pages and
the run's new length as Delta's application transaction, and one of the whole series: of two
processes at the same series the second is refused, looks again, and goes on from where the first
stands.
"""

import contextlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from toolkit.archive.coverage import Refreshed, covered, note
from toolkit.archive.errors import Beaten
from toolkit.archive.runs import Overlap, Run, is_complete, runs_from, runs_of
from toolkit.archive.schemas import ANSWERS, SCHEMAS, Origin, arrow_rows, table_of
from toolkit.archive.series import Series, complete_name, is_history, run_name, series_of
from toolkit.archive.storage import Tables, of_series
from toolkit.client import Progress, Session, current_session
from toolkit.completeness.remarks import Remark
from toolkit.contract.answers import decode
from toolkit.contract.columns import table_columns
from toolkit.contract.rows import answer_rows as rows_of
from toolkit.errors import ArchiveError, ToolkitError
from toolkit.fetch.notices import announce, answer_remarks, request_remarks
from toolkit.fetch.pages import read_pages
from toolkit.fetch.registry import operation_of
from toolkit.fetch.request import Request, prepare_request
from toolkit.times import to_ms

__all__ = [
    "ROWS_PER_COMMIT",
    "append_answer",
    "latest_answer",
    "refresh",
    "series_asked",
    "whole_answer",
]

ROWS_PER_COMMIT: Final = 50_000
"""A commit costs as much as a few pages, so that several share one."""

_TRIES: Final = 50
_RANGE: Final = ("start", "end", "page_size")


def refresh(
    tables: Tables,
    fetch: Callable[..., Any],
    given: Sequence[Any],
    named: Mapping[str, Any],
    *,
    session: Session | None = None,
    rows_per_commit: int = ROWS_PER_COMMIT,
) -> Refreshed:
    """Bring a series up to date; see `Archive.refresh`."""
    operation = operation_of(fetch)
    session = current_session(session)
    arguments = _arguments(fetch, given, named)
    times = {name: arguments.pop(name, None) for name in ("start", "end")}
    page_size = arguments.pop("page_size", None)
    if not is_history(operation):
        now = session.now_ms()
        arguments |= {k: to_ms(v, now_ms=now) for k, v in times.items() if v is not None}
        return _refresh_state(tables, series_of(operation, (), arguments), session)
    series, now = series_of(operation, (), arguments), session.now_ms()
    end = None if times["end"] is None else to_ms(times["end"], now_ms=now)
    start = None if times["start"] is None else to_ms(times["start"], now_ms=now)
    pull = _Pull(tables, series, session, page_size, end, rows_per_commit)
    for _ in range(_TRIES):
        try:
            done = pull.go(start)
        except Beaten:
            continue
        asked = times if start is not None else times | {"start": done.start_ms}
        request = prepare_request(operation.type, session=session, **series.parameters, **asked)
        remarks = request_remarks(request, has_start=start is not None)
        return _told(done, request, remarks, [_archived(tables, series, done.total)])
    raise ArchiveError(
        f"{series.name}: other processes wrote to the archive {_TRIES} times in between; "
        "refresh again when they are done"
    )


class _Pull:
    """Refreshes one history."""

    def __init__(
        self,
        tables: Tables,
        series: Series,
        session: Session,
        page_size: int | None,
        end: int | None,
        rows_per_commit: int,
    ) -> None:
        self.tables = tables
        self.series = series
        self.session = session
        self.page_size = page_size
        self.bounded = end is not None
        self.until = session.now_ms() if end is None else min(end, session.now_ms())
        self.rows_per_commit = rows_per_commit
        self.origin = Origin(session.label, session.simulated, session.now_ms())
        self.new = 0

    def go(self, start: int | None) -> Refreshed:
        """Read what is missing of the range, and of what lies before one without an end."""
        handle = self.tables.handle_to_write(table_of(self.series.operation))
        runs, before = runs_of(self.tables, handle, self.series), self.new
        if start is None:
            start = _earliest(self.tables, self.series, runs)
        elif not self.bounded:
            start = _reached(self.tables, self.series, runs, start)
        with Progress(self.session, f"archive {self.series.operation.type}") as progress:
            for run in runs_from(self.tables, handle, self.series, runs, start):
                if not is_complete(handle, self.series, run):
                    self._read_on(handle, run, progress)
        total = sum(run.rows for run in runs) + self.new - before
        type, subject = self.series.operation.type, self.series.subject
        done = Refreshed(type, subject, self.new, total, start, self.until)
        note(self.tables, done, self.origin)
        return done

    def _read_on(self, handle: Any, run: Run, progress: Progress) -> None:
        request = self._request(run)
        if request is None:
            return
        overlap, held = Overlap(self.series, run), _Held(handle, run)
        try:
            for page in read_pages(request):
                page.completeness.check_complete()
                if page.completeness.covered is not None:
                    self.until = min(self.until, page.completeness.covered[1])
                texts = list(overlap.new(page.texts()))
                held.texts.extend(texts)
                progress.add(len(texts))
                if overlap.is_whole and len(held.texts) >= self.rows_per_commit:
                    self._commit(run, held)
        except ArchiveError:
            raise
        except (ToolkitError, KeyboardInterrupt) as error:
            if overlap.is_whole:  # then what was read before joins on
                self._commit(run, held)
            error.add_note(
                f"{self.series.name}: {self.new} new rows are archived; refresh again to go on"
            )
            raise
        overlap.check()
        self._commit(run, held, finished=run.bound is not None and run.bound <= self.until)

    def _commit(self, run: Run, held: "_Held", *, finished: bool = False) -> None:
        texts, first = held.texts, held.first
        if not texts and not finished:
            return
        rows = arrow_rows(self.series, texts, run.start, first, self.origin)
        count = first + len(texts)
        counts = {self.series.name: count, run_name(self.series, run.start): count}
        if finished:
            counts[complete_name(self.series, run.start)] = run.bound or 0
        self.tables.append(held.handle, rows, counts=counts, notes={"series": self.series.name})
        self.new += len(texts)

    def _request(self, run: Run) -> Request | None:
        """Ask from the run's last moment on; None where nothing can be missing."""
        start = run.start if run.last is None else run.last
        bound = self.until if run.bound is None else min(run.bound, self.until)
        if start > bound:
            return None
        parameters = dict(self.series.parameters) | {"start": start, "end": bound}
        if self.page_size is not None:
            parameters["page_size"] = self.page_size
        return prepare_request(self.series.operation.type, session=self.session, **parameters)


class _Held:
    """Rows of a run that were read, and are not archived yet.

    An interrupt may come right after a commit, before any line that would tell of it. What tells
    is the handle, which the run's own commits alone move on.
    """

    def __init__(self, handle: Any, run: Run) -> None:
        self.handle = handle
        self._since: tuple[int, int, list[bytes]] = (handle.version(), run.rows, [])

    @property
    def texts(self) -> list[bytes]:
        """The rows; they can be added to."""
        return self._now()[2]

    @property
    def first(self) -> int:
        """The place in the run of the first of them."""
        return self._now()[1]

    def _now(self) -> tuple[int, int, list[bytes]]:
        version, first, texts = self._since
        if self.handle.version() != version:
            self._since = (self.handle.version(), first + len(texts), [])
        return self._since


def _earliest(tables: Tables, series: Series, runs: Sequence[Run]) -> int:
    """Give where what is archived of a history begins; of none, where the service's does."""
    since = series.operation.since
    firsts = [run.start for run in runs] + [first for first, _ in covered(tables, series)]
    return min(firsts, default=to_ms(since) if since else 0)


def _reached(tables: Tables, series: Series, runs: Sequence[Run], start: int) -> int:
    """Give where to begin so that nothing is missing between what is archived and a start."""
    ranges = [(run.start, run.start - 1) for run in runs] + covered(tables, series)
    return min(start, max((last + 1 for first, last in ranges if first <= start), default=start))


def series_asked(
    fetch: Callable[..., Any], given: Sequence[Any], named: Mapping[str, Any]
) -> Series:
    """Name the series that a refresh with these arguments is of, and ask nobody.

    Raises
    ------
    BadRequest
        If the service would refuse to answer.
    ArchiveError
        If it is asked for less than there is.
    TypeError
        If the fetch function does not take these arguments.
    """
    arguments = _arguments(fetch, given, named)
    kept = {name: value for name, value in arguments.items() if name not in _RANGE}
    return series_of(operation_of(fetch), (), kept)


def _arguments(
    fetch: Callable[..., Any], given: Sequence[Any], named: Mapping[str, Any]
) -> dict[str, Any]:
    """Give the arguments of a call by name, without what says how to make frames."""
    bound = inspect.signature(fetch).bind_partial(*given, **named)
    arguments = {k: v for k, v in bound.arguments.items() if v is not None}
    for name in ("numbers", "on_incomplete", "session", "cursor"):
        if name in arguments:
            raise ArchiveError(f"leave out {name}: an archive keeps every row as it came")
    return arguments


def _refresh_state(tables: Tables, series: Series, session: Session) -> Refreshed:
    """Keep the present answer of an operation that shows a state."""
    origin = Origin(session.label, session.simulated, session.now_ms())
    body, headers = whole_answer(series, session)
    new, at = append_answer(tables, series, body, headers, origin), origin.fetched_ms
    done = Refreshed(series.operation.type, series.subject, new, 1, at, at)
    if series.operation.binary:
        return done
    request = prepare_request(series.operation.type, session=session, **series.parameters)
    answer = decode(series.operation, 200, headers, body, parameters=series.parameters)
    tables_of_it = rows_of(series.operation, answer, series.parameters)
    frames = [pd.DataFrame(index=range(len(rows))) for rows in tables_of_it]
    return _told(done, request, request_remarks(request), frames)


def _archived(tables: Tables, series: Series, total: int) -> pd.DataFrame:
    """Give as many rows as there are of one account: that is what matters for what is told."""
    if "user" not in {one.name for one in table_columns(series.operation.tables[0])}:
        return pd.DataFrame(index=range(total))
    handle = tables.handle(table_of(series.operation))
    where = of_series(series.operation.type, series.subject)
    users = tables.read(handle, ["user"], where).group_by("user").aggregate([([], "count_all")])
    return pd.DataFrame(index=range(pc.max(users["count_all"]).as_py() or 0))


def _told(
    done: Refreshed, request: Request, remarks: Sequence[Remark], frames: Sequence[pd.DataFrame]
) -> Refreshed:
    """Say, as fetching does, what the service does not have or may not have."""
    said = announce(request.operation, [*remarks, *answer_remarks(request, frames)])
    return replace(done, history=said)


_HEADERS: Final = ("content-type", "content-encoding", "x-payload-format", "x-compression")
_TRIES: Final = 50


def whole_answer(series: Series, session: Session) -> tuple[bytes, dict[str, str]]:
    """Ask, and give the body and the headers that tell how to read it.

    An answer that comes in pages is joined: its rows as they came, in one array.
    """
    operation = series.operation
    if operation.paging != "none":
        request = prepare_request(operation.type, session=session, **series.parameters)
        texts: list[bytes] = []
        for page in read_pages(request):
            page.completeness.check_complete()
            texts += page.texts()
        return b"[%b]" % b",".join(texts), {}
    answer = session.ask(operation, series.parameters)
    answer.completeness.check_complete()
    headers = {name: answer.headers[name] for name in _HEADERS if name in answer.headers}
    return answer.content, headers


def append_answer(
    tables: Tables, series: Series, body: bytes, headers: Mapping[str, str], origin: Origin
) -> int:
    """Keep one answer, and note that it is kept; once. Give how many are new: 1 or 0.

    Raises
    ------
    ArchiveError
        If it cannot be written.
    """
    for _ in range(_TRIES):
        with contextlib.suppress(Beaten):
            return _append_once(tables, series, body, headers, origin)
    raise ArchiveError(f"{series.name}: other processes keep writing to the archive; try again")


def _append_once(
    tables: Tables, series: Series, body: bytes, headers: Mapping[str, str], origin: Origin
) -> int:
    """Append an answer that is not there; of two writers at once the second is refused."""
    handle = tables.handle_to_write(ANSWERS)
    at = origin.fetched_ms
    where = of_series(series.operation.type, series.subject) & (ds.field("_fetched") == at)
    if body in tables.read(handle, ["_body"], where)["_body"].to_pylist():
        return 0
    row = {
        "_operation": series.operation.type,
        "_subject": series.subject,
        "_body": body,
        "_headers": json.dumps(dict(headers)),
        "_source": origin.source,
        "_simulated": origin.simulated,
        "_fetched": origin.fetched_ms,
    }
    count = (handle.transaction_version(series.name) or 0) + 1
    rows = pa.Table.from_pylist([row], schema=SCHEMAS[ANSWERS])
    tables.append(handle, rows, counts={series.name: count})
    note(tables, Refreshed(series.operation.type, series.subject, 1, 1, at, at), origin)
    return 1


def latest_answer(tables: Tables, series: Series) -> dict[str, Any]:
    """Give the last archived answer to a question.

    Raises
    ------
    ArchiveError
        If there is none.
    """
    handle = tables.handle(ANSWERS)
    found = []
    if handle is not None:
        where = of_series(series.operation.type, series.subject)
        found = tables.read(handle, where=where).sort_by("_fetched").to_pylist()
    if not found:
        raise ArchiveError(f"{tables.location} has no answer to {series.name}: refresh it first")
    answer: dict[str, Any] = found[-1]
    return answer | {"_headers": json.loads(answer["_headers"])}
