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
import functools
import json
import operator
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
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
from toolkit.contract.apis import SERVICE
from toolkit.contract.columns import table_columns
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
        self.tables, self._sample = tables, sample
        # For one history in a store, reading all counters is not worth the requests.
        self._is_slow = is_only and "://" in tables.location
        self.open()
        self.log = tables.open_for_append(PULLS)
        if is_only:
            entries = coverage.read_series_log(tables, sample, self.log)
            self._entries = {sample.subject: entries}
        else:
            log = coverage.read_log(tables, self.log, sample.operation.type)
            self._entries = {subject: entries for (_, subject), entries in log.items()}

    def open(self) -> None:
        """Open the table as it is now."""
        self.handle = self.tables.open_for_append(self._sample.table)
        self._lengths: dict[str, dict[int, int]] | None = None
        if not self._is_slow:
            self._count_rows()

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
        entries = self._entries.get(series.subject, [])
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
            texts = newest.sort_by("_row")["_json"].cast(pa.binary()).to_pylist()
            runs.append(Run(start, bound, group["_row_count"], to_ms(last), tuple(texts)))
        return runs, entries

    def has_changed(self, series: Series, runs: Sequence[Run]) -> bool:
        """Return whether another process may have appended to a series; read its log again."""
        known = {run.start: run.rows for run in runs if run.rows}
        if self._lengths is not None and self._lengths.get(series.name, {}) == known:
            return False
        self._entries[series.subject] = coverage.read_series_log(self.tables, series)
        return True

    def append(self, portions: Sequence[tuple[Series, Run, pa.Table]], note: str) -> bool:
        """Append rows in one commit; return whether other processes have committed as well.

        A portion has the rows and the run with these rows. Raise CommitConflict if another process
        has appended to one of the series.
        """
        version, counts = self.handle.version(), dict[str, int]()
        for series, run, _ in portions:
            counts |= {series.name: run.rows, series.run_counter(run.start): run.rows}
        rows = pa.concat_tables([rows for _, _, rows in portions])
        self.tables.append_rows(self.handle, rows, counts=counts, notes={"series": note})
        is_shared: bool = self.handle.version() > version + 1
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
    until_ms: int | None = None  # up to which the service has rows, if it states a time
    is_end: bool = False  # whether all rows of the request have come
    error: ToolkitError | KeyboardInterrupt | None = None  # why no more rows came
    begin_ms: int | None = None  # where a new run had to begin, because the service lacks rows
    lacks: str = ""  # which rows the service lacks


def pull_rows(
    pull: RunPull, session: Session, count_rows: Callable[[int], object] = int
) -> PulledRows:
    """Pull pages of a run after its last archived row, until the portion is full.

    If the service keeps only the latest rows, and may lack some that follow the archived ones, a
    new run begins where its rows are complete.
    """
    series, run, begin_ms, until_ms, is_end = pull.series, pull.run, None, None, True
    lacks = ""
    overlap = RunOverlap(series, run)
    kept: list[tuple[bytes, Any]] = []  # texts and records
    failure: ToolkitError | KeyboardInterrupt | None = None
    try:
        request = prepare_request(series.operation, session=session, **series.parameters)
        if request.operation.reach and run.last is None:
            begin_ms = first_complete_ms(request)
            lacks = "" if begin_ms is None else reach_message(request, begin_ms)
        if begin_ms is not None and begin_ms <= series.parameters["end"]:
            run = Run(begin_ms, run.bound)
            request = replace(request, parameters={**request.parameters, "start": begin_ms})
        for page in read_pages(request) if begin_ms in (None, run.start) else ():
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
        if isinstance(error, HistoryMismatch) and request.operation.reach:
            start = (pull.run.last or 0) + 1  # a new run, after the last archived row
            later = replace(series, parameters={**series.parameters, "start": start})
            new_run = replace(pull, series=later, run=Run(start, pull.run.bound))
            pulled = pull_rows(new_run, session, count_rows)
            if pulled.begin_ms is not None:
                return replace(pulled, pull=pull)
        # The rows pulled so far follow the archived ones, so they are kept.
        kept = kept if not overlap.expected and not isinstance(error, ArchiveError) else []
        failure, is_end = error, False
    rows = schemas.SCHEMAS[series.table].empty_table()
    if kept:
        collector = Collector(series.operation, "float")
        collector.add(([record for _, record in kept],))
        rows = schemas.collected_rows(collector, series, [text for text, _ in kept], pull.origin)
        rows = schemas.place_rows(series, rows, run.start, run.rows)
    run = run.extend(series, rows)
    return PulledRows(pull, rows, run, until_ms, is_end, failure, begin_ms, lacks)


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
    request: RefreshRequest, runs: Sequence[Run], pulled: Sequence[TimeRange], since: str
) -> int:
    """Return the time from which on rows may be missing."""
    start = request.start_ms
    if start is None:  # from the first archived row, else from the first day of the service
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
        operation, api = request.series.operation, session.api
        self._since = (operation if api is SERVICE else api.adapt(operation)).since
        self.lacks = ""  # which rows the service may lack
        self.origin = RowOrigin(session.label, session.simulated, now)
        # The history is complete up to this time afterwards. Rows of this millisecond may come.
        last = now - 1 if session.source.has_running_clock() else now
        self.until_ms = last if request.end_ms is None else min(request.end_ms, last)
        self.start_ms = self.new_rows = self._unlogged = 0
        self.breaks = BreakLog()  # where the rows that were appended contradict each other
        self.error: ToolkitError | None = None  # why the refresh failed
        self.portions_to_pull: Iterator[RunPull] = iter(())
        self.asked: RunPull | None = None  # the portion to pull; None if nothing can be missing
        self.pulled: PulledRows  # what came of it
        # Rows that were pulled and are not committed, the runs with them, and their breaks.
        self.portions: list[tuple[pa.Table, Run, Sequence[RowBreak]]] = []
        # The archived runs by start; None if they have to be read.
        self.archived: dict[int, Run] | None = None
        self._is_second_pull = False

    @property
    def runs(self) -> list[Run]:
        """All archived runs, by start."""
        return sorted((self.archived or {}).values(), key=operator.attrgetter("start"))

    def pull_portions(self, writer: HistoryWriter, most_rows: int) -> Iterator[RunPull]:
        """Yield the portions to pull, of the runs that are not complete; see `pulled`.

        If their rows contradict each other or have a gap for the first time, all rows that are not
        committed are pulled once more.
        """
        request, series = self.request, self.request.series
        runs, entries = writer.read_state(series)
        self.archived = {run.start: run for run in runs}
        pulled, self._noted = (
            coverage.pulled_ranges(entries),
            coverage.contradictory_ranges(entries),
        )
        if request.end_ms is None:
            check_clock(series, self.origin.fetched_ms, [until for _, until in pulled])
        self.start_ms = _first_missing_ms(request, runs, pulled, self._since)
        self._unlogged = sum(run.rows for run in runs) - coverage.count_logged_rows(entries)
        is_whole = False
        while not is_whole:
            self.portions, is_whole = [], True
            for run in select_runs(self.runs, pulled, self.start_ms):
                is_whole = is_whole and (yield from self._pull_run(writer, run, most_rows))

    def _pull_run(
        self, writer: HistoryWriter, run: Run, most_rows: int
    ) -> Generator[RunPull, None, bool]:
        """Yield the portions of a run; return whether its rows are whole.

        The rows of the second pull are archived as they come.
        """
        series, is_end = self.request.series, False
        # A refresh was killed before it noted its breaks.
        checks = self._begin_checks(writer, run) if self._unlogged > 0 else None
        while not is_end:
            start = run.start if run.last is None else run.last
            end = self.until_ms if run.bound is None else min(run.bound, self.until_ms)
            if start > end:
                break
            parameters = {**series.parameters, "start": start, "end": end}
            if self.request.page_size is not None:
                parameters["page_size"] = self.request.page_size
            ranged = replace(series, parameters=parameters)
            yield RunPull(ranged, run, most_rows, self.origin)
            pulled = self.pulled
            if pulled.until_ms is not None:
                self.until_ms = min(self.until_ms, pulled.until_ms)
            if pulled.begin_ms is not None:
                self.lacks = pulled.lacks
                self.start_ms = max(self.start_ms, pulled.begin_ms)
                run, checks = Run(pulled.run.start, pulled.run.bound), None
            if pulled.rows.num_rows:
                checks = checks or self._begin_checks(writer, run)
                breaks = checks.add_page(checked_columns(pulled.rows))
                if any(found.group != "unproved" for found in breaks) and not self._is_second_pull:
                    self._is_second_pull = True
                    return False
                self.portions.append((pulled.rows, pulled.run, breaks))
            run, is_end = pulled.run, pulled.is_end
        return True

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
        series, total = self.request.series, sum(run.rows for run in self.runs)
        times = (self.start_ms, self.until_ms)
        return RefreshResult(series.operation.type, series.subject, self.new_rows, total, *times)

    def _begin_checks(self, writer: HistoryWriter, run: Run) -> HistoryChecks:
        """Return the checks of a run, which have seen its last archived rows."""
        series = self.request.series
        checks = HistoryChecks(series.operation, series.parameters)
        if run.rows:
            first = run.rows - max(_ROWS_BEFORE, self._unlogged)
            is_late = (ds.field("_part") == run.start) & (ds.field("_row") >= first)
            checked = schemas.CHECKED_COLUMNS.get(series.table, ())
            names = [*dict.fromkeys([*series.keys, *checked]), "_row"]
            rows = writer.tables.read_rows(writer.handle, names, is_late, series).sort_by("_row")
            self.breaks.add(
                [
                    found
                    for found in checks.add_page(checked_columns(rows))
                    if found.is_certain and not enclosing_range(self._noted, found.time, found.time)
                ]
            )
        return checks


def checked_columns(rows: pa.Table) -> dict[str, Any]:
    """Return the columns of the record of rows, without those of the archive."""
    return {name: rows[name] for name in rows.column_names if not name.startswith("_")}
