"""The open orders at the end of a history, with their remaining sizes."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Final

import msgspec

from toolkit.contract.records import Fill, Order, OrderStatus
from toolkit.service.decimals import format_decimal

OPEN_STATES: Final = frozenset({"open", "triggered"})
"""The last states of orders that rest on a book, or wait for their trigger."""


class OrderTracker:
    """The open orders, tracked through status events first and fills afterwards.

    Attributes
    ----------
    requests : dict of str to int
        Account -> number of orders that it has placed, and cancelled itself.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, int], OrderStatus] = {}
        self._filled: defaultdict[tuple[str, int], Decimal] = defaultdict(Decimal)
        self._placed: set[int] = set()
        self.requests: defaultdict[str, int] = defaultdict(int)

    def track_events(
        self, events: Iterable[tuple[str, OrderStatus]]
    ) -> Iterator[tuple[str, OrderStatus]]:
        """Track status events in the order of execution, and yield them unchanged."""
        for user, event in events:
            order = (user, event.order.oid)
            if event.status in OPEN_STATES:
                self._last[order] = event
            else:
                self._last.pop(order, None)
            if event.order.oid not in self._placed:
                self._placed.add(event.order.oid)
                self.requests[user] += 1
            if event.status == "canceled":
                self.requests[user] += 1
            yield user, event

    def track_fills(self, fills: Iterable[tuple[str, Fill]]) -> Iterator[tuple[str, Fill]]:
        """Subtract fills from the orders that are open, and yield the fills unchanged."""
        still_open = self._last
        for user, fill in fills:
            event = still_open.get((user, fill.oid))
            if event is not None and (fill.time, fill.tx_index or 0) > (
                event.status_timestamp,
                event.tx_index or 0,
            ):
                self._filled[user, fill.oid] += Decimal(fill.sz)
            yield user, fill

    def by_user(self) -> dict[str, list[Order]]:
        """Return the open orders of each account, newest first; recorded ones may lack fields."""
        by_user: defaultdict[str, list[Order]] = defaultdict(list)
        for (user, oid), event in self._last.items():
            order = event.order
            if order.sz and (filled := self._filled.get((user, oid))):
                remaining = Decimal(order.sz) - filled
                order = msgspec.structs.replace(order, sz=format_decimal(remaining))
            by_user[user].append(order)
        return {
            user: sorted(orders, key=lambda order: (-(order.timestamp or 0), -order.oid))
            for user, orders in by_user.items()
        }
