"""Plans: what a call will cost."""

import httpx
import pytest

import toolkit as tk
from tests.fetch.wire import session_over
from toolkit.client import open_session


def test_plan_without_probe_sends_nothing(session, users):
    before = session.counts.requests
    grid = tk.plan(tk.slippage_history, "BTC", 1_000, "2025-09-30", session=session)
    assert (grid.rows, grid.points) == (97, 10 * grid.requests)
    unknown = tk.plan(tk.user_fills_by_time, users[0], 0, session=session)
    assert (unknown.rows, unknown.sure) == (None, "at least")
    assert session.counts.requests == before


def test_grid_plan_is_exact(session):
    for page_size in (20, 500):
        plan = tk.plan(
            tk.slippage_history, "BTC", 1_000, "2025-09-30", page_size=page_size, session=session
        )
        before = session.counts.requests
        got = tk.slippage_history("BTC", 1_000, "2025-09-30", page_size=page_size, session=session)
        assert len(got) == plan.rows
        assert session.counts.requests - before == plan.requests


def test_probe_finds_grid_start(session):
    """Requested from 1970, there are rows for every quarter hour of three days."""
    asked = (tk.slippage_history, "BTC", 1_000, 0)
    assert tk.plan(*asked, session=session).rows > 1_000_000
    plan = tk.plan(*asked, probe=True, session=session)
    facts = tk.provenance(asked[0](*asked[1:], session=session))
    assert (plan.rows, plan.requests) == (facts["rows"], facts["requests"])


def test_probed_plan_is_near(session, users):
    """Users approve a builder one by one, so its first page is less dense than the rest."""
    fills = (tk.user_fills_by_time, users[0], 0)
    funding = (tk.builder_approved_funding_by_time, session.world["builders"][0], "3d")
    for asked, size, factor in ((fills, 500, 2), (funding, 100, 1.4)):
        plan = tk.plan(*asked, page_size=size, probe=True, session=session)
        rows = len(asked[0](*asked[1:], session=session))
        assert plan.sure == "likely"
        assert rows / factor < plan.rows < rows * factor


def test_plan_ends_at_present(session, users):
    asked = (tk.user_fills_by_time, users[0], "3d")
    plans = [
        tk.plan(*asked, end=end, page_size=100, probe=True, session=session)
        for end in (None, "2027-01-01")
    ]
    assert plans[0].rows == plans[1].rows


def test_plan_counts_weeks_from_monday(session):
    """From Friday 1 August 2025 to Wednesday 1 October: nine Mondays, 4 August to 29 September."""
    asked = (tk.validator_apr_history, session.world["validators"][0])
    plan = tk.plan(*asked, start="2025-08-01", end="2025-10-01", session=session)
    assert (plan.rows, plan.sure) == (9, "at most")


def test_least_plan_is_lower_bound(session):
    """Three rows need one request, and so does an account without rows."""
    validator, nobody = session.world["validators"][0], "0x" + "9" * 40
    for fetch, arguments, named in (
        (tk.validator_apr_history, (validator,), {"max_rows": 3}),
        (tk.user_non_funding_ledger_updates, (nobody, 0), {}),
    ):
        plan = tk.plan(fetch, *arguments, **named, session=session)
        taken = tk.provenance(fetch(*arguments, **named, session=session))["requests"]
        assert (plan.requests, plan.sure, taken) == (1, "at least", 1)


def test_plan_of_tied_fills_is_lower_bound(session, users):
    plan = tk.plan(tk.user_fills_by_time, users[0], 0, page_size=3, probe=True, session=session)
    assert (plan.rows, plan.sure) == (None, "at least")
    asked = {"page_size": 100, "max_rows": 50, "probe": True, "session": session}
    plan = tk.plan(tk.user_fills_by_time, users[0], 0, **asked)
    assert (plan.rows, plan.requests, plan.sure) == (50, 1, "exact")


def test_repeated_users_cost_and_count_once(session, users):
    repeated = [users[0], "0x" + users[0][2:].upper(), users[0]]
    plan = tk.plan(tk.batch_clearinghouse_states, repeated, session=session)
    states = tk.batch_clearinghouse_states(repeated, session=session)
    facts = tk.provenance(states.accounts)
    assert (plan.points, facts["points"]) == (2, 2)
    assert states.accounts["user"].tolist() == facts["parameters"]["users"] == users[:1]
    assert states.positions.equals(
        tk.batch_clearinghouse_states(users[0], session=session).positions
    )


def test_plan_counts_waits_of_quota(session):
    """The minutes of the plan are the waits of the budget."""
    now = [0.0]

    def sleep(seconds):
        now[0] += seconds

    def answer(request):
        content = session.client.post("/info", content=request.content).content
        return httpx.Response(200, content=content)

    for quota in (10, 25, 40):
        slow = session_over(
            answer,
            points_per_minute=quota,
            budget_folder=False,
            now_ms=session.now_ms,
            clock=lambda: now[0],
            sleep=sleep,
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
    dear = open_session(
        "http://service.test", points_per_minute=5, budget_folder=False, default=False
    )
    plan = tk.plan(tk.slippage_history, *asked, session=dear)
    assert plan.minutes is None
    assert "costs 10 points, more than points_per_minute" in plan.why


def test_plan_shows_rows_requests_and_points(session, users):
    plan = tk.plan(tk.user_fills, users[0], session=session)
    expected = (
        "userFills: 2,000 rows, 1 request, 10 points, 1 token (0.0006 USD) "
        "(at most: one request for the latest rows)"
    )
    assert str(plan) == expected
    html = plan._repr_html_()
    assert html.startswith("<table>")
    assert ">10</td>" in html
    probed = tk.plan(tk.user_fills_by_time, users[0], 0, page_size=500, probe=True, session=session)
    assert probed.minutes is not None


def test_plan_counts_confirmation_of_round_page(session, users):
    """A first page of 100 rows may be cut, so that its end is requested once more."""
    whole = tk.user_fills_by_time(users[0], 0, session=session)
    places = whole["time"].drop_duplicates(keep="last").index + 1
    count = next(place for place in places if place % 100 == 0)
    end = whole["time"].iloc[count - 1]
    plan = tk.plan(tk.user_fills_by_time, users[0], 0, end, probe=True, session=session)
    before = session.counts.requests
    assert len(tk.user_fills_by_time(users[0], 0, end, session=session)) == count
    assert plan.sure == "exact"
    assert plan.requests == session.counts.requests - before == 2
