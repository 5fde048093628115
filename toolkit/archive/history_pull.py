"""The runs of a history: which rows are missing, and their pull in portions.

A run is continued from the time of its last row. The rows of that time are pulled again and must
equal the archived ones. Each portion thus proves that the new rows follow the archived ones, for
inclusive and for exclusive cursors of the service. `pull_rows` pulls a portion; it can run in
another process.
"""

import contextlib
import functools
import json
import operator
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds

from toolkit.archive.append import HistoryWriter
from toolkit.archive.coverage import (
    RefreshResult,
    Run,
    contradictory_ranges,
    count_logged_rows,
    pulled_ranges,
)
from toolkit.archive.schemas import (
    CHECKED_COLUMNS,
    SCHEMAS,
    RowOrigin,
    Series,
    collected_rows,
    place_rows,
    resolve_operation,
)
from toolkit.client import Session
from toolkit.completeness.checks import BreakLog, HistoryChecks, RowBreak
from toolkit.completeness.covered_ranges import TimeRange, enclosing_range
from toolkit.contract.columns import table_columns
from toolkit.display import count_text
from toolkit.errors import ArchiveError, HistoryMismatch, ToolkitError
from toolkit.fetch.pull import prepare_request, read_pages
from toolkit.frames import Collector
from toolkit.times import HOUR, to_iso, to_ms

_ROWS_BEFORE: Final = 100_000  # the archived rows against which the rows of a refresh are checked


@dataclass(frozen=True, slots=True)
class RefreshRequest:
    """What is to be refreshed."""

    series: Series
    times: Mapping[str, Any]  # `start` and `end` as the caller passed them; None if not passed
    start_ms: int | None
    end_ms: int | None
    page_size: int | None  # rows per page; None for the default


def is_pulled(run: Run, pulled: Sequence[TimeRange]) -> bool:
    """Return whether a run is pulled up to the start of the next run, according to the log."""
    return run.bound is not None and enclosing_range(pulled, run.start, run.bound) is not None


def select_runs(runs: Sequence[Run], pulled: Sequence[TimeRange], start: int) -> list[Run]:
    """Return the runs that cover all times from `start` on and are not complete.

    The first of them is the archived run that is complete up to `start`, which can be continued. If
    there is none, it is a new run that begins at `start`. `pulled` are the ranges of the series
    that were pulled, according to the refresh log.
    """
    earlier = [run for run in runs if run.start <= start]
    later = runs[len(earlier) :]
    first = Run(start, later[0].start - 1 if later else None)
    if earlier:
        run = earlier[-1]
        # Whether no row is missing between the rows of the run and `start`.
        is_near = start <= max(run.start, run.last or 0) or is_pulled(run, pulled)
        if is_near or any(begin <= run.start and start <= last + 1 for begin, last in pulled):
            first = run
    return [run for run in (first, *later) if not is_pulled(run, pulled)]


class RunOverlap:
    """The archived rows of a run's last time, which the service must return first."""

    def __init__(self, series: Series, run: Run) -> None:
        self._series = series
        # json, as `decode` does for unknown fields: a number may be too large for a float.
        self.expected = [json.loads(text) for text in run.last_texts]
        self._last = run.last
        columns = table_columns(series.operation.tables[0])
        time = next(column.wire for column in columns if column.name == series.keys[0])
        self._time_fields = time.split(".")

    def new_places(self, texts: Sequence[bytes]) -> Iterator[int]:
        """Yield the places of the rows that are not archived yet.

        Raise HistoryMismatch if a later row comes before all archived rows of the last time have
        come again.
        """
        for place, text in enumerate(texts):
            if not self.expected:
                yield place
                continue
            row = json.loads(text)
            if _is_same_value(self.expected[0], row):
                del self.expected[0]
                continue
            if functools.reduce(operator.getitem, self._time_fields, row) != self._last:
                self.check_matched()
            yield place

    def check_matched(self) -> None:
        """Raise HistoryMismatch if an archived row of the last time has not come again."""
        if self.expected:
            raise HistoryMismatch(
                f"{self._series.name}: {count_text(len(self.expected), 'archived row')} of time "
                f"{to_iso(self._last or 0)} did not come again, so the service's history differs "
                "from the archived one. No row was appended after them. Compare both with tk.raw "
                "and Archive.frame, or start a new archive"
            )


def _is_same_value(archived: Any, returned: Any) -> bool:
    """Return whether two values are equal in every field that both have.

    Fields that only one of them has do not count: the service may have added or removed them.
    """
    if isinstance(archived, dict) and isinstance(returned, dict):
        shared = archived.keys() & returned.keys()
        return all(_is_same_value(archived[name], returned[name]) for name in shared)
    if archived == returned or not (isinstance(archived, str) and isinstance(returned, str)):
        return bool(archived == returned)
    # Texts of numbers may differ in trailing zeros, which ingested frames lack.
    with contextlib.suppress(InvalidOperation):
        return Decimal(archived) == Decimal(returned)
    return False


@dataclass(frozen=True, slots=True)
class RunPull:
    """A portion of a run to pull. It can be sent to another process."""

    type: str
    subject: str
    parameters: Mapping[str, Any]  # of the request, with its time range
    run: Run  # the run that the rows follow
    most_rows: int  # after about so many rows the portion ends
    origin: RowOrigin


@dataclass(frozen=True, slots=True)
class PulledRows:
    """What was pulled of a run."""

    pull: RunPull  # what was asked
    rows: pa.Table  # the new rows, in the form of the table
    run: Run  # the run with these rows
    until_ms: int | None = None  # up to which the service has rows, if it states a time
    is_end: bool = False  # whether all rows of the request have come
    error: ToolkitError | KeyboardInterrupt | None = None  # why no more rows came


def pull_rows(
    pull: RunPull, session: Session, count_rows: Callable[[int], object] = int
) -> PulledRows:
    """Pull pages of a run after its last archived row, until the portion is full."""
    series = Series(resolve_operation(pull.type), pull.subject, pull.parameters)
    overlap, until_ms, is_end = RunOverlap(series, pull.run), None, True
    kept: list[tuple[bytes, Any]] = []  # texts and records
    failure: ToolkitError | KeyboardInterrupt | None = None
    try:
        request = prepare_request(series.operation, session=session, **pull.parameters)
        for page in read_pages(request):
            page.completeness.check_complete()
            if page.completeness.covered is not None:
                until_ms = page.completeness.covered[1]
            texts = page.texts()
            new = [(texts[place], page.tables[0][place]) for place in overlap.new_places(texts)]
            kept += new
            count_rows(len(new))
            if not overlap.expected and len(kept) >= pull.most_rows:
                is_end = page.is_last
                break
        overlap.check_matched()
    except (ToolkitError, KeyboardInterrupt) as error:
        # The rows pulled so far follow the archived ones, so they are kept.
        kept = kept if not overlap.expected and not isinstance(error, ArchiveError) else []
        failure, is_end = error, False
    rows = SCHEMAS[series.table].empty_table()
    if kept:
        collector = Collector(series.operation, "float")
        collector.add(([record for _, record in kept],))
        rows = collected_rows(collector, series, [text for text, _ in kept], pull.origin)
        rows = place_rows(series, rows, pull.run.start, pull.run.rows)
    return PulledRows(pull, rows, pull.run.extend(series, rows), until_ms, is_end, failure)


def check_clock(series: Series, now_ms: int, archived: Sequence[int]) -> None:
    """Raise an ArchiveError if the present is long before the last archived time of a series."""
    last = max(archived, default=now_ms)
    if last - now_ms > HOUR:
        raise ArchiveError(
            f"{series.name}: the present is {to_iso(now_ms)}, but the archive goes up to "
            f"{to_iso(last)}. Correct the clock of this machine, or use the session with which the "
            "archive was refreshed"
        )


def _first_missing_ms(
    request: RefreshRequest, runs: Sequence[Run], pulled: Sequence[TimeRange]
) -> int:
    """Return the time from which on rows may be missing."""
    start = request.start_ms
    if start is None:  # from the first archived row, else from the first day of the service
        since = request.series.operation.since
        firsts = [run.start for run in runs] + [first for first, _ in pulled]
        return min(firsts, default=to_ms(since) if since else 0)
    if request.end_ms is not None:
        return start
    # Without an end, the gap between the archived rows and the start is pulled, too.
    ranges = [(run.start, run.start - 1) for run in runs] + [*pulled]
    return min(start, max((last + 1 for first, last in ranges if first <= start), default=start))


class HistoryPull:
    """The refresh of one history: what to pull next, and what came and is not committed."""

    def __init__(self, request: RefreshRequest, session: Session) -> None:
        now = session.now_ms()
        self.request = request
        self.origin = RowOrigin(session.label, session.simulated, now)
        # The history is complete up to this time afterwards. Rows of this millisecond may come.
        last = now - 1 if session.source.has_running_clock() else now
        self.until_ms = last if request.end_ms is None else min(request.end_ms, last)
        self.new_rows = 0  # that were appended so far
        self.breaks = BreakLog()  # where the rows that were appended contradict each other
        self.error: ToolkitError | None = None  # why the refresh failed
        self.asked: RunPull | None = None  # the portion that was asked last
        # Rows that were pulled and are not committed, the runs with them, and their breaks.
        self.portions: list[tuple[pa.Table, Run, Sequence[RowBreak]]] = []
        # The archived runs by start; None if they have to be read.
        self.archived: dict[int, Run] | None = None
        self._is_second_pull = False
        self._checks: HistoryChecks | None = None

    @property
    def lengths(self) -> dict[int, int]:
        """The start of each archived run, and how many rows it has."""
        return {run.start: run.rows for run in (self.archived or {}).values()}

    @property
    def runs(self) -> list[Run]:
        """All archived runs, by start."""
        return sorted((self.archived or {}).values(), key=operator.attrgetter("start"))

    def next_pull(self, writer: HistoryWriter, most_rows: int) -> RunPull | None:
        """Return the next portion to pull; None if nothing can be missing."""
        series = self.request.series
        if self.archived is None:
            self._begin(writer)
        while self._rest:
            run = self._rest[0]
            if self._unlogged > 0 and self._checks is None:
                # A refresh was killed before it noted its breaks.
                self._checks = self._begin_checks(writer, run)
            start = run.start if run.last is None else run.last
            end = self.until_ms if run.bound is None else min(run.bound, self.until_ms)
            if start <= end:
                parameters = {**series.parameters, "start": start, "end": end}
                if self.request.page_size is not None:
                    parameters["page_size"] = self.request.page_size
                type, subject = series.operation.type, series.subject
                self.asked = RunPull(type, subject, parameters, run, most_rows, self.origin)
                return self.asked
            self._rest.popleft()
            self._checks = None
        return None

    def _begin(self, writer: HistoryWriter) -> None:
        """Read the archived runs, and select those that are not complete."""
        series, entries = self.request.series, writer.entries(self.request.series)
        runs, self._pulled = writer.read_runs(series), pulled_ranges(entries)
        self.archived, self._noted = {run.start: run for run in runs}, contradictory_ranges(entries)
        if self.request.end_ms is None:
            check_clock(series, self.origin.fetched_ms, [until for _, until in self._pulled])
        self.start_ms = _first_missing_ms(self.request, runs, self._pulled)
        self._unlogged = sum(self.lengths.values()) - count_logged_rows(entries)
        self._restart()

    def _restart(self) -> None:
        """Continue from the archived rows, and drop those that are not committed."""
        self._rest = deque(select_runs(self.runs, self._pulled, self.start_ms))
        self._checks, self.portions = None, []

    def add_portion(self, writer: HistoryWriter, pulled: PulledRows) -> None:
        """Check pulled rows, and keep them until they are committed.

        If they contradict each other or have a gap for the first time, they are pulled once more.
        The rows of the second pull are archived as they come.
        """
        if pulled.until_ms is not None:
            self.until_ms = min(self.until_ms, pulled.until_ms)
        if pulled.rows.num_rows:
            self._checks = self._checks or self._begin_checks(writer, self._rest[0])
            breaks = self._checks.add_page(checked_columns(pulled.rows))
            if any(found.group != "unproved" for found in breaks) and not self._is_second_pull:
                self._is_second_pull = True
                self._restart()
                return
            self.portions.append((pulled.rows, pulled.run, breaks))
        self._rest[0] = pulled.run
        if pulled.is_end:
            self._rest.popleft()
            self._checks = None

    def note_commit(self) -> int:
        """Note that the portions are committed, and return the number of their rows."""
        portions, self.portions = self.portions, []
        for _, run, breaks in portions:
            self.archived = {**(self.archived or {}), run.start: run}
            self.breaks.add(breaks)
        rows: int = sum(rows.num_rows for rows, _, _ in portions)
        self.new_rows += rows
        return rows

    def refreshed(self) -> RefreshResult:
        """Return the result, after all portions are committed."""
        series, total = self.request.series, sum(self.lengths.values())
        times = (self.start_ms, self.until_ms)
        return RefreshResult(series.operation.type, series.subject, self.new_rows, total, *times)

    def _begin_checks(self, writer: HistoryWriter, run: Run) -> HistoryChecks:
        """Return the checks of a run, which have seen its last archived rows."""
        series = self.request.series
        checks = HistoryChecks(series.operation, series.parameters)
        if run.rows:
            first = run.rows - max(_ROWS_BEFORE, self._unlogged)
            is_late = (ds.field("_part") == run.start) & (ds.field("_row") >= first)
            names = [*dict.fromkeys([*series.keys, *CHECKED_COLUMNS.get(series.table, ())]), "_row"]
            rows = writer.tables.read_rows(writer.handle, names, is_late, series).sort_by("_row")
            breaks = checks.add_page(checked_columns(rows))
            noted = [enclosing_range(self._noted, found.time, found.time) for found in breaks]
            pairs = zip(breaks, noted, strict=True)
            self.breaks.add([found for found, range in pairs if found.is_certain and not range])
        return checks


def checked_columns(rows: pa.Table) -> dict[str, Any]:
    """Return the columns of the record of rows, without those of the archive."""
    return {name: rows[name] for name in rows.column_names if not name.startswith("_")}
