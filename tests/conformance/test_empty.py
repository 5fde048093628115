"""Clarifications, "Errors": an empty store."""

import pytest

from tests.conformance.conftest import GOOD


@pytest.mark.parametrize(
    "type",
    [
        "accountValueSnapshotTimestamp",
        "accountValueSnapshots",
        "perpTwapSnapshotTimestamp",
        "perpTwapSnapshots",
    ],
)
def test_errors__404_before_snapshots(empty, type):
    got = empty.refuse(type, **GOOD[type])
    assert got == (404, "No snapshots are available yet")


def test_errors__500_before_depth(empty):
    assert empty.refuse("currentDepth") == (500, "An internal error occurred")


@pytest.mark.parametrize(
    "type",
    [
        "slippageHistory",
        "userFills",
        "userFillsByTime",
        "builderApprovedFillsByTime",
        "builderApprovedFundingByTime",
        "builderOrdersByTime",
        "historicalOrders",
        "userNonFundingLedgerUpdates",
        "delegations",
        "validatorAprHistory",
    ],
)
def test_errors__empty_store_has_empty_lists(empty, type):
    assert empty.ask(type, **GOOD[type]) == []


@pytest.mark.parametrize("type", GOOD)
def test_errors__empty_store_status_200_404_500(empty, type):
    status = empty.post({"type": type, **GOOD[type]}).status_code
    assert status in (200, 404, 500)
