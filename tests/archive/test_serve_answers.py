"""A served archive states for states and latest rows whether it has the answer."""

import json
from typing import Any

import httpx
import pandas as pd
import pytest

import toolkit as tk
from tests.archive.offline import (
    FILLS,
    as_frames,
    fetch_served,
    offline_session,
)
from tests.archive.world import START, USER, fill_session
from toolkit.archive import open as open_archive
from toolkit.errors import ArchiveError


@pytest.fixture(scope="module", name="tiny")
def _tiny():
    return tk.local(seed=7, size="tiny", default=False)


def test_serve_archived_states(tmp_path, tiny):
    archive, world = open_archive(tmp_path), tiny.world
    users, dex = world["users"], next(name for name in world["dexes"] if name)
    archived: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
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
    proved = [
        *archived,
        (tk.meta, (), {"dex": dex}),  # metaAndAssetCtxs contains it
        (tk.batch_clearinghouse_states, (users[1:2],), {}),
        (tk.batch_clearinghouse_states, (users[:5],), {}),
        (tk.batch_clearinghouse_states, (users[3:4],), {"dex": dex}),
        (tk.current_depth, (), {"dex": dex}),
        (tk.current_depth, (), {"dex": "hyperliquid"}),
    ]
    unproved: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
        (tk.meta, (), {"dex": "nowhere"}),
        (tk.meta_and_asset_ctxs, (), {}),
        (tk.perp_dex_limits, ("nowhere",), {}),
        (tk.borrow_lend_user_state, (users[1],), {}),
        (tk.delegations, (users[1],), {}),
        (tk.batch_clearinghouse_states, (users[:6],), {}),
        (tk.batch_clearinghouse_states, (users[:1],), {"dex": dex}),
        (tk.batch_clearinghouse_states, (users[2:4],), {"dex": "ALL_DEXES"}),
        (tk.user_fills, (users[0],), {}),
        (tk.historical_orders, (users[0],), {}),
    ]
    for fetch, arguments, named in [*archived, (tk.perp_deploy_auction_status, (), {})]:
        archive.refresh(fetch, *arguments, **named, session=tiny)
    session = offline_session(tmp_path)
    for fetch, arguments, named in proved:
        state, rows = fetch_served(fetch, *arguments, **named, session=session)
        assert (fetch.__name__, arguments, named, state) == (
            fetch.__name__,
            arguments,
            named,
            "yes",
        )
        there = fetch(*arguments, **named, session=tiny)
        for served, expected in zip(as_frames(rows), as_frames(there), strict=True):
            pd.testing.assert_frame_equal(served, expected)
    for fetch, arguments, named in unproved:
        with pytest.raises(tk.Incomplete, match="refresh the archive with this operation"):
            fetch(*arguments, **named, session=session)
        with pytest.raises(ArchiveError):
            archive.frame(fetch, *arguments, **named)


def test_serve_refuses_computed_operations(tmp_path, tiny):
    archive = open_archive(tmp_path)
    archive.refresh(tk.perp_deploy_auction_status, session=tiny)
    calls: list[tuple[Any, tuple[Any, ...]]] = [
        (tk.perp_deploy_auction_status, ()),
        (tk.spot_pair_deploy_auction_status, ()),
        (tk.validator_apr_history, (tiny.world["validators"][0],)),
        (tk.account_value_snapshot_timestamp, ()),
        (tk.account_value_snapshots, (["ALL"],)),
        (tk.perp_twap_snapshot_timestamp, ()),
        (tk.perp_twap_snapshots, (["ALL"],)),
    ]
    session = offline_session(tmp_path)
    for number, (fetch, arguments) in enumerate(calls, 1):
        with pytest.raises(tk.Incomplete, match=r"read it with Archive\.frame") as caught:
            fetch(*arguments, session=session)
        assert len(caught.value.rows) == 0
        assert session.counts.requests == number  # without a retry
    assert len(archive.frame(tk.perp_deploy_auction_status)) == 1


@pytest.mark.parametrize(
    ("fetch", "later"),
    [
        (tk.user_fills, tk.user_fills_by_time),
        (tk.historical_orders, None),
    ],
)
def test_latest_rows_are_served_if_complete(tmp_path, tiny, fetch, later):
    user, archive = tiny.world["users"][0], open_archive(tmp_path)
    archive.refresh(fetch, user, max_rows=50, session=tiny)
    session = offline_session(tmp_path)
    for rows, expected in ((50, "yes"), (20, "yes"), (51, "no"), (2_000, "no")):
        state, frame = fetch_served(fetch, user, max_rows=rows, session=session)
        assert (rows, state) == (rows, expected)
        if state == "yes":
            pd.testing.assert_frame_equal(frame, fetch(user, max_rows=rows, session=tiny))
    if later is not None:
        archive.refresh(later, user, 0, session=tiny)  # has the same rows and earlier ones
        assert fetch_served(fetch, user, max_rows=50, session=offline_session(tmp_path))[0] == "yes"


def test_serve_latest_fills_with_filters(tmp_path, tiny):
    few = next(
        user for user in tiny.world["users"] if 0 < len(tk.user_fills(user, session=tiny)) < 2_000
    )
    archive = open_archive(tmp_path)
    archive.refresh(tk.user_fills, tiny.world["users"][0], max_rows=50, session=tiny)
    archive.refresh(tk.user_fills, tiny.world["users"][0], dex="", max_rows=30, session=tiny)
    archive.refresh(tk.user_fills, few, session=tiny)
    session = offline_session(tmp_path)
    for named in ({}, {"dex": ""}, {"aggregate_by_time": True}, {"max_rows": 3}):
        state, frame = fetch_served(tk.user_fills, few, **named, session=session)
        assert (named, state) == (named, "yes")  # the answer had all rows
        pd.testing.assert_frame_equal(frame, tk.user_fills(few, **named, session=tiny))
    user = tiny.world["users"][0]
    for named, expected in (
        ({"dex": "", "max_rows": 30}, "yes"),
        ({"dex": "", "max_rows": 31}, "no"),
        ({"aggregate_by_time": True, "max_rows": 30}, "no"),
        ({"builder": tiny.world["builders"][0], "max_rows": 1}, "no"),
    ):
        state, frame = fetch_served(tk.user_fills, user, **named, session=session)
        assert (named, state) == (named, expected)
        if state == "yes":
            pd.testing.assert_frame_equal(frame, tk.user_fills(user, **named, session=tiny))


def test_range_does_not_prove_latest_fills(tmp_path, tiny):
    user = next(
        user
        for user in tiny.world["users"]
        if tk.user_fills(user, session=tiny)["builder"].notna().any()
    )
    archive = open_archive(tmp_path)
    archive.refresh(tk.user_fills_by_time, user, 0, session=tiny)
    state, rows = fetch_served(tk.user_fills, user, session=offline_session(tmp_path))
    there = tk.user_fills(user, session=tiny)
    assert (state, len(rows)) == ("no", len(there))
    assert rows["builder"].isna().all()
    # Later rows of another operation: the archived answer is not the latest any more.
    other = open_archive(tmp_path / "other")
    before = fill_session(FILLS[:100])
    other.refresh(tk.user_fills, USER, session=before)
    assert (
        fetch_served(tk.user_fills, USER, session=offline_session(tmp_path / "other"))[0] == "yes"
    )
    other.refresh(tk.user_fills_by_time, USER, START, session=fill_session(FILLS))
    with pytest.raises(tk.Incomplete, match="later rows of other operations"):
        tk.user_fills(USER, session=offline_session(tmp_path / "other"))


def test_failed_state_is_not_served(tmp_path, tiny):
    archive, user = open_archive(tmp_path), tiny.world["users"][0]
    state = tk.info({"type": "batchClearinghouseStates", "users": [user]}, session=tiny)
    failed = {"successful_states": [], "failed_wallets": [user]}

    def keep(dex, response):
        request = {"type": "batchClearinghouseStates", "users": [user], "dex": dex}
        file = tmp_path / "answer.json"
        file.write_text(json.dumps({"request": request, "status": 200, "response": response}))
        assert archive.ingest(file)["left"] == {}
        call = (tk.batch_clearinghouse_states, [user])
        session = offline_session(tmp_path)
        return "".join(fetch_served(*call, dex=name, session=session)[0][0] for name in ("", "flx"))

    assert keep("", failed) == "yn"
    assert keep("flx", failed) == "yy"
    assert keep("flx", state) == "ny"  # the state on the native dex is not known any more
    assert keep("", state) == "yy"
    assert keep("", failed) == "yn"


def test_meta_alone_proves_no_contexts(tmp_path, tiny):
    archive, file = open_archive(tmp_path / "kept"), tmp_path / "meta.json"
    archive.refresh(tk.meta_and_asset_ctxs, session=tiny)
    archive.refresh(tk.meta, session=tiny)
    assert (
        fetch_served(tk.meta_and_asset_ctxs, session=offline_session(tmp_path / "kept"))[0] == "yes"
    )
    meta = tk.info({"type": "meta"}, session=tiny)
    meta["universe"] = meta["universe"][:-1]
    file.write_text(json.dumps({"request": {"type": "meta"}, "status": 200, "response": meta}))
    archive.ingest(file)
    session = offline_session(tmp_path / "kept")
    assert fetch_served(tk.meta, session=session)[0] == "yes"
    assert fetch_served(tk.meta_and_asset_ctxs, session=session)[0] == "no"


def _without(answer, name):
    """Return an answer whose objects lack a field."""
    if isinstance(answer, dict):
        return {key: _without(value, name) for key, value in answer.items() if key != name}
    return [_without(item, name) for item in answer] if isinstance(answer, list) else answer


def _live(tiny):
    """Return a session whose answers lack fields and hold null, as live ones do."""

    def respond(request):
        body = json.loads(request.content)
        answer = _without(tk.info(body, session=tiny), "maxTradeSzs")
        if body["type"] == "userFillsByTime":
            for fill in answer:
                fill["liquidation"] = {"liquidatedUser": None, "markPx": "1.5", "method": "market"}
        if body["type"] == "meta":
            answer["universe"][0]["onlyIsolated"] = None
        return httpx.Response(200, json=answer)

    return tk.connect(
        "http://live",
        "key",
        transport=httpx.MockTransport(respond),
        default=False,
        now_ms=tiny.now_ms,
    )


def test_answers_without_fields_are_served(tmp_path, tiny):
    archive, live, users = open_archive(tmp_path), _live(tiny), tiny.world["users"]
    archive.refresh(tk.user_fills_by_time, users[0], tiny.world["start_ms"], session=live)
    archive.refresh(tk.meta, session=live)
    archive.refresh(tk.batch_clearinghouse_states, users[:2], session=live)
    archive.refresh(tk.batch_clearinghouse_states, users[2:4], dex="ALL_DEXES", session=live)
    session = offline_session(tmp_path)
    states = tk.batch_clearinghouse_states(users[:2], session=session)
    by_dex = tk.batch_clearinghouse_states(users[2:4], dex="ALL_DEXES", session=session)
    fills = tk.user_fills_by_time(users[0], tiny.world["start_ms"], session=session)
    there = tk.batch_clearinghouse_states(users[:2], session=tiny)
    assert states.positions["max_trade_szs"].isna().all()
    assert states.positions["szi"].tolist() == there.positions["szi"].tolist()
    assert len(by_dex.positions) > 0
    assert fills["liquidated_user"].isna().all()
    assert set(fills["liquidation_mark_px"]) == {1.5}
    assert len(tk.meta(session=session)) == len(tk.meta(session=tiny))
