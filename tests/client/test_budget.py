"""The budget: no 429 with a right quota, in threads and processes; no file contains the key."""

import _thread
import heapq
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from dataclasses import replace

import httpx
import pytest
import stamina
from hypothesis import given, settings
from hypothesis import strategies as st

import toolkit as tk
from tests.fetch.wire import session_over
from toolkit.client import connect, open_session
from toolkit.client.budget import LEASE, Budget, QuotaWindow, RequestCounts
from toolkit.client.wire import ApiKey
from toolkit.contract.operations import OPERATIONS
from toolkit.errors import LimitWarning
from toolkit.local_service import simulated_store
from toolkit.service import AcceptedKey, Application, KeyQuotas
from toolkit.service.http import run_server

CANARY = "canary-19ab-secret-key"
USER = "0x" + "1" * 40
QUOTA = 100


class World:
    """A clock that moves only in sleeps; requests are answered when they are due."""

    def __init__(self):
        self.now = 1_000.0
        self.counted = Counter()
        self._coming = []

    def clock(self):
        return self.now

    def sleep(self, seconds):
        until = self.now + seconds
        while self._coming and self._coming[0][0] <= until:
            self.now, _, spending = heapq.heappop(self._coming)
            spending.record_answer()
        self.now = until

    def send(self, spending, points, latency, share):
        """Count a request at a time between sending and answer, by minutes of the clock."""
        self.counted[int((self.now + latency * share) // 60)] += points
        heapq.heappush(self._coming, (self.now + latency, len(self.counted), spending))


REQUESTS = st.lists(
    st.tuples(st.sampled_from([2, 5, 10, 100]), st.floats(0.0, 90.0), st.floats(0.0, 1.0)),
    min_size=1,
    max_size=60,
)


@pytest.mark.parametrize("kind", ["memory", "file"])
@given(requests=REQUESTS)
@settings(max_examples=40)
def test_quota_holds_in_every_minute(kind, requests, tmp_path_factory):
    path = tmp_path_factory.mktemp("budget") / "points.db" if kind == "file" else None
    world = World()
    budget = Budget(QUOTA, None, clock=world.clock, sleep=world.sleep, path=path)
    for number, (points, latency, share) in enumerate(requests):
        spending = budget.spend(points)
        world.send(_Numbered(spending, number), points, latency, share)
    assert max(world.counted.values()) <= QUOTA
    budget.close()


class _Numbered:
    def __init__(self, spending, number):
        self.spending, self.number = spending, number

    def __lt__(self, other):
        return self.number < other.number

    def record_answer(self):
        self.spending.record_answer()


def window_at(world, path, quota=QUOTA):
    return QuotaWindow(quota, world.clock, path, LEASE)


def paths_of(folder):
    """Return the file in which sessions count, and none: each session counts alone."""
    return (folder / "points.db", None)


def test_points_free_minute_after_answer(tmp_path):
    """A request sent at 59.9 is counted at 60.3: its points are free at 120.3."""
    for path in paths_of(tmp_path):
        world = World()
        window = window_at(world, path, 10)
        world.now = 59.9
        pause, taken = window.reserve(10)
        assert pause == 0
        world.now = 60.3
        window.record_answer(taken)
        world.now = 119.95
        assert window.reserve(10)[0] == pytest.approx(0.35, abs=0.002)
        world.now = 120.302
        assert window.reserve(10)[0] == 0
        window.close()


def test_pending_request_counts_until_settled(tmp_path):
    """It counts up to the lease, longer than the window; other requests look again later."""
    for path in paths_of(tmp_path):
        world = World()
        window = window_at(world, path, 10)
        _, taken = window.reserve(10)
        world.now += 100.0
        assert window.reserve(10)[0] == 60.0
        window.record_answer(taken)
        world.now += 59.0
        assert window.reserve(10)[0] == pytest.approx(1.0, abs=0.002)
        window.close()


def test_sessions_of_key_share_points(tmp_path):
    world = World()

    def budget():
        path = ApiKey(CANARY).budget_file(tmp_path, "http://service.test")
        return Budget(QUOTA, None, clock=world.clock, sleep=world.sleep, path=path)

    one, other = budget(), budget()
    begun = world.now
    for spending in (one.spend(60), other.spend(40)):
        spending.record_answer()
    assert other.spend(10).waited == pytest.approx(60, abs=0.002)
    assert world.now == pytest.approx(begun + 60, abs=0.002)
    one.close()
    other.close()


def test_points_of_killed_process_expire(tmp_path):
    """The request is never settled: it counts for the lease of 120 s and a minute."""
    world = World()
    first = window_at(world, tmp_path / "points.db")
    first.reserve(QUOTA)
    first.close()
    other = window_at(world, tmp_path / "points.db")
    world.now += 179.0
    assert other.reserve(10)[0] > 0
    world.now += 1.002
    assert other.reserve(10)[0] == 0
    other.close()


def test_clock_set_back_frees_points(tmp_path):
    world = World()
    window = window_at(world, tmp_path / "points.db")
    world.now = 1e9
    window.record_answer(window.reserve(QUOTA)[1])
    window.block(50)
    world.now -= 86_400
    assert window.reserve(QUOTA)[0] == 0
    window.close()


def test_interrupted_wait_frees_file(tmp_path):
    """The interrupt comes while another process has the file, and takes effect when it is free."""
    world = World()
    window = window_at(world, tmp_path / "points.db")
    window.reserve(10)
    holder = sqlite3.connect(tmp_path / "points.db", isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")

    def interrupt():
        _thread.interrupt_main()
        holder.execute("ROLLBACK")

    timer = threading.Timer(0.2, interrupt)  # by then, the main thread waits for the file
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        window.reserve(10)
    timer.join()
    holder.execute("BEGIN IMMEDIATE")  # nobody else has the file
    holder.close()
    assert window.reserve(80)[0] == 0
    assert window.reserve(30)[0] > 0
    window.close()


def test_damaged_points_file_warns(tmp_path):
    world = World()
    (tmp_path / "points.db").write_bytes(b"no database" * 1_000)
    window = window_at(world, tmp_path / "points.db")
    with pytest.warns(UserWarning, match=r"points\.db"):
        pause, taken = window.reserve(QUOTA)
    assert pause == 0
    world.now += 1.0
    window.record_answer(taken)
    world.now += 1.0
    assert window.reserve(10)[0] == pytest.approx(59, abs=0.002)
    window.close()


def sessions(world, folder, handler, number=2, quota=1_000):
    options = {"points_per_minute": quota, "budget_folder": folder}
    options |= {"clock": world.clock, "sleep": world.sleep}
    return [session_over(handler, CANARY, **options) for _ in range(number)]


def test_retry_after_blocks_all_sessions(tmp_path):
    world, refused = World(), [True]

    def handler(request):
        if refused.pop() if refused else False:
            return httpx.Response(429, json={"error": "slow"}, headers={"Retry-After": "7"})
        return httpx.Response(200, json=[])

    one, other = sessions(world, tmp_path, handler)
    begun = world.now
    with pytest.warns(LimitWarning, match="slow .* 7 s"):
        facts = tk.provenance(tk.user_fills(USER, session=one))
    assert world.now == begun + 7
    assert facts["retries"] == {"429": 1}
    assert facts["waited_seconds"] == 7.0
    refused.append(True)
    one.retry = replace(one.retry, attempts=1)
    with pytest.raises(tk.RateLimited):
        tk.user_fills(USER, session=one)
    facts = tk.provenance(tk.user_fills(USER, session=other))  # the other session's 429
    assert (facts["retries"], facts["waited_seconds"]) == ({}, 7.0)
    one.close()
    other.close()


def refused_session(world, headers, seconds, status=429):
    """Return a session of a service that refuses requests for some seconds, and their times."""
    begun, sent = world.now, []

    def handler(request):
        sent.append(world.now - begun)
        if sent[-1] < seconds:
            return httpx.Response(status, json={"error": "slow"}, headers=headers)
        return httpx.Response(200, json=[])

    session = session_over(handler, clock=world.clock, sleep=world.sleep)
    session.retry = replace(session.retry, draw=lambda: 0.0)
    return session, sent


DATES = {"Date": "Wed, 21 Oct 2026 07:27:40 GMT", "Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}


REFUSALS = [
    # status, headers, seconds until the service answers, times of the requests
    (429, {}, 60.0, [0, 10, 30, 90]),
    (429, {"Retry-After": "0"}, 60.0, [0, 10, 30, 90]),
    (429, DATES, 20.0, [0, 20]),
    (429, {"Retry-After": "170"}, 170.0, [0, 170]),
    (503, {"Retry-After": "20"}, 20.0, [0, 20]),
]


def test_refused_request_is_sent_again():
    for status, headers, seconds, times in REFUSALS:
        session, sent = refused_session(World(), headers, seconds, status)
        with pytest.warns(LimitWarning, match=f"{status}") as found:
            tk.user_fills(USER, session=session)
        assert sent == times
        assert f"waits {times[1]} s" in str(found[0].message)
        assert [warning.filename for warning in found] == [__file__] * (len(times) - 1)
        assert session.counts.waited == times[-1]


def test_refused_request_ends_after_three_minutes():
    """A quota is no failure: only the number of attempts limits the waits that a 429 states."""
    for status, headers, times in (
        (429, {}, [0, 10, 30, 90, 150, 180]),
        (503, {"Retry-After": "80"}, [0, 80, 160]),
        (429, {"Retry-After": "80"}, [0, 80, 160, 240, 320, 400]),
    ):
        session, sent = refused_session(World(), headers, 1_000.0, status)
        with pytest.warns(LimitWarning), pytest.raises(tk.ServiceError):
            tk.user_fills(USER, session=session)
        assert sent == times


def test_requests_that_wait_together_warn_once():
    world = World()
    budget = Budget(None, None, clock=world.clock, sleep=world.sleep)
    counts = []
    for later, seconds in ((0.0, 60.0), (1.0, 70.0), (59.0, 5.0), (0.0, 60.0)):
        world.now += later
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            budget.announce_wait(seconds, "slow")
        counts.append(len(caught))
    assert counts == [1, 0, 0, 1]


def test_waits_for_points_do_not_end_retries(tmp_path):
    world, answers = World(), [200, 502, 200]

    def handler(request):
        status = answers.pop(0)
        return httpx.Response(status, json=[] if status == 200 else {"error": "Timeout error"})

    (session,) = sessions(world, tmp_path, handler, 1, quota=10)
    session.retry = replace(session.retry, timeout=30)
    with stamina.set_testing(True, attempts=3):
        tk.user_fills(USER, session=session)
        facts = tk.provenance(tk.user_fills(USER, session=session))
    # Each of two attempts waits a minute, longer than the retry timeout of 30 seconds.
    assert (facts["retries"], facts["waited_seconds"]) == ({"502": 1}, pytest.approx(120, abs=0.01))
    session.close()


class Trickling(httpx.SyncByteStream):
    """A body that takes 40 seconds."""

    def __init__(self, world):
        self._world = world

    def __iter__(self):
        self._world.sleep(40)
        yield b"[]"


def test_minute_begins_when_answer_begins(tmp_path):
    """The body takes 40 s, so the points are free 20 s after its end."""
    world = World()
    answer = lambda request: httpx.Response(200, stream=Trickling(world))  # noqa: E731 - short
    (session,) = sessions(world, tmp_path, answer, 1, quota=10)
    tk.user_fills(USER, session=session)
    facts = tk.provenance(tk.user_fills(USER, session=session))
    assert facts["waited_seconds"] == pytest.approx(20, abs=0.01)
    session.close()


def test_key_is_in_no_file(tmp_path):
    world = World()
    one, other = sessions(world, tmp_path, lambda request: httpx.Response(200, json=[]))
    tk.user_fills(USER, session=one)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len({path.name.split(".")[0] for path in files}) == 1  # the file and its journal
    for path in files:
        assert CANARY not in str(path)
        assert CANARY.encode() not in path.read_bytes()
    for session in (one, other):
        assert CANARY not in repr(session.recipe)
        session.close()
    names = {
        ApiKey(key).budget_file(tmp_path, url)
        for url in ("http://a", "http://b")
        for key in ("1", "2")
    }
    assert len(names) == 4


def test_budget_without_quota_is_private(tmp_path):
    assert connect("http://127.0.0.1:1", default=False).recipe.arguments["budget_folder"] is None
    alone = open_session(
        "http://127.0.0.1:1", points_per_minute=5, budget_folder=False, default=False
    )
    assert alone.recipe.arguments["budget_folder"] is False


# The clocks of service and clients run sixty times as fast: a minute is a second.
PULL = """
import json, sys, time
import toolkit as tk
from toolkit.client import open_session
address, folder, quota = sys.argv[1], sys.argv[2], int(sys.argv[3])
session = open_session(
    address, points_per_minute=quota, budget_folder=folder, timeout=600, default=True,
    clock=lambda: time.time() * 60, sleep=lambda seconds: time.sleep(seconds / 60),
)
users = [f"0x{number:040x}" for number in range(16)]
frame = tk.many(tk.user_fills, users)
print(json.dumps(tk.provenance(frame)))
"""


def test_processes_share_quota(tmp_path):
    """32 requests of 10 points need at least four minutes at 100 points a minute."""
    store = simulated_store(7, "tiny")
    access = KeyQuotas([AcceptedKey("one", CANARY, points_per_minute=QUOTA)])
    at_ms = lambda: int(time.time() * 60_000)  # noqa: E731 - the clock, beside its comment above
    application = Application(store, access, now_ms=lambda: store.about["now_ms"], at_ms=at_ms)
    with run_server(application) as address:
        environment = {**os.environ, "TOOLKIT_API_KEY": CANARY}
        begun = time.monotonic()
        pulls = [
            subprocess.Popen(
                [sys.executable, "-c", PULL, address, str(tmp_path), str(QUOTA)],
                env=environment,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(2)
        ]
        facts = [json.loads(pull.communicate(timeout=60)[0]) for pull in pulls]
        assert time.monotonic() - begun > 2.0
        for fact in facts:
            assert fact["complete"] == "latest"
            assert fact["retries"] == {}  # no 429
            assert fact["requests"] == 16
        assert sum(fact["waits"] for fact in facts) > 0
        # The service enforces the quota: a client without a budget gets 429.
        asked = {"type": "userFills", "user": USER}
        key = {"Authorization": f"Bearer {CANARY}"}
        with httpx.Client(base_url=address, headers=key) as eager:
            assert 429 in {eager.post("/info", json=asked).status_code for _ in range(100)}
    store.close()


TWAPS = OPERATIONS["perpTwapSnapshots"]


def test_sixth_snapshot_waits_ten_minutes(tmp_path):
    """Five calls are answered a second apart. The sixth is sent 600 s after the first answer."""
    for path in paths_of(tmp_path):
        world = World()
        budget = Budget(1_000, None, clock=world.clock, sleep=world.sleep, path=path)
        for _ in range(5):
            spending = budget.spend(2, TWAPS)
            assert spending.waited == 0
            world.now += 1.0
            spending.record_answer()
        # Each snapshot has its own count.
        assert budget.spend(2, OPERATIONS["accountValueSnapshots"]).waited == 0
        with pytest.warns(LimitWarning, match="perpTwapSnapshots .* 5 times in 10"):
            spending = budget.spend(2, TWAPS)
        assert spending.waited == pytest.approx(596.0, abs=0.01)
        budget.close()


def test_cost_of_all_dexes_follows_answers(tmp_path):
    """The cost assumes 20 dexes until an answer shows how many there are."""
    world = World()
    summary = {"accountValue": "1.0", "totalRawUsd": "1.0"}
    summary |= {"totalNtlPos": "0.0", "totalMarginUsed": "0.0"}
    state = {
        "marginSummary": summary,
        "crossMarginSummary": summary,
        "withdrawable": "1.0",
        "assetPositions": [],
        "time": 1_700_000_000_000,
    }
    by_dex = {"native": state, "flx": state, "xyz": state}
    answer = {"successful_states": [[USER, by_dex]], "failed_wallets": []}
    (session,) = sessions(world, tmp_path, lambda request: httpx.Response(200, json=answer), 1)
    ask = lambda: tk.batch_clearinghouse_states(USER, dex="ALL_DEXES", session=session)  # noqa: E731
    plan = tk.plan(tk.batch_clearinghouse_states, USER, dex="ALL_DEXES", session=session)
    assert (plan.points, plan.sure) == (40, "at most")
    ask()
    assert session.counts.points == 40
    ask()
    assert session.counts.points == 46
    users = [f"0x{number:040x}" for number in range(60)]
    plan = tk.plan(tk.batch_clearinghouse_states, users, dex="ALL_DEXES", session=session)
    assert plan.points == 300
    plan = tk.plan(tk.batch_clearinghouse_states, [*users[:3], users[0]], session=session)
    assert plan.points == 6  # the repeated user is not sent
    session.close()


def test_pull_counts_are_added_to_session():
    session = RequestCounts()
    pull = RequestCounts(session=session)
    pull.add(requests=1, points=10)
    pull.add(requests=1, points=5, waited=2.5)
    pull.add(cause="500", waited=1.25)
    pull.add(cause="429")
    pull.add(cause="429", waited=0.0004)
    facts = {"requests": 2, "points": 15, "retries": {"429": 2, "500": 1}, "waits": 3}
    assert pull.facts() == session.facts() == facts | {"waited_seconds": 3.75}
    assert (pull.retries, list(pull.facts()["retries"])) == (3, ["429", "500"])


def test_refused_request_spends_nothing():
    """7 of 10 points are spent: 3 more fit, 4 do not, and 9 exceed the minute."""
    budget = Budget(10, 10, clock=lambda: 0.0, sleep=lambda seconds: None)
    budget.spend(7).record_answer()
    with pytest.raises(tk.BudgetSpent, match="4 points, and 3 of the session's 10"):
        budget.spend(4)
    assert budget.spent == 7
    budget.spend(3).record_answer()
    assert budget.spent == 10
    with pytest.raises(tk.BudgetSpent, match=r"9 points, .*\(8\)"):
        Budget(8, None, clock=lambda: 0.0, sleep=lambda seconds: None).spend(9)


def test_blocked_session_waits():
    """The longest of several waits counts; none and negative ones do not."""
    world = World()
    budget = Budget(None, None, clock=world.clock, sleep=world.sleep)
    for seconds in (30.0, 7.0, 0.0, -5.0):
        budget.block(seconds)
    assert budget.spend(2).waited == 30.0
    assert (world.now, budget.spend(2).waited) == (1_030.0, 0.0)
    budget = Budget(100, None, clock=world.clock, sleep=world.sleep)
    budget.block(0.5)
    assert budget.spend(2).waited == pytest.approx(0.5, abs=0.002)


def test_interrupted_wait_returns_points():
    def interrupt(seconds):
        raise KeyboardInterrupt

    budget = Budget(None, 100, clock=lambda: 0.0, sleep=interrupt)
    budget.spend(7)
    budget.block(9.0)
    with pytest.raises(KeyboardInterrupt):
        budget.spend(5)
    assert budget.spent == 7


def test_interrupted_wait_returns_calls(tmp_path):
    """Five calls are interrupted while they wait for points, so a sixth need not wait for them."""
    for path in paths_of(tmp_path):
        world, interrupts = World(), [KeyboardInterrupt] * 5

        def sleep(seconds, world=world, interrupts=interrupts):
            if interrupts:
                raise interrupts.pop()
            world.sleep(seconds)

        budget = Budget(10, None, clock=world.clock, sleep=sleep, path=path)
        budget.spend(10).record_answer()
        for _ in range(5):
            with pytest.raises(KeyboardInterrupt):
                budget.spend(2, TWAPS)
        assert budget.spend(2, TWAPS).waited == pytest.approx(60.0, abs=0.01)
        budget.close()


def test_stopped_call_spends_nothing():
    world, stop = World(), threading.Event()
    budget = Budget(10, None, clock=world.clock, sleep=lambda seconds: stop.set())
    budget.spend(10, None, stop).record_answer()
    for _ in range(2):  # the first wait is stopped; the second call finds that it is stopped
        with pytest.raises(tk.Incomplete, match="the call was interrupted"):
            budget.spend(2, TWAPS, stop)
    assert budget.spent == 10


def test_short_wait_for_snapshot_has_no_warning():
    """The sixth call waits for the first one to leave the window, up to 5 s in silence."""
    for early, warned in ((4.9, 0), (5.1, 1)):
        world = World()
        budget = Budget(1_000, None, clock=world.clock, sleep=world.sleep)
        snapshots = OPERATIONS["accountValueSnapshots"]
        assert snapshots.limit is not None
        for _ in range(snapshots.limit.calls):
            budget.spend(2, snapshots).record_answer()
        world.now += snapshots.limit.seconds - early
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            waited = budget.spend(2, snapshots).waited
        assert waited == pytest.approx(early, abs=0.01)
        assert [w.category for w in caught] == [LimitWarning] * warned


def test_points_count_from_end_of_wait():
    for begin, pause, waited in (
        (lambda budget: budget.block(5.0), 5.0, 0.0),  # at the very end of a block
        (lambda budget: budget.spend(10).record_answer(), 59.6, 0.4),
    ):
        world = World()
        budget = Budget(10, None, clock=world.clock, sleep=world.sleep)
        begin(budget)
        world.now += pause
        second = budget.spend(10)
        assert second.waited == pytest.approx(waited, abs=0.01)
        second.record_answer()
        assert budget.spend(10).waited == pytest.approx(60.0, abs=0.01)


def test_snapshot_that_waits_for_points_has_no_warning():
    world = World()
    budget = Budget(2, None, clock=world.clock, sleep=world.sleep)
    budget.spend(2).record_answer()
    assert budget.spend(2, TWAPS).waited == pytest.approx(60.0, abs=0.01)
