"""The state of the simulated exchange, and what a trade does to it.

Money is in micro-dollars, sizes in lots of ``10**-sz_decimals``, prices in units of
``10**-px_decimals``; all whole numbers.
"""

import random
from collections import defaultdict
from dataclasses import dataclass

from msgspec import UNSET

from toolkit.contract.records import Fill, FundingRow, LedgerUpdate
from toolkit.contract.sources import Approval
from toolkit.rules.closed_pnl import entry_price, step
from toolkit.simulation.accounts import Account
from toolkit.simulation.draws import transaction_hash
from toolkit.simulation.markets import DEXES, PERPS
from toolkit.simulation.prices import Prices
from toolkit.simulation.quantities import MICRO, rounded_share, text

__all__ = ["Exchange", "Leg", "Totals", "Transaction"]

MILLION = 10**6
_DEX_OF = [DEXES.index(perp.dex) for perp in PERPS]


@dataclass(slots=True)
class Totals:
    """What an account has earned and paid so far, in micro-dollars; one row of truth."""

    closed: int = 0
    funding: int = 0
    fees: int = 0
    ledger: int = 0


@dataclass(frozen=True, slots=True)
class Transaction:
    """Where something happened: a block's time, the index in the block, and the hash."""

    time: int
    index: int
    hash: str


@dataclass(slots=True)
class Leg:
    """One side of a trade: whose, by which order, and what it pays.

    Parameters
    ----------
    account : Account
        Who trades.
    oid : int
        The order.
    cloid : str or None
        The order's client id.
    crossed : bool
        True for the taker.
    builder_bps : int
        The builder's fee; 0 where the order is not routed.
    builder : str or None
        The builder that the order is routed through.
    priority_gas : str or None
        Priority gas paid, in the native token.
    """

    account: Account
    oid: int
    cloid: str | None
    crossed: bool
    builder_bps: int = 0
    builder: str | None = None
    priority_gas: str | None = None


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
    """

    def __init__(self, seed: int, start_ms: int, accounts: list[Account], prices: Prices) -> None:
        self.seed = seed
        self.start_ms = start_ms
        self.accounts = accounts
        self.prices = prices
        self.positions: list[dict[int, tuple[int, int]]] = [{} for _ in PERPS]
        self.balances = [[0] * len(DEXES) for _ in accounts]
        self.spot_usdc = [0] * len(accounts)
        self.totals = [Totals() for _ in accounts]
        self.fills: list[tuple[str, Fill]] = []
        self.funding: list[FundingRow] = []
        self.ledger: list[tuple[str, LedgerUpdate]] = []
        self.approvals: list[Approval] = []
        self.approved: dict[int, set[int]] = defaultdict(set)
        self.luck = random.Random(seed)  # its `random` is the same everywhere
        self._transactions = 0
        self._oid = 140_000_000_000
        self._tid = 300_000_000_000_000

    def transaction(self, time: int, index: int) -> Transaction:
        """Open the next transaction."""
        self._transactions += 1
        return Transaction(time, index, transaction_hash(self.seed, self._transactions))

    def next_oid(self) -> int:
        """Give an order id that no order has."""
        self._oid += 1 + int(self.luck.random() * 40)
        return self._oid

    def position(self, coin: int, account: int) -> int:
        """Give the signed size that an account holds, in lots."""
        return self.positions[coin].get(account, (0, 0))[0]

    def trade(
        self, tx: Transaction, coin: int, taker: Leg, maker: Leg, change: int, px: int
    ) -> None:
        """Let two orders meet.

        Parameters
        ----------
        tx : Transaction
            The taker's transaction.
        coin : int
            Index of the perp.
        taker, maker : Leg
            Both sides; they must be of different accounts.
        change : int
            Signed size that the taker gets; the maker gets its opposite.
        px : int
            Price of the maker's order.
        """
        self._tid += 1 + int(self.luck.random() * 1_000)
        self._fill(tx, coin, maker, -change, px, self._tid)
        self._fill(tx, coin, taker, change, px, self._tid)

    def unrealised(self, account: int, dex: int) -> int:
        """Give the unrealised PnL at the last mark, by the entry price that closing would use.

        ASSUMED: unrealised PnL rests on the truncated entry price of the closing rule, so that
        equity is the sum of what the account's own tables say, to the last digit.
        """
        return sum(
            size * (int(self.prices.mark[coin, -1]) - entry_price(size, entry))
            for coin, book in enumerate(self.positions)
            if _DEX_OF[coin] == dex
            for size, entry in (book.get(account, (0, 0)),)
            if size
        )

    def _fill(self, tx: Transaction, coin: int, leg: Leg, change: int, px: int, tid: int) -> None:
        perp = PERPS[coin]
        who = leg.account.number
        book = self.positions[coin]
        size, entry = book.get(who, (0, 0))
        closed, after, kept = step(size, entry, change, px)
        if after:
            book[who] = (after, kept)
        else:
            book.pop(who, None)
        fee, builder_fee, deployer_fee = _fees(abs(change) * px, leg, perp.dex)
        self.balances[who][_DEX_OF[coin]] += closed - fee
        totals = self.totals[who]
        totals.closed += closed
        totals.fees += fee
        decimals = perp.sz_decimals
        fill = Fill(
            coin=perp.coin,
            px=text(px, perp.px_decimals),
            sz=text(abs(change), decimals),
            side="B" if change > 0 else "A",
            time=tx.time,
            start_position=text(size, decimals),
            dir=_direction(size, change),
            closed_pnl=text(closed, MICRO),
            hash=tx.hash,
            oid=leg.oid,
            crossed=leg.crossed,
            fee=text(fee, MICRO),
            tid=tid,
            cloid=leg.cloid or UNSET,
            builder_fee=text(builder_fee, MICRO) if leg.builder_bps else UNSET,
            deployer_fee=text(deployer_fee, MICRO) if deployer_fee is not None else UNSET,
            priority_gas=leg.priority_gas or UNSET,
            fee_token="USDC",
            builder=leg.builder or UNSET,
            twap_id=None,
            tx_index=tx.index,
        )
        self.fills.append((leg.account.address, fill))


def _fees(notional: int, leg: Leg, dex: str) -> tuple[int, int, int | None]:
    """Give the whole fee, and the builder's and the deployer's part of it.

    ASSUMED: each part is rounded to a millionth of a dollar, half away from zero; on a
    builder-deployed dex the deployer gets as much again as the exchange, and no rebate pays.
    """
    micro = leg.account.taker_micro if leg.crossed else leg.account.maker_micro
    own = rounded_share(notional, micro, MILLION)
    builder_fee = rounded_share(notional, leg.builder_bps, 10_000) if leg.builder_bps else 0
    if not dex:
        return own + builder_fee, builder_fee, None
    deployer_fee = max(own, 0)
    return own + builder_fee + deployer_fee, builder_fee, deployer_fee


def _direction(size: int, change: int) -> str:
    if size == 0 or (size > 0) == (change > 0):
        return "Open Long" if change > 0 else "Open Short"
    if abs(change) <= abs(size):
        return "Close Long" if size > 0 else "Close Short"
    return "Long > Short" if size > 0 else "Short > Long"
