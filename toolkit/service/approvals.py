"""When which builder was approved. Specification, "Builder approval"."""

import operator
from collections import defaultdict
from collections.abc import Iterable, Iterator

from toolkit.contract.sources import Approval

__all__ = ["Approvals", "approval_intervals"]

Interval = tuple[str, int, int | None]
"""Builder, first millisecond, and the millisecond from which the approval no longer holds."""


class Approvals:
    """Tells which builders a user had approved at a time."""

    def __init__(self, approvals: Iterable[Approval]) -> None:
        self._intervals = approval_intervals(approvals)

    def of(self, user: str, time: int) -> Iterator[str]:
        """Give the builders that `user` had approved in the block at `time`."""
        for builder, first, end in self._intervals.get(user, ()):
            if first <= time and (end is None or time < end):
                yield builder


def approval_intervals(approvals: Iterable[Approval]) -> dict[str, list[Interval]]:
    """Give, for each user, when which builders were approved.

    An approval holds from the block it lands in, and no longer from the block that a revocation
    lands in. A block is a millisecond.

    Examples
    --------
    >>> one = Approval("0xuser", "0xbuilder", 5, 0, True)
    >>> approval_intervals([one, Approval("0xuser", "0xbuilder", 9, 2, False)])
    {'0xuser': [('0xbuilder', 5, 9)]}
    """
    since: dict[tuple[str, str], int] = {}
    intervals: dict[str, list[Interval]] = defaultdict(list)
    for one in sorted(approvals, key=operator.attrgetter("time", "tx_index")):
        pair = (one.user, one.builder)
        if one.approved:
            since.setdefault(pair, one.time)
        elif (first := since.pop(pair, None)) is not None and first < one.time:
            intervals[one.user].append((one.builder, first, one.time))
    for (user, builder), first in since.items():
        intervals[user].append((builder, first, None))
    return dict(intervals)
