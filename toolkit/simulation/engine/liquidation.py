"""Liquidation of accounts without enough margin, auto-deleveraging, and the end of a market."""

from dataclasses import dataclass

from toolkit.contract.records import LedgerDelta, LiquidatedPosition, Liquidation
from toolkit.rules.closed_pnl import entry_price
from toolkit.rules.directions import AUTO_DELEVERAGING
from toolkit.rules.margin import exact_maintenance
from toolkit.simulation.engine.accounts import HEDGER, Account
from toolkit.simulation.engine.books import market_ticket
from toolkit.simulation.engine.exchange import DEX_INDEX, Exchange, Transaction
from toolkit.simulation.engine.margin import account_leverage, initial_margin, is_isolated
from toolkit.simulation.engine.orders import Ticket
from toolkit.simulation.engine.state import SimulationState
from toolkit.simulation.markets import PERPS
from toolkit.simulation.quantities import decimal_text, money_text, rounded_share
from toolkit.times import SECOND

_LARGEST_SALE = 8.0
"""Positions larger than so many times the depth are deleveraged instead of sold."""

MARKET, BACKSTOP = "market", "backstop"
"""The methods of liquidation: orders on the book, or a takeover at once."""

_PARTIAL_FROM = 100_000 * 10**6
_FIRST_SHARE = 5
_COOLDOWN_MS = 30 * SECOND
"""A market liquidation of a position above `_PARTIAL_FROM` micro-dollars closes a fifth first. If
that is not enough, it closes the rest after the cooldown."""

_REFILL_STRATEGIES = ("maker", HEDGER)
"""Strategies of accounts that add margin to an isolated position before it is liquidated."""


@dataclass(slots=True)
class _MarginBuffer:
    """The equity behind some positions, and the maintenance margin that they require."""

    equity: int
    required: int = 0

    @property
    def method(self) -> str:
        """The method of liquidation: backstop below two thirds of the requirement."""
        return MARKET if 3 * self.equity >= 2 * self.required else BACKSTOP

    @property
    def is_too_small(self) -> bool:
        """Whether the equity is below the requirement."""
        return self.required > 0 and self.equity < self.required


@dataclass(frozen=True, slots=True)
class MarginCheck:
    """The hourly check of all margins."""

    time: int

    def apply(self, state: SimulationState) -> None:
        """Liquidate isolated positions, and cross positions together, that lack margin."""
        exchange = state.exchange
        cross, isolated = _find_cushions(exchange, self.time)
        for (number, coin), buffer in isolated.items():
            account = exchange.accounts[number]
            if account.strategy in _REFILL_STRATEGIES:
                buffer = _refill_margin(exchange, account, coin, buffer, self.time)
            if buffer.is_too_small and account.strategy != "maker":
                _liquidate_positions(state, account, [coin], buffer, self.time)
        for (number, dex), buffer in cross.items():
            account = exchange.accounts[number]
            if buffer.is_too_small and account.strategy != "maker":
                coins = _cross_coins(exchange, account, dex)
                _liquidate_positions(state, account, coins, buffer, self.time)


@dataclass(frozen=True, slots=True)
class CooldownEnd:
    """The end of the cooldown after a part of an account's positions was sold."""

    time: int
    account: int
    coin: int

    def apply(self, state: SimulationState) -> None:
        """Liquidate the rest if the margin is still too small."""
        exchange = state.exchange
        account, dex = exchange.accounts[self.account], DEX_INDEX[self.coin]
        cross, isolated = _find_cushions(exchange, self.time, only=self.account)
        if is_isolated(account, self.coin):
            buffer, coins = isolated.get((self.account, self.coin)), [self.coin]
        else:
            buffer = cross.get((self.account, dex))
            coins = _cross_coins(exchange, account, dex)
        if buffer is not None and buffer.is_too_small:
            _liquidate_positions(state, account, coins, buffer, self.time, in_full=True)


@dataclass(frozen=True, slots=True)
class FarOrders:
    """Some hours before a market ends: market makers place orders that are never filled."""

    time: int
    coin: int

    def apply(self, state: SimulationState) -> None:
        """Place an order of each of three market makers."""
        for maker in state.makers[:3]:
            state.books.place_far_order(maker, self.coin, self.time)


@dataclass(frozen=True, slots=True)
class Delisting:
    """The end of a market: orders are cancelled, positions settled at the mark price."""

    time: int
    coin: int

    def apply(self, state: SimulationState) -> None:
        """Settle all positions."""
        exchange = state.exchange
        tx = exchange.next_transaction(self.time)
        state.delisted.add(self.coin)
        state.books.cancel_orders(tx, "delistedCanceled", coin=PERPS[self.coin].coin)
        px = exchange.mark_price(self.coin, self.time)
        for number, (size, _) in list(exchange.positions[self.coin].items()):
            account = exchange.accounts[number]
            ticket = market_ticket(exchange, account, self.coin, -size, px, self.time)
            ticket.px = px
            exchange.settle_position(tx, self.coin, ticket)


def _find_cushions(
    exchange: Exchange, time: int, only: int | None = None
) -> tuple[dict[tuple[int, int], _MarginBuffer], dict[tuple[int, int], _MarginBuffer]]:
    """Return the cushions of cross positions and of isolated positions.

    The keys are (account, dex) and (account, perp). `only` restricts the result to one account.
    """
    cross: dict[tuple[int, int], _MarginBuffer] = {}
    isolated: dict[tuple[int, int], _MarginBuffer] = {}
    for coin, positions in enumerate(exchange.positions):
        mark, dex = exchange.mark_price(coin, time), DEX_INDEX[coin]
        margins, tiers = exchange.margins[coin], PERPS[coin].tiers
        for account, (size, entry) in positions.items():
            if only not in (None, account):
                continue
            if (account, dex) not in cross:
                cross[account, dex] = _MarginBuffer(exchange.balances[account][dex])
            buffer = cross[account, dex]
            if account in margins:
                buffer.equity -= margins[account]
                buffer = isolated[account, coin] = _MarginBuffer(margins[account])
            buffer.equity += size * (mark - entry_price(size, entry))
            buffer.required += exact_maintenance(abs(size) * mark, tiers)
    return cross, isolated


def _cross_coins(exchange: Exchange, account: Account, dex: int) -> list[int]:
    positions = exchange.iterate_positions(account.number, dex)
    return [coin for coin, _, _ in positions if not is_isolated(account, coin)]


def _refill_margin(
    exchange: Exchange, account: Account, coin: int, buffer: _MarginBuffer, time: int
) -> _MarginBuffer:
    """Fill up a margin that is too small to what opening requires, as far as money allows."""
    # ASSUMED: If an account adds margin to an isolated position, the ledger has no row of it.
    number = account.number
    # The position may have been closed by an earlier liquidation.
    if not buffer.is_too_small or number not in exchange.margins[coin]:
        return buffer
    notional = abs(exchange.position_size(coin, number)) * exchange.mark_price(coin, time)
    missing = initial_margin(notional, account_leverage(account, coin)) - buffer.equity
    added = max(0, min(missing, exchange.free_collateral(number, DEX_INDEX[coin], time)))
    exchange.margins[coin][number] += added
    return _MarginBuffer(buffer.equity + added, buffer.required)


def _liquidate_positions(
    state: SimulationState,
    account: Account,
    coins: list[int],
    buffer: _MarginBuffer,
    time: int,
    *,
    in_full: bool = False,
) -> None:
    """Cancel an account's orders, write the ledger row, and close its positions in some perps.

    Market orders close them and look like any order that closes; or the backstop does, whose
    fills have directions of their own. Both sides of each trade name the liquidation
    (docs/live_service.md, section 2). A position that is too large for its market, or whose
    equity is negative, is deleveraged, which is no liquidation of the account.
    """
    # ASSUMED: There is no insurance fund. If a loss is larger than the isolated margin, the
    # account's cash on the dex pays the rest.
    # ASSUMED: The ledger row of a liquidation has the full size of each position, even if only a
    # part is closed.
    exchange = state.exchange
    sizes = [(coin, exchange.position_size(coin, account.number)) for coin in coins]
    sizes = [(coin, size) for coin, size in sizes if size]
    if not sizes:  # an earlier liquidation has deleveraged them
        return
    tx = exchange.next_transaction(time)
    isolated = is_isolated(account, coins[0])
    only = PERPS[coins[0]].coin if isolated else ""
    state.books.cancel_orders(tx, "liquidatedCanceled", account=account, coin=only)
    mode = "Isolated" if isolated else "Cross"
    method = account.liquidated_by or buffer.method
    _write_liquidation(exchange, tx, account, buffer.equity, mode, sizes)
    for coin, size in sizes:
        perp = PERPS[coin]
        px = exchange.mark_price(coin, time)
        notional = abs(size) * px
        deleveraged = buffer.equity < 0 or notional > perp.depth_usd * 1e6 * _LARGEST_SALE
        is_large = notional > _PARTIAL_FROM and not deleveraged
        is_partial = method == MARKET and is_large and not in_full
        closed = rounded_share(size, 1, _FIRST_SHARE) if is_partial else size
        ticket = market_ticket(exchange, account, coin, -closed, px, time)
        ticket.tif, ticket.reduce_only = "LiquidationMarket", True
        if deleveraged:
            _deleverage_position(state, tx, coin, ticket, px)
        if ticket.left:
            ticket.liquidation = Liquidation(
                liquidated_user=account.address,
                mark_px=decimal_text(px, perp.px_decimals),
                method=method,
            )
            direction = f"Liquidated {mode} {'Long' if size > 0 else 'Short'}"
            directions = ("" if method == MARKET else direction, "")
            state.books.execute_order(tx, coin, ticket, directions)
        if is_partial:
            state.schedule_event(CooldownEnd(time + _COOLDOWN_MS, account.number, coin))


def _deleverage_position(
    state: SimulationState, tx: Transaction, coin: int, ticket: Ticket, px: int
) -> None:
    """Close a position at the mark price against the largest gains on the other side."""
    exchange = state.exchange
    others = [
        (-size * (px - entry_price(size, entry)), account, abs(size))
        for account, (size, entry) in exchange.positions[coin].items()
        if size * ticket.sign > 0 and account != ticket.account.number
    ]
    for _, number, size in sorted(others):
        part = min(size, ticket.left)
        if not part:
            break
        account = exchange.accounts[number]
        other = market_ticket(exchange, account, coin, -ticket.sign * part, px, tx.time)
        other.px, other.tif, other.reduce_only = px, "LiquidationMarket", True
        directions = (AUTO_DELEVERAGING, AUTO_DELEVERAGING)
        exchange.match_orders(tx, coin, ticket, other, part, directions)
    if not ticket.left:
        exchange.journal.record_status(ticket, "filled", tx.time, tx.index)


def _write_liquidation(
    exchange: Exchange,
    tx: Transaction,
    account: Account,
    equity: int,
    mode: str,
    sizes: list[tuple[int, int]],
) -> None:
    notional = sum(abs(size) * exchange.mark_price(coin, tx.time) for coin, size in sizes)
    delta = LedgerDelta(
        type="liquidation",
        liquidated_ntl_pos=money_text(notional),
        account_value=money_text(equity),
        leverage_type=mode,
        liquidated_positions=[
            LiquidatedPosition(
                coin=PERPS[coin].coin, szi=decimal_text(size, PERPS[coin].sz_decimals)
            )
            for coin, size in sizes
        ],
    )
    exchange.write_ledger(tx, delta, account.number)
