"""A served archive says of every range of a history whether it is proved complete."""

import json
import warnings
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

import toolkit as tk
from tests.archive.asking import (
    FAR,
    FILLS,
    NOW,
    OTHER,
    A,
    B,
    C,
    archived,
    offline,
    served,
    two_ranges,
)
from tests.archive.world import USER, session_of
from toolkit import archive
from toolkit.client import Session
from toolkit.contract.operations import OPERATIONS
from toolkit.errors import HistoryWarning
from toolkit.times import DAY, HOUR

QUESTIONS: list[tuple[int, int | None, str]] = [
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
def test_a_range_is_complete_where_one_refreshed_range_holds_it(
    tmp_path: Path, cursors: str
) -> None:
    kept = two_ranges(tmp_path)
    sessions = [
        offline(path, cursors=cursors) for path in (tmp_path, f"{tmp_path}@{kept.freeze()}")
    ]
    live = session_of(FILLS)
    for start, end, expected in QUESTIONS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HistoryWarning)  # ranges after the present
            assert archived(kept, tk.user_fills_by_time, USER, start=start, end=end) == expected
            for session in sessions:
                said, rows = served(
                    tk.user_fills_by_time, USER, start, end, page_size=23, session=session
                )
                assert (start, end, said) == (start, end, expected)
                if said == "yes":
                    there = tk.user_fills_by_time(USER, start, end, session=live)
                    pd.testing.assert_frame_equal(rows, there)


def test_the_words_say_what_there_is_and_what_to_do(tmp_path: Path) -> None:
    two_ranges(tmp_path)
    session = offline(tmp_path)
    with pytest.raises(tk.Incomplete) as caught:
        tk.user_fills_by_time(USER, A, C, session=session)
    said = str(caught.value)
    assert f"userFillsByTime {USER} from 2025-09-01T00:00:01.000Z to" in said
    assert "the archive has 2025-09-01T00:00:01.000Z to" in said
    assert "refresh it into the archive" in said
    # What there is has come, and there is nothing to go on from.
    assert len(caught.value.rows) == sum(A <= one.time <= B or one.time == C for one in FILLS)
    assert caught.value.cursor is None
    with pytest.raises(tk.Incomplete, match="the archive has nothing of it"):
        tk.user_fills_by_time(OTHER, A, B, session=session)
    with pytest.raises(tk.Incomplete, match="leave out builder"):
        tk.user_fills_by_time(USER, A, B, builder=OTHER, session=session)
    for filters in ({"dex": "main_dex"}, {"venue": "abc"}, {"aggregate_by_time": True}):
        assert served(tk.user_fills_by_time, USER, A, B, **filters, session=session)[0] == "yes"


def test_a_cursor_stands_for_its_time(tmp_path: Path) -> None:
    two_ranges(tmp_path)
    session, live = offline(tmp_path), session_of(FILLS)
    for time, expected in ((A - 1, "no"), (A, "yes"), (B - 1, "yes"), (B + 1, "no")):
        cursor = {"cursor": f"{time}_0", "end": B}
        said, rows = served(tk.user_fills_by_time, USER, **cursor, session=session)
        assert (time, said) == (time, expected)
        if said == "yes":
            pd.testing.assert_frame_equal(rows, tk.user_fills_by_time(USER, **cursor, session=live))


def test_what_a_service_may_not_have_before_its_first_day_is_not_missing(tmp_path: Path) -> None:
    kept = archive.open(tmp_path)
    kept.refresh(tk.user_fills_by_time, USER, session=session_of(FILLS))  # from the first day on
    assert archived(kept, tk.user_fills_by_time, USER, start=0) == "yes"
    assert served(tk.user_fills_by_time, USER, 0, session=offline(tmp_path))[0] == "yes"


@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_who_asks_the_service_is_told_what_the_archive_says(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("drawn")
    moments = sorted({one.time for one in FILLS[::12]} | {A, B, C, NOW})
    moment = st.sampled_from(moments)
    kept, live = archive.open(folder / "kept"), session_of(FILLS)
    if data.draw(st.booleans(), label="cut page"):
        ingest(kept, folder / "page.json", live, data.draw(moment), data.draw(st.integers(1, 60)))
    for start, end in data.draw(st.lists(st.tuples(moment, moment), max_size=3), label="refreshed"):
        kept.refresh(tk.user_fills_by_time, USER, start, max(start, end), session=live)
    session = offline(folder / "kept") if (folder / "kept").exists() else offline(folder)
    near = st.builds(lambda one, by: one + by, moment, st.integers(-1, 1))
    pair = st.tuples(near, st.one_of(st.none(), near, st.just(FAR)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HistoryWarning)
        for start, end in data.draw(st.lists(pair, min_size=12, max_size=12), label="asked"):
            said, _ = served(tk.user_fills_by_time, USER, start, end, session=session)
            here = archived(kept, tk.user_fills_by_time, USER, start=start, end=end)
            assert (start, end, said) == (start, end, here)


def ingest(kept: archive.Archive, file: Path, live: Session, start: int, size: int) -> None:
    asked = {"type": "userFillsByTime", "user": USER, "startTime": start, "limit": size}
    recorded = {"request": asked, "status": 200, "response": tk.info(asked, session=live)}
    file.write_text(json.dumps(recorded))
    kept.ingest(file)


@pytest.fixture(scope="module", name="tiny")
def _tiny() -> Session:
    return tk.local(seed=7, size="tiny", default=False)


def test_each_history_is_proved_by_its_own_refreshes(tmp_path: Path, tiny: Session) -> None:
    world, kept = tiny.world, archive.open(tmp_path)
    now, middle = tiny.now_ms(), tiny.now_ms() - 30 * HOUR
    calls: list[tuple[Any, tuple[Any, ...], tuple[Any, ...]]] = [
        (tk.user_fills_by_time, (world["users"][0],), (world["users"][1],)),
        (tk.builder_approved_fills_by_time, (world["builders"][0],), (world["builders"][1],)),
        (tk.builder_approved_funding_by_time, (world["builders"][0],), (world["builders"][1],)),
        (tk.builder_orders_by_time, (world["builders"][0],), (world["builders"][1],)),
        (tk.user_non_funding_ledger_updates, (world["users"][0],), (world["users"][1],)),
        (tk.slippage_history, ("BTC", 1_000), ("BTC", 5_000)),
    ]
    for fetch, subject, _ in calls:
        kept.refresh(fetch, *subject, 0, middle, session=tiny)
    kept.refresh(tk.meta, session=tiny)  # of the present
    session = offline(tmp_path)
    assert session.now_ms() == now
    for fetch, subject, other in calls:
        for end, expected in ((middle, "yes"), (middle - HOUR, "yes"), (middle + 1, "no")):
            said, rows = served(fetch, *subject, 0, end, session=session)
            assert (fetch.__name__, end, said) == (fetch.__name__, end, expected)
            assert archived(kept, fetch, *subject, start=0, end=end) == expected
            if said == "yes":
                pd.testing.assert_frame_equal(rows, fetch(*subject, 0, end, session=tiny))
        assert served(fetch, *other, 0, middle, session=session)[0] == "no"
        # Of what begins after all that is known: not proved.
        for start, end in ((middle, None), (middle + HOUR, now), (middle + HOUR, now + DAY)):
            assert served(fetch, *subject, start, end, session=session)[0] == "no"
            assert archived(kept, fetch, *subject, start=start, end=end) == "no"
        for end in (None, now, now + DAY):  # as far as it was refreshed, and that is said
            said_so = "up to 2025-09-29T18:00:00.000Z only, and its present is"
            with pytest.warns(HistoryWarning, match=said_so) as served_so:
                frame = fetch(*subject, 0, end, session=session)
            with pytest.warns(HistoryWarning, match=said_so) as archived_so:
                here = kept.frame(fetch, *subject, start=0, end=end)
            assert str(served_so[0].message) == str(archived_so[0].message)
            assert archived_so[0].filename == __file__
            facts = [tk.provenance(one) for one in (frame, here)]
            assert [one["complete"] for one in facts] == ["yes", "yes"]
            assert facts[0]["covered"] == facts[1]["covered"]
            assert facts[0]["history"].endswith(facts[1]["history"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            before = kept.frame(fetch, *subject, start=0, end=middle)
        assert "history" not in tk.provenance(before)


def test_a_coin_is_found_by_each_name_of_the_native_dex(tmp_path: Path, tiny: Session) -> None:
    archive.open(tmp_path).refresh(tk.slippage_history, "main:BTC", 1_000, 0, session=tiny)
    for coin in ("BTC", "main:BTC", "hyperliquid:BTC"):
        assert served(tk.slippage_history, coin, 1_000, 0, session=offline(tmp_path))[0] == "yes"


def test_a_simulated_exchange_says_nothing(tiny: Session) -> None:
    answer = tiny.ask(OPERATIONS["meta"], {"dex": ""})
    assert not {"x-toolkit-incomplete", "x-toolkit-covered"} & set(answer.headers)
    assert "covered" not in tk.provenance(
        tk.user_fills_by_time(tiny.world["users"][0], 0, session=tiny)
    )


def test_a_fill_that_two_operations_wrote_differently_comes_once(
    tmp_path: Path, tiny: Session
) -> None:
    builder, kept = tiny.world["builders"][0], archive.open(tmp_path)
    shown = tk.builder_approved_fills_by_time(builder, 0, session=tiny)
    user = shown["user"].mode()[0]
    fetched = tk.user_fills_by_time(user, 0, session=tiny)
    kept.ingest(fetched)  # writes the numbers anew, without their zeros
    kept.refresh(tk.builder_approved_fills_by_time, builder, 0, session=tiny)
    session = offline(tmp_path)
    rows = tk.user_fills_by_time(user, 0, fetched["time"].max(), session=session)
    pd.testing.assert_frame_equal(rows, fetched)
    again = tk.builder_approved_fills_by_time(builder, 0, session=session)
    pd.testing.assert_frame_equal(again, shown)
