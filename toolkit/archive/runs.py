"""Runs: the pieces in which a history was pulled.

The rows of a run follow each other without a gap. A refresh continues a run from the time of its
last row: the service must return the rows of that time again, which proves that the new rows
follow the archived ones.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from toolkit.archive.coverage import covered_ranges
from toolkit.archive.errors import HistoryMismatch
from toolkit.archive.series import Series, completion_transaction, time_column, wire_time_field
from toolkit.archive.storage import ArchiveTables, series_filter
from toolkit.times import to_ms

__all__ = ["Run", "RunOverlap", "is_run_complete", "read_runs", "select_runs"]

_TIME_TYPE: Final = pa.timestamp("us", "UTC")


@dataclass(frozen=True, slots=True)
class Run:
    """Rows of a history that were pulled one after the other.

    Attributes
    ----------
    start, bound : int
        The time range of the run in Unix milliseconds, both ends inclusive. The last run of a
        series has no bound.
    rows : int
        How many of its rows are archived.
    last : int or None
        The time of the last archived row.
    last_texts : tuple of bytes
        The archived rows of that time. The service must return them again.
    """

    start: int
    bound: int | None
    rows: int = 0
    last: int | None = None
    last_texts: tuple[bytes, ...] = ()


def read_runs(tables: ArchiveTables, handle: Any, series: Series) -> list[Run]:
    """Return the runs of a series that have rows, by start."""
    time = time_column(series.operation)
    condition = series_filter(series.operation.type, series.subject)
    rows = tables.read_rows(handle, ["_part", "_row", time], condition)
    groups = rows.group_by("_part").aggregate([("_row", "count"), (time, "max")])
    groups = groups.sort_by("_part").to_pylist()
    # A run ends where the next one begins.
    bounds = [group["_part"] - 1 for group in groups[1:]] + [None]
    return [
        _make_run(tables, handle, series, group, bound)
        for group, bound in zip(groups, bounds, strict=False)  # without groups there is one bound
    ]


def _make_run(
    tables: ArchiveTables, handle: Any, series: Series, group: Mapping[str, Any], bound: int | None
) -> Run:
    time, start = time_column(series.operation), group["_part"]
    last = group[f"{time}_max"]
    condition = (
        series_filter(series.operation.type, series.subject)
        & (ds.field("_part") == start)
        & (ds.field(time) == pa.scalar(last, _TIME_TYPE))
    )
    rows = tables.read_rows(handle, ["_row", "_json"], condition)
    texts = rows.take(pc.sort_indices(rows, [("_row", "ascending")]))["_json"].to_pylist()
    encoded = tuple(text.encode() for text in texts)
    return Run(start, bound, group["_row_count"], to_ms(last), encoded)


def select_runs(
    tables: ArchiveTables, handle: Any, series: Series, runs: Sequence[Run], start: int
) -> list[Run]:
    """Return the runs that cover all times from `start` on.

    The first of them is the archived run that is complete up to `start`, which can be continued.
    If there is none, it is a new run that begins at `start`.
    """
    later = [run for run in runs if run.start > start]
    if len(later) < len(runs):
        run_before = runs[-len(later) - 1]
        if _is_complete_until(tables, handle, series, run_before, start):
            return [run_before, *later]
    return [Run(start, later[0].start - 1 if later else None), *later]


def is_run_complete(handle: Any, series: Series, run: Run) -> bool:
    """Return whether a run has reached the start of the next run."""
    transaction = completion_transaction(series, run.start)
    return run.bound is not None and handle.transaction_version(transaction) is not None


def _is_complete_until(
    tables: ArchiveTables, handle: Any, series: Series, run: Run, moment: int
) -> bool:
    """Return whether no row is missing between a run's rows and a time."""
    if moment <= max(run.start, run.last or 0) or is_run_complete(handle, series, run):
        return True
    return any(
        first <= run.start and moment <= last + 1 for first, last in covered_ranges(tables, series)
    )


class RunOverlap:
    """The archived rows of a run's last time, which the service must return first.

    Parameters
    ----------
    series : Series
        The series, for messages.
    run : Run
        The run that is continued.
    """

    def __init__(self, series: Series, run: Run) -> None:
        self._series = series
        # json, as `decode` does for unknown fields: a number may be too large for a float.
        self._expected = [json.loads(text) for text in run.last_texts]
        self._last = run.last
        self._time_field = wire_time_field(series.operation)

    @property
    def is_matched(self) -> bool:
        """Whether the service has returned all of them again."""
        return not self._expected

    def new_texts(self, texts: Sequence[bytes]) -> Iterator[bytes]:
        """Yield the rows that are not archived yet.

        Raises
        ------
        HistoryMismatch
            If a later row comes before all archived rows of the last time have come again.
        """
        for text in texts:
            if not self._expected:
                yield text
                continue
            row = json.loads(text)
            if _is_same_value(self._expected[0], row):
                del self._expected[0]
                continue
            if row[self._time_field] != self._last:
                self.check_matched()
            yield text

    def check_matched(self) -> None:
        """Raise an error if the service has not returned all archived rows of the last time.

        Raises
        ------
        HistoryMismatch
            With the number of rows, and what to do.
        """
        if self._expected:
            raise HistoryMismatch(
                f"{self._series.name}: {len(self._expected)} archived rows of time {self._last} "
                "did not come again, so the service's history differs from the archived one. No "
                "row was appended after them. Compare both with tk.raw and Archive.frame, or start "
                "a new archive"
            )


def _is_same_value(archived: Any, returned: Any) -> bool:
    """Return whether two values are equal in every field that both have.

    Fields that only one of them has do not count: the service may have added or removed them.
    """
    if isinstance(archived, dict) and isinstance(returned, dict):
        shared = archived.keys() & returned.keys()
        return all(_is_same_value(archived[name], returned[name]) for name in shared)
    return bool(archived == returned) or _is_same_number(archived, returned)


def _is_same_number(archived: Any, returned: Any) -> bool:
    """Return whether two texts are the same number: ingested frames lack trailing zeros."""
    if not isinstance(archived, str) or not isinstance(returned, str):
        return False
    try:
        return Decimal(archived) == Decimal(returned)
    except InvalidOperation:
        return False
