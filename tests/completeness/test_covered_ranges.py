"""Coverage: time ranges, and the requests that they cover."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from toolkit.completeness import covered_ranges
from toolkit.contract.operations import OPERATIONS
from toolkit.times import to_ms

FILLS = OPERATIONS["userFillsByTime"]
FIRST_DAY = to_ms(FILLS.since)
RANGES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)))


def milliseconds(ranges):
    return {moment for start, end in ranges for moment in range(start, end + 1)}


@given(RANGES)
def test_joined_ranges_keep_every_millisecond(ranges):
    joined = covered_ranges.join_ranges(ranges)
    assert milliseconds(joined) == milliseconds(ranges)
    assert joined == sorted(joined)
    gaps = [later[0] - earlier[1] for earlier, later in itertools.pairwise(joined)]
    assert all(gap > 1 for gap in gaps)  # ranges that touch are one


@given(RANGES, st.integers(0, 60), st.integers(0, 60))
def test_enclosing_range_contains_request(ranges, one, two):
    start, end = sorted((one, two))
    found = covered_ranges.enclosing_range(covered_ranges.join_ranges(ranges), start, end)
    is_covered = set(range(start, end + 1)) <= milliseconds(ranges)
    assert (found is not None) == is_covered
    assert found is None or (found[0] <= start and end <= found[1])


def test_covered_range_must_contain_whole_request():
    coverage = covered_ranges.make_coverage([(FIRST_DAY, FIRST_DAY + 200)])
    for start, end, is_covered in (
        (0, None, True),  # all that is known; before the first day there is no data
        (100, 200, True),
        (100, 201, False),
        (None, 200, True),
        (200, None, False),  # it begins where the known rows end
        (250, 300, False),
        (100, 10_000, True),  # an end after the present stands for the end of what is known
    ):
        begin = None if start is None else FIRST_DAY * (start > 0) + start
        until = None if end is None else FIRST_DAY + end
        found = covered_ranges.find_covered_range(
            coverage, FILLS, begin, until, now_ms=FIRST_DAY + 1_000
        )
        assert (found is not None) == is_covered


def test_rows_outside_ranges_extend_coverage():
    coverage = covered_ranges.make_coverage([(10, 20)], times=(5, 30))
    assert (coverage.first, coverage.last) == (5, 30)
    assert coverage.ranges == [(10, 20)]
    empty = covered_ranges.make_coverage([])
    assert (empty.ranges, empty.first, empty.last) == ([], 0, 0)
