"""Specification, "Authentication"; clarifications, "Keys"."""

import pytest

from tests.conformance.conftest import ADD_ONS, GOOD, read_error

BEARER = {"Authorization": "Bearer full-secret"}
META = {"type": "meta"}

by_operation = pytest.mark.parametrize("type", GOOD)


def test_authentication_1__bearer_is_accepted(hand):
    assert hand.post(META, headers=BEARER).status_code == 200


@by_operation
def test_authentication_2__x_api_key_is_accepted(hand, type):
    got = hand.post({"type": type, **GOOD[type]}, headers={"X-API-Key": "full-secret"})
    assert got.status_code == 200


@pytest.mark.parametrize(
    ("bearer", "x_api_key", "status"),
    [("full-secret", "wrong", 200), ("wrong", "full-secret", 401)],
)
def test_authentication_2__bearer_priority(hand, bearer, x_api_key, status):
    headers = {"Authorization": f"Bearer {bearer}", "X-API-Key": x_api_key}
    assert hand.post(META, headers=headers).status_code == status


NO_KEY = pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Bearer"},
        {"Authorization": "full-secret"},
        {"Authorization": "Basic full-secret"},
        {"Authorization": "Bearer full-secret2"},
        {"Authorization": "Bearer wrong", "X-API-Key": "full-secret"},
        {"X-API-Key": "wrong"},
        {"X-API-Key": ""},
    ],
    ids=str,
)


@NO_KEY
def test_authentication_3__invalid_key_is_401(hand, headers):
    assert read_error(hand.post(META, headers=headers)) == (401, "Invalid API key")


@NO_KEY
def test_authentication_3__key_before_body(hand, headers):
    for body in (b"{", b"[]", b"no json", b'{"type":"nothing"}', b'{"type":"userFills"}'):
        assert read_error(hand.post(body, headers=headers)) == (401, "Invalid API key")


@pytest.mark.parametrize("type", ADD_ONS)
def test_authentication_4__missing_add_on_is_403(hand, type):
    got = hand.using("bare-secret").refuse(type, **GOOD[type])
    assert got == (403, "Permission denied")


@pytest.mark.parametrize("type", sorted(GOOD.keys() - set(ADD_ONS)))
def test_general_6__others_need_no_add_on(hand, type):
    body = {"type": type, **GOOD[type]}
    assert hand.using("bare-secret").post(body).status_code == 200


@pytest.mark.parametrize(("type", "status"), list(zip(ADD_ONS, [200, 403, 403], strict=True)))
def test_authentication_4__each_add_on_separately(hand, type, status):
    body = {"type": type, **GOOD[type]}
    assert hand.using("depth-secret").post(body).status_code == status
