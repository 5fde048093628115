"""The runs of a history: which rows are missing, and their pull in portions.

A run is continued from the time of its last row. The rows of that time are pulled again and must
equal the archived ones. Each portion thus proves that the new rows follow the archived ones, for
inclusive and for exclusive cursors of the service. `pull_rows` pulls a portion; it can run in
another process.

A commit of a `HistoryWriter` sets two counters of the Delta table for each history: one with the
name of the run and its new length, and one with the name of the series. If two processes append to
the same series, Delta refuses the second commit. A commit to other series is not refused: then the
lengths of all runs show whether one of ours has changed as well.
"""

import contextlib
import json
import operator
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds

from toolkit.archive import coverage, schemas
from toolkit.archive.coverage import LogEntries, RefreshResult, Run
from toolkit.archive.schemas import PULLS, RowOrigin, Series
from toolkit.archive.storage import ArchiveTables
from toolkit.client import Session
from toolkit.completeness.checks import BreakLog, HistoryChecks, RowBreak
from toolkit.completeness.covered_ranges import TimeRange, enclosing_range
from toolkit.contract import paging
from toolkit.contract.apis import SERVICE
from toolkit.display import count_text
from toolkit.errors import ArchiveError, HistoryMismatch, ToolkitError
from toolkit.fetch.pull import first_complete_ms, prepare_request, reach_message, read_pages
from toolkit.frames import Collector
from toolkit.times import HOUR, to_iso, to_ms

_TIME_TYPE: Final = pa.timestamp("us", "UTC")
_COMPLETE: Final = " complete"  # the end of the name of a counter of older versions
_ROWS_BEFORE: Final = 100_000  # the archived rows against which the rows of a refresh are checked


class HistoryWriter:
    """Appends to the histories of a table; with `is_only`, to this one.

    The state of the archive is read once for all histories.
    """

    def __init__(self, tables: ArchiveTables, sample: Series, *, is_only: bool = False) -> None:
        self.tables, self._sample, self._is_only = tables, sample, is_only
        self.open()

    def open(self) -> None:
        """Open the table and the refresh log as they are now."""
        operation = self._sample.operation.type
        self.handle = self.tables.open_for_append(self._sample.table)
        self._lengths: dict[str, dict[int, int]] | None = None
        # For one history in a store, reading all counters is not worth the requests.
        if not (self._is_only and "://" in self.tables.location):
            self._count_rows()
        self.log = self.tables.open_for_append(PULLS)
        if self._is_only:
            entries = coverage.read_series_log(self.tables, self._sample, self.log)
            self._entries = {(operation, self._sample.subject): entries}
        else:
            self._entries = coverage.read_log(self.tables, self.log, operation)

    def _count_rows(self) -> None:
        """Read the number of rows of each run from the counters of the table, if possible.

        The lengths are a nested mapping: name of the series -> start of the run -> number of rows.
        """
        lengths: dict[str, dict[int, int]] = defaultdict(dict)
        counters = self.tables.read_counters(self.handle)
        for name, rows in (counters or {}).items():
            series, is_of_run, start = name.rpartition(" from ")
            if is_of_run and rows and not start.endswith(_COMPLETE):
                lengths[series][int(start)] = rows
        self._lengths = None if counters is None else lengths

    def read_state(self, series: Series) -> tuple[list[Run], LogEntries]:
        """Return the runs of a series that have rows, by start, and its entries in the log."""
        entries = self._entries.get((series.operation.type, series.subject), [])
        if self._lengths is not None:  # then often no row has to be read
            lengths = self._lengths.get(series.name, {})
            if not lengths and not entries:
                return [], entries
            for entry in sorted(entries, key=operator.itemgetter("_fetched"), reverse=True):
                noted = coverage.read_noted_runs(entry)
                if noted and {run.start: run.rows for run in noted} == lengths:
                    return noted, entries
        time = series.keys[0]
        rows = self.tables.read_rows(self.handle, ["_part", "_row", time], series=series)
        groups = rows.group_by("_part").aggregate([("_row", "count"), (time, "max")])
        groups = groups.sort_by("_part").to_pylist()
        runs = []
        # A run ends where the next one begins.
        bounds = [group["_part"] - 1 for group in groups[1:]] + [None]
        for group, bound in zip(groups, bounds, strict=False):  # without groups there is one bound
            start, last = group["_part"], group[f"{time}_max"]
            is_last = (ds.field("_part") == start) & (ds.field(time) == pa.scalar(last, _TIME_TYPE))
            newest = self.tables.read_rows(self.handle, ["_row", "_json"], is_last, series)
            texts = newest.sort_by("_row")["_json"].to_pylist()
            runs.append(Run(start, bound, group["_row_count"], to_ms(last), tuple(texts)))
        return runs, entries

    def has_changed(self, series: Series, runs: Sequence[Run]) -> bool:
        """Return whether another process may have appended to a series."""
        known = {run.start: run.rows for run in runs if run.rows}
        return self._lengths is None or self._lengths.get(series.name, {}) != known

    def append(self, portions: Sequence[tuple[Series, Run, pa.Table]], note: str) -> bool:
        """Append rows in one commit; return whether other histories may have changed as well.

        A portion has the rows and the run with these rows. Raise CommitConflict if another process
        has appended to one of the series.
        """
        version, counts = self.handle.version(), dict[str, int]()
        for series, run, _ in portions:
            counts |= {series.name: run.rows, series.run_counter(run.start): run.rows}
        rows = pa.concat_tables([rows for _, _, rows in portions])
        self.tables.append_rows(self.handle, rows, counts=counts, notes={"series": note})
        is_shared: bool = not self._is_only and self.handle.version() > version + 1
        if is_shared:
            self._count_rows()
        return is_shared


@dataclass(frozen=True, slots=True)
class RefreshRequest:
    """What is to be refreshed."""

    series: Series
    times: Mapping[str, Any]  # `start` and `end` as the caller passed them; None if not passed
    start_ms: int | None
    end_ms: int | None
    page_size: int | None  # rows per page; None for the default


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
        is_near = start <= max(run.start, run.last or 0)
        if is_near or any(begin <= run.start and start <= last + 1 for begin, last in pulled):
            first = run
    return [
        run
        for run in (first, *later)
        if run.bound is None or not enclosing_range(pulled, run.start, run.bound)
    ]


def new_places(expected: list[Any], texts: Sequence[str | bytes]) -> list[int]:
    """Return the places of rows of a run's last time that are not archived yet.

    `expected` are the archived rows of that time; those that came again are removed.
    """
    places = []
    for place, text in enumerate(texts):
        # json, as `decode` does for unknown fields: a number may be too large for a float.
        if expected and _is_same_value(expected[0], json.loads(text)):
            del expected[0]
        else:
            places.append(place)
    return places


def mismatch(series: Series, last: int | None, expected: Sequence[Any]) -> HistoryMismatch:
    """Return the error that archived rows of a run's last time have not come again."""
    return HistoryMismatch(
        f"{series.name}: {count_text(len(expected), 'archived row')} of time "
        f"{to_iso(last or 0)} did not come again, so the service's history differs "
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

    series: Series  # with the parameters of the request, and its time range
    run: Run  # the run that the rows follow
    most_rows: int  # after about so many rows the portion ends
    origin: RowOrigin


@dataclass(frozen=True, slots=True)
class PulledRows:
    """What was pulled of a run."""

    pull: RunPull  # what was asked
    rows: pa.Table  # the new rows, in the form of the table
    run: Run  # the run with these rows
    until_ms: int | None  # up to which the service has rows, if it states a time
    is_end: bool  # whether all rows of the request have come
    error: ToolkitError | KeyboardInterrupt | None  # why no more rows came
    lacks: str  # which rows the service lacks, if that made a new run begin later


def pull_rows(
    pull: RunPull, session: Session, count_rows: Callable[[int], object] = int
) -> PulledRows:
    """Pull pages of a run after its last archived row, until the portion is full.

    If the service keeps only the latest rows, and may lack some that follow the archived ones, a
    new run begins where its rows are complete.
    """
    series, run, until_ms, is_end, lacks = pull.series, pull.run, None, True, ""
    expected = [json.loads(text) for text in run.last_texts]
    kept: list[tuple[bytes, Any]] = []  # texts and records
    failure: ToolkitError | KeyboardInterrupt | None = None
    try:
        request = prepare_request(series.operation, session=session, **series.parameters)
        begin_ms = None
        if request.operation.reach and run.last is None:
            begin_ms = first_complete_ms(request)
        if begin_ms is not None:
            run, lacks = Run(begin_ms, run.bound), reach_message(request, begin_ms)
            request = replace(request, parameters={**request.parameters, "start": begin_ms})
        is_empty = begin_ms is not None and begin_ms > series.parameters["end"]
        for page in () if is_empty else read_pages(request):
            page.completeness.check_complete()
            if page.completeness.covered is not None:
                until_ms = page.completeness.covered[1]
            texts, records = page.texts(), page.tables[0]
            if expected:  # the rows of the run's last time come first
                times = [time for time, *_ in paging.row_keys(request.operation, records)]
                end = bisect_right(times, run.last)
                new = [*new_places(expected, texts[:end]), *range(end, len(texts))]
                if expected and end < len(texts):
                    raise mismatch(series, run.last, expected)
                texts, records = [texts[at] for at in new], [records[at] for at in new]
            kept += zip(texts, records, strict=True)
            count_rows(len(texts))
            if not expected and len(kept) >= pull.most_rows:
                is_end = page.is_last
                break
        if expected:
            raise mismatch(series, run.last, expected)
    except (ToolkitError, KeyboardInterrupt) as error:
        if isinstance(error, HistoryMismatch) and request.operation.reach:
            start = (run.last or 0) + 1  # a new run, after the last archived row
            later = replace(series, parameters={**series.parameters, "start": start})
            again = pull_rows(
                replace(pull, series=later, run=Run(start, run.bound)), session, count_rows
            )
            if again.lacks:
                return replace(again, pull=pull)
        # The rows pulled so far follow the archived ones, so they are kept.
        kept = kept if not expected and not isinstance(error, ArchiveError) else []
        failure, is_end = error, False
    rows = schemas.SCHEMAS[series.table].empty_table()
    if kept:
        collector = Collector(series.operation, "float")
        collector.add(([record for _, record in kept],))
        rows = schemas.collected_rows(collector, series, [text for text, _ in kept], pull.origin)
        rows = schemas.place_rows(series, rows, run.start, run.rows)
    return PulledRows(pull, rows, run.extend(series, rows), until_ms, is_end, failure, lacks)


def check_clock(series: Series, now_ms: int, archived: Sequence[int]) -> None:
    """Raise an ArchiveError if the present is long before the last archived time of a series."""
    last = max(archived, default=now_ms)
    if last - now_ms > HOUR:
        raise ArchiveError(
            f"{series.name}: the present is {to_iso(now_ms)}, but the archive goes up to "
            f"{to_iso(last)}. Correct the clock of this machine, or use the session with which the "
            "archive was refreshed"
        )


class HistoryPull:
    """The refresh of one history: what to pull next, and what came and is not committed."""

    def __init__(self, request: RefreshRequest, session: Session) -> None:
        now = session.now_ms()
        self.request, self.series = request, request.series
        operation, api = self.series.operation, session.api
        self._since = (operation if api is SERVICE else api.adapt(operation)).since
        self.lacks = ""  # which rows the service may lack
        self.origin = RowOrigin(session.label, session.simulated, now)
        # The history is complete up to this time afterwards. Rows of this millisecond may come.
        last = now - 1 if session.source.has_running_clock() else now
        self.until_ms = last if request.end_ms is None else min(request.end_ms, last)
        self.start_ms = self.new_rows = self._unlogged = 0
        self.breaks = BreakLog()  # where the rows that were appended contradict each other
        self.error: ToolkitError | None = None  # why the refresh failed
        self.portions_to_pull: Iterator[RunPull]
        self.asked: RunPull | None = None  # the portion to pull; None if nothing can be missing
        self.pulled: PulledRows  # what came of it
        # Rows that were pulled and are not committed, the runs with them, and their breaks.
        self.portions: list[tuple[pa.Table, Run, Sequence[RowBreak]]] = []
        # The archived runs, by start; None if they have to be read.
        self.runs: list[Run] | None = None

    def advance(self) -> None:
        """Find the next portion to pull, if there is one."""
        try:
            self.asked = next(self.portions_to_pull, None)
        except ToolkitError as error:
            self.error = error

    def pull_portions(self, writer: HistoryWriter, most_rows: int) -> Iterator[RunPull]:
        """Yield the portions to pull, of the runs that are not complete; see `pulled`.

        If their rows contradict each other or have a gap for the first time, all rows that are not
        committed are pulled once more, and archived as they come.
        """
        request, series, is_first_pull = self.request, self.series, True
        self.runs, entries = writer.read_state(series)
        pulled = coverage.pulled_ranges(entries)
        self._noted = coverage.contradictory_ranges(entries)
        self.start_ms = request.start_ms or 0
        if request.start_ms is None:  # from the first archived row, else the service's first day
            firsts = [run.start for run in self.runs] + [first for first, _ in pulled]
            self.start_ms = min(firsts, default=to_ms(self._since) if self._since else 0)
        elif request.end_ms is None:  # from the archived rows before the start, to leave no gap
            ranges = [(run.start, run.start - 1) for run in self.runs] + [*pulled]
            ends = [last + 1 for first, last in ranges if first <= self.start_ms]
            self.start_ms = min(self.start_ms, max(ends, default=self.start_ms))
        if request.end_ms is None:
            check_clock(series, self.origin.fetched_ms, [until for _, until in pulled])
        self._unlogged = sum(run.rows for run in self.runs) - coverage.count_logged_rows(entries)
        size = {} if request.page_size is None else {"page_size": request.page_size}
        waiting = select_runs(self.runs, pulled, self.start_ms)
        while waiting:
            run, is_end = waiting.pop(0), False
            # A refresh was killed before it noted its breaks.
            checks = self._begin_checks(writer, run) if self._unlogged > 0 else None
            while not is_end:
                start = run.start if run.last is None else run.last
                end = self.until_ms if run.bound is None else min(run.bound, self.until_ms)
                if start > end:
                    break
                parameters = {**series.parameters, "start": start, "end": end, **size}
                yield RunPull(replace(series, parameters=parameters), run, most_rows, self.origin)
                came = self.pulled
                run, is_end, before = came.run, came.is_end, run
                if came.until_ms is not None:
                    self.until_ms = min(self.until_ms, came.until_ms)
                if came.lacks:
                    self.lacks, self.start_ms = came.lacks, max(self.start_ms, run.start)
                    before, checks = Run(run.start, run.bound), None
                if not came.rows.num_rows:
                    continue
                checks = checks or self._begin_checks(writer, before)
                breaks = checks.add_page(checked_columns(came.rows))
                if is_first_pull and any(found.group != "unproved" for found in breaks):
                    is_first_pull, self.portions = False, []
                    waiting = select_runs(self.runs, pulled, self.start_ms)
                    break
                self.portions.append((came.rows, run, breaks))

    def note_commit(self, portions: Sequence[tuple[pa.Table, Run, Sequence[RowBreak]]]) -> int:
        """Note that portions are committed, and return the number of their rows."""
        runs, before = {run.start: run for run in self.runs or ()}, self.new_rows
        for rows, run, breaks in portions:
            runs[run.start] = run
            self.new_rows += rows.num_rows
            self.breaks += breaks
        self.runs = [runs[start] for start in sorted(runs)]
        return self.new_rows - before

    def refreshed(self) -> RefreshResult:
        """Return the result, after all portions are committed."""
        series, total = self.series, sum(run.rows for run in self.runs or ())
        times = (self.start_ms, self.until_ms)
        return RefreshResult(series.operation.type, series.subject, self.new_rows, total, *times)

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
                for found in checks.add_page(checked_columns(rows))
                if found.group == "breaks"
                and not enclosing_range(self._noted, found.time, found.time)
            ]
        return checks


def checked_columns(rows: pa.Table) -> dict[str, Any]:
    """Return the columns of the record of rows, without those of the archive."""
    return {name: rows[name] for name in rows.column_names if not name.startswith("_")}
