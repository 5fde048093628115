"""A refresh archives missing rows once and unchanged."""

from functools import partial

import httpx
import pandas as pd
import pytest

import toolkit as tk
from tests.archive.world import (
    START,
    USER,
    ChangedAnswers,
    StopsAfter,
    archived_rows,
    error_kinds,
    fill_session,
    make_fills,
)
from toolkit.archive import open as open_archive
from toolkit.contract.field_deviations import forget_deviations
from toolkit.errors import AnswerInvalid, ArchiveError, ServiceDown
from toolkit.times import HOUR

FILLS = make_fills(1_500)
MIDDLE = FILLS[700].time


@pytest.mark.parametrize("inclusive", [False, True])
def test_refreshed_rows_equal_fetched_rows(tmp_path, inclusive):
    archive = open_archive(tmp_path)
    early, late = (fill_session(FILLS[:end], inclusive=inclusive) for end in (900, None))
    counts = [
        archive.refresh(
            tk.user_fills_by_time, USER, start, page_size=31, session=session, **more
        ).rows
        for session, start, more in (
            (early, MIDDLE, {"rows_per_commit": 50}),
            (late, MIDDLE, {}),
            (late, START, {}),  # the rows before the middle
            (late, START, {}),
        )
    ]
    assert sum(counts) == len(FILLS)
    assert counts[-1] == 0
    for numbers in ("float", "exact", "text"):
        archived = archive.frame(tk.user_fills_by_time, USER, numbers=numbers)
        fetched = tk.user_fills_by_time(USER, START, numbers=numbers, session=late)
        pd.testing.assert_frame_equal(archived, fetched)
    assert tk.provenance(archived)["complete"] == "yes"


def test_refresh_keeps_rows_before_failure(tmp_path):
    archive = open_archive(tmp_path)
    failing = fill_session(FILLS, through=lambda inner: StopsAfter(inner, 12))
    with pytest.raises(ServiceDown):
        archive.refresh(tk.user_fills_by_time, USER, START, page_size=31, session=failing)
    before = len(archived_rows(archive))
    assert before > 300
    done = archive.refresh(tk.user_fills_by_time, USER, page_size=31, session=fill_session(FILLS))
    assert done.rows == len(FILLS) - before
    assert done.total == len(archived_rows(archive)) == len(FILLS)


def with_field(value):
    """Return a transport that adds an unknown field with this value to each row."""
    change = lambda page: page.replace(b'"coin":', b'"n":%b,"coin":' % value)  # noqa: E731
    return lambda inner: ChangedAnswers(inner, change)


@pytest.mark.filterwarnings("ignore::toolkit.errors.UnknownField")
def test_refresh_keeps_extreme_values(tmp_path):
    for number, value in enumerate((b"1e400", b"-1e-400", b"1" * 400, b"[" * 50 + b"]" * 50)):
        path, through = str(tmp_path / str(number)), with_field(value)
        archive = open_archive(path)
        for rows in (50, 100):
            session = fill_session(FILLS[:rows], through=through)
            archive.refresh(tk.user_fills_by_time, USER, START, session=session)
        assert len(archived_rows(archive)) == 100
        assert all(f'"n":{value.decode()},' in text for _, text in archived_rows(archive))
        assert len(archive.frame(tk.user_fills_by_time, USER, numbers="exact")) == 100
        assert archive.verify() == []
        served = tk.local(archive=path, default=False)
        assert len(tk.user_fills_by_time(USER, START, session=served)) == 100


def test_refresh_refuses_undecodable_rows(tmp_path):
    archive = open_archive(tmp_path)
    for value in (b"1" * 5_000, b'"\xff"', b'"\\ud800"'):
        forget_deviations()
        session = fill_session(FILLS[:50], through=with_field(value))
        with pytest.raises(AnswerInvalid):
            archive.refresh(tk.user_fills_by_time, USER, START, session=session)
    assert archived_rows(archive) == []


def test_refresh_refuses_other_history(tmp_path):
    archive = open_archive(tmp_path)
    archive.refresh(tk.user_fills_by_time, USER, START, session=fill_session(FILLS[:900]))
    change = lambda page: page.replace(b"64000.10", b"64000.20")  # noqa: E731
    other = fill_session(FILLS, through=lambda inner: ChangedAnswers(inner, change))
    with pytest.raises(ArchiveError, match="did not come again"):
        archive.refresh(tk.user_fills_by_time, USER, session=other)
    assert len(archived_rows(archive)) == 900


def test_refusals_name_cause(tmp_path):
    archive, session = open_archive(tmp_path), fill_session(FILLS[:10])
    call = (tk.user_fills_by_time, USER)
    refused = [
        (lambda: archive.frame(*call), ArchiveError, "Refresh userFillsByTime"),
        (lambda: archive.refresh(*call, START, dex="xyz", session=session), ArchiveError, "dex"),
        (lambda: archive.frame("nothing"), ArchiveError, "no operation"),
        (lambda: archive.frame(tk.user_fills, USER, USER), TypeError, "user"),
        (lambda: archive.frame(tk.user_fills, USER, usr=1), TypeError, "usr"),
        (lambda: archive.frame(tk.user_fills), TypeError, "user"),
    ]
    for function, error, named in refused:
        with pytest.raises(error, match=named):
            function()


@pytest.mark.parametrize("page", [1, 3])
@pytest.mark.parametrize(("mine", "other"), [(MIDDLE, START), (START, MIDDLE), (START, START)])
def test_concurrent_refresh_resumes_after_conflict(tmp_path, mine, other, page):
    """Another process refreshes the same account from another start during a page."""
    archive, requests = open_archive(tmp_path), []

    class Meanwhile(httpx.BaseTransport):
        def __init__(self, inner):
            self._inner = inner

        def handle_request(self, request):
            requests.append(request)
            if len(requests) == page:
                other_archive, other_session = open_archive(tmp_path), fill_session(FILLS)
                other_archive.refresh(
                    tk.user_fills_by_time, USER, other, page_size=500, session=other_session
                )
            return self._inner.handle_request(request)

    session = fill_session(FILLS, through=Meanwhile)
    archive.refresh(
        tk.user_fills_by_time, USER, mine, page_size=250, rows_per_commit=250, session=session
    )
    archive.refresh(tk.user_fills_by_time, USER, START, session=fill_session(FILLS))
    assert len(set(archived_rows(archive))) == len(archived_rows(archive)) == len(FILLS)
    assert error_kinds(archive) == set()


def test_clock_behind_archive_is_refused(tmp_path):
    """A present before the archived rows would hide later answers and fetch wrong ranges."""
    archive, session = open_archive(tmp_path), fill_session(FILLS)
    refreshes = [partial(archive.refresh, tk.user_fills_by_time, USER, START)]
    refreshes.append(partial(archive.refresh, tk.meta))
    for refresh in refreshes:
        refresh(session=session)
    before = archived_rows(archive), archive.status()
    late = fill_session(FILLS[:2], now_ms=lambda: START - 2 * HOUR)
    for refresh in refreshes:
        with pytest.raises(ArchiveError, match="Correct the clock of this machine"):
            refresh(session=late)
    assert (archived_rows(archive), archive.status().equals(before[1])) == (before[0], True)


def test_rows_of_intervals_need_a_start(tmp_path):
    archive = open_archive(tmp_path)
    session = tk.local(seed=7, size="tiny", default=False)
    for call, options in ((archive.refresh, {"session": session}), (archive.frame, {})):
        with pytest.raises(ArchiveError, match="start"):
            call(tk.candles, "BTC", "1h", **options)
