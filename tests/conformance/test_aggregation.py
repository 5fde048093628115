"""Specification, "userFills", "userFillsByTime": aggregateByTime."""

# A test is named after its clause, with operation names as in requests.
# ruff: noqa: N802

from decimal import Decimal

import pytest

from tests.conformance import mini, shapes
from tests.conformance.rows import cursor, tids

ALICE = mini.ALICE
BOTH = pytest.mark.parametrize("type", ["userFills", "userFillsByTime"])


def _aggregated_fills(hand, type):
    start = {"startTime": 0} if type == "userFillsByTime" else {}
    return {row["tid"]: row for row in hand.ask(type, user=ALICE, aggregateByTime=True, **start)}


@BOTH
def test_aggregateByTime__false_by_default(hand, type):
    asked = {"user": ALICE, "startTime": 0}
    plain = hand.ask(type, **asked)
    assert sorted(tids(plain)) == list(range(1, 14))
    assert hand.ask(type, **asked, aggregateByTime=False) == plain


@BOTH
def test_aggregateByTime__fills_of_crossing_order_merge(hand, type):
    assert sorted(_aggregated_fills(hand, type)) == [1, 4, 6, 7, 8, 9, 10, 11, 12, 13]


def test_aggregateByTime__same_millisecond_in_order(hand):
    """Rows 1, 4 and 6 belong to transactions 1, 3 and 4 of one block."""
    newest = tids(hand.ask("userFills", user=ALICE, aggregateByTime=True))
    assert newest[-3:] == [6, 4, 1]
    asked = {"user": ALICE, "startTime": 0, "aggregateByTime": True}
    assert tids(hand.ask("userFillsByTime", **asked))[:3] == [1, 4, 6]


@BOTH
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sz", "5.0"),
        ("px", "103.4"),
        ("fee", "0.6"),
        ("builderFee", "0.03"),
        ("closedPnl", "0.3"),
        ("startPosition", "0.0"),
        ("tid", 1),
        ("txIndex", 1),
        ("oid", 10),
    ],
)
def test_aggregateByTime__sums_and_mean_price(hand, type, field, value):
    assert _aggregated_fills(hand, type)[1][field] == value


@BOTH
def test_aggregateByTime__resting_fills_merge_by_transaction(hand, type):
    merged = _aggregated_fills(hand, type)
    assert (merged[4]["sz"], merged[4]["fee"]) == ("3.0", "-0.3")
    assert (merged[6]["sz"], merged[6]["fee"]) == ("5.0", "-0.5")


@BOTH
def test_aggregateByTime__later_fills_stay_separate(hand, type):
    assert _aggregated_fills(hand, type)[7]["sz"] == "1.0"


@pytest.fixture(scope="module")
def aggregated_of(tiny, traders):
    """The merged fills of every account, by operation."""
    how = {"startTime": 0, "aggregateByTime": True}
    return {
        type: {user: tiny.ask(type, user=user, **how) for user in traders}
        for type in ("userFills", "userFillsByTime")
    }


@BOTH
def test_aggregateByTime__totals_unchanged(aggregated_of, latest_of, type):
    fewer = 0
    for user, plain in latest_of.items():
        merged = aggregated_of[type][user]
        if len(plain) < 2000:
            fewer += len(plain) - len(merged)
            assert len(merged) <= len(plain)
            assert sum(Decimal(row["sz"]) for row in merged) == sum(
                Decimal(row["sz"]) for row in plain
            )
    assert fewer > 0


@pytest.mark.parametrize(
    ("type", "shape"),
    [("userFills", shapes.LATEST_FILL), ("userFillsByTime", shapes.FILL_BY_TIME)],
)
def test_aggregateByTime__fill_types(aggregated_of, type, shape):
    rows = [row for rows in aggregated_of[type].values() for row in rows]
    shapes.no_other_fields(rows, shape)
    for field, words in shape.items():
        shapes.check_values(rows, field, words)


def test_aggregateByTime__limit_counts_merged_rows(hand):
    rows = hand.ask("userFillsByTime", user=ALICE, startTime=0, aggregateByTime=True, limit=2)
    assert tids(rows) == [1, 4]


def test_aggregateByTime__page_after_merged_row(hand):
    asked = {"user": ALICE, "aggregateByTime": True}
    page = hand.ask("userFillsByTime", **asked, startTime=0, limit=2)
    rest = hand.ask("userFillsByTime", **asked, cursor=cursor(page[-1]))
    assert tids(page) + tids(rest) == [1, 4, 6, 7, 8, 9, 10, 11, 12, 13]
