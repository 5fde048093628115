"""The checks of the rows of one history, for `Archive.verify`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.archive.pulls import is_run_complete
from toolkit.archive.read import RowSpan
from toolkit.archive.schemas import Series
from toolkit.completeness.row_checks import HistoryChecks, RowBreak
from toolkit.times import to_iso

__all__ = [
    "CHECKED_COLUMNS",
    "Finding",
    "check_history",
    "error_finding",
    "notice_finding",
    "span_of_rows",
]

CHECKED_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "fills": ("coin", "side", "tid", "px", "sz", "start_position", "fee", "fee_token", "oid"),
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


def check_history(handle: Any, name: str, series: Series, rows: pa.Table) -> Iterator[Finding]:
    """Check the rows of one history against each other and against the table's transactions.

    Parameters
    ----------
    handle
        The table. Its transactions state how many rows each run has.
    name
        The name of the table.
    series
        The history.
    rows
        Rows from `CollectedRows.histories`; times are milliseconds.
    """
    place, keys = (name, series.name), series.keys
    yield from _check_runs(handle, series, rows, place)
    sort_keys = [(column, "ascending") for column in (*keys, "_part", "_row")]
    ordered = rows.take(pc.sort_indices(rows, sort_keys))
    values = ordered.drop_columns(["_part", "_row"])
    checks = HistoryChecks(series.operation, series.parameters, identity=("_hash",))
    breaks = checks.add_page(dict(zip(values.column_names, values.columns, strict=True)))
    yield from _repeat_findings([found for found in breaks if found.kind == "repeat"], place)
    for found in breaks:
        # A gap in a chain that is no proof may be a transfer, or a builder's revoked approval.
        if found.kind != "repeat" and (found.is_certain or found.kind != "chain"):
            yield from _break_findings(handle, series, found, ordered, place)


def _repeat_findings(repeats: Sequence[RowBreak], place: Place) -> Iterator[Finding]:
    for make_finding, is_certain in ((error_finding, True), (notice_finding, False)):
        times = sorted(found.time for found in repeats if found.is_certain == is_certain)
        if times:
            first = ", ".join(map(to_iso, list(dict.fromkeys(times))[:_TIMES_SHOWN]))
            what = f"{len(times)} rows repeat an earlier row, first at {first}"
            yield make_finding(*place, "duplicate", what)


def _break_findings(
    handle: Any, series: Series, found: RowBreak, rows: pa.Table, place: Place
) -> Iterator[Finding]:
    """Yield the finding of a break.

    A break between two runs, of which the first is not pulled completely, is known, and a refresh
    fills it. For a grid, the gap between the proved ranges states the same.
    """
    runs, earlier = rows["_part"].to_numpy(), np.arange(found.row)
    for column, value in (("coin", found.coin), ("user", found.user)):
        if value and column in rows.column_names:
            is_same = pc.equal(rows[column][: found.row], value).to_numpy()
            earlier = earlier[is_same[earlier]]
    run = int(runs[found.row])
    run_before = int(runs[earlier[-1]]) if len(earlier) else run
    if run != run_before and not is_run_complete(handle, series, run_before):
        if found.kind != "grid":
            yield notice_finding(*place, found.kind, f"{found}: refresh again")
        return
    is_error = found.is_certain or found.kind == "grid"
    yield (error_finding if is_error else notice_finding)(*place, found.kind, str(found))


def span_of_rows(series: Series, rows: pa.Table) -> RowSpan:
    """Return the number of rows, and the time of the first and the last."""
    ends = pc.min_max(rows[series.keys[0]])
    return {"rows": rows.num_rows, "first": ends["min"].as_py(), "last": ends["max"].as_py()}


def _check_runs(handle: Any, series: Series, rows: pa.Table, place: Place) -> Iterator[Finding]:
    """Check that each run has each row once, as many as its transaction states, in time order."""
    columns = ("_part", "_row", series.keys[0])
    part, row, time = (rows[column].to_numpy() for column in columns)
    order = np.lexsort((row, part))
    starts, firsts = np.unique(part[order], return_index=True)
    for start, positions in zip(starts.tolist(), np.split(order, firsts[1:]), strict=True):
        count, run = len(positions), f"the run from {to_iso(start)}"
        logged = handle.transaction_version(series.run_transaction(start))
        if not np.array_equal(row[positions], np.arange(count)):
            yield error_finding(*place, "run", f"{run} lacks or repeats rows")
        elif logged != count:
            what = f"{run} has {count} rows, but its transaction states {logged}"
            yield error_finding(*place, "run", what)
        if np.any(np.diff(time[positions]) < 0):
            yield error_finding(*place, "order", f"{run} is not in time order")
