"""Resting orders: who quotes, what a taker meets."""

from dataclasses import dataclass

from toolkit.simulation.accounts import Account
from toolkit.simulation.exchange import Exchange, Leg, Transaction
from toolkit.simulation.markets import PERPS, tick

__all__ = ["Books", "Quote", "parts_of"]

_KEPT = 6
"""Quotes that stay on one side of a book between takers."""

_PASSIVE_SHARE = 0.15
_LAYERED = 0.6
"""How often the next quote is the same market maker's."""


@dataclass(slots=True)
class Quote:
    """A resting order.

    Parameters
    ----------
    leg : Leg
        Whose it is.
    px, size, left : int
        Price, original size and what is still open, in units of its perp.
    time : int
        When it was placed.
    """

    leg: Leg
    px: int
    size: int
    left: int
    time: int


class Books:
    """The books of all perps: for each, the resting sells and buys, best first."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.asks: list[list[Quote]] = [[] for _ in PERPS]
        self.bids: list[list[Quote]] = [[] for _ in PERPS]
        accounts = exchange.accounts
        self._makers = [account for account in accounts if account.manner == "maker"]
        self._takers = [
            [account for account in accounts if account.activity and coin in account.coins]
            for coin in range(len(PERPS))
        ]

    def take(self, tx: Transaction, coin: int, taker: Leg, change: int, best: int) -> int:
        """Fill a market order against the book, which its makers have just refreshed.

        Parameters
        ----------
        tx : Transaction
            The order's transaction.
        coin : int
            Index of the perp.
        taker : Leg
            The order.
        change : int
            Signed size wanted.
        best : int
            The best price of the other side now.

        Returns
        -------
        int
            Size that was filled, unsigned.
        """
        sign = 1 if change > 0 else -1
        book = (self.asks if change > 0 else self.bids)[coin]
        self._drop_stale(book, best, sign)
        self._quote(tx, coin, book, taker.account, change, best)
        wanted = abs(change)
        while wanted and book:
            quote = book[0]
            if quote.leg.account is taker.account:
                book.pop(0)
                continue
            size = min(wanted, quote.left)
            self.exchange.trade(tx, coin, taker, quote.leg, sign * size, quote.px)
            wanted -= size
            quote.left -= size
            if not quote.left:
                book.pop(0)
        return abs(change) - wanted

    def _drop_stale(self, book: list[Quote], best: int, sign: int) -> None:
        """Take away quotes that the price has passed, and the furthest of too many."""
        while book and (book[0].px - best) * sign < 0:
            book.pop(0)
        del book[_KEPT:]

    def _quote(
        self, tx: Transaction, coin: int, book: list[Quote], taker: Account, change: int, best: int
    ) -> None:
        """Place the quotes that a taker of this size will meet."""
        sign = 1 if change > 0 else -1
        luck = self.exchange.luck
        step = tick(best, PERPS[coin].px_decimals)
        level = 0
        account = taker
        for part in parts_of(abs(change), luck.random(), luck.random()):
            if account.manner == "maker" and luck.random() < _LAYERED:
                size = part
            else:
                account, size = self._owner(coin, taker, -sign * part)
            time = tx.time - 1 - int(luck.random() * 20_000)
            _insert(
                book, self._order(account, max(best + sign * level * step, 1), size, time), sign
            )
            level += int(luck.random() * luck.random() * 3.0)
        short = abs(change) - sum(q.left for q in book if q.leg.account is not taker)
        if short > 0:
            px = max(best + sign * (level + 1) * step, 1)
            _insert(book, self._order(self._maker(coin, -sign), px, short, tx.time - 1), sign)

    def _order(self, account: Account, px: int, size: int, time: int) -> Quote:
        oid = self.exchange.next_oid()
        cloid = f"0x{oid * 7919:032x}" if account.names_orders else None
        return Quote(Leg(account, oid, cloid, crossed=False), px, size, size, time)

    def _owner(self, coin: int, taker: Account, change: int) -> tuple[Account, int]:
        """Choose who quotes: mostly market makers, sometimes a trader who reduces."""
        luck = self.exchange.luck
        traders = self._takers[coin]
        if traders and luck.random() < _PASSIVE_SHARE:
            account = traders[int(luck.random() * len(traders))]
            held = self.exchange.position(coin, account.number)
            if account is not taker and held * change < 0:
                return account, min(abs(change), abs(held))
        return self._maker(coin, 1 if change > 0 else -1), abs(change)

    def _maker(self, coin: int, sign: int) -> Account:
        """Choose a market maker: of two, the one whose inventory it helps more."""
        luck = self.exchange.luck
        one = self._makers[int(luck.random() * len(self._makers))]
        other = self._makers[int(luck.random() * len(self._makers))]
        position = self.exchange.position
        better = position(coin, one.number) * sign <= position(coin, other.number) * sign
        return one if better else other


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


def _insert(book: list[Quote], quote: Quote, sign: int) -> None:
    """Put a quote behind all that are as good."""
    place = len(book)
    while place and (book[place - 1].px - quote.px) * sign > 0:
        place -= 1
    book.insert(place, quote)
