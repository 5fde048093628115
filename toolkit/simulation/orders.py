"""Orders, and the journal of what becomes of them."""

from dataclasses import dataclass, field
from typing import Protocol

from msgspec import UNSET

from toolkit.contract.records import Liquidation, Order, OrderStatus
from toolkit.simulation.accounts import Account
from toolkit.simulation.quantities import text

__all__ = ["DUST", "SLICE", "Journal", "Listed", "Ticket"]


DUST = "Spot Dust Conversion"
SLICE = "Twap Slice"
"""Kinds of orders that nobody placed by hand; conversions of dust lack a time in force."""


class Listed(Protocol):
    """What a market is to an order: a name and the decimals of its numbers."""

    @property
    def coin(self) -> str:
        """Name in requests."""

    @property
    def sz_decimals(self) -> int:
        """Decimals of sizes."""

    @property
    def px_decimals(self) -> int:
        """Decimals of prices."""


@dataclass(slots=True, kw_only=True)
class Ticket:
    """An order as it was placed, and how much of it is still open.

    Parameters
    ----------
    account : Account
        Who placed it.
    market : Listed
        Where.
    oid : int
        Its id.
    is_buy : bool
        Its side.
    px, size, left : int
        Limit price, original size, and what is still open.
    time : int
        When it was placed, in milliseconds.
    kind, tif : str, str or None
        Type and time in force, in the exchange's words.
    reduce_only, is_position_tpsl : bool
        Flags.
    trigger_px : int
        Price at which it becomes active; 0 for plain orders.
    trigger_condition : str
        The same in words.
    children : list of Ticket
        Take-profit and stop-loss orders that it brings along.
    cloid : str or None
        Client order id.
    builder, builder_bps : str or None, int
        The builder it is routed through, and its fee.
    twap_id : int or None
        The TWAP that it is a slice of.
    priority_gas : int
        Priority gas paid with its first fill, in units of 1e-8 of the native token.
    notional : int
        What has been filled, price times size.
    liquidation : Liquidation or None
        The liquidation that it is the order of.
    """

    account: Account
    market: Listed
    oid: int
    is_buy: bool
    px: int
    size: int
    left: int
    time: int
    kind: str = "Limit"
    tif: str | None = "Gtc"
    reduce_only: bool = False
    is_position_tpsl: bool = False
    trigger_px: int = 0
    trigger_condition: str = "N/A"
    children: list["Ticket"] = field(default_factory=list)
    cloid: str | None = None
    builder: str | None = None
    builder_bps: int = 0
    twap_id: int | None = None
    priority_gas: int = 0
    notional: int = 0
    liquidation: Liquidation | None = None

    @property
    def sign(self) -> int:
        """1 for a buy, -1 for a sell."""
        return 1 if self.is_buy else -1


class Journal:
    """Every change of an order's status, gathered as it happens and sorted at the end."""

    def __init__(self) -> None:
        self._entries: list[tuple[int, int, int, str, OrderStatus]] = []

    def record(self, ticket: Ticket, status: str, time: int, tx_index: int) -> None:
        """Write down that a status has changed."""
        event = OrderStatus(
            builder=ticket.builder or UNSET,
            builder_fee=ticket.builder_bps or UNSET,
            tx_index=tx_index,
            status=status,
            status_timestamp=time,
            order=_as_order(ticket),
        )
        key = (time, tx_index, len(self._entries))
        self._entries.append((*key, ticket.account.address, event))

    def events(self) -> list[tuple[str, OrderStatus]]:
        """Give all events by time and transaction."""
        self._entries.sort()
        return [(user, event) for _, _, _, user, event in self._entries]


def _as_order(ticket: Ticket) -> Order:
    market = ticket.market
    decimals = market.sz_decimals
    return Order(
        coin=market.coin,
        side="B" if ticket.is_buy else "A",
        limit_px=text(ticket.px, market.px_decimals),
        sz=text(ticket.left, decimals),
        oid=ticket.oid,
        timestamp=ticket.time,
        trigger_condition=ticket.trigger_condition,
        is_trigger=ticket.trigger_px > 0,
        trigger_px=text(ticket.trigger_px, market.px_decimals) if ticket.trigger_px else "0.0",
        children=[_as_order(child) for child in ticket.children],
        is_position_tpsl=ticket.is_position_tpsl,
        reduce_only=ticket.reduce_only,
        order_type=ticket.kind,
        orig_sz=text(ticket.size, decimals),
        tif=UNSET if ticket.kind == DUST else ticket.tif,
        cloid=ticket.cloid,
    )
