"""Runs: in what pieces a history was read, and whether what comes now joins on to them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from toolkit.archive.coverage import covered
from toolkit.archive.series import Series, complete_name, time_column, time_on_wire
from toolkit.archive.storage import Tables, of_series
from toolkit.errors import ArchiveError
from toolkit.times import to_ms

__all__ = ["AnotherHistory", "Overlap", "Run", "is_complete", "runs_from", "runs_of"]

_TIME: Final = pa.timestamp("us", "UTC")


class AnotherHistory(ArchiveError):
    """What the service shows of one history is not what is archived of it."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of pages.

    Attributes
    ----------
    start, bound : int
        From when to when, in milliseconds, both inclusive; the last run has no bound.
    rows : int
        How many of its rows are archived.
    last : int or None
        The moment of the last of them.
    again : tuple of bytes
        The rows of that moment: they must come again.
    """

    start: int
    bound: int | None
    rows: int = 0
    last: int | None = None
    again: tuple[bytes, ...] = ()


def runs_of(tables: Tables, handle: Any, series: Series) -> list[Run]:
    """Give the runs of a series that have rows, by start."""
    time = time_column(series.operation)
    held = tables.read(
        handle, ["_part", "_row", time], of_series(series.operation.type, series.subject)
    )
    found = held.group_by("_part").aggregate([("_row", "count"), (time, "max")])
    found = found.sort_by("_part").to_pylist()
    bounds = [one["_part"] - 1 for one in found[1:]] + [None]
    return [
        _run(tables, handle, series, one, bound)
        for one, bound in zip(found, bounds, strict=False)  # of none, there is a bound still
    ]


def runs_from(
    tables: Tables, handle: Any, series: Series, runs: Sequence[Run], start: int
) -> list[Run]:
    """Give the runs that hold what there is from a moment on.

    The first of them is the run that is complete up to that moment, so that it goes on from
    there; where there is none, a new one that begins with it.
    """
    later = [one for one in runs if one.start > start]
    if len(later) < len(runs) and _reaches(tables, handle, series, runs[-len(later) - 1], start):
        return list(runs[-len(later) - 1 :])
    return [Run(start, later[0].start - 1 if later else None), *later]


def is_complete(handle: Any, series: Series, run: Run) -> bool:
    """Whether a run has come to where the one after it begins."""
    named = complete_name(series, run.start)
    return run.bound is not None and handle.transaction_version(named) is not None


def _reaches(tables: Tables, handle: Any, series: Series, run: Run, moment: int) -> bool:
    """Whether nothing is missing between a run's rows and a moment."""
    if moment <= max(run.start, run.last or 0) or is_complete(handle, series, run):
        return True
    return any(one <= run.start and moment <= two + 1 for one, two in covered(tables, series))


def _run(
    tables: Tables, handle: Any, series: Series, held: Mapping[str, Any], bound: int | None
) -> Run:
    time, start = time_column(series.operation), held["_part"]
    last = held[f"{time}_max"]
    where = (ds.field("_part") == start) & (ds.field(time) == pa.scalar(last, _TIME))
    where = of_series(series.operation.type, series.subject) & where
    rows = tables.read(handle, ["_row", "_json"], where)
    again = rows.take(pc.sort_indices(rows, [("_row", "ascending")]))["_json"].to_pylist()
    return Run(start, bound, held["_row_count"], to_ms(last), tuple(one.encode() for one in again))


class Overlap:
    """The archived rows of a run's last moment, which must come again before any other.

    They are read as `decode` reads unknown fields, which takes numbers that are no floats.
    """

    def __init__(self, series: Series, run: Run) -> None:
        self._series = series
        self._again = [json.loads(text) for text in run.again]
        self._at = run.last
        self._time = time_on_wire(series.operation)

    def new(self, texts: Sequence[bytes]) -> Iterator[bytes]:
        """Give the rows that are not archived."""
        for text in texts:
            if not self._again:
                yield text
                continue
            came = json.loads(text)
            if _agree(self._again[0], came):
                del self._again[0]
                continue
            if came[self._time] != self._at:
                self.check()
            yield text

    @property
    def is_whole(self) -> bool:
        """Whether all of them came again."""
        return not self._again

    def check(self) -> None:
        """Refuse to go on where archived rows did not come again.

        Raises
        ------
        AnotherHistory
        """
        if self._again:
            raise AnotherHistory(
                f"{self._series.name}: {len(self._again)} archived rows of time {self._at} did not "
                "come again, so the service's history is another than before. Nothing was appended "
                "to them; look at both with tk.raw and Archive.frame, or begin a new archive"
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
