"""Coverage: the complete ranges of a history.

A time range is a pair of Unix milliseconds, both ends inclusive. An archive and a service that
serves an archive decide by the same functions whether a request is covered.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from toolkit.contract.operations import Operation
from toolkit.times import to_ms

TimeRange = tuple[int, int]
"""First and last millisecond, both inclusive."""


class HistoryCoverage(NamedTuple):
    """What an archive has of one history.

    - ``ranges``: time ranges that are proved complete, ascending
    - ``first``, ``last``: the times of the first and the last known row. Rows at the cut end of a
      page lie outside of every range.
    """

    ranges: list[TimeRange]
    first: int
    last: int


def join_ranges(ranges: Iterable[TimeRange]) -> list[TimeRange]:
    """Return the ranges in ascending order; ranges that touch or overlap are joined.

    A range that ends before it begins is left out.

    Examples
    --------
    >>> join_ranges([(5, 9), (1, 4), (20, 30), (12, 11)])
    [(1, 9), (20, 30)]
    """
    joined: list[TimeRange] = []
    for start, end in sorted(ranges):
        if end < start:
            continue
        if joined and start <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def subtract_ranges(ranges: Iterable[TimeRange], holes: Iterable[TimeRange]) -> list[TimeRange]:
    """Return the ranges without the times of the holes, in ascending order.

    Examples
    --------
    >>> subtract_ranges([(1, 9), (20, 30)], [(3, 4), (8, 22)])
    [(1, 2), (5, 7), (23, 30)]
    """
    left = join_ranges(ranges)
    for first, last in join_ranges(holes):
        before = ((start, min(end, first - 1)) for start, end in left)
        left = join_ranges([*before, *((max(start, last + 1), end) for start, end in left)])
    return left


def enclosing_range(ranges: Iterable[TimeRange], start: int, end: int) -> TimeRange | None:
    """Return the range that contains all of `start` to `end`, or None.

    Examples
    --------
    >>> enclosing_range([(1, 9), (20, 30)], 21, 25)
    (20, 30)
    >>> enclosing_range([(1, 9), (20, 30)], 5, 25)
    """
    return next((span for span in ranges if span[0] <= start and end <= span[1]), None)


def make_coverage(ranges: Sequence[TimeRange], times: Iterable[int] = ()) -> HistoryCoverage:
    """Return the coverage of a history from its complete ranges and the times of its rows."""
    known = [*times, *(moment for span in ranges for moment in span)]
    return HistoryCoverage(list(ranges), min(known, default=0), max(known, default=0))


def find_covered_range(
    coverage: HistoryCoverage, operation: Operation, start: int | None, end: int | None, now_ms: int
) -> TimeRange | None:
    """Return the complete range that contains a requested range, or None.

    Parameters
    ----------
    coverage : HistoryCoverage
        What is known of the history.
    operation : Operation
        The operation of the history. Before its first day no data is missing.
    start : int or None
        Where the request begins; None for the beginning of what is known.
    end : int or None
        Where the request ends. None, or a time that is not before `now_ms`, means the end of what
        is known. The request must then begin before that end. Histories are refreshed one after
        the other, so most of them end before the common present.
    now_ms : int
        The present.

    Examples
    --------
    >>> from toolkit.contract.operations import OPERATIONS
    >>> known = make_coverage([(1_000, 2_000), (3_000, 4_000)])
    >>> funding = OPERATIONS["builderApprovedFundingByTime"]
    >>> find_covered_range(known, funding, 1_500, 2_000, now_ms=5_000)
    (1000, 2000)
    >>> find_covered_range(known, funding, 3_500, None, now_ms=5_000)
    (3000, 4000)
    >>> find_covered_range(known, funding, 1_500, 3_500, now_ms=5_000)
    >>> find_covered_range(known, funding, 4_000, None, now_ms=5_000)
    """
    first = coverage.first if start is None else start
    if operation.since:
        first = max(first, to_ms(operation.since))
    if end is None or end >= now_ms:
        # Nothing is known of a request that begins where the known rows end.
        if first >= coverage.last < now_ms and first > coverage.first:
            return None
        last = coverage.last if end is None else min(end, coverage.last)
    else:
        last = end
    return enclosing_range(coverage.ranges, first, max(first, last))
