"""Whether an archive is whole: its files, its runs, and what its rows say of each other."""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.archive.freezing import contents
from toolkit.archive.layout import RECORDS, Origin, arrow_rows, columns_known
from toolkit.archive.series import Series, complete_name, key_columns, run_name
from toolkit.archive.status import histories, series_in
from toolkit.archive.tables import Tables, of_series
from toolkit.contract.operations import OPERATIONS
from toolkit.errors import ToolkitError
from toolkit.times import HOUR, MINUTE, iso

__all__ = ["Finding", "verify"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that `verify` found.

    Attributes
    ----------
    kind : str
        ``damage``, ``run``, ``typed``, ``duplicate``, ``order``, ``chain``, ``grid``, ``hours``,
        ``gap`` or ``digest``.
    severity : {"error", "notice"}
        A notice may have an innocent cause.
    table, series : str
        Where.
    what : str
        What is wrong.
    """

    kind: str
    severity: Literal["error", "notice"]
    table: str
    series: str
    what: str


def verify(tables: Tables, manifest: Mapping[str, Any] | None = None) -> list[Finding]:
    """Look for damage; see `Archive.verify`."""
    found: list[Finding] = []
    for name in tables.names():
        try:
            handle = tables.handle(name)
            found += _files(tables, handle, name)
            if name in RECORDS:
                for one in series_in(tables, name):
                    series = Series(OPERATIONS[one["operation"]], one["subject"], {})
                    found += _series(tables, handle, name, series)
                found += _gaps(tables, name)
            if manifest and contents(tables, name) != manifest[name]["digest"]:
                found.append(_error("digest", name, "", "the rows are not those that were frozen"))
        except ToolkitError as error:
            found.append(_error("damage", name, "", str(error)))
    return found


def _files(tables: Tables, handle: Any, name: str) -> Iterator[Finding]:
    """Read every file whole, and count its rows."""
    expected = sum(pa.table(handle.get_add_actions(flatten=True))["num_records"].to_pylist())
    read = sum(batch.num_rows for batch in tables.batches(handle))
    if read != expected:
        yield _error("damage", name, "", f"{read} rows in the files, {expected} in the log")


def _gaps(tables: Tables, name: str) -> Iterator[Finding]:
    """Name the histories that hold more than is proved complete: known, and no damage."""
    for one in histories(tables, name):
        if one["gaps"]:
            what = f"stretches that are not proved complete: {one['gaps']}; refresh again"
            yield Finding("gap", "notice", name, f"{one['operation']} {one['subject']}", what)


def _series(tables: Tables, handle: Any, name: str, series: Series) -> Iterator[Finding]:
    order = [*key_columns(series.operation), "_part", "_row"]
    rows = tables.read(handle, where=of_series(series.operation.type, series.subject))
    by_run = rows.take(pc.sort_indices(rows, [("_part", "ascending"), ("_row", "ascending")]))
    sort = [(one, "ascending") for one in order]
    in_order = rows.take(pc.sort_indices(rows, sort))
    where = (name, series.name)
    yield from _typed(series, rows, where)
    yield from _runs(handle, series, by_run, where)
    texts = in_order["_json"].to_pylist()
    wire = [msgspec.json.decode(text) for text in texts]
    yield from _duplicates(texts, wire, where)
    if check := _CHECKS.get(name):
        yield from check(wire, where)
    if name == "fills":
        yield from _chains(handle, series, in_order, wire, where)


Where = tuple[str, str]


def _typed(series: Series, rows: pa.Table, where: Where) -> Iterator[Finding]:
    """Compare the columns with the text they were made from."""
    texts = [text.encode() for text in rows["_json"].to_pylist()]
    made = arrow_rows(series, texts, 0, 0, Origin("", False, 0))
    current = _current(rows, where[0])
    for column in made.column_names:
        if column.startswith("_") or column not in rows.column_names:
            continue
        held = rows[column].cast(made[column].type)
        if held.equals(made[column]):
            continue
        said = pc.or_kleene(current, pc.is_valid(held))
        if held.filter(said).equals(made[column].filter(said)):
            what = f"column {column} lacks values that stand in the texts: it was not known then"
            yield Finding("typed", "notice", *where, what)
        else:
            yield _error("typed", *where, f"column {column} does not say what the texts say")


def _current(rows: pa.Table, name: str) -> Any:
    """Tell the rows that were written by a version that knew the same columns."""
    if "_columns" not in rows.column_names:
        return pa.array([False] * rows.num_rows)
    return pc.fill_null(pc.equal(rows["_columns"], columns_known(name)), False)


def _runs(handle: Any, series: Series, rows: pa.Table, where: Where) -> Iterator[Finding]:
    """Hold runs to have each row once, as many as the cursor says, in the order of time."""
    time = key_columns(series.operation)[0]
    runs: dict[int, list[tuple[int, Any]]] = {}
    for part, row, moment in zip(
        rows["_part"].to_pylist(), rows["_row"].to_pylist(), rows[time].to_pylist(), strict=True
    ):
        runs.setdefault(part, []).append((row, moment))
    for part, found in runs.items():
        numbers = [row for row, _ in found]
        said = handle.transaction_version(run_name(series, part))
        if numbers != list(range(len(numbers))):
            yield _error("run", *where, f"the run from {iso(part)} lacks or repeats rows")
        elif said != len(numbers):
            message = f"the run from {iso(part)} has {len(numbers)} rows; its cursor says {said}"
            yield _error("run", *where, message)
        moments = [moment for _, moment in found]
        if any(two < one for one, two in itertools.pairwise(moments)):
            yield _error("order", *where, f"the run from {iso(part)} goes back in time")


def _duplicates(texts: list[str], wire: list[Any], where: Where) -> Iterator[Finding]:
    counts = Counter(texts)
    for text, count in counts.items():
        if count > 1:
            row = wire[texts.index(text)]
            # A fill without a trade id, a ledger row, an order event may truly come twice.
            named = where[0] in ("funding", "slippage") or bool(row.get("tid"))
            severity: Literal["error", "notice"] = "error" if named else "notice"
            yield Finding("duplicate", severity, *where, f"{count} times: {text[:160]}")


def _chains(
    handle: Any, series: Series, rows: pa.Table, wire: list[Any], where: Where
) -> Iterator[Finding]:
    """Hold every perp fill to start from the position that the one before it left."""
    if series.operation.type != "userFillsByTime":
        return  # rows of a builder's users begin and end with approvals
    positions: dict[str, tuple[Decimal, int]] = {}
    for row, part in zip(wire, rows["_part"].to_pylist(), strict=True):
        coin = row["coin"]
        if coin[:1] in "@#" or "/" in coin:
            continue
        start = Decimal(row["startPosition"])
        before, run = positions.get(coin, (start, part))
        if before != start:
            what = (
                f"fills are missing before {coin} at {iso(row['time'])}: it starts from {start}, "
                f"not {before}"
            )
            # A refresh that was broken off before it reached a later run: known, and no loss.
            awaited = part != run and handle.transaction_version(complete_name(series, run)) is None
            severity: Literal["error", "notice"] = "notice" if awaited else "error"
            yield Finding("chain", severity, *where, what + (": refresh again" if awaited else ""))
        end = start + Decimal(row["sz"]) * (1 if row["side"] == "B" else -1)
        positions[coin] = (end, part)


def _hours(wire: list[Any], where: Where) -> Iterator[Finding]:
    """Hold a position that did not change to pay every hour, while its approval holds."""
    last: dict[tuple[str, str], tuple[int, str]] = {}
    for row in wire:
        key = (row.get("user", ""), row["delta"]["coin"])
        hour, szi = row["time"] // HOUR, row["delta"]["szi"]
        before = last.get(key)
        if before is not None and hour == before[0]:
            yield _error("hours", *where, f"{key[1]} paid twice in the hour of {iso(row['time'])}")
        elif before is not None and hour > before[0] + 1 and szi == before[1]:
            message = f"{key[1]} of {key[0]}: {hour - before[0] - 1} hours before"
            what = f"{message} {iso(row['time'])} have no row, though the position is the same"
            yield Finding("hours", "notice", *where, what)
        last[key] = (hour, szi)


def _grid(wire: list[Any], where: Where) -> Iterator[Finding]:
    """Hold samples to stand on every quarter hour."""
    times = [row["timestamp"] for row in wire]
    step = 15 * MINUTE
    for one, two in itertools.pairwise(times):
        if two - one != step:
            yield _error("grid", *where, f"from {iso(one)} to {iso(two)} is not one quarter hour")


_CHECKS: Final = {"funding": _hours, "slippage": _grid}


def _error(kind: str, table: str, series: str, what: str) -> Finding:
    return Finding(kind, "error", table, series, what)
