"""Answers about the present: markets, accounts, staking, auctions, snapshots."""

import itertools
import json
from collections import defaultdict
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from tests.service.conftest import Asker
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.snapshots import decode_snapshots
from toolkit.contract.source_tables import Auction, DailyReward, Sources
from toolkit.service import AcceptedKey, KeyQuotas, build_store
from toolkit.service.answer_documents import weekly_aprs
from toolkit.service.answers.auctions import auction_status
from toolkit.times import DAY, to_ms

NOBODY = "0x" + "0" * 40
MONDAY = to_ms("2025-09-29")


def asker_over(sources):
    return Asker(build_store(sources), KeyQuotas([AcceptedKey("all", "s3cret")]), sources.now_ms)


def empty(**tables):
    usual: dict[str, Any] = {"start_ms": 0, "now_ms": 10**12, "label": "", "simulated": True}
    return asker_over(Sources(**{**usual, **tables}))


def wire(value):
    return json.loads(msgspec.json.encode(value))


# --- orders ---


def test_historical_orders_are_newest_first(asker, world):
    by_user = defaultdict(list)
    for user, event in world.sources.orders:
        by_user[user].append(event)
    user = max(by_user, key=lambda one: len(by_user[one]))
    newest = sorted(
        by_user[user], key=lambda one: (one.status_timestamp, one.tx_index), reverse=True
    )
    expected = [msgspec.to_builtins(item) for item in newest]
    assert asker.ask("historicalOrders", user=user) == expected[:2000]
    assert asker.ask("historicalOrders", user=user, limit=3) == expected[:3]
    assert not any("user" in row for row in expected)
    assert asker.ask("historicalOrders", user=NOBODY) == []


def test_builder_orders_name_user_not_builder(asker, world):
    for builder in world.builders:
        expected = [
            {"user": user, **msgspec.to_builtins(event)}
            for user, event in world.sources.orders
            if event.builder == builder
        ]
        expected = [
            {name: value for name, value in row.items() if name != "builder"} for row in expected
        ]
        assert expected
        got = asker.ask("builderOrdersByTime", builder=builder, startTime=0)
        assert got == expected[:2000]
        key = (expected[0]["statusTimestamp"], expected[0]["txIndex"])
        ask = {"builder": builder, "cursor": f"{key[0]}_{key[1]}"}
        later = [r for r in expected if (r["statusTimestamp"], r["txIndex"]) > key]
        assert asker.ask("builderOrdersByTime", **ask) == later[:2000]
        again = [r for r in expected if (r["statusTimestamp"], r["txIndex"]) >= key]
        assert asker.ask("builderOrdersByTime", inclusive=True, **ask) == again[:2000]
        until = asker.ask("builderOrdersByTime", builder=builder, startTime=0, endTime=key[0])
        assert {row["statusTimestamp"] for row in until} == {key[0]}


# --- markets ---


def test_fees_without_trades_are_lowest_tier(asker):
    fees = asker.ask("userFees", user=NOBODY)
    schedule = fees["feeSchedule"]
    assert (fees["userCrossRate"], fees["userAddRate"]) == (schedule["cross"], schedule["add"])
    assert fees["userSpotCrossRate"] == schedule["spotCross"]
    assert fees["userSpotAddRate"] == schedule["spotAdd"]


def test_dex_filter_selects_depth_of_dex(asker, world):
    depth = world.sources.depth
    assert depth is not None
    whole = asker.ask("currentDepth")
    assert whole == msgspec.to_builtins(depth)
    dexes = [row["dex"] for row in whole["data"]]
    assert len(set(dexes)) == 1 + sum(a != b for a, b in itertools.pairwise(dexes))
    for name in ("main", "hyperliquid", ""):
        native = asker.ask("currentDepth", dex=name)["data"]
        assert native == [row for row in whole["data"] if row["dex"] == "hyperliquid"]
    assert asker.ask("currentDepth", dex="eqx")["data"]
    assert asker.ask("currentDepth", dex="nowhere")["data"] == []


def test_depth_is_younger_than_one_second(asker):
    for late in (0, 999, 1000, 61_234):
        later = Asker(asker.store, asker.access, asker.now_ms + late)
        got = later.ask("currentDepth")
        assert 0 <= later.now_ms - got["timestampMs"] < 1000


def test_missing_depth_is_500():
    assert empty().refuse("currentDepth") == (500, "An internal error occurred")


def test_contexts_are_joined_by_index(asker, world):
    for dex, contexts in world.sources.contexts.items():
        meta, states = asker.ask("metaAndAssetCtxs", dex=dex)
        assert meta == msgspec.json.decode(msgspec.json.encode(world.sources.metas[dex]))
        assert states == [msgspec.to_builtins(context) for context in contexts]
    assert asker.ask("metaAndAssetCtxs", dex="nowhere") == [{"universe": []}, []]


def test_missing_limits_are_null(asker, world):
    for dex, limits in world.sources.limits.items():
        assert asker.ask("perpDexLimits", dex=dex) == wire(limits)
    assert asker.ask("perpDexLimits", dex="") is None
    assert asker.ask("perpDexLimits", dex="nowhere") is None
    assert asker.refuse("perpDexLimits") == (400, "dex parameter is required")


# --- accounts ---


def test_unknown_account_has_empty_state(asker, world):
    users = list(world.sources.states[""])[:5]
    got = asker.ask("batchClearinghouseStates", users=[*users, NOBODY])
    assert got["failed_wallets"] == []
    expected = [[u, msgspec.to_builtins(world.sources.states[""][u])] for u in users]
    assert got["successful_states"][:-1] == expected
    nobody, state = got["successful_states"][-1]
    assert nobody == NOBODY
    assert state["assetPositions"] == []
    assert {*state["marginSummary"].values()} == {"0.0"}
    assert state["time"] == asker.now_ms


def test_states_keyed_by_dex(asker, world):
    user = next(iter(world.sources.states["eqx"]))
    got = asker.ask("batchClearinghouseStates", users=[user], dex="ALL_DEXES")
    ((who, states),) = got["successful_states"]
    assert who == user
    assert list(states) == ["native", "eqx", "pre"]
    for dex, name in (("", "native"), ("eqx", "eqx")):
        assert states[name] == msgspec.to_builtins(world.sources.states[dex][user])
        alone = asker.ask("batchClearinghouseStates", users=[user], dex=name)
        assert alone["successful_states"] == [[user, states[name]]]


def test_too_many_accounts_are_refused(asker):
    assert asker.ask("batchClearinghouseStates", users=[]) == {
        "successful_states": [],
        "failed_wallets": [],
    }
    many = [f"0x{number:040x}" for number in range(1001)]
    got = asker.ask("batchClearinghouseStates", users=many[:1000])
    assert [user for user, _ in got["successful_states"]] == many[:1000]
    assert asker.refuse("batchClearinghouseStates", users=many)[0] == 400
    ask = {"dex": "ALL_DEXES"}
    assert len(asker.ask("batchClearinghouseStates", users=many[:100], **ask)) == 2
    assert asker.refuse("batchClearinghouseStates", users=many[:101], **ask)[0] == 400
    assert asker.refuse("batchClearinghouseStates", users=["0x12"])[0] == 400


def test_unavailable_accounts_are_listed():
    bad, good = "0x" + "b" * 40, "0x" + "a" * 40
    got = empty(unavailable=frozenset({bad})).ask("batchClearinghouseStates", users=[bad, good])
    assert got["failed_wallets"] == [bad]
    assert [user for user, _ in got["successful_states"]] == [good]


def test_borrowing_and_lending_equals_simulation(asker, world):
    for user, state in world.sources.borrow_lend.items():
        assert asker.ask("borrowLendUserState", user=user) == wire(state)
    assert asker.ask("borrowLendUserState", user=NOBODY) == {
        "tokenToState": [],
        "health": "healthy",
        "healthFactor": None,
    }


# --- staking ---


def test_delegations_equal_simulation(asker, world):
    for user, delegations in world.sources.delegations.items():
        got = asker.ask("delegations", user=user)
        assert got == [msgspec.to_builtins(delegation) for delegation in delegations]
    assert asker.ask("delegations", user=NOBODY) == []


def reward(time, staked="36500", mine="9", fee="1"):
    return DailyReward("0x" + "c" * 40, time, staked, mine, fee)


def test_weeks_begin_on_monday():
    # The reward of a Sunday comes on Monday at midnight and belongs to the week before.
    rewards = [reward(MONDAY + day * DAY) for day in (-6, -5, 0)]
    (found,) = weekly_aprs([*rewards, reward(MONDAY + DAY, mine="18", fee="2")]).values()
    assert [item.week for item in found] == [MONDAY, MONDAY - 7 * DAY]
    assert found[0].net_apr == pytest.approx(0.18)
    assert found[0].gross_apr == pytest.approx(0.20)
    assert found[1].total_delegator_rewards == "27.0"


def test_apr_history_is_newest_first_within_bounds(asker, world):
    for validator in world.summary()["validators"]:
        entries = asker.ask("validatorAprHistory", validator=validator, limit=100)
        times = [entry["week"] for entry in entries]
        assert times == sorted(times, reverse=True)
        assert all(time % (7 * DAY) == MONDAY % (7 * DAY) for time in times)
        assert len(asker.ask("validatorAprHistory", validator=validator)) == min(12, len(times))
        some = {"startTime": times[3], "endTime": times[1]}
        got = asker.ask("validatorAprHistory", validator=validator, **some)
        assert [row["week"] for row in got] == times[1:4]
        days = [
            item
            for item in world.sources.rewards
            if item.validator == validator and times[2] < item.time <= times[2] + 7 * DAY
        ]
        total = sum(Decimal(day.delegator_rewards) for day in days)
        assert Decimal(entries[2]["totalDelegatorRewards"]) == total
        assert entries[2]["netApr"] == float(total / sum(Decimal(d.staked) for d in days) * 365)
    assert asker.ask("validatorAprHistory", validator=NOBODY) == []
    assert asker.refuse("validatorAprHistory", validator=NOBODY, startTime=5, endTime=4) == (
        400,
        "endTime must be at or after startTime",
    )


# --- auctions ---


@pytest.mark.parametrize("kind", ["spot", "perp"])
def test_auction_price_falls(kind):
    unsold = Auction(kind, 1000, 100, "600.0", "500.0")
    running = auction_status(unsold, 1025)
    assert (running.current_gas, running.end_gas) == ("575.0", None)
    assert auction_status(unsold, 1000).current_gas == "600.0"
    over = auction_status(unsold, 5000)
    assert over.end_gas == "500.0"
    sold = auction_status(Auction(kind, 1000, 100, "600.0", "500.0", 1010, "590.0"), 1025)
    assert sold.end_gas == "590.0"
    assert sold.current_gas == gas_after_end(kind, "590.0")
    before = auction_status(Auction(kind, 1000, 100, "600.0", "500.0", 1010, "590.0"), 1009)
    assert (before.current_gas, before.end_gas) == ("591.0", None)


def gas_after_end(kind, price):
    return price if kind == "spot" else None


def test_auction_status_is_of_latest_auction(asker, world):
    for kind, type in (
        ("spot", "spotPairDeployAuctionStatus"),
        ("perp", "perpDeployAuctionStatus"),
    ):
        started = [auction for auction in world.sources.auctions if auction.kind == kind]
        got = asker.ask(type)
        assert got["startTimeSeconds"] == max(item.start_seconds for item in started)
        assert list(got) == [
            "startTimeSeconds",
            "durationSeconds",
            "startGas",
            "currentGas",
            "endGas",
        ]
        assert empty().refuse(type)[0] == 500


# --- snapshots ---

NONE = (404, "No snapshots are available yet")


def binary(asker, type, names):
    field = "collateral_tokens" if type == "accountValueSnapshots" else "market_names"
    got = asker.send(json.dumps({"type": type, field: names}).encode())
    assert got.status == 200, got.content
    columns = decode_snapshots(OPERATIONS[type], got.headers, got.content)
    return dict(got.headers), columns


def tokens(asker, names):
    _, columns = binary(asker, "accountValueSnapshots", names)
    return set(columns["collateral_token"].to_pylist())


def markets(asker, names):
    _, columns = binary(asker, "perpTwapSnapshots", names)
    return set(columns["market"].to_pylist())


def test_snapshots_are_missing_before_first():
    nothing = empty()
    for type, fields in (
        ("accountValueSnapshotTimestamp", {}),
        ("accountValueSnapshots", {"collateral_tokens": ["ALL"]}),
        ("perpTwapSnapshotTimestamp", {}),
        ("perpTwapSnapshots", {"market_names": ["ALL"]}),
    ):
        assert nothing.refuse(type, **fields) == NONE


def test_snapshot_metadata_names_latest_snapshot(asker, world):
    latest = world.sources.account_snapshots[-1]
    expected = {"snapshot_id": latest.snapshot_id, "timestamp": latest.time // 1000}
    assert asker.ask("accountValueSnapshotTimestamp") == expected
    assert asker.ask("perpTwapSnapshotTimestamp") == expected


def test_account_values_are_selected_by_token(asker, world):
    every = {"hyperliquid:USDC", "eqx:USDC", "pre:USDH"}
    assert tokens(asker, ["ALL"]) == tokens(asker, ["ALL", "eqx:USDC", "ALL"]) == every
    assert tokens(asker, ["USDC"]) == {"hyperliquid:USDC", "eqx:USDC"}
    assert (
        tokens(asker, ["hyperliquid:USDC"])
        == tokens(asker, ["native:USDC"])
        == {"hyperliquid:USDC"}
    )
    assert tokens(asker, ["eqx:USDC", "USDH", "USDH", "NONE"]) == {"eqx:USDC", "pre:USDH"}
    for names in (["NONE"], ["eqx:USDH"], ["all"], ["eqx:"]):
        assert asker.refuse("accountValueSnapshots", collateral_tokens=names) == NONE


def test_snapshot_count_selects_format(asker):
    one, _ = binary(asker, "accountValueSnapshots", ["eqx:USDC", "NONE", "eqx:USDC"])
    assert one["x-payload-format"] == "msgpack"
    assert one["content-encoding"] == "zstd"
    several, _ = binary(asker, "accountValueSnapshots", ["USDC"])
    assert several["x-payload-format"] == "multi-zstd"
    assert several["x-compression"] == "inner-zstd"
    assert "content-encoding" not in several


def test_account_values_equal_simulation(asker, world):
    _, columns = binary(asker, "accountValueSnapshots", ["ALL"])
    got = zip(
        columns["collateral_token"].to_pylist(),
        columns["user"].to_pylist(),
        columns["account_value"].tolist(),
        columns["account_mode"].tolist(),
        strict=True,
    )
    latest = world.sources.account_snapshots[-1]
    expected = {
        (f"{dex or 'hyperliquid'}:{token}", row.user, row.account_value, row.account_mode)
        for (dex, token), rows in latest.values.items()
        for row in rows
    }
    assert set(got) == expected


def test_twap_patterns_select_markets(asker, world):
    there = set(world.sources.twap_snapshots[-1].twaps)
    native = {name for name in there if ":" not in name}
    deployed = there - native
    assert native
    assert deployed
    coin = min(native)
    dex = next(iter(deployed)).partition(":")[0]
    of_dex = {name for name in deployed if name.startswith(f"{dex}:")}
    assert markets(asker, ["ALL:ALL_DEXES"]) == there
    assert markets(asker, [coin, "ALL:ALL_DEXES", f"ALL:{dex}"]) == there
    assert markets(asker, ["ALL"]) == markets(asker, ["ALL:main", coin]) == native
    assert markets(asker, [f"ALL:{dex}", f"ALL:{dex}", next(iter(of_dex))]) == of_dex
    assert markets(asker, [f"ALL:{dex}", coin, "NONE"]) == of_dex | {coin}
    assert markets(asker, [f"main:{coin}"]) == {coin}
    for names in (["NONE"], ["ALL:nowhere"], ["nowhere:BTC"]):
        assert asker.refuse("perpTwapSnapshots", market_names=names) == NONE
    assert asker.refuse("perpTwapSnapshots", market_names=[])[0] == 400
    assert asker.refuse("perpTwapSnapshots", market_names="ALL")[0] == 400
