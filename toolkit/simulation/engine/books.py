"""Order books: quotes of market makers, orders of takers, and resting orders far from the price."""

from toolkit.simulation.engine.accounts import Account
from toolkit.simulation.engine.exchange import Exchange, Transaction
from toolkit.simulation.engine.orders import Ticket
from toolkit.simulation.markets import PERPS, tick_size

_LARGEST_BOOK = 4
"""Quotes that stay on one side of a book between takers."""

_PASSIVE_SHARE = 0.15
"""How often a trader quotes instead of a market maker."""

_OWN_QUOTE_SHARE = 0.006
"""How often a taker meets its own order."""

_SAME_MAKER_SHARE = 0.6
"""How often the next quote is from the same market maker."""


class OrderBooks:
    """The books of all perps: for each, the resting sells and buys, best first."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.asks: list[list[Ticket]] = [[] for _ in PERPS]
        self.bids: list[list[Ticket]] = [[] for _ in PERPS]
        self._far_orders: list[Ticket] = []
        accounts = exchange.accounts
        self.makers = [account for account in accounts if account.strategy == "maker"]
        self._takers = [
            [account for account in accounts if account.activity and coin in account.coins]
            for coin in range(len(PERPS))
        ]

    def execute_order(
        self, tx: Transaction, coin: int, ticket: Ticket, directions: tuple[str, str] = ("", "")
    ) -> None:
        """Fill an order at once against the book, and record its final status.

        An order that needs more margin than the account has is rejected.

        - ``tx``: the order's transaction
        - ``coin``: index of the perp
        - ``ticket``: the order; its open size shrinks
        - ``directions``: as in `Exchange.match_orders`
        """
        exchange = self.exchange
        best = exchange.best_price(coin, tx.time, ticket.is_buy)
        if not exchange.has_margin(coin, ticket, best, tx.time):
            exchange.journal.record_status(ticket, "perpMarginRejected", tx.time, tx.index)
            return
        book = (self.asks if ticket.is_buy else self.bids)[coin]
        self._cancel_stale_quotes(tx, book, best, ticket.sign)
        self._add_quotes(tx, coin, book, ticket, best)
        while ticket.left and book:
            quote = book[0]
            if quote.account is ticket.account:
                self._cancel_quote(book.pop(0), "selfTradeCanceled", tx)
                continue
            size = min(ticket.left, quote.left)
            exchange.match_orders(tx, coin, ticket, quote, size, directions)
            if not quote.left:
                book.pop(0)
        status = "filled"
        if ticket.left:
            status = "canceled" if ticket.left < ticket.size else "iocCancelRejected"
        exchange.journal.record_status(ticket, status, tx.time, tx.index)

    def place_far_order(self, account: Account, coin: int, time: int) -> None:
        """Place a small buy order a fifth below the market; it waits until it is cancelled."""
        exchange = self.exchange
        px = exchange.mark_price(coin, time) * 4 // 5
        ticket = market_ticket(exchange, account, coin, max(1, 20_000_000 // px), px, time)
        ticket.kind, ticket.tif, ticket.px = "Limit", "Gtc", round_to_tick(px, coin)
        tx = exchange.next_transaction(time)
        exchange.journal.record_status(ticket, "open", tx.time, tx.index)
        self._far_orders.append(ticket)

    def cancel_orders(
        self, tx: Transaction, status: str, *, account: Account | None = None, coin: str = ""
    ) -> None:
        """Cancel the resting orders of an account, of a perp, or of an account on a perp."""
        for book in (*self.asks, *self.bids, self._far_orders):
            remaining = []
            for quote in book:
                if account in (None, quote.account) and coin in ("", quote.market.coin):
                    self._cancel_quote(quote, status, tx)
                else:
                    remaining.append(quote)
            book[:] = remaining

    def _cancel_quote(self, quote: Ticket, status: str, tx: Transaction) -> None:
        self.exchange.journal.record_status(quote, status, tx.time, tx.index)

    def _cancel_stale_quotes(
        self, tx: Transaction, book: list[Ticket], best: int, sign: int
    ) -> None:
        """Cancel quotes that the price has passed, and the furthest quotes of a full book."""
        passed = 0
        while passed < len(book) and (book[passed].px - best) * sign < 0:
            passed += 1
        for quote in (*book[:passed], *book[passed + _LARGEST_BOOK :]):
            self._cancel_quote(quote, "canceled", tx)
        book[:] = book[passed : passed + _LARGEST_BOOK]

    def _add_quotes(
        self, tx: Transaction, coin: int, book: list[Ticket], taker: Ticket, best: int
    ) -> None:
        """Place the quotes that a taker of this size will meet."""
        rng = self.exchange.rng
        sign = taker.sign
        step = tick_size(best, PERPS[coin].px_decimals)
        level = 0
        account = taker.account
        if rng.random() < _OWN_QUOTE_SHARE:
            self._place_quote(tx, coin, book, account, best, taker.left, sign)
        for part in split_size(taker.left, rng.random(), rng.random()):
            if account.strategy == "maker" and rng.random() < _SAME_MAKER_SHARE:
                size = part
            else:
                account, size = self._choose_owner(coin, taker.account, -sign * part)
            self._place_quote(tx, coin, book, account, best + sign * level * step, size, sign)
            level += int(rng.random() * rng.random() * 3.0)
        missing = taker.left - sum(q.left for q in book if q.account is not taker.account)
        if missing > 0:
            maker = self._choose_maker(coin, -sign, taker.account)
            px = best + sign * (level + 1) * step
            self._place_quote(tx, coin, book, maker, px, missing, sign)

    def _place_quote(
        self,
        tx: Transaction,
        coin: int,
        book: list[Ticket],
        account: Account,
        px: int,
        size: int,
        sign: int,
    ) -> None:
        """Insert a quote into the book, behind all quotes with the same or a better price."""
        rng = self.exchange.rng
        oid = self.exchange.next_oid()
        time = max(tx.time - 1 - int(rng.random() * 20_000), self.exchange.start_ms)
        quote = Ticket(
            account=account,
            market=PERPS[coin],
            oid=oid,
            is_buy=sign < 0,
            px=max(px, 1),
            size=size,
            left=size,
            time=time,
            tif="Alo" if account.strategy == "maker" else "Gtc",
            cloid=account.make_cloid(oid),
        )
        self.exchange.journal.record_status(quote, "open", time, int(rng.random() * 40))
        place = len(book)
        while place and (book[place - 1].px - quote.px) * sign > 0:
            place -= 1
        book.insert(place, quote)

    def _choose_owner(self, coin: int, taker: Account, change: int) -> tuple[Account, int]:
        """Choose who quotes, and how much: a market maker, or a trader who reduces a position."""
        rng = self.exchange.rng
        traders = self._takers[coin]
        if traders and rng.random() < _PASSIVE_SHARE:
            account = traders[int(rng.random() * len(traders))]
            position = self.exchange.position_size(coin, account.number)
            if account is not taker and position * change < 0:
                return account, min(abs(change), abs(position))
        return self._choose_maker(coin, 1 if change > 0 else -1, taker), abs(change)

    def _choose_maker(self, coin: int, sign: int, taker: Account) -> Account:
        """Choose one of two market makers: the one whose inventory the trade reduces more."""
        rng = self.exchange.rng
        makers = self.makers
        first = makers[int(rng.random() * len(makers))]
        second = makers[int(rng.random() * len(makers))]
        inventory = self.exchange.position_size
        is_first = inventory(coin, first.number) * sign <= inventory(coin, second.number) * sign
        maker = first if is_first else second
        if maker is taker:
            return makers[(makers.index(maker) + 1) % len(makers)]
        return maker


def market_ticket(
    exchange: Exchange, account: Account, coin: int, change: int, px: int, time: int
) -> Ticket:
    """Return a new market order, with the usual limit of 5 % from the price."""
    percent = 105 if change > 0 else 95
    return Ticket(
        account=account,
        market=PERPS[coin],
        oid=exchange.next_oid(),
        is_buy=change > 0,
        px=round_to_tick(px * percent // 100, coin),
        size=abs(change),
        left=abs(change),
        time=time,
        kind="Market",
        tif="FrontendMarket",
    )


def round_to_tick(px: int, coin: int) -> int:
    """Return a price rounded down to a legal tick above zero."""
    step = tick_size(px, PERPS[coin].px_decimals)
    return max(px // step * step, step)


def split_size(size: int, kind: float, spread: float) -> list[int]:
    """Split a size into the quotes that a taker meets: often one, rarely more than a hundred.

    >>> split_size(10, 0.1, 0.5), split_size(100, 0.9, 0.0), len(split_size(10**6, 0.999, 0.9))
    ([10], [14, 86], 154)
    """
    if kind < 0.53:
        count = 1
    elif kind < 0.975:
        count = 2 + int(spread * 8.0)
    elif kind < 0.996:
        count = 10 + int(spread * 50.0)
    else:
        count = 100 + int(spread * 60.0)
    base = size // (2 * count + 3)
    if count == 1 or not base:
        return [size]
    parts = [base * (1 + number % 3) for number in range(count - 1)]
    return [*parts, size - sum(parts)]
