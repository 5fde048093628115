"""Answers about orders. Specification, "builderOrdersByTime", "historicalOrders"."""

from typing import Final

from toolkit.service.asked import Answer, Asked, good
from toolkit.service.store import Store, array

__all__ = ["builder_orders_by_time", "historical_orders"]

# ASSUMED: a page of builderOrdersByTime has at most 2,000 rows.
_PAGE: Final = 2_000


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
