"""Services that page wrongly: a pull says so, sends no request twice, and comes to an end."""

import inspect
import json

import httpx
import pytest

import toolkit as tk
from toolkit.client import open_session
from toolkit.times import DAY, HOUR

CUTS = {"builderOrdersByTime": 40, "userNonFundingLedgerUpdates": 3}  # rows of an answer


class Wrong:
    """A service in front of the simulated exchange that answers as `respond` says.

    `respond` gets a body, all bodies so far, and a function that returns the rows of a body.
    """

    def __init__(self, exchange, respond):
        self.exchange, self.respond, self.bodies = exchange, respond, []

    def rows(self, body):
        rows = self.exchange.client.post("/info", json=body).json()
        return rows[: CUTS.get(body["type"])]

    def __call__(self, request):
        body = json.loads(request.content)
        self.bodies.append(body)
        assert len(self.bodies) < 100, "the pull does not come to an end"
        return httpx.Response(200, json=self.respond(body, self.bodies, self.rows))

    def session(self):
        now_ms = self.exchange.now_ms
        return open_session(
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


def pull(name, exchange, respond, start=0, **options):
    """Return a service, and what a paged fetch function returns or raises for one subject."""
    world, service = exchange.world, Wrong(exchange, respond)
    subjects = {
        "user": world["users"][0],
        "builder": world["builders"][0],
        "coin": "BTC",
        "validator": world["validators"][0],
    }
    fetch = getattr(tk, name)
    parts = inspect.signature(fetch).parameters
    subject = next(value for part, value in subjects.items() if part in parts)
    options = PAGED[name] | options | {"start": start, "session": service.session()}
    try:
        return service, fetch(subject, **options)
    except (tk.Incomplete, tk.AnswerInvalid, tk.BadRequest) as error:
        return service, error


def whole(name, exchange):
    """Return the first request of a pull, and the times of all rows that answer it."""
    service, _ = pull(name, exchange, lambda body, bodies, rows: [])
    names = ("time", "statusTimestamp", "timestamp", "week")
    rows = service.rows(service.bodies[0])
    return [next(int(row[name]) for name in names if name in row) for row in rows]


def test_good_service_is_complete(exchange):
    for name in PAGED:
        service, frame = pull(name, exchange, lambda body, bodies, rows: rows(body))
        assert tk.provenance(frame)["complete"] == "yes"
        assert len(service.bodies) > 1, "the test needs several pages"
        sent = [json.dumps(body, sort_keys=True) for body in service.bodies]
        assert len(sent) == len(set(sent))


FAULTS = {
    "ignored cursor": lambda body, bodies, rows: rows(
        bodies[0] | {key: body[key] for key in ("limit",) if key in body}
    ),
    "first page twice": lambda body, bodies, rows: rows(bodies[0] if len(bodies) == 2 else body),
    "second page twice": lambda body, bodies, rows: rows(bodies[1] if len(bodies) == 3 else body),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_answer_to_another_request_is_found(fault, exchange):
    wrong = []
    for name in PAGED:
        service, error = pull(name, exchange, FAULTS[fault])
        requests = 3 if fault == "second page twice" else 2
        if "answered another request" not in str(error) or len(service.bodies) != requests:
            wrong.append((name, len(service.bodies), error))
    assert wrong == []


def test_rows_outside_of_range_are_refused(exchange):
    wrong = []
    for name in PAGED:
        times = whole(name, exchange)
        later = min(times) + (14 * DAY if name == "validator_apr_history" else HOUR)
        for named, respond, options in (
            (
                "requested start",
                lambda body, bodies, rows: rows(body | {"startTime": 0, "limit": 100}),
                {"start": later},
            ),
            (
                "requested end",
                lambda body, bodies, rows: rows({k: v for k, v in body.items() if k != "endTime"}),
                {"end": times[-1]},
            ),
        ):
            _, error = pull(name, exchange, respond, **options)
            if named not in str(error):
                wrong.append((name, named, error))
    assert wrong == []
