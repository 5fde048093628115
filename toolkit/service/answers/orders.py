"""Answers about orders. Specification, "builderOrdersByTime", "historicalOrders"."""

import msgspec
from msgspec import UNSET

from toolkit.contract.answers import encode
from toolkit.contract.dexes import canonical_dex, coin_dex
from toolkit.contract.recorded_rows import read_record
from toolkit.contract.records import OpenOrder, Order, OrderStatus
from toolkit.service.answers.fills import builder_page
from toolkit.service.handler_messages import CheckedRequest
from toolkit.service.store import ACCOUNT, Store, json_array


def historical_orders(store: Store, request: CheckedRequest) -> bytes:
    """Return the latest status events of a user, newest first."""
    sql = f"SELECT row FROM status WHERE {ACCOUNT} ORDER BY time DESC, tx DESC, row LIMIT ?"
    return json_array(store.select_texts("status", sql, request["user"], request["max_rows"]))


def builder_orders_by_time(store: Store, request: CheckedRequest) -> bytes:
    """Return the status events of orders placed via a builder, oldest first."""
    rows = builder_page(store, request, "routed_status", "row, address")
    texts = store.row_texts("status", [row for row, _ in rows])
    builder = b'"builder":"%b",' % request["builder"].encode()
    return json_array(
        b'{"user":"%b",%b' % (user.encode(), text.replace(builder, b"", 1)[1:])
        for (_, user), text in zip(rows, texts, strict=True)
    )


def open_orders(store: Store, request: CheckedRequest) -> bytes:
    """Return the open orders of a user on a dex, newest first, without unset flags."""
    short = [
        OpenOrder(
            coin=order.coin,
            side=order.side,
            limit_px=order.limit_px,
            sz=order.sz,
            oid=order.oid,
            timestamp=order.timestamp,
            orig_sz=order.orig_sz,
            cloid=order.cloid or UNSET,
            reduce_only=order.reduce_only or UNSET,
        )
        for order in _open_orders(store, request)
    ]
    return encode(short)


def frontend_open_orders(store: Store, request: CheckedRequest) -> bytes:
    """Return the open orders of a user on a dex, with all their fields."""
    return encode(_open_orders(store, request))


def order_status(store: Store, request: CheckedRequest) -> bytes:
    """Return the last status of an order, by its order id or its client order id."""
    # A text with these bytes may also be of another order that refers to this one as its child,
    # so the decoded event is checked, too.
    oid = request["oid"]
    needle = b'"oid":%d,' % oid if isinstance(oid, int) else b'"%b"' % oid.encode()
    sql = f"SELECT row FROM status WHERE {ACCOUNT} ORDER BY time DESC, tx DESC, row DESC"
    rows = store.iterate_rows(sql, request["user"])
    for batch in request.read_batches(rows):
        for text in store.row_texts("status", [row for (row,) in batch][::-1])[::-1]:
            if needle not in text:
                continue
            event = read_record(OrderStatus, text)
            if oid in (event.order.oid, event.order.cloid):
                shown = {
                    "order": event.order,
                    "status": event.status,
                    "statusTimestamp": event.status_timestamp,
                }
                return encode({"status": "order", "order": shown})
    return b'{"status":"unknownOid"}'


def _open_orders(store: Store, request: CheckedRequest) -> list[Order]:
    text = store.document("open orders", request["user"]) or b"[]"
    dex = canonical_dex(request["dex"])
    rows = msgspec.json.decode(text, type=list[msgspec.Raw])
    orders = [read_record(Order, bytes(row)) for row in rows]
    return [order for order in orders if coin_dex(order.coin) == dex]
