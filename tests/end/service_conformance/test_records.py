"""Resources and their fields."""

import itertools

import pytest

from tests.end.service_conformance.asking import Client
from tests.end.service_conformance.fields import (
    APPROVED_FILL,
    ASSET,
    AUCTION,
    BUILDER_STATUS,
    CONTEXT,
    DAY,
    DELEGATION,
    DEPTH,
    FUNDING,
    FUNDING_DELTA,
    LATEST_FILL,
    LEDGER,
    LEVEL,
    LIMITS,
    LOAN,
    MARGIN,
    MARKET,
    METADATA,
    NOBODY,
    ORDER,
    POSITION,
    TIMED_FILL,
    USER_STATUS,
    WEEK,
    conforms,
    decimal,
    integer,
    string,
)
from toolkit.simulation import World

# --- Resources and their fields ---------------------------------------------------------------


def test_fill_record_of_user_fills(client: Client, users: list[str]) -> None:
    for user in users:
        conforms(client.ask(type="userFills", user=user), LATEST_FILL)


def test_fill_record_of_user_fills_by_time(client: Client, users: list[str]) -> None:
    venues = set()
    for user in users:
        rows = client.ask(type="userFillsByTime", user=user, startTime=0)
        conforms(rows, TIMED_FILL)
        for row in rows:
            if "venue" in row:
                assert row["coin"].startswith("#")
                venues.add(row["venue"])
    assert venues


def test_fill_record_of_builder_approved_fills(client: Client, builder: str) -> None:
    rows = client.ask(type="builderApprovedFillsByTime", builder=builder, startTime=0)
    conforms(rows, APPROVED_FILL)
    assert {row["builder"] for row in rows} >= {None}


def test_order_status_record(client: Client, users: list[str], builder: str) -> None:
    mine = [row for u in users for row in client.ask(type="historicalOrders", user=u)]
    conforms(mine, USER_STATUS)
    routed = client.ask(type="builderOrdersByTime", builder=builder, startTime=0)
    conforms(routed, BUILDER_STATUS)
    orders = [row["order"] for row in (*mine, *routed)]
    conforms(orders, ORDER)
    children = [child for order in orders for child in order["children"]]
    conforms(children, ORDER)


def test_funding_row(client: Client, builder: str) -> None:
    rows = client.ask(type="builderApprovedFundingByTime", builder=builder, startTime=0)
    conforms(rows, FUNDING)
    conforms([row["delta"] for row in rows], FUNDING_DELTA)
    assert all(row["time"] % 3_600_000 == 0 for row in rows)


@pytest.mark.parametrize("kind", ["spotPair", "perp"])
def test_deploy_auction_status(client: Client, kind: str) -> None:
    got = client.ask(type=f"{kind}DeployAuctionStatus")
    conforms([got], AUCTION)
    if kind == "spotPair":
        assert got["currentGas"] is not None
    else:
        assert (got["currentGas"] is None) == (got["endGas"] is not None)


def test_depth_response(client: Client, world: World) -> None:
    got = client.ask(type="currentDepth")
    conforms([got], DEPTH)
    conforms(got["data"], MARKET)
    for market in got["data"]:
        conforms(market["levels"], LEVEL)
        assert [level["bps"] for level in market["levels"]] == [10, 25, 50, 100, 200, 500]
        for side in ("bidDepthUsd", "askDepthUsd"):
            depths = [level[side] for level in market["levels"]]
            assert depths == sorted(depths)
    assert 0 <= world.sources.now_ms - got["timestampMs"] <= 1000
    dexes = [market["dex"] for market in got["data"]]
    assert [dex for dex, _ in itertools.groupby(dexes)] == list(dict.fromkeys(dexes))


def test_meta(client: Client) -> None:
    for dex in ("", "eqx", "pre"):
        conforms(client.ask(type="meta", dex=dex)["universe"], ASSET)


def test_meta_and_asset_ctxs(client: Client) -> None:
    for dex in ("", "eqx", "pre"):
        meta, contexts = client.ask(type="metaAndAssetCtxs", dex=dex)
        conforms(meta["universe"], ASSET)
        conforms(contexts, CONTEXT)
        assert len(meta["universe"]) == len(contexts)


def test_clearinghouse_state(client: Client, users: list[str]) -> None:
    got = client.ask(type="batchClearinghouseStates", users=users)
    assert list(got) == ["successful_states", "failed_wallets"]
    states = [state for _, state in got["successful_states"]]
    for state in states:
        assert {"marginSummary", "crossMarginSummary", "assetPositions", "time"} <= state.keys()
        assert integer(state["time"])
    conforms([state["marginSummary"] for state in states], MARGIN)
    conforms([state["crossMarginSummary"] for state in states], MARGIN)
    positions = [one for state in states for one in state["assetPositions"]]
    assert all(list(one) == ["type", "position"] and string(one["type"]) for one in positions)
    conforms([one["position"] for one in positions], POSITION)
    for one in positions:
        leverage = one["position"]["leverage"]
        assert leverage["type"] in ("cross", "isolated")
        assert integer(leverage["value"])


def test_borrow_lend_user_state(client: Client, users: list[str]) -> None:
    got = [client.ask(type="borrowLendUserState", user=user) for user in (*users, NOBODY)]
    conforms(got, LOAN)
    assert got[-1] == {"tokenToState": [], "health": "healthy", "healthFactor": None}
    pairs = [pair for state in got for pair in state["tokenToState"]]
    assert pairs
    for index, state in pairs:
        assert integer(index)
        for side in ("borrow", "supply"):
            conforms([state[side]], {"basis": (decimal, True), "value": (decimal, True)})


def test_delegation(client: Client, world: World) -> None:
    for user in world.sources.delegations:
        conforms(client.ask(type="delegations", user=user), DELEGATION)


def test_validator_week(client: Client, world: World) -> None:
    for validator in world.summary()["validators"]:
        weeks = client.ask(type="validatorAprHistory", validator=validator, limit=100)
        conforms(weeks, WEEK)
        times = [one["week"] for one in weeks]
        assert times == sorted(times, reverse=True)
        assert all((time - 4 * DAY) % (7 * DAY) == 0 for time in times)  # Mondays, 00:00 UTC
        assert all(0 <= one["netApr"] <= one["grossApr"] < 1 for one in weeks)


def test_perp_dex_limits(client: Client) -> None:
    got = {dex: client.ask(type="perpDexLimits", dex=dex) for dex in ("", "eqx", "pre")}
    conforms([one for one in got.values() if one is not None], LIMITS)
    assert None in got.values()
    response = client.post(type="perpDexLimits", dex="")
    assert (response.content, response.headers["content-type"]) == (b"null", "application/json")


def test_non_funding_ledger_update(client: Client, users: list[str]) -> None:
    types = set()
    for user in users:
        rows = client.ask(type="userNonFundingLedgerUpdates", user=user, startTime=0)
        conforms(rows, LEDGER)
        types |= {row["delta"]["type"] for row in rows}
        times = [row["time"] for row in rows]
        assert times == sorted(times)
    assert {"deposit", "withdraw", "send"} <= types


@pytest.mark.parametrize("type", ["accountValueSnapshotTimestamp", "perpTwapSnapshotTimestamp"])
def test_snapshot_metadata(client: Client, type: str) -> None:
    got = client.ask(type=type)
    conforms([got], METADATA)
    assert got == client.ask(type="perpTwapSnapshotTimestamp")  # the same timestamp
    assert got["timestamp"] < 10**11  # seconds
