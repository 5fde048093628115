"""Orders and TWAP orders."""

from dataclasses import dataclass, field

from msgspec import UNSET

from toolkit.contract.records import Liquidation, Order
from toolkit.rules.directions import SPOT_DUST
from toolkit.rules.twaps import SLICE_MS
from toolkit.simulation.engine.accounts import Account
from toolkit.simulation.exact import decimal_text
from toolkit.simulation.markets import Pair, Perp
from toolkit.times import SECOND


@dataclass(slots=True)
class Ticket:
    """An order as it was placed, and how much of it is still open.

    - ``account``: the owner
    - ``market``: the market
    - ``oid``: its id
    - ``is_buy``: its side
    - ``px``, ``size``, ``left``: limit price, original size, and open size
    - ``time``: when it was placed, in milliseconds
    - ``kind``, ``tif``: type and time in force, in the exchange's words
    - ``reduce_only``, ``is_position_tpsl``: flags
    - ``trigger_px``: price at which it becomes active; 0 for plain orders
    - ``trigger_condition``: the same in words
    - ``children``: its take-profit and stop-loss orders
    - ``cloid``: client order id
    - ``builder``, ``builder_bps``: the builder that routes it, and its fee
    - ``twap_id``: the TWAP that it is a slice of
    - ``priority_gas``: priority gas paid with its first fill, in units of 1e-8 of the native token
    - ``notional``: the notional filled so far: price times size
    - ``direction``: the `dir` of its fills, if they are no plain trades
    - ``liquidation``: the liquidation that placed it
    """

    account: Account
    market: Perp | Pair
    oid: int
    is_buy: bool
    px: int
    size: int
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
    direction: str = ""
    liquidation: Liquidation | None = None
    left: int = field(init=False)

    def __post_init__(self) -> None:
        self.left = self.size

    @property
    def sign(self) -> int:
        """1 for a buy, -1 for a sell."""
        return 1 if self.is_buy else -1


@dataclass(slots=True, kw_only=True)
class Twap:
    """One TWAP order.

    - ``number``: its id, unique per user
    - ``account``: the owner
    - ``coin``: index of the perp
    - ``is_buy``, ``reduce_only``, ``randomize``: side and flags
    - ``total``, ``executed``: sizes in lots
    - ``executed_ntl``: micro-dollars
    - ``duration_secs``, ``start``: how long it runs once active, and when it was registered, in
      milliseconds
    - ``stop_px``, ``trigger_px``: prices, 0 if there is none
    - ``trigger_above``: whether it activates above the trigger price
    - ``waiting``: whether it is registered but not yet active
    - ``cancel_at``: when its owner cancels it; 0 for never
    - ``slice_number``, ``next_slice``: number of finished slices, and the time of the next one
    - ``ended``: whether it has ended
    """

    number: int
    account: Account
    coin: int
    is_buy: bool
    total: int
    duration_secs: int
    start: int
    reduce_only: bool = False
    randomize: bool = False
    stop_px: int = 0
    trigger_px: int = 0
    trigger_above: bool = True
    waiting: bool = False
    cancel_at: int = 0
    executed: int = 0
    executed_ntl: int = 0
    slice_number: int = 0
    next_slice: int = 0
    ended: bool = False

    @property
    def slice_count(self) -> int:
        """The number of its slices."""
        return max(1, self.duration_secs * SECOND // SLICE_MS)


def order_record(ticket: Ticket) -> Order:
    """Return the record of an order as it is now."""
    market = ticket.market
    decimals = market.sz_decimals
    trigger_px = decimal_text(ticket.trigger_px, market.px_decimals) if ticket.trigger_px else "0.0"
    return Order(
        coin=market.coin,
        side="B" if ticket.is_buy else "A",
        limit_px=decimal_text(ticket.px, market.px_decimals),
        sz=decimal_text(ticket.left, decimals),
        oid=ticket.oid,
        timestamp=ticket.time,
        trigger_condition=ticket.trigger_condition,
        is_trigger=ticket.trigger_px > 0,
        trigger_px=trigger_px,
        children=[order_record(child) for child in ticket.children],
        is_position_tpsl=ticket.is_position_tpsl,
        reduce_only=ticket.reduce_only,
        order_type=ticket.kind,
        orig_sz=decimal_text(ticket.size, decimals),
        tif=UNSET if ticket.kind == SPOT_DUST else ticket.tif,
        cloid=ticket.cloid,
    )
