"""Resting orders: who quotes, what a taker meets, what becomes of the rest."""

from toolkit.simulation.accounts import Account
from toolkit.simulation.exchange import Exchange, Transaction
from toolkit.simulation.markets import PERPS, tick
from toolkit.simulation.orders import Ticket

__all__ = ["Books", "parts_of"]

_KEPT = 4
"""Quotes that stay on one side of a book between takers."""

_PASSIVE_SHARE = 0.15
_FORGOTTEN = 0.006
"""How often a taker has an order of its own in the way."""

_LAYERED = 0.6
"""How often the next quote is the same market maker's."""


class Books:
    """The books of all perps: for each, the resting sells and buys, best first."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.asks: list[list[Ticket]] = [[] for _ in PERPS]
        self.bids: list[list[Ticket]] = [[] for _ in PERPS]
        self._waiting: list[Ticket] = []
        accounts = exchange.accounts
        self.makers = [account for account in accounts if account.manner == "maker"]
        self._takers = [
            [account for account in accounts if account.activity and coin in account.coins]
            for coin in range(len(PERPS))
        ]

    def take(
        self,
        tx: Transaction,
        coin: int,
        taker: Ticket,
        best: int,
        directions: tuple[str, str] = ("", ""),
    ) -> None:
        """Fill a taker's order against the book, which its makers have just refreshed.

        Parameters
        ----------
        tx : Transaction
            The order's transaction.
        coin : int
            Index of the perp.
        taker : Ticket
            The order; what is left of it shrinks.
        best : int
            The best price of the other side now.
        directions : tuple of str
            As in `Exchange.trade`.
        """
        book = (self.asks if taker.is_buy else self.bids)[coin]
        self._drop_stale(tx, book, best, taker.sign)
        self._quote(tx, coin, book, taker, best)
        while taker.left and book:
            quote = book[0]
            if quote.account is taker.account:
                self._cancel(book.pop(0), "selfTradeCanceled", tx)
                continue
            self.exchange.trade(tx, coin, taker, quote, min(taker.left, quote.left), directions)
            if not quote.left:
                book.pop(0)

    def wait(self, tx: Transaction, ticket: Ticket) -> None:
        """Place an order so far away that nobody will meet it; it waits to be cancelled."""
        self.exchange.journal.record(ticket, "open", tx.time, tx.index)
        self._waiting.append(ticket)

    def cancel_all(
        self, tx: Transaction, why: str, *, account: Account | None = None, coin: str = ""
    ) -> None:
        """Cancel the resting orders of an account, of a perp, or of an account on a perp."""
        for book in (*self.asks, *self.bids, self._waiting):
            kept = []
            for quote in book:
                if account in (None, quote.account) and coin in ("", quote.market.coin):
                    self._cancel(quote, why, tx)
                else:
                    kept.append(quote)
            book[:] = kept

    def _cancel(self, quote: Ticket, status: str, tx: Transaction) -> None:
        self.exchange.journal.record(quote, status, tx.time, tx.index)

    def _drop_stale(self, tx: Transaction, book: list[Ticket], best: int, sign: int) -> None:
        """Cancel quotes that the price has passed, and the furthest of too many."""
        passed = 0
        while passed < len(book) and (book[passed].px - best) * sign < 0:
            passed += 1
        for quote in (*book[:passed], *book[passed + _KEPT :]):
            self._cancel(quote, "canceled", tx)
        book[:] = book[passed : passed + _KEPT]

    def _quote(
        self, tx: Transaction, coin: int, book: list[Ticket], taker: Ticket, best: int
    ) -> None:
        """Place the quotes that a taker of this size will meet."""
        luck = self.exchange.luck
        sign = taker.sign
        step = tick(best, PERPS[coin].px_decimals)
        level = 0
        account = taker.account
        if luck.random() < _FORGOTTEN:
            self._place(tx, coin, book, account, best, taker.left, sign)
        for part in parts_of(taker.left, luck.random(), luck.random()):
            if account.manner == "maker" and luck.random() < _LAYERED:
                size = part
            else:
                account, size = self._owner(coin, taker.account, -sign * part)
            self._place(tx, coin, book, account, best + sign * level * step, size, sign)
            level += int(luck.random() * luck.random() * 3.0)
        short = taker.left - sum(q.left for q in book if q.account is not taker.account)
        if short > 0:
            maker = self._maker(coin, -sign, taker.account)
            self._place(tx, coin, book, maker, best + sign * (level + 1) * step, short, sign)

    def _place(
        self,
        tx: Transaction,
        coin: int,
        book: list[Ticket],
        account: Account,
        px: int,
        size: int,
        sign: int,
    ) -> None:
        """Put a quote into the book, behind all that are as good."""
        luck = self.exchange.luck
        oid = self.exchange.next_oid()
        time = max(tx.time - 1 - int(luck.random() * 20_000), self.exchange.start_ms)
        quote = Ticket(
            account=account,
            market=PERPS[coin],
            oid=oid,
            is_buy=sign < 0,
            px=max(px, 1),
            size=size,
            left=size,
            time=time,
            tif="Alo" if account.manner == "maker" else "Gtc",
            cloid=account.cloid(oid),
        )
        self.exchange.journal.record(quote, "open", time, int(luck.random() * 40))
        place = len(book)
        while place and (book[place - 1].px - quote.px) * sign > 0:
            place -= 1
        book.insert(place, quote)

    def _owner(self, coin: int, taker: Account, change: int) -> tuple[Account, int]:
        """Choose who quotes: mostly market makers, sometimes a trader who reduces."""
        luck = self.exchange.luck
        traders = self._takers[coin]
        if traders and luck.random() < _PASSIVE_SHARE:
            account = traders[int(luck.random() * len(traders))]
            held = self.exchange.position(coin, account.number)
            if account is not taker and held * change < 0:
                return account, min(abs(change), abs(held))
        return self._maker(coin, 1 if change > 0 else -1, taker), abs(change)

    def _maker(self, coin: int, sign: int, taker: Account) -> Account:
        """Choose a market maker: of two, the one whose inventory it helps more."""
        luck = self.exchange.luck
        makers = self.makers
        one = makers[int(luck.random() * len(makers))]
        other = makers[int(luck.random() * len(makers))]
        position = self.exchange.position
        better = position(coin, one.number) * sign <= position(coin, other.number) * sign
        chosen = one if better else other
        if chosen is taker:
            return makers[(makers.index(chosen) + 1) % len(makers)]
        return chosen


def parts_of(size: int, kind: float, spread: float) -> list[int]:
    """Cut a size into as many quotes as a taker meets: often one, seldom more than a hundred.

    Examples
    --------
    >>> parts_of(10, 0.1, 0.5), parts_of(100, 0.9, 0.0), len(parts_of(10**6, 0.999, 0.9))
    ([10], [14, 86], 154)
    """
    count = _count(kind, spread)
    base = size // (2 * count + 3)
    if count == 1 or not base:
        return [size]
    parts = [base * (1 + number % 3) for number in range(count - 1)]
    return [*parts, size - sum(parts)]


def _count(kind: float, spread: float) -> int:
    if kind < 0.53:
        return 1
    if kind < 0.975:
        return 2 + int(spread * 8.0)
    if kind < 0.996:
        return 10 + int(spread * 50.0)
    return 100 + int(spread * 60.0)
