"""Answers about the present: fees and auctions."""

from tests.service.conftest import asker_of
from toolkit.contract.source_tables import Sources
from toolkit.service import build_store

NOBODY = "0x" + "0" * 40


def empty():
    return asker_of(build_store(Sources(start_ms=0, now_ms=10**12, label="", simulated=True)))


def test_fees_without_trades_are_lowest_tier(asker):
    fees = asker.ask("userFees", user=NOBODY)
    schedule = fees["feeSchedule"]
    assert (fees["userCrossRate"], fees["userAddRate"]) == (schedule["cross"], schedule["add"])
    assert fees["userSpotCrossRate"] == schedule["spotCross"]
    assert fees["userSpotAddRate"] == schedule["spotAdd"]


def test_auction_status_is_of_latest_auction(asker, world):
    for kind, type in (
        ("spot", "spotPairDeployAuctionStatus"),
        ("perp", "perpDeployAuctionStatus"),
    ):
        started = [auction for auction in world.sources.auctions if auction.kind == kind]
        got = asker.ask(type)
        assert got["startTimeSeconds"] == max(item.start_seconds for item in started)
        assert empty().refuse(type)[0] == 500
