"""Paging, the one rule: which rows of a page are certain, and what to request next.

Rows with one key are a tie, such as the fills of one transaction. A page can end inside a tie, so
its last tie is not certain. `read_pages` keeps the rows before it, requests the rows after the last
certain key, and drops the rows that it already has:

1. A first page that is shorter than its limit is the end.
2. After it, the end is when nothing new comes, for which a page after a full one is no proof.
3. If a tie fills a page, a larger page is requested. If there is none, rows may be missing.

The specification does not say whether a page begins at the key of its cursor (an inclusive cursor)
or after it. If rows of the cursor come again, cursors are inclusive, and the next request can begin
at the last tie itself. An operation without cursors follows the same rule, with the time of the
last certain row, and all rows of one time as a tie.

Rows outside of the request, a last tie that does not come again, and a request that would be sent
twice are errors. This module does no input or output.

Rows of intervals, such as candles, have no ties. Their range is divided into windows that cannot
have more rows than an answer (`time_windows`).
"""

import itertools
import math
import operator
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from toolkit.contract.operations import Operation, Parameters
from toolkit.contract.requests import INTERVALS, filters_of, make_cursor, parse_cursor
from toolkit.errors import AnswerInvalid, Incomplete
from toolkit.times import LAST_MS, to_iso, to_ms

RowKey = tuple[Any, ...]
"""The values that order a row and make up its cursor."""

PageT = TypeVar("PageT")

Ask = Callable[[Parameters], tuple[PageT, Sequence[Any]]]
"""What sends a request, and returns a page and its rows."""

# ASSUMED: If the page size is not known, further rows may follow a page of 500 rows or more.
UNKNOWN_LIMIT: Final = 500

# ASSUMED: No market of the exchange has rows of intervals before 2023.
_FIRST_MS: Final = to_ms("2023-01-01")

_ROUND: Final = 100
"""A multiple of it is probably a limit of the service: then a first page may not be the end."""

_NEARLY_FULL: Final = 0.9
"""A larger part of the page size may be all that fits: the next transaction may be a large one."""


@dataclass(frozen=True, slots=True)
class CertainRows(Generic[PageT]):
    """The certain rows of a page.

    - ``page``: the page
    - ``first``, ``stop``: positions in the page; the rows from ``first`` on and before ``stop`` are
      certain
    - ``is_last``: whether all rows of the request have come
    - ``cursor``: the cursor after which to continue; None if there is none
    - ``ties``: the number of ties at the end of a page that were requested again, so far
    """

    page: PageT
    first: int
    stop: int
    is_last: bool
    cursor: str | None
    ties: int


def read_pages(
    operation: Operation,
    parameters: Parameters,
    ask: Ask[PageT],
    *,
    asked_ms: int = LAST_MS,
    confirm_end: bool | None = None,
    max_rows: int | None = None,
) -> Iterator[CertainRows[PageT]]:
    """Request an operation page by page. Every row comes once, in the order of the operation.

    - ``parameters``: the parameters of the request, in Python names
    - ``ask``: sends a request, and returns a page and its rows
    - ``asked_ms``: the time of the call. Later rows arrived during the pull.
    - ``confirm_end``: which pages that are shorter than their limit are not the end before a
      further request confirms it. None: all but the first page, and the first page if a limit of
      the service, or a filter behind it, may have shortened it. True: all. False: none.
    - ``max_rows``: the most rows

    Raise AnswerInvalid if rows are outside of the request, not in order, or do not come again.
    Raise Incomplete if no request leads past a tie, or if rows of a tie may be missing.
    """
    if operation.paging == "windows":
        yield from _read_windows(operation, parameters, ask, asked_ms, max_rows)
        return
    place, left = _Place(operation, parameters), math.inf if max_rows is None else max_rows
    longest = ties = done = 0
    was_short = was_full = is_capped = is_doubtful = False
    for number in itertools.count():
        page, rows = ask(place.request)
        if operation.paging == "none":
            yield CertainRows(page, 0, int(min(len(rows), left)), True, None, 0)
            return
        keys, first = place.read_keys(rows)
        new, count = keys[first:], len(keys)
        is_known, longest = new == place.tail, max(longest, count)
        is_late = bool(keys) and keys[-1][0] > asked_ms
        if was_short and not (is_known or is_late):
            is_capped = True  # the service sends fewer rows than requested
            if is_doubtful:
                raise place.incomplete("rows follow a page that has fewer rows than requested")
        is_short = count < (longest if is_capped else place.limit)
        if number:  # after a full page, a page without new rows may be a wrong one
            is_end = is_known and count < max(longest, 1) and not was_full
        else:
            is_end = not _needs_confirmation(place, count, confirm_end)
        if operation.paging == "cursor":
            is_end = is_end or is_late or confirm_end is False
        is_end = is_short and (is_end or 0 < operation.reach <= done + len(new))
        was_short, was_full = 0 < count < place.limit, count >= place.limit
        stop, request = count, None
        if not is_end and len(new) < left:
            # The last tie is not certain, unless it is all that is new in a short page. If it came
            # again after rows of the cursor, a page that begins with it shows more.
            stop -= sum(1 for _ in itertools.takewhile(keys[-1:].__contains__, reversed(new)))
            is_single = stop == first and is_short and not (is_known and first)
            is_doubtful = is_single if new else is_doubtful
            place.keep(keys, first, count if is_single else stop)
            stop = count - len(place.tail)
            ties += bool(place.tail)
            request = place.next_request(asked_ms, is_empty=not keys)
            is_end = request is None and is_short and not place.tail
        taken = int(min(stop - first, left))
        is_last = is_end and taken == len(new)
        yield CertainRows(page, first, first + taken, is_last, place.cursor, ties)
        left, done = left - taken, done + stop - first
        if is_end or not left:
            return
        if request is None:
            raise place.incomplete(
                f"all {count} rows of a full page have the key {make_cursor(keys[-1])}"
            )
        place.request = request


def time_windows(
    operation: Operation, parameters: Parameters, asked_ms: int
) -> list[tuple[int, int]]:
    """Return the ranges of time, both ends inclusive, in which an operation is requested."""
    start, end = max(parameters["start"], _FIRST_MS), parameters["end"]
    end = max(asked_ms if end is None else end, start)
    start = max(start, min(end, first_kept_ms(operation, parameters, asked_ms) or start))
    length = INTERVALS[parameters["interval"]]
    begins = range(start // length * length, end + 1, operation.most_rows * length)
    return [
        (max(begin, start), min(begin + operation.most_rows * length - 1, end)) for begin in begins
    ]


def first_kept_ms(operation: Operation, parameters: Parameters, asked_ms: int) -> int | None:
    """Return the begin of the intervals that the service keeps; None if it has all requested ones.

    An interval without trades may have no row, but counts for the latest ones that are kept.
    """
    length = INTERVALS[parameters["interval"]]
    begin_ms = (asked_ms // length - operation.reach + 1) * length
    is_cut = operation.reach and begin_ms > max(parameters["start"], _FIRST_MS)
    return begin_ms if is_cut else None


def _read_windows(
    operation: Operation,
    parameters: Parameters,
    ask: Ask[PageT],
    asked_ms: int,
    max_rows: int | None,
) -> Iterator[CertainRows[PageT]]:
    windows = time_windows(operation, parameters, asked_ms)
    left, before = math.inf if max_rows is None else max_rows, -1
    for number, (start, end) in enumerate(windows, 1):
        page, rows = ask({**parameters, "start": start, "end": end})
        keys = row_keys(operation, rows)
        # The first interval of a window may begin before it.
        first_ms = start - INTERVALS[parameters["interval"]]
        check_keys(operation, keys, {"start": first_ms, "end": end})
        first = sum(1 for (time,) in keys if time <= before)
        taken = int(min(len(keys) - first, left))
        is_last = number == len(windows) and taken == len(keys) - first
        yield CertainRows(page, first, first + taken, is_last, None, 0)
        left, before = left - taken, keys[-1][0] if keys else before
        if not left:
            return


def _needs_confirmation(place: "_Place", count: int, confirm_end: bool | None) -> bool:
    """Return whether a first page of `count` rows, shorter than its limit, may not be the end."""
    operation = place.operation
    if count and operation.paging != "cursor" and not operation.most_rows:
        return True  # nothing states the limit
    if confirm_end is not None:
        return confirm_end
    if not count:
        return operation.grid is not None  # samples with fixed times are rarely missing
    is_limit = count % _ROUND == 0 or count > _NEARLY_FULL * place.limit
    return is_limit or bool(filters_of(operation, place.request))


class _Place:
    """The place of a pull in a history: what it has, and what to request next.

    - ``request``: the parameters of the next request
    - ``last``: the last certain key
    - ``held``: the certain keys of its time, with the number of their rows
    - ``tail``: the keys of the rows after it, which were not certain: they have to come again
    """

    def __init__(self, operation: Operation, parameters: Parameters) -> None:
        self.operation, self.request = operation, dict(parameters)
        cursor = parameters.get("cursor")
        self.last: RowKey | None = parse_cursor(operation, cursor) if cursor else None
        self.held: dict[RowKey, float] = {self.last: math.inf} if self.last else {}
        self.tail: list[RowKey] = []
        self._sent: list[Parameters] = []
        self._has_cursors = operation.paging in ("cursor", "open cursor")
        self._is_inclusive = False

    @property
    def limit(self) -> int:
        """The number of rows of a full page."""
        page = self.operation.page
        if page is None:
            return self.operation.most_rows or UNKNOWN_LIMIT
        return int(self.request.get(page.python) or page.default)

    @property
    def cursor(self) -> str | None:
        """The cursor after the last certain row; None if there is none."""
        return make_cursor(self.last) if self.last and self._has_cursors else None

    def read_keys(self, rows: Sequence[Any]) -> tuple[list[RowKey], int]:
        """Return the keys of the rows that came, and how many of the first rows came before.

        Raise AnswerInvalid if these rows do not answer the request.
        """
        operation = self.operation
        parts = [list(map(operator.attrgetter(path), rows)) for path in operation.key]
        if self._has_cursors and any(None in part for part in parts):
            if self._sent and self.last:
                row = min(part.index(None) for part in parts if None in part)
                time = parts[0][row]
                raise AnswerInvalid(
                    f"the row lacks a part of {', '.join(operation.key)}, but rows of earlier "
                    "pages have it, so the row's place is unknown. Fetch only this time: "
                    f"start={time}, end={time}",
                    operation=operation.type,
                    row=row,
                )
            self._has_cursors, self.held, self.tail = False, {}, []
        keys: list[RowKey] = list(zip(*parts[: None if self._has_cursors else 1], strict=True))
        self._sent.append(self.request)
        # The rows of the last key may come again, although the cursor is the next possible key.
        is_past = self.request.get("cursor") and not self.tail
        check_keys(operation, keys, self.request | ({"cursor": self.cursor} if is_past else {}))
        first = sum(1 for _ in itertools.takewhile(self.held.__contains__, keys))
        self._is_inclusive |= bool(first) and bool(self.request.get("cursor"))
        if not self.held.keys().isdisjoint(keys[first:]):
            row = next(row for row in range(first, len(keys)) if keys[row] in self.held)
            raise _invalid_rows(
                operation,
                f"the row with the key {make_cursor(keys[row])} comes again, after rows that are "
                "new: the service changed the order of its rows",
                row,
            )
        if first and keys.count(key := keys[0]) > (came := self.held[key]):
            what = "came before"
        elif self.tail and keys.count(key := self.tail[0]) < (came := len(self.tail)):
            what = "ended the previous page"
        else:
            return keys, first
        raise _invalid_rows(
            operation,
            f"{came} rows with the key {make_cursor(key)} {what}, and this page has "
            f"{keys.count(key)} of them: the service, or a cache in between, answered another "
            "request",
        )

    def keep(self, keys: list[RowKey], first: int, stop: int) -> None:
        """Note which rows of a page are certain."""
        self.tail = keys[max(first, stop) :]
        if stop > first:
            self.last = keys[stop - 1]
            time = self.last[0]
            before = {key: count for key, count in self.held.items() if key[0] == time}
            recent = itertools.takewhile(lambda key: key[0] == time, reversed(keys[first:stop]))
            self.held = before | Counter(recent)

    def next_request(self, asked_ms: int, *, is_empty: bool) -> dict[str, Any] | None:
        """Return a request of the rows after the certain ones that was not sent; None: no such."""
        request, page, last, tail = self.request, self.operation.page, self.last, self.tail
        start, end = request.get("start"), request.get("end")
        asked: list[dict[str, Any]] = []
        if is_empty:  # in other words: a cache could repeat the first answer
            if (end is None or end > asked_ms) and (start or 0) < asked_ms:
                asked.append(request | {"end": asked_ms})
            elif page is not None:
                asked.append(request | {page.python: self.limit - 1 or 2})
            return next((request for request in asked if request not in self._sent), None)
        is_past = not self._has_cursors or (self._is_inclusive and not tail)
        if last and self._has_cursors:
            keys = [tail[0] if tail and self._is_inclusive else last]
            # ASSUMED: A service with inclusive cursors also accepts a cursor that is no row's key.
            if is_past and isinstance(last[-1], int):
                keys.append((*last[:-1], last[-1] + 1))
            # A cursor takes the place of a start.
            bare = {name: value for name, value in request.items() if name != "start"}
            asked += [bare | {"cursor": make_cursor(key)} for key in keys]
        if last and is_past:
            is_backward = self.operation.paging == "backward"
            bare = {name: value for name, value in request.items() if name != "cursor"}
            if last[0] != (start if is_backward else end):  # else the range ends there
                asked.append(
                    bare | ({"end": last[0] - 1} if is_backward else {"start": last[0] + 1})
                )
        if tail and page is not None and page.most is not None and self.limit < page.most:
            asked.append(request | {page.python: min(2 * self.limit, page.most)})
        return next((request for request in asked if request not in self._sent), None)

    def incomplete(self, reason: str) -> Incomplete:
        """Return an error about rows that cannot be fetched."""
        return Incomplete(
            f"{self.operation.type}: {reason}, so rows at or after {self.cursor or 'the start'} "
            "may be missing. Fetch the times before and after it separately, or use another page "
            "size, if the function has one",
            cursor=self.cursor,
        )


def row_keys(operation: Operation, rows: Collection[Any]) -> list[RowKey]:
    """Return the key of each row."""
    return list(zip(*(map(operator.attrgetter(path), rows) for path in operation.key), strict=True))


def ordered_parts(key: RowKey) -> int:
    """Return how many parts of a key come in a known order: those before the first text.

    The specification names no collation: a service may sort ``kPEPE`` before or after ``XRP``.

    >>> ordered_parts((1756684800000, "0xabc", "BTC")), ordered_parts((1756684800000, 3))
    (1, 2)
    """
    return next((at for at, part in enumerate(key) if isinstance(part, str)), len(key))


def check_keys(operation: Operation, keys: list[RowKey], parameters: Parameters) -> None:
    """Raise AnswerInvalid if rows are not in order, or outside of the requested range.

    The rows of the cursor itself may come again.
    """
    if not keys:
        return
    is_backward = operation.paging == "backward"
    parts = ordered_parts(keys[0])
    known = keys if parts == len(keys[0]) else [key[:parts] for key in keys]
    if known != sorted(known, reverse=is_backward):
        ordered = operator.ge if is_backward else operator.le
        pairs = enumerate(itertools.pairwise(known), 1)
        row = next(row for row, pair in pairs if not ordered(*pair))
        raise AnswerInvalid(
            f"rows are not in the order of {', '.join(operation.key[:parts])}: "
            f"{make_cursor(keys[row])} follows {make_cursor(keys[row - 1])}",
            operation=operation.type,
            column=operation.key[0],
            row=row,
        )
    first, last = (len(keys) - 1, 0) if is_backward else (0, len(keys) - 1)
    start, end = parameters.get("start"), parameters.get("end")
    limit: RowKey = () if start is None else (start,)
    if cursor := parameters.get("cursor"):
        limit = parse_cursor(operation, cursor)[:parts]
    if limit and keys[first][: len(limit)] < limit:
        name, time = f"cursor {cursor}" if cursor else "start", time_text(limit[0])
        place = f"before the requested {name} ({time})"
    elif end is not None and keys[last][0] > end:
        first, place = last, f"after the requested end {time_text(end)}"
    else:
        return
    words = f"the row is {place}: the service, or a cache in between, answered another request"
    raise _invalid_rows(operation, words, first)


def _invalid_rows(operation: Operation, words: str, row: int | None = None) -> AnswerInvalid:
    return AnswerInvalid(
        f"{words}. Repeat the call", operation=operation.type, column=operation.key[0], row=row
    )


def time_text(ms: int) -> str:
    """Return a time as ISO text; if it is after the year 9999, as a number."""
    try:
        return to_iso(ms)
    except OverflowError:
        return str(ms)
