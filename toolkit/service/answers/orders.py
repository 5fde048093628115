"""Answers about orders. Specification, "builderOrdersByTime", "historicalOrders"."""

from typing import Final

from toolkit.service.asked import Answer, Asked, good
from toolkit.service.store import Store

__all__ = ["builder_orders_by_time", "historical_orders"]

# ASSUMED: a page of builderOrdersByTime has at most 2,000 rows.
_PAGE: Final = 2_000


def historical_orders(store: Store, asked: Asked) -> Answer:
    """Give a user's latest status events, newest first."""
    return good(
        store.array(
            "SELECT json FROM status WHERE account = ? ORDER BY time DESC, tx DESC, row LIMIT ?",
            store.account(asked["user"]),
            asked["max_rows"],
        )
    )


def builder_orders_by_time(store: Store, asked: Asked) -> Answer:
    """Give the status events of orders placed via a builder, oldest first."""
    after, key = asked.from_here
    return good(
        store.array(
            f"SELECT routed FROM status WHERE builder = ? AND (time, tx) {after} (?, ?) "
            "AND time <= ? ORDER BY time, tx, executed LIMIT ?",
            asked["builder"],
            *key,
            asked.end,
            _PAGE,
        )
    )
