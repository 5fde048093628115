"""The service that plays the exchange's own API: docs/live_service.md, section 12."""

import json

import pytest

import toolkit as tk
from tests.fetch.wire import fill
from toolkit.contract.apis import EXCHANGE
from toolkit.local_service import recorded_store
from toolkit.service import Application, KeyQuotas

USER = "0x" + "ab" * 20
TIME = 1_700_000_000_000


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Return a store with 10,345 recorded fills of an account, two in each millisecond."""
    folder = tmp_path_factory.mktemp("recordings")
    rows = [fill(TIME + i // 2, tx=i, tid=i) for i in range(10_345)]
    for first in range(0, len(rows), 2_000):
        body = {"type": "userFillsByTime", "user": USER, "startTime": rows[first]["time"]}
        recording = {"request": body, "status": 200, "response": rows[first : first + 2_000]}
        (folder / f"{first}.json").write_text(json.dumps(recording))
    return recorded_store(folder)


@pytest.fixture
def ask(store):
    """Return a function that sends a request from a machine; the clock is its argument."""
    clock = [0]
    application = Application(
        store,
        KeyQuotas([]),
        now_ms=lambda: 2 * TIME,
        at_ms=lambda: clock[0],
        api=EXCHANGE,
        points_per_machine=1_200,
    )

    def send(type, machine="10.0.0.1", at_ms=0, headers=(), **fields):
        clock[0] = at_ms
        body = json.dumps({"type": type, **fields}).encode()
        key = application.admit("POST", "/info", dict(headers), machine)
        return key if hasattr(key, "status") else application.answer(key, dict(headers), body)

    return send


def rows_of(response):
    assert response.status == 200, response.content
    return json.loads(response.content)


@pytest.mark.parametrize("aggregate", [False, True])
def test_only_the_latest_fills_are_kept(ask, aggregate):
    everything = {"user": USER, "startTime": 0, "aggregateByTime": aggregate}
    page = rows_of(ask("userFillsByTime", **everything))
    assert len(page) == 2_000
    assert page[0]["tid"] == 345
    assert "txIndex" not in page[0]
    last = rows_of(ask("userFillsByTime", user=USER, startTime=TIME + 5_000))
    assert [row["tid"] for row in last] == list(range(10_000, 10_345))
    assert rows_of(ask("userFillsByTime", user=USER, startTime=0, endTime=TIME + 171)) == []
    newest = rows_of(ask("userFills", user=USER))
    assert [row["tid"] for row in newest[:2]] == [10_344, 10_343]
    assert len(newest) == 2_000


def test_unknown_fields_are_ignored(ask):
    page = ask("userFillsByTime", user=USER, startTime=0, limit=5, builder="x", cursor=3)
    assert len(rows_of(page)) == 2_000
    headers = {"authorization": "Bearer wrong"}
    assert ask("userFills", user=USER, headers=headers, at_ms=60_000).status == 200


def test_errors_are_plain_text(ask):
    for type, fields in {
        "slippageHistory": {"coin": "BTC", "amount": 1_000, "startTime": 0},
        "apiUsage": {},
        "nonsense": {},
        "userFills": {"user": "0x12"},
        "userFillsByTime": {"user": USER},
    }.items():
        refused = ask(type, **fields)
        assert refused.status == 422
        assert refused.headers["content-type"].startswith("text/plain")
        assert refused.content.startswith(b"Failed to deserialize the JSON body into the target")


def test_weight_of_each_machine(ask):
    for _ in range(10):  # each weighs 20 + 2,000 / 20
        assert ask("userFills", user=USER).status == 200
    refused = ask("userFills", user=USER, at_ms=59_999)
    assert (refused.status, refused.content) == (429, b"")
    assert "retry-after" not in refused.headers
    assert ask("userFills", "10.0.0.2", user=USER).status == 200
    assert ask("userFills", user=USER, at_ms=60_000).status == 200


def test_local_exchange_answers_without_a_key():
    service = tk.local(seed=7, size="tiny", default=False)
    exchange = tk.local(seed=7, size="tiny", like="exchange", default=False)
    assert exchange.world == service.world
    assert (exchange.api, exchange.key, exchange.budget.per_minute) == (EXCHANGE, None, None)
    user = exchange.world["users"][0]
    for fetch in (tk.user_fills_by_time, tk.user_funding, tk.user_non_funding_ledger_updates):
        theirs, ours = (fetch(user, 0, session=one) for one in (exchange, service))
        assert tk.provenance(theirs)["complete"] == "yes"
        assert len(theirs) == len(ours) > 0
        assert theirs.drop(columns="tx_index", errors="ignore").equals(
            ours.drop(columns="tx_index", errors="ignore")
        )
    pages = tk.provenance(tk.user_funding(user, 0, session=exchange))["pages"]
    assert pages >= 1_148 / 500
    again = exchange.recipe.make(**exchange.recipe.arguments, default=False)
    assert (again.api, again.world) == (EXCHANGE, exchange.world)
    for wrong in ({"like": "bank"}, {"like": "exchange", "key": "s3cret"}):
        with pytest.raises(ValueError, match=r"like|no key"):
            tk.local(seed=7, size="tiny", default=False, **wrong)
    with pytest.raises(ValueError, match="archive"):
        tk.local(archive="folder", like="exchange", default=False)


def test_tokens_of_the_service():
    with tk.local(seed=7, size="tiny", default=False) as session:
        user = session.world["users"][0]
        made = tk.plan(tk.user_fills, user, session=session)
        assert (made.points, made.tokens, made.usd) == (10, 1, 0.0006)
        plan = tk.plan(tk.batch_clearinghouse_states, [user], session=session)
        assert (plan.tokens, plan.usd) == (0.1, pytest.approx(0.00006))
        for _ in range(3):
            tk.user_fills(user, session=session)
        tk.batch_clearinghouse_states([user], session=session)
        usage = tk.frame("apiUsage", tk.info({"type": "apiUsage", "days": 1}, session=session))
    assert usage.set_index("request_type")["tokens_consumed"].to_dict() == {
        "apiUsage": 1.0,
        "batchClearinghouseStates": 0.1,
        "userFills": 3.0,
    }
    assert list(usage["total_requests"]) == [1, 1, 3]
