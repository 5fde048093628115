"""Which orders are open: those whose last status says so, with what is still open of them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Final

import msgspec

from toolkit.contract.records import Fill, Order, OrderStatus
from toolkit.service.merging import plain

__all__ = ["OPEN_STATES", "OpenOrders"]

OPEN_STATES: Final = frozenset({"open", "triggered"})
"""Last states of an order that rests on a book, or waits for its trigger."""


class OpenOrders:
    """Follows orders through their status events, then through the fills.

    Attributes
    ----------
    requests : dict of str to int
        Account -> how many orders it has placed and canceled itself.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, int], OrderStatus] = {}
        self._filled: defaultdict[tuple[str, int], Decimal] = defaultdict(Decimal)
        self._placed: set[int] = set()
        self.requests: defaultdict[str, int] = defaultdict(int)

    def watch_events(
        self, events: Iterable[tuple[str, OrderStatus]]
    ) -> Iterator[tuple[str, OrderStatus]]:
        """Yield status events in the order of execution, and note which orders are open."""
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

    def watch_fills(self, fills: Iterable[tuple[str, Fill]]) -> Iterator[tuple[str, Fill]]:
        """Yield fills, and note what they took of orders that are open."""
        still_open = self._last
        for user, fill in fills:
            event = still_open.get((user, fill.oid))
            if event is not None and _moment(fill) > _event_moment(event):
                self._filled[user, fill.oid] += Decimal(fill.sz)
            yield user, fill

    def by_user(self) -> dict[str, list[Order]]:
        """Return the open orders of each account, newest first."""
        found: defaultdict[str, list[Order]] = defaultdict(list)
        for (user, oid), event in self._last.items():
            order = event.order
            if taken := self._filled.get((user, oid)):
                left = Decimal(order.sz) - taken
                order = msgspec.structs.replace(order, sz=plain(left))
            found[user].append(order)
        return {user: sorted(orders, key=_newest_first) for user, orders in found.items()}


def _moment(fill: Fill) -> tuple[int, int]:
    return fill.time, fill.tx_index or 0


def _event_moment(event: OrderStatus) -> tuple[int, int]:
    return event.status_timestamp, event.tx_index or 0


def _newest_first(order: Order) -> tuple[int, int]:
    return -order.timestamp, -order.oid
