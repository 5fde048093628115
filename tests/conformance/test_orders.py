"""Specification, "Order status record", "builderOrdersByTime", "historicalOrders"."""

# A test is named after its clause, with operation names as in requests.
# ruff: noqa: N802

import pytest

from tests.conformance import mini, shapes
from tests.conformance.rows import cursor, key

ALICE, BOB, CAROL, B1, B2, T = mini.ALICE, mini.BOB, mini.CAROL, mini.B1, mini.B2, mini.T


def brief(rows):
    return [(row["order"]["oid"], row["status"]) for row in rows]


@pytest.fixture(scope="module")
def historical(tiny, summary):
    """The latest events of every account of the simulated exchange."""
    return [row for user in summary["users"] for row in tiny.ask("historicalOrders", user=user)]


@pytest.fixture(scope="module")
def routed(tiny, summary):
    return [
        row
        for builder in summary["builders"]
        for row in tiny.ask("builderOrdersByTime", builder=builder, startTime=0)
    ]


@pytest.fixture(scope="module")
def orders(historical, routed):
    """All order objects, including the children of take-profit and stop-loss orders."""
    found = [row["order"] for row in historical + routed]
    for item in found:
        found.extend(item["children"])
    return found


# The records.


def test_order_status_record__types(historical, routed, orders):
    shapes.check_rows(historical, shapes.HISTORICAL)
    shapes.check_rows(routed, shapes.BUILDERS)
    shapes.check_rows(orders, shapes.ORDER)


def test_order_object__null_cloid(hand):
    rows = hand.ask("historicalOrders", user=BOB)
    assert [row["order"]["cloid"] for row in rows] == [None, None]
    assert any(row["order"]["cloid"] for row in hand.ask("historicalOrders", user=ALICE))


def test_order_object__children_of_parent(hand, orders):
    parents = [order for order in orders if order["children"]]
    assert parents
    rows = hand.ask("historicalOrders", user=ALICE)
    assert [row["order"]["children"] for row in rows if row["order"]["children"]] == [
        [mini.TAKE_PROFIT]
    ]


def test_order_object__trigger_defaults(orders):
    plain = [order for order in orders if not order["isTrigger"]]
    assert {(entry["triggerCondition"], entry["triggerPx"]) for entry in plain} == {("N/A", "0.0")}


# historicalOrders.


def test_historicalOrders__newest_first(tiny, summary):
    rows = tiny.ask("historicalOrders", user=summary["users"][0])
    assert [key(row) for row in rows] == sorted(map(key, rows), reverse=True)


def test_historicalOrders__row_for_each_event(hand):
    events = [
        (102, "filled"),
        (102, "open"),
        (105, "iocCancelRejected"),
        (101, "canceled"),
        (101, "open"),
    ]
    assert brief(hand.ask("historicalOrders", user=ALICE)) == events
    assert brief(hand.ask("historicalOrders", user=ALICE, limit=2)) == events[:2]


def test_historicalOrders__builder_on_routed_orders_only(hand):
    rows = {row["order"]["oid"]: row for row in hand.ask("historicalOrders", user=ALICE)}
    assert (rows[102]["builder"], rows[102]["builderFee"]) == (B1, 5)
    assert "builder" not in rows[101]
    assert "builderFee" not in rows[101]


def test_historicalOrders__only_latest_2000_rows(hand):
    rows = hand.ask("historicalOrders", user=CAROL)
    oids = [item["order"]["oid"] for _, item in mini.MANY]
    assert [row["order"]["oid"] for row in rows] == oids[::-1][:2000]


# builderOrdersByTime.


def test_builderOrdersByTime__orders_via_builder(hand):
    rows = hand.ask("builderOrdersByTime", builder=B1, startTime=0)
    assert [(row["user"], *item) for row, item in zip(rows, brief(rows), strict=True)] == [
        (ALICE, 102, "open"),
        (BOB, 104, "open"),
        (ALICE, 105, "iocCancelRejected"),
        (ALICE, 102, "filled"),
    ]
    rows = hand.ask("builderOrdersByTime", builder=B2, startTime=0)
    assert brief(rows) == [(107, "open"), (106, "open")]


def test_builderOrdersByTime__txIndex_order(hand):
    """The page after the first row begins with the second."""
    first, second = hand.ask("builderOrdersByTime", builder=B2, startTime=0)
    assert first["statusTimestamp"] == second["statusTimestamp"]
    assert hand.ask("builderOrdersByTime", builder=B2, cursor=cursor(first)) == [second]
    assert hand.ask("builderOrdersByTime", builder=B2, cursor=cursor(second)) == []


def test_builderOrdersByTime__time_order(tiny, summary):
    for builder in summary["builders"]:
        rows = tiny.ask("builderOrdersByTime", builder=builder, startTime=0)
        assert [key(row) for row in rows] == sorted(map(key, rows)) != []


def test_builderOrdersByTime__inclusive_bounds(hand):
    """The default of `endTime` is now."""
    table = [
        (T + 20, T + 20, [102, 104, 105]),
        (T + 21, T + 29, []),
        (T + 21, T + 30, [102]),
        (0, T + 19, []),
    ]
    for start, end, oids in table:
        rows = hand.ask("builderOrdersByTime", builder=B1, startTime=start, endTime=end)
        assert [row["order"]["oid"] for row in rows] == oids
    asked = {"builder": B1, "startTime": 0}
    assert hand.ask("builderOrdersByTime", **asked) == hand.ask(
        "builderOrdersByTime", **asked, endTime=mini.NOW
    )


def test_builderOrdersByTime__cursor_replaces_startTime(hand, inclusive):
    asked = {"builder": B1, "cursor": f"{T + 20}_0"}
    for start in ({}, {"startTime": 0}, {"startTime": mini.NOW}):
        assert brief(hand.ask("builderOrdersByTime", **asked, **start)) == [(102, "filled")]
    rows = inclusive.ask("builderOrdersByTime", **asked)
    assert [item for item, _ in brief(rows)] == [102, 104, 105, 102]


def test_builderOrdersByTime__malformed_cursor_is_400(hand):
    for wrong in ["", "1", "1_", "_1", "x_1", "1_x", "1_2_3", 7, []]:
        assert hand.refuse("builderOrdersByTime", builder=B1, cursor=wrong)[0] == 400, wrong


def test_builderOrdersByTime__all_pages(tiny, summary):
    """There is no `limit`: for any page size, cursors reach the end."""
    builder = summary["builders"][0]
    everything = tiny.ask("builderOrdersByTime", builder=builder, startTime=0)
    rows = everything
    while rows:
        last = rows[-1]
        rows = tiny.ask("builderOrdersByTime", builder=builder, cursor=cursor(last))
        everything += rows
    assert len(everything) == len({(*key(row), *brief([row])[0]) for row in everything})
    assert {row["order"]["oid"] for row in everything}
