"""Every way to ask a served archive says what is not proved."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import toolkit as tk
from tests.archive.asking import (
    FAR,
    FILLS,
    NOW,
    OTHER,
    A,
    B,
    C,
    frames_of,
    offline,
    served,
    two_ranges,
)
from tests.archive.world import START, USER, session_of
from toolkit import archive
from toolkit.client import connect
from toolkit.fetch.notices import IncompleteWarning
from toolkit.local_service import archived_store, site_of
from toolkit.service import Access, Key
from toolkit.service.http import run_server

RANGES = [(A, B), (A - 1, B), (A, None), (B + 1, C - 1), (C, None), (C, FAR), (NOW, NOW)]


def test_a_port_says_what_the_process_says(tmp_path: Path) -> None:
    kept = two_ranges(tmp_path)
    kept.refresh(tk.user_fills, USER, session=session_of(FILLS))
    here = offline(tmp_path)
    store = archived_store(tmp_path)
    questions: list[tuple[Any, tuple[Any, ...]]] = [
        *((tk.user_fills_by_time, (USER, *asked)) for asked in RANGES),
        (tk.user_fills_by_time, (OTHER, A)),
        (tk.user_fills, (USER,)),
        (tk.user_fills, (OTHER,)),
        (tk.current_depth, ()),
        (tk.perp_twap_snapshots, (["ALL"],)),
        (tk.batch_clearinghouse_states, ([USER, OTHER],)),
    ]
    site = site_of(store, Access([Key("k", "some-key")]))
    with run_server(site) as address, connect(address, "some-key", default=False) as there:
        for fetch, arguments in questions:
            one, two = (
                [
                    {k: v for k, v in tk.provenance(frame).items() if k not in ("waited_seconds",)}
                    for frame in frames_of(served(fetch, *arguments, session=session)[1])
                ]
                for session in (here, there)
            )
            assert one == two
    store.close()


def test_of_many_subjects_one_that_is_not_proved_fails_alone(tmp_path: Path) -> None:
    kept, live = archive.open(tmp_path), session_of(FILLS, users=(USER, OTHER))
    kept.refresh(tk.user_fills_by_time, USER, START, session=live)
    kept.refresh(tk.user_fills_by_time, OTHER, START, B, session=live)
    session = offline(tmp_path)
    with pytest.raises(tk.Incomplete, match=f"1 of 2 failed, first {OTHER}") as caught:
        tk.many(tk.user_fills_by_time, [USER, OTHER], START, C, session=session)
    assert set(caught.value.rows["user"]) == {USER}
    assert "refresh it into the archive" in str(caught.value.failed[OTHER])
    # A joined frame is proved as far as each of its parts is.
    both = tk.many(tk.user_fills_by_time, [USER, OTHER], START, session=session)
    facts = tk.provenance(both)
    assert facts["complete"] == "yes"
    assert (
        facts["covered"][0] == tk.provenance(kept.frame(tk.user_fills_by_time, OTHER))["covered"][0]
    )
    assert facts["history"].startswith("the archive has this history up to 2025-09-01T")


def test_who_wants_what_there_is_gets_it_marked(tmp_path: Path) -> None:
    two_ranges(tmp_path)
    session = offline(tmp_path)
    with pytest.warns(IncompleteWarning, match="is not proved complete"):
        rows = tk.user_fills_by_time(USER, A, on_incomplete="warn", session=session)
    facts = tk.provenance(rows)
    assert (facts["complete"], len(rows)) == (
        "no",
        sum(A <= f.time <= B or f.time >= C for f in FILLS),
    )
    assert facts["why"].startswith(f"userFillsByTime {USER} from")
    with pytest.warns(IncompleteWarning, match="has no answer to meta hyperliquid"):
        assert tk.raw(tk.meta, session=session)["universe"] == []


def test_other_ways_to_ask_say_it_too(tmp_path: Path) -> None:
    two_ranges(tmp_path / "kept")
    session = offline(tmp_path / "kept")
    call = (tk.user_fills_by_time, USER, A)
    with pytest.raises(tk.Incomplete, match="not proved complete") as caught:
        next(tk.pages(*call, page_size=10, session=session))
    assert len(caught.value.rows) > 0
    with pytest.warns(IncompleteWarning) as said:
        pages = list(tk.pages(*call, page_size=50, on_incomplete="warn", session=session))
    assert len(said) == 1
    assert {tk.provenance(one)["complete"] for one in pages} == {"no"}
    with pytest.warns(IncompleteWarning):
        tk.raw(*call, session=session)
    with pytest.warns(IncompleteWarning):
        tk.info({"type": "userFillsByTime", "user": USER, "startTime": A}, session=session)
    plan = tk.plan(*call, probe=True, session=session)
    assert (plan.rows, plan.sure) == (None, "at least")
    assert "not proved complete" in plan.why
    with pytest.raises(tk.Incomplete):
        next(tk.poll(tk.perp_twap_snapshot_timestamp, tk.meta, session=session))


def test_an_archive_of_an_archive_claims_no_more(tmp_path: Path) -> None:
    two_ranges(tmp_path / "kept").refresh(tk.user_fills, USER, session=session_of(FILLS))
    session, copy = offline(tmp_path / "kept"), archive.open(tmp_path / "copy")
    with pytest.raises(tk.Incomplete, match="not proved complete"):
        copy.refresh(tk.user_fills_by_time, USER, A, session=session)
    with pytest.raises(tk.Incomplete, match="no answer to meta hyperliquid"):
        copy.refresh(tk.meta, session=session)
    assert len(copy.status()) == 0
    copy.refresh(tk.user_fills_by_time, USER, A, B, session=session)
    copy.refresh(tk.user_fills, USER, session=session)
    late = archive.open(tmp_path / "late")
    late.refresh(tk.user_fills_by_time, USER, A, B, session=session_of(FILLS))
    late.refresh(tk.user_fills, USER, session=session_of(FILLS))
    again = archive.open(tmp_path / "again")
    again.refresh(tk.user_fills_by_time, USER, A, session=offline(tmp_path / "late"))
    for one in (copy, again):
        (until,) = one.status()["covered_until"].dropna()
        assert until == pd.Timestamp(B, unit="ms", tz="UTC")


def test_frames_that_meet_are_whole_and_no_longer_than_they_are_proved(tmp_path: Path) -> None:
    kept, live = archive.open(tmp_path), session_of(FILLS)
    kept.refresh(tk.user_fills_by_time, USER, A, B, session=live)
    kept.refresh(tk.user_fills, USER, session=live)  # the present is later
    session = offline(tmp_path)
    first = tk.user_fills_by_time(USER, A, session=session)
    assert tk.provenance(tk.concat([first]))["complete"] == "yes"
    rest = tk.user_fills_by_time(USER, B + 1, session=live)
    assert tk.provenance(tk.concat([first, rest]))["complete"] == "yes"
    gap = tk.user_fills_by_time(USER, C, session=live)
    assert tk.provenance(tk.concat([first, gap]))["complete"] == "no"
