"""Answers about the present: markets, accounts, staking, auctions, snapshots."""

from dataclasses import replace

import msgspec
import pytest

from tests.service.conftest import Asker, asker_of
from toolkit.contract.source_tables import Auction, DailyReward, Sources
from toolkit.service import build_store
from toolkit.service.answer_documents import weekly_aprs
from toolkit.service.answers.auctions import auction_status
from toolkit.times import DAY, to_ms

NOBODY = "0x" + "0" * 40
MONDAY = to_ms("2025-09-29")


def empty():
    return asker_of(build_store(Sources(start_ms=0, now_ms=10**12, label="", simulated=True)))


# --- markets ---


def test_fees_without_trades_are_lowest_tier(asker):
    fees = asker.ask("userFees", user=NOBODY)
    schedule = fees["feeSchedule"]
    assert (fees["userCrossRate"], fees["userAddRate"]) == (schedule["cross"], schedule["add"])
    assert fees["userSpotCrossRate"] == schedule["spotCross"]
    assert fees["userSpotAddRate"] == schedule["spotAdd"]


def test_depth_is_younger_than_one_second(asker, world):
    whole = asker.ask("currentDepth")
    assert whole == msgspec.to_builtins(world.sources.depth)
    for name in ("main", "hyperliquid", ""):
        native = asker.ask("currentDepth", dex=name)["data"]
        assert native == [row for row in whole["data"] if row["dex"] == "hyperliquid"]
    for late in (0, 999, 1000, 61_234):
        later = Asker(asker.store, asker.access, asker.now_ms + late)
        got = later.ask("currentDepth")
        assert 0 <= later.now_ms - got["timestampMs"] < 1000


# --- accounts ---


# --- staking ---


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


# --- auctions ---


def test_auction_price_falls():
    """After a sale, the present price of a spot auction stays, that of a perp auction is null."""
    for kind, after_sale in (("spot", "590.0"), ("perp", None)):
        unsold = Auction(kind, 1000, 100, "600.0", "500.0")
        sold = replace(unsold, end_seconds=1010, end_gas="590.0")
        table = [
            (unsold, 1000, "600.0", None),
            (unsold, 1025, "575.0", None),
            (unsold, 5000, auction_status(unsold, 5000).current_gas, "500.0"),
            (sold, 1009, "591.0", None),
            (sold, 1025, after_sale, "590.0"),
        ]
        for auction, now, current, end in table:
            got = auction_status(auction, now)
            assert (got.current_gas, got.end_gas) == (current, end)


def test_auction_status_is_of_latest_auction(asker, world):
    for kind, type in (
        ("spot", "spotPairDeployAuctionStatus"),
        ("perp", "perpDeployAuctionStatus"),
    ):
        started = [auction for auction in world.sources.auctions if auction.kind == kind]
        got = asker.ask(type)
        assert got["startTimeSeconds"] == max(item.start_seconds for item in started)
        assert empty().refuse(type)[0] == 500


# --- snapshots ---
