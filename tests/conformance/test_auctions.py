"""Specification, "Deploy auctions"."""

# A test is named after its clause, with operation names as in requests.
# ruff: noqa: N802

from tests.conformance import mini, shapes


@shapes.fields(shapes.SPOT_AUCTION)
def test_spotPairDeployAuctionStatus__types(hand, tiny, field, words):
    rows = [item.ask("spotPairDeployAuctionStatus") for item in (hand, tiny)]
    shapes.check_values(rows, field, words)
    shapes.no_other_fields(rows, shapes.SPOT_AUCTION)


@shapes.fields(shapes.PERP_AUCTION)
def test_perpDeployAuctionStatus__types(hand, tiny, field, words):
    rows = [item.ask("perpDeployAuctionStatus") for item in (hand, tiny)]
    shapes.check_values(rows, field, words)
    shapes.no_other_fields(rows, shapes.PERP_AUCTION)


def test_auctions__endGas_null_in_progress(hand, tiny):
    perp, spot = hand.ask("perpDeployAuctionStatus"), tiny.ask("spotPairDeployAuctionStatus")
    assert perp["endGas"] is spot["endGas"] is None
    assert perp["startTimeSeconds"] == mini.NOON - 6 * 3600
    assert 100 <= float(perp["currentGas"]) <= float(perp["startGas"]) == 500


def test_auctions__perp_currentGas_null_after_end(tiny):
    status = tiny.ask("perpDeployAuctionStatus")
    assert status["currentGas"] is None
    assert float(status["endGas"]) > 0


def test_auctions__spot_currentGas_stays_after_end(hand):
    status = hand.ask("spotPairDeployAuctionStatus")
    assert shapes.is_kind("decimal", status["currentGas"])
    assert status["endGas"] == "400.0"
