"""Many subjects share commits; a failure or a lost worker costs its subject only."""

import multiprocessing
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import pandas as pd
import pytest

import toolkit as tk
from tests.archive.world import (
    START,
    ChangedAnswers,
    StopsAfter,
    archived_rows,
    fill_session,
    make_fills,
)
from tests.fetch.test_many import future_of
from toolkit.archive import open as open_archive
from toolkit.archive.coverage import HistoryWriter

USERS = [f"0x{number:040x}" for number in range(40)]
FILLS = make_fills(60)


def version(archive, table):
    return int(archive.tables.open_table(table).version())


def test_many_accounts_share_commits(tmp_path):
    alone, together = open_archive(tmp_path / "alone"), open_archive(tmp_path / "together")
    for fills in (FILLS[:40], FILLS):
        session = fill_session(fills, users=USERS)
        for user in USERS[:3]:
            alone.refresh(tk.user_fills_by_time, user, START, session=session)
        done = together.refresh_many(tk.user_fills_by_time, USERS, START, session=session)
        assert [each.subject for each in done] == USERS
        assert {each.total for each in done} == {len(fills)}
    assert version(together, "fills") <= 4
    assert version(together, "pulls") <= 4
    for user in USERS[:3]:
        kept = [each.frame(tk.user_fills_by_time, user) for each in (alone, together)]
        pd.testing.assert_frame_equal(*kept)
        assert tk.provenance(kept[1])["complete"] == "yes"
    again = together.refresh_many(tk.user_fills_by_time, USERS, session=session)
    assert sum(each.rows for each in again) == 0
    assert together.verify() == []


def test_other_history_fails_its_account_only(tmp_path):
    archive = open_archive(tmp_path)
    change = lambda body: body.replace(b"64000.10", b"1.0")  # noqa: E731
    other = fill_session(FILLS, users=USERS, through=lambda inner: ChangedAnswers(inner, change))
    archive.refresh(tk.user_fills_by_time, USERS[5], START, session=other)
    session = fill_session(FILLS, users=USERS)
    with pytest.raises(tk.Incomplete, match="1 of 40 subjects failed") as caught:
        archive.refresh_many(tk.user_fills_by_time, USERS, START, session=session)
    assert list(caught.value.failed) == [USERS[5]]
    assert len(caught.value.rows) == 39
    assert len(archived_rows(archive)) == len(FILLS) * len(USERS)


def test_only_accounts_that_another_process_changed_are_pulled_again(tmp_path, monkeypatch):
    answers, opened, open_state = [], [], HistoryWriter.open

    def refresh_beside(user):
        other = fill_session(FILLS, users=USERS)
        open_archive(tmp_path).refresh(tk.user_fills_by_time, user, START, session=other)

    def note(body):
        answers.append(body)
        if len(answers) == 1:  # of the only call in this thread
            refresh_beside(USERS[1])
        return body

    def note_open(writer):
        opened.append(writer)
        if opened.count(writer) == 2:  # after the conflict, when the state is read once more
            refresh_beside(USERS[2])
        open_state(writer)

    monkeypatch.setattr(HistoryWriter, "open", note_open)
    session = fill_session(FILLS, users=USERS, through=lambda inner: ChangedAnswers(inner, note))
    archive = open_archive(tmp_path)
    done = archive.refresh_many(tk.user_fills_by_time, USERS, START, session=session)
    assert sum(each.rows for each in done) == len(FILLS) * (len(USERS) - 2)
    assert len(answers) == len(USERS) + 2
    assert archive.verify() == []


def test_refresh_continues_after_service_failure(tmp_path):
    archive = open_archive(tmp_path)
    session = fill_session(FILLS, users=USERS, through=lambda inner: StopsAfter(inner, 25))
    with pytest.raises(tk.Incomplete, match="of 40 subjects failed"):
        archive.refresh_many(tk.user_fills_by_time, USERS, START, session=session, page_size=50)
    kept = len(archived_rows(archive))
    assert 0 < kept < len(FILLS) * len(USERS)
    session = fill_session(FILLS, users=USERS)
    done = archive.refresh_many(tk.user_fills_by_time, USERS, START, session=session)
    assert sum(each.rows for each in done) == len(FILLS) * len(USERS) - kept
    assert archive.verify() == []


class Faulty(Executor):
    """An executor that calls at once; `respond` may replace a future.

    It gets the futures of the earlier calls, the new one, and the arguments of the call.
    """

    def __init__(self, respond):
        super().__init__()
        self.futures, self._respond = [], respond

    def get_executor(self):
        """Return the executor, as a Dask client does."""
        return self

    def submit(self, fn, /, *args, **kwargs):
        future = future_of(fn(*args, **kwargs))
        future = self._respond(self.futures, future, args)
        self.futures.append(future)
        return future


class FaultyThreads(Faulty, ThreadPoolExecutor):
    """The same; the calls may share a session."""


def subject_of(arguments):
    return arguments[1]["asked"].series.subject


def test_lost_worker_fails_one_account(tmp_path, tiny):
    users = [*tiny.world["users"][:2], USERS[2], *tiny.world["users"][2:5]]
    archive = open_archive(tmp_path)
    lost = Future()
    lost.set_exception(BrokenProcessPool("a worker was killed"))
    client = Faulty(lambda _, future, call: lost if subject_of(call) == USERS[2] else future)
    with pytest.raises(tk.Incomplete) as caught:
        archive.refresh_many(tk.user_fills_by_time, users, 0, session=tiny, executor=client)
    assert [*caught.value.failed] == [USERS[2]]
    assert "the executor broke: BrokenProcessPool" in str(caught.value.failed[USERS[2]])
    for user in tiny.world["users"][:5]:
        fetched = tk.user_fills_by_time(user, 0, session=tiny)
        pd.testing.assert_frame_equal(archive.frame(tk.user_fills_by_time, user), fetched)
    assert archive.verify() == []


@pytest.mark.parametrize("fetch", [tk.user_fills_by_time, tk.user_fills])
def test_answer_of_other_account_fails_one_account(tmp_path, tiny, fetch):
    archive, users = open_archive(tmp_path), tiny.world["users"][:4]
    start = (0,) if fetch is tk.user_fills_by_time else ()
    # The first call is made in this thread, so the second one of the executor is the third one.
    pool = Faulty(lambda made, future, _: future_of(made[0].result()) if len(made) == 1 else future)
    with pytest.raises(tk.Incomplete) as caught:
        archive.refresh_many(fetch, users, *start, session=tiny, executor=pool)
    assert [*caught.value.failed] == [users[2]]
    assert len(archive.status()) == 3
    archive.refresh_many(fetch, users, *start, session=tiny)
    for each in users:
        kept, fetched = archive.frame(fetch, each), fetch(each, *start, session=tiny)
        pd.testing.assert_frame_equal(kept, fetched)
    assert archive.verify() == []


def test_repeated_portion_is_refused(tmp_path):
    """The first portion is kept, its rows do not come twice, and the next refresh continues."""
    users, fills = USERS[:2], make_fills(12_000)
    archive, session = open_archive(tmp_path), fill_session(fills, users=users)
    answers = {}  # the first answer of an account is returned for all of its calls

    def repeat(_, future, call):
        return future_of(answers.setdefault(subject_of(call), future.result()))

    pool = FaultyThreads(repeat)
    with pytest.raises(tk.Incomplete, match="another answer") as caught:
        archive.refresh_many(tk.user_fills_by_time, users, START, session=session, executor=pool)
    assert list(caught.value.failed) == users[1:]
    assert archive.status()["rows"].tolist() == [12_000, 9_990]
    done = archive.refresh_many(tk.user_fills_by_time, users, START, session=session)
    assert {each.total for each in done} == {12_000}
    assert archive.verify() == []


def test_processes_pull_and_one_process_writes(tmp_path, tiny):
    archive, users = open_archive(tmp_path), tiny.world["users"][:4]
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        for call in ((tk.user_fills_by_time, users, 0), (tk.user_fills, users)):
            archive.refresh_many(*call, session=tiny, executor=pool)
    for user in users:
        for fetch, *start in ((tk.user_fills_by_time, 0), (tk.user_fills,)):
            fetched = fetch(user, *start, session=tiny)
            pd.testing.assert_frame_equal(archive.frame(fetch, user), fetched)
    assert version(archive, "answers") <= 2
    assert archive.verify() == []
