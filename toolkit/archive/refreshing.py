"""Fetch what is missing, and append it with where the reading stands, so that a kill loses nothing.

A history is read in runs: from a moment on, or up to where a later run begins. A run goes on from
the time of its last row. That moment's rows come again and must be those that are archived, so
that every refresh proves that it joins on, whichever way the service reads cursors; only what
follows is appended. A commit holds the rows of some pages and the run's new length as Delta's
application transaction: of two processes at the same run the second is refused, looks again, and
goes on from where the first stands.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from toolkit.archive.layout import (
    ANSWERS,
    PULLS,
    SCHEMAS,
    Origin,
    Series,
    arrow_rows,
    complete_name,
    is_history,
    run_name,
    series_of,
    table_of,
    time_column,
)
from toolkit.archive.tables import Beaten, Tables, of_series
from toolkit.client import Progress, Session, current_session
from toolkit.contract.columns import table_columns
from toolkit.errors import ArchiveError, ToolkitError
from toolkit.fetch.query import Question, ask, batches
from toolkit.fetch.serves import operation_of
from toolkit.times import to_ms

__all__ = ["ROWS_PER_COMMIT", "Refreshed", "refresh"]

ROWS_PER_COMMIT: Final = 50_000
"""A commit costs as much as a few pages, so that several share one."""

_TRIES: Final = 50
_NEVER: Final = 2**62


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a refresh did.

    Attributes
    ----------
    operation, subject : str
        What was refreshed.
    rows : int
        Rows that were new; for a state, the one answer.
    total : int
        Rows that there are now.
    start_ms, until_ms : int
        The range that is complete.
    """

    operation: str
    subject: str
    rows: int
    total: int
    start_ms: int
    until_ms: int


@dataclass(frozen=True, slots=True)
class _Run:
    """A run of pages: from `start` up to `bound`, `rows` of it archived."""

    start: int
    bound: int | None
    rows: int = 0
    last: int | None = None
    again: tuple[bytes, ...] = ()


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
            return pull.go(start)
        except Beaten:
            continue
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
        runs = _runs(self.tables, handle, self.series, start)
        before = self.new
        with Progress(self.session, f"archive {self.series.operation.type}") as progress:
            for run in runs:
                if (
                    run.bound is None
                    or handle.transaction_version(complete_name(self.series, run.start)) is None
                ):
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
        _log(self.tables, done, self.origin)
        return done

    def _read_on(self, handle: Any, run: _Run, progress: Progress) -> None:
        count, waiting = run.rows, _Overlap(self.series, run)
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
        self, handle: Any, run: _Run, texts: list[bytes], count: int, *, finished: bool = False
    ) -> int:
        if not texts and not finished:
            return count
        rows = arrow_rows(self.series, texts, run.start, count, self.origin)
        count += len(texts)
        counts = {run_name(self.series, run.start): count}
        if finished:
            counts[complete_name(self.series, run.start)] = run.bound or 0
        self.tables.append(handle, rows, counts=counts, notes={"series": self.series.name})
        self.new += len(texts)
        return count

    def _question(self, run: _Run) -> Question | None:
        """Ask from the run's last moment on; None where nothing can be missing."""
        start = run.start if run.last is None else run.last
        bound = self.until if run.bound is None else min(run.bound, self.until)
        if start > bound:
            return None
        parameters = dict(self.series.parameters) | {"start": start, "end": bound}
        if self.page_size is not None:
            parameters["page_size"] = self.page_size
        return ask(self.series.operation.type, session=self.session, **parameters)


def append_known(
    tables: Tables, series: Series, texts: Sequence[bytes], start: int | None, origin: Origin
) -> Refreshed:
    """Append rows that are at hand: a whole history from `start` to the last of them.

    Raises
    ------
    ArchiveError
        If they do not join on to what is archived, or are not in order.
    """
    time = wire_time(series)
    times = [msgspec.json.decode(text)[time] for text in texts]
    if times != sorted(times):
        raise ArchiveError(f"{series.name}: the rows do not ascend in time")
    first = min(times[:1] or [0]) if start is None else start
    for _ in range(_TRIES):
        handle = tables.handle_to_write(table_of(series.operation))
        runs = _runs(tables, handle, series, None)
        run = runs[-1] if runs[-1].rows else _Run(first, None)
        if run.last is not None and first > run.last:
            raise ArchiveError(
                f"{series.name}: the rows begin after what is archived, with a gap between: "
                "refresh instead"
            )
        later = [
            text
            for text, at in zip(texts, times, strict=True)
            if run.last is None or at >= run.last
        ]
        overlap = _Overlap(series, run)
        new = list(overlap.new(later))
        overlap.check()
        rows = arrow_rows(series, new, run.start, run.rows, origin)
        counts = {run_name(series, run.start): run.rows + len(new)}
        try:
            tables.append(handle, rows, counts=counts, notes={"series": series.name})
        except Beaten:
            continue
        until = times[-1] if times else first
        type = series.operation.type
        total = run.rows + len(new)
        done = Refreshed(type, series.subject, len(new), total, run.start, until)
        _log(tables, done, origin)
        return done
    raise ArchiveError(f"{series.name}: other processes keep writing to the archive; try again")


def _log(tables: Tables, done: Refreshed, origin: Origin) -> None:
    """Note what range is complete. It follows the rows: a kill in between claims too little."""
    row = {
        "_operation": done.operation,
        "_subject": done.subject,
        "start": done.start_ms,
        "until": done.until_ms,
        "rows": done.rows,
        "_source": origin.source,
        "_simulated": origin.simulated,
        "_fetched": origin.fetched_ms,
    }
    handle = tables.handle_to_write(PULLS)
    tables.append(handle, pa.Table.from_pylist([row], schema=SCHEMAS[PULLS]))


def wire_time(series: Series) -> str:
    """Give the field of the wire that holds the time of a history's rows."""
    named = time_column(series.operation)
    table = series.operation.tables[0]
    return next(one.wire for one in table_columns(table) if one.name == named)


class _Overlap:
    """The archived rows of a run's last moment, which must come again before any other."""

    def __init__(self, series: Series, run: _Run) -> None:
        self._series = series
        self._again = [msgspec.json.decode(text) for text in run.again]
        self._at = run.last
        self._time = wire_time(series)

    def new(self, texts: Sequence[bytes]) -> Iterator[bytes]:
        """Give the rows that are not archived."""
        for text in texts:
            if not self._again:
                yield text
                continue
            came = msgspec.json.decode(text)
            if _agree(self._again[0], came):
                del self._again[0]
                continue
            if came[self._time] != self._at:
                self.check()
            yield text

    def forgive(self) -> None:
        """Expect nothing more: the reading was broken off."""
        self._again.clear()

    def check(self) -> None:
        """Refuse to go on where archived rows did not come again.

        Raises
        ------
        ArchiveError
        """
        if self._again:
            raise ArchiveError(
                f"{self._series.name}: {len(self._again)} archived rows of time {self._at} did not "
                "come again, so the service's history is another than before. Nothing was "
                "appended; look at both with tk.raw and Archive.frame, or begin a new archive"
            )


def _agree(archived: Any, came: Any) -> bool:
    """Whether two rows are the same in every field that both have: either may lack new ones."""
    if isinstance(archived, dict) and isinstance(came, dict):
        return all(_agree(archived[k], came[k]) for k in archived.keys() & came.keys())
    return bool(archived == came) or _same_number(archived, came)


def _same_number(archived: Any, came: Any) -> bool:
    """Whether two texts write one number: those of ingested frames lack zeros."""
    if not isinstance(archived, str) or not isinstance(came, str):
        return False
    try:
        return Decimal(archived) == Decimal(came)
    except InvalidOperation:
        return False


def _runs(tables: Tables, handle: Any, series: Series, start: int | None) -> list[_Run]:
    """Give the runs of a series, by start, with a new one where the range begins before them."""
    time = time_column(series.operation)
    held = tables.read(
        handle, ["_part", "_row", time], of_series(series.operation.type, series.subject)
    )
    found = held.group_by("_part").aggregate([("_row", "count"), (time, "max")]).to_pylist()
    starts = sorted({one["_part"] for one in found})
    if start is None:
        start = starts[0] if starts else _earliest(series)
    if not starts or start < starts[0]:
        starts.insert(0, start)
    bounds = [one - 1 for one in starts[1:]] + [None]
    by_start = {one["_part"]: one for one in found}
    return [
        _run(tables, handle, series, by_start.get(one), one, bound)
        for one, bound in zip(starts, bounds, strict=True)
    ]


def _run(
    tables: Tables,
    handle: Any,
    series: Series,
    held: Mapping[str, Any] | None,
    start: int,
    bound: int | None,
) -> _Run:
    if held is None:
        return _Run(start, bound)
    time = time_column(series.operation)
    last = held[f"{time}_max"]
    where = (ds.field("_part") == start) & (ds.field(time) == pa.scalar(last, held_type()))
    where = of_series(series.operation.type, series.subject) & where
    rows = tables.read(handle, ["_row", "_json"], where)
    again = rows.take(pc.sort_indices(rows, [("_row", "ascending")]))["_json"].to_pylist()
    return _Run(start, bound, held["_row_count"], to_ms(last), tuple(one.encode() for one in again))


def held_type() -> pa.DataType:
    """Give the type of times in the archive."""
    return pa.timestamp("us", "UTC")


def _earliest(series: Series) -> int:
    since = series.operation.since
    return to_ms(since) if since else 0


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
    from toolkit.archive.answers import whole_answer

    handle = tables.handle_to_write(ANSWERS)
    fetched = session.now_ms()
    row = {
        "_operation": series.operation.type,
        "_subject": series.subject,
        **whole_answer(series, session),
        "_source": session.label,
        "_simulated": session.simulated,
        "_fetched": fetched,
    }
    for _ in range(_TRIES):
        try:
            tables.append(handle, pa.Table.from_pylist([row], schema=SCHEMAS[ANSWERS]))
            break
        except Beaten:
            handle = tables.handle_to_write(ANSWERS)
    return Refreshed(series.operation.type, series.subject, 1, 1, fetched, fetched)
