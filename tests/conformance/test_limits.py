"""Specification, "Limits"; clarifications, "Costs and quotas" and "limit"."""

import pytest

from tests.conformance import mini
from tests.conformance.conftest import GOOD, Caller, application, read_error
from toolkit.service.http import run_server

POINTS = {
    "currentDepth": 5,
    "slippageHistory": 10,
    "batchClearinghouseStates": 2,  # a user; docs/live_service.md, section 8
    "userFills": 10,
    "userFillsByTime": 10,
    "historicalOrders": 10,
    "userNonFundingLedgerUpdates": 10,
    "builderOrdersByTime": 5,
    "builderApprovedFillsByTime": 100,
    "builderApprovedFundingByTime": 100,
}
COSTS = {type: POINTS.get(type, 2) for type in GOOD}


def _key(secret, points):
    return (
        f'[[key]]\nname = "{secret}"\nsecret = "{secret}"\n'
        f'add_ons = "all"\npoints_per_minute = {points}\n'
    )


@pytest.fixture(scope="module")
def poor(hand_store, keys_file, client, strict):
    """A service with two keys per operation: one with enough points, one with a point less."""
    # The specification has fixed points; those of the live service depend on the number of users.
    costs = COSTS | ({"batchClearinghouseStates": 100} if strict else {})
    text = "".join(
        _key(f"enough-{type}", cost) + _key(f"short-{type}", cost - 1)
        for type, cost in costs.items()
    )
    text += _key("thrifty", 25) + _key("other", 25)
    with run_server(application(hand_store, keys_file(text), mini.NOW, at_ms=30_000)) as address:
        yield Caller(client, address)


STATES = [
    (3, "", 6),
    (50, "", 100),
    (1000, "eqx", 100),
    (3, "ALL_DEXES", 12),
    (60, "ALL_DEXES", 200),
]


@pytest.fixture(scope="module")
def quotas(hand_store, keys_file, client, strict):
    """A service with two keys per case of `STATES`: enough points, and a point less."""
    text = "".join(
        _key(f"enough-{users}{dex}", 100 if strict else cost)
        + _key(f"short-{users}{dex}", (100 if strict else cost) - 1)
        for users, dex, cost in STATES
    )
    with run_server(application(hand_store, keys_file(text), mini.NOW, at_ms=30_000)) as address:
        yield Caller(client, address)


@pytest.mark.parametrize(("users", "dex"), [state[:2] for state in STATES])
def test_limits__points_by_users_and_dexes(quotas, users, dex):
    """2 points a user, at most 100, times the 2 dexes: docs/live_service.md, section 8.

    The strict service always charges 100 points, as the specification says.
    """
    body = {"type": "batchClearinghouseStates", "users": _many(users), "dex": dex}
    assert quotas.using(f"short-{users}{dex}").post(body).status_code == 429
    assert quotas.using(f"enough-{users}{dex}").post(body).status_code == 200
    assert quotas.using(f"enough-{users}{dex}").post({"type": "meta"}).status_code == 429


@pytest.mark.parametrize("type", COSTS)
def test_limits__points_per_request(poor, type):
    body = {"type": type, **GOOD[type]}
    got = poor.using(f"short-{type}").post(body)
    assert read_error(got) == (429, "Rate limit exceeded")
    assert got.headers["retry-after"] == "30"
    assert poor.using(f"enough-{type}").post(body).status_code == 200
    assert poor.using(f"enough-{type}").post({"type": "meta"}).status_code == 429


def test_errors__429_has_retry_after(poor):
    key = poor.using("thrifty")
    assert len(key.ask("userFills", user=mini.ALICE)) == len(mini.ALICES)
    assert key.post({"type": "userFills", "user": mini.ALICE}).status_code == 200
    got = key.post({"type": "userFills", "user": mini.ALICE})
    assert read_error(got) == (429, "Rate limit exceeded")
    assert got.headers["retry-after"] == "30"


def test_limits__quota_per_key(poor):
    while poor.using("other").post({"type": "meta"}).status_code == 200:
        pass
    assert poor.using("other").refuse("meta")[0] == 429
    assert poor.post({"type": "meta"}, headers={"X-API-Key": "enough-meta"}).status_code != 401


LIMITED: list[tuple[str, int]] = [
    ("userFills", 2000),
    ("userFillsByTime", 2000),
    ("builderApprovedFillsByTime", 2000),
    ("builderApprovedFundingByTime", 2000),
    ("historicalOrders", 2000),
    ("slippageHistory", 2000),
    ("validatorAprHistory", 100),
]


@pytest.mark.parametrize(("type", "most"), LIMITED)
def test_limits__limit_out_of_range_is_400(hand, type, most):
    for wrong in (0, -1, most + 1, 10**15, 1e300, 1.5, "5", True, [5]):
        assert hand.refuse(type, **GOOD[type], limit=wrong)[0] == 400, wrong


@pytest.mark.parametrize(("type", "most"), LIMITED)
def test_limits__smallest_and_largest_limit_are_accepted(hand, type, most):
    assert len(hand.ask(type, **GOOD[type], limit=1)) == 1
    rows = hand.ask(type, **GOOD[type], limit=most)
    assert len(rows) <= most
    assert hand.ask(type, **GOOD[type], limit=float(most)) == rows


@pytest.mark.parametrize(
    ("type", "fields", "page"),
    [
        ("userFills", {"user": mini.ERIN}, 2000),
        ("userFillsByTime", {"user": mini.ERIN, "startTime": 0}, 2000),
        ("builderApprovedFillsByTime", {"builder": mini.B2, "startTime": 0}, 2000),
        ("builderApprovedFundingByTime", {"builder": mini.B1, "startTime": 0}, 2000),
        ("historicalOrders", {"user": mini.CAROL}, 2000),
        ("slippageHistory", {"coin": "BTC", "amount": 1000, "startTime": 0}, 500),
        ("validatorAprHistory", {"validator": mini.V1}, 12),
    ],
)
def test_limits__default_page_size(hand, type, fields, page):
    rows = hand.ask(type, **fields)
    assert len(rows) == page
    most = dict(LIMITED)[type]
    assert len(hand.ask(type, **fields, limit=most)) == most
    assert hand.ask(type, **fields, limit=page) == rows


def _many(count):
    return [f"0x{i:040x}" for i in range(count)]


@pytest.mark.parametrize(
    ("dex", "count", "status"),
    [
        ("", 1000, 200),
        ("", 1001, 400),
        ("eqx", 1001, 400),
        ("ALL_DEXES", 100, 200),
        ("ALL_DEXES", 101, 400),
        ("eqx", 101, 200),
    ],
)
def test_limits__too_many_users_are_400(hand, dex, count, status):
    body = {"type": "batchClearinghouseStates", "users": _many(count), "dex": dex}
    assert hand.post(body).status_code == status
