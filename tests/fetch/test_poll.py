"""Polling: the cheap operation often, the expensive one after a change."""

import functools
import json

import httpx
import msgpack
import pytest
import zstandard

import toolkit as tk
from tests.fetch.wire import session_over
from toolkit.client import open_session


def mock_session(status, content):
    return session_over(lambda request: httpx.Response(status, content=content), "key")


def test_poll_fetches_only_after_change(session):
    waits = []
    got = list(
        tk.poll(
            tk.perp_twap_snapshot_timestamp,
            tk.perp_twap_snapshots,
            ["ALL:ALL_DEXES"],
            every="30s",
            rounds=4,
            wait=waits.append,
            session=session,
        )
    )
    assert len(got) == 1
    assert waits == [30.0, 30.0, 30.0]
    with pytest.raises(ValueError, match="longer than 0"):
        next(tk.poll(tk.meta, tk.meta, every=0))


def polled_ids(stamps, snapshots):
    """Poll a service; return the ids of the snapshots, and how many were fetched.

    ``stamps`` has the id that each poll returns, ``snapshots`` the id that each fetch returns.
    """
    polls, fetches = iter(stamps), iter(snapshots)

    def answer(request):
        if json.loads(request.content)["type"] == "accountValueSnapshotTimestamp":
            return httpx.Response(200, json={"snapshot_id": next(polls), "timestamp": 0})
        content = msgpack.packb(
            [next(fetches), "USDC", {"0x" + "a" * 40: [1.0, 0.0, 0.0, False, 0]}]
        )
        headers = {"x-payload-format": "msgpack"}
        return httpx.Response(200, content=zstandard.compress(content), headers=headers)

    session = session_over(answer, "key", simulated=True)
    frames = tk.poll(
        tk.account_value_snapshot_timestamp,
        tk.account_value_snapshots,
        "USDC",
        rounds=len(stamps),
        wait=float,
        session=session,
    )
    ids = [str(frame["snapshot_id"].iloc[0]) for frame in frames]
    return ids, session.counts.requests - len(stamps)


def test_snapshot_after_poll_comes_once():
    """Snapshot c appears after the second poll, and before the fetch that follows it."""
    assert polled_ids(["a", "b", "c", "c", "c"], ["a", "c"]) == (["a", "c"], 2)


def test_late_snapshot_is_fetched_again():
    """The first fetch after the change still returns the snapshot before."""
    assert polled_ids(["a", "b", "b", "b"], ["a", "a", "b"]) == (["a", "b"], 3)


def poll_snapshots(quota, refuse=(), *, session=None):
    """Poll 30 times, 60 s apart, with new snapshots; return the polls that fetched one."""
    heavy, looks = [], []
    empty = tk.frame("perpTwapSnapshots", [])

    def stamp(*, session):
        looks.append(len(looks))
        return tk.frame("perpTwapSnapshotTimestamp", [{"snapshot_id": str(looks), "timestamp": 0}])

    @functools.wraps(tk.perp_twap_snapshots)
    def fetch(*arguments, session):
        if looks[-1] in refuse:
            raise tk.RateLimited("Rate limit exceeded")
        heavy.append(looks[-1])
        return empty

    session = session or open_session(
        "https://service.test", "key", points_per_minute=quota, budget_folder=False, default=False
    )
    frames = tk.poll(
        stamp, fetch, ["ALL"], every="60s", rounds=30, wait=lambda seconds: None, session=session
    )
    assert len(list(frames)) == len(heavy)
    return looks, heavy


def test_poll_keeps_snapshot_limit():
    """Polls 0 to 4 fetch a snapshot, and from minute 10 on five more.

    The service counts the calls of every key (docs/live_service.md, section 8).
    """
    for quota in (5_000, None):
        looks, heavy = poll_snapshots(quota)
        assert len(looks) == 30
        assert heavy == [0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 20, 21, 22, 23, 24]


def test_poll_raises_refused_stamps(session):
    def refuse(*, session):
        raise tk.RateLimited("Rate limit exceeded")

    with pytest.raises(tk.RateLimited):
        next(tk.poll(refuse, tk.perp_twap_snapshots, wait=print, rounds=2, session=session))


def test_poll_without_service_is_unlimited(session, tmp_path):
    served = open_session("https://service.test", "key", simulated=True)
    answer = {"universe": [{"name": "BTC", "szDecimals": 5}]}
    call = {"request": {"type": "meta"}, "status": 200, "response": answer}
    (tmp_path / "meta.json").write_text(json.dumps(call))
    recorded = tk.local(recordings=tmp_path, default=False)
    assert not recorded.simulated
    for unlimited in (session, served, recorded):
        assert poll_snapshots(quota=None, session=unlimited)[1] == list(range(30))


def test_poll_continues_after_429():
    """Polls 3 and 4 are refused and do not count; polls 5 and 6 complete the five."""
    heavy = poll_snapshots(quota=None, refuse=(3, 4))[1]
    assert heavy == [0, 1, 2, 5, 6, 10, 11, 12, 15, 16, 20, 21, 22, 25, 26]


def test_poll_waits_for_first_snapshot():
    session = mock_session(404, b'{"error":"No snapshots are available yet"}')
    looks = tk.poll(
        tk.perp_twap_snapshot_timestamp,
        tk.perp_twap_snapshots,
        ["ALL"],
        rounds=3,
        wait=float,
        session=session,
    )
    assert list(looks) == []
    assert session.counts.requests == 3
