"""The certificate of a pull: requests, ties, retries and waits."""

import itertools
import json

import httpx
import pandas as pd
import pytest
import stamina

import toolkit as tk
from tests.fetch.wire import fill, session_over
from toolkit.completeness.checks import HistoryChecks
from toolkit.times import to_iso

USER = "0x" + "a" * 40


@pytest.fixture(autouse=True)
def _no_waiting():
    with stamina.set_testing(True, attempts=4):
        yield


# Two transactions of three fills each, then one of one fill.
FILLS = [fill(1_000, 0, n) for n in range(3)] + [fill(1_000, 1, n) for n in range(3, 6)]
FILLS += [fill(2_000, 0, 6)]


class Service:
    """A service that pages FILLS by cursor, after some failures."""

    def __init__(self, *failures):
        self.failures = list(failures)

    def __call__(self, request):
        if self.failures:
            failure = self.failures.pop(0)
            if isinstance(failure, Exception):
                raise failure
            return failure
        asked = json.loads(request.content)
        after = tuple(map(int, asked.get("cursor", "-1_0").split("_")))
        rows = [fill for fill in FILLS if (fill["time"], fill["txIndex"]) > after]
        return httpx.Response(200, json=rows[: asked.get("limit", 2_000)])

    def session(self, **options):
        return session_over(self, **options)


def short_answer(content):
    """Return an answer that announces more bytes than it has."""
    headers = {"content-length": str(len(content) + 10)}
    return httpx.Response(200, stream=httpx.ByteStream(content), headers=headers)


def test_certificate_counts_requests():
    # Pages of 4. Request 1: rows 0-3, row 3 may be cut: 3 certain, 1 tie. Request 2 after 1000_0:
    # rows 3-6, row 6 may be cut: 3 certain, 1 tie. Request 3 after 1000_1: row 6 again. Request 4
    # after 2000_0: nothing, the end.
    frame = tk.user_fills_by_time(USER, 0, page_size=4, session=Service().session())
    assert frame["tid"].tolist() == [0, 1, 2, 3, 4, 5, 6]
    facts = tk.provenance(frame)
    expected = {
        "complete": "yes",
        "rows": 7,
        "pages": 4,
        "ties": 2,
        "first": "1000_0",
        "last": "2000_0",
        "requests": 4,
        "points": 40,
        "retries": {},
        "waits": 0,
        "waited_seconds": 0,
    }
    assert {name: facts[name] for name in expected} == expected
    pulls = [Service().session(now_ms=lambda: 5_000) for _ in range(2)]
    first, second = (
        tk.provenance(tk.user_fills_by_time(USER, 0, page_size=4, session=pull)) for pull in pulls
    )
    assert first == second


def test_retries_are_counted_by_cause():
    session = Service(
        httpx.Response(429, json={"error": "slow"}, headers={"Retry-After": "5"}),
        httpx.Response(502, json={"error": "Timeout error"}),
        httpx.ReadTimeout("slow"),
    ).session()
    facts = tk.provenance(tk.user_fills_by_time(USER, 0, session=session))
    assert facts["retries"] == {"429": 1, "502": 1, "time-out": 1}
    assert (facts["requests"], facts["points"], facts["pages"]) == (4, 40, 1)
    session = Service(
        httpx.ConnectError("refused"), httpx.RemoteProtocolError("peer closed"), short_answer(b"[]")
    ).session()
    facts = tk.provenance(tk.user_fills_by_time(USER, 0, session=session))
    assert facts["retries"] == {"connection broken": 2, "no connection": 1}
    assert facts["rows"] == 7


def test_cut_answer_is_retried():
    for content in (b"", b"[", b'[{"coin":"BTC"', b'[{"coin":"BTC"}', b'[{"a":[]', b'[{"a":[{}]'):
        session = Service(httpx.Response(200, content=content)).session()
        facts = tk.provenance(tk.user_fills_by_time(USER, 0, session=session))
        assert (facts["rows"], facts["retries"]) == (7, {"answer cut short": 1})


class LateFilter(Service):
    """A service that applies its limit before the filters of a request."""

    def __call__(self, request):
        asked = json.loads(request.content)
        rows = [fill(1_000 + n, 0, n) for n in range(40)]
        after = tuple(map(int, asked.get("cursor", "-1_0").split("_")))
        page = [row for row in rows if (row["time"], row["txIndex"]) > after]
        page = page[: asked.get("limit", 2_000)]
        is_filtered = "dex" in asked or asked.get("aggregateByTime")
        return httpx.Response(200, json=[row for row in page if not is_filtered or row["tid"] % 3])


def test_filtered_first_page_is_not_the_end():
    """A page that a filter made short is requested once more, unless nothing came."""
    for filters in ({"dex": "flx"}, {"aggregate_by_time": True}):
        session = LateFilter().session()
        frame = tk.user_fills_by_time(USER, 0, page_size=20, session=session, **filters)
        assert frame["tid"].tolist() == [n for n in range(40) if n % 3]
        assert tk.provenance(frame)["complete"] == "yes"
        session = LateFilter().session(confirm_end=False)
        frame = tk.user_fills_by_time(USER, 0, page_size=20, session=session, **filters)
        assert tk.provenance(frame)["requests"] == 1
    for filters, requests in (({"aggregate_by_time": False}, 1), ({"dex": "flx"}, 2)):
        session = LateFilter().session()
        frame = tk.user_fills_by_time(USER, 0, session=session, **filters)
        assert tk.provenance(frame)["requests"] == requests
        plan = tk.plan(tk.user_fills_by_time, USER, 0, probe=True, session=session, **filters)
        assert (plan.requests, plan.sure) == (requests, "exact")


def test_confirm_end_decides_number_of_requests():
    for size, requests in ((4, (3, 4, 4)), (9, (1, 1, 2))):
        for confirm_end, expected in zip((False, None, True), requests, strict=True):
            session = Service().session(confirm_end=confirm_end)
            frame = tk.builder_approved_fills_by_time(USER, 0, page_size=size, session=session)
            assert (len(frame), tk.provenance(frame)["requests"]) == (7, expected)


def test_failed_confirmation_keeps_rows():
    class Closing(Service):
        def __call__(self, request):
            if json.loads(request.content).get("cursor") == "2000_0":
                return httpx.Response(500, json={"error": "closed"})
            return super().__call__(request)

    with pytest.raises(tk.Incomplete, match="closed") as caught:
        tk.user_fills_by_time(USER, 0, page_size=4, session=Closing().session())
    assert len(caught.value.rows) == 7


def test_short_pages_alone_are_complete():
    """A service that filters or merges rows after the limit: no page is full."""

    class Filtering(Service):
        def __call__(self, request):
            after = tuple(map(int, json.loads(request.content).get("cursor", "-1_0").split("_")))
            rows = [fill for fill in many if (fill["time"], fill["txIndex"]) > after][:5]
            full = rows if after[0] < 0 else rows[:4]  # the first page is full
            return httpx.Response(200, json=full)

    many = [fill(1_000 + n, 0, n) for n in range(60)]
    frame = tk.user_fills_by_time(USER, 0, page_size=5, session=Filtering().session())
    assert frame["tid"].tolist() == list(range(60))


def test_pull_ends_although_rows_arrive():
    """New rows with every request: the pull ends, although its end is never confirmed."""

    class Growing(Service):
        def __call__(self, request):
            at = len(FILLS) + len(new)
            new.append(fill(3_000 + at, 0, at))
            after = tuple(map(int, json.loads(request.content).get("cursor", "-1_0").split("_")))
            rows = [fill for fill in FILLS + new if (fill["time"], fill["txIndex"]) > after]
            return httpx.Response(200, json=rows[:4])

    new = []
    session = Growing().session(now_ms=lambda: 3_000)
    frame = tk.user_fills_by_time(USER, 0, page_size=4, session=session)
    assert frame["tid"].tolist() == list(range(len(frame)))
    assert tk.provenance(frame)["requests"] < 12


def test_session_counts_sum_pulls():
    session = Service(httpx.Response(500, json={"error": "x"})).session()
    users = ["0x" + letter * 40 for letter in "abcdef"]
    joined = tk.provenance(tk.many(tk.user_fills_by_time, users, 0, page_size=4, session=session))
    assert joined["requests"] == session.counts.requests == 6 * 4 + 1
    assert joined["retries"] == dict(session.counts.causes) == {"500": 1}
    assert (joined["pages"], joined["ties"], joined["rows"]) == (24, 12, 42)


def test_provenance_time_is_start_of_call():
    """Rows that come during the pull may be missing."""
    clock = itertools.count(5_000, 1_000)
    session = Service().session(now_ms=lambda: next(clock))
    frame = tk.user_fills_by_time(USER, 0, page_size=4, session=session)
    assert tk.provenance(frame)["asked_at"] == to_iso(5_000)


def test_incomplete_has_rows_and_cursor():
    session = Service().session(most_points=20)
    with pytest.raises(tk.Incomplete, match="1000_1") as caught:
        tk.user_fills_by_time(USER, 0, page_size=4, session=session)
    rows = caught.value.rows
    facts = tk.provenance(rows)
    assert (facts["complete"], facts["rows"], facts["first"], facts["last"]) == (
        "no",
        6,
        "1000_0",
        "1000_1",
    )
    assert "20" in facts["why"]
    rest = tk.user_fills_by_time(USER, cursor=caught.value.cursor, session=Service().session())
    assert rows["tid"].tolist() + rest["tid"].tolist() == list(range(7))


def test_empty_pull_has_no_first_key():
    session = session_over(lambda request: httpx.Response(200, json=[]))
    facts = tk.provenance(tk.user_fills_by_time(USER, 0, session=session))
    assert (facts["first"], facts["last"], facts["rows"], facts["complete"]) == (
        None,
        None,
        0,
        "yes",
    )


def test_certificate_survives_parquet(tmp_path):
    frame = tk.user_fills_by_time(USER, 0, page_size=4, session=Service().session())
    kept = tk.provenance(frame)
    assert json.loads(json.dumps(kept)) == kept
    frame.to_parquet(tmp_path / "fills.parquet")
    assert tk.provenance(pd.read_parquet(tmp_path / "fills.parquet")) == kept
    assert tk.provenance(frame.sort_values("tid").copy()) == kept


def test_interrupted_checks_are_repeated(monkeypatch):
    """The rows of the error come with the evidence against them."""
    check, calls = HistoryChecks.add_page, []

    def interrupt_once(self, columns):
        calls.append(check(self, columns))
        if len(calls) == 1:
            raise KeyboardInterrupt
        return calls[-1]

    monkeypatch.setattr(HistoryChecks, "add_page", interrupt_once)
    rows = [fill(1_000, 0, 1), fill(2_000, 0, 2) | {"startPosition": "5.0"}]
    session = session_over(lambda request: httpx.Response(200, json=rows))
    with pytest.raises(KeyboardInterrupt) as caught:
        tk.user_fills(USER, session=session)
    assert len(tk.provenance(caught.value.rows)["breaks"]) == len(calls[0]) > 0
