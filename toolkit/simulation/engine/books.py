"""Order books: quotes of market makers, orders of takers, and resting orders far from the price."""

from bisect import insort
from typing import Any

from toolkit.simulation.engine.accounts import Account, Ticket
from toolkit.simulation.engine.exchange import Exchange, Transaction
from toolkit.simulation.markets import PERPS, tick_size

_LARGEST_BOOK = 4
"""Quotes that stay on one side of a book between takers."""

_PASSIVE_SHARE = 0.15
"""How often a trader quotes instead of a market maker."""

_OWN_QUOTE_SHARE = 0.006
"""How often a taker meets its own order."""

_SAME_MAKER_SHARE = 0.6
"""How often the next quote is from the same market maker."""

_SPLITS = ((0.53, 1, 0), (0.975, 2, 8), (0.996, 10, 50), (1.0, 100, 60))
"""Of the quotes that a taker meets: cumulative share, least number, and how many more."""


def execute_order(exchange: Exchange, tx: Transaction, coin: int, ticket: Ticket) -> None:
    """Fill an order at once against the book, and record its final status.

    An order that needs more margin than the account has is rejected.

    - ``tx``: the order's transaction
    - ``coin``: index of the perp
    - ``ticket``: the order; its open size shrinks
    """
    best = exchange.best_price(coin, tx.time, ticket.is_buy)
    if not exchange.has_margin(coin, ticket, best, tx.time):
        exchange.record_status(ticket, "perpMarginRejected", tx.time, tx.index)
        return
    book = (exchange.asks if ticket.is_buy else exchange.bids)[coin]
    # Quotes that the price has passed are cancelled, and the furthest quotes of a full book.
    passed = sum((quote.px - best) * ticket.sign < 0 for quote in book)
    for quote in (*book[:passed], *book[passed + _LARGEST_BOOK :]):
        exchange.record_status(quote, "canceled", tx.time, tx.index)
    book[:] = book[passed : passed + _LARGEST_BOOK]
    _add_quotes(exchange, tx, coin, ticket, best)
    while ticket.left and book:
        quote = book[0]
        if quote.account is ticket.account:
            exchange.record_status(book.pop(0), "selfTradeCanceled", tx.time, tx.index)
            continue
        exchange.match_orders(tx, coin, ticket, quote, min(ticket.left, quote.left))
        if not quote.left:
            book.pop(0)
    status = "filled"
    if ticket.left:
        status = "canceled" if ticket.left < ticket.size else "iocCancelRejected"
    exchange.record_status(ticket, status, tx.time, tx.index)


def place_far_order(exchange: Exchange, time: int, account: Account, coin: int) -> None:
    """Place a small buy order a fifth below the market; it waits until it is cancelled."""
    px = exchange.mark_price(coin, time) * 4 // 5
    legal, size = round_to_tick(px, coin), max(1, 20_000_000 // px)
    ticket = Ticket(account, PERPS[coin], exchange.next_oid(), True, legal, size, time)
    tx = exchange.next_transaction(time)
    exchange.record_status(ticket, "open", tx.time, tx.index)
    exchange.far_orders.append(ticket)


def cancel_orders(
    exchange: Exchange, tx: Transaction, status: str, account: Account | None, coin: str = ""
) -> None:
    """Cancel the resting orders of an account, of a perp, or of an account on a perp."""
    for book in (*exchange.asks, *exchange.bids, exchange.far_orders):
        remaining = []
        for quote in book:
            if account in (None, quote.account) and coin in ("", quote.market.coin):
                exchange.record_status(quote, status, tx.time, tx.index)
            else:
                remaining.append(quote)
        book[:] = remaining


def _add_quotes(exchange: Exchange, tx: Transaction, coin: int, taker: Ticket, best: int) -> None:
    """Place the quotes that a taker of this size will meet."""
    rng, sign, traders = exchange.rng, taker.sign, exchange.traders[coin]
    book = (exchange.asks if taker.is_buy else exchange.bids)[coin]

    def place_quote(account: Account, px: int, size: int) -> None:
        """Insert a quote into the book, behind all quotes with the same or a better price."""
        oid = exchange.next_oid()
        time = max(tx.time - 1 - int(rng.random() * 20_000), exchange.start_ms)
        quote = Ticket(account, PERPS[coin], oid, sign < 0, max(px, 1), size, time)
        quote.tif = "Alo" if account.strategy == "maker" else "Gtc"
        quote.cloid = account.make_cloid(quote.oid)
        exchange.record_status(quote, "open", quote.time, int(rng.random() * 40))
        insort(book, quote, key=lambda other: other.px * sign)

    step = tick_size(best, PERPS[coin].px_decimals)
    level = 0
    account = taker.account
    if rng.random() < _OWN_QUOTE_SHARE:
        place_quote(account, best, taker.left)
    for part in split_size(taker.left, rng.random(), rng.random()):
        size = part
        if account.strategy != "maker" or rng.random() >= _SAME_MAKER_SHARE:
            # A trader who reduces a position, or a market maker.
            account = taker.account
            if traders and rng.random() < _PASSIVE_SHARE:
                account = traders[int(rng.random() * len(traders))]
            reducible = exchange.position_size(coin, account.number) * sign
            if account is not taker.account and reducible > 0:
                size = min(part, reducible)
            else:
                account = _choose_maker(exchange, coin, -sign, taker.account)
        place_quote(account, best + sign * level * step, size)
        level += int(rng.random() * rng.random() * 3.0)
    missing = taker.left - sum(q.left for q in book if q.account is not taker.account)
    if missing > 0:
        maker = _choose_maker(exchange, coin, -sign, taker.account)
        place_quote(maker, best + sign * (level + 1) * step, missing)


def _choose_maker(exchange: Exchange, coin: int, sign: int, taker: Account) -> Account:
    """Choose one of two market makers: the one whose inventory the trade reduces more."""
    rng, makers = exchange.rng, exchange.makers
    pair = [makers[int(rng.random() * len(makers))] for _ in range(2)]
    maker = min(pair, key=lambda account: exchange.position_size(coin, account.number) * sign)
    return makers[(makers.index(maker) + 1) % len(makers)] if maker is taker else maker


def market_ticket(
    exchange: Exchange, account: Account, coin: int, change: int, px: int, time: int, **fields: Any
) -> Ticket:
    """Return a new market order, with the usual limit of 5 % from the price.

    - ``fields``: what else it has, by the names in `Ticket`
    """
    perp, limit = PERPS[coin], round_to_tick(px * (105 if change > 0 else 95) // 100, coin)
    fields = {"kind": "Market", "tif": "FrontendMarket", **fields}
    oid = exchange.next_oid()
    return Ticket(account, perp, oid, change > 0, limit, abs(change), time, **fields)


def trade_market(
    exchange: Exchange, time: int, account: Account, coin: int, change: int, px: int, **fields: Any
) -> Ticket:
    """Execute a new market order, as in `market_ticket`, and return it."""
    ticket = market_ticket(exchange, account, coin, change, px, time, **fields)
    execute_order(exchange, exchange.next_transaction(time), coin, ticket)
    return ticket


def round_to_tick(px: int, coin: int) -> int:
    """Return a price rounded down to a legal tick above zero."""
    step = tick_size(px, PERPS[coin].px_decimals)
    return max(px // step * step, step)


def split_size(size: int, kind: float, spread: float) -> list[int]:
    """Split a size into the quotes that a taker meets: often one, rarely more than a hundred.

    >>> split_size(10, 0.1, 0.5), split_size(100, 0.9, 0.0), len(split_size(10**6, 0.999, 0.9))
    ([10], [14, 86], 154)
    """
    count = next(least + int(spread * more) for share, least, more in _SPLITS if kind < share)
    base = size // (2 * count + 3)
    if count == 1 or not base:
        return [size]
    parts = [base * (1 + number % 3) for number in range(count - 1)]
    return [*parts, size - sum(parts)]
