"""Requests beyond the specification: an upstream gets them, a strict service refuses them."""

import json

import httpx

import toolkit as tk
from tests.service.conftest import Asker, asker_of
from toolkit.contract.source_tables import Sources
from toolkit.local_service import simulated_store
from toolkit.service import AcceptedKey, KeyQuotas, Upstream, build_store

SOURCES = Sources(start_ms=0, now_ms=9_000, label="made by hand", simulated=True)


def upstream():
    def echo(request):
        return httpx.Response(200, json={"asked": json.loads(request.content)})

    return Upstream("http://upstream", transport=httpx.MockTransport(echo))


def test_upstream_gets_unknown_types():
    bodies = [{"type": "l4Book", "coin": "BTC"}, {"type": "allMids"}]
    for strict in (False, True):
        asker = asker_of(build_store(SOURCES, strict=strict))
        for body in [*bodies, {"type": "userFees", "user": "0x" + "0a" * 20}]:
            got = asker.send(json.dumps(body).encode(), upstream=upstream())
            if strict:
                assert got.status == 400
            else:
                assert (got.status, json.loads(got.content)) == (200, {"asked": body})


def test_upstream_requests_cost_points():
    access = KeyQuotas([AcceptedKey("poor", "s3cret", points_per_minute=5)])
    asker = Asker(build_store(SOURCES), access, SOURCES.now_ms)
    statuses = [asker.send(b'{"type":"l4Book"}', upstream=upstream()).status for _ in range(3)]
    assert statuses == [200, 200, 429]


def test_strict_local_service_has_own_store():
    with tk.local(seed=7, size="tiny", strict=True, default=False) as session:
        assert session.simulated
        fills = tk.user_fills(session.world["users"][0], session=session)
    assert fills["liquidated_user"].isna().all()
    strict, usual = (simulated_store(7, "tiny", strict=strict) for strict in (True, False))
    assert (strict.about["strict"], usual.about["strict"]) == (True, False)
    assert strict.about["world"]["digest"] == usual.about["world"]["digest"]
    strict.close()
    usual.close()
