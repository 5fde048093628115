"""Paging that is right however the service reads a cursor.

A cursor names a transaction, not a row: a page can end inside one. Nobody says whether the
service goes on after the cursor or from it. So a reader keeps a page's rows only up to its
last complete key group, goes on from that group's key, and drops the keys it already has:
right under both readings. Everything here is pure: a `PageReader` is told of a page and says
which rows to keep and what to ask next.
"""

import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from toolkit.contract.operations import Operation
from toolkit.contract.requests import make_cursor
from toolkit.errors import AnswerInvalid, Incomplete

__all__ = ["PageDecision", "PageReader", "key_getter", "page_reader"]

Key = tuple[Any, ...]

# ASSUMED: where a page has no size, one of 500 rows or more may have been cut by the service.
_SILENT_CUT: Final = 500


@dataclass(frozen=True, slots=True)
class PageDecision:
    """What to do with a page.

    Attributes
    ----------
    start, stop : int
        The rows to keep, as a slice of the page.
    after : mapping or None
        Parameters to change for the next request; None at the end.
    """

    start: int
    stop: int
    after: Mapping[str, Any] | None


@dataclass(slots=True)
class PageReader:
    """Reads an operation page by page. Make one with `page_reader`.

    Attributes
    ----------
    operation : Operation
        What is read.
    size : int or None
        Rows asked for with a page; None where the operation has no page size.
    most : int or None
        The largest page that the service gives.
    bound : int or None
        The time at which a range that is paged by time ends.
    kept : tuple or None
        Key of the last complete group; every row up to it has been kept.
    ties : int
        How many groups were cut by the end of a page, and read again.
    by_time : bool
        Whether rows lack a part of their key. Then the pull goes on from times, not from cursors.
    """

    operation: Operation
    size: int | None
    most: int | None
    bound: int | None = None
    kept: Key | None = None
    ties: int = 0
    by_time: bool = False
    _held: tuple[Key, int] | None = None

    def read(self, rows: Sequence[Any]) -> PageDecision:
        """Take the next page.

        Raises
        ------
        AnswerInvalid
            If the rows are not in the operation's order, or lack a part of their key that the rows
            of earlier pages have.
        Incomplete
            If a page is full of rows with one key, so that no cursor leads past it.
        """
        if self.operation.paging == "none":
            return PageDecision(0, len(rows), None)
        keys = self._keys(rows)
        self._check_order(keys)
        start = 0
        while start < len(keys) and not self._is_new(keys[start]):
            start += 1
        if self._is_last(keys, start):
            return PageDecision(start, len(keys), None)
        cut = len(keys)
        while cut > start and keys[cut - 1] == keys[-1]:
            cut -= 1
        if cut == start:
            return self._one_group(keys, start)
        self.ties += 1
        self.kept = keys[cut - 1]
        self._held = (keys[-1], len(keys) - cut)
        return PageDecision(start, cut, self._from(keys[cut - 1], keys[-1]))

    def _keys(self, rows: Sequence[Any]) -> list[Key]:
        """Return the keys of rows; their times alone if a part of a key is missing."""
        keys = list(map(key_getter(self.operation), rows))
        lacking = next((row for row, key in enumerate(keys) if None in key), None)
        if lacking is not None and not self.by_time:
            if self.kept is not None:
                raise AnswerInvalid(
                    f"the row lacks a part of {', '.join(self.operation.key)}, which rows of "
                    "earlier pages have, so its place is not known. Ask for this time separately",
                    operation=self.operation.type,
                    row=lacking,
                )
            self.by_time = True
        return [key[:1] for key in keys] if self.by_time else keys

    @property
    def _has_cursors(self) -> bool:
        return self.operation.paging in ("cursor", "open cursor") and not self.by_time

    def _is_new(self, key: Key) -> bool:
        if self.kept is None:
            return True
        return key < self.kept if self.operation.paging == "backward" else key > self.kept

    def _is_last(self, keys: list[Key], start: int) -> bool:
        if self.operation.paging == "cursor":
            return self.size is not None and len(keys) < self.size
        # Nobody says how long a page is: the end is where nothing comes but the group that the
        # page before ended with.
        only_held = self._held == (keys[-1], len(keys) - start) if keys else True
        return start == len(keys) or (only_held and keys[start] == keys[-1])

    def _one_group(self, keys: list[Key], start: int) -> PageDecision:
        """Go on where every new row of a page has the same key."""
        if len(keys) < (_SILENT_CUT if self.size is None else self.size):
            self.kept = keys[-1]
            return PageDecision(start, len(keys), self._past(keys[-1]))
        if 0 < start < len(keys) and self._has_cursors:
            # The cursor's own rows came again and took the room: cursors are inclusive here, so
            # the next page can begin with this group.
            return PageDecision(start, start, {"cursor": make_cursor(keys[-1])})
        page = self.operation.page
        if page is not None and self.size is not None and self.size < (self.most or 0):
            # A larger page may hold the whole group.
            self.size = min(self.size * 2, self.most or self.size)
            return PageDecision(start, start, {page.python: self.size})
        raise Incomplete(
            f"{self.operation.type}: a full page of {len(keys)} rows has one key, "
            f"{make_cursor(keys[-1])}; no cursor leads past it, so the rows after it cannot be "
            "had. Ask for what lies before and after that time separately",
            cursor=None if self.kept is None or self.by_time else make_cursor(self.kept),
        )

    def _from(self, complete: Key, last: Key) -> dict[str, Any]:
        """Ask for the group that may be cut once more: after the one before, or from its time."""
        if self._has_cursors:
            return {"cursor": make_cursor(complete)}
        return self._at(last[0])

    def _past(self, key: Key) -> dict[str, Any] | None:
        """Ask for what comes after a group that is known to be complete."""
        if self._has_cursors:
            return {"cursor": make_cursor(key)}
        if self.bound is not None and key[0] == self.bound:
            return None
        return self._at(key[0] + (-1 if self._edge == "end" else 1))

    def _at(self, time: int) -> dict[str, Any]:
        """Ask from a time; a cursor, where there was one, would count instead of it."""
        return {self._edge: time, **({"cursor": None} if self.by_time else {})}

    @property
    def _edge(self) -> str:
        return "end" if self.operation.paging == "backward" else "start"

    def _check_order(self, keys: list[Key]) -> None:
        ordered = operator.ge if self.operation.paging == "backward" else operator.le
        for row, (one, two) in enumerate(itertools.pairwise(keys)):
            if not ordered(one, two):
                raise AnswerInvalid(
                    f"rows are not in the order of {', '.join(self.operation.key)}: "
                    f"{make_cursor(two)} follows {make_cursor(one)}",
                    operation=self.operation.type,
                    column=self.operation.key[0],
                    row=row + 1,
                )


def page_reader(operation: Operation, parameters: Mapping[str, Any]) -> PageReader:
    """Make a reader for a request with these parameters, in Python names."""
    page = operation.page
    bound = parameters.get("start" if operation.paging == "backward" else "end")
    if page is None or operation.paging == "none":
        return PageReader(operation, None, None, bound)
    return PageReader(operation, parameters.get(page.python) or page.default, page.most, bound)


def key_getter(operation: Operation) -> Callable[[Any], Key]:
    """Give what reads the key off a row; rows of operations without order have none."""
    if not operation.key:
        return lambda row: ()
    if len(operation.key) == 1:
        one = operator.attrgetter(operation.key[0])
        return lambda row: (one(row),)
    return operator.attrgetter(*operation.key)
