"""A served archive states for states and latest rows whether it has the answer."""

import json
import warnings

import pandas as pd
import pytest

import toolkit as tk
from tests.archive.offline import FILLS, as_frames, fetch_served, offline_session
from tests.archive.world import USER, ChangedAnswers, fill_session, store_session
from toolkit.archive import open as open_archive
from toolkit.contract.field_deviations import forget_deviations
from toolkit.errors import ArchiveError
from toolkit.local_service import simulated_store


def test_serve_archived_states(tmp_path, tiny):
    archive, users = open_archive(tmp_path), tiny.world["users"]
    dex = next(name for name in tiny.world["dexes"] if name)
    archived = [
        (tk.meta, (), {}),
        (tk.meta_and_asset_ctxs, (), {"dex": dex}),
        (tk.perp_dex_limits, (dex,), {}),
        (tk.perp_dex_limits, ("",), {}),  # null
        (tk.borrow_lend_user_state, (users[0],), {}),
        (tk.delegations, (users[0],), {}),
        (tk.batch_clearinghouse_states, (users[:3],), {}),
        (tk.batch_clearinghouse_states, (users[3:5],), {"dex": "ALL_DEXES"}),
        (tk.current_depth, (), {}),
    ]
    missing = [
        (tk.meta, (), {"dex": "nowhere"}),
        (tk.meta_and_asset_ctxs, (), {}),
        (tk.perp_dex_limits, ("nowhere",), {}),
        (tk.borrow_lend_user_state, (users[1],), {}),
        (tk.delegations, (users[1],), {}),
        (tk.batch_clearinghouse_states, (users[:6],), {}),
        (tk.batch_clearinghouse_states, (users[:1],), {"dex": dex}),
        (tk.user_fills, (users[0],), {}),
        (tk.historical_orders, (users[0],), {}),
    ]
    for fetch, arguments, named in archived:
        archive.refresh(fetch, *arguments, **named, session=tiny)
    session = offline_session(tmp_path)
    for fetch, arguments, named in archived:
        state, rows = fetch_served(fetch, *arguments, **named, session=session)
        assert (fetch.__name__, named, state) == (fetch.__name__, named, "yes")
        there = as_frames(fetch(*arguments, **named, session=tiny))
        for found in (rows, archive.frame(fetch, *arguments, **named)):
            for kept, expected in zip(as_frames(found), there, strict=True):
                pd.testing.assert_frame_equal(kept, expected)
    for fetch, arguments, named in missing:
        with pytest.raises(tk.Incomplete, match="refresh the archive"):
            fetch(*arguments, **named, session=session)
        with pytest.raises(ArchiveError):
            archive.frame(fetch, *arguments, **named)


def test_serve_stored_answers(tmp_path, tiny):
    """Also answers that no rows show, such as binary snapshots and auctions."""
    archive, user = open_archive(tmp_path), tiny.world["users"][0]
    stored = [
        (tk.perp_deploy_auction_status,),
        (tk.account_value_snapshot_timestamp,),
        (tk.account_value_snapshots, ["ALL"]),
        (tk.perp_twap_snapshots, ["ALL"]),
    ]
    for fetch, *arguments in stored:
        archive.refresh(fetch, *arguments, session=tiny)
    request = {"type": "userFees", "user": user}
    file = tmp_path / "answer.json"
    answer = tk.info(request, session=tiny)
    file.write_text(json.dumps({"request": request, "status": 200, "response": answer}))
    assert archive.ingest(file)["left"] == {}
    session = offline_session(tmp_path)
    for fetch, *arguments in stored:
        there = as_frames(fetch(*arguments, session=tiny))
        for found in (fetch(*arguments, session=session), archive.frame(fetch, *arguments)):
            for kept, expected in zip(as_frames(found), there, strict=True):
                pd.testing.assert_frame_equal(kept, expected)
    assert tk.info(request, session=session) == answer
    with pytest.raises(tk.Incomplete, match=r"Archive\.frame"):
        tk.validator_apr_history(tiny.world["validators"][0], session=session)
    with pytest.raises(tk.BadRequest, match="not in"):
        tk.info({"type": "userFees", "user": USER}, session=session)


@pytest.mark.parametrize("fetch", [tk.user_fills, tk.historical_orders])
def test_latest_rows_are_served_to_the_same_request(tmp_path, tiny, fetch):
    user, archive = tiny.world["users"][0], open_archive(tmp_path)
    archive.refresh(fetch, user, max_rows=50, session=tiny)
    session = offline_session(tmp_path)
    for rows, expected in ((50, "yes"), (20, "no"), (2_000, "no")):
        state, frame = fetch_served(fetch, user, max_rows=rows, session=session)
        assert (rows, state) == (rows, expected)
        if state == "yes":
            pd.testing.assert_frame_equal(frame, fetch(user, max_rows=rows, session=tiny))


def test_latest_answer_is_served(tmp_path):
    archive = open_archive(tmp_path)
    for rows in (80, 100):
        archive.refresh(tk.user_fills, USER, session=fill_session(FILLS[:rows]))
    state, frame = fetch_served(tk.user_fills, USER, session=offline_session(tmp_path))
    assert (state, len(frame)) == ("yes", 100)


def without_field(answer, name):
    """Return an answer whose objects lack a field, as live answers do."""
    if isinstance(answer, dict):
        return {key: without_field(value, name) for key, value in answer.items() if key != name}
    return [without_field(item, name) for item in answer] if isinstance(answer, list) else answer


def lacking_session(name):
    """Return a session of the tiny exchange whose answers lack a field."""

    def change(content):
        return json.dumps(without_field(json.loads(content), name)).encode()

    through = lambda inner: ChangedAnswers(inner, change)  # noqa: E731
    return store_session(simulated_store(7, "tiny"), through=through)


def test_rows_without_user_are_served_as_they_came(tmp_path, tiny):
    archive, builder = open_archive(tmp_path), tiny.world["builders"][0]
    forget_deviations()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call, live = (tk.builder_approved_fills_by_time, builder), lacking_session("user")
        archive.refresh(*call, "2025-09-30", session=live)
        archived = archive.frame(*call, start="2025-09-30")
        session = offline_session(tmp_path)
        served = tk.builder_approved_fills_by_time(builder, "2025-09-30", session=session)
    assert len(served) > 0
    pd.testing.assert_frame_equal(served, archived)
