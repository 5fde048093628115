"""The state of the simulated exchange, and what a trade does to it.

Money is in micro-dollars, sizes in lots of ``10**-sz_decimals``, prices in units of
``10**-px_decimals``, tokens of the spot wallets in units of ``10**-WEI``; all whole numbers.
"""

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from toolkit.contract.records import Fill, FundingRow, LedgerUpdate, Liquidation
from toolkit.contract.sources import Approval
from toolkit.rules.closed_pnl import entry_price, step
from toolkit.simulation.accounts import Account
from toolkit.simulation.draws import transaction_hash
from toolkit.simulation.fees import perp_fees
from toolkit.simulation.holdings import Funded, Holding, Totals
from toolkit.simulation.margins import is_isolated, leverage, margin_used, opened, taken_out
from toolkit.simulation.markets import COLLATERAL, DEXES, NATIVE_TOKEN, PERPS
from toolkit.simulation.orders import Journal, Ticket
from toolkit.simulation.prices import Prices
from toolkit.simulation.quantities import WEI, money, text

__all__ = ["DEX_OF", "EVERY_ID", "Exchange", "Ids", "Transaction"]

DEX_OF = [DEXES.index(perp.dex) for perp in PERPS]
"""Index of a perp -> index of its dex."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """Where something happened: a block's time, the index in the block, and the hash."""

    time: int
    index: int
    hash: str


@dataclass(frozen=True, slots=True)
class Ids:
    """Every `step`-th id from the `first` one: worlds that are put together have no id twice.

    This goes for orders and trades, and for transactions within a block.
    """

    first: int = 0
    step: int = 1


EVERY_ID = Ids()


class Exchange:
    """Positions, balances and the tables that trading fills.

    Parameters
    ----------
    seed : int
        Seed of the world.
    start_ms : int
        First moment of its history.
    accounts : list of Account
        Everybody.
    prices : Prices
        Every price.
    ids : Ids
        Which ids are its own.
    """

    def __init__(
        self,
        seed: int,
        start_ms: int,
        accounts: list[Account],
        prices: Prices,
        ids: Ids = EVERY_ID,
    ) -> None:
        self.seed = seed
        self.start_ms = start_ms
        self.end_ms = start_ms + (prices.mid.shape[1] - 1) * 60_000
        self.accounts = accounts
        self.prices = prices
        self.positions: list[dict[int, tuple[int, int]]] = [{} for _ in PERPS]
        self.margins: list[dict[int, int]] = [{} for _ in PERPS]
        self.funded: list[defaultdict[int, Funded]] = [defaultdict(Funded) for _ in PERPS]
        self.balances = [[0] * len(DEXES) for _ in accounts]
        self.wallets: list[defaultdict[str, Holding]] = [defaultdict(Holding) for _ in accounts]
        self.totals = [Totals() for _ in accounts]
        self.fills: list[tuple[str, Fill]] = []
        self.funding: list[FundingRow] = []
        self.ledger: list[tuple[str, LedgerUpdate]] = []
        self.journal = Journal()
        self.approvals: list[Approval] = []
        self.approved: dict[int, set[int]] = defaultdict(set)
        self.luck = random.Random(seed)  # its `random` is the same everywhere
        self._transactions = 0
        self._last = (0, 0)
        self._ids = ids
        self._oid = 140_000_000_000 + ids.first
        self._tid = 300_000_000_000_000 + ids.first

    def transaction(self, time: int) -> Transaction:
        """Open the next transaction; within a block the index rises."""
        step = 1 + int(self.luck.random() * 40)
        last_time, last_index = self._last
        index = last_index + step if time == last_time else step
        self._last = (time, index)
        self._transactions += 1
        number = self._ids.first + index * self._ids.step
        return Transaction(time, number, transaction_hash(self.seed, self._transactions))

    def next_oid(self) -> int:
        """Give an order id that no order has."""
        self._oid += self._ids.step * (1 + int(self.luck.random() * 40))
        return self._oid

    def next_tid(self) -> int:
        """Give a trade id that no trade has."""
        self._tid += self._ids.step * (1 + int(self.luck.random() * 1_000))
        return self._tid

    def minute(self, time: int) -> int:
        """Give the column of `Prices` that a time falls into."""
        return (time - self.start_ms) // 60_000

    def position(self, coin: int, account: int) -> int:
        """Give the signed size that an account holds, in lots."""
        return self.positions[coin].get(account, (0, 0))[0]

    def held(self, account: int, dex: int) -> Iterator[tuple[int, int, int]]:
        """Give an account's positions on a dex: perp, signed size, truncated entry price."""
        for coin, book in enumerate(self.positions):
            if DEX_OF[coin] == dex and account in book:
                size, entry = book[account]
                yield coin, size, entry_price(size, entry)

    def unrealised(self, account: int, dex: int, minute: int = -1) -> int:
        """Give the unrealised PnL at a minute's mark, by the entry price closing would use.

        Equity is then the sum of what the account's own tables say, to the last digit.
        """
        # ASSUMED: unrealised PnL rests on the truncated entry price of the closing rule.
        mark = self.prices.mark
        return sum(
            size * (int(mark[coin, minute]) - entry)
            for coin, size, entry in self.held(account, dex)
        )

    def free(self, account: int, dex: int, time: int) -> int:
        """Give what an account has on a dex beyond the margins of its positions.

        What may be withdrawn, or set aside for an isolated position; negative where the cross
        positions have too little.
        """
        owner, marks = self.accounts[account], self.prices.mark[:, self.minute(time)]
        left = self.balances[account][dex]
        for coin, size, entry in self.held(account, dex):
            if is_isolated(owner, coin):
                left -= self.margins[coin][account]
                continue
            mark = int(marks[coin])
            left += size * (mark - entry) - margin_used(abs(size) * mark, leverage(owner, coin))
        return left

    def trade(
        self,
        tx: Transaction,
        coin: int,
        taker: Ticket,
        maker: Ticket,
        size: int,
        directions: tuple[str, str] = ("", ""),
    ) -> None:
        """Let two orders meet at the maker's price.

        Parameters
        ----------
        tx : Transaction
            The taker's transaction.
        coin : int
            Index of the perp.
        taker, maker : Ticket
            Both orders; they must be of different accounts.
        size : int
            Size that changes hands, unsigned.
        directions : tuple of str
            What to call it on the taker's and on the maker's side, where it is no plain trade.
        """
        tid = self.next_tid()
        forced = taker.liquidation
        self._fill(tx, coin, maker, -taker.sign * size, maker.px, tid, False, directions[1], forced)
        self._fill(tx, coin, taker, taker.sign * size, maker.px, tid, True, directions[0], forced)
        for ticket in (taker, maker):
            ticket.left -= size
            ticket.notional += size * maker.px
        if not maker.left:
            self.journal.record(maker, "filled", tx.time, tx.index)

    def settle(self, tx: Transaction, coin: int, ticket: Ticket) -> None:
        """Close a position at the order's price without another side, and free of fees."""
        self._fill(
            tx, coin, ticket, ticket.sign * ticket.left, ticket.px, self.next_tid(), True,
            "Settlement", free=True,
        )  # fmt: skip
        ticket.left = 0

    def _fill(
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
        free: bool = False,
    ) -> None:
        """Do what one side of a trade does to its account, and write its row."""
        perp = PERPS[coin]
        size, closed = self._move(coin, ticket.account.number, change, px)
        notional = 0 if free else abs(change) * px
        fee, builder_fee, deployer_fee = perp_fees(notional, ticket, crossed, DEX_OF[coin] > 0)
        self._book(coin, ticket.account.number, closed, fee)
        if is_isolated(ticket.account, coin):
            self._set_aside(coin, ticket.account, size, change, px, tx.time)
        decimals = perp.sz_decimals
        escrow = ticket.account.on_fee_trial and crossed
        fill = Fill(
            coin=perp.coin,
            px=text(px, perp.px_decimals),
            sz=text(abs(change), decimals),
            side="B" if change > 0 else "A",
            time=tx.time,
            start_position=text(size, decimals),
            dir=direction or _direction(size, change),
            closed_pnl=money(closed),
            hash=tx.hash,
            oid=ticket.oid,
            crossed=crossed,
            fee=money(fee),
            tid=tid,
            cloid=ticket.cloid or UNSET,
            builder_fee=money(builder_fee) if ticket.builder_bps else UNSET,
            deployer_fee=money(deployer_fee) if deployer_fee is not None else UNSET,
            priority_gas=text(self._gas(ticket), WEI) if ticket.priority_gas else UNSET,
            fee_token=COLLATERAL[perp.dex],
            builder=ticket.builder or UNSET,
            twap_id=ticket.twap_id,
            tx_index=tx.index,
            liquidation=_as_seen(liquidation, direction),
            # ASSUMED: what a fee trial holds back is a part of the fee, as the builder's is.
            fee_trial_escrow=money(fee // 2) if escrow else UNSET,
        )
        self.fills.append((ticket.account.address, fill))

    def _move(self, coin: int, who: int, change: int, px: int) -> tuple[int, int]:
        """Change a position; give its size before, and the PnL that the change closes."""
        book = self.positions[coin]
        size, entry = book.get(who, (0, 0))
        closed, after, kept = step(size, entry, change, px)
        if (funded := self.funded[coin].get(who)) is not None:
            funded.since_change = 0
            if size * after <= 0:
                funded.since_open = 0
        if after:
            book[who] = (after, kept)
        else:
            book.pop(who, None)
        return size, closed

    def _book(self, coin: int, who: int, closed: int, fee: int) -> None:
        """Book what a fill has closed and what it cost, on the dex of the perp."""
        self.balances[who][DEX_OF[coin]] += closed - fee
        self.totals[who].closed += closed
        self.totals[who].fees += fee

    def _set_aside(
        self, coin: int, account: Account, size: int, change: int, px: int, time: int
    ) -> None:
        """Put margin into an isolated position that opens, take it out of one that closes."""
        margins, who = self.margins[coin], account.number
        margin = margins.pop(who, 0)
        if size + change:
            margins[who] = margin - taken_out(margin, size, change)
            if lots := opened(size, change):
                wanted = margin_used(lots * px, leverage(account, coin))
                margins[who] += max(0, min(wanted, self.free(who, DEX_OF[coin], time)))

    def _gas(self, ticket: Ticket) -> int:
        """Pay a ticket's priority gas, once."""
        gas, ticket.priority_gas = ticket.priority_gas, 0
        self.wallets[ticket.account.number][NATIVE_TOKEN].gas += gas
        return gas


def _as_seen(liquidation: Liquidation | None, direction: str) -> Liquidation | UnsetType:
    """Return the liquidation as one side's fill shows it."""
    if liquidation is None:
        return UNSET
    # ASSUMED: a backstop liquidation of an isolated position does not repeat the address on the
    # liquidated account's own fills, whose direction says whose liquidation it is.
    if direction.startswith("Liquidated Isolated"):
        return replace(liquidation, liquidated_user=UNSET)
    return liquidation


def _direction(size: int, change: int) -> str:
    if size == 0 or (size > 0) == (change > 0):
        return "Open Long" if change > 0 else "Open Short"
    if abs(change) <= abs(size):
        return "Close Long" if size > 0 else "Close Short"
    return "Long > Short" if size > 0 else "Short > Long"
