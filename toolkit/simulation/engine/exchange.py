"""The state of the simulated exchange, and the effect of each fill on it.

Money is in micro-dollars, sizes in lots of ``10**-sz_decimals``, prices in units of
``10**-px_decimals``, tokens of the spot wallets in units of ``10**-WEI``; all whole numbers.
"""

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from toolkit.contract.records import Fill, FundingRow, LedgerDelta, LedgerUpdate, Liquidation
from toolkit.contract.source_tables import Approval
from toolkit.rules.closed_pnl import apply_perp_fill, entry_price
from toolkit.rules.spot_cost import WEI
from toolkit.simulation.engine.accounts import Account, FundingTotals, PerpTotals, TokenBalance
from toolkit.simulation.engine.margin import (
    account_leverage,
    initial_margin,
    is_isolated,
    opened_size,
    released_margin,
)
from toolkit.simulation.engine.orders import Journal, Ticket
from toolkit.simulation.engine.prices import Prices
from toolkit.simulation.markets import COLLATERAL, DEXES, NATIVE_TOKEN, PERPS
from toolkit.simulation.quantities import decimal_text, money_text, rounded_share
from toolkit.simulation.random_draws import transaction_hash
from toolkit.times import MINUTE

DEX_INDEX = [DEXES.index(perp.dex) for perp in PERPS]
"""Index of a perp -> index of its dex."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """The time of a block, an index in this block, and a hash."""

    time: int
    index: int
    hash: str


@dataclass(frozen=True, slots=True)
class IdSequence:
    """Every `step`-th id from `first` on, so that combined worlds share no id.

    It numbers orders, trades, and transactions within a block.
    """

    first: int = 0
    step: int = 1


ALL_IDS = IdSequence()


class Exchange:
    """Positions, balances, and the tables that trading fills.

    - ``seed``: seed of the world
    - ``start_ms``: start of its history
    - ``accounts``: all accounts
    - ``prices``: all prices
    - ``ids``: the ids that it may use
    """

    def __init__(
        self,
        seed: int,
        start_ms: int,
        accounts: list[Account],
        prices: Prices,
        ids: IdSequence = ALL_IDS,
    ) -> None:
        self.seed = seed
        self.start_ms = start_ms
        self.end_ms = start_ms + (prices.mid.shape[1] - 1) * MINUTE
        self.accounts = accounts
        self.prices = prices
        # One dict for each perp, with the number of the account as key:
        self.positions: list[dict[int, tuple[int, int]]] = [{} for _ in PERPS]
        self.margins: list[dict[int, int]] = [{} for _ in PERPS]
        self.funding_totals = [defaultdict[int, FundingTotals](FundingTotals) for _ in PERPS]
        # One entry for each account:
        self.balances = [[0] * len(DEXES) for _ in accounts]
        self.wallets = [defaultdict[str, TokenBalance](TokenBalance) for _ in accounts]
        self.totals = [PerpTotals() for _ in accounts]
        self.fills: list[tuple[str, Fill]] = []
        self.funding: list[FundingRow] = []
        self.ledger: list[tuple[str, LedgerUpdate]] = []
        self.journal = Journal()
        self.approvals: list[Approval] = []
        self.approved: dict[int, set[int]] = defaultdict(set)
        self.rng = random.Random(seed)  # its `random` is the same on every machine
        self._transactions = 0
        self._last = (0, 0)
        self._ids = ids
        self._oid = 140_000_000_000 + ids.first
        self._tid = 300_000_000_000_000 + ids.first

    def next_transaction(self, time: int) -> Transaction:
        """Return the next transaction; within a block the index rises."""
        step = 1 + int(self.rng.random() * 40)
        last_time, last_index = self._last
        index = last_index + step if time == last_time else step
        self._last = (time, index)
        self._transactions += 1
        number = self._ids.first + index * self._ids.step
        return Transaction(time, number, transaction_hash(self.seed, self._transactions))

    def next_oid(self) -> int:
        """Return a new order id."""
        self._oid += self._ids.step * (1 + int(self.rng.random() * 40))
        return self._oid

    def next_tid(self) -> int:
        """Return a new trade id."""
        self._tid += self._ids.step * (1 + int(self.rng.random() * 1_000))
        return self._tid

    def minute_of(self, time: int) -> int:
        """Return the column of `Prices` for a time."""
        return (time - self.start_ms) // MINUTE

    def mark_price(self, coin: int, time: int) -> int:
        """Return the mark price of a perp at a time."""
        return int(self.prices.mark[coin, self.minute_of(time)])

    def best_price(self, coin: int, time: int, is_buy: bool) -> int:
        """Return the best price that a taker meets."""
        side = self.prices.ask if is_buy else self.prices.bid
        return int(side[coin, self.minute_of(time)])

    def position_size(self, coin: int, account: int) -> int:
        """Return the signed size of an account's position, in lots."""
        return self.positions[coin].get(account, (0, 0))[0]

    def iterate_positions(self, account: int, dex: int) -> Iterator[tuple[int, int, int]]:
        """Yield an account's positions on a dex: perp, signed size, truncated entry price."""
        for coin, positions in enumerate(self.positions):
            if DEX_INDEX[coin] == dex and account in positions:
                size, entry = positions[account]
                yield coin, size, entry_price(size, entry)

    def unrealised_pnl(self, account: int, dex: int, minute: int = -1) -> int:
        """Return the unrealised PnL at a minute's mark, with the entry price that closing uses.

        Equity is then the sum of what the account's own tables say, to the last digit.
        """
        # ASSUMED: Unrealised PnL uses the truncated entry price, the same as closed PnL.
        mark = self.prices.mark
        return sum(
            size * (int(mark[coin, minute]) - entry)
            for coin, size, entry in self.iterate_positions(account, dex)
        )

    def free_collateral(self, account: int, dex: int, time: int) -> int:
        """Return what an account has on a dex beyond the margins of its positions.

        This amount may be withdrawn, or set aside for an isolated position. It is negative if
        the cross positions have too little margin.
        """
        owner, marks = self.accounts[account], self.prices.mark[:, self.minute_of(time)]
        left = self.balances[account][dex]
        for coin, size, entry in self.iterate_positions(account, dex):
            if is_isolated(owner, coin):
                left -= self.margins[coin][account]
                continue
            mark = int(marks[coin])
            margin = initial_margin(abs(size) * mark, account_leverage(owner, coin))
            left += size * (mark - entry) - margin
        return left

    def has_margin(self, coin: int, ticket: Ticket, px: int, time: int) -> bool:
        """Return whether there is margin for the part of an order that opens at a price."""
        account = ticket.account
        size = self.position_size(coin, account.number)
        lots = opened_size(size, ticket.sign * ticket.left)
        margin = initial_margin(lots * px, account_leverage(account, coin))
        return not lots or margin <= self.free_collateral(account.number, DEX_INDEX[coin], time)

    def add_dollars(self, account: int, usdc: int, dex: int = 0) -> None:
        """Add micro-dollars to an account's perp balance on a dex; a negative amount removes."""
        self.balances[account][dex] += usdc
        self.totals[account].ledger += usdc

    def add_tokens(self, account: int, token: str, amount: int) -> None:
        """Add units of 1e-8 tokens to an account's spot wallet; a negative amount removes."""
        self.wallets[account][token].ledger += amount

    def write_ledger(self, tx: Transaction, delta: LedgerDelta, *accounts: int) -> None:
        """Write one update to the ledger of each account, once."""
        update = LedgerUpdate(time=tx.time, hash=tx.hash, delta=delta)
        for account in dict.fromkeys(accounts):
            self.ledger.append((self.accounts[account].address, update))

    def match_orders(
        self,
        tx: Transaction,
        coin: int,
        taker: Ticket,
        maker: Ticket,
        size: int,
        directions: tuple[str, str] = ("", ""),
    ) -> None:
        """Fill two orders against each other at the maker's price.

        - ``tx``: the taker's transaction
        - ``coin``: index of the perp
        - ``taker``, ``maker``: both orders; they must be of different accounts
        - ``size``: unsigned size of the trade
        - ``directions``: the `dir` of the taker's and of the maker's fill, if it is no plain trade
        """
        tid = self.next_tid()
        liquidation = taker.liquidation
        change = taker.sign * size
        self._fill_order(tx, coin, maker, -change, maker.px, tid, False, directions[1], liquidation)
        self._fill_order(tx, coin, taker, change, maker.px, tid, True, directions[0], liquidation)
        for ticket in (taker, maker):
            ticket.left -= size
            ticket.notional += size * maker.px
        if not maker.left:
            self.journal.record_status(maker, "filled", tx.time, tx.index)

    def settle_position(self, tx: Transaction, coin: int, ticket: Ticket) -> None:
        """Close a position at the order's price without another side and without fees."""
        self._fill_order(
            tx, coin, ticket, ticket.sign * ticket.left, ticket.px, self.next_tid(), True,
            "Settlement", is_free=True,
        )  # fmt: skip
        ticket.left = 0

    def _fill_order(
        self,
        tx: Transaction,
        coin: int,
        ticket: Ticket,
        change: int,
        px: int,
        tid: int,
        crossed: bool,
        direction: str,
        liquidation: Liquidation | None = None,
        is_free: bool = False,
    ) -> None:
        """Apply one side of a trade to its account, and write its row."""
        perp, account = PERPS[coin], ticket.account
        size, closed = self._change_position(coin, account.number, change, px)
        notional = 0 if is_free else abs(change) * px
        fee, builder_fee, deployer_fee = _perp_fees(notional, ticket, crossed, DEX_INDEX[coin] > 0)
        self.balances[account.number][DEX_INDEX[coin]] += closed - fee
        totals = self.totals[account.number]
        totals.closed += closed
        totals.fees += fee
        if is_isolated(account, coin):
            self._adjust_margin(coin, account, size, change, px, tx.time)
        # Priority gas is paid once, with the first fill of an order.
        gas, ticket.priority_gas = ticket.priority_gas, 0
        if gas:
            self.wallets[account.number][NATIVE_TOKEN].gas += gas
        decimals = perp.sz_decimals
        fill = Fill(
            coin=perp.coin,
            px=decimal_text(px, perp.px_decimals),
            sz=decimal_text(abs(change), decimals),
            side="B" if change > 0 else "A",
            time=tx.time,
            start_position=decimal_text(size, decimals),
            dir=direction or _plain_direction(size, change),
            closed_pnl=money_text(closed),
            hash=tx.hash,
            oid=ticket.oid,
            crossed=crossed,
            fee=money_text(fee),
            tid=tid,
            cloid=ticket.cloid or UNSET,
            builder_fee=money_text(builder_fee) if ticket.builder_bps else UNSET,
            deployer_fee=money_text(deployer_fee) if deployer_fee is not None else UNSET,
            priority_gas=decimal_text(gas, WEI) if gas else UNSET,
            fee_token=COLLATERAL[perp.dex],
            builder=ticket.builder or UNSET,
            twap_id=ticket.twap_id,
            tx_index=tx.index,
            liquidation=_visible_liquidation(liquidation, direction),
            # ASSUMED: The escrow of a fee trial is a part of the fee, the same as the builder fee.
            fee_trial_escrow=money_text(fee // 2) if account.has_fee_trial and crossed else UNSET,
        )
        self.fills.append((account.address, fill))

    def _change_position(self, coin: int, account: int, change: int, px: int) -> tuple[int, int]:
        """Change a position; return its size before, and the PnL that the change closes."""
        positions = self.positions[coin]
        size, entry = positions.get(account, (0, 0))
        closed, new_size, new_entry = apply_perp_fill(size, entry, change, px)
        if (funding := self.funding_totals[coin].get(account)) is not None:
            funding.since_change = 0
            if size * new_size <= 0:
                funding.since_open = 0
        if new_size:
            positions[account] = (new_size, new_entry)
        else:
            positions.pop(account, None)
        return size, closed

    def _adjust_margin(
        self, coin: int, account: Account, size: int, change: int, px: int, time: int
    ) -> None:
        """Add margin to an isolated position that opens, or take it out of one that closes."""
        margins, number = self.margins[coin], account.number
        margin = margins.pop(number, 0)
        if size + change:
            margins[number] = margin - released_margin(margin, size, change)
            if lots := opened_size(size, change):
                required = initial_margin(lots * px, account_leverage(account, coin))
                free = self.free_collateral(number, DEX_INDEX[coin], time)
                margins[number] += max(0, min(required, free))


def _perp_fees(
    notional: int, ticket: Ticket, crossed: bool, is_deployed: bool
) -> tuple[int, int, int | None]:
    """Return the total fee of a fill, and the builder's and the deployer's part of it.

    - ``notional``: price times size, micro-dollars
    - ``ticket``: the order, with its owner and its builder
    - ``crossed``: whether it is the taker's
    - ``is_deployed``: whether a builder has deployed the dex

    Returns: millionths of the dex's collateral token (docs/live_service.md, section 6); negative is
    a rebate. The deployer's part is None on the native dex.
    """
    # ASSUMED: The exchange rounds each part of a fee to a millionth of a dollar, half away from
    # zero.
    # ASSUMED: On a builder-deployed dex, the deployer fee equals the fee of the exchange.
    micro = ticket.account.taker_micro if crossed else ticket.account.maker_micro
    own = rounded_share(notional, micro, 10**6)
    builder_fee = rounded_share(notional, ticket.builder_bps, 10_000) if ticket.builder_bps else 0
    if not is_deployed:
        return own + builder_fee, builder_fee, None
    deployer_fee = max(own, 0)
    return own + builder_fee + deployer_fee, builder_fee, deployer_fee


def _visible_liquidation(
    liquidation: Liquidation | None, direction: str
) -> Liquidation | UnsetType:
    """Return the liquidation as one side's fill shows it."""
    if liquidation is None:
        return UNSET
    # ASSUMED: In a backstop liquidation of an isolated position, the fills of the liquidated
    # account have no `liquidatedUser`. Their `dir` already shows the liquidation.
    if direction.startswith("Liquidated Isolated"):
        return replace(liquidation, liquidated_user=UNSET)
    return liquidation


def _plain_direction(size: int, change: int) -> str:
    if size == 0 or (size > 0) == (change > 0):
        return "Open Long" if change > 0 else "Open Short"
    if abs(change) <= abs(size):
        return "Close Long" if size > 0 else "Close Short"
    return "Long > Short" if size > 0 else "Short > Long"
