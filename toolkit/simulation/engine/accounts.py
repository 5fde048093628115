"""Accounts: what each may do, its fees and margins, its orders, and how its balances came about.

An isolated position has its own margin: money that is set aside from the account's cash on the
dex. Opening adds the notional over the leverage to it. Closing takes out the share that is
closed, and funding is paid from it. The equity of the position is this margin plus its unrealised
PnL. It is the `marginUsed` of its record, and the cross margin of the account does not contain
it. All other positions of an account on a dex share the rest of the cash. The maintenance margin
follows from the tiers of each perp: `toolkit.rules.margin`.
"""

from dataclasses import dataclass, field
from typing import Literal

from msgspec import UNSET

from toolkit.contract.records import Liquidation, Order
from toolkit.rules.directions import SPOT_DUST
from toolkit.rules.spot_cost import FLAT, CostBasis, adjust_balance
from toolkit.rules.twaps import SLICE_MS
from toolkit.simulation.exact import decimal_text, rounded_share
from toolkit.simulation.markets import PERPS, Pair, Perp
from toolkit.times import SECOND

Strategy = Literal[
    "maker", "spot maker", "trend", "reversion", "noise", "gambler", "hedger", "dormant"
]
"""How an account trades.

The spot maker quotes spot and outcome markets. Hedgers hold tokens and are short the same amount of
a perp. Dormant accounts trade on the first day only.
"""

UNIFIED = 2
"""From this mode on the collateral is in the spot wallet: 2 unified, 3 portfolio margin."""

PORTFOLIO_MARGIN = 3
"""The mode of portfolio margin."""

MAKER_MICRO = 150
"""Fee of resting orders of ordinary accounts, in millionths of the notional."""

TIERS = ((100_000_000, 300), (10_000_000, 350), (1_000_000, 400), (0, 450))
"""Volumes in USD, and the taker fee from there on, in millionths of the notional."""

REBATES = (-30, -20, -10)
"""Fees of market makers, in millionths of the notional."""


@dataclass(slots=True)
class Account:
    """The properties of one account, drawn before it trades.

    - ``number``: its index
    - ``address``: its address
    - ``strategy``: how it trades
    - ``funds``: first deposit, micro-dollars
    - ``leverage``: largest notional over funds
    - ``coins``: indices of the perps that it trades
    - ``activity``: how often it trades, relative to others
    - ``taker_micro``, ``maker_micro``: fees in millionths of the notional; negative is a rebate
    - ``builder``: the builder through which it prefers to route orders
    - ``uses_cloids``: whether it gives its orders client order ids
    - ``pays_priority``: whether it sometimes pays priority gas
    - ``sub_account_of``: the account that it belongs to
    - ``mode``: 0 Standard, 1 DexAbstraction, 2 Unified, 3 PortfolioMargin
    - ``spot_share``: percent of its funds that it keeps in its spot wallet; 0 if it trades no spot
    - ``uses_native``: whether it holds native tokens: to stake, to lend and to pay gas
    - ``uses_isolated``: whether each of its positions has its own margin, on every market
    - ``is_vault``: whether its money belongs to others
    - ``has_story``: whether it follows only its story; see `toolkit.simulation.agents.gamblers`
    - ``liquidated_by``: ``market`` or ``backstop`` if the story says how it is liquidated, else
      empty
    - ``has_fee_trial``: whether a part of its taker fees is held in escrow
    """

    number: int
    address: str
    strategy: Strategy
    funds: int
    leverage: float
    coins: list[int]
    maker_micro: int
    uses_cloids: bool
    activity: float = 0.0
    taker_micro: int = TIERS[0][1]
    builder: int | None = None
    pays_priority: bool = False
    sub_account_of: int | None = None
    mode: int = 0
    spot_share: int = 0
    uses_native: bool = False
    uses_isolated: bool = False
    is_vault: bool = False
    has_story: bool = False
    liquidated_by: str = ""
    has_fee_trial: bool = False

    def make_cloid(self, oid: int) -> str | None:
        """Return the client order id of an order, or None if the account uses none."""
        return f"0x{oid * 7919:032x}" if self.uses_cloids else None

    def is_isolated(self, coin: int) -> bool:
        """Return whether its position in a perp has its own margin."""
        return self.uses_isolated or PERPS[coin].only_isolated

    def perp_leverage(self, coin: int) -> int:
        """Return the leverage that it has set for a perp.

        Gamblers set the maximum of the perp. The others set 3 to 10, at most that of the highest
        tier.
        """
        # ASSUMED: Initial margin does not depend on the margin tier.
        perp = PERPS[coin]
        if self.strategy == "gambler":
            return perp.max_leverage
        return min(perp.tiers[-1][1], 3 + self.number % 8)

    def initial_margin(self, coin: int, notional: int) -> int:
        """Return the margin that opening requires: notional over leverage, to the micro-dollar."""
        return rounded_share(notional, 1, self.perp_leverage(coin))

    @property
    def trades_only_perps(self) -> bool:
        """Whether it trades no spot and is not a vault."""
        return not self.is_vault and not self.spot_share


@dataclass(slots=True)
class AccountTotals:
    """What an account has earned and paid on all its perps, in micro-dollars.

    `spot_flow` is the value that came into its spot wallet without a trade.
    """

    closed: int = 0
    funding: int = 0
    fees: int = 0
    ledger: int = 0
    spot_flow: int = 0


@dataclass(slots=True)
class FundingTotals:
    """The funding that an account has received in one perp, in micro-dollars."""

    all_time: int = 0
    since_open: int = 0
    since_change: int = 0


@dataclass(slots=True)
class TokenBalance:
    """The spot balance of one token and its components, in units of ``10**-WEI``.

    `basis` is the cost basis after the last fill, and `valued` the `ledger` at the last valuation.
    """

    ledger: int = 0
    traded: int = 0
    fees: int = 0
    gas: int = 0
    staked: int = 0
    valued: int = 0
    basis: CostBasis = FLAT

    @property
    def balance(self) -> int:
        """The amount in the wallet, without staked tokens."""
        return self.ledger + self.traded - self.fees - self.gas

    def current_basis(self, unit: int) -> CostBasis:
        """Return the cost basis of the present balance.

        - ``unit``: 1e-8 USD, in the units of costs
        """
        # ASSUMED: Between two fills, all transfers together count as one net change of the balance.
        return adjust_balance(self.basis, self.balance, tolerance=0, unit=unit)[1]


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
