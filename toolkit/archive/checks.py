"""The checks of the rows of one history, for `Archive.verify`."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.archive.pulls import is_run_complete
from toolkit.archive.read import RowSpan
from toolkit.archive.schemas import Series
from toolkit.contract.operations import Operation
from toolkit.contract.records import Fill
from toolkit.times import HOUR, to_iso

__all__ = [
    "Finding",
    "check_history",
    "error_finding",
    "has_position_chains",
    "notice_finding",
    "span_of_rows",
]

_ROWS_AT_ONCE: Final = 20_000
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
    handle : DeltaTable
        The table. Its transactions state how many rows each run has.
    name : str
        The name of the table.
    series : Series
        The history.
    rows : pyarrow.Table
        Rows from `CollectedRows.histories`; times are milliseconds.
    """
    place, keys = (name, series.name), series.keys
    yield from _check_runs(handle, series, rows, place)
    sort_keys = [(column, "ascending") for column in (*keys, "_part", "_row")]
    ordered = rows.take(pc.sort_indices(rows, sort_keys))
    yield from _check_duplicates(ordered, keys, place)
    if check := _TABLE_CHECKS.get(name):
        yield from check(handle, series, ordered, place)


def span_of_rows(series: Series, rows: pa.Table) -> RowSpan:
    """Return the number of rows, and the time of the first and the last."""
    ends = pc.min_max(rows[series.keys[0]])
    return {"rows": rows.num_rows, "first": ends["min"].as_py(), "last": ends["max"].as_py()}


def _iterate_rows(rows: pa.Table, *columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield rows as tuples, and convert only a part of the table at once."""
    for batch in rows.select(columns).to_batches(_ROWS_AT_ONCE):
        arrays = [
            array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
            for array in batch.columns
        ]
        yield from zip(*(array.to_pylist() for array in arrays), strict=True)


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


def _check_duplicates(rows: pa.Table, keys: list[str], place: Place) -> Iterator[Finding]:
    """Report rows that are equal to an earlier row."""
    hashes = rows["_hash"].to_numpy()
    order = np.argsort(hashes, kind="stable")
    sorted_hashes = hashes[order]
    repeated = rows.take(np.sort(order[1:][sorted_hashes[1:] == sorted_hashes[:-1]]))
    # Two equal fills without a trade id, ledger rows or order events can both be real.
    is_unique = np.full(repeated.num_rows, place[0] in ("funding", "slippage"))
    if "tid" in repeated.column_names:
        is_unique = pc.fill_null(repeated["tid"], 0).to_numpy() != 0
    for make_finding, chosen in ((error_finding, is_unique), (notice_finding, ~is_unique)):
        times = repeated[keys[0]].to_numpy()[chosen]
        if len(times):
            first = ", ".join(map(to_iso, np.unique(times)[:_TIMES_SHOWN].tolist()))
            what = f"{len(times)} rows repeat an earlier row, first at {first}"
            yield make_finding(*place, "duplicate", what)


def has_position_chains(operation: Operation) -> bool:
    """Return whether the fills of an operation are all fills of one account.

    A builder's history has only the fills between approval and revocation, so its fills do not
    form a chain.
    """
    return operation.tables[0].record is Fill and operation.subject == ("user",)


def _check_position_chains(
    handle: Any, series: Series, rows: pa.Table, place: Place
) -> Iterator[Finding]:
    """Check that each perp fill starts from the position that the previous fill left."""
    if not has_position_chains(series.operation):
        return
    positions: dict[str, tuple[Decimal, int]] = {}
    columns = ("coin", "side", "time", "_part", "_start_position", "_sz")
    for coin, side, time, part, start_text, size in _iterate_rows(rows, *columns):
        if coin[:1] in "@#" or "/" in coin:  # spot
            continue
        if start_text is None:  # the text of the row cannot be read
            positions.clear()
            continue
        start = Decimal(start_text)
        expected, run = positions.get(coin, (start, part))
        if expected != start:
            what = (
                f"fills are missing before {coin} at {to_iso(time)}: it starts from {start}, "
                f"not {expected}"
            )
            if _is_between_runs(handle, series, run, part):
                yield notice_finding(*place, "chain", f"{what}: refresh again")
            else:
                yield error_finding(*place, "chain", what)
        positions[coin] = (start + Decimal(size) * (1 if side == "B" else -1), part)


def _is_between_runs(handle: Any, series: Series, run: int, next_run: int) -> bool:
    """Return whether a gap lies between two runs, of which the first is not pulled completely.

    Such a gap is known, and a refresh fills it.
    """
    return next_run != run and not is_run_complete(handle, series, run)


def _check_funding_hours(
    handle: Any, series: Series, rows: pa.Table, place: Place
) -> Iterator[Finding]:
    """Check that a position that does not change has a funding payment in each hour.

    A row that sums up n payments covers n hours (docs/live_service.md, section 5).
    """
    last: dict[tuple[str, str], tuple[int, float]] = {}
    columns = ["user", "coin", "time", "szi"]
    if "n_samples" in rows.column_names:
        columns.append("n_samples")
    for user, coin, time, szi, *samples in _iterate_rows(rows, *columns):
        key, hour = (user, coin), time // HOUR
        first_hour = hour - (samples[0] or 1 if samples else 1) + 1
        previous = last.get(key)
        if previous is not None and hour == previous[0]:
            what = f"{coin} of {user} has two payments in the hour of {to_iso(time)}"
            yield error_finding(*place, "hours", what)
        elif previous is not None and first_hour > previous[0] + 1 and szi == previous[1]:
            what = (
                f"{coin} of {user}: {first_hour - previous[0] - 1} hours before {to_iso(time)} "
                "have no row, although the position is the same"
            )
            yield notice_finding(*place, "hours", what)
        last[key] = (hour, szi)


def _check_sample_grid(
    handle: Any, series: Series, rows: pa.Table, place: Place
) -> Iterator[Finding]:
    """Check that there is a sample at each point of the operation's grid."""
    if series.operation.grid is None:
        return
    step = series.operation.grid.step
    samples = _iterate_rows(rows, series.keys[0], "_part")
    for (earlier, run), (later, next_run) in itertools.pairwise(samples):
        if later - earlier != step and not _is_between_runs(handle, series, run, next_run):
            what = f"from {to_iso(earlier)} to {to_iso(later)} is not one step of the grid"
            yield error_finding(*place, "grid", what)


_TABLE_CHECKS: Final[dict[str, Callable[..., Iterator[Finding]]]] = {
    "fills": _check_position_chains,
    "funding": _check_funding_hours,
    "slippage": _check_sample_grid,
}
