"""The proof of a tie: what a page shows of rows with one key that a service may have cut.

A service may send fewer rows than requested. Then a tie can fill a page, and the rest of it never
comes. `PageReader` requests the tie again, in other words, and checks here what the page shows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from toolkit.contract.answers import RowKey


@dataclass(frozen=True, slots=True)
class TieProof:
    """What a page should show of a tie: that a service did not cut it, or the rows after it.

    - ``key``, ``count``: the tie, and the number of its rows
    - ``next_time``: the time of the rows that have to follow the tie; None if none have to
    - ``request``: the request before the proof; its rows are requested again if they are not in the
      proof, because a full page ends before them
    """

    key: RowKey
    count: int
    next_time: int | None
    request: Mapping[str, Any]

    def check(self, keys: list[RowKey], limit: int) -> Literal["complete", "cut", "unknown"]:
        """Return whether the page with these keys shows that the tie is ``complete`` or ``cut``.

        Return ``unknown`` if the page is full and ends before the rows that would show it. `limit`
        is the size of a full page.
        """
        count = keys.count(self.key)
        if count > self.count:
            return "cut"
        if self.next_time is None:
            # A page with more rows shows that the service did not cut the tie.
            if len(keys) <= self.count:
                return "cut"
            return "complete" if count == self.count else "unknown"
        is_full = len(keys) >= limit
        followers = keys[keys.index(self.key) + count :] if count == self.count else []
        if not followers:
            return "unknown" if is_full else "cut"
        # A full page may have cut the only tie that follows.
        return "unknown" if is_full and followers[0] == followers[-1] else "complete"
