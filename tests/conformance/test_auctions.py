"""Specification, "Deploy auctions"."""

# A test is named after its clause, with operation names as in requests.
# ruff: noqa: N802

from tests.conformance import mini, shapes

SPOT, PERP = "spotPairDeployAuctionStatus", "perpDeployAuctionStatus"


def test_auctions__types(hand, tiny):
    shapes.check_rows([hand.ask(SPOT), tiny.ask(SPOT)], shapes.SPOT_AUCTION)
    shapes.check_rows([hand.ask(PERP), tiny.ask(PERP)], shapes.PERP_AUCTION)


def test_auctions__endGas_null_in_progress(hand, tiny):
    perp, spot = hand.ask(PERP), tiny.ask(SPOT)
    assert perp["endGas"] is spot["endGas"] is None
    assert perp["startTimeSeconds"] == mini.NOON - 6 * 3600
    assert 100 <= float(perp["currentGas"]) <= float(perp["startGas"]) == 500


def test_auctions__perp_currentGas_null_after_end(tiny):
    status = tiny.ask(PERP)
    assert status["currentGas"] is None
    assert float(status["endGas"]) > 0


def test_auctions__spot_currentGas_stays_after_end(hand):
    status = hand.ask(SPOT)
    assert shapes.is_kind("decimal", status["currentGas"])
    assert status["endGas"] == "400.0"
