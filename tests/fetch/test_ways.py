"""Many subjects, page by page, raw, by hand; what a call costs; polling."""

import functools
import json
import warnings

import httpx
import pandas as pd
import pytest
import stamina

import toolkit as tk
from toolkit.client import connect
from toolkit.contract.operations import OPERATIONS
from toolkit.errors import BadRequest
from toolkit.fetch.notices import IncompleteWarning

NOBODY = "0x" + "0" * 39 + "9"


@pytest.fixture(scope="module")
def session() -> tk.Session:
    return tk.local(seed=7, size="tiny", default=False)


@pytest.fixture(scope="module")
def users(session) -> list[str]:
    return list(session.world["users"][:5])


def answering(status: int, content: bytes) -> tk.Session:
    transport = httpx.MockTransport(lambda request: httpx.Response(status, content=content))
    return connect("http://service.test", "key", transport=transport, default=False)


def test_many_is_each_below_the_other(session, users) -> None:
    joined = tk.many(tk.user_fills_by_time, users, 0, session=session)
    for user in users:
        one = tk.user_fills_by_time(user, 0, session=session)
        rows = joined[joined["user"] == user].drop(columns="user").reset_index(drop=True)
        pd.testing.assert_frame_equal(rows, one)
    facts = tk.provenance(joined)
    assert facts["complete"] == "yes"
    assert facts["parameters"]["users"] == users
    assert facts["simulated"]


def test_many_keeps_dtypes_with_nobody_and_with_none(session) -> None:
    none = tk.many(tk.user_fills_by_time, [], 0, numbers="exact", session=session)
    nobody = tk.many(tk.user_fills_by_time, [NOBODY], 0, numbers="exact", session=session)
    assert list(none.dtypes.items()) == list(nobody.dtypes.items())
    assert len(none) == len(nobody) == 0


def test_many_does_not_hide_a_column_of_the_rows(session, users) -> None:
    ledger = tk.many(tk.user_non_funding_ledger_updates, users, session=session)
    assert ledger.columns[0] == "account"
    assert "user" in ledger.columns
    assert set(ledger["account"]) <= set(users)


def test_many_says_which_were_cut(session, users) -> None:
    cut = tk.many(tk.user_fills_by_time, [NOBODY, *users[:2]], 0, max_rows=5, session=session)
    assert tk.provenance(cut)["complete"] == f"not of {users[0]}, {users[1]}"
    assert len(cut) == 10


def test_many_joins_every_frame_of_an_answer(session, users) -> None:
    lent = tk.many(tk.borrow_lend_user_state, users, session=session)
    assert isinstance(lent, tk.BorrowLendState)
    assert lent.account["user"].tolist() == users


def test_many_takes_dexes_and_coins(session) -> None:
    perps = tk.many(tk.meta, session.world["dexes"], session=session)
    assert perps["dex"].unique().tolist() == session.world["dexes"]
    samples = tk.many(tk.slippage_history, ["BTC", "ETH"], 1_000, "1d", session=session)
    assert samples["coin"].unique().tolist() == ["BTC", "ETH"]


def test_many_refuses_what_makes_no_sense(session, users) -> None:
    with pytest.raises(TypeError, match="takes all subjects at once"):
        tk.many(tk.batch_clearinghouse_states, users, session=session)
    with pytest.raises(TypeError, match="is not a fetch function"):
        tk.many(len, users, session=session)
    with pytest.raises(TypeError, match=r"'userFills' is not a fetch function"):
        tk.raw("userFills", users[0], session=session)


def test_an_interrupt_drops_the_subjects_that_have_not_begun(users) -> None:
    asked: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request.content.decode())
        raise KeyboardInterrupt

    session = connect(
        "http://service.test", "key", transport=httpx.MockTransport(handler), default=False
    )
    many = [f"0x{number:040x}" for number in range(2_000)]
    with pytest.raises(KeyboardInterrupt):
        tk.many(tk.user_fills, many, session=session)
    assert len(asked) < 1_000


class Stopping(pd.DataFrame):
    """A frame that is interrupted the first time that it is copied, as joining does."""

    stopped: list[bool] = []  # noqa: RUF012 - of the class, as copies are

    def copy(self, deep: bool = True) -> pd.DataFrame:
        if not self.stopped:
            self.stopped.append(True)
            raise KeyboardInterrupt
        return super().copy(deep)


def test_an_interrupt_while_joining_loses_nothing(session, users) -> None:
    first = tk.many(tk.user_fills_by_time, users[:2], 0, session=session)
    before = Stopping(first)
    before.attrs = first.attrs
    with pytest.raises(KeyboardInterrupt) as caught:
        tk.many(tk.user_fills_by_time, users, 0, resume=before, session=session)
    whole = tk.many(tk.user_fills_by_time, users, 0, session=session)
    rows = caught.value.rows  # type: ignore[attr-defined]
    pd.testing.assert_frame_equal(pd.DataFrame(rows), whole, check_flags=False)


def test_an_interrupt_after_the_last_row_loses_nothing(session, users, monkeypatch) -> None:
    def shown(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", shown)
        with pytest.raises(KeyboardInterrupt) as caught:  # a range from before the first day
            tk.user_fills_by_time(users[0], "2020-01-01", session=session)
    rows = caught.value.rows  # type: ignore[attr-defined]
    assert rows.equals(tk.user_fills_by_time(users[0], 0, session=session))
    assert tk.provenance(rows)["complete"] == "yes"


def test_many_hands_over_the_others_where_one_fails(session, users) -> None:
    with pytest.raises(tk.Incomplete, match=r"1 of 3 failed, first 0xbad") as caught:
        tk.many(tk.user_fills, [users[0], "0xbad", users[1]], session=session)
    assert list(caught.value.failed) == ["0xbad"]
    assert isinstance(caught.value.failed["0xbad"], tk.BadRequest)
    assert caught.value.rows["user"].unique().tolist() == users[:2]


def test_pages_give_every_row_once_and_say_where_they_come_from(session, users) -> None:
    whole = tk.user_fills_by_time(users[0], 0, session=session)
    parts = list(tk.pages(tk.user_fills_by_time, users[0], 0, page_size=300, session=session))
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), whole, check_flags=False)
    assert all(tk.provenance(part)["simulated"] for part in parts)
    said = [tk.provenance(part)["complete"] for part in parts]
    assert said == ["one page"] * (len(parts) - 1) + ["one page, the last"]
    assert [tk.provenance(part)["pages"] for part in parts] == list(range(1, len(parts) + 1))
    assert tk.provenance(parts[-1])["ties"] == len(parts) - 1
    with pytest.raises(TypeError, match="returns several frames"):
        list(tk.pages(tk.batch_clearinghouse_states, users, session=session))


def test_provenance_notices_that_rows_were_taken(session, users) -> None:
    fills = tk.user_fills_by_time(users[0], 0, session=session)
    assert tk.provenance(fills)["complete"] == "yes"
    some = fills.head(3)
    assert tk.provenance(some)["complete"] == f"no longer: 3 rows, {len(fills)} were fetched"


def test_info_sends_what_it_is_given(session) -> None:
    answer = tk.info({"type": "meta", "dex": "", "something": 1}, session=session)
    assert answer["universe"][0]["name"] == "BTC"
    sent = session.counts.requests
    for wrong in ({}, {"type": ""}, {"type": ["meta"]}, "meta", None):
        with pytest.raises(tk.BadRequest, match="a request is a mapping with a type") as caught:
            tk.info(wrong, session=session)
        assert caught.value.status is None
    for odd in (float("nan"), object(), {1, 2}):
        with pytest.raises(tk.BadRequest, match="meta: the request cannot be written") as caught:
            tk.info({"type": "meta", "something": odd}, session=session)
        assert caught.value.status is None
    with pytest.raises(tk.BadRequest, match="Invalid Ethereum address") as caught:
        tk.info({"type": "userFills", "user": "x"}, session=session)
    assert "status" not in str(caught.value)
    assert session.counts.requests == sent  # nothing of this was sent


def test_info_sends_unknown_types(session) -> None:
    sent = session.counts.requests
    with pytest.raises(
        tk.BadRequest, match=r"Unknown type: userFilsByTime \(status 400\)"
    ) as caught:
        tk.info({"type": "userFilsByTime"}, session=session)
    assert caught.value.hint == "Did you mean userFillsByTime?"
    assert session.counts.requests == sent + 1


def test_info_gives_unknown_answers_as_they_are() -> None:
    asked: list[dict[str, object]] = []
    answers = {
        "portfolioState": httpx.Response(200, json={"accountValue": "1.5"}),
        "someWord": httpx.Response(200, json="unifiedAccount"),
        "somePack": httpx.Response(
            200, content=b"\x93\x01\x02\x03", headers={"content-type": "application/octet-stream"}
        ),
        "someText": httpx.Response(200, content=b"no JSON at all"),
    }

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content))
        return answers[asked[-1]["type"]]

    made = connect(
        "http://service.test", "key", transport=httpx.MockTransport(handler), default=False
    )
    request = {"type": "portfolioState", "user": "0xAB", "other": None}
    assert tk.info(request, session=made) == {"accountValue": "1.5"}
    assert asked == [request]
    assert (made.counts.requests, made.counts.points) == (1, 2)
    assert tk.info({"type": "someWord"}, session=made) == "unifiedAccount"
    assert tk.info({"type": "somePack"}, session=made) == b"\x93\x01\x02\x03"
    with pytest.raises(tk.AnswerInvalid, match="someText: the answer cannot be read"):
        tk.info({"type": "someText"}, session=made)


def test_info_counts_known_costs_and_retries() -> None:
    left = [httpx.Response(522, content=b"error code: 522"), httpx.Response(200, json=[])]
    made = connect(
        "http://service.test",
        "key",
        points_per_minute=100,
        transport=httpx.MockTransport(lambda request: left.pop(0)),
        default=False,
    )
    with stamina.set_testing(True, attempts=2):
        assert tk.info({"type": "userFunding", "user": "0x" + "1" * 40}, session=made) == []
    assert (made.counts.requests, made.counts.points) == (2, 20)
    assert made.counts.causes == {"522": 1}


@pytest.mark.parametrize("content", [b"", b"no", b"[" * 100_000])
def test_raw_and_info_say_when_an_answer_is_none(content) -> None:
    session = answering(200, content)
    with stamina.set_testing(True, attempts=2):
        with pytest.raises(tk.AnswerInvalid, match="meta: the answer cannot be read"):
            tk.raw(tk.meta, session=session)
        with pytest.raises(tk.AnswerInvalid, match="meta: the answer cannot be read"):
            tk.info({"type": "meta"}, session=session)


def test_a_plan_without_a_probe_asks_nothing(session, users) -> None:
    before = session.counts.requests
    grid = tk.plan(tk.slippage_history, "BTC", 1_000, "2025-09-30", session=session)
    assert (grid.rows, grid.points) == (97, 10 * grid.requests)
    unknown = tk.plan(tk.user_fills_by_time, users[0], 0, session=session)
    assert (unknown.rows, unknown.sure) == (None, "at least")
    assert session.counts.requests == before


def test_a_plan_of_a_grid_is_what_the_pull_takes(session) -> None:
    for page_size in (20, 500):
        plan = tk.plan(
            tk.slippage_history, "BTC", 1_000, "2025-09-30", page_size=page_size, session=session
        )
        before = session.counts.requests
        got = tk.slippage_history("BTC", 1_000, "2025-09-30", page_size=page_size, session=session)
        assert len(got) == plan.rows
        assert session.counts.requests - before == plan.requests


def test_a_probe_finds_where_a_grid_begins(session) -> None:
    """Asked from 1970, rows stand on every quarter hour of the three days that there are."""
    asked = (tk.slippage_history, "BTC", 1_000, 0)
    assert tk.plan(*asked, session=session).rows > 1_000_000
    plan = tk.plan(*asked, probe=True, session=session)
    facts = tk.provenance(asked[0](*asked[1:], session=session))
    assert (plan.rows, plan.requests) == (facts["rows"], facts["requests"])


def test_a_probed_plan_comes_near(session, users) -> None:
    plan = tk.plan(tk.user_fills_by_time, users[0], 0, page_size=500, probe=True, session=session)
    rows = len(tk.user_fills_by_time(users[0], 0, session=session))
    assert plan.sure == "likely"
    assert "as dense as the probed" in plan.why
    assert rows / 2 < plan.rows < rows * 2


def test_a_plan_of_what_grows_looks_at_its_middle(session) -> None:
    """Users approve a builder one by one: its first page is less dense than the rest."""
    asked = (tk.builder_approved_funding_by_time, session.world["builders"][0], "3d")
    plan = tk.plan(*asked, page_size=100, probe=True, session=session)
    rows = len(asked[0](*asked[1:], session=session))
    assert plan.sure == "likely"
    assert 0.7 * rows < plan.rows < 1.3 * rows


def test_a_plan_beyond_the_present_is_one_up_to_it(session, users) -> None:
    asked = (tk.user_fills_by_time, users[0], "3d")
    plans = [
        tk.plan(*asked, end=end, page_size=100, probe=True, session=session)
        for end in (None, "2027-01-01")
    ]
    assert plans[0].rows == plans[1].rows


def test_a_plan_counts_weeks_from_mondays(session) -> None:
    """From Friday 1 August 2025 to Wednesday 1 October: nine Mondays, 4 August to 29 September."""
    asked = (tk.validator_apr_history, session.world["validators"][0])
    plan = tk.plan(*asked, start="2025-08-01", end="2025-10-01", session=session)
    assert (plan.rows, plan.sure) == (9, "at most")


@pytest.mark.parametrize("call", ["validator_apr_history", "user_non_funding_ledger_updates"])
def test_what_a_plan_calls_the_least_is_the_least(session, users, call) -> None:
    """Three rows of a history, and an account without any, take one request."""
    fetch = getattr(tk, call)
    named = {"max_rows": 3} if call == "validator_apr_history" else {}
    whom = session.world["validators"][0] if named else "0x" + "9" * 40
    start = () if named else (0,)
    plan = tk.plan(fetch, whom, *start, **named, session=session)
    taken = tk.provenance(fetch(whom, *start, **named, session=session))["requests"]
    assert (plan.requests, plan.sure, taken) == (1, "at least", 1)


def test_a_probe_of_one_burst_claims_nothing(session, users) -> None:
    plan = tk.plan(tk.user_fills_by_time, users[0], 0, page_size=3, probe=True, session=session)
    assert (plan.rows, plan.sure) == (None, "at least")


def test_a_plan_says_how_long_the_quota_makes_it_take(session) -> None:
    """What the plan says in minutes is what the budget then waits, on a clock that stands."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    for quota in (10, 25, 40):
        slow = connect(
            "http://service.test",
            "local",
            points_per_minute=quota,
            transport=httpx.MockTransport(
                lambda request: httpx.Response(
                    200, content=session.client.post("/info", content=request.content).content
                )
            ),
            now_ms=session.now_ms,
            clock=lambda: now[0],
            sleep=sleep,
            default=False,
        )
        asked = ("BTC", 1_000, "2025-09-30")
        plan = tk.plan(tk.slippage_history, *asked, page_size=20, session=slow)
        begun = now[0]
        tk.slippage_history(*asked, page_size=20, session=slow)
        assert slow.counts.requests == plan.requests == 7
        # 7 requests of 10 points: 1, 2 or 4 of them a minute, so 6, 3 or 1 minutes of waiting.
        assert plan.minutes == {10: 6, 25: 3, 40: 1}[quota]
        assert now[0] - begun == pytest.approx(60 * plan.minutes, abs=0.05)
        assert "minutes" in str(plan)
    dear = connect("http://service.test", points_per_minute=5, budget_folder=False, default=False)
    plan = tk.plan(tk.slippage_history, *asked, session=dear)
    assert plan.minutes is None
    assert "costs 10 points, more than points_per_minute" in plan.why


def test_a_plan_is_a_table_in_a_notebook_and_one_line_elsewhere(session, users) -> None:
    plan = tk.plan(tk.user_fills, users[0], session=session)
    expected = (
        "userFills: 2,000 rows, 1 requests, 10 points (at most: one request for the latest rows)"
    )
    assert str(plan) == expected
    html = plan._repr_html_()
    assert html.startswith("<table>")
    assert '<th scope="row">points</th><td>10</td>' in html
    probed = tk.plan(tk.user_fills_by_time, users[0], 0, page_size=500, probe=True, session=session)
    assert probed.minutes is not None


def test_a_plan_knows_that_max_rows_ends_it(session, users) -> None:
    plan = tk.plan(
        tk.user_fills_by_time,
        users[0],
        0,
        page_size=100,
        max_rows=50,
        probe=True,
        session=session,
    )
    assert (plan.rows, plan.requests, plan.sure) == (50, 1, "exact")


def test_polling_fetches_only_what_changed(session) -> None:
    waits: list[float] = []
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


def polled(
    quota: int | None, refuse: tuple[int, ...] = (), *, session: tk.Session | None = None
) -> tuple[list[int], list[int]]:
    """Poll 30 times, 60 s apart, while each look finds a new snapshot: which looks fetched one."""
    heavy: list[int] = []
    looks: list[int] = []
    empty = tk.frame("perpTwapSnapshots", [])

    def stamp(*, session) -> object:
        looks.append(len(looks))
        return tk.frame("perpTwapSnapshotTimestamp", [{"snapshot_id": str(looks), "timestamp": 0}])

    @functools.wraps(tk.perp_twap_snapshots)
    def fetch(*arguments: object, session) -> object:
        if looks[-1] in refuse:
            raise tk.RateLimited("Rate limit exceeded")
        heavy.append(looks[-1])
        return empty

    session = session or connect(
        "http://service.test", "key", points_per_minute=quota, budget_folder=False, default=False
    )
    frames = tk.poll(
        stamp, fetch, ["ALL"], every="60s", rounds=30, wait=lambda seconds: None, session=session
    )
    assert len(list(frames)) == len(heavy)
    return looks, heavy


def test_polling_keeps_to_snapshot_limit() -> None:
    """Five in ten minutes: looks 0 to 4, then from minute 10 on five more."""
    looks, heavy = polled(quota=5_000)
    assert len(looks) == 30
    assert heavy == [0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 20, 21, 22, 23, 24]


def test_polling_without_quota_keeps_to_limit() -> None:
    """The service counts the calls of every key (docs/live_service.md, section 8)."""
    heavy = polled(quota=None)[1]
    assert heavy == [0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 20, 21, 22, 23, 24]


def test_polling_simulated_data_is_unlimited(session) -> None:
    assert polled(quota=None, session=session)[1] == list(range(30))
    served = connect("http://service.test", "key", simulated=True, default=False)
    assert polled(quota=None, session=served)[1] == list(range(30))


def test_polling_recordings_is_unlimited(tmp_path) -> None:
    call = {
        "request": {"type": "meta"},
        "status": 200,
        "response": {"universe": [{"name": "BTC", "szDecimals": 5}]},
    }
    (tmp_path / "meta.json").write_text(json.dumps(call))
    recorded = tk.local(recordings=tmp_path, default=False)
    assert not recorded.simulated
    assert polled(quota=None, session=recorded)[1] == list(range(30))


def test_polling_goes_on_when_refused() -> None:
    """Refused looks 3 and 4 are no calls: 5 and 6 make the first five."""
    heavy = polled(quota=None, refuse=(3, 4))[1]
    assert heavy == [0, 1, 2, 5, 6, 10, 11, 12, 15, 16, 20, 21, 22, 25, 26]


def test_polling_waits_for_the_first_snapshot() -> None:
    session = answering(404, b'{"error":"No snapshots are available yet"}')
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


def test_describe_says_what_there_is(session, users) -> None:
    assert tk.describe()["operation"].tolist() == list(OPERATIONS)
    columns = tk.describe(tk.batch_clearinghouse_states)
    assert columns["frame"].unique().tolist() == ["accounts", "positions", "failed"]
    fills = tk.user_fills(users[0], session=session)
    assert tk.describe(fills)["column"].tolist() == list(fills.columns)
    with pytest.raises(TypeError, match=r"print is not a fetch function: help\(print\)"):
        tk.describe(print)
    with pytest.raises(TypeError, match=r"attribution is not a fetch function: help"):
        tk.describe(tk.pnl.attribution)
    fit = tk.slippage.fit(tk.slippage_history("BTC", 1e4, "2d", session=session))
    words = tk.describe(fit).set_index("column")
    assert words.index.tolist() == list(fit.params.columns)
    assert words.loc[["name", "estimate", "low", "high"], "meaning"].ne("").all()


def test_describe_takes_the_frames_of_one_answer(session, users) -> None:
    states = tk.batch_clearinghouse_states(users, session=session)
    words = tk.describe(states)
    assert words["frame"].unique().tolist() == list(states._fields)
    columns = [name for one in states for name in one.columns]
    assert words["column"].tolist() == columns
    assert words["meaning"].ne("").all()
    with pytest.raises(TypeError, match=r"Call tk\.describe with one of them"):
        tk.describe(tuple(states))


def test_provenance_of_many_shows_the_first_few_and_knows_all(session) -> None:
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


def test_uneven_pages_by_time_are_no_end() -> None:
    """A service that cuts its answers anywhere: 500 rows, then 480, then 500."""
    import json

    times = list(range(1_600))
    sizes = iter([500, 480, 500, 500, 500, 500])

    def handler(request: httpx.Request) -> httpx.Response:
        start = json.loads(request.content)["startTime"]
        rows = [
            {"time": t, "hash": "0x0", "delta": {"type": "deposit", "usdc": "1"}}
            for t in times[start:][: next(sizes)]
        ]
        return httpx.Response(200, json=rows)

    session = connect(
        "http://service.test", "key", transport=httpx.MockTransport(handler), default=False
    )
    assert len(tk.user_non_funding_ledger_updates(NOBODY, session=session)) == 1_600


@pytest.mark.parametrize("wait", ["inf", "1e400", "nan", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_a_retry_after_that_is_no_number_of_seconds_is_passed_over(wait) -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        return httpx.Response(429, json={"error": "slow"}, headers={"Retry-After": wait})

    session = connect(
        "http://service.test", "key", transport=httpx.MockTransport(handler), default=False
    )
    with stamina.set_testing(True, attempts=2), pytest.raises(tk.RateLimited) as caught:
        tk.meta(session=session)
    assert caught.value.retry_after is None


def test_an_amount_larger_than_any_float_is_refused_in_words(session) -> None:
    with pytest.raises(tk.BadRequest, match="amount parameter is required"):
        tk.slippage_history("BTC", 10**400, 0, session=session)


def test_incomplete_may_be_a_warning(session, users) -> None:
    session.budget.most = session.budget.spent + 15
    try:
        with pytest.warns(IncompleteWarning):
            some = tk.user_fills_by_time(
                users[0], 0, page_size=300, on_incomplete="warn", session=session
            )
    finally:
        session.budget.most = None
    assert tk.provenance(some)["complete"] == "no"
    assert 0 < len(some) < 300


def test_describe_names_unfetched_operation() -> None:
    columns = tk.describe("userFunding").set_index("column")
    assert columns.index.tolist() == tk.frame("userFunding", []).columns.tolist()
    assert columns.loc["usdc", "unit"] == "USD"
    with pytest.raises(ValueError, match="No table layout is known for 'portfolioState'"):
        tk.describe("portfolioState")


def test_age_sent_by_info_is_refused(session, users) -> None:
    request = {"type": "userFunding", "user": users[0], "startTime": "7d"}
    with pytest.raises(BadRequest, match="startTime must be a whole number of Unix milliseconds"):
        tk.info(request, session=session)


def test_concat_of_made_frames_says_way() -> None:
    made = tk.frame("userFunding", [])
    with pytest.raises(ValueError, match=r"pandas\.concat\(\[a\.assign\(user=\.\.\.\)"):
        tk.concat([made, made])


def test_example_without_world_names_service() -> None:
    with (
        connect("http://127.0.0.1:9", "k") as asked,
        pytest.raises(AttributeError, match=r"service at http://127\.0\.0\.1:9; tk\.example"),
    ):
        tk.example.stories(asked)
