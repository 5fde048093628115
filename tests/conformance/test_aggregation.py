"""Specification, "userFills", "userFillsByTime": aggregateByTime."""

# A test is named after its clause, with operation names as in requests.
# ruff: noqa: N802

from decimal import Decimal

import pytest

from tests.conformance import mini, shapes
from tests.conformance.rows import cursor, tids

MERGED = {"user": mini.ALICE, "startTime": 0, "aggregateByTime": True}
ROWS = [1, 4, 6, 7, 8, 9, 10, 11, 12, 13]
BOTH = pytest.mark.parametrize("type", ["userFills", "userFillsByTime"])


@BOTH
def test_aggregateByTime__false_by_default(hand, type):
    asked = {"user": mini.ALICE, "startTime": 0}
    plain = hand.ask(type, **asked)
    assert sorted(tids(plain)) == list(range(1, 14))
    assert hand.ask(type, **asked, aggregateByTime=False) == plain


@BOTH
def test_aggregateByTime__fills_of_one_order_merge(hand, type):
    """Fills of a crossing order merge in a block, those of a resting order in a transaction."""
    merged = {row["tid"]: row for row in hand.ask(type, **MERGED)}
    assert sorted(merged) == ROWS
    sums = {"sz": "5.0", "px": "103.4", "fee": "0.6", "builderFee": "0.03", "closedPnl": "0.3"}
    sums |= {"startPosition": "0.0", "tid": 1, "txIndex": 1, "oid": 10}
    assert {name: merged[1][name] for name in sums} == sums
    assert (merged[4]["sz"], merged[4]["fee"]) == ("3.0", "-0.3")
    assert (merged[6]["sz"], merged[6]["fee"]) == ("5.0", "-0.5")
    assert merged[7]["sz"] == "1.0"


def test_aggregateByTime__same_millisecond_in_order(hand):
    """Rows 1, 4 and 6 belong to transactions 1, 3 and 4 of one block."""
    assert tids(hand.ask("userFills", **MERGED))[-3:] == [6, 4, 1]
    assert tids(hand.ask("userFillsByTime", **MERGED))[:3] == [1, 4, 6]


@BOTH
def test_aggregateByTime__totals_unchanged(tiny, latest_of, type):
    how = {"startTime": 0, "aggregateByTime": True}
    merged_of = {user: tiny.ask(type, user=user, **how) for user in latest_of}
    fewer = 0
    for user, plain in latest_of.items():
        merged = merged_of[user]
        if len(plain) < 2000:
            fewer += len(plain) - len(merged)
            assert len(merged) <= len(plain)
            assert sum(Decimal(row["sz"]) for row in merged) == sum(
                Decimal(row["sz"]) for row in plain
            )
    assert fewer > 0
    shape = shapes.LATEST_FILL if type == "userFills" else shapes.FILL_BY_TIME
    shapes.check_rows([row for rows in merged_of.values() for row in rows], shape)


def test_aggregateByTime__page_after_merged_row(hand):
    page = hand.ask("userFillsByTime", **MERGED, limit=2)
    assert tids(page) == [1, 4]
    rest = hand.ask("userFillsByTime", **MERGED, cursor=cursor(page[-1]))
    assert tids(page) + tids(rest) == ROWS
