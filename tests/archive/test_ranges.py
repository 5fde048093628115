"""Whatever ranges a history is refreshed by, in whatever order: their rows, once."""

import contextlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolkit as tk
from tests.archive.world import START, USER, Stops, fills_at, session_of
from toolkit import archive
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.records import Fill
from toolkit.errors import ServiceDown
from toolkit.times import to_iso, to_ms

LAST = 30  # milliseconds of history: every third has rows, most of them several

SINCE = to_ms(OPERATIONS["userFillsByTime"].since or 0)

# Time, transaction, and how many rows the transaction has.
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
            "answers": st.none() | st.integers(0, 6),  # how many come before the service fails
        }
    ),
    min_size=1,
    max_size=6,
)


def joined(ranges: Sequence[tuple[int, int]]) -> list[tuple[str, str]]:
    """Join ranges that touch, and write them as provenance does."""
    edges = sorted({first for first, _ in ranges} | {last + 1 for _, last in ranges})
    held = [any(a <= at <= b for a, b in ranges) for at in edges]  # from this edge to the next
    turns = [
        at
        for at, is_in, was_in in zip(edges, held, [False, *held], strict=False)
        if is_in != was_in
    ]
    return [
        (to_iso(one), to_iso(two - 1)) for one, two in zip(turns[::2], turns[1::2], strict=True)
    ]


def begins(ranges: Sequence[tuple[int, int]], start: int | None, end: int | None) -> int:
    """Where a refresh has to begin: without an end, where the range before its start ends."""
    held = [(first, last) for first, last in ranges if first <= last]
    if start is None:
        return min((first for first, _ in held), default=SINCE)
    if end is not None:
        return start
    return min(start, max((last + 1 for first, last in held if first <= start), default=start))


def refreshed(kept: archive.Archive, fills: list[Fill], inclusive: bool, asked: Any) -> Any:
    """Refresh, again where the service failed."""
    call = {k: v for k, v in asked.items() if k != "answers"}
    if (after := asked["answers"]) is not None:
        failing = session_of(fills, inclusive=inclusive, through=lambda inner: Stops(inner, after))
        with contextlib.suppress(ServiceDown):
            return kept.refresh(tk.user_fills_by_time, USER, session=failing, **call)
    session = session_of(fills, inclusive=inclusive)
    return kept.refresh(tk.user_fills_by_time, USER, session=session, **call)


@pytest.mark.filterwarnings("ignore::toolkit.errors.HistoryWarning")
@given(groups=GROUPS, inclusive=st.booleans(), refreshes=REFRESHES)
def test_the_rows_are_those_of_the_ranges_and_so_is_what_is_called_complete(
    groups: list[tuple[int, int, int]], inclusive: bool, refreshes: list[dict[str, Any]]
) -> None:
    fills = fills_at((START + at, tx) for at, tx, size in sorted(groups) for _ in range(size))
    now = fills[-1].time + 1_000
    everything = tk.user_fills_by_time(USER, START, numbers="text", session=session_of(fills))
    ranges: list[tuple[int, int]] = []
    with tempfile.TemporaryDirectory() as folder:
        kept = archive.open(folder)
        for asked in refreshes:
            done = refreshed(kept, fills, inclusive, asked)
            first, last = done.start_ms, done.until_ms
            assert first == begins(ranges, asked["start"], asked["end"])
            assert last == (now if asked["end"] is None else min(now, asked["end"]))
            ranges.append((first, last))
            wanted = [
                n for n, one in enumerate(fills) if any(a <= one.time <= b for a, b in ranges)
            ]
            assert done.total == len(wanted)
            archived = kept.frame(tk.user_fills_by_time, USER, numbers="text")
            pd.testing.assert_frame_equal(archived, everything.take(wanted).reset_index(drop=True))
            assert tk.provenance(archived)["covered"] == joined(ranges)
        assert [one for one in kept.verify() if one.severity == "error"] == []


@pytest.mark.parametrize("since", [START, START - 10_000], ids=["rows", "no rows yet"])
def test_a_refresh_that_begins_too_late_loses_nothing(tmp_path: Path, since: int) -> None:
    """The job of every week, a while late: the second range begins after the first has ended."""
    fills = fills_at((START + at, 0) for at in range(LAST))
    session, kept = session_of(fills), archive.open(tmp_path)
    kept.refresh(tk.user_fills_by_time, USER, since, since + 5, session=session)
    done = kept.refresh(tk.user_fills_by_time, USER, START + 20, session=session)
    assert (done.start_ms, done.total) == (since + 6, LAST)
    assert kept.status()["gaps"].tolist() == [0]
    archived = kept.frame(tk.user_fills_by_time, USER)
    assert tk.provenance(archived)["complete"] == "yes"
    pd.testing.assert_frame_equal(archived, tk.user_fills_by_time(USER, since, session=session))
    assert kept.verify() == []


def test_a_gap_after_a_stretch_without_rows_is_filled(tmp_path: Path) -> None:
    fills = fills_at((START + at, 0) for at in range(LAST))
    session, kept = session_of(fills), archive.open(tmp_path)
    kept.refresh(tk.user_fills_by_time, USER, START - 20, START - 10, session=session)
    later = (START + 20, START + 25)
    kept.refresh(tk.user_fills_by_time, USER, *later, session=session)
    assert kept.status()["gaps"].tolist() == [1]
    done = kept.refresh(tk.user_fills_by_time, USER, session=session)
    assert (done.start_ms, done.total) == (START - 20, LAST)
    assert kept.status()["gaps"].tolist() == [0]
    assert kept.refresh(tk.user_fills_by_time, USER, session=session).rows == 0
    assert kept.verify() == []


def test_an_earlier_stretch_of_samples_leaves_a_gap_and_no_damage(tmp_path: Path) -> None:
    session, kept = tk.local(seed=7, size="tiny", default=False), archive.open(tmp_path)
    asked = (tk.slippage_history, "BTC", 1_000)
    kept.refresh(*asked, "2025-09-29", session=session)
    done = kept.refresh(*asked, "2025-09-28", "2025-09-28T12:00", session=session)
    assert (done.rows, done.total) == (49, 242)
    assert [(one.kind, one.severity) for one in kept.verify()] == [("gap", "notice")]
    kept.refresh(*asked, session=session)
    assert kept.verify() == []
    fetched = tk.slippage_history("BTC", 1_000, "2025-09-28", session=session)
    pd.testing.assert_frame_equal(kept.frame(*asked), fetched)
