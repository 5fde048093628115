"""Paging: which rows of a page to keep, and what to request next.

A cursor names a transaction, not a row, so that a page can end inside a tie (rows with one key).
The specification does not say whether the service continues at the cursor or after it. Therefore a
`PageReader` keeps the rows of a page up to its last complete tie, continues from the key of that
tie (without a cursor: from the time of the cut tie), and drops rows with keys that it already has.
Paging works whether the service treats a cursor as inclusive or exclusive. This module does no
input or output.
"""

import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from toolkit.contract.operations import Operation
from toolkit.contract.requests import make_cursor
from toolkit.errors import AnswerInvalid, Incomplete

Key = tuple[Any, ...]

# ASSUMED: if the page size is not known, the service may have cut a page of 500 rows or more.
_SILENT_CUT: Final = 500


@dataclass(frozen=True, slots=True)
class PageDecision:
    """The rows of a page to keep, and the next request.

    - ``start``, ``stop``: the rows to keep, as a slice of the page
    - ``after``: the parameters that change in the next request; None at the end
    """

    start: int
    stop: int
    after: Mapping[str, Any] | None


@dataclass(slots=True)
class PageReader:
    """The state of reading an operation page by page; `page_reader` makes one.

    - ``operation``: the operation
    - ``size``: the requested rows of a page; None if the operation has no page size
    - ``most``: the largest page size
    - ``bound``: the time at which a range with paging by time ends
    - ``kept``: key of the last complete tie; the reader has kept every row up to it
    - ``ties``: the number of ties at the end of a page that were read again
    - ``by_time``: whether rows lack a part of their key. Then paging continues from times, not from
      cursors.
    """

    operation: Operation
    size: int | None
    most: int | None
    bound: int | None = None
    kept: Key | None = None
    ties: int = 0
    by_time: bool = False
    _last_tie: tuple[Key, int] | None = None

    def read(self, rows: Sequence[Any]) -> PageDecision:
        """Return which rows of a page to keep, and what to request next.

        Raise AnswerInvalid if the rows are not in the order of the operation, or if they lack a
        part of their key that the rows of earlier pages have. Raise Incomplete if all rows of a
        full page have one key, so that no cursor leads past it.
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
            return self._decide_single_tie(keys, start)
        self.ties += 1
        self.kept = keys[cut - 1]
        self._last_tie = (keys[-1], len(keys) - cut)
        return PageDecision(start, cut, self._request_again(keys[cut - 1], keys[-1]))

    def _keys(self, rows: Sequence[Any]) -> list[Key]:
        """Return the keys of rows; only their times if a part of a key is missing."""
        keys = list(map(key_getter(self.operation), rows))
        lacking = next((row for row, key in enumerate(keys) if None in key), None)
        if lacking is not None and not self.by_time:
            if self.kept is not None:
                raise AnswerInvalid(
                    f"the row lacks a part of {', '.join(self.operation.key)}, but rows of earlier "
                    "pages have it, so the row's place is unknown. Fetch this time separately",
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
        # The page size is unknown: the last page has no rows but the tie at the end of the page
        # before it.
        is_only_last_tie = self._last_tie == (keys[-1], len(keys) - start) if keys else True
        return start == len(keys) or (is_only_last_tie and keys[start] == keys[-1])

    def _decide_single_tie(self, keys: list[Key], start: int) -> PageDecision:
        """Decide on a page whose new rows all have the same key."""
        if len(keys) < (_SILENT_CUT if self.size is None else self.size):
            self.kept = keys[-1]
            return PageDecision(start, len(keys), self._request_after(keys[-1]))
        if 0 < start < len(keys) and self._has_cursors:
            # The rows of the cursor came again and used a part of the page: cursors are inclusive
            # here, so that the next page can begin with this tie.
            return PageDecision(start, start, {"cursor": make_cursor(keys[-1])})
        page = self.operation.page
        if page is not None and self.size is not None and self.size < (self.most or 0):
            # A larger page may contain the complete tie.
            self.size = min(self.size * 2, self.most or self.size)
            return PageDecision(start, start, {page.python: self.size})
        raise Incomplete(
            f"{self.operation.type}: all {len(keys)} rows of a full page have the key "
            f"{make_cursor(keys[-1])}. No cursor leads past it, so the rows after it cannot be "
            "fetched. Fetch the times before and after it separately",
            cursor=None if self.kept is None or self.by_time else make_cursor(self.kept),
        )

    def _request_again(self, complete: Key, last: Key) -> dict[str, Any]:
        """Return the change that requests an incomplete tie again: by cursor, or by its time."""
        if self._has_cursors:
            return {"cursor": make_cursor(complete)}
        return self._request_from(last[0])

    def _request_after(self, key: Key) -> dict[str, Any] | None:
        """Return the change that requests the rows after a complete tie."""
        if self._has_cursors:
            return {"cursor": make_cursor(key)}
        if self.bound is not None and key[0] == self.bound:
            return None
        return self._request_from(key[0] + (-1 if self._edge == "end" else 1))

    def _request_from(self, time: int) -> dict[str, Any]:
        """Return the change that continues from a time; it removes a cursor, which would win."""
        return {self._edge: time, **({"cursor": None} if self.by_time else {})}

    @property
    def _edge(self) -> str:
        return "end" if self.operation.paging == "backward" else "start"

    def _check_order(self, keys: list[Key]) -> None:
        ordered = operator.ge if self.operation.paging == "backward" else operator.le
        for row, (key, next_key) in enumerate(itertools.pairwise(keys)):
            if not ordered(key, next_key):
                raise AnswerInvalid(
                    f"rows are not in the order of {', '.join(self.operation.key)}: "
                    f"{make_cursor(next_key)} follows {make_cursor(key)}",
                    operation=self.operation.type,
                    column=self.operation.key[0],
                    row=row + 1,
                )


def page_reader(operation: Operation, parameters: Mapping[str, Any]) -> PageReader:
    """Return a reader for a request with these parameters, in Python names."""
    page = operation.page
    bound = parameters.get("start" if operation.paging == "backward" else "end")
    if page is None or operation.paging == "none":
        return PageReader(operation, None, None, bound)
    return PageReader(operation, parameters.get(page.python) or page.default, page.most, bound)


def key_getter(operation: Operation) -> Callable[[Any], Key]:
    """Return a function that returns the key of a row; without an order the key is empty."""
    if not operation.key:
        return lambda row: ()
    if len(operation.key) == 1:
        get_part = operator.attrgetter(operation.key[0])
        return lambda row: (get_part(row),)
    return operator.attrgetter(*operation.key)
