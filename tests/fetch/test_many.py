"""Many subjects: in threads and processes, resumable, without losing rows silently."""

import json
import multiprocessing
import pickle
import signal
import threading
import time
import warnings
from concurrent.futures import (
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from concurrent.futures.process import BrokenProcessPool
from pickle import PicklingError

import httpx
import pandas as pd
import pytest
import stamina

import toolkit as tk
from tests.fetch.wire import session_over
from toolkit.client import connect
from toolkit.errors import IncompleteWarning
from toolkit.fetch.many import Workers
from toolkit.local_service import application_of, simulated_store
from toolkit.service import AcceptedKey, KeyQuotas
from toolkit.service.http import run_server

CANARY = "canary-5d21-secret-key"
BAD = "0xbad"


@pytest.fixture(scope="module")
def users(session):
    return list(session.world["users"][:6])


@pytest.fixture(scope="module")
def processes():
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=spawn) as pool:
        yield pool


@pytest.fixture(autouse=True)
def _no_waiting():
    with stamina.set_testing(True, attempts=2):
        yield


def timeless_facts(frame):
    """Return provenance without the time of the request."""
    return {k: v for k, v in tk.provenance(frame).items() if k != "asked_at"}


def test_threads_and_processes_agree(session, users, processes):
    alone = tk.many(tk.user_fills_by_time, users, 0, session=session)
    with ThreadPoolExecutor(2) as threads:
        for executor in (threads, processes):
            other = tk.many(tk.user_fills_by_time, users, 0, executor=executor, session=session)
            pd.testing.assert_frame_equal(other, alone)
            assert timeless_facts(other) == timeless_facts(alone)


def test_processes_return_errors_and_frames(session, users, processes):
    lent = tk.many(tk.borrow_lend_user_state, users, executor=processes, session=session)
    assert isinstance(lent, tk.BorrowLendState)
    assert lent.account["user"].tolist() == users
    with pytest.raises(tk.Incomplete, match="1 of 3 subjects failed") as caught:
        tk.many(tk.user_fills, [*users[:2], BAD], executor=processes, session=session)
    assert isinstance(caught.value.failed[BAD], tk.BadRequest)
    assert caught.value.rows["user"].unique().tolist() == users[:2]


class LostWorker(Exception):
    """What the library of a cluster raises if a worker is lost."""


class Broken(Executor):
    """Calls at once, except for the second subject, of which `second` decides."""

    def __init__(self, user, second):
        self.user, self.second, self.futures = user, second, []

    def submit(self, fn, /, *args, **kwargs):
        if args[1]["user"] == self.user:
            return self.second(self.futures)
        self.futures.append(Future())
        self.futures[-1].set_result(fn(*args, **kwargs))
        return self.futures[-1]


def failed_future(error):
    future = Future()
    future.set_exception(error)
    return future


def future_of(value):
    future = Future()
    future.set_result(value)
    return future


def raise_error(error):
    raise error


FAILURES = [
    BrokenProcessPool("a worker was killed"),
    LostWorker("tcp://10.0.0.3 went away"),
    PicklingError("a lock"),
    CancelledError(),
]


def second_subject_fails(second, session, users):
    """Return the error of the second subject; the others are fetched."""
    with pytest.raises(tk.Incomplete, match="1 of 6") as caught:
        tk.many(tk.user_fills, users, executor=Broken(users[1], second), session=session)
    assert caught.value.rows["user"].unique().tolist() == [*users[:1], *users[2:]]
    (error,) = caught.value.failed.values()
    assert isinstance(error, tk.ToolkitError)
    return error


def test_lost_worker_fails_its_subject_only(session, users):
    for failure in FAILURES:
        for second in (lambda _, e=failure: raise_error(e), lambda _, e=failure: failed_future(e)):
            error = second_subject_fails(second, session, users)
            assert f"the executor broke: {type(failure).__name__}" in str(error)
            assert error.__cause__ is failure
    error = second_subject_fails(lambda _: failed_future(SystemExit(1)), session, users)
    assert "SystemExit" in str(error)


def test_invalid_future_fails_its_subject_only(session, users):
    """A future of no rows, of other rows, and of another subject; no future, and one twice."""
    for second, advice in (
        (lambda futures: future_of(None), "the executor broke"),
        (lambda futures: future_of(pd.DataFrame({"a": [1]})), "the executor broke"),
        (lambda futures: future_of(futures[0].result()), "the executor broke"),
        (lambda futures: [1], "It must return a new Future"),
        (lambda futures: futures[0], "It must return a new Future"),
    ):
        assert advice in str(second_subject_fails(second, session, users))


def test_wrong_arguments_are_refused(session, users, processes):
    here = {"session": session}
    no_rows = {"start": 0, "max_rows": -1, "session": session}
    far = {"session": session_over(None), "executor": processes}  # with a transport of its own
    for call, fetch, subjects, options, error, named in (
        (tk.many, tk.user_fills_by_time, users, no_rows, ValueError, "max_rows"),
        (tk.many, tk.user_fills, users, here | {"on_error": "ignore"}, ValueError, "on_error"),
        (tk.many, tk.user_fills, users, far, TypeError, "Use threads"),
        (tk.many, tk.batch_clearinghouse_states, users, here, TypeError, "all subjects at once"),
        (tk.many, len, users, here, TypeError, "is not a fetch function"),
        (tk.raw, "userFills", users[0], here, TypeError, "'userFills'"),
    ):
        with pytest.raises(error, match=named):
            call(fetch, subjects, **options)


@pytest.fixture(scope="module")
def address():
    store = simulated_store(7, "tiny")
    with run_server(application_of(store, KeyQuotas([AcceptedKey("one", CANARY)]))) as found:
        yield found
    store.close()


def test_processes_use_own_key(address, users, monkeypatch):
    session = connect(address, CANARY, default=False)
    pickled = pickle.dumps((session.recipe, tk.user_fills))
    assert CANARY.encode() not in pickled
    assert pickle.loads(pickled)[0].get_session() is session  # this process has the session
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        with pytest.raises(tk.Incomplete, match="Set TOOLKIT_API_KEY in the environment") as caught:
            tk.many(tk.user_fills, users, executor=pool, session=session)
        assert set(caught.value.failed) == set(users)
        assert CANARY.encode() not in pickle.dumps(caught.value)
    monkeypatch.setenv("TOOLKIT_API_KEY", CANARY)
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        there = tk.many(tk.user_fills, users[:2], executor=pool, session=session)
    pd.testing.assert_frame_equal(there, tk.many(tk.user_fills, users[:2], session=session))
    session.close()


def test_many_sends_eight_at_once():
    running_now, most, lock = [0], [0], threading.Lock()
    gate = threading.Barrier(8)  # it breaks unless eight requests wait together

    def handler(request):
        with lock:
            running_now[0] += 1
            most[0] = max(most[0], running_now[0])
        gate.wait(timeout=20)
        with lock:
            running_now[0] -= 1
        return httpx.Response(200, json=[])

    session = session_over(handler)
    tk.many(tk.user_fills, [f"0x{number:040x}" for number in range(40)], session=session)
    assert most[0] == 8


def test_one_thread_works_at_a_time(session):
    """Threads that compete for Python's lock need more processor time."""
    working, together, lock = [0], [], threading.Lock()

    def work(**_):
        with lock:
            working[0] += 1
            together.append(working[0])
        time.sleep(0)  # lets another thread run, if it may
        with lock:
            working[0] -= 1

    with ThreadPoolExecutor(8) as pool, Workers(session, pool) as workers:
        for future in [workers.submit(work, {}) for _ in range(400)]:
            future.result(20)
    assert together == [1] * 400


class Bar:
    """A progress bar that records its updates."""

    made = []  # noqa: RUF012 - of the class

    def __init__(self, what):
        self.what, self.rows, self.closed = what, 0, False
        self.made.append(self)

    def update(self, rows):
        self.rows += rows

    def close(self):
        self.closed = True


def test_many_shows_one_progress_bar(users):
    session = tk.local(seed=7, size="tiny", default=False)
    session.progress = Bar
    Bar.made.clear()
    tk.many(tk.user_fills, users, session=session)
    (bar,) = Bar.made
    assert (bar.what, bar.rows, bar.closed) == (f"userFills of {len(users)}", len(users), True)
    fills = tk.user_fills(users[0], session=session)
    assert (Bar.made[1].what, Bar.made[1].rows) == ("userFills", len(fills))


def test_many_warns_of_failures(session, users):
    with pytest.warns(IncompleteWarning, match="1 of 3 .* 0xbad"):
        some = tk.many(tk.user_fills, [users[0], BAD, users[1]], on_error="warn", session=session)
    facts = tk.provenance(some)
    assert facts["complete"] == "no"
    assert facts["why"] == "1 of 3 failed"
    assert list(facts["failed"]) == [BAD]
    assert facts["parameters"]["users"] == users[:2]


def test_refused_key_ends_many():
    answer = httpx.Response(401, json={"error": "Invalid API key"})
    session = session_over(lambda request: answer)
    many = [f"0x{number:040x}" for number in range(500)]
    with pytest.raises(tk.Incomplete, match=r"500 of 500 .*Invalid API key") as caught:
        tk.many(tk.user_fills, many, session=session)
    assert list(caught.value.failed) == many
    assert session.counts.requests <= 8  # the first of each thread


class Sometimes:
    """A transport to a local service that fails for some accounts."""

    def __init__(self, inner, failing):
        self.inner = inner
        self.failing = failing
        self.asked = []

    def __call__(self, request):

        user = json.loads(request.content)["user"]
        self.asked.append(user)
        if user in self.failing:
            return httpx.Response(500, json={"error": "An internal error occurred"})
        answer = self.inner.client.post("/info", content=request.content)
        return httpx.Response(answer.status_code, content=answer.content)


def flaky_session(session, failing):
    service = Sometimes(session, failing)
    return session_over(service, simulated=True, now_ms=session.now_ms), service


def test_resume_fetches_failed_only(session, users, tmp_path):
    whole = tk.many(tk.user_fills_by_time, users, "2d", session=session)
    flaky, service = flaky_session(session, set(users[1:3]))
    with pytest.raises(tk.Incomplete, match="2 of 6 subjects failed") as caught:
        tk.many(tk.user_fills_by_time, users, "2d", session=flaky)
    service.failing.clear()
    caught.value.rows.to_parquet(tmp_path / "some.parquet")
    earlier = [caught.value, caught.value.rows, pd.read_parquet(tmp_path / "some.parquet")]
    for item in earlier:
        service.asked.clear()
        again = tk.many(tk.user_fills_by_time, users, "2d", resume=item, session=flaky)
        assert set(service.asked) == set(users[1:3])
        facts = tk.provenance(again)
        assert facts["complete"] == "yes"
        assert sorted(facts["parameters"]["users"]) == sorted(users)
        pd.testing.assert_frame_equal(again, sort_subjects(whole, again))
    service.asked.clear()
    pd.testing.assert_frame_equal(
        tk.many(tk.user_fills_by_time, users, "2d", resume=again, session=flaky), again
    )
    assert service.asked == []


def test_resume_keeps_states(session, users):
    flaky, service = flaky_session(session, {users[0]})
    asked = {"max_rows": 5, "session": flaky}
    with pytest.raises(tk.Incomplete) as caught:
        tk.many(tk.user_fills_by_time, users, 0, **asked)
    service.failing.clear()
    again = tk.many(tk.user_fills_by_time, users, 0, resume=caught.value, **asked)
    assert tk.provenance(again)["complete"] == "first 5 rows"
    service.failing.add(users[1])
    with pytest.raises(tk.Incomplete) as caught:
        tk.many(tk.user_fills, users, session=flaky)
    service.failing.clear()
    latest = tk.many(tk.user_fills, users, resume=caught.value, session=flaky)
    assert tk.provenance(latest)["complete"] == "latest"
    assert "states" not in tk.provenance(latest)


def sort_subjects(frame, like):
    """Return a frame with its subjects in the order of another frame."""
    order = like["user"].unique().tolist()
    return frame.sort_values(
        "user", key=lambda user: user.map(order.index), kind="stable", ignore_index=True
    )


def test_resume_keeps_range(session, users):
    now = [session.now_ms()]
    moving = session_over(Sometimes(session, set()), now_ms=lambda: now[0], simulated=True)
    first = tk.many(tk.user_fills_by_time, users[:2], "1d", session=moving)
    now[0] += 3_600_000
    both = tk.many(tk.user_fills_by_time, users, "1d", resume=first, session=moving)
    expected = tk.provenance(first)["parameters"]["start"]
    assert tk.provenance(both)["parameters"]["start"] == expected
    with pytest.raises(ValueError, match=r"start=.*Use the same arguments"):
        tk.many(tk.user_fills_by_time, users, 0, resume=first, session=moving)


def test_resume_refuses_other_results(session, users):
    first = tk.many(tk.user_fills_by_time, users[:2], "1d", session=session)
    for named, fetch, options in (
        ("historical_orders", tk.historical_orders, {}),
        ("numbers='float'", tk.user_fills_by_time, {"numbers": "text"}),
        ("aggregate_by_time=False", tk.user_fills_by_time, {"aggregate_by_time": True}),
        ("no rows", tk.user_fills_by_time, {"resume": KeyboardInterrupt()}),
    ):
        start = ("1d",) if fetch is tk.user_fills_by_time else ()
        with pytest.raises(ValueError, match=named):
            tk.many(fetch, users, *start, **{"resume": first, "session": session} | options)


def test_signal_interrupt_has_rows(session, users):
    """Ctrl-C while one account hangs: the error has the others, and the session still works."""
    hanging = threading.Event()
    main = threading.main_thread().ident

    def handler(request):
        answer = service(request)
        if users[2] in request.content.decode() and not hanging.is_set():
            while len(set(service.asked)) < len(users):  # after the other accounts
                time.sleep(0.01)
            signal.pthread_kill(main, signal.SIGINT)
            hanging.wait(20)
        return answer

    service = Sometimes(session, set())
    stopped = session_over(handler, simulated=True, now_ms=session.now_ms)
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt) as caught:
        tk.many(tk.user_fills_by_time, users, "2d", session=stopped)
    assert time.monotonic() - begun < 10
    hanging.set()
    rows = caught.value.rows
    done = tk.provenance(rows)["parameters"]["users"]
    assert users[2] not in done
    whole = tk.many(tk.user_fills_by_time, users, "2d", resume=caught.value, session=stopped)
    assert tk.provenance(whole)["complete"] == "yes"
    assert sorted(tk.provenance(whole)["parameters"]["users"]) == sorted(users)


@pytest.mark.parametrize(
    ("status", "headers", "quota", "requests"),
    [(429, {"Retry-After": "100"}, None, 8), (200, {}, 70, 7)],
    ids=["as long as stated", "for the quota"],
)
@pytest.mark.filterwarnings("ignore::toolkit.errors.LimitWarning")
def test_interrupt_ends_waits(status, headers, quota, requests):
    """After an interrupt, all waits of the other threads end, and they send no further request."""
    before = set(threading.enumerate())
    sent = []
    gate = threading.Barrier(requests)

    def handler(request):
        sent.append(request)
        if gate.wait(20) == 0:
            raise KeyboardInterrupt
        return httpx.Response(status, json=[], headers=headers)

    session = session_over(handler, points_per_minute=quota, budget_folder=False)
    many = [f"0x{number:040x}" for number in range(8)]  # one for each thread
    with stamina.set_testing(False), pytest.raises(KeyboardInterrupt):
        tk.many(tk.user_fills, many, session=session)
    threads = set(threading.enumerate()) - before
    for thread in threads:
        thread.join(5)
    assert not [thread for thread in threads if thread.is_alive()]
    assert len(sent) == requests


NOBODY = "0x" + "0" * 39 + "9"


def test_many_concatenates_subjects(session, users):
    joined = tk.many(tk.user_fills_by_time, users, 0, session=session)
    for user in users:
        one = tk.user_fills_by_time(user, 0, session=session)
        rows = joined[joined["user"] == user].drop(columns="user").reset_index(drop=True)
        pd.testing.assert_frame_equal(rows, one)
    facts = tk.provenance(joined)
    assert facts["complete"] == "yes"
    assert facts["parameters"]["users"] == users
    assert facts["simulated"]
    alone = tk.many(tk.user_fills_by_time, users[0], 0, session=session)
    assert set(alone["user"]) == {users[0]}


def test_many_keeps_dtypes_if_empty(session):
    none = tk.many(tk.user_fills_by_time, [], 0, numbers="exact", session=session)
    nobody = tk.many(tk.user_fills_by_time, [NOBODY], 0, numbers="exact", session=session)
    assert list(none.dtypes.items()) == list(nobody.dtypes.items())
    assert len(none) == len(nobody) == 0


def test_many_names_subjects_that_max_rows_ended(session, users):
    cut = tk.many(tk.user_fills_by_time, [NOBODY, *users[:2]], 0, max_rows=5, session=session)
    assert tk.provenance(cut)["complete"] == f"not of {users[0]}, {users[1]}"
    assert len(cut) == 10


def test_many_counts_spellings_once(session, users):
    mixed = [users[0].upper().replace("X", "x"), *users[:2]]
    fills = tk.many(tk.user_fills_by_time, mixed, "2d", session=session)
    once = tk.many(tk.user_fills_by_time, users[:2], "2d", session=session)
    pd.testing.assert_frame_equal(fills, once)
    assert tk.provenance(fills)["parameters"]["users"] == users[:2]
    coins = ["BTC", "main:BTC", "hyperliquid:BTC"]
    samples = tk.many(tk.slippage_history, coins, 1_000, "1d", session=session)
    assert len(samples) == len(tk.slippage_history("BTC", 1_000, "1d", session=session))
    markets = tk.many(tk.meta, ["", "main", "native"], session=session)
    assert len(markets) == len(tk.meta(session=session))


def test_resume_finds_failed_subjects(session, users):
    flaky, service = flaky_session(session, {users[1]})
    mixed = ["0x" + user[2:].upper() for user in users[:2]]
    with pytest.raises(tk.Incomplete, match=f"First error: {users[1]}") as caught:
        tk.many(tk.user_fills_by_time, mixed, "2d", session=flaky)
    assert list(pickle.loads(pickle.dumps(caught.value.failed))) == [users[1]]
    service.failing.clear()
    service.asked.clear()
    whole = tk.many(tk.user_fills_by_time, mixed, "2d", resume=caught.value, session=flaky)
    assert set(service.asked) == {users[1]}
    assert set(whole["user"]) == set(users[:2])


def test_late_interrupt_keeps_rows(session, users, monkeypatch):
    def shown(*_, **__):
        raise KeyboardInterrupt

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", shown)
        with pytest.raises(KeyboardInterrupt) as caught:  # the range begins before the first day
            tk.user_fills_by_time(users[0], "2020-01-01", session=session)
    rows = caught.value.rows
    assert rows.equals(tk.user_fills_by_time(users[0], 0, session=session))
    assert tk.provenance(rows)["complete"] == "yes"


def test_shown_provenance_names_three_users(session):
    users = session.world["users"][:20]
    facts = tk.provenance(tk.many(tk.user_fills_by_time, users, "1d", session=session))
    assert facts["parameters"]["users"] == users
    for shown in (repr(facts), facts._repr_html_()):
        assert users[2] in shown
        assert users[3] not in shown
        assert "... 17 more" in shown
    failed = dict.fromkeys(users, "why")
    facts["failed"] = failed
    assert repr(facts).count("why") == 3
    assert facts["failed"] == failed
