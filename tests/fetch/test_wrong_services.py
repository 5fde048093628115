"""Services that page wrongly: a pull says so, sends no request twice, and comes to an end."""

import inspect
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

import toolkit as tk
from toolkit.client import connect
from toolkit.times import DAY, HOUR

CUTS = {"builderOrdersByTime": 40, "userNonFundingLedgerUpdates": 3}  # rows of an answer
Body = dict[str, Any]
Rows = list[dict[str, Any]]
Respond = Callable[[Body, Callable[[Body], Rows]], Rows]


class Wrong:
    """A service in front of the simulated exchange that answers as `respond` says."""

    def __init__(self, exchange, respond):
        self.exchange, self.respond = exchange, respond
        self.bodies: list[Body] = []

    def rows(self, body):
        rows: Rows = self.exchange.client.post("/info", json=body).json()
        return rows[: CUTS.get(body["type"])]

    def __call__(self, request):
        body = json.loads(request.content)
        self.bodies.append(body)
        assert len(self.bodies) < 100, "the pull does not come to an end"
        return httpx.Response(200, json=self.respond(body, self.rows))

    def session(self):
        now_ms = self.exchange.now_ms
        return connect(
            "http://service.test",
            transport=httpx.MockTransport(self),
            simulated=True,
            now_ms=now_ms,
            default=False,
        )


@pytest.fixture(scope="module", params=["exclusive", "inclusive"])
def exchange(request):
    return tk.local(seed=7, size="tiny", cursors=request.param, default=False)


PAGED = {
    "user_fills_by_time": {"page_size": 40},
    "builder_approved_fills_by_time": {"page_size": 40},
    "builder_approved_funding_by_time": {"page_size": 40},
    "builder_orders_by_time": {},
    "user_non_funding_ledger_updates": {},
    "slippage_history": {"amount": 1_000, "page_size": 40},
    "validator_apr_history": {"page_size": 2},
}
EVERY = pytest.mark.parametrize("name", PAGED)


def pull(name, wrong, start=0, **options):
    """Call a paged fetch function for its first subject in the simulated exchange."""
    world = wrong.exchange.world
    subjects = {
        "user": world["users"][0],
        "builder": world["builders"][0],
        "coin": "BTC",
        "validator": world["validators"][0],
    }
    fetch = getattr(tk, name)
    subject = next(subjects[part] for part in subjects if f"{part}: str" in signature(fetch))
    return fetch(subject, **PAGED[name], start=start, session=wrong.session(), **options)


def signature(fetch):
    return str(inspect.signature(fetch))


@EVERY
def test_good_service_is_complete(name, exchange):
    wrong = Wrong(exchange, lambda body, ask: ask(body))
    frame = pull(name, wrong)
    assert tk.provenance(frame)["complete"] == "yes"
    assert len(wrong.bodies) > 1, "the test needs several pages"
    sent = [json.dumps(body, sort_keys=True) for body in wrong.bodies]
    assert len(sent) == len(set(sent))


@EVERY
def test_ignored_cursor_is_found(name, exchange):
    def respond(body, ask):
        return ask(
            wrong.bodies[0] | {"limit": body["limit"]} if "limit" in body else wrong.bodies[0]
        )

    wrong = Wrong(exchange, respond)
    with pytest.raises((tk.Incomplete, tk.AnswerInvalid), match="answered another request"):
        pull(name, wrong)
    assert len(wrong.bodies) == 2


@EVERY
@pytest.mark.parametrize("page", [1, 2])
def test_page_sent_twice_is_found(name, page, exchange):
    def respond(body, ask):
        return ask(wrong.bodies[page - 1] if len(wrong.bodies) == page + 1 else body)

    wrong = Wrong(exchange, respond)
    with pytest.raises((tk.Incomplete, tk.AnswerInvalid), match="answered another request"):
        pull(name, wrong)


@EVERY
def test_rows_before_start_are_refused(name, exchange):
    earliest = min(
        map(first_time, Wrong(exchange, lambda body, ask: []).rows(first_body(name, exchange)))
    )
    later = earliest + (14 * DAY if name == "validator_apr_history" else HOUR)
    wrong = Wrong(exchange, lambda body, ask: ask(body | {"startTime": 0, "limit": 100}))
    with pytest.raises(tk.AnswerInvalid, match="before the requested start"):
        pull(name, wrong, later)


@EVERY
def test_rows_after_end_are_refused(name, exchange):
    wrong = Wrong(
        exchange, lambda body, ask: ask({k: v for k, v in body.items() if k != "endTime"})
    )
    with pytest.raises((tk.Incomplete, tk.AnswerInvalid), match="after the requested end"):
        pull(name, wrong, 0, end=first_time(wrong.rows(first_body(name, exchange))[-1]))


def first_body(name, exchange):
    """Return the body of the first request of a pull."""
    wrong = Wrong(exchange, lambda body, ask: [])
    pull(name, wrong)
    return wrong.bodies[0]


def first_time(row):
    times = ("time", "statusTimestamp", "timestamp", "week")
    return next(int(row[name]) for name in times if name in row)
