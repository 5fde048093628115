"""Specification, "Limits"; clarifications, "Costs and quotas" and "limit"."""

import pytest

from tests.agreement.test_operations import POINTS_KNOWN
from tests.conformance import mini
from tests.conformance.conftest import GOOD, read_error

BATCH = "batchClearinghouseStates"
POINTS = {"currentDepth": 5, "slippageHistory": 10, **POINTS_KNOWN}


def _many(count):
    return [f"0x{i:040x}" for i in range(count)]


COSTS = [
    *(({"type": type, **GOOD[type]}, POINTS.get(type, 2)) for type in GOOD),
    # 2 points a user, at most 100, times the 2 dexes; docs/live_service.md, section 8
    ({"type": BATCH, "users": _many(3)}, 6),
    ({"type": BATCH, "users": _many(50)}, 100),
    ({"type": BATCH, "users": _many(1000), "dex": "eqx"}, 100),
    ({"type": BATCH, "users": _many(3), "dex": "ALL_DEXES"}, 12),
    ({"type": BATCH, "users": _many(60), "dex": "ALL_DEXES"}, 200),
]


def key_with_points(secret, points):
    """Return the lines of a keys file for a key with a quota."""
    return (
        f'[[key]]\nname = "{secret}"\nsecret = "{secret}"\n'
        f'add_ons = "all"\npoints_per_minute = {points}\n'
    )


@pytest.fixture(scope="module")
def poor(hand_store, keys_file, serve):
    """A service with two keys per cost: one with enough points, one with a point less."""
    keys = [("thrifty", 25), ("other", 25)]
    for number, (_, cost) in enumerate(COSTS):
        keys += [(f"enough-{number}", cost), (f"short-{number}", cost - 1)]
    return serve(hand_store, keys=keys_file("".join(key_with_points(*key) for key in keys)))


def test_limits__points_per_request(poor):
    for number, (body, _) in enumerate(COSTS):
        got = poor.using(f"short-{number}").post(body)
        assert read_error(got) == (429, "Rate limit exceeded"), body
        assert got.headers["retry-after"] == "30"
        assert poor.using(f"enough-{number}").post(body).status_code == 200, body
        assert poor.using(f"enough-{number}").post({"type": "meta"}).status_code == 429, body


def test_limits__quota_per_key(poor):
    body = {"type": "userFills", "user": mini.ALICE}
    assert [poor.using("thrifty").post(body).status_code for _ in range(3)] == [200, 200, 429]
    assert poor.using("other").post(body).status_code == 200


LIMITED = [
    ("userFills", {"user": mini.ERIN}, 2000, 2000),
    ("userFillsByTime", {"user": mini.ERIN}, 2000, 2000),
    ("builderApprovedFillsByTime", {"builder": mini.B2}, 2000, 2000),
    ("builderApprovedFundingByTime", {}, 2000, 2000),
    ("historicalOrders", {"user": mini.CAROL}, 2000, 2000),
    ("slippageHistory", {}, 2000, 500),
    ("validatorAprHistory", {}, 100, 12),
]


@pytest.mark.parametrize(("type", "fields", "most", "default"), LIMITED)
def test_limits__page_sizes(hand, type, fields, most, default):
    fields = GOOD[type] | fields
    for wrong in (0, -1, most + 1, 10**15, 1e300, 1.5, "5", True, [5]):
        assert hand.refuse(type, **fields, limit=wrong)[0] == 400, wrong
    rows = hand.ask(type, **fields)
    assert len(rows) == default
    assert hand.ask(type, **fields, limit=default) == rows
    assert len(hand.ask(type, **fields, limit=1)) == 1
    for largest in (most, float(most)):
        assert len(hand.ask(type, **fields, limit=largest)) == most


def test_limits__too_many_users_are_400(hand):
    table = [
        ("", 1000, 200),
        ("", 1001, 400),
        ("eqx", 1001, 400),
        ("ALL_DEXES", 100, 200),
        ("ALL_DEXES", 101, 400),
        ("eqx", 101, 200),
    ]
    for dex, count, status in table:
        assert hand.post({"type": BATCH, "users": _many(count), "dex": dex}).status_code == status
