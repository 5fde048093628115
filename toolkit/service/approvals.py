"""The time ranges in which users approved builders. Specification, "Builder approval"."""

import operator
from collections import defaultdict
from collections.abc import Iterable, Iterator

from toolkit.contract.sources import Approval

__all__ = ["Approvals", "approval_intervals"]

Interval = tuple[str, int, int | None]
"""Builder, first millisecond, first millisecond after the approval (None: it has no end)."""


class Approvals:
    """The approvals of all users."""

    def __init__(self, approvals: Iterable[Approval]) -> None:
        self._intervals = approval_intervals(approvals)

    def builders_at(self, user: str, time: int) -> Iterator[str]:
        """Yield the builders that a user had approved in the block at a time."""
        for builder, first, end in self._intervals.get(user, ()):
            if first <= time and (end is None or time < end):
                yield builder


def approval_intervals(approvals: Iterable[Approval]) -> dict[str, list[Interval]]:
    """Return the approvals of each user as intervals.

    An approval is valid from its own block on, and ends before the block of its revocation. A
    block is a millisecond.

    Examples
    --------
    >>> approval = Approval("0xuser", "0xbuilder", 5, 0, True)
    >>> approval_intervals([approval, Approval("0xuser", "0xbuilder", 9, 2, False)])
    {'0xuser': [('0xbuilder', 5, 9)]}
    """
    since: dict[tuple[str, str], int] = {}
    intervals: dict[str, list[Interval]] = defaultdict(list)
    for approval in sorted(approvals, key=operator.attrgetter("time", "tx_index")):
        pair = (approval.user, approval.builder)
        if approval.approved:
            since.setdefault(pair, approval.time)
        elif (first := since.pop(pair, None)) is not None and first < approval.time:
            intervals[approval.user].append((approval.builder, first, approval.time))
    for (user, builder), first in since.items():
        intervals[user].append((builder, first, None))
    return dict(intervals)
