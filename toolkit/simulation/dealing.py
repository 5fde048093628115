"""Placing an order that takes: one way for traders, triggers, TWAP slices, liquidations."""

from toolkit.simulation.accounts import Account
from toolkit.simulation.exchange import DEX_OF, Exchange, Transaction
from toolkit.simulation.floor import Floor
from toolkit.simulation.margins import leverage, margin_used, opened
from toolkit.simulation.markets import PERPS, tick
from toolkit.simulation.orders import Ticket

__all__ = ["affordable", "best_price", "deal", "mark_price", "on_tick", "perp_ticket", "wait_far"]


def best_price(exchange: Exchange, coin: int, time: int, is_buy: bool) -> int:
    """Give the price that a taker meets first."""
    side = exchange.prices.ask if is_buy else exchange.prices.bid
    return int(side[coin, exchange.minute(time)])


def mark_price(exchange: Exchange, coin: int, time: int) -> int:
    """Give the mark price of a time."""
    return int(exchange.prices.mark[coin, exchange.minute(time)])


def on_tick(px: int, coin: int) -> int:
    """Put a price on a legal tick, downwards, above zero."""
    step = tick(px, PERPS[coin].px_decimals)
    return max(px // step * step, step)


def perp_ticket(
    exchange: Exchange, account: Account, coin: int, change: int, px: int, time: int
) -> Ticket:
    """Write a market order, with the usual bound of 5 % on its price."""
    bound = 105 if change > 0 else 95
    return Ticket(
        account=account,
        market=PERPS[coin],
        oid=exchange.next_oid(),
        is_buy=change > 0,
        px=on_tick(px * bound // 100, coin),
        size=abs(change),
        left=abs(change),
        time=time,
        kind="Market",
        tif="FrontendMarket",
    )


def deal(
    floor: Floor,
    tx: Transaction,
    coin: int,
    ticket: Ticket,
    directions: tuple[str, str] = ("", ""),
) -> None:
    """Fill an order at once, and write down how it ended.

    One that opens more than there is margin for is refused.
    """
    best = best_price(floor.exchange, coin, tx.time, ticket.is_buy)
    if not affordable(floor.exchange, coin, ticket, best, tx.time):
        floor.exchange.journal.record(ticket, "perpMarginRejected", tx.time, tx.index)
        return
    floor.books.take(tx, coin, ticket, best, directions)
    status = "filled"
    if ticket.left:
        status = "canceled" if ticket.left < ticket.size else "iocCancelRejected"
    floor.exchange.journal.record(ticket, status, tx.time, tx.index)


def affordable(exchange: Exchange, coin: int, ticket: Ticket, px: int, time: int) -> bool:
    """Say whether there is margin for what an order would open at a price."""
    account = ticket.account
    lots = opened(exchange.position(coin, account.number), ticket.sign * ticket.left)
    wanted = margin_used(lots * px, leverage(account, coin))
    return not lots or wanted <= exchange.free(account.number, DEX_OF[coin], time)


def wait_far(floor: Floor, account: Account, coin: int, time: int) -> None:
    """Place a small buy order a fifth below the market, to be cancelled by what comes."""
    exchange = floor.exchange
    px = mark_price(exchange, coin, time) * 4 // 5
    ticket = perp_ticket(exchange, account, coin, max(1, 20_000_000 // px), px, time)
    ticket.kind, ticket.tif, ticket.px = "Limit", "Gtc", on_tick(px, coin)
    floor.books.wait(exchange.transaction(time), ticket)
