"""Accounts that run out of margin: liquidation, auto-deleveraging; and markets that end."""

from dataclasses import dataclass

from toolkit.contract.records import (
    LedgerDelta,
    LedgerUpdate,
    LiquidatedPosition,
    Liquidation,
)
from toolkit.rules.closed_pnl import entry_price
from toolkit.rules.margin import exact_maintenance
from toolkit.simulation.accounts import Account
from toolkit.simulation.dealing import deal, mark_price, perp_ticket, wait_far
from toolkit.simulation.exchange import DEX_OF, Exchange, Transaction
from toolkit.simulation.floor import Floor
from toolkit.simulation.margins import is_isolated, leverage, margin_used
from toolkit.simulation.markets import PERPS
from toolkit.simulation.orders import Ticket
from toolkit.simulation.quantities import money, rounded_share, text
from toolkit.simulation.roles import HEDGER
from toolkit.times import SECOND

__all__ = ["Delisting", "LastOrders", "MarginCheck", "SecondLook"]

_TOO_THIN = 8.0
"""Positions larger than so many times the depth are deleveraged instead of sold."""

MARKET, BACKSTOP = "market", "backstop"
"""How positions are liquidated: by orders that everybody may meet, or taken over at once."""

_AT_ONCE = 100_000 * 10**6
_FIRST_SHARE = 5
_COOLDOWN_MS = 30 * SECOND
"""Of a position above the first number, in micro-dollars, a market liquidation closes a fifth; if
that does not help, the rest after the cooldown."""

_ADDS = ("maker", HEDGER)
"""Manners of those who add margin to an isolated position before it is liquidated."""


@dataclass(slots=True)
class _Stake:
    """What positions stand on: their equity, and the maintenance margin that they ask for."""

    equity: int
    needed: int = 0

    @property
    def method(self) -> str:
        """How it is liquidated: with less than two thirds of what is asked for, not by market."""
        return MARKET if 3 * self.equity >= 2 * self.needed else BACKSTOP

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
                _liquidate(floor, account, [coin], stake, self.time)
        for (who, dex), stake in cross.items():
            account = exchange.accounts[who]
            if stake.short and account.manner != "maker":
                held = [coin for coin, _, _ in exchange.held(who, dex)]
                shared = [coin for coin in held if not is_isolated(account, coin)]
                _liquidate(floor, account, shared, stake, self.time)


@dataclass(frozen=True, slots=True)
class SecondLook:
    """The end of the cooldown after a part of an account's positions was sold."""

    time: int
    account: int
    coin: int

    def happen(self, floor: Floor) -> None:
        """Liquidate the rest, if there is still too little."""
        exchange = floor.exchange
        account, dex = exchange.accounts[self.account], DEX_OF[self.coin]
        cross, alone = _stakes(exchange, self.time, only=self.account)
        if is_isolated(account, self.coin):
            stake, coins = alone.get((self.account, self.coin)), [self.coin]
        else:
            stake = cross.get((self.account, dex))
            held = [coin for coin, _, _ in exchange.held(self.account, dex)]
            coins = [coin for coin in held if not is_isolated(account, coin)]
        if stake is not None and stake.short:
            _liquidate(floor, account, coins, stake, self.time, whole=True)


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
    exchange: Exchange, time: int, only: int | None = None
) -> tuple[dict[tuple[int, int], _Stake], dict[tuple[int, int], _Stake]]:
    """Return what cross positions stand on by account and dex, isolated ones by account and perp.

    Of all accounts, or of one only.
    """
    cross: dict[tuple[int, int], _Stake] = {}
    alone: dict[tuple[int, int], _Stake] = {}
    for coin, book in enumerate(exchange.positions):
        mark, dex = mark_price(exchange, coin, time), DEX_OF[coin]
        margins, tiers = exchange.margins[coin], PERPS[coin].tiers
        for who, (size, entry) in book.items():
            if only not in (None, who):
                continue
            if (who, dex) not in cross:
                cross[who, dex] = _Stake(exchange.balances[who][dex])
            stake = cross[who, dex]
            if who in margins:
                stake.equity -= margins[who]
                stake = alone[who, coin] = _Stake(margins[who])
            stake.equity += size * (mark - entry_price(size, entry))
            stake.needed += exact_maintenance(abs(size) * mark, tiers)
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


def _liquidate(
    floor: Floor,
    account: Account,
    coins: list[int],
    stake: _Stake,
    time: int,
    *,
    whole: bool = False,
) -> None:
    """Cancel an account's orders, write the ledger row, and close its positions in some perps.

    By market orders, which are written as any order that closes; or by the backstop, whose fills
    have words of their own. Both sides of each trade name the liquidation
    (docs/live_service.md, section 2). What is too large for its market, or worth less than
    nothing, is deleveraged, which is no liquidation of the account.
    """
    # ASSUMED: there is no insurance fund: what closing loses beyond an isolated margin is paid from
    # the account's cash on the dex.
    # ASSUMED: the ledger row of a liquidation names whole positions, whatever part is closed.
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
    method = account.liquidated_by or stake.method
    _write(exchange, tx, account, stake.equity, mode, held)
    for coin, size in held:
        perp = PERPS[coin]
        px = mark_price(exchange, coin, time)
        deleveraged = stake.equity < 0 or abs(size) * px > perp.depth_usd * 1e6 * _TOO_THIN
        large = abs(size) * px > _AT_ONCE and not deleveraged
        in_parts = method == MARKET and large and not whole
        closed = rounded_share(size, 1, _FIRST_SHARE) if in_parts else size
        ticket = perp_ticket(exchange, account, coin, -closed, px, time)
        ticket.tif, ticket.reduce_only = "LiquidationMarket", True
        if deleveraged:
            _deleverage(floor, tx, coin, ticket, px)
        if ticket.left:
            ticket.liquidation = Liquidation(
                liquidated_user=account.address, mark_px=text(px, perp.px_decimals), method=method
            )
            word = f"Liquidated {mode} {'Long' if size > 0 else 'Short'}"
            deal(floor, tx, coin, ticket, ("" if method == MARKET else word, ""))
        if in_parts:
            floor.plan(SecondLook(time + _COOLDOWN_MS, account.number, coin))


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
