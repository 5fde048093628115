"""The checks of the rows of one history, for `Archive.verify`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.archive.pulls import is_run_complete
from toolkit.archive.schemas import Series
from toolkit.archive.storage import ArchiveTables
from toolkit.completeness.row_checks import HistoryChecks, RowBreak
from toolkit.times import to_iso

__all__ = [
    "CHECKED_COLUMNS",
    "Finding",
    "SeriesCheck",
    "error_finding",
    "notice_finding",
]

CHECKED_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "fills": (
        "user",
        "coin",
        "side",
        "tid",
        "px",
        "sz",
        "start_position",
        "fee",
        "fee_token",
        "oid",
    ),
    "funding": ("user", "coin", "szi", "n_samples"),
}
"""Table -> the columns that the checks of its rows need, in addition to its key."""

_TIMES_SHOWN: Final = 3
Place = tuple[str, str]
"""Table and series of a finding."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault that `Archive.verify` found.

    Attributes
    ----------
    kind : str
        ``damage``, ``lost``, ``run``, ``typed``, ``duplicate``, ``order``, ``chain``, ``grid``,
        ``hours``, ``gap`` or ``digest``.
    severity : {"error", "notice"}
        A notice may have a harmless cause.
    table, series : str
        Where it is.
    what : str
        What is wrong.
    """

    kind: str
    severity: Literal["error", "notice"]
    table: str
    series: str
    what: str


def error_finding(table: str, series: str, kind: str, what: str) -> Finding:
    """Return a finding that is certainly a fault."""
    return Finding(kind, "error", table, series, what)


def notice_finding(table: str, series: str, kind: str, what: str) -> Finding:
    """Return a finding that may have a harmless cause."""
    return Finding(kind, "notice", table, series, what)


class SeriesCheck:
    """The checks of one history against itself and the table's transactions.

    Parameters
    ----------
    tables : ArchiveTables
        The archive.
    handle : DeltaTable
        The table. Its transactions state how many rows each run has.
    name : str
        The name of the table.
    series : Series
        The history.
    """

    def __init__(self, tables: ArchiveTables, handle: Any, name: str, series: Series) -> None:
        self.series = series
        self._tables = tables
        self.span: dict[str, Any] = {"rows": 0, "first": None, "last": None}
        self._handle, self._place = handle, (name, series.name)
        self._checks = HistoryChecks(series.operation, series.parameters, identity=("_hash",))
        self._repeats: list[tuple[int, bool]] = []
        self._runs: dict[int, _RunRows] = {}
        # Of each coin and account the run of the last row, in the rows of earlier calls.
        self._last_runs = pd.DataFrame()
        self._previous: pa.Table | None = None

    def add_rows(self, rows: pa.Table) -> Iterator[Finding]:
        """Check the rows that follow in the order of the operation; times are milliseconds.

        All rows of one time must be in one call.
        """
        ends = pc.min_max(rows[self.series.keys[0]])
        first = self.span["first"]
        self.span = {
            "rows": self.span["rows"] + rows.num_rows,
            "first": ends["min"].as_py() if first is None else first,
            "last": ends["max"].as_py(),
        }
        columns = ("_part", "_row", self.series.keys[0])
        part, row, time = (rows[column].to_numpy() for column in columns)
        if self._previous is not None:
            self._last_runs = self._runs_before(self._previous)
        self._previous = rows.select([*self._subjects(rows), "_part"])
        for start in np.unique(part).tolist():
            is_of_run = part == start
            self._runs.setdefault(start, _RunRows()).add_rows(row[is_of_run], time[is_of_run])
        names = [name for name in rows.column_names if name not in ("_part", "_row")]
        breaks = self._checks.add_page({name: rows[name] for name in names})
        for found in breaks:
            if found.kind == "repeat":
                self._repeats.append((found.time, found.is_certain))
            # A gap in a chain that is no proof may be a transfer, or a builder's revoked approval.
            elif found.is_certain or found.kind != "chain":
                yield from self._break_findings(found, rows)

    def finish(self) -> Iterator[Finding]:
        """Yield the findings that need all rows."""
        yield from _repeat_findings(self._repeats, self._place)
        for start, run in sorted(self._runs.items()):
            what = f"the run from {to_iso(start)}"
            logged = self._tables.transaction(self._handle, self.series.run_transaction(start))
            if not run.is_whole:
                yield error_finding(*self._place, "run", f"{what} lacks or repeats rows")
            elif logged != run.count:
                what = f"{what} has {run.count} rows, but its transaction states {logged}"
                yield error_finding(*self._place, "run", what)
            if not run.is_ordered:
                what = f"the run from {to_iso(start)} is not in time order"
                yield error_finding(*self._place, "order", what)

    def _break_findings(self, found: RowBreak, rows: pa.Table) -> Iterator[Finding]:
        """Yield the finding of a break.

        A break between two runs, of which the first is not pulled completely, is known, and a
        refresh fills it. For a grid, the gap between the proved ranges states the same.
        """
        run, before = rows["_part"][found.row].as_py(), self._runs_before(rows.slice(0, found.row))
        for column, value in (("coin", found.coin), ("user", found.user)):
            if value and column in before:
                before = before[before[column] == value]
        run_before = int(before["_part"].iloc[-1]) if len(before) else run
        if run != run_before and not is_run_complete(
            self._tables, self._handle, self.series, run_before
        ):
            if found.kind != "grid":
                yield notice_finding(*self._place, found.kind, f"{found}: refresh again")
            return
        is_error = found.is_certain or found.kind == "grid"
        make_finding = error_finding if is_error else notice_finding
        yield make_finding(*self._place, found.kind, str(found))

    def _runs_before(self, rows: pa.Table) -> pd.DataFrame:
        """Return the last run of each coin and account, in order, up to the last of the rows."""
        subjects = self._subjects(rows)
        later: pd.DataFrame = rows.select([*subjects, "_part"]).to_pandas()
        runs = pd.concat([self._last_runs, later])
        return runs.drop_duplicates(subjects, keep="last") if subjects else runs.tail(1)

    def _subjects(self, rows: pa.Table) -> list[str]:
        return [name for name in ("coin", "user") if name in rows.column_names]


class _RunRows:
    """What is known of a run's rows, which come in the order of their times."""

    def __init__(self) -> None:
        self.count, self.is_ordered = 0, True
        self._last, self._sum, self._squares, self._is_distinct = -1, 0, 0, True

    def add_rows(self, row: Any, time: Any) -> None:
        """Add the positions and times of rows."""
        order = np.argsort(row, kind="stable")
        row = row[order]
        # Positions that ascend from call to call are distinct if those of each call are.
        self.is_ordered &= not np.any(np.diff(time[order]) < 0) and int(row[0]) > self._last
        self._is_distinct &= bool(np.all(np.diff(row) > 0)) and int(row[0]) >= 0
        self.count += len(row)
        self._last = max(self._last, int(row[-1]))
        self._sum += int(row.sum())
        self._squares += int((row.astype(np.uint64) ** 2).sum())

    @property
    def is_whole(self) -> bool:
        """Whether each position from 0 on is there once.

        If the positions do not ascend, their sum and the sum of their squares decide.
        """
        n = self.count
        sums = (n * (n - 1) // 2, n * (n - 1) * (2 * n - 1) // 6 % 2**64)
        is_same_sum = (self._sum, self._squares % 2**64) == sums
        return self._is_distinct and self._last == n - 1 and is_same_sum


def _repeat_findings(repeats: Sequence[tuple[int, bool]], place: Place) -> Iterator[Finding]:
    for make_finding, is_certain in ((error_finding, True), (notice_finding, False)):
        times = sorted(time for time, certain in repeats if certain == is_certain)
        if times:
            first = ", ".join(map(to_iso, list(dict.fromkeys(times))[:_TIMES_SHOWN]))
            what = f"{len(times)} rows repeat an earlier row, first at {first}"
            yield make_finding(*place, "duplicate", what)
