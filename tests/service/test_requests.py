"""Checks of requests, in their order: key, permission, points, body, parameters."""

import json

from hypothesis import given
from hypothesis import strategies as st

from tests.service.conftest import BEARER, Asker
from toolkit.contract.source_tables import Sources
from toolkit.service import AcceptedKey, KeyQuotas, build_store

USER = "0x" + "ab" * 20
META = b'{"type":"meta"}'
STATUSES = {200, 400, 401, 403, 404, 413, 429, 500, 501}


def test_key_in_unusual_headers(asker):
    for headers in (
        {"authorization": "bearer  s3cret"}, {"authorization": "Basic abc", "x-api-key": "s3cret"},
    ):  # fmt: skip
        assert asker.send(META, headers).status == 200
    got = asker.send(b"no json", {"x-api-key": "s3cret\udcff"})
    assert (got.status, got.content) == (401, b'{"error":"Invalid API key"}')


NO_JSON = [
    b"[" * 200_000,
    b'{"type":' * 10_000,
    b'{"type":"meta","dex":"\xff"}',
    b'{"type":"meta","dex":NaN}',
    b'{"type":"meta","dex":Infinity}',
    b'{"type":"meta","dex":1e400}',
    b'{"type":"meta","dex":' + b"9" * 5_000 + b"}",
    b'{"type":"meta","dex":"\\ud800"}',
    b"\xef\xbb\xbf" + META,
    '{"type":"meta"}'.encode("utf-16"),
    META + b" x",
]
FUNDING = {"type": "builderApprovedFundingByTime", "builder": USER}
INVALID = [
    *((body, "not valid JSON") for body in NO_JSON),
    (b"[]", "JSON object"),
    (b'{"type":"Meta"}', "Unknown type: Meta"),
    (b'{"type":"meta","dex":5}', "dex must be"),
    (FUNDING | {"cursor": "5_6"}, "Invalid cursor: 5_6"),
]


def test_invalid_request_is_400(asker):
    for request, named in INVALID:
        got = asker.send(request if isinstance(request, bytes) else json.dumps(request).encode())
        assert got.status == 400, (request, named)
        assert named in json.loads(got.content)["error"]


def test_points_are_checked_before_body(store, asker):
    poor = Asker(store, KeyQuotas([AcceptedKey("p", "s3cret", points_per_minute=2)]), asker.now_ms)
    assert poor.send(META).status == 200
    assert poor.send(b"no json").status == 429


def test_internal_fault_is_500(asker, caplog):
    broken = build_store(Sources(start_ms=0, now_ms=0, label="", simulated=False))
    broken.close()
    got = Asker(broken, asker.access, asker.now_ms).send(META)
    assert (got.status, got.content) == (500, b'{"error":"An internal error occurred"}')
    assert "closed" in caplog.text


@given(body=st.binary(max_size=200))
def test_any_bytes_get_specified_status(asker, body):
    assert asker.send(body).status in STATUSES


FIELDS = "user users builder startTime endTime cursor limit dex coin amount venue aggregateByTime "
FIELDS += "market_names collateral_tokens validator"
TYPES = "meta userFills userFillsByTime slippageHistory builderApprovedFundingByTime "
TYPES += "batchClearinghouseStates perpTwapSnapshots validatorAprHistory"
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@given(
    type=st.sampled_from(TYPES.split()),
    fields=st.dictionaries(
        st.sampled_from(FIELDS.split()),
        json_values | st.just(USER) | st.just([USER]) | st.just("1_2") | st.just(1000),
    ),
    headers=st.dictionaries(st.sampled_from(["authorization", "x-api-key"]), st.text()),
)
def test_any_request_gets_specified_status(asker, type, fields, headers):
    body = json.dumps({"type": type, **fields}).encode()
    for carried in (BEARER, headers):
        got = asker.send(body, carried)
        assert got.status in STATUSES - {500}
        if got.status != 200:
            assert list(json.loads(got.content)) == ["error"]
