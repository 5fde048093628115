"""The simulated exchange: all that events read and change, and the effect of each perp fill on it.

Money is in micro-dollars, sizes in lots of ``10**-sz_decimals``, prices in units of
``10**-px_decimals``, tokens of the spot wallets in units of ``10**-WEI``; all whole numbers.
"""

import heapq
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from toolkit.contract import records as r
from toolkit.contract.source_tables import AccountSnapshot, Approval, TwapSnapshot, Valuation
from toolkit.rules.closed_pnl import apply_perp_fill, entry_price
from toolkit.rules.directions import SETTLEMENT
from toolkit.rules.spot_cost import WEI
from toolkit.simulation.engine.accounts import (
    Account,
    AccountTotals,
    FundingTotals,
    Ticket,
    TokenBalance,
    Twap,
    order_record,
)
from toolkit.simulation.engine.prices import Prices
from toolkit.simulation.exact import decimal_text, money_text, rounded_share, transaction_hash
from toolkit.simulation.markets import COLLATERAL, DEXES, NATIVE_TOKEN, PERPS
from toolkit.times import HOUR, MINUTE

DEX_INDEX = [DEXES.index(perp.dex) for perp in PERPS]
"""Index of a perp -> index of its dex."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """The time of a block, an index in this block, and a hash."""

    time: int
    index: int
    hash: str


class Exchange:
    """Positions, balances, books, tables, and the events that are still to come.

    - ``seed``: seed of the world
    - ``start_ms``: start of its history
    - ``accounts``: all accounts
    - ``prices``: all prices
    - ``builders``: addresses of the builders
    - ``ids``: the first number of the ids that it may use, and the step to the next, so that
      combined worlds share no id; it numbers orders, trades, and transactions within a block
    """

    def __init__(
        self,
        seed: int,
        start_ms: int,
        accounts: list[Account],
        prices: Prices,
        builders: Sequence[str] = (),
        ids: tuple[int, int] = (0, 1),
    ) -> None:
        self.seed, self.start_ms = seed, start_ms
        self.hours = (prices.mid.shape[1] - 1) // 60
        self.end_ms = start_ms + self.hours * HOUR
        self.accounts, self.prices, self.builders = accounts, prices, list(builders)
        # One entry for each perp; the keys are numbers of accounts:
        self.positions: list[dict[int, tuple[int, int]]] = [{} for _ in PERPS]
        self.margins: list[dict[int, int]] = [{} for _ in PERPS]
        self.funding_totals = [defaultdict[int, FundingTotals](FundingTotals) for _ in PERPS]
        # One entry for each perp: the resting sells and buys, best first:
        self.asks: list[list[Ticket]] = [[] for _ in PERPS]
        self.bids: list[list[Ticket]] = [[] for _ in PERPS]
        self.far_orders: list[Ticket] = []
        # One entry for each account:
        self.balances = [[0] * len(DEXES) for _ in accounts]
        self.wallets = [defaultdict[str, TokenBalance](TokenBalance) for _ in accounts]
        self.totals = [AccountTotals() for _ in accounts]
        self.approved: list[set[int]] = [set() for _ in accounts]
        self.valuations: list[list[Valuation]] = [[] for _ in accounts]
        self.makers = [account for account in accounts if account.strategy == "maker"]
        self.traders = [
            [account for account in accounts if account.activity and coin in account.coins]
            for coin in range(len(PERPS))
        ]
        self.delisted: set[int] = set()  # perps that are no longer traded
        self.settled: set[str] = set()  # outcome markets that have ended
        self.twaps: list[Twap] = []  # all that were registered so far
        self.fills: list[tuple[str, r.Fill]] = []
        self.funding: list[r.FundingRow] = []
        self.ledger: list[tuple[str, r.LedgerUpdate]] = []
        self.orders: list[tuple[str, r.OrderStatus]] = []
        self.approvals: list[Approval] = []
        self.account_snapshots: list[AccountSnapshot] = []
        self.twap_snapshots: list[TwapSnapshot] = []
        self.rng = random.Random(seed)  # its `random` is the same on every machine
        self._events: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._event_count = self._transactions = 0
        self._last = (0, 0)
        self._first_id, self._id_step = ids
        self._oid = 140_000_000_000 + self._first_id
        self._tid = 300_000_000_000_000 + self._first_id

    def schedule(self, time: int, event: Callable[..., None], *arguments: Any) -> None:
        """Schedule an event: a function of the exchange, the time, and more arguments.

        Of several events at one time, the one that was scheduled first happens first.
        """
        self._event_count += 1
        heapq.heappush(self._events, (time, self._event_count, event, arguments))

    def run_events(self) -> None:
        """Apply all events up to the end of history, and sort the status events of orders."""
        while self._events and self._events[0][0] <= self.end_ms:
            time, _, event, arguments = heapq.heappop(self._events)
            event(self, time, *arguments)
        self.orders.sort(key=lambda row: (row[1].status_timestamp, row[1].tx_index))

    @property
    def spot_maker(self) -> Account:
        """The account that quotes the spot and outcome markets."""
        return next(account for account in self.accounts if account.strategy == "spot maker")

    def next_transaction(self, time: int) -> Transaction:
        """Return the next transaction; within a block the index rises."""
        step = 1 + int(self.rng.random() * 40)
        last_time, last_index = self._last
        index = last_index + step if time == last_time else step
        self._last = (time, index)
        self._transactions += 1
        number = self._first_id + index * self._id_step
        return Transaction(time, number, transaction_hash(self.seed, self._transactions))

    def next_oid(self) -> int:
        """Return a new order id."""
        self._oid += self._id_step * (1 + int(self.rng.random() * 40))
        return self._oid

    def next_tid(self) -> int:
        """Return a new trade id."""
        self._tid += self._id_step * (1 + int(self.rng.random() * 1_000))
        return self._tid

    def record_status(self, ticket: Ticket, status: str, time: int, tx_index: int) -> None:
        """Record that the status of an order has changed."""
        event = r.OrderStatus(
            builder=ticket.builder or UNSET,
            builder_fee=ticket.builder_bps or UNSET,
            tx_index=tx_index,
            status=status,
            status_timestamp=time,
            order=order_record(ticket),
        )
        self.orders.append((ticket.account.address, event))

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

    def mark_positions(self, time: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield every position: account, perp, signed notional at mark, unrealised PnL.

        The PnL uses the entry price that closing uses. Equity is then the sum of what the
        account's own tables say, to the last digit.
        """
        # ASSUMED: Unrealised PnL uses the truncated entry price, the same as closed PnL.
        for coin, positions in enumerate(self.positions):
            mark = self.mark_price(coin, time)
            for account, (size, entry) in positions.items():
                yield account, coin, size * mark, size * (mark - entry_price(size, entry))

    def unrealised_pnl(self, time: int) -> list[int]:
        """Return each account's unrealised PnL over all perps."""
        total = [0] * len(self.accounts)
        for account, _, _, pnl in self.mark_positions(time):
            total[account] += pnl
        return total

    def free_collateral(self, account: int, dex: int, time: int) -> int:
        """Return what an account has on a dex beyond the margins of its positions.

        This amount may be withdrawn, or set aside for an isolated position. It is negative if
        the cross positions have too little margin.
        """
        owner, marks = self.accounts[account], self.prices.mark[:, self.minute_of(time)]
        left = self.balances[account][dex]
        for coin, size, entry in self.iterate_positions(account, dex):
            if owner.is_isolated(coin):
                left -= self.margins[coin][account]
                continue
            mark = int(marks[coin])
            left += size * (mark - entry) - owner.initial_margin(coin, abs(size) * mark)
        return left

    def has_margin(self, coin: int, ticket: Ticket, px: int, time: int) -> bool:
        """Return whether there is margin for the part of an order that opens at a price."""
        account = ticket.account
        size = self.position_size(coin, account.number)
        lots = _opened_size(size, ticket.sign * ticket.left)
        margin = account.initial_margin(coin, lots * px)
        return not lots or margin <= self.free_collateral(account.number, DEX_INDEX[coin], time)

    def write_ledger(
        self, tx: Transaction, delta: r.LedgerDelta, changes: Mapping[int, int], dex: int = 0
    ) -> None:
        """Write one update to the ledger of each account.

        - ``changes``: account -> micro-dollars that the update adds to its perp balance
        - ``dex``: index of the dex with this balance
        """
        update = r.LedgerUpdate(time=tx.time, hash=tx.hash, delta=delta)
        for account, usdc in changes.items():
            self.balances[account][dex] += usdc
            self.totals[account].ledger += usdc
            self.ledger.append((self.accounts[account].address, update))

    def match_orders(
        self, tx: Transaction, coin: int, taker: Ticket, maker: Ticket, size: int
    ) -> None:
        """Fill two orders against each other at the maker's price.

        - ``tx``: the taker's transaction
        - ``coin``: index of the perp
        - ``taker``, ``maker``: both orders; they must be of different accounts
        - ``size``: unsigned size of the trade
        """
        tid = self.next_tid()
        for order in (maker, taker):
            self.fill_order(tx, coin, order, taker, size, maker.px, tid)
        if not maker.left:
            self.record_status(maker, "filled", tx.time, tx.index)

    def fill_order(
        self, tx: Transaction, coin: int, order: Ticket, taker: Ticket, lots: int, px: int, tid: int
    ) -> None:
        """Apply one side of a trade to its account, and write its row.

        - ``tx``, ``coin``, ``taker``: as in `match_orders`
        - ``order``: the order, of the maker or the taker; its open size shrinks
        - ``lots``, ``px``, ``tid``: unsigned size, price and id of the trade
        """
        crossed, liquidation = order is taker, taker.liquidation
        perp, account, positions = PERPS[coin], order.account, self.positions[coin]
        number, dex, change = account.number, DEX_INDEX[coin], order.sign * lots
        size, entry = positions.get(number, (0, 0))
        closed, after, entry = apply_perp_fill(size, entry, change, px)
        if (funding := self.funding_totals[coin].get(number)) is not None:
            funding.since_change = 0
            if size * after <= 0:
                funding.since_open = 0
        if after:
            positions[number] = (after, entry)
        else:
            positions.pop(number, None)
        order.left -= lots
        order.notional += lots * px
        # Fees are in millionths of the dex's collateral token (docs/live_service.md, section 6).
        # ASSUMED: The exchange rounds each part of a fee to a millionth of a dollar, half away from
        # zero.
        notional = 0 if order.direction == SETTLEMENT else lots * px
        own = rounded_share(
            notional, account.taker_micro if crossed else account.maker_micro, 10**6
        )
        bps = order.builder_bps
        builder_fee = rounded_share(notional, bps, 10_000) if bps else 0
        # ASSUMED: On a builder-deployed dex, the deployer fee equals the fee of the exchange.
        deployer_fee = max(own, 0) if dex else 0
        fee = own + builder_fee + deployer_fee
        self.balances[number][dex] += closed - fee
        totals = self.totals[number]
        totals.closed += closed
        totals.fees += fee
        if account.is_isolated(coin):
            margin = self.margins[coin].pop(number, 0)
            if after:
                opened = _opened_size(size, change)
                if opened < lots:
                    margin -= rounded_share(margin, lots - opened, abs(size))
                self.margins[coin][number] = margin
                required = account.initial_margin(coin, opened * px)
                free = self.free_collateral(number, dex, tx.time)
                self.margins[coin][number] += max(0, min(required, free))
        # Priority gas is paid once, with the first fill of an order.
        gas, order.priority_gas = order.priority_gas, 0
        if gas:
            self.wallets[number][NATIVE_TOKEN].gas += gas
        # ASSUMED: In a backstop liquidation of an isolated position, the fills of the liquidated
        # account have no `liquidatedUser`. Their `dir` already shows the liquidation.
        if liquidation and order.direction.startswith("Liquidated Isolated"):
            liquidation = replace(liquidation, liquidated_user=UNSET)
        decimals = perp.sz_decimals
        side, other_side = ("Long", "Short") if change > 0 else ("Short", "Long")
        direction = f"Open {side}" if size * change >= 0 else f"Close {other_side}"
        if size * after < 0:
            direction = f"{other_side} > {side}"
        fill = r.Fill(
            coin=perp.coin,
            px=decimal_text(px, perp.px_decimals),
            sz=decimal_text(lots, decimals),
            side="B" if order.is_buy else "A",
            time=tx.time,
            start_position=decimal_text(size, decimals),
            dir=order.direction or direction,
            closed_pnl=money_text(closed),
            hash=tx.hash,
            oid=order.oid,
            crossed=crossed,
            fee=money_text(fee),
            tid=tid,
            cloid=order.cloid or UNSET,
            builder_fee=money_text(builder_fee) if bps else UNSET,
            deployer_fee=money_text(deployer_fee) if dex else UNSET,
            priority_gas=decimal_text(gas, WEI) if gas else UNSET,
            fee_token=COLLATERAL[perp.dex],
            builder=order.builder or UNSET,
            twap_id=order.twap_id,
            tx_index=tx.index,
            liquidation=liquidation or UNSET,
            # ASSUMED: The escrow of a fee trial is a part of the fee, the same as the builder fee.
            fee_trial_escrow=money_text(fee // 2) if account.has_fee_trial and crossed else UNSET,
        )
        self.fills.append((account.address, fill))


def _opened_size(size: int, change: int) -> int:
    """Return the size by which a change opens or increases a position.

    >>> _opened_size(0, -3), _opened_size(2, 1), _opened_size(5, -3), _opened_size(5, -8)
    (3, 1, 0, 3)
    """
    return abs(change) if size * change >= 0 else max(0, abs(change) - abs(size))
