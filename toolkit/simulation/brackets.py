"""Take-profit and stop-loss orders: placed with their parent, one triggers, one goes."""

from dataclasses import dataclass

from toolkit.simulation.dealing import best_price, deal, mark_price, on_tick
from toolkit.simulation.floor import Floor
from toolkit.simulation.markets import PERPS
from toolkit.simulation.orders import Ticket
from toolkit.simulation.quantities import text
from toolkit.times import HOUR, MINUTE

__all__ = ["Trigger", "add_bracket"]

_GIVEN_UP = 0.2
_AS_LIMIT = 0.4
_WHOLE_POSITION = 0.3


@dataclass(frozen=True, slots=True)
class Trigger:
    """The moment when the price reaches one of two child orders, or their owner gives up."""

    time: int
    coin: int
    reached: Ticket
    sibling: Ticket
    given_up: bool

    def happen(self, floor: Floor) -> None:
        """Fill the one and cancel the other, as far as there is a position left to close."""
        exchange = floor.exchange
        journal = exchange.journal
        tx = exchange.transaction(self.time)
        held = exchange.position(self.coin, self.reached.account.number)
        closable = held * self.reached.sign < 0
        if self.given_up or not closable or floor.is_delisted(self.coin):
            status = "canceled" if self.given_up else "reduceOnlyCanceled"
            for child in (self.reached, self.sibling):
                journal.record(child, status, tx.time, tx.index)
            return
        journal.record(self.reached, "triggered", tx.time, tx.index)
        soon = self.time + 1 + int(exchange.luck.random() * 900)
        floor.plan(Execution(soon, self.coin, self.reached, self.sibling))


@dataclass(frozen=True, slots=True)
class Execution:
    """The block after a trigger: the order is filled as far as it reduces the position."""

    time: int
    coin: int
    reached: Ticket
    sibling: Ticket

    def happen(self, floor: Floor) -> None:
        """Fill the order; its sibling has nothing left to do."""
        journal = floor.exchange.journal
        tx = floor.exchange.transaction(self.time)
        held = floor.exchange.position(self.coin, self.reached.account.number)
        if held * self.reached.sign >= 0:
            for child in (self.reached, self.sibling):
                journal.record(child, "reduceOnlyCanceled", self.time, tx.index)
            return
        # ASSUMED: a reduce-only order larger than the position shrinks to it before it fills.
        self.reached.size = self.reached.left = min(self.reached.left, abs(held))
        deal(floor, tx, self.coin, self.reached)
        journal.record(self.sibling, "siblingFilledCanceled", self.time, tx.index)


def add_bracket(floor: Floor, coin: int, parent: Ticket) -> None:
    """Give an order a take-profit and a stop-loss child, and plan what becomes of them.

    The child that will be reached gets the price of its moment, so that orders and prices
    agree.
    """
    exchange = floor.exchange
    luck = exchange.luck
    time = parent.time + 10 * MINUTE + int(luck.random() * 20 * HOUR)
    if time >= exchange.end_ms - MINUTE:
        return
    now = best_price(exchange, coin, parent.time, parent.is_buy)
    then = mark_price(exchange, coin, time)
    gains = (then - now) * parent.sign > 0
    move = max(abs(then - now), now // 200)
    reached = _child(floor, coin, parent, then, gains)
    sibling = _child(floor, coin, parent, now - move * (1 if then > now else -1), not gains)
    parent.children = [reached, sibling] if gains else [sibling, reached]
    for child in parent.children:
        exchange.journal.record(child, "open", parent.time, 60)
    floor.plan(Trigger(time, coin, reached, sibling, luck.random() < _GIVEN_UP))


def _child(floor: Floor, coin: int, parent: Ticket, px: int, profit: bool) -> Ticket:
    exchange = floor.exchange
    luck = exchange.luck
    perp = PERPS[coin]
    trigger_px = on_tick(px, coin)
    as_limit = luck.random() < _AS_LIMIT
    above = profit == parent.is_buy
    bound = 97 if parent.is_buy else 103
    return Ticket(
        account=parent.account,
        market=perp,
        oid=exchange.next_oid(),
        is_buy=not parent.is_buy,
        px=on_tick(trigger_px * (99 if parent.is_buy else 101 if as_limit else bound) // 100, coin),
        size=parent.size,
        left=parent.size,
        time=parent.time,
        kind=f"{'Take Profit' if profit else 'Stop'} {'Limit' if as_limit else 'Market'}",
        tif="Gtc" if as_limit else None,
        reduce_only=True,
        is_position_tpsl=luck.random() < _WHOLE_POSITION,
        trigger_px=trigger_px,
        trigger_condition=f"Price {'above' if above else 'below'} "
        f"{text(trigger_px, perp.px_decimals)}",
        cloid=parent.cloid and f"{parent.cloid[:-1]}{'a' if profit else 'b'}",
    )
