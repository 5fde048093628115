"""Whether an archive is whole: its files, its runs, and what its rows say of each other."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from toolkit.archive.checking import check, span
from toolkit.archive.digests import digest_of, written
from toolkit.archive.files import row_groups
from toolkit.archive.findings import Finding, error_in, notice_in
from toolkit.archive.held import Held
from toolkit.archive.layout import RECORDS, SCHEMAS, table_of
from toolkit.archive.pulls import Noted, Ranges, loss, noted, ranges_of
from toolkit.archive.status import Spans, histories
from toolkit.archive.tables import Tables
from toolkit.archive.troubles import Unreached, told
from toolkit.contract.operations import OPERATIONS

__all__ = ["Finding", "verify"]


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
