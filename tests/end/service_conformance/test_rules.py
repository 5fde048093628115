"""What the service does, authentication, errors, limits."""

from typing import Any

import httpx
import pytest

from tests.end.service_conformance.asking import Client
from tests.end.service_conformance.fields import (
    NOBODY,
)
from toolkit.simulation import World

# --- What the service does --------------------------------------------------------------------


def test_general_1_the_operation_is_chosen_by_type(client: Client) -> None:
    assert "universe" in client.ask(type="meta")
    assert client.refuse()[0] == 400
    assert client.refuse(type="noSuchOperation")[0] == 400
    assert client.refuse(type=5)[0] == 400


def test_general_2_bodies_are_json_objects(client: Client) -> None:
    for body in (b"", b"{", b"[]", b"null", b'"meta"', b'{"type":"meta"', b"\xff\xfe"):
        got = client.http.post("/info", content=body)
        assert (got.status_code, list(got.json())) == (400, ["error"])


ADDRESS_FIELDS = [
    ("userFills", "user", {}),
    ("userFillsByTime", "user", {"startTime": 0}),
    ("builderApprovedFillsByTime", "builder", {"startTime": 0}),
    ("builderApprovedFundingByTime", "builder", {"startTime": 0}),
    ("builderOrdersByTime", "builder", {"startTime": 0}),
    ("historicalOrders", "user", {}),
    ("userNonFundingLedgerUpdates", "user", {"startTime": 0}),
    ("borrowLendUserState", "user", {}),
    ("delegations", "user", {}),
    ("validatorAprHistory", "validator", {}),
]


@pytest.mark.parametrize("wrong", ["0x12", NOBODY + "0", NOBODY[2:], "0x" + "g" * 40, ""])
@pytest.mark.parametrize(("type", "field", "others"), ADDRESS_FIELDS)
def test_general_4_an_address_is_0x_and_40_hex_digits(
    client: Client, type: str, field: str, others: dict[str, Any], wrong: str
) -> None:
    refused = client.refuse(type=type, **{field: wrong}, **others)
    assert refused == (400, f"Invalid Ethereum address: {wrong}")


@pytest.mark.parametrize(("type", "field", "others"), ADDRESS_FIELDS)
def test_general_4_an_address_is_required(
    client: Client, type: str, field: str, others: dict[str, Any]
) -> None:
    assert client.refuse(type=type, **others)[0] == 400


@pytest.mark.parametrize(("type", "field", "others"), ADDRESS_FIELDS)
def test_an_unknown_but_well_formed_address_gets_an_empty_answer(
    client: Client, type: str, field: str, others: dict[str, Any]
) -> None:
    got = client.ask(type=type, **{field: NOBODY}, **others)
    assert got == [] or got["tokenToState"] == []


# --- limits of pages --------------------------------------------------------------------------

LIMITED = [
    ("slippageHistory", {"coin": "BTC", "amount": 1000, "startTime": 0}, 2000),
    ("userFills", {"user": NOBODY}, 2000),
    ("userFillsByTime", {"user": NOBODY, "startTime": 0}, 2000),
    ("builderApprovedFillsByTime", {"builder": NOBODY, "startTime": 0}, 2000),
    ("builderApprovedFundingByTime", {"builder": NOBODY, "startTime": 0}, 2000),
    ("historicalOrders", {"user": NOBODY}, 2000),
    ("validatorAprHistory", {"validator": NOBODY}, 100),
]


@pytest.mark.parametrize(("type", "body", "most"), LIMITED)
def test_limits(client: Client, type: str, body: dict[str, Any], most: int) -> None:
    for good in (1, most, float(most)):
        assert isinstance(client.ask(type=type, limit=good, **body), list)
    for wrong in (0, -1, most + 1, 1.5, "5", True, [5], 1e300):
        assert client.refuse(type=type, limit=wrong, **body)[0] == 400


def test_default_page_sizes(client: Client, users: list[str], world: World, builder: str) -> None:
    assert len(client.ask(type="userFills", user=users[0])) == 2000
    assert len(client.ask(type="userFillsByTime", user=users[0], startTime=0)) == 2000
    ask = {"builder": builder, "startTime": 0}
    for type in ("builderApprovedFillsByTime", "builderApprovedFundingByTime"):
        assert len(client.ask(type=type, **ask)) <= 2000
    for validator in world.summary()["validators"]:
        every = client.ask(type="validatorAprHistory", validator=validator, limit=100)
        weeks = client.ask(type="validatorAprHistory", validator=validator)
        assert weeks == every[:12]


# --- Authentication, errors, limits -----------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer nope"}, 401),
        ({"X-API-Key": "nope"}, 401),
        ({"Authorization": "Bearer all"}, 200),
        ({"X-API-Key": "all"}, 200),
        ({"Authorization": "Bearer nope", "X-API-Key": "all"}, 401),
        ({"Authorization": "Bearer all", "X-API-Key": "nope"}, 200),
    ],
)
def test_authentication(base_url: str, headers: dict[str, str], status: int) -> None:
    got = httpx.post(f"{base_url}/info", json={"type": "meta"}, headers=headers)
    assert got.status_code == status
    if status == 401:
        assert got.json() == {"error": "Invalid API key"}
        unread = httpx.post(f"{base_url}/info", content=b"no json", headers=headers)
        assert unread.status_code == 401  # the key is looked at first


ADD_ONS = ["currentDepth", "accountValueSnapshotTimestamp", "accountValueSnapshots"]


@pytest.mark.parametrize("type", ADD_ONS)
def test_add_ons_need_permission(base_url: str, type: str) -> None:
    body = {"type": type, "collateral_tokens": ["ALL"]}
    for secret, allowed in (("plain", False), ("depth", type == "currentDepth"), ("all", True)):
        client = Client(base_url, secret)
        if allowed:
            assert client.post(**body).status_code == 200
        else:
            assert client.refuse(**body) == (403, "Permission denied")
        client.http.close()


@pytest.mark.parametrize(
    ("body", "points"),
    [
        ({"type": "currentDepth"}, 5),
        ({"type": "slippageHistory", "coin": "BTC", "amount": 1000, "startTime": 0}, 10),
        ({"type": "batchClearinghouseStates", "users": []}, 100),
        ({"type": "userFills", "user": NOBODY}, 10),
        ({"type": "builderApprovedFillsByTime", "builder": NOBODY, "startTime": 0}, 100),
        ({"type": "builderOrdersByTime", "builder": NOBODY, "startTime": 0}, 5),
    ],
)
def test_points(base_url: str, world: World, body: dict[str, Any], points: int) -> None:
    too_few = Client(base_url, f"poor{points - 1}")
    assert too_few.refuse(**body) == (429, "Rate limit exceeded")
    assert int(too_few.post(**body).headers["retry-after"]) in range(1, 61)
    too_few.http.close()


def test_bodies_over_a_mebibyte_are_refused(client: Client) -> None:
    got = client.http.post("/info", content=b'{"type":"meta"}' + b" " * 2**20)
    assert (got.status_code, list(got.json())) == (413, ["error"])


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_other_methods_are_refused(client: Client, method: str) -> None:
    got = client.http.request(method, "/info")
    assert (got.status_code, list(got.json())) == (405, ["error"])


@pytest.mark.parametrize("coding", ["gzip", "zstd", "identity"])
def test_json_is_compressed_for_those_who_accept_it(client: Client, coding: str) -> None:
    headers = {"Accept-Encoding": coding}
    got = client.http.post("/info", json={"type": "metaAndAssetCtxs"}, headers=headers)
    assert got.headers.get("content-encoding", "identity") == coding
    assert got.json() == client.ask(type="metaAndAssetCtxs")
