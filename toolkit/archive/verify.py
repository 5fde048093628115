"""Verify the tables of an archive: read each once, then compare it with its log and itself."""

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.archive.checks import (
    Finding,
    check_history,
    error_finding,
    has_position_chains,
    notice_finding,
    read_row_groups,
    span_of_rows,
)
from toolkit.archive.coverage import (
    CoveredRanges,
    RowCounts,
    history_summaries,
    logged_row_counts,
    missing_rows_message,
    read_covered_ranges,
)
from toolkit.archive.errors import StoreUnreachable, error_text
from toolkit.archive.schemas import (
    ANSWERS,
    RECORDS,
    RowOrigin,
    arrow_rows,
    column_set_id,
    operation_table,
)
from toolkit.archive.series import Series, key_columns
from toolkit.archive.storage import ArchiveTables, digest_rows, format_digest
from toolkit.contract.operations import OPERATIONS

__all__ = ["LoggedState", "read_logged_state", "verify_table"]

# The columns that the checks of a history need, in addition to its key.
_CHECKED_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "fills": ("coin", "side", "tid"),
    "funding": ("user", "coin", "szi", "n_samples"),
}
_REPETITIVE_COLUMNS: Final = ("coin", "user", "side")  # few values, many rows


@dataclass(frozen=True, slots=True)
class LoggedState:
    """What the log of refreshes states.

    Attributes
    ----------
    counts : RowCounts
        How many rows each series must have.
    ranges : CoveredRanges or None
        The complete ranges of each series; None if the log cannot be read.
    """

    counts: RowCounts
    ranges: CoveredRanges | None


def read_logged_state(tables: ArchiveTables) -> LoggedState:
    """Return what the log states; nothing if it cannot be read.

    Call it before you read the rows: rows may be added meanwhile. If the log is damaged, the
    check of its own table reports that.
    """
    with contextlib.suppress(Exception):
        return LoggedState(logged_row_counts(tables), read_covered_ranges(tables))
    return LoggedState({}, None)


def verify_table(
    tables: ArchiveTables,
    name: str,
    logged: LoggedState,
    frozen: Mapping[str, Any] | None,
    progress: Callable[[int], object] | None,
) -> Iterator[Finding]:
    """Yield the faults of one table.

    Parameters
    ----------
    tables : ArchiveTables
        The archive.
    name : str
        The table.
    logged : LoggedState
        What the log states.
    frozen : mapping or None
        The table's entry in the manifest of a freeze.
    progress : callable or None
        Called with a number of rows after they were read.

    Raises
    ------
    StoreUnreachable
        If the store cannot be reached.
    """
    try:
        yield from _check_table(tables, name, logged, frozen, progress)
    except StoreUnreachable:
        raise
    except Exception as error:  # damaged files can raise anything
        yield error_finding(name, "", "damage", error_text(error))


def _check_table(
    tables: ArchiveTables,
    name: str,
    logged: LoggedState,
    frozen: Mapping[str, Any] | None,
    progress: Callable[[int], object] | None,
) -> Iterator[Finding]:
    expected = {
        pair: count
        for pair, count in logged.counts.items()
        if pair[0] in OPERATIONS and operation_table(OPERATIONS[pair[0]]) == name
    }
    handle = tables.open_table(name)
    if handle is None:
        if expected or frozen:
            what = "the table does not exist, although the log or the freeze names it"
            yield error_finding(name, "", "lost", what)
        return
    collected, digest = CollectedRows(name), 0
    damage: list[str] = []
    for rows in read_row_groups(tables, handle, damage.append):
        digest += digest_rows(rows)
        yield from collected.add_rows(rows)
        if progress is not None:
            progress(rows.num_rows)
    for what in damage:
        yield error_finding(name, "", "damage", what)
    yield from _check_digests(handle, name, format_digest(digest), frozen)
    for pair, count in expected.items():
        if what := missing_rows_message(collected.counts[pair], count):
            yield error_finding(name, " ".join(pair), "lost", what)
    spans = {}
    for series, rows in collected.histories():
        yield from check_history(handle, name, series, rows)
        spans[series.operation.type, series.subject] = span_of_rows(series, rows)
    if name not in RECORDS or logged.ranges is None:
        return
    for history in history_summaries(name, spans, logged.ranges):
        if history["gaps"]:  # known, and no damage
            what = f"ranges that are not proved complete: {history['gaps']}; refresh again"
            series_name = f"{history['operation']} {history['subject']}"
            yield notice_finding(name, series_name, "gap", what)


def _check_digests(
    handle: Any, name: str, digest: str, frozen: Mapping[str, Any] | None
) -> Iterator[Finding]:
    """Compare the digest of the rows with the commits and with the freeze."""
    # history() returns later commits as well, and counts from the opened version.
    commits = handle.history()[::-1][: handle.version() + 1]
    digests = [commit.get("digest") for commit in commits if commit["operation"] == "WRITE"]
    # Older versions of the archive wrote no digests, and for a folder with # or ? in its name
    # deltalake returns no commits.
    if digests and all(digests):
        total = sum(int(commit_digest, 16) for commit_digest in digests)
        if format_digest(total) != digest:
            what = "the rows are not the rows that were appended"
            yield error_finding(name, "", "digest", what)
    if frozen and frozen["digest"] != digest:
        yield error_finding(name, "", "digest", "the rows are not the rows that were frozen")


class _FillPosition(msgspec.Struct, rename="camel"):
    """The position before a fill and the fill's size, with all digits."""

    start_position: str
    sz: str


class CollectedRows:
    """Collects what the checks need of a table's rows: some hundred bytes per row.

    The text of a row is checked once and not kept. A hash of the text is kept, the row's position,
    and the columns that the checks of a whole history need.

    Parameters
    ----------
    name : str
        The table.

    Attributes
    ----------
    counts : dict
        Operation and subject -> number of rows.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.counts: dict[tuple[str, str], int] = defaultdict(int)
        self._parts: dict[tuple[str, str], list[pa.Table]] = defaultdict(list)

    def add_rows(self, rows: pa.Table) -> Iterator[Finding]:
        """Add rows, and report columns that differ from the texts of the rows."""
        if self.name not in (*RECORDS, ANSWERS):
            return
        for type in pc.unique(rows["_operation"]).to_pylist():
            operation = OPERATIONS.get(type)
            if operation is None or operation_table(operation) != self.name:
                what = f"rows of an operation {type!r}"
                yield error_finding(self.name, "", "damage", what)
                continue
            of_operation = rows.filter(pc.field("_operation") == type)
            if self.name == ANSWERS:
                checked = of_operation.select(["_subject"])
            else:
                series = Series(operation, "", {})
                yield from _check_columns(self.name, series, of_operation)
                checked = _select_checked_columns(self.name, series, of_operation)
            for subject in pc.unique(of_operation["_subject"]).to_pylist():
                part = checked.filter(pc.field("_subject") == subject).drop_columns(["_subject"])
                self.counts[type, subject] += part.num_rows
                if self.name != ANSWERS:
                    self._parts[type, subject].append(part)

    def histories(self) -> Iterator[tuple[Series, pa.Table]]:
        """Yield each history with what was collected of its rows."""
        for (type, subject), parts in sorted(self._parts.items()):
            yield Series(OPERATIONS[type], subject, {}), pa.concat_tables(parts)


def _select_checked_columns(name: str, series: Series, rows: pa.Table) -> pa.Table:
    sort_keys = [*key_columns(series.operation), "_part", "_row"]
    # An archive of an older version may lack a column.
    more = [column for column in _CHECKED_COLUMNS.get(name, ()) if column in rows.column_names]
    checked = rows.select(list(dict.fromkeys(["_subject", *sort_keys, *more])))
    for index, column in enumerate(checked.column_names):
        # Arrow cannot sort by a dictionary column, so sort keys stay as they are.
        if column in _REPETITIVE_COLUMNS and column not in sort_keys:
            checked = checked.set_column(index, column, checked[column].dictionary_encode())
        elif pa.types.is_timestamp(checked[column].type):
            moments = checked[column].cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
            checked = checked.set_column(index, column, moments)
    texts = rows["_json"].to_pylist()
    hashes = np.fromiter(map(hash, texts), np.int64, len(texts))
    checked = checked.append_column("_hash", pa.array(hashes))
    if not has_position_chains(series.operation):
        return checked
    positions = _decode_positions(texts)
    for field in ("start_position", "sz"):
        values = [position and getattr(position, field) for position in positions]
        checked = checked.append_column(f"_{field}", pa.array(values, pa.string()))
    return checked


def _decode_positions(texts: list[str]) -> list[_FillPosition | None]:
    """Return the positions of fills. If a text cannot be decoded, all are None."""
    try:
        return list(msgspec.json.decode(f"[{','.join(texts)}]", type=list[_FillPosition]))
    except (msgspec.DecodeError, TypeError):
        return [None] * len(texts)  # `_check_columns` reports it


def _check_columns(name: str, series: Series, rows: pa.Table) -> Iterator[Finding]:
    """Compare the columns of rows with the texts from which they were made."""
    type = series.operation.type
    try:
        texts = rows["_json"].cast(pa.binary()).to_pylist()
        expected = arrow_rows(series, texts, 0, 0, RowOrigin("", False, 0))
    except Exception as error:  # damaged texts can raise anything
        for subject in pc.unique(rows["_subject"]).to_pylist():
            what = f"a text cannot be read: {error_text(error)}"
            yield error_finding(name, f"{type} {subject}", "damage", what)
        return
    if "_columns" in rows.column_names:
        is_current = pc.fill_null(pc.equal(rows["_columns"], column_set_id(name)), False)
    else:
        is_current = pa.array([False] * rows.num_rows)
    for column in expected.column_names:
        if column.startswith("_") or column not in rows.column_names:
            continue
        stored = rows[column]
        if stored.equals(expected[column]):
            continue
        differs = pc.invert(pc.fill_null(pc.equal(stored, expected[column]), False))
        differs = pc.and_(differs, pc.or_(pc.is_valid(stored), pc.is_valid(expected[column])))
        # A version that did not know a column left it empty. Any value that is there must match.
        must_match = pc.or_(is_current, pc.is_valid(stored))
        for subject in pc.unique(rows["_subject"].filter(pc.and_(differs, must_match))).to_pylist():
            what = f"column {column} differs from the texts of the rows"
            yield error_finding(name, f"{type} {subject}", "typed", what)
        unknown = pc.and_(differs, pc.invert(must_match))
        for subject in pc.unique(rows["_subject"].filter(unknown)).to_pylist():
            what = (
                f"column {column} lacks values that the texts have: the version that wrote the "
                "rows did not know it"
            )
            yield notice_finding(name, f"{type} {subject}", "typed", what)
