"""Refreshes with any ranges in any order archive the rows of these ranges once."""

import contextlib
import tempfile

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toolkit as tk
from tests.archive.world import START, USER, StopsAfter, error_kinds, fill_session, make_fills_at
from toolkit.archive import open as open_archive
from toolkit.contract.operations import OPERATIONS
from toolkit.errors import ServiceDown
from toolkit.times import to_iso, to_ms

LAST = 30  # length of the history in milliseconds; every third has rows

SINCE = to_ms(OPERATIONS["userFillsByTime"].since or 0)

# Time, transaction, and number of rows of the transaction.
GROUPS = st.lists(
    st.tuples(st.integers(0, LAST // 3).map(lambda n: 3 * n), st.integers(0, 2), st.integers(1, 5)),
    min_size=1,
    max_size=12,
    unique_by=lambda group: group[:2],
)
MOMENTS = st.none() | st.integers(-3, LAST + 3).map(lambda at: START + at)
REFRESHES = st.lists(
    st.fixed_dictionaries(
        {
            "start": MOMENTS,
            "end": MOMENTS,
            "page_size": st.integers(1, 12),
            "rows_per_commit": st.integers(1, 12),
            "answers": st.none() | st.integers(0, 6),  # answers before the service fails
        }
    ),
    min_size=1,
    max_size=6,
)


def expected_coverage(ranges):
    """Return ranges joined where they touch, in the form of provenance."""
    edges = sorted({first for first, _ in ranges} | {last + 1 for _, last in ranges})
    covered = [any(a <= at <= b for a, b in ranges) for at in edges]
    turns = [
        at
        for at, is_in, was_in in zip(edges, covered, [False, *covered], strict=False)
        if is_in != was_in
    ]
    return [
        (to_iso(first), to_iso(end - 1)) for first, end in zip(turns[::2], turns[1::2], strict=True)
    ]


def expected_start(ranges, start, end):
    """Return where a refresh must begin: without an end, after the range before its start."""
    covered = [(first, last) for first, last in ranges if first <= last]
    if start is None:
        return min((first for first, _ in covered), default=SINCE)
    if end is not None:
        return start
    return min(start, max((last + 1 for first, last in covered if first <= start), default=start))


def refresh_range(archive, fills, inclusive, request):
    """Refresh; if the service fails, refresh again."""
    call = {k: v for k, v in request.items() if k != "answers"}
    if (after := request["answers"]) is not None:
        failing = fill_session(
            fills, inclusive=inclusive, through=lambda inner: StopsAfter(inner, after)
        )
        with contextlib.suppress(ServiceDown):
            return archive.refresh(tk.user_fills_by_time, USER, session=failing, **call)
    session = fill_session(fills, inclusive=inclusive)
    return archive.refresh(tk.user_fills_by_time, USER, session=session, **call)


@pytest.mark.filterwarnings("ignore::toolkit.errors.HistoryWarning")
@settings(max_examples=30)
@given(groups=GROUPS, inclusive=st.booleans(), refreshes=REFRESHES)
def test_random_ranges_equal_fetched_rows(groups, inclusive, refreshes):
    fills = make_fills_at((START + at, tx) for at, tx, size in sorted(groups) for _ in range(size))
    now = fills[-1].time + 1_000
    everything = tk.user_fills_by_time(USER, START, numbers="text", session=fill_session(fills))
    ranges = []
    with tempfile.TemporaryDirectory() as folder:
        archive = open_archive(folder)
        for request in refreshes:
            done = refresh_range(archive, fills, inclusive, request)
            first, last = done.start_ms, done.until_ms
            assert first == expected_start(ranges, request["start"], request["end"])
            assert last == (now if request["end"] is None else min(now, request["end"]))
            ranges.append((first, last))
            expected = [
                n
                for n, fill in enumerate(fills)
                if any(first <= fill.time <= last for first, last in ranges)
            ]
            assert done.total == len(expected)
            archived = archive.frame(tk.user_fills_by_time, USER, numbers="text")
            pd.testing.assert_frame_equal(
                archived, everything.take(expected).reset_index(drop=True)
            )
            assert tk.provenance(archived)["covered"] == expected_coverage(ranges)
        assert error_kinds(archive) == set()


def test_refresh_earlier_samples_leaves_gap(tmp_path, tiny):
    archive = open_archive(tmp_path)
    request = (tk.slippage_history, "BTC", 1_000)
    archive.refresh(*request, "2025-09-29", session=tiny)
    done = archive.refresh(*request, "2025-09-28", "2025-09-28T12:00", session=tiny)
    assert (done.rows, done.total) == (49, 242)
    assert [(finding.kind, finding.severity) for finding in archive.verify()] == [("gap", "notice")]
    archive.refresh(*request, session=tiny)
    assert archive.verify() == []
    fetched = tk.slippage_history("BTC", 1_000, "2025-09-28", session=tiny)
    pd.testing.assert_frame_equal(archive.frame(*request), fetched)
