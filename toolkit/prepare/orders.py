"""Status events of orders: each event once, in the order of an order's life.

An order id names one order of the whole exchange. Several answers may contain the same event, which
then counts once. Events that share a millisecond and a transaction are sorted in the order of an
order's life: placed, triggered, ended.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.arrays import Flags, Ints
from toolkit.contract.order_states import order_state_group
from toolkit.prepare.door import Frame, Names, Table


@dataclass(frozen=True)
class Events:
    """Status events, by order and in the order of time; arrays have one value for each event.

    - ``table``: the frame of the events
    - ``rows``: their places in the table
    - ``oid``, ``ms``: order and time
    - ``status``: their status, with the names in order
    """

    table: Table
    rows: Ints
    oid: Ints
    ms: Ints
    status: Names

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, places: Any) -> "Events":
        """Return some of the events."""
        return Events(
            self.table, self.rows[places], self.oid[places], self.ms[places],
            self.status.take(places),
        )  # fmt: skip

    def is_first(self) -> Flags:
        """Return which events are the first of their order."""
        return np.append(True, self.oid[1:] != self.oid[:-1])[: len(self)]

    def is_last(self) -> Flags:
        """Return which events are the last of their order."""
        return np.append(self.oid[1:] != self.oid[:-1], True)[-len(self) or 1 :]

    def groups(self) -> Names:
        """Return the group of each status: filled, canceled, rejected, active or unknown."""
        return self.status.renamed(order_state_group)


def read_events(orders: Frame) -> Events:
    """Return the status events of orders.

    Raise `MissingColumns` if the frame lacks ``oid``, ``status`` or ``status_timestamp``.
    """
    table = Table(orders, "orders")
    table.require(("oid", "status", "status_timestamp"))
    oid, _ = table.ids("oid")
    tx, _ = table.ids("tx_index")
    ms, status = table.ms("status_timestamp"), table.text("status").sorted()
    # An order's life: placed, in progress, ended.
    has_ended = status.facts(lambda name: order_state_group(name) not in ("active", "unknown"))
    stage = np.where(status.facts("open".__eq__), 0, 1 + has_ended)
    order = np.lexsort((stage * len(status.values) + status.codes, tx, ms, oid))
    known = np.stack([oid, ms, tx, status.codes])[:, order]
    order = order[np.append(True, (known[:, 1:] != known[:, :-1]).any(axis=0))[: len(order)]]
    return Events(table, order, oid[order], ms[order], status.take(order))
