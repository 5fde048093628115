"""Accounts that run out of margin: liquidation, auto-deleveraging; and markets that end."""

from collections import defaultdict
from dataclasses import dataclass

from toolkit.contract.records import LedgerDelta, LedgerUpdate, LiquidatedPosition
from toolkit.rules.closed_pnl import entry_price
from toolkit.simulation.accounts import Account
from toolkit.simulation.dealing import deal, mark_price, perp_ticket, wait_far
from toolkit.simulation.exchange import DEX_OF, Exchange, Transaction
from toolkit.simulation.floor import Floor
from toolkit.simulation.markets import PERPS
from toolkit.simulation.orders import Ticket
from toolkit.simulation.quantities import money, text

__all__ = ["Delisting", "LastOrders", "MarginCheck", "maintenance"]

_TOO_THIN = 8.0
"""Positions larger than so many times the depth are deleveraged instead of sold."""


def maintenance(notional: int, max_leverage: int) -> int:
    """Give the margin below which a position is liquidated: half of what opening asks for."""
    return notional // (2 * max_leverage)


@dataclass(frozen=True, slots=True)
class MarginCheck:
    """The hourly look at everybody's margin."""

    time: int

    def happen(self, floor: Floor) -> None:
        """Liquidate those who have too little."""
        exchange = floor.exchange
        for (who, dex), (gain, needed) in _margins(exchange, self.time).items():
            equity = exchange.balances[who][dex] + gain
            account = exchange.accounts[who]
            if equity < needed and account.manner != "maker":
                _liquidate(floor, account, dex, equity, self.time)


@dataclass(frozen=True, slots=True)
class LastOrders:
    """The day before a market ends: some leave an order that will not be met."""

    time: int
    coin: int

    def happen(self, floor: Floor) -> None:
        """Let three market makers do so."""
        for maker in floor.makers[:3]:
            wait_far(floor, maker, self.coin, self.time)


@dataclass(frozen=True, slots=True)
class Delisting:
    """The end of a market: orders are cancelled, positions settled at the mark price."""

    time: int
    coin: int

    def happen(self, floor: Floor) -> None:
        """Settle everybody."""
        exchange = floor.exchange
        tx = exchange.transaction(self.time)
        floor.delisted.add(self.coin)
        floor.books.cancel_all(tx, "delistedCanceled", coin=PERPS[self.coin].coin)
        px = mark_price(exchange, self.coin, self.time)
        for who, (size, _) in list(exchange.positions[self.coin].items()):
            account = exchange.accounts[who]
            ticket = perp_ticket(exchange, account, self.coin, -size, px, self.time)
            ticket.px = px
            exchange.settle(tx, self.coin, ticket)


def _margins(exchange: Exchange, time: int) -> dict[tuple[int, int], tuple[int, int]]:
    """Give unrealised PnL and maintenance margin by account and dex."""
    margins: dict[tuple[int, int], tuple[int, int]] = defaultdict(_nothing)
    for coin, book in enumerate(exchange.positions):
        mark = mark_price(exchange, coin, time)
        most = PERPS[coin].max_leverage
        dex = DEX_OF[coin]
        for who, (size, entry) in book.items():
            gain, needed = margins[who, dex]
            gain += size * (mark - entry_price(size, entry))
            margins[who, dex] = gain, needed + maintenance(abs(size) * mark, most)
    return dict(margins)


def _nothing() -> tuple[int, int]:
    return 0, 0


def _liquidate(floor: Floor, account: Account, dex: int, equity: int, time: int) -> None:
    """Cancel an account's orders on a dex, write the ledger row, and close every position."""
    exchange = floor.exchange
    tx = exchange.transaction(time)
    floor.books.cancel_all(tx, "liquidatedCanceled", account=account)
    held = list(exchange.held(account.number, dex))
    _write(exchange, tx, account, equity, [(coin, size) for coin, size, _ in held])
    for coin, size, _ in held:
        perp = PERPS[coin]
        px = mark_price(exchange, coin, time)
        ticket = perp_ticket(exchange, account, coin, -size, px, time)
        ticket.tif, ticket.reduce_only = "LiquidationMarket", True
        if equity < 0 or abs(size) * px > perp.depth_usd * 1e6 * _TOO_THIN:
            _deleverage(floor, tx, coin, ticket, px)
        if ticket.left:
            mode = "Isolated" if perp.only_isolated else "Cross"
            word = f"Liquidated {mode} {'Long' if size > 0 else 'Short'}"
            deal(floor, tx, coin, ticket, (word, ""))


def _deleverage(floor: Floor, tx: Transaction, coin: int, ticket: Ticket, px: int) -> None:
    """Close a position at the mark price against those who gain most on the other side."""
    exchange = floor.exchange
    others = [
        (-size * (px - entry_price(size, entry)), who, abs(size))
        for who, (size, entry) in exchange.positions[coin].items()
        if size * ticket.sign > 0 and who != ticket.account.number
    ]
    for _, who, size in sorted(others):
        part = min(size, ticket.left)
        if not part:
            break
        account = exchange.accounts[who]
        other = perp_ticket(exchange, account, coin, -ticket.sign * part, px, tx.time)
        other.px, other.tif, other.reduce_only = px, "LiquidationMarket", True
        words = "Auto-Deleveraging"
        exchange.trade(tx, coin, ticket, other, part, (words, words))
    if not ticket.left:
        exchange.journal.record(ticket, "filled", tx.time, tx.index)


def _write(
    exchange: Exchange,
    tx: Transaction,
    account: Account,
    equity: int,
    held: list[tuple[int, int]],
) -> None:
    notional = sum(abs(size) * mark_price(exchange, coin, tx.time) for coin, size in held)
    isolated = all(PERPS[coin].only_isolated for coin, _ in held)
    delta = LedgerDelta(
        type="liquidation",
        liquidated_ntl_pos=money(notional),
        account_value=money(equity),
        leverage_type="Isolated" if isolated else "Cross",
        liquidated_positions=[
            LiquidatedPosition(coin=PERPS[coin].coin, szi=text(size, PERPS[coin].sz_decimals))
            for coin, size in held
        ],
    )
    update = LedgerUpdate(time=tx.time, hash=tx.hash, delta=delta)
    exchange.ledger.append((account.address, update))
