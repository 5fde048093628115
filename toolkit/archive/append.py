"""Append rows to histories: the runs that are archived, and one commit for the rows of many.

A commit sets two counters of the Delta table for each history: one with the name of the run and
its new length, and one with the name of the series. If two processes append to the same series,
Delta refuses the second commit. A commit to other series is not refused: then the lengths of all
runs show whether one of ours has changed as well.
"""

import operator
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds

from toolkit.archive.coverage import (
    LogEntries,
    Run,
    log_refreshes,
    read_log,
    read_noted_runs,
    read_series_log,
)
from toolkit.archive.schemas import PULLS, Series
from toolkit.archive.storage import ArchiveTables
from toolkit.times import to_ms

RunLengths = Mapping[int, int]
"""The start of each run of a series, and how many rows the run has."""
_TIME_TYPE: Final = pa.timestamp("us", "UTC")
_COMPLETE: Final = " complete"  # the end of the name of a counter of older versions


def count_run_rows(tables: ArchiveTables, handle: Any) -> dict[str, dict[int, int]] | None:
    """Return the number of rows of each run of a table, from the counters of the table.

    The result is a nested mapping: name of the series -> start of the run -> number of rows. It is
    None if the counters cannot be read.
    """
    counters = tables.read_counters(handle)
    if counters is None:
        return None
    lengths: dict[str, dict[int, int]] = defaultdict(dict)
    for name, rows in counters.items():
        series, is_of_run, start = name.rpartition(" from ")
        if is_of_run and rows and not start.endswith(_COMPLETE):
            lengths[series][int(start)] = rows
    return dict(lengths)


def read_runs(
    tables: ArchiveTables,
    handle: Any,
    series: Series,
    entries: LogEntries = (),
    lengths: RunLengths | None = None,
) -> list[Run]:
    """Return the runs of a series that have rows, by start.

    If an entry of its log notes runs of exactly these lengths, no row is read.
    """
    if lengths is not None:
        if not lengths and not entries:
            return []
        for entry in sorted(entries, key=operator.itemgetter("_fetched"), reverse=True):
            noted = read_noted_runs(entry)
            if noted and {run.start: run.rows for run in noted} == lengths:
                return noted
    time = series.keys[0]
    rows = tables.read_rows(handle, ["_part", "_row", time], series=series)
    groups = rows.group_by("_part").aggregate([("_row", "count"), (time, "max")])
    groups = groups.sort_by("_part").to_pylist()
    runs = []
    # A run ends where the next one begins.
    bounds = [group["_part"] - 1 for group in groups[1:]] + [None]
    for group, bound in zip(groups, bounds, strict=False):  # without groups there is one bound
        start, last = group["_part"], group[f"{time}_max"]
        is_last = (ds.field("_part") == start) & (ds.field(time) == pa.scalar(last, _TIME_TYPE))
        newest = tables.read_rows(handle, ["_row", "_json"], is_last, series)
        texts = tuple(text.encode() for text in newest.sort_by("_row")["_json"].to_pylist())
        runs.append(Run(start, bound, group["_row_count"], to_ms(last), texts))
    return runs


class HistoryWriter:
    """Appends to the histories of a table; with `only`, to this one.

    The state of the archive is read once for all histories.
    """

    def __init__(self, tables: ArchiveTables, sample: Series, *, is_only: bool = False) -> None:
        self.tables, self._sample, self._is_only = tables, sample, is_only
        self.open()
        self._log = tables.open_for_append(PULLS)
        type = sample.operation.type
        if is_only:
            self._entries = {sample.subject: read_series_log(tables, sample, self._log)}
        else:
            log = read_log(tables, self._log, type)
            self._entries = {subject: entries for (_, subject), entries in log.items()}

    def open(self) -> None:
        """Open the table as it is now."""
        self.handle = self.tables.open_for_append(self._sample.table)
        # For one history in a store, reading all counters is not worth the requests.
        is_slow = self._is_only and "://" in self.tables.location
        self._lengths = None if is_slow else count_run_rows(self.tables, self.handle)

    def entries(self, series: Series) -> LogEntries:
        """Return the entries of a series in the refresh log."""
        return self._entries.get(series.subject, [])

    def read_runs(self, series: Series) -> list[Run]:
        """Return the runs of a series that have rows, by start."""
        lengths = None if self._lengths is None else self._lengths.get(series.name, {})
        return read_runs(self.tables, self.handle, series, self.entries(series), lengths)

    def has_changed(self, series: Series, known: RunLengths) -> bool:
        """Return whether another process may have appended to a series; read its log again."""
        has = self._lengths is None or self._lengths.get(series.name, {}) != known
        if has:
            self._entries[series.subject] = read_series_log(self.tables, series)
        return has

    def append(self, portions: Sequence[tuple[Series, Run, pa.Table]], note: str) -> bool:
        """Append rows in one commit; return whether other processes have committed as well.

        A portion has the rows and the run with these rows. Raise CommitConflict if another process
        has appended to one of the series.
        """
        version, counts = self.handle.version(), dict[str, int]()
        for series, run, _ in portions:
            counts |= run.counters(series)
        rows = pa.concat_tables([rows for _, _, rows in portions])
        self.tables.append_rows(self.handle, rows, counts=counts, notes={"series": note})
        is_shared: bool = self.handle.version() > version + 1
        if is_shared:
            self._lengths = count_run_rows(self.tables, self.handle)
        return is_shared

    def log(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Append entries to the refresh log, after their rows are committed."""
        log_refreshes(self.tables, entries, self._log)
