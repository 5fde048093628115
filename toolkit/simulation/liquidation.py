"""Accounts that run out of margin: liquidation, auto-deleveraging; and markets that end."""

from dataclasses import dataclass

from toolkit.contract.records import LedgerDelta, LedgerUpdate, LiquidatedPosition
from toolkit.rules.closed_pnl import entry_price
from toolkit.simulation.accounts import Account
from toolkit.simulation.dealing import deal, mark_price, perp_ticket, wait_far
from toolkit.simulation.exchange import DEX_OF, Exchange, Transaction
from toolkit.simulation.floor import Floor
from toolkit.simulation.margins import is_isolated, leverage, maintenance, margin_used
from toolkit.simulation.markets import PERPS
from toolkit.simulation.orders import Ticket
from toolkit.simulation.quantities import money, text
from toolkit.simulation.roles import HEDGER

__all__ = ["Delisting", "LastOrders", "MarginCheck"]

_TOO_THIN = 8.0
"""Positions larger than so many times the depth are deleveraged instead of sold."""

_ADDS = ("maker", HEDGER)
"""Manners of those who add margin to an isolated position before it is liquidated."""


@dataclass(slots=True)
class _Stake:
    """What positions stand on: their equity, and the maintenance margin that they ask for."""

    equity: int
    needed: int = 0

    @property
    def short(self) -> bool:
        """Whether it is less than asked for."""
        return self.needed > 0 and self.equity < self.needed


@dataclass(frozen=True, slots=True)
class MarginCheck:
    """The hourly look at everybody's margin."""

    time: int

    def happen(self, floor: Floor) -> None:
        """Liquidate what has too little: the isolated positions, and the cross ones together."""
        exchange = floor.exchange
        cross, alone = _stakes(exchange, self.time)
        for (who, coin), stake in alone.items():
            account = exchange.accounts[who]
            if account.manner in _ADDS:
                stake = _added(exchange, account, coin, stake, self.time)
            if stake.short and account.manner != "maker":
                _liquidate(floor, account, [coin], stake.equity, self.time)
        for (who, dex), stake in cross.items():
            account = exchange.accounts[who]
            if stake.short and account.manner != "maker":
                held = [coin for coin, _, _ in exchange.held(who, dex)]
                shared = [coin for coin in held if not is_isolated(account, coin)]
                _liquidate(floor, account, shared, stake.equity, self.time)


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


def _stakes(
    exchange: Exchange, time: int
) -> tuple[dict[tuple[int, int], _Stake], dict[tuple[int, int], _Stake]]:
    """Give what cross positions stand on by account and dex, isolated ones by account and perp."""
    cross: dict[tuple[int, int], _Stake] = {}
    alone: dict[tuple[int, int], _Stake] = {}
    for coin, book in enumerate(exchange.positions):
        mark, dex = mark_price(exchange, coin, time), DEX_OF[coin]
        margins, most = exchange.margins[coin], PERPS[coin].max_leverage
        for who, (size, entry) in book.items():
            if (who, dex) not in cross:
                cross[who, dex] = _Stake(exchange.balances[who][dex])
            stake = cross[who, dex]
            if who in margins:
                stake.equity -= margins[who]
                stake = alone[who, coin] = _Stake(margins[who])
            stake.equity += size * (mark - entry_price(size, entry))
            stake.needed += maintenance(abs(size) * mark, most)
    return cross, alone


def _added(exchange: Exchange, account: Account, coin: int, stake: _Stake, time: int) -> _Stake:
    """Fill a margin that runs short up to what opening would ask for, as far as money goes."""
    # ASSUMED: margin that is added to an isolated position leaves no row in the ledger.
    who = account.number
    if not stake.short or who not in exchange.margins[coin]:  # closed by a liquidation before
        return stake
    notional = abs(exchange.position(coin, who)) * mark_price(exchange, coin, time)
    wanted = margin_used(notional, leverage(account, coin)) - stake.equity
    more = max(0, min(wanted, exchange.free(who, DEX_OF[coin], time)))
    exchange.margins[coin][who] += more
    return _Stake(stake.equity + more, stake.needed)


def _liquidate(floor: Floor, account: Account, coins: list[int], equity: int, time: int) -> None:
    """Cancel an account's orders, write the ledger row, and close its positions in some perps."""
    # ASSUMED: there is no insurance fund: what closing loses beyond an isolated margin is paid from
    # the account's cash on the dex.
    exchange = floor.exchange
    held = [(coin, exchange.position(coin, account.number)) for coin in coins]
    held = [(coin, size) for coin, size in held if size]
    if not held:  # deleveraged by those before
        return
    tx = exchange.transaction(time)
    isolated = is_isolated(account, coins[0])
    only = PERPS[coins[0]].coin if isolated else ""
    floor.books.cancel_all(tx, "liquidatedCanceled", account=account, coin=only)
    mode = "Isolated" if isolated else "Cross"
    _write(exchange, tx, account, equity, mode, held)
    for coin, size in held:
        perp = PERPS[coin]
        px = mark_price(exchange, coin, time)
        ticket = perp_ticket(exchange, account, coin, -size, px, time)
        ticket.tif, ticket.reduce_only = "LiquidationMarket", True
        if equity < 0 or abs(size) * px > perp.depth_usd * 1e6 * _TOO_THIN:
            _deleverage(floor, tx, coin, ticket, px)
        if ticket.left:
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
    mode: str,
    held: list[tuple[int, int]],
) -> None:
    notional = sum(abs(size) * mark_price(exchange, coin, tx.time) for coin, size in held)
    delta = LedgerDelta(
        type="liquidation",
        liquidated_ntl_pos=money(notional),
        account_value=money(equity),
        leverage_type=mode,
        liquidated_positions=[
            LiquidatedPosition(coin=PERPS[coin].coin, szi=text(size, PERPS[coin].sz_decimals))
            for coin, size in held
        ],
    )
    update = LedgerUpdate(time=tx.time, hash=tx.hash, delta=delta)
    exchange.ledger.append((account.address, update))
