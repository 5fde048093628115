"""The strict service: the specification and its 22 operations, and nothing else."""

import json

import httpx
import pytest
from msgspec import UNSET
from msgspec.structs import replace

import toolkit as tk
from tests.service.conftest import Asker
from toolkit.contract import records as r
from toolkit.contract.extra_operations import EXTRA_OPERATIONS
from toolkit.contract.source_tables import Sources
from toolkit.local_service import simulated_store
from toolkit.service import AcceptedKey, KeyQuotas, Upstream, build_store

USER = "0x" + "0a" * 20
FILL = r.Fill(
    coin="BTC",
    px="100",
    sz="2",
    side="A",
    time=5_000,
    start_position="2",
    dir="Close Long",
    closed_pnl="-7",
    hash="0x01",
    oid=9,
    crossed=True,
    fee="0.1",
    tid=3,
    fee_token="USDC",
    twap_id=None,
    tx_index=4,
    liquidation=r.Liquidation(liquidated_user=USER, mark_px="99", method="market"),
)
META = r.Meta(
    universe=[
        r.PerpAsset(
            name="BTC", sz_decimals=5, max_leverage=40, only_isolated=False, growth_mode="enabled"
        )
    ],
    collateral_token=235,
)
SOURCES = Sources(
    start_ms=0,
    now_ms=9_000,
    label="made by hand",
    simulated=True,
    fills=[(USER, FILL)],
    metas={"": META},
)


@pytest.fixture(params=[True, False], ids=["strict", "as live"])
def both(request):
    store = build_store(SOURCES, strict=request.param)
    yield request.param, Asker(store, KeyQuotas([AcceptedKey("all", "s3cret")]), SOURCES.now_ms)
    store.close()


def test_strict_service_omits_unspecified_fields(both):
    strict, asker = both
    [fill] = asker.ask("userFills", user=USER)
    assert ("liquidation" in fill) != strict
    assert fill["closedPnl"] == "-7"
    meta = asker.ask("meta")
    assert ("collateralToken" in meta) != strict
    assert ("growthMode" in meta["universe"][0]) != strict
    assert meta["universe"][0]["maxLeverage"] == 40


@pytest.mark.parametrize("type_", EXTRA_OPERATIONS)
def test_strict_service_refuses_unspecified_operations(both, type_):
    strict, asker = both
    got = asker.send(json.dumps({"type": type_}).encode())
    unknown = json.loads(got.content) == {"error": f"Unknown type: {type_}"}
    assert (got.status == 400 and unknown) == strict


def test_unknown_types_are_400_in_both(both):
    assert both[1].refuse("l4Book") == (400, "Unknown type: l4Book")


def upstream():
    def echo(request):
        return httpx.Response(200, json={"asked": json.loads(request.content)})

    return Upstream("http://upstream", transport=httpx.MockTransport(echo))


@pytest.mark.parametrize(
    "body",
    [{"type": "l4Book", "coin": "BTC"}, {"type": "allMids"}, {"type": "userFees", "user": USER}],
)
def test_upstream_gets_unknown_types(both, body):
    strict, asker = both
    got = asker.send(json.dumps(body).encode(), upstream=upstream())
    if strict:
        assert got.status == 400
    else:
        assert (got.status, json.loads(got.content)) == (200, {"asked": body})


def test_upstream_requests_cost_points():
    store = build_store(SOURCES)
    access = KeyQuotas([AcceptedKey("poor", "s3cret", points_per_minute=5)])
    asker = Asker(store, access, SOURCES.now_ms)
    body = b'{"type":"l4Book"}'
    statuses = [asker.send(body, upstream=upstream()).status for _ in range(3)]
    assert statuses == [200, 200, 429]
    store.close()


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


def test_strict_service_keeps_specified_fields():
    bare = Sources(
        start_ms=0,
        now_ms=9_000,
        label="made by hand",
        simulated=True,
        fills=[(USER, replace(FILL, liquidation=UNSET))],
    )
    texts = []
    for strict in (True, False):
        store = build_store(bare, strict=strict)
        asker = Asker(store, KeyQuotas([AcceptedKey("all", "s3cret")]), 9_000)
        texts.append(asker.ask("userFills", user=USER))
        store.close()
    assert texts[0] == texts[1]
