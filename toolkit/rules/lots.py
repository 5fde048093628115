"""Which purchase a sale closes: first in first out, last in first out, or the average of all.

Everything is a Python int: sizes and prices in whole units, costs in price units times size units
times 2**GUARD_BITS. A cost is split when a lot is, and what one part gets the other lacks, so
that under every method, at every instant and at any price,

    realised + unrealised = sum over all fills of -change * px, plus position * price.

Methods differ only in when a gain is realised. FIFO and LIFO keep a lot for each opening fill;
the average keeps one for all.

Spot tokens (docs/live_service.md, section 3) are never short, and come and leave in other ways,
too: `acquire` and `dispose`. The average then keeps tokens of unknown cost in a lot of their own,
and takes from both lots in proportion.

>>> book = Book("fifo")
>>> [book.trade(change, px, number) for number, (change, px) in enumerate(((2, 100), (1, 104)))]
[[], []]
>>> [(match.lot.key, match.size, match.gain >> GUARD_BITS) for match in book.trade(-3, 110, 2)]
[(0, 2, 20), (1, 1, 6)]
"""

from collections import deque
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from toolkit.rules.closed_pnl import GUARD_BITS

__all__ = ["GUARD_BITS", "METHODS", "Book", "Lot", "Match", "Method"]

Method = Literal["fifo", "lifo", "average"]
METHODS: tuple[str, ...] = get_args(Method)


@dataclass(slots=True)
class Lot:
    """What was opened together: its sign, size, cost (None: not known), and whose it was."""

    sign: int
    size: int
    cost: int | None
    key: int


class Match(NamedTuple):
    """A part of a lot that a fill has closed; cost and gain are None where they are not known."""

    lot: Lot
    size: int
    cost: int | None
    gain: int | None


class Book:
    """The open lots of one account in one coin.

    Parameters
    ----------
    method : {"fifo", "lifo", "average"}
        Which lot a closing fill takes first.
    """

    def __init__(self, method: Method) -> None:
        self.method = method
        self.lots: deque[Lot] = deque()

    def hold(self, position: int, key: int) -> None:
        """Start from a position of unknown cost, or from nothing."""
        self.lots.clear()
        if position:
            self.lots.append(Lot(1 if position > 0 else -1, abs(position), None, key))

    def buy(self, size: int, cost: int, key: int) -> None:
        """Add spot tokens: `size` of them, for `cost` in price units times size units."""
        if self.method == "average":
            for lot in self.lots:
                if lot.cost is not None:
                    lot.size += size
                    lot.cost += cost << GUARD_BITS
                    return
        self.lots.append(Lot(1, size, cost << GUARD_BITS, key))

    def sell(self, size: int, px: int) -> list[Match]:
        """Sell spot tokens; return the parts of lots that this closes.

        Tokens beyond those held are of unknown cost.
        """
        parts = self.dispose(size)
        missing = size - sum(part.size for part in parts)
        if missing:
            parts.append(Match(Lot(1, missing, None, -1), missing, None, None))
        return [
            part._replace(gain=((part.size * px) << GUARD_BITS) - part.cost)
            if part.cost is not None
            else part
            for part in parts
        ]

    def acquire(self, size: int, cost: int | None = None, key: int = -1) -> None:
        """Add spot tokens that came without a buy; `cost` as lots have it, None: not known."""
        if self.method == "average":
            for lot in self.lots:
                if (lot.cost is None) == (cost is None):
                    lot.size += size
                    if cost is not None and lot.cost is not None:
                        lot.cost += cost
                    return
        self.lots.append(Lot(1, size, cost, key))

    def dispose(self, size: int) -> list[Match]:
        """Take spot tokens away without proceeds; return the parts of lots, without a gain."""
        size = min(size, sum(lot.size for lot in self.lots))
        if self.method == "average":
            held = sum(lot.size for lot in self.lots)
            shares = [lot.size * size // held for lot in self.lots] if held else []
            if shares:
                shares[0] += size - sum(shares)
            taken = list(zip(list(self.lots), shares, strict=True))
        else:
            taken = []
            lots = reversed(self.lots) if self.method == "lifo" else iter(self.lots)
            for lot in lots:
                if not size:
                    break
                taken.append((lot, min(size, lot.size)))
                size -= taken[-1][1]
        parts = [_taken(lot, part) for lot, part in taken if part]
        self.lots = deque(lot for lot in self.lots if lot.size)
        return parts

    def correct(self, gap: int) -> None:
        """Correct the size by what was rounded; the cost stays."""
        if self.lots:
            lot = max(self.lots, key=_size_of)
            lot.size += gap
            if lot.size <= 0:
                self.lots.remove(lot)

    def trade(self, change: int, px: int, key: int) -> list[Match]:
        """Apply a fill; give the parts of lots that it closes.

        Parameters
        ----------
        change : int
            Signed size, positive for a buy.
        px : int
            Price.
        key : int
            What to call a lot that it opens.
        """
        sign, left = (1 if change > 0 else -1), abs(change)
        matches = []
        while left and self.lots and self.lots[0].sign != sign:
            lot = self.lots[-1] if self.method == "lifo" else self.lots[0]
            matches.append(_close(lot, min(left, lot.size), px))
            left -= matches[-1].size
            if not lot.size:
                _ = self.lots.pop() if self.method == "lifo" else self.lots.popleft()
        if left:
            self._open(sign, left, (left * px) << GUARD_BITS, key)
        return matches

    def _open(self, sign: int, size: int, cost: int, key: int) -> None:
        if self.method == "average" and self.lots:
            lot = self.lots[0]
            lot.size += size
            lot.cost = None if lot.cost is None else lot.cost + cost
        else:
            self.lots.append(Lot(sign, size, cost, key))


def _size_of(lot: Lot) -> int:
    return lot.size


def _taken(lot: Lot, size: int) -> Match:
    """Take a part of a lot away; return it without a gain."""
    part = _close(lot, size, 0)
    return part._replace(gain=None)


def _close(lot: Lot, size: int, px: int) -> Match:
    cost = None
    if lot.cost is not None:
        # What is left is rounded up; what is closed gets the rest, so that nothing is lost.
        left = -(-lot.cost * (lot.size - size) // lot.size)
        cost, lot.cost = lot.cost - left, left
    lot.size -= size
    gain = None if cost is None else lot.sign * (((size * px) << GUARD_BITS) - cost)
    return Match(lot, size, cost, gain)
