"""A served archive states for each range of a history whether it is proved complete."""

import json
import warnings

import hypothesis.strategies as st
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

import toolkit as tk
from tests.archive.offline import (
    FAR,
    FILLS,
    NOW,
    OTHER,
    A,
    B,
    C,
    archive_two_ranges,
    archived_state,
    fetch_served,
    offline_session,
)
from tests.archive.world import USER, fill_session
from toolkit.archive import open as open_archive
from toolkit.errors import HistoryWarning
from toolkit.times import DAY, HOUR

QUESTIONS = [
    (A, B, "yes"),
    (A + 1, B - 1, "yes"),
    (A - 1, B, "no"),
    (0, B, "no"),
    (A, B + 1, "no"),
    (B + 1, C - 1, "no"),
    (A, C, "no"),
    (A, None, "no"),
    (C - 1, None, "no"),
    (C, None, "yes"),
    (C, NOW, "yes"),
    (C, FAR, "yes"),
    (C, C, "yes"),
    (NOW, NOW, "yes"),
    (NOW + 1, None, "no"),
    (FAR, None, "no"),
]


@pytest.mark.parametrize("cursors", ["exclusive", "inclusive"])
def test_only_archived_ranges_are_complete(tmp_path, cursors):
    archive = archive_two_ranges(tmp_path)
    sessions = [
        offline_session(path, cursors=cursors)
        for path in (tmp_path, f"{tmp_path}@{archive.freeze()}")
    ]
    live = fill_session(FILLS)
    for start, end, expected in QUESTIONS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HistoryWarning)  # some ranges are after the present
            assert (
                archived_state(archive, tk.user_fills_by_time, USER, start=start, end=end)
                == expected
            )
            for session in sessions:
                state, rows = fetch_served(
                    tk.user_fills_by_time, USER, start, end, page_size=23, session=session
                )
                assert (start, end, state) == (start, end, expected)
                if state == "yes":
                    there = tk.user_fills_by_time(USER, start, end, session=live)
                    pd.testing.assert_frame_equal(rows, there)


def test_incomplete_error_states_archived_range(tmp_path):
    archive_two_ranges(tmp_path)
    session = offline_session(tmp_path)
    with pytest.raises(tk.Incomplete) as caught:
        tk.user_fills_by_time(USER, A, C, session=session)
    message = str(caught.value)
    assert f"userFillsByTime {USER} from 2025-09-01T00:00:01.000Z to" in message
    assert "the archive has 2025-09-01T00:00:01.000Z to" in message
    assert "refresh the archive with this operation" in message
    # The error has the available rows, and no cursor to continue from.
    assert len(caught.value.rows) == sum(A <= fill.time <= B or fill.time == C for fill in FILLS)
    assert caught.value.cursor is None
    with pytest.raises(tk.Incomplete, match="the archive has no rows of it"):
        tk.user_fills_by_time(OTHER, A, B, session=session)
    with pytest.raises(tk.Incomplete, match="Leave out builder"):
        tk.user_fills_by_time(USER, A, B, builder=OTHER, session=session)
    for filters in ({"dex": "main_dex"}, {"venue": "abc"}, {"aggregate_by_time": True}):
        assert (
            fetch_served(tk.user_fills_by_time, USER, A, B, **filters, session=session)[0] == "yes"
        )


def test_cursor_time_decides_completeness(tmp_path):
    archive_two_ranges(tmp_path)
    session, live = offline_session(tmp_path), fill_session(FILLS)
    for time, expected in ((A - 1, "no"), (A, "yes"), (B - 1, "yes"), (B + 1, "no")):
        cursor = {"cursor": f"{time}_0", "end": B}
        state, rows = fetch_served(tk.user_fills_by_time, USER, **cursor, session=session)
        assert (time, state) == (time, expected)
        if state == "yes":
            pd.testing.assert_frame_equal(rows, tk.user_fills_by_time(USER, **cursor, session=live))


@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_service_and_archive_agree_on_completeness(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("drawn")
    moments = sorted({fill.time for fill in FILLS[::12]} | {A, B, C, NOW})
    moment = st.sampled_from(moments)
    archive, live = open_archive(folder / "kept"), fill_session(FILLS)
    if data.draw(st.booleans(), label="cut page"):
        ingest(
            archive, folder / "page.json", live, data.draw(moment), data.draw(st.integers(1, 60))
        )
    for start, end in data.draw(st.lists(st.tuples(moment, moment), max_size=3), label="refreshed"):
        archive.refresh(tk.user_fills_by_time, USER, start, max(start, end), session=live)
    session = (
        offline_session(folder / "kept") if (folder / "kept").exists() else offline_session(folder)
    )
    near = st.builds(lambda time, offset: time + offset, moment, st.integers(-1, 1))
    pair = st.tuples(near, st.one_of(st.none(), near, st.just(FAR)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HistoryWarning)
        for start, end in data.draw(st.lists(pair, min_size=12, max_size=12), label="requests"):
            state, _ = fetch_served(tk.user_fills_by_time, USER, start, end, session=session)
            here = archived_state(archive, tk.user_fills_by_time, USER, start=start, end=end)
            assert (start, end, state) == (start, end, here)


def ingest(archive, file, live, start, size):
    request = {"type": "userFillsByTime", "user": USER, "startTime": start, "limit": size}
    recorded = {"request": request, "status": 200, "response": tk.info(request, session=live)}
    file.write_text(json.dumps(recorded))
    archive.ingest(file)


def test_each_operation_states_completeness(tmp_path, tiny):
    world, archive = tiny.world, open_archive(tmp_path)
    now, middle = tiny.now_ms(), tiny.now_ms() - 30 * HOUR
    calls = [
        (tk.user_fills_by_time, (world["users"][0],), (world["users"][1],)),
        (tk.builder_approved_fills_by_time, (world["builders"][0],), (world["builders"][1],)),
        (tk.builder_approved_funding_by_time, (world["builders"][0],), (world["builders"][1],)),
        (tk.builder_orders_by_time, (world["builders"][0],), (world["builders"][1],)),
        (tk.user_non_funding_ledger_updates, (world["users"][0],), (world["users"][1],)),
        (tk.slippage_history, ("BTC", 1_000), ("BTC", 5_000)),
    ]
    for fetch, subject, _ in calls:
        archive.refresh(fetch, *subject, 0, middle, session=tiny)
    archive.refresh(tk.meta, session=tiny)  # a later present
    session = offline_session(tmp_path)
    assert session.now_ms() == now
    for fetch, subject, other in calls:
        for end, expected in ((middle, "yes"), (middle - HOUR, "yes"), (middle + 1, "no")):
            state, rows = fetch_served(fetch, *subject, 0, end, session=session)
            assert (fetch.__name__, end, state) == (fetch.__name__, end, expected)
            assert archived_state(archive, fetch, *subject, start=0, end=end) == expected
            if state == "yes":
                pd.testing.assert_frame_equal(rows, fetch(*subject, 0, end, session=tiny))
        assert fetch_served(fetch, *other, 0, middle, session=session)[0] == "no"
        # A range after the last known row is not proved.
        for start, end in ((middle, None), (middle + HOUR, now), (middle + HOUR, now + DAY)):
            assert fetch_served(fetch, *subject, start, end, session=session)[0] == "no"
            assert archived_state(archive, fetch, *subject, start=start, end=end) == "no"
        for end in (None, now, now + DAY):  # complete up to the last refresh, with a warning
            warning = "up to 2025-09-29T18:00:00.000Z only, and its present is"
            with pytest.warns(HistoryWarning, match=warning) as served_warnings:
                frame = fetch(*subject, 0, end, session=session)
            with pytest.warns(HistoryWarning, match=warning) as archived_warnings:
                here = archive.frame(fetch, *subject, start=0, end=end)
            assert str(served_warnings[0].message) == str(archived_warnings[0].message)
            assert archived_warnings[0].filename == __file__
            facts = [tk.provenance(each) for each in (frame, here)]
            assert [fact["complete"] for fact in facts] == ["yes", "yes"]
            assert facts[0]["covered"] == facts[1]["covered"]
            assert facts[0]["history"].endswith(facts[1]["history"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            before = archive.frame(fetch, *subject, start=0, end=middle)
        assert "history" not in tk.provenance(before)
