"""Whether an archive is whole: its files, its runs, and what its rows say of each other."""

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.archive.checks import Finding, check, error_in, notice_in, row_groups, span
from toolkit.archive.coverage import Noted, Ranges, Spans, histories, loss, noted, ranges_of
from toolkit.archive.errors import Unreached, told
from toolkit.archive.schemas import (
    ANSWERS,
    RECORDS,
    SCHEMAS,
    Origin,
    arrow_rows,
    columns_known,
    table_of,
)
from toolkit.archive.series import Series, key_columns
from toolkit.archive.storage import Tables, digest_of, written
from toolkit.contract.operations import OPERATIONS

__all__ = ["Held", "verify"]


def verify(
    tables: Tables,
    manifest: Mapping[str, Any] | None = None,
    progress: Callable[[int], object] | None = None,
) -> list[Finding]:
    """Look for damage; see `Archive.verify`.

    Parameters
    ----------
    tables : Tables
        The archive.
    manifest : mapping, optional
        What a freeze names.
    progress : callable, optional
        Is told how many rows were read.

    Raises
    ------
    ArchiveError
        If the store cannot be reached.
    """
    found: list[Finding] = []
    notes: tuple[Noted, Ranges] | None = None
    with contextlib.suppress(Exception):  # what is wrong with the table of notes is found below
        # before the rows: more of them may come meanwhile
        notes = noted(tables), ranges_of(tables)
    for name in SCHEMAS:
        one = _Table(tables, name, (manifest or {}).get(name), notes, progress)
        try:
            for finding in one.findings():
                found.append(finding)
        except Unreached:
            raise
        except Exception as error:  # whatever damage makes a reader stumble over
            found.append(error_in(name, "", "damage", told(error)))
    return list(dict.fromkeys(found))


class _Table:
    """Looks at one table."""

    def __init__(
        self,
        tables: Tables,
        name: str,
        frozen: Mapping[str, Any] | None,
        notes: tuple[Noted, Ranges] | None,
        progress: Callable[[int], object] | None,
    ) -> None:
        self._tables = tables
        self._name = name
        self._frozen = frozen
        self._ranges = notes[1] if notes else None
        self._notes = {
            pair: rows
            for pair, rows in (notes[0] if notes else {}).items()
            if pair[0] in OPERATIONS and table_of(OPERATIONS[pair[0]]) == name
        }
        self._progress = progress

    def findings(self) -> Iterator[Finding]:
        """Read it once, and then hold what was read against log, notes and itself."""
        handle = self._tables.handle(self._name)
        if handle is None:
            if self._notes or self._frozen:
                yield self._error("lost", "the table is not there, and notes or the freeze name it")
            return
        held, digest = Held(self._name), 0
        damage: list[str] = []
        for rows in row_groups(self._tables, handle, damage.append):
            digest += digest_of(rows)
            yield from held.add(rows)
            if self._progress is not None:
                self._progress(rows.num_rows)
        for one in damage:
            yield self._error("damage", one)
        yield from self._digests(handle, written(digest))
        for pair, kept in self._notes.items():
            if what := loss(held.counts[pair], kept):
                yield error_in(self._name, " ".join(pair), "lost", what)
        spans = {}
        for series, kept in held.series():
            yield from check(handle, self._name, series, kept)
            spans[series.operation.type, series.subject] = span(series, kept)
        if self._name in RECORDS and self._ranges is not None:
            yield from self._gaps(spans, self._ranges)

    def _digests(self, handle: Any, digest: str) -> Iterator[Finding]:
        """Compare the rows with what each commit appended, and with the freeze."""
        # It gives the commits that came later as well, and numbers them by the version opened.
        commits = handle.history()[::-1][: handle.version() + 1]
        told = [one.get("digest") for one in commits if one["operation"] == "WRITE"]
        # Archives of older versions do not say it of every commit, and of a folder with # or ? in
        # its name deltalake gives no commits at all.
        if told and all(told) and written(sum(int(one, 16) for one in told)) != digest:
            yield self._error("digest", "the rows are not those that were appended")
        if self._frozen and self._frozen["digest"] != digest:
            yield self._error("digest", "the rows are not those that were frozen")

    def _gaps(self, spans: Spans, ranges: Ranges) -> Iterator[Finding]:
        """Name the histories that hold more than is proved complete: known, and no damage."""
        for one in histories(self._name, spans, ranges):
            if one["gaps"]:
                series = f"{one['operation']} {one['subject']}"
                what = f"stretches that are not proved complete: {one['gaps']}; refresh again"
                yield notice_in(self._name, series, "gap", what)

    def _error(self, kind: str, what: str) -> Finding:
        return error_in(self._name, "", kind, what)


_KEPT: Final[Mapping[str, tuple[str, ...]]] = {
    "fills": ("coin", "side", "tid"),
    "funding": ("user", "coin", "szi", "n_samples"),
}
_REPEATED: Final = ("coin", "user", "side")  # few values, many rows


class _Position(msgspec.Struct, rename="camel"):
    """What a fill says of a position, to the last digit."""

    start_position: str
    sz: str


class Held:
    """Takes a table's rows, some at a time, and gives them by series.

    Parameters
    ----------
    name : str
        The table.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.counts: dict[tuple[str, str], int] = defaultdict(int)
        self._kept: dict[tuple[str, str], list[pa.Table]] = defaultdict(list)

    def add(self, rows: pa.Table) -> Iterator[Finding]:
        """Take rows; tell of columns that say something else than their texts."""
        if self.name not in (*RECORDS, ANSWERS):
            return
        for type in pc.unique(rows["_operation"]).to_pylist():
            one = OPERATIONS.get(type)
            if one is None or table_of(one) != self.name:
                yield error_in(self.name, "", "damage", f"rows of an operation {type!r}")
                continue
            of_it = rows.filter(pc.field("_operation") == type)
            if self.name != ANSWERS:
                yield from _typed(self.name, Series(one, "", {}), of_it)
            self._keep(type, of_it)

    def series(self) -> Iterator[tuple[Series, pa.Table]]:
        """Give what is kept of each history."""
        for (type, subject), parts in sorted(self._kept.items()):
            yield Series(OPERATIONS[type], subject, {}), pa.concat_tables(parts)

    def _keep(self, type: str, rows: pa.Table) -> None:
        kept = rows.select(["_subject"]) if self.name == ANSWERS else _slim(self.name, type, rows)
        for subject in pc.unique(rows["_subject"]).to_pylist():
            of_it = kept.filter(pc.field("_subject") == subject).drop_columns(["_subject"])
            self.counts[type, subject] += of_it.num_rows
            if self.name != ANSWERS:
                self._kept[type, subject].append(of_it)


def _slim(name: str, type: str, rows: pa.Table) -> pa.Table:
    order = [*key_columns(OPERATIONS[type]), "_part", "_row"]
    # An archive of an older version may lack a column.
    more = [column for column in _KEPT.get(name, ()) if column in rows.column_names]
    kept = rows.select(list(dict.fromkeys(["_subject", *order, *more])))
    for at, column in enumerate(kept.column_names):
        if column in _REPEATED and column not in order:  # one cannot sort by dictionaries
            kept = kept.set_column(at, column, kept[column].dictionary_encode())
        elif pa.types.is_timestamp(kept[column].type):
            moments = kept[column].cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
            kept = kept.set_column(at, column, moments)
    texts = rows["_json"].to_pylist()
    hashes = np.fromiter(map(hash, texts), np.int64, len(texts))
    kept = kept.append_column("_hash", pa.array(hashes))
    if type != "userFillsByTime":
        return kept
    found = _positions(texts)
    for field in ("start_position", "sz"):
        values = pa.array([one and getattr(one, field) for one in found], pa.string())
        kept = kept.append_column(f"_{field}", values)
    return kept


def _positions(texts: list[str]) -> list[_Position | None]:
    """Read what fills say of positions; None where a text cannot be read."""
    try:
        return list(msgspec.json.decode(f"[{','.join(texts)}]", type=list[_Position]))
    except (msgspec.DecodeError, TypeError):
        return [None] * len(texts)  # said by `_typed`


def _typed(name: str, series: Series, rows: pa.Table) -> Iterator[Finding]:
    """Compare the columns with the text they were made from."""
    type = series.operation.type
    try:
        texts = rows["_json"].cast(pa.binary()).to_pylist()
        made = arrow_rows(series, texts, 0, 0, Origin("", False, 0))
    except Exception as error:  # whatever a damaged text makes a reader stumble over
        for subject in pc.unique(rows["_subject"]).to_pylist():
            what = f"a text cannot be read: {told(error)}"
            yield error_in(name, f"{type} {subject}", "damage", what)
        return
    current = _current(rows, name)
    for column in made.column_names:
        if column.startswith("_") or column not in rows.column_names:
            continue
        held = rows[column]
        if held.equals(made[column]):
            continue
        other = pc.invert(pc.fill_null(pc.equal(held, made[column]), False))
        other = pc.and_(other, pc.or_(pc.is_valid(held), pc.is_valid(made[column])))
        # What an older version did not know is missing; whatever is there must be right.
        wrong = pc.and_(other, pc.or_(current, pc.is_valid(held)))
        for subject in pc.unique(rows["_subject"].filter(wrong)).to_pylist():
            what = f"column {column} does not say what the texts say"
            yield error_in(name, f"{type} {subject}", "typed", what)
        unknown = pc.and_(other, pc.invert(pc.or_(current, pc.is_valid(held))))
        for subject in pc.unique(rows["_subject"].filter(unknown)).to_pylist():
            what = f"column {column} lacks values that stand in the texts: it was not known then"
            yield notice_in(name, f"{type} {subject}", "typed", what)


def _current(rows: pa.Table, name: str) -> Any:
    """Tell the rows that were written by a version that knew the same columns."""
    if "_columns" not in rows.column_names:
        return pa.array([False] * rows.num_rows)
    return pc.fill_null(pc.equal(rows["_columns"], columns_known(name)), False)
