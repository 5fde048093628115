"""The switch between the specification and the additions of the live service."""

import json

import pytest

from tests.conformance import shapes
from tests.conformance.conftest import GOOD

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
    *("userToMultiSigSigners", "l2Book"),
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


@pytest.mark.parametrize("type_", sorted(GOOD.keys() - BINARY))
def test_strict__no_extra_fields(hand, tiny, traders, strict, type_):
    found = beyond(hand.ask(type_, **GOOD[type_]))
    if "user" in GOOD[type_]:
        for user in traders:
            found |= beyond(tiny.ask(type_, **{**GOOD[type_], "user": user}))
    assert not strict or found == set()


@pytest.mark.parametrize("type_", EXTRA)
def test_strict__extra_operations_unknown(hand, strict, type_):
    got = hand.post({"type": type_})
    unknown = json.loads(got.content) == {"error": f"Unknown type: {type_}"}
    assert (got.status_code == 400 and unknown) == strict


def test_strict__only_specified_fields_in_tables(tiny, traders, strict):
    """The simulation has fields beyond the specification, unless it is strict."""
    found = beyond(
        [
            tiny.ask("meta"),
            tiny.ask("meta", dex="pre"),
            tiny.ask("batchClearinghouseStates", users=traders),
            [tiny.ask("userFills", user=user) for user in traders],
        ]
    )
    named = {"collateralToken", "marginTables", "liquidation", "crossMaintenanceMarginUsed"}
    assert found >= named if not strict else found == set()
