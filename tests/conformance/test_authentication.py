"""Specification, "Authentication"; clarifications, "Keys"."""

from tests.conformance.conftest import ADD_ONS, GOOD, read_error

META = {"type": "meta"}


def _statuses(caller, **headers):
    """Return the status of a request of each operation."""
    how = {"headers": headers} if headers else {}
    return {
        type: caller.post({"type": type, **fields}, **how).status_code
        for type, fields in GOOD.items()
    }


def test_authentication_2__x_api_key_is_accepted(hand):
    assert _statuses(hand, **{"X-API-Key": "full-secret"}) == dict.fromkeys(GOOD, 200)


def test_authentication_2__bearer_priority(hand):
    headers = {"Authorization": "Bearer full-secret", "X-API-Key": "wrong"}
    assert hand.post(META, headers=headers).status_code == 200
    headers = {"Authorization": "Bearer wrong", "X-API-Key": "full-secret"}
    assert hand.post(META, headers=headers).status_code == 401


def test_authentication_3__invalid_key_is_401(hand):
    """The key is checked before the body."""
    secrets = ["Bearer wrong", "Bearer", "full-secret", "Basic full-secret", "Bearer full-secret2"]
    wrong = [{"Authorization": value} for value in secrets]
    wrong += [{}, {"X-API-Key": "wrong"}, {"X-API-Key": ""}]
    bodies = (META, b"{", b"[]", b"no json", b'{"type":"nothing"}', b'{"type":"userFills"}')
    got = [
        (headers, body, read_error(hand.post(body, headers=headers)))
        for headers in wrong
        for body in bodies
    ]
    assert [row for row in got if row[2] != (401, "Invalid API key")] == []


def test_authentication_4__missing_add_on_is_403(hand):
    bare, depth = hand.using("bare-secret"), hand.using("depth-secret")
    wanted = {type: 403 if type in ADD_ONS else 200 for type in GOOD}
    assert _statuses(bare) == wanted
    assert _statuses(depth) == wanted | {"currentDepth": 200}
    for type in ADD_ONS:
        assert bare.refuse(type, **GOOD[type]) == (403, "Permission denied")
