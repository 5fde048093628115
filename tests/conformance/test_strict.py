"""The switch between the specification and the additions of the live service."""

import json

import pytest

from tests.conformance import mini, shapes
from tests.conformance.conftest import GOOD
from tests.conformance.test_limits import BATCH, key_with_points
from toolkit.service import build_store

SPECIFIED = {("maxLeverage", "name"), ("withdrawable", "accountValue")}
"""A field that is beyond the specification in one object and specified in another, told by a
field beside it: `maxLeverage` of an asset (not of a position), `withdrawable` of a summary."""

BINARY = {"accountValueSnapshots", "perpTwapSnapshots"}
EXTRA = (
    *("spotMeta", "spotMetaAndAssetCtxs", "perpDexs", "allMids", "clearinghouseState"),
    *("spotClearinghouseState", "openOrders", "frontendOpenOrders", "orderStatus", "userFunding"),
    *("fundingHistory", "candleSnapshot", "userTwapSliceFills", "delegatorSummary"),
    *("delegatorHistory", "delegatorRewards", "userVaultEquities", "subAccounts", "userRole"),
    *("userFees", "userRateLimit", "portfolio", "exchangeStatus", "outcomeMeta", "extraAgents"),
    *("referral", "spotDeployState", "userAbstraction", "userDexAbstraction"),
    *("userToMultiSigSigners", "l2Book", "predictedFundings", "vaultDetails"),
    *("portfolioState", "userCompletedTradesByTime", "userPnlSummary"),
)


def objects(value):
    if isinstance(value, dict):
        yield value
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        yield from objects(part)


def beyond(value):
    """Return the fields of an answer beyond the specification."""
    return {
        name
        for item in objects(value)
        for name in item.keys() & shapes.BEYOND
        if not any(name == field and beside in item for field, beside in SPECIFIED)
    }


@pytest.fixture(scope="module")
def strict_hand_store():
    store = build_store(mini.sources(), strict=True)
    yield store
    store.close()


@pytest.fixture(scope="module")
def strict_hand(strict_hand_store, serve):
    return serve(strict_hand_store)


@pytest.fixture(scope="module")
def strict_tiny(world, serve):
    store = build_store(world.sources, strict=True)
    yield serve(store, world.sources.now_ms)
    store.close()


def test_strict__only_specified_fields(strict_hand, strict_tiny, tiny, traders):
    """The simulation has fields beyond the specification, unless it is strict."""
    for type in sorted(GOOD.keys() - BINARY):
        answers = [strict_hand.ask(type, **GOOD[type])]
        if "user" in GOOD[type]:
            answers += [strict_tiny.ask(type, **GOOD[type] | {"user": user}) for user in traders]
        assert beyond(answers) == set(), type
    named = {"collateralToken", "marginTables", "liquidation", "crossMaintenanceMarginUsed"}
    for caller, has_more in ((strict_tiny, False), (tiny, True)):
        found = beyond(
            [
                caller.ask("meta"),
                caller.ask("meta", dex="pre"),
                caller.ask(BATCH, users=traders),
                [caller.ask("userFills", user=user) for user in traders],
            ]
        )
        assert found >= named if has_more else found == set()


def test_strict__specified_answers_are_equal(hand, strict_hand):
    """The exchange written by hand has no field beyond the specification."""
    for type, fields in GOOD.items():
        body = {"type": type, **fields}
        assert strict_hand.post(body).content == hand.post(body).content, type


def test_strict__extra_operations_unknown(hand, strict_hand):
    for type in EXTRA:
        unknown = {"error": f"Unknown type: {type}"}
        got = strict_hand.post({"type": type})
        assert (got.status_code, json.loads(got.content)) == (400, unknown)
        assert json.loads(hand.post({"type": type}).content) != unknown


def test_strict__states_cost_100_points(strict_hand_store, keys_file, serve):
    """The specification has a fixed cost, for any number of users and dexes."""
    keys = keys_file(key_with_points("enough", 100) + key_with_points("short", 99))
    service = serve(strict_hand_store, keys=keys)
    body = {"type": BATCH, "users": [mini.ALICE] * 3, "dex": "ALL_DEXES"}
    assert service.using("short").post(body).status_code == 429
    assert service.using("enough").post(body).status_code == 200
    assert service.using("enough").post({"type": "meta"}).status_code == 429
