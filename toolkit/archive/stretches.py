"""Rows that are at hand: of which range they are all there are, and whether they join a run.

A recorded page may be cut inside its last group of one key. What it proves is what a reader would
keep of it (`toolkit.contract.paging`): everything before that group, or all of it where the page
is known to be the last. Rows beyond are kept as well; no range that is noted as complete has them.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolkit.archive.runs import Overlap, Run
from toolkit.archive.series import Series
from toolkit.contract.answers import decode
from toolkit.contract.operations import Operation
from toolkit.contract.paging import Reader, key_of
from toolkit.contract.requests import make_cursor, parse_cursor
from toolkit.errors import ArchiveError, Incomplete

__all__ = ["Stretch", "page_size"]

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Rows of a history that follow each other; make one with `of_page` or `of_whole`.

    Attributes
    ----------
    series : Series
        Whose.
    texts : sequence of bytes
        The JSON text of each row.
    keys : sequence of tuple
        The key of each, ascending.
    after : tuple or None
        The cursor that they follow; None where they begin with a time.
    start, until : int
        Of which range, both ends inclusive, they are all there are; none if it ends before it
        begins.
    """

    series: Series
    texts: Sequence[bytes]
    keys: Sequence[Key]
    after: Key | None
    start: int
    until: int

    @classmethod
    def of_page(cls, series: Series, texts: Sequence[bytes], asked: Mapping[str, Any]) -> "Stretch":
        """Take one page, as a request with these parameters was answered.

        Raises
        ------
        ArchiveError
            If the rows do not ascend.
        """
        rows = _rows(series.operation, texts)
        made = _made(series, texts, rows, asked)
        is_whole = _ends_whole(series.operation, rows, made.after, asked)
        return made if is_whole else replace(made, until=made.until - 1)

    @classmethod
    def of_whole(
        cls, series: Series, texts: Sequence[bytes], asked: Mapping[str, Any]
    ) -> "Stretch":
        """Take rows of which it is known that none is missing, up to the last.

        Raises
        ------
        ArchiveError
            If the rows do not ascend.
        """
        return _made(series, texts, _rows(series.operation, texts), asked)

    def new_run(self) -> tuple[Run, list[bytes]]:
        """Begin a run, and give its rows."""
        return Run(self.start, None), self._from(self.start)

    def beyond(self, run: Run, proved: int) -> list[bytes]:
        """Give the rows that a run lacks.

        Parameters
        ----------
        run : Run
            The last run of the series, with rows.
        proved : int
            Up to when it is known to be complete.

        Raises
        ------
        ArchiveError
            If rows may be missing between, or archived rows are not among these.
        """
        operation = self.series.operation
        archived = [key_of(operation)(row) for row in _rows(operation, run.again)]
        if self.until < run.start:
            raise ArchiveError(
                f"{self.series.name}: the rows end before what is archived begins: ingest the "
                "oldest page first, or refresh with an earlier start"
            )
        if not self._joins(archived[-1], proved):
            where = make_cursor(self.after) if self.after else self.start
            raise ArchiveError(
                f"{self.series.name}: the rows begin at {where}, and what is archived is complete "
                f"up to {proved} only, with a gap between: refresh instead"
            )
        again = [text for text, key in zip(run.again, archived, strict=True) if self._shows(key)]
        overlap = Overlap(self.series, replace(run, again=tuple(again)))
        new = list(overlap.new(self._from(archived[-1][0])))
        if new:  # else the rows may end where the archive goes on
            overlap.check()
        return new

    def _from(self, time: int) -> list[bytes]:
        return [text for text, key in zip(self.texts, self.keys, strict=True) if key[0] >= time]

    def _joins(self, last: Key, proved: int) -> bool:
        """Whether nothing can be missing between the archived rows and these.

        The last archived group may be cut: then only what shows it whole joins on.
        """
        return self._shows(last) or self.start <= proved + 1

    def _shows(self, key: Key) -> bool:
        """Whether every row of this key, or a later one, would be among these.

        Nobody says whether a page begins with its cursor's rows; if they came, it does.
        """
        if self.after is None:
            return bool(key[0] >= self.start)
        return key > self.after or (key == self.after and key in self.keys[:1])


def page_size(operation: Operation, asked: Mapping[str, Any]) -> int | None:
    """Give the most rows that the page of a request holds; None where nobody says."""
    page = operation.page
    if page is None:
        return None
    asked_for: int = asked.get(page.python) or page.default
    return asked_for if page.most is None else min(asked_for, page.most)


def _made(
    series: Series, texts: Sequence[bytes], rows: Sequence[Any], asked: Mapping[str, Any]
) -> Stretch:
    keys = list(map(key_of(series.operation), rows))
    if any(two < one for one, two in itertools.pairwise(keys)):
        raise ArchiveError(f"{series.name}: the rows do not ascend in time")
    after, start = None, asked.get("start")
    if asked.get("cursor"):
        after = parse_cursor(series.operation, asked["cursor"])
        start = int(after[0]) + 1  # of the cursor's own moment only a part comes after it
    elif start is None:
        start = keys[0][0] if keys else 0
    until = keys[-1][0] if keys else start - (after is not None)
    return Stretch(series, texts, keys, after, start, until)


def _ends_whole(
    operation: Operation, rows: Sequence[Any], after: Key | None, asked: Mapping[str, Any]
) -> bool:
    """Whether the last group of a page is whole, as far as one who reads on could tell."""
    size = page_size(operation, asked)
    try:
        return Reader(operation, size, size, kept=after).read(rows).stop == len(rows)
    except Incomplete:
        return False


def _rows(operation: Operation, texts: Sequence[bytes]) -> Sequence[Any]:
    rows: Sequence[Any] = decode(operation, 200, {}, b"[%b]" % b",".join(texts))
    return rows
