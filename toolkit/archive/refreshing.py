"""Fetch what is missing, and append it with where the reading stands, so that a kill loses nothing.

A history is read in runs: from a moment on, or up to where a later run begins. A run goes on from
the time of its last row. That moment's rows come again and must be those that are archived, so
that every refresh proves that it joins on, whichever way the service reads cursors; only what
follows is appended. A commit holds the rows of some pages and the run's new length as Delta's
application transaction, and one of the whole series: of two processes at the same series the
second is refused, looks again, and goes on from where the first stands.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pandas as pd

from toolkit.archive.answers import append_answer, whole_answer
from toolkit.archive.layout import Origin, arrow_rows, table_of
from toolkit.archive.pulls import Refreshed, note
from toolkit.archive.runs import Overlap, Run, runs_of
from toolkit.archive.series import Series, complete_name, is_history, run_name, series_of
from toolkit.archive.tables import Beaten, Tables, of_series
from toolkit.client import Progress, Session, current_session
from toolkit.contract.answers import decode
from toolkit.contract.columns import table_columns
from toolkit.contract.shapes import rows as rows_of
from toolkit.errors import ArchiveError, ToolkitError
from toolkit.fetch.history import Remark, announce, of_answer, of_question
from toolkit.fetch.query import Question, ask, batches
from toolkit.fetch.serves import operation_of
from toolkit.times import to_ms

__all__ = ["ROWS_PER_COMMIT", "refresh"]

ROWS_PER_COMMIT: Final = 50_000
"""A commit costs as much as a few pages, so that several share one."""

_TRIES: Final = 50


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
        question = ask(operation.type, session=session, **series.parameters, **asked)
        remarks = of_question(question, told=start is not None)
        return _told(done, question, remarks, [_archived(tables, series, done.total)])
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
        self.until = session.now_ms() if end is None else min(end, session.now_ms())
        self.rows_per_commit = rows_per_commit
        self.origin = Origin(session.label, session.simulated, session.now_ms())
        self.new = 0

    def go(self, start: int | None) -> Refreshed:
        """Read on every run that is not complete."""
        handle = self.tables.handle_to_write(table_of(self.series.operation))
        runs = runs_of(self.tables, handle, self.series, start)
        before = self.new
        with Progress(self.session, f"archive {self.series.operation.type}") as progress:
            for run in runs:
                if run.bound is None or not self._is_complete(handle, run):
                    self._read_on(handle, run, progress)
        total = sum(run.rows for run in runs) + self.new - before
        done = Refreshed(
            self.series.operation.type,
            self.series.subject,
            self.new,
            total,
            runs[0].start,
            self.until,
        )
        note(self.tables, done, self.origin)
        return done

    def _is_complete(self, handle: Any, run: Run) -> bool:
        name = complete_name(self.series, run.start)
        return handle.transaction_version(name) is not None

    def _read_on(self, handle: Any, run: Run, progress: Progress) -> None:
        count, waiting = run.rows, Overlap(self.series, run)
        held: list[bytes] = []
        question = self._question(run)
        try:
            for batch in batches(question) if question else ():
                texts = list(waiting.new(batch.texts()))
                progress.add(len(texts))
                held += texts
                if len(held) >= self.rows_per_commit:
                    count = self._commit(handle, run, held, count)
                    held = []
        except Beaten:
            raise
        except ToolkitError:
            waiting.forgive()
            self._commit(handle, run, held, count)  # what was read before is certain
            raise
        waiting.check()
        finished = run.bound is not None and run.bound <= self.until
        self._commit(handle, run, held, count, finished=finished)

    def _commit(
        self, handle: Any, run: Run, texts: list[bytes], count: int, *, finished: bool = False
    ) -> int:
        if not texts and not finished:
            return count
        rows = arrow_rows(self.series, texts, run.start, count, self.origin)
        count += len(texts)
        counts = {self.series.name: count, run_name(self.series, run.start): count}
        if finished:
            counts[complete_name(self.series, run.start)] = run.bound or 0
        self.tables.append(handle, rows, counts=counts, notes={"series": self.series.name})
        self.new += len(texts)
        return count

    def _question(self, run: Run) -> Question | None:
        """Ask from the run's last moment on; None where nothing can be missing."""
        start = run.start if run.last is None else run.last
        bound = self.until if run.bound is None else min(run.bound, self.until)
        if start > bound:
            return None
        parameters = dict(self.series.parameters) | {"start": start, "end": bound}
        if self.page_size is not None:
            parameters["page_size"] = self.page_size
        return ask(self.series.operation.type, session=self.session, **parameters)


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
    append_answer(tables, series, body, headers, origin)
    at = origin.fetched_ms
    done = Refreshed(series.operation.type, series.subject, 1, 1, at, at)
    if series.operation.binary:
        return done
    question = ask(series.operation.type, session=session, **series.parameters)
    answer = decode(series.operation, 200, headers, body, parameters=series.parameters)
    tables_of_it = rows_of(series.operation, answer, series.parameters)
    frames = [pd.DataFrame(index=range(len(rows))) for rows in tables_of_it]
    return _told(done, question, of_question(question), frames)


def _archived(tables: Tables, series: Series, total: int) -> pd.DataFrame:
    """Give the archived rows of a series, as far as it matters for what is told of them."""
    handle = tables.handle(table_of(series.operation))
    if "user" not in {one.name for one in table_columns(series.operation.tables[0])}:
        return pd.DataFrame(index=range(total))
    where = of_series(series.operation.type, series.subject)
    users: pd.DataFrame = tables.read(handle, ["user"], where).to_pandas()
    return users


def _told(
    done: Refreshed, question: Question, remarks: Sequence[Remark], frames: Sequence[pd.DataFrame]
) -> Refreshed:
    """Say, as fetching does, what the service does not have or may not have."""
    said = announce(question.operation, [*remarks, *of_answer(question, frames)])
    return replace(done, history=said)
