"""Paging: which rows of a page to keep, and what to request next.

A cursor contains the key of a row. For fills and orders, this key is the transaction, so several
rows can share it. Rows with one key are a tie, and a page can end inside a tie. The specification
does not say whether the service continues at the cursor or after it. Therefore a `PageReader` keeps
the rows of a page up to its last complete tie. It continues from the key of that tie (without a
cursor: from the time of the cut tie), and drops rows with keys that it already has. Paging works
whether the service treats a cursor as inclusive or exclusive.

The specification names no collation. Therefore rows of one time can have any order if their keys
have texts, as those of funding do.

A service that ignores the cursor, or sends one page in the place of another, sends rows outside of
the requested range. The reader refuses them. It never makes the same request twice. This module
does no input or output.
"""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from toolkit.contract.answers import RowKey, check_range, check_row_sequence, ordered_parts
from toolkit.contract.operations import Operation
from toolkit.contract.requests import filters_of, make_cursor, parse_cursor
from toolkit.contract.tie_proof import TieProof
from toolkit.errors import AnswerInvalid, Incomplete

# ASSUMED: If the page size is not known, further rows may follow a page of 500 rows or more.
_SILENT_CUT: Final = 500

_ROUND: Final = 100
"""A multiple of it is probably a page size of the service: then a first page may not be the end."""

_NEARLY_FULL: Final = 0.9
"""A larger part of the page size may be all that fits: the next transaction may be a large one."""


@dataclass(frozen=True, slots=True)
class PageDecision:
    """The rows of a page to keep, and the next request.

    - ``first_row``, ``end_row``: positions in the page, counted from 0. The rows from ``first_row``
      on, and before ``end_row``, are kept.
    - ``after``: the parameters that change in the next request; None at the end
    - ``certain_end_row``: None, unless the page seems to be the last one and the next request only
      confirms this. Then it replaces ``end_row`` if that request does not confirm it.
    - ``is_confirmed``: whether the page has no row that the page before it did not have
    """

    first_row: int
    end_row: int
    after: Mapping[str, Any] | None
    certain_end_row: int | None = None
    is_confirmed: bool = False


@dataclass(slots=True)
class PageReader:
    """The state of reading an operation page by page; `page_reader` makes one.

    - ``operation``: the operation
    - ``parameters``: the parameters of the next request, in Python names
    - ``size``: the requested rows of a page; None if the operation has no page size
    - ``most``: the largest page size
    - ``last_kept_key``: key of the last complete tie; the reader has kept every row up to it
    - ``ties``: the number of ties at the end of a page that were read again
    - ``by_time``: whether rows lack a part of their key. Then paging continues from times, not from
      cursors.
    - ``confirm_until``: a page that is shorter than its limit and does not end after this time is
      not yet the end: the rows after it are requested once more. Later rows arrived during the
      pull. None: no end is confirmed.
    - ``confirm_pages``: after how many pages an end is confirmed. With 1, also the end of one page
      or of an empty history is confirmed, if the operation allows it, and (except for samples with
      fixed times) the last request is for only the rows after the last tie. The end of a page with
      a filter is always confirmed, because a service may apply the filter after its limit. An
      empty page does not show whether the service did so.
    """

    operation: Operation
    parameters: dict[str, Any]
    size: int | None
    most: int | None
    last_kept_key: RowKey | None = None
    ties: int = 0
    by_time: bool = False
    confirm_until: int | None = None
    confirm_pages: int = 2
    _after: RowKey | None = None
    _earliest: int = 0
    _last_tie: tuple[RowKey, int] | None = None
    _last_tie_row: int = 0
    _is_confirming: bool = False
    _is_tie_again: bool = False
    _longest: int = 0
    _only_tie: tuple[RowKey, int] | None = None
    _proof: TieProof | None = None
    _proved: tuple[RowKey, int] | None = None
    _past: RowKey | None = None
    _known: set[RowKey] = field(default_factory=set)
    _sent: set[frozenset[tuple[str, Any]]] = field(default_factory=set)

    def read(self, rows: Sequence[Any]) -> PageDecision:
        """Return which rows of a page to keep, and what to request next.

        Raise AnswerInvalid if rows are outside of what was requested, if they are not in the order
        of the operation, or if they lack a part of their key that the rows of earlier pages have.
        Raise Incomplete if a full page has no new key, so that no cursor leads past it.
        """
        if self.operation.paging == "none":
            return PageDecision(0, len(rows), None)
        self._sent.add(frozenset(self.parameters.items()))
        keys = self._keys(rows)
        decision = self._decide(keys)
        self._note_kept(keys, decision)
        self._is_confirming = decision.certain_end_row is not None
        if decision.after is not None:
            is_sent = self._is_sent(decision.after)
            self.parameters = self._change(decision.after)
            if is_sent:
                raise Incomplete(
                    f"{self.operation.type}: the next request would repeat an earlier one of this "
                    "pull, so new rows cannot be recognised. Report this to the service"
                )
        return decision

    def _change(self, after: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of the next request."""
        changed = {**self.parameters, **after}
        if after.get("cursor") is not None:
            changed.pop("start", None)
        return changed

    def _is_sent(self, after: Mapping[str, Any]) -> bool:
        return frozenset(self._change(after).items()) in self._sent

    def _decide(self, keys: list[RowKey]) -> PageDecision:
        check_row_sequence(self.operation, keys)
        past, self._past = self._past, None
        # The rows of this key may come again, although the cursor is the next possible key.
        cursor = {} if past is None else {"cursor": make_cursor(past)}
        check_range(self.operation, self.parameters | cursor, keys)
        proved, self._proved = self._proved, None
        if self._proof is not None:
            proved = self._proof.key, self._proof.count
            again = self._check_proof(self._proof, keys)
            if again is not None:
                return PageDecision(0, 0, again)
        first_row = self._first_new_row(keys)
        tie_row = len(keys)
        while tie_row > first_row and keys[tie_row - 1] == keys[-1]:
            tie_row -= 1
        self._check_last_tie(keys[first_row:])
        # No new row came, or only the tie at the end of the page before, with the same rows.
        is_unchanged = first_row == len(keys) or (
            tie_row == first_row and self._last_tie == (keys[-1], len(keys) - first_row)
        )
        self._last_tie = None
        proof = None if proved else self._request_proof(keys, first_row, tie_row)
        self._longest = max(self._longest, len(keys))
        if first_row < len(keys):
            self._only_tie = None
        if proof is not None:
            return PageDecision(first_row, first_row, proof)
        if self._is_last(keys, first_row, is_unchanged=is_unchanged):
            return self._decide_end(keys, first_row, tie_row, is_unchanged=is_unchanged)
        if tie_row == first_row:
            is_complete = proved == (keys[-1], len(keys) - first_row)
            return self._decide_single_tie(keys, first_row, is_complete=is_complete)
        self.ties += 1
        return PageDecision(first_row, tie_row, self._drop_last_tie(keys, tie_row))

    def _drop_last_tie(self, keys: list[RowKey], tie_row: int) -> dict[str, Any]:
        """Return the change that requests the last tie of a page again."""
        self.last_kept_key = keys[tie_row - 1]
        self._last_tie = (keys[-1], len(keys) - tie_row)
        self._last_tie_row = tie_row
        return self._request_again(keys[tie_row - 1], keys[-1])

    def _decide_end(
        self, keys: list[RowKey], first_row: int, tie_row: int, *, is_unchanged: bool
    ) -> PageDecision:
        """Decide on a page after which there should be no rows."""
        after: dict[str, Any] | None = None
        is_only_page = len(self._sent) == 1
        is_tie_again, self._is_tie_again = self._is_tie_again, False
        is_confirmed = is_unchanged and self._is_confirming and not is_tie_again
        certain_end_row = tie_row
        until = -1 if self.confirm_until is None else self.confirm_until
        is_early = bool(keys) and keys[-1][0] <= until
        if is_early and is_unchanged and not is_tie_again and self._may_hide_rows(keys):
            after = self._request_following(keys, first_row)
            if after is not None:
                return self._keep_unchanged(keys, first_row, after)
        # The service may send fewer rows than requested, only complete transactions, or only those
        # rows of a full page that a filter leaves.
        is_cut = self._is_limit(len(keys)) or bool(filters_of(self.operation, self.parameters))
        if is_confirmed or (len(self._sent) < self.confirm_pages and not (keys and is_cut)):
            pass
        elif not keys and is_only_page:
            after = self._request_range_again()
        elif not is_early or self.operation.paging != "cursor" or self.by_time:
            pass
        elif tie_row > first_row:
            after = self._drop_last_tie(keys, tie_row)
        elif first_row < len(keys):
            # First the only new tie, which may be cut; then what follows it.
            after = None if is_tie_again else self._request_single_tie_again(keys, first_row)
            if after is None:
                certain_end_row = self._keep_only_tie(keys, first_row)
                after = self._request_after(keys[-1])
                if after and self._is_sent(after):
                    after = self._request_past(keys[-1])
        if after is not None and self._is_sent(after):
            after = None  # this request was answered
        if after is None:
            return PageDecision(first_row, len(keys), None, is_confirmed=is_confirmed)
        return PageDecision(first_row, len(keys), after, certain_end_row=certain_end_row)

    def _is_limit(self, count: int) -> bool:
        """Return whether a limit of the service may have ended a page of so many rows."""
        return count % _ROUND == 0 or count > _NEARLY_FULL * (self.size or math.inf)

    def _may_hide_rows(self, keys: list[RowKey]) -> bool:
        """Return whether rows may follow an unchanged page, because they did not fit into it.

        Some services never split a transaction. If the page has few of the rows of the longest
        page, only a transaction that nearly fills a page does not fit. By default, the reader
        believes that there is none.
        """
        is_at_end = self._is_confirming or self.operation.paging != "cursor"
        if not (keys and is_at_end) or self.operation.grid is not None:
            return False
        if self.confirm_pages == 1:
            return True
        is_limited = len(self._sent) > 2 or self._is_limit(self._longest)
        return is_limited and len(keys) > (1 - _NEARLY_FULL) * self._longest

    def _request_following(self, keys: list[RowKey], first_row: int) -> dict[str, Any] | None:
        """Return the change that requests only the rows after a page; None if it was sent."""
        after = (
            None if first_row and self.parameters.get("cursor") else self._request_after(keys[-1])
        )
        if after is None or self._is_sent(after):
            after = self._request_past(keys[-1])  # cursors are inclusive here
        return None if after is None or self._is_sent(after) else after

    def _keep_unchanged(
        self, keys: list[RowKey], first_row: int, after: dict[str, Any]
    ) -> PageDecision:
        """Keep the last tie of a page that came again, and request only what follows it."""
        if first_row < len(keys):
            self._keep_only_tie(keys, first_row)
            if first_row != self._last_tie_row:
                # A limit would have cut the tie elsewhere, because it begins at another place now.
                self._only_tie = None
        return PageDecision(first_row, len(keys), after, certain_end_row=len(keys))

    def _keys(self, rows: Sequence[Any]) -> list[RowKey]:
        """Return the keys of rows; only their times if a part of a key is missing."""
        parts = [list(map(operator.attrgetter(path), rows)) for path in self.operation.key]
        keys = list(zip(*parts, strict=True))
        if not self.by_time and any(None in part for part in parts):
            if self.last_kept_key is not None:
                row = next(row for row, key in enumerate(keys) if None in key)
                time = keys[row][0]
                raise AnswerInvalid(
                    f"the row lacks a part of {', '.join(self.operation.key)}, but rows of earlier "
                    "pages have it, so the row's place is unknown. Fetch only this time: "
                    f"start={time}, end={time}",
                    operation=self.operation.type,
                    row=row,
                )
            self.by_time = True
        # Paging by time needs all rows of a time as one tie.
        return keys if self._has_cursors else [key[:1] for key in keys]

    @property
    def _has_cursors(self) -> bool:
        return self.operation.paging in ("cursor", "open cursor") and not self.by_time

    def _request_single_tie_again(
        self, keys: list[RowKey], first_row: int
    ) -> dict[str, Any] | None:
        """Return the change that requests the only new tie of a page again: another page size."""
        page, size = self.operation.page, self.size or 0
        if page is None or self.confirm_pages > 1 or len(keys) >= size - 1:
            return None
        self.size = size + 1 if size < (self.most or 0) else size - 1
        self._last_tie = (keys[-1], len(keys) - first_row)
        self._is_tie_again = True
        return {page.python: self.size}

    def _request_range_again(self) -> dict[str, Any] | None:
        """Return the change that requests an empty range once more, with other words.

        A cache would answer the same request with the same page.
        """
        until, start, end = (self.confirm_until, *map(self.parameters.get, ("start", "end")))
        first = self._after[0] if self._after is not None else start
        if until is None or (first or 0) >= until:
            return None
        if end is None or end > until:
            return {"end": until}
        if first is None or self._edge == "end":
            return None
        if self._after is not None:
            return {"start": first, "cursor": None}
        self._earliest = first  # the range begins earlier, and its first rows are dropped
        return {"start": abs(first - 1)}

    def _first_new_row(self, keys: list[RowKey]) -> int:
        """Return the position of the first row that the reader does not have.

        Raise AnswerInvalid if a row that it has follows: the service changed the order of rows.
        """
        passed = keys.index(self._after) if self._after and self._after in keys else -1
        first_row = 0
        while first_row < len(keys) and not self._is_new(keys[first_row], first_row, passed):
            first_row += 1
        for row in range(first_row, len(keys) if self._known else 0):
            if keys[row] in self._known:
                raise AnswerInvalid(
                    f"the row with the key {make_cursor(keys[row])} comes again, after rows that "
                    "are new: the service changed the order of its rows. Repeat the call",
                    operation=self.operation.type,
                    column=self.operation.key[0],
                    row=row,
                )
        return first_row

    def _is_new(self, key: RowKey, row: int, passed: int) -> bool:
        """Return whether a row is new; `passed` is the position of the row of the user's cursor."""
        if key[0] < self._earliest:
            return False
        last = self._after if self.last_kept_key is None else self.last_kept_key
        if last is None or (self.last_kept_key is None and self.by_time):
            return True
        parts = ordered_parts(key)
        if parts < len(key) and key[:parts] == last[:parts]:
            is_known = key == last or key in self._known
            return not is_known and self._is_after_cursor(key, row, passed)
        return key < last if self.operation.paging == "backward" else key > last

    def _is_after_cursor(self, key: RowKey, row: int, passed: int) -> bool:
        """Return whether a row comes after the user's cursor in the order of the service.

        Rows of one time have no known order if their keys have texts. The service sends the row of
        the cursor before the rows after it, or not at all.
        """
        if self._after is None or key[0] != self._after[0]:
            return True
        if passed >= 0:
            return row > passed
        return bool(self.parameters.get("cursor")) or key > self._after

    def _note_kept(self, keys: list[RowKey], decision: PageDecision) -> None:
        """Note which rows of the last time were kept, if keys have texts."""
        last = self.last_kept_key
        if last is None or ordered_parts(last) == len(last):
            return
        end = decision.end_row if decision.certain_end_row is None else decision.certain_end_row
        known = {key for key in self._known if key[0] == last[0]}
        self._known = known.union(
            key for key in keys[decision.first_row : end] if key[0] == last[0]
        )

    def _is_last(self, keys: list[RowKey], first_row: int, *, is_unchanged: bool) -> bool:
        if self.operation.paging == "cursor":
            return self.size is not None and len(keys) < self.size
        if first_row < len(keys):
            return is_unchanged
        # The page size is unknown, and the rows of the cursor may have filled the page.
        return len(keys) < _SILENT_CUT or not self._has_cursors

    def _decide_single_tie(
        self, keys: list[RowKey], first_row: int, *, is_complete: bool
    ) -> PageDecision:
        """Decide on a page whose new rows all have the same key."""
        if is_complete or len(keys) < (_SILENT_CUT if self.size is None else self.size):
            self._keep_only_tie(keys, first_row)
            after = self._request_after(keys[-1])
            if after is not None and self._is_sent(after):
                # An inclusive service sent the rows of the cursor, and nothing else.
                after = self._request_past(keys[-1])
            if after is not None and self._is_sent(after):
                after = None
            return PageDecision(first_row, len(keys), after)
        self._last_tie = (keys[-1], len(keys) - first_row)
        if 0 < first_row < len(keys) and self._has_cursors and self.parameters.get("cursor"):
            # The rows of the cursor came again and used a part of the page: cursors are inclusive
            # here, so that the next page can begin with this tie.
            return PageDecision(first_row, first_row, {"cursor": make_cursor(keys[-1])})
        page = self.operation.page
        if page is not None and self.size is not None and self.size < (self.most or 0):
            # A larger page may contain the complete tie.
            self.size = min(self.size * 2, self.most or self.size)
            return PageDecision(first_row, first_row, {page.python: self.size})
        raise Incomplete(
            f"{self.operation.type}: all {len(keys)} rows of a full page have the key "
            f"{make_cursor(keys[-1])}. No cursor leads past it, so the rows after it cannot be "
            "fetched. Fetch the times before and after it separately",
            cursor=None
            if self.last_kept_key is None or self.by_time
            else make_cursor(self.last_kept_key),
        )

    def _keep_only_tie(self, keys: list[RowKey], first_row: int) -> int:
        """Keep the only new tie of a page, and return the end of the page."""
        self.last_kept_key = keys[-1]
        self._only_tie = keys[-1], len(keys) - first_row
        return len(keys)

    def _request_proof(
        self, keys: list[RowKey], first_row: int, tie_row: int
    ) -> dict[str, Any] | None:
        """Return the change that requests a proof that a tie is complete; None if none is needed.

        A service may send fewer rows than requested. Then a tie can fill a page, and its other
        rows never come. If the page is as long as any before, the proof is a longer page, from a
        row before the tie. If rows follow the tie later, the proof is a page with the tie and them.
        """
        if self.operation.grid is not None:  # it has no ties
            return None
        if self._only_tie is not None and first_row < len(keys):
            self._proof = TieProof(*self._only_tie, keys[first_row][0], self.parameters)
            return self._request_unsent(self._only_tie[0][0])
        is_full = self.size is not None and len(keys) >= self.size
        if tie_row > first_row or is_full or not 0 < self._longest <= len(keys):
            return None
        after: dict[str, Any] | None = None
        if first_row and self.parameters.get("cursor"):
            # Cursors are inclusive here, and the rows of the cursor may have filled the page.
            if first_row < len(keys):
                self._last_tie = (keys[-1], len(keys) - first_row)
                after = {"cursor": make_cursor(keys[-1])}
            else:
                after = self._request_past(keys[-1])
        elif not first_row and self.last_kept_key is not None:
            self._proof = TieProof(keys[-1], len(keys), None, self.parameters)
            after = self._request_unsent(self.last_kept_key[0])
        return after

    def _request_unsent(self, time: int) -> dict[str, Any]:
        """Return the change that requests the rows from a time on, as no request before did."""
        after: dict[str, Any] = {"cursor": None} if "cursor" in self.parameters else {}
        if self.operation.page is not None:
            self.size = self.most
            after[self.operation.page.python] = self.most
        while self._is_sent(after | {"start": time}):
            time -= 1
        return after | {"start": time}

    def _check_proof(self, proof: TieProof, keys: list[RowKey]) -> dict[str, Any] | None:
        """Return the change that requests rows that the proof does not have; None if it has them.

        Raise Incomplete if the page shows that the service cut a tie.
        """
        self._proof = None
        shown = proof.check(keys, _SILENT_CUT if self.size is None else self.size)
        if shown == "complete":
            return None
        again = self._request_unproved(proof) if shown == "unknown" else None
        if again is not None:
            self._longest = max(self._longest, len(keys))
            self._last_tie = (proof.key, proof.count) if proof.next_time is None else None
            self._proved, self._only_tie = (proof.key, proof.count), None
            return again
        kept = self.last_kept_key or ()
        raise Incomplete(
            f"{self.operation.type}: rows after {make_cursor(kept)} may be missing, because "
            f"the service sends pages with fewer rows than there are, such as this one with "
            f"{len(keys)}. Use another page size, if the function has one, and report this to "
            "the service"
        )

    def _request_unproved(self, proof: TieProof) -> dict[str, Any] | None:
        """Return the change that requests the rows before a proof again, in other words."""
        kept = self.last_kept_key or proof.key
        time, before = proof.next_time, proof.key[0]
        if time is None:
            time, before = proof.key[0], kept[0]
        if time > before:  # no row that was not read is earlier
            return self._request_unsent(time)
        if self.operation.page is not None and self.most is not None:
            for size in range(self.most, proof.count - 1, -1):
                again = {"cursor": None, **proof.request, self.operation.page.python: size}
                if not self._is_sent(again):
                    self.size = size
                    return again
        return None

    def _request_again(self, complete: RowKey, last: RowKey) -> dict[str, Any]:
        """Return the change that requests an incomplete tie again: by cursor, or by its time."""
        if not self._has_cursors:
            return self._request_from(last[0])
        cursor = make_cursor(complete)
        if cursor == self.parameters.get("cursor"):
            # The rows of the cursor came again, as the only ones before this tie: cursors are
            # inclusive here, so that the next page can begin with this tie.
            cursor = make_cursor(last)
        return {"cursor": cursor}

    def _request_past(self, key: RowKey) -> dict[str, Any] | None:
        """Return the change that requests the rows after a key without its own rows.

        Cursors are inclusive here. The cursor of the next possible key leaves out no row of the
        same time. If the key ends in text, or if this cursor was already sent (a service may read
        only the time of a cursor), the next request begins 1 ms after the key.
        """
        # ASSUMED: A service with inclusive cursors also accepts a cursor that is no row's key.
        *parts, last = key
        if parts and isinstance(last, int):
            after = {"cursor": make_cursor((*parts, last + 1))}
            if not self._is_sent(after):
                self._past = key
                return after
        return (
            None if key[0] == self.parameters.get("end") else {"start": key[0] + 1, "cursor": None}
        )

    def _request_after(self, key: RowKey) -> dict[str, Any] | None:
        """Return the change that requests the rows after a complete tie."""
        if self._has_cursors:
            return {"cursor": make_cursor(key)}
        bound = self.parameters.get("start" if self._edge == "end" else "end")
        if bound is not None and key[0] == bound:
            return None
        return self._request_from(key[0] + (-1 if self._edge == "end" else 1))

    def _request_from(self, time: int) -> dict[str, Any]:
        """Return the change that continues from a time; it removes a cursor, which would win."""
        return {self._edge: time, **({"cursor": None} if self.by_time else {})}

    @property
    def _edge(self) -> str:
        return "end" if self.operation.paging == "backward" else "start"

    def _check_last_tie(self, keys: list[RowKey]) -> None:
        """Raise AnswerInvalid if the tie that was requested again did not come completely.

        Without this check, an empty page in the place of the next one would lose its rows.
        """
        if self._last_tie is None:
            return
        key, count = self._last_tie
        is_cut = bool(keys) and keys[-1] == key
        if keys.count(key) < count and not (is_cut and self.size == len(keys)):
            raise AnswerInvalid(
                f"{count} rows with the key {make_cursor(key)} ended the previous page, and the "
                f"next page has {keys.count(key)} of them: the service, or a cache in between, "
                "answered another request. Repeat the call",
                operation=self.operation.type,
                column=self.operation.key[0],
            )


def page_reader(
    operation: Operation,
    parameters: Mapping[str, Any],
    confirm_until: int | None = None,
    *,
    confirm_pages: int = 2,
) -> PageReader:
    """Return a reader for a request with these parameters, in Python names."""
    page, size, most = operation.page, None, None
    if page is not None:
        size, most = parameters.get(page.python) or page.default, page.most
    cursor = parameters.get("cursor")
    return PageReader(
        operation,
        dict(parameters),
        size,
        most,
        confirm_until=confirm_until,
        confirm_pages=confirm_pages,
        _after=parse_cursor(operation, cursor) if cursor else None,
    )


def key_getter(operation: Operation) -> Callable[[Any], RowKey]:
    """Return a function that returns the key of a row; without an order the key is empty."""
    if not operation.key:
        return lambda row: ()
    if len(operation.key) == 1:
        get_part = operator.attrgetter(operation.key[0])
        return lambda row: (get_part(row),)
    return operator.attrgetter(*operation.key)
