"""Refresh: pull what is missing of a history and append it, so that a kill loses nothing.

The steps of `refresh_history` are: the request, the runs that are not complete, the pages of each
run, the check that they follow the archived rows, the commit, and the entry in the log.

A run is continued from the time of its last row. The rows of that time are pulled again and must
equal the archived ones. Each refresh thus proves that the new rows follow the archived ones, for
inclusive and for exclusive cursors of the service. If no end is requested, the range begins where
the archived rows before it end, so that no gap is left.

A commit contains the rows of several pages, and two Delta transactions: one with the name of the
run and its new length, and one with the name of the series. If two processes refresh the same
series, Delta refuses the second commit. The second process then reads the archive again and
continues from the new state.
"""

import contextlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from toolkit.archive.checks import CHECKED_COLUMNS
from toolkit.archive.errors import CommitConflict
from toolkit.archive.pulls import (
    Refreshed,
    Run,
    RunOverlap,
    contradictory_ranges,
    count_logged_rows,
    log_ranges,
    log_refresh,
    read_runs,
    read_series_log,
    select_runs,
)
from toolkit.archive.schemas import (
    ANSWERS,
    PULLS,
    SCHEMAS,
    RowOrigin,
    Series,
    arrow_rows,
    is_history,
    make_series,
)
from toolkit.archive.storage import ArchiveTables
from toolkit.client import Session
from toolkit.completeness.certificate import Remark
from toolkit.completeness.covered_ranges import TimeRange, enclosing_range
from toolkit.completeness.row_checks import BreakLog, HistoryChecks
from toolkit.contract.answers import answer_rows, decode
from toolkit.contract.columns import table_columns
from toolkit.contract.requests import request_body
from toolkit.errors import ArchiveError, ToolkitError
from toolkit.fetch.pull import (
    IncompleteWarning,
    Request,
    announce,
    answer_remarks,
    prepare_request,
    read_pages,
    request_remarks,
    warn_caller,
)
from toolkit.fetch.registry import operation_of
from toolkit.times import HOUR, to_iso, to_ms

__all__ = [
    "MAX_TRIES",
    "ROWS_PER_COMMIT",
    "RefreshRequest",
    "append_answer",
    "prepare_refresh",
    "refresh_history",
    "refresh_state",
]

ROWS_PER_COMMIT: Final = 50_000
"""A commit costs as much time as a few pages, so several pages share one."""

_ROWS_BEFORE: Final = 100_000
"""The archived rows against which the rows of a refresh are checked."""

MAX_TRIES: Final = 50
"""How often an append is tried again after another process has committed first."""

_ANSWER_HEADERS: Final = (
    "content-type",
    "content-encoding",
    "x-payload-format",
    "x-compression",
)


@dataclass(frozen=True, slots=True)
class RefreshRequest:
    """What is to be refreshed.

    Attributes
    ----------
    series : Series
        The operation and its subject.
    times : mapping
        ``start`` and ``end`` as the caller passed them; None if not passed.
    start_ms, end_ms : int or None
        The same in Unix milliseconds.
    page_size : int or None
        Rows per page; None for the default.
    """

    series: Series
    times: Mapping[str, Any]
    start_ms: int | None
    end_ms: int | None
    page_size: int | None


def prepare_refresh(
    fetch: Callable[..., Any], arguments: Sequence[Any], named: Mapping[str, Any], now_ms: int
) -> RefreshRequest:
    """Return the request that a call of a fetch function stands for. Nothing is sent.

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
    if not is_history(operation):
        values |= {name: time for name, time in times_ms.items() if time is not None}
    series = make_series(operation, (), values)
    return RefreshRequest(series, times, times_ms["start"], times_ms["end"], page_size)


def refresh_history(
    tables: ArchiveTables, request: RefreshRequest, session: Session, rows_per_commit: int
) -> Refreshed:
    """Pull what is missing of a history and append it.

    Raises
    ------
    ArchiveError
        If the archive cannot be written, or other processes keep appending to the same history.
    HistoryMismatch
        If the service's history differs from the archived one.
    """
    series, operation = request.series, request.series.operation
    pull = _HistoryPull(tables, request, session, rows_per_commit)
    for _ in range(MAX_TRIES):
        with contextlib.suppress(CommitConflict):
            done = pull.refresh_once()
            break
    else:
        raise ArchiveError(
            f"{series.name}: other processes wrote to the archive {MAX_TRIES} times in between; "
            "refresh again when they are done"
        )
    has_start = request.start_ms is not None
    times = request.times if has_start else {**request.times, "start": done.start_ms}
    whole = prepare_request(operation.type, session=session, **series.parameters, **times)
    remarks = request_remarks(whole, has_start=has_start)
    archived = _archived_rows(tables, series, done.total)
    archived.attrs["toolkit"] = pull.breaks.facts()
    done = _announce_remarks(done, whole, remarks, [archived])
    # Gaps of a source that has not all rows, such as recordings, are noted and no fault.
    if (reason := pull.breaks.reason) and not session.source.history:
        warn_caller(f"incomplete: {series.name}: {reason}", IncompleteWarning)
        done = replace(done, history="; ".join(filter(None, (done.history, reason))))
    return done


def _check_clock(series: Series, now_ms: int, archived: Sequence[int]) -> None:
    """Raise an error if the present is long before the last archived time of a series.

    Raises
    ------
    ArchiveError
        With both times, and what to do.
    """
    last = max(archived, default=now_ms)
    if last - now_ms > HOUR:
        raise ArchiveError(
            f"{series.name}: the present is {to_iso(now_ms)}, but the archive goes up to "
            f"{to_iso(last)}. Set the clock of this machine right, or use the session with which "
            "the archive was refreshed"
        )


def _first_missing_ms(
    request: RefreshRequest, runs: Sequence[Run], covered: Sequence[TimeRange]
) -> int:
    """Return the time from which on rows may be missing."""
    start = request.start_ms
    if start is None:  # from the first archived row, else from the first day of the service
        since = request.series.operation.since
        firsts = [run.start for run in runs] + [first for first, _ in covered]
        return min(firsts, default=to_ms(since) if since else 0)
    if request.end_ms is not None:
        return start
    # Without an end, the gap between the archived rows and the start is pulled, too.
    ranges = [(run.start, run.start - 1) for run in runs] + [*covered]
    return min(start, max((last + 1 for first, last in ranges if first <= start), default=start))


class _RowsDisagree(CommitConflict):
    """Rows contradict each other: they are pulled once more before they are archived."""


class _HistoryPull:
    """One refresh of a history: it pulls runs and counts the rows that are new.

    Attributes
    ----------
    origin : RowOrigin
        Where the rows come from.
    until_ms : int
        The time up to which the history is complete afterwards.
    new_rows : int
        How many rows were appended so far.
    breaks : BreakLog
        Where the rows that were appended contradict each other.
    """

    def __init__(
        self,
        tables: ArchiveTables,
        request: RefreshRequest,
        session: Session,
        rows_per_commit: int,
    ) -> None:
        now = session.now_ms()
        self.origin = RowOrigin(session.label, session.simulated, now)
        self.until_ms = now if request.end_ms is None else min(request.end_ms, now)
        self.new_rows = 0
        self.breaks = BreakLog()
        self._checks: HistoryChecks | None = None
        self._noted: Sequence[TimeRange] = ()
        self._unlogged = 0
        self._is_second_pull = False
        self._tables = tables
        self._request = request
        self._series = request.series
        self._session = session
        self._rows_per_commit = rows_per_commit

    def refresh_once(self) -> Refreshed:
        """Pull the runs that are not complete, and log the range.

        Raises
        ------
        CommitConflict
            If another process appended to the same history meanwhile.
        """
        tables, series = self._tables, self._request.series
        handle = tables.open_for_append(series.table)
        runs, new_before = read_runs(tables, handle, series), self.new_rows
        log = tables.open_for_append(PULLS)
        entries = read_series_log(tables, series, log)
        covered = log_ranges(entries)
        if self._request.end_ms is None:
            _check_clock(series, self.origin.fetched_ms, [until for _, until in covered])
        start = _first_missing_ms(self._request, runs, covered)
        with self._session.show_progress(f"archive {series.operation.type}") as count_rows:
            self._noted = contradictory_ranges(entries)
            self._unlogged = sum(run.rows for run in runs) - count_logged_rows(entries)
            for run in select_runs(handle, series, runs, covered, start):
                self._checks = None
                if self._unlogged > 0:  # a refresh was killed before it noted its breaks
                    self._checks = self._begin_checks(handle, run)
                self.pull_run(handle, run, count_rows)
        total = sum(run.rows for run in runs) + self.new_rows - new_before
        done = Refreshed(
            series.operation.type, series.subject, self.new_rows, total, start, self.until_ms
        )
        log_refresh(tables, done, self.origin, log, self.breaks)
        return done

    def _begin_checks(self, handle: Any, run: Run) -> HistoryChecks:
        """Return the checks of a run, which have seen its last archived rows."""
        series = self._series
        checks = HistoryChecks(series.operation, series.parameters)
        if run.rows:
            first = run.rows - max(_ROWS_BEFORE, self._unlogged)
            is_late = (ds.field("_part") == run.start) & (ds.field("_row") >= first)
            names = [*dict.fromkeys([*series.keys, *CHECKED_COLUMNS.get(series.table, ())]), "_row"]
            rows = self._tables.read_rows(handle, names, is_late, series).sort_by("_row")
            breaks = checks.add_page(_checked_columns(rows))
            noted = [enclosing_range(self._noted, found.time, found.time) for found in breaks]
            pairs = zip(breaks, noted, strict=True)
            self.breaks.add([found for found, range in pairs if found.is_certain and not range])
        return checks

    def pull_run(self, handle: Any, run: Run, count_rows: Callable[[int], object]) -> None:
        """Pull the pages of a run from its last row on, check them, and append the new rows."""
        request = self._run_request(run)
        if request is None:
            return
        overlap, pending = RunOverlap(self._series, run), _PendingRows(handle, run)
        try:
            for page in read_pages(request):
                page.completeness.check_complete()
                if page.completeness.covered is not None:
                    self.until_ms = min(self.until_ms, page.completeness.covered[1])
                texts = list(overlap.new_texts(page.texts()))
                pending.texts.extend(texts)
                count_rows(len(texts))
                if overlap.is_matched and len(pending.texts) >= self._rows_per_commit:
                    self._commit_rows(run, pending)
        except ArchiveError:
            raise
        except (ToolkitError, KeyboardInterrupt) as error:
            # The rows pulled so far follow the archived ones, so they are kept.
            if overlap.is_matched:
                with contextlib.suppress(_RowsDisagree):
                    self._commit_rows(run, pending)
            error.add_note(
                f"{self._series.name}: {self.new_rows} new rows are archived; refresh again to "
                "continue"
            )
            raise
        overlap.check_matched()
        is_complete = run.bound is not None and run.bound <= self.until_ms
        self._commit_rows(run, pending, is_complete=is_complete)

    def _run_request(self, run: Run) -> Request | None:
        """Return the request from the run's last row on, or None if nothing can be missing."""
        start = run.start if run.last is None else run.last
        end = self.until_ms if run.bound is None else min(run.bound, self.until_ms)
        if start > end:
            return None
        parameters = {**self._series.parameters, "start": start, "end": end}
        if self._request.page_size is not None:
            parameters["page_size"] = self._request.page_size
        return prepare_request(self._series.operation.type, session=self._session, **parameters)

    def _commit_rows(self, run: Run, pending: "_PendingRows", *, is_complete: bool = False) -> None:
        texts, first = pending.texts, pending.first
        if not texts and not is_complete:
            return
        rows = arrow_rows(self._series, texts, run.start, first, self.origin)
        self._check_rows(pending.handle, run, rows)
        count = first + len(texts)
        counts = {self._series.name: count, self._series.run_transaction(run.start): count}
        if is_complete:
            counts[self._series.completion_transaction(run.start)] = run.bound or 0
        notes = {"series": self._series.name}
        self._tables.append_rows(pending.handle, rows, counts=counts, notes=notes)
        self.new_rows += len(texts)

    def _check_rows(self, handle: Any, run: Run, rows: pa.Table) -> None:
        """Note where rows contradict each other or have a gap; the first time, ask again.

        If the service sends the same rows again, they are its own, and are archived.
        """
        self._checks = self._checks or self._begin_checks(handle, run)
        breaks = self._checks.add_page(_checked_columns(rows))
        if any(found.group != "unproved" for found in breaks) and not self._is_second_pull:
            self._is_second_pull = True
            raise _RowsDisagree
        self.breaks.add(breaks)


def _checked_columns(rows: pa.Table) -> dict[str, Any]:
    """Return the columns of the record of rows, without those of the archive."""
    return {name: rows[name] for name in rows.column_names if not name.startswith("_")}


class _PendingRows:
    """Rows of a run that were pulled and are not committed yet.

    An interrupt can come directly after a commit, before any line of ours notes it. Only the
    version of the handle shows that the commit was done: this run's commits alone change it.
    """

    def __init__(self, handle: Any, run: Run) -> None:
        self.handle = handle
        self._state: tuple[int, int, list[bytes]] = (handle.version(), run.rows, [])

    @property
    def texts(self) -> list[bytes]:
        """The pending rows. New rows can be appended to the list."""
        return self._current_state()[2]

    @property
    def first(self) -> int:
        """The position in the run of the first pending row."""
        return self._current_state()[1]

    def _current_state(self) -> tuple[int, int, list[bytes]]:
        version, first, texts = self._state
        if self.handle.version() != version:
            self._state = (self.handle.version(), first + len(texts), [])
        return self._state


def refresh_state(tables: ArchiveTables, request: RefreshRequest, session: Session) -> Refreshed:
    """Fetch and append the present answer of an operation that is not a history."""
    series, operation = request.series, request.series.operation
    origin = RowOrigin(session.label, session.simulated, session.now_ms())
    handle = tables.open_table(ANSWERS)
    if handle is not None:
        archived = tables.read_rows(handle, ["_fetched"], series=series)["_fetched"]
        _check_clock(series, origin.fetched_ms, archived.to_pylist())
    body, headers = _fetch_answer(series, session)
    done = append_answer(tables, series, body, headers, origin)
    if operation.binary:
        return done
    sent = prepare_request(operation.type, session=session, **series.parameters)
    answer = decode(operation, 200, headers, body, parameters=series.parameters)
    # Remarks depend on the number of rows only, so the frames need no columns.
    frames = [
        pd.DataFrame(index=range(len(rows)))
        for rows in answer_rows(operation, answer, series.parameters)
    ]
    return _announce_remarks(done, sent, request_remarks(sent), frames)


def _fetch_answer(series: Series, session: Session) -> tuple[bytes, dict[str, str]]:
    """Return the body of an answer and the headers that are needed to decode it.

    Pages are joined: their rows, unchanged, in one array.
    """
    operation = series.operation
    if operation.paging != "none":
        texts: list[bytes] = []
        request = prepare_request(operation.type, session=session, **series.parameters)
        for page in read_pages(request):
            page.completeness.check_complete()
            texts += page.texts()
        return b"[%b]" % b",".join(texts), {}
    answer = session.ask(operation, request_body(operation, series.parameters))
    answer.completeness.check_complete()
    headers = {name: answer.headers[name] for name in _ANSWER_HEADERS if name in answer.headers}
    return answer.content, headers


def append_answer(
    tables: ArchiveTables,
    series: Series,
    body: bytes,
    headers: Mapping[str, str],
    origin: RowOrigin,
) -> Refreshed:
    """Append an answer, unless it is archived already.

    Raises
    ------
    ArchiveError
        If it cannot be written.
    """
    row = {
        "_operation": series.operation.type,
        "_subject": series.subject,
        "_body": body,
        "_headers": json.dumps(dict(headers)),
        **origin.columns,
    }
    rows = pa.Table.from_pylist([row], schema=SCHEMAS[ANSWERS])
    is_same_time = ds.field("_fetched") == origin.fetched_ms
    for _ in range(MAX_TRIES):
        handle = tables.open_for_append(ANSWERS)
        same = tables.read_rows(handle, ["_body"], is_same_time, series)
        is_new = body not in same["_body"].to_pylist()
        total = (handle.transaction_version(series.name) or 0) + is_new
        moment = origin.fetched_ms
        done = Refreshed(series.operation.type, series.subject, int(is_new), total, moment, moment)
        with contextlib.suppress(CommitConflict):
            if is_new:
                # The transaction makes Delta refuse a second writer of the same series.
                tables.append_rows(handle, rows, counts={series.name: total})
                log_refresh(tables, done, origin)
            return done
    raise ArchiveError(f"{series.name}: other processes keep writing to the archive; try again")


def _archived_rows(tables: ArchiveTables, series: Series, total: int) -> pd.DataFrame:
    """Return an empty frame with as many rows as the most active account has in the archive.

    Remarks about very active accounts depend on the rows of one account. A history of one account
    has `total` rows; a builder's history has the rows of many accounts.
    """
    if "user" not in {column.name for column in table_columns(series.operation.tables[0])}:
        return pd.DataFrame(index=range(total))
    users = tables.read_rows(tables.open_table(series.table), ["user"], series=series)
    counts = users.group_by("user").aggregate([([], "count_all")])
    return pd.DataFrame(index=range(pc.max(counts["count_all"]).as_py() or 0))


def _announce_remarks(
    done: Refreshed, request: Request, remarks: Sequence[Remark], frames: Sequence[pd.DataFrame]
) -> Refreshed:
    """Warn as fetching does, and return the result with the remarks."""
    text = announce(request.operation, [*remarks, *answer_remarks(request, frames)])
    return replace(done, history=text)
