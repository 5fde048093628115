"""Answers about orders. Specification, "builderOrdersByTime", "historicalOrders"."""

import itertools
from typing import Final

import msgspec
from msgspec import UNSET

from toolkit.contract.answers import encode
from toolkit.contract.dexes import canonical_dex, coin_dex
from toolkit.contract.records import OpenOrder, Order, OrderStatus
from toolkit.service.asked import Answer, Asked, good
from toolkit.service.store import Store, array

__all__ = [
    "builder_orders_by_time",
    "frontend_open_orders",
    "historical_orders",
    "open_orders",
    "order_status",
]

# ASSUMED: a page of builderOrdersByTime has at most 2,000 rows.
_PAGE: Final = 2_000
_READ_AT_ONCE: Final = 2_048  # rows


def historical_orders(store: Store, asked: Asked) -> Answer:
    """Give a user's latest status events, newest first."""
    return good(
        store.array(
            "status",
            "SELECT row FROM status WHERE account = ? ORDER BY time DESC, tx DESC, row LIMIT ?",
            store.account(asked["user"]),
            asked["max_rows"],
        )
    )


def builder_orders_by_time(store: Store, asked: Asked) -> Answer:
    """Give the status events of orders placed via a builder, oldest first."""
    after, key = asked.from_here
    found = store.rows(
        "SELECT row, address FROM routed_status JOIN account ON id = user "
        f"WHERE builder = ? AND (time, tx) {after} (?, ?) AND time <= ? "
        "ORDER BY time, tx, executed LIMIT ?",
        asked["builder"],
        *key,
        asked.end,
        _PAGE,
    )
    texts = store.texts("status", [row for row, _ in found])
    builder = b'"builder":"%b",' % asked["builder"].encode()
    return good(
        array(
            b'{"user":"%b",%b' % (user.encode(), text.replace(builder, b"", 1)[1:])
            for (_, user), text in zip(found, texts, strict=True)
        )
    )


def open_orders(store: Store, asked: Asked) -> Answer:
    """Return the orders of a user on a dex that are open, newest first."""
    return good(encode([_bare(order) for order in _open_orders(store, asked)]))


def frontend_open_orders(store: Store, asked: Asked) -> Answer:
    """Return the orders of a user on a dex that are open, with all their fields."""
    return good(encode(_open_orders(store, asked)))


def order_status(store: Store, asked: Asked) -> Answer:
    """Return the last status of one order, by its id or its client order id."""
    # Nothing but this and the order's own fields tells an order from one of its children.
    wanted = asked["oid"]
    named = b'"oid":%d,' % wanted if isinstance(wanted, int) else b'"%b"' % wanted.encode()
    account = store.account(asked["user"])
    rows = store.each(
        "SELECT row FROM status WHERE account = ? ORDER BY time DESC, tx DESC, row DESC", account
    )
    while found := list(itertools.islice(rows, _READ_AT_ONCE)):
        for text in store.texts("status", [row for (row,) in found][::-1])[::-1]:
            if named in text and _names(event := _decode(text), wanted):
                status, time = encode(event.status), event.status_timestamp
                return good(
                    b'{"status":"order","order":{"order":%b,"status":%b,"statusTimestamp":%d}}'
                    % (encode(event.order), status, time)
                )
    return good(b'{"status":"unknownOid"}')


_decode = msgspec.json.Decoder(OrderStatus).decode


def _names(event: OrderStatus, wanted: int | str) -> bool:
    """Whether an event is of the order with an id, or a client order id."""
    return wanted in (event.order.oid, event.order.cloid)


def _open_orders(store: Store, asked: Asked) -> list[Order]:
    text = store.document("open orders", asked["user"]) or b"[]"
    dex = canonical_dex(asked["dex"])
    orders = msgspec.json.decode(text, type=list[Order])
    return [order for order in orders if coin_dex(order.coin) == dex]


def _bare(order: Order) -> OpenOrder:
    """Return an order as `openOrders` shows it: flags and client ids only where they are set."""
    return OpenOrder(
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
