"""Clarifications, "Errors": an empty store."""

from tests.conformance.conftest import GOOD

LISTS = [
    *("slippageHistory", "userFills", "userFillsByTime", "builderApprovedFillsByTime"),
    *("builderApprovedFundingByTime", "builderOrdersByTime", "historicalOrders"),
    *("userNonFundingLedgerUpdates", "delegations", "validatorAprHistory"),
]


def test_errors__empty_store(empty_store, serve):
    empty = serve(empty_store)
    got = {
        type: (answer.status_code, answer.json())
        for type, fields in GOOD.items()
        for answer in [empty.post({"type": type, **fields})]
    }
    for type in LISTS:
        assert got[type] == (200, []), type
    for type in GOOD:
        if "Snapshot" in type:
            assert got[type] == (404, {"error": "No snapshots are available yet"})
    assert got["currentDepth"] == (500, {"error": "An internal error occurred"})
    assert {status for status, _ in got.values()} == {200, 404, 500}
