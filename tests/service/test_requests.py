import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.service.conftest import BEARER, Asker
from toolkit.service import AcceptedKey, KeyQuotas

USER = "0x" + "ab" * 20
STATUSES = {200, 400, 401, 403, 404, 413, 429, 500, 501}


def test_key_is_checked_before_body(asker):
    for headers in (
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "Bearer "},
        {"authorization": "s3cret"},
        {"x-api-key": ""},
        {"x-api-key": "s3cret\udcff"},
        {"authorization": "Bearer wrong", "x-api-key": "s3cret"},
    ):
        got = asker.send(b"no json", headers)
        assert (got.status, got.content) == (401, b'{"error":"Invalid API key"}')


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": "Bearer s3cret"},
        {"authorization": "bearer  s3cret"},
        {"x-api-key": "s3cret"},
        {"authorization": "Bearer s3cret", "x-api-key": "wrong"},
        {"authorization": "Basic abc", "x-api-key": "s3cret"},
    ],
)
def test_key_is_accepted_in_each_header(asker, headers):
    assert asker.send(b'{"type":"meta"}', headers).status == 200


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[" * 200_000,
        b'{"type":' * 10_000,
        b'{"type":"meta","dex":"\xff"}',
        b'{"type":"meta","dex":NaN}',
        b'{"type":"meta","dex":Infinity}',
        b'{"type":"meta","dex":1e400}',
        b'{"type":"meta","dex":' + b"9" * 5_000 + b"}",
        b'{"type":"meta","type":"meta"}',
        b'{"type":"meta","dex":{"a":1,"a":2}}',
        b'{"type":"meta","dex":"\\ud800"}',
        b'\xef\xbb\xbf{"type":"meta"}',
        '{"type":"meta"}'.encode("utf-16"),
        b'{"type":"meta"} x',
    ],
)
def test_invalid_json_is_400(asker, body):
    got = asker.send(body)
    assert (got.status, got.content) == (400, b'{"error":"Request body is not valid JSON"}')


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"[]", "Request body must be a JSON object"),
        (b"null", "Request body must be a JSON object"),
        (b'"meta"', "Request body must be a JSON object"),
        (b"{}", "type parameter is required"),
        (b'{"type":null}', "type parameter is required"),
        (b'{"type":5}', "type must be a string"),
        (b'{"type":"Meta"}', "Unknown type: Meta"),
        (b'{"type":"meta","dex":5}', "dex must be a string"),
    ],
)
def test_invalid_request_is_400(asker, body, message):
    got = asker.send(body)
    assert (got.status, json.loads(got.content)) == (400, {"error": message})


def test_too_large_body_is_413(asker):
    body = b'{"type":"meta"}'
    assert asker.send(body + b" " * (2**20 - len(body))).status == 200
    got = asker.send(body + b" " * (2**20 - len(body) + 1))
    assert (got.status, got.content) == (413, b'{"error":"Request body is too large"}')


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"type": "userFills"}, "user parameter is required"),
        ({"type": "userFills", "user": "0x12"}, "Invalid Ethereum address: 0x12"),
        ({"type": "userFills", "user": USER, "limit": 2001}, "limit must be from 1 to 2000"),
        ({"type": "userFills", "user": USER, "limit": 0}, "limit must be from 1 to 2000"),
        ({"type": "userFills", "user": USER, "limit": True}, "limit must be a whole number"),
        ({"type": "userFills", "user": USER, "builder": ""}, "Invalid Ethereum address: "),
        ({"type": "userFills", "user": USER, "builder": 5}, "Invalid Ethereum address: 5"),
        ({"type": "slippageHistory"}, "coin parameter is required"),
        (
            {"type": "slippageHistory", "coin": "BTC"},
            "amount parameter is required (positive USD notional)",
        ),
        (
            {"type": "slippageHistory", "coin": "BTC", "amount": 1000},
            "startTime parameter is required",
        ),
        (
            {"type": "userFillsByTime", "user": USER, "cursor": "12"},
            "Invalid cursor: 12",
        ),
        (
            {"type": "userFillsByTime", "user": USER, "startTime": 1.5},
            "startTime must be a whole number of Unix milliseconds",
        ),
        (
            {"type": "userFillsByTime", "user": USER, "startTime": 0, "venue": "x1"},
            "venue must be 2 to 4 letters",
        ),
        (
            {"type": "builderApprovedFundingByTime", "builder": USER, "cursor": "5_6"},
            "Invalid cursor: 5_6",
        ),
    ],
)
def test_bad_parameter_is_named(asker, fields, message):
    assert asker.refuse(**fields) == (400, message)


def test_add_on_needs_permission(store, asker):
    access = KeyQuotas(
        [AcceptedKey("plain", "s3cret", add_ons=frozenset({"accountValueSnapshots"}))]
    )
    plain = Asker(store, access, asker.now_ms)
    assert plain.refuse("currentDepth") == (403, "Permission denied")
    assert plain.refuse("accountValueSnapshotTimestamp") == (403, "Permission denied")
    assert plain.refuse("accountValueSnapshots") == (
        400,
        "collateral_tokens parameter is required",
    )
    assert plain.ask("meta")["universe"]


def test_points_renew_every_minute(store, asker):
    access = KeyQuotas(
        [AcceptedKey("poor", "s3cret", points_per_minute=25), AcceptedKey("other", "two")]
    )
    poor = Asker(store, access, asker.now_ms)
    fills = json.dumps({"type": "userFills", "user": USER}).encode()
    statuses = [poor.send(fills, at_ms=61_500).status for _ in range(3)]
    assert statuses == [200, 200, 429]
    refused = poor.send(fills, at_ms=61_500)
    assert refused.content == b'{"error":"Rate limit exceeded"}'
    assert refused.headers["retry-after"] == "59"
    assert poor.send(b'{"type":"meta"}', at_ms=61_500).status == 200
    assert poor.send(fills, {"x-api-key": "two"}, at_ms=61_500).status == 200
    assert poor.send(fills, at_ms=120_000).status == 200


def test_points_are_checked_before_body(store, asker):
    poor = Asker(store, KeyQuotas([AcceptedKey("p", "s3cret", points_per_minute=2)]), asker.now_ms)
    assert poor.send(b'{"type":"meta"}').status == 200
    assert poor.send(b"no json").status == 429


def test_internal_fault_is_500(asker, world, caplog):
    from toolkit.service import build_store

    broken = build_store(world.sources)
    broken.close()
    got = Asker(broken, asker.access, asker.now_ms).send(b'{"type":"meta"}')
    assert (got.status, got.content) == (500, b'{"error":"An internal error occurred"}')
    assert "the store is closed" in caplog.text


def test_repr_hides_secrets():
    assert "s3cret" not in repr(AcceptedKey("mine", "s3cret"))
    assert "s3cret" not in repr(KeyQuotas([AcceptedKey("mine", "s3cret")]))


@given(body=st.binary(max_size=200))
def test_any_bytes_get_specified_status(asker_once, body):
    assert asker_once.send(body).status in STATUSES


FIELDS = [
    "user",
    "users",
    "builder",
    "startTime",
    "endTime",
    "cursor",
    "limit",
    "dex",
    "coin",
    "amount",
    "venue",
    "aggregateByTime",
    "market_names",
    "collateral_tokens",
    "validator",
]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@given(
    type=st.sampled_from(
        [
            "meta",
            "userFills",
            "userFillsByTime",
            "slippageHistory",
            "builderApprovedFundingByTime",
            "batchClearinghouseStates",
            "perpTwapSnapshots",
            "validatorAprHistory",
        ]
    ),
    fields=st.dictionaries(
        st.sampled_from(FIELDS),
        json_values | st.just(USER) | st.just([USER]) | st.just("1_2") | st.just(1000),
    ),
    headers=st.dictionaries(st.sampled_from(["authorization", "x-api-key"]), st.text()),
)
def test_any_request_gets_specified_status(asker_once, type, fields, headers):
    body = json.dumps({"type": type, **fields}).encode()
    for carried in (BEARER, headers):
        got = asker_once.send(body, carried)
        assert got.status in STATUSES - {500}
        if got.status != 200:
            assert list(json.loads(got.content)) == ["error"]
