"""Books of lots: the purchase that a sale closes is the first, the last, or the average of all.

Everything is a Python int: sizes and prices in whole units, costs in price units times size units
times 2**GUARD_BITS. If a lot is split, its cost is split without a rest. Under every method, at
every time and at any price,

    realised + unrealised = sum over all fills of -change * px, plus position * price.

Methods differ only in the time at which they realise a gain. FIFO and LIFO have a lot for each
opening fill; the average has one for all.

Spot tokens (docs/live_service.md, section 3) are never short. They also come and leave without a
trade: `add_tokens` and `remove_tokens`. The average method then has a separate lot for tokens of
unknown cost, and takes from both lots in proportion.

>>> book = LotBook("fifo")
>>> fills = ((2, 100), (1, 104))
>>> [book.apply_fill(change, px, number) for number, (change, px) in enumerate(fills)]
[[], []]
>>> [(match.lot.key, match.size, match.gain >> GUARD_BITS) for match in book.apply_fill(-3, 110, 2)]
[(0, 2, 20), (1, 1, 6)]
"""

from collections import deque
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal, NamedTuple, get_args

from toolkit.rules.closed_pnl import GUARD_BITS

Method = Literal["fifo", "lifo", "average"]
METHODS: tuple[str, ...] = get_args(Method)


@dataclass(slots=True)
class Lot:
    """A part of a position that was opened together: sign, size, cost (None: unknown) and key."""

    sign: int
    size: int
    cost: int | None
    key: int


class Match(NamedTuple):
    """A part of a lot that a fill has closed; cost and gain are None if they are unknown."""

    lot: Lot
    size: int
    cost: int | None
    gain: int | None


class LotBook:
    """The open lots of one account in one coin.

    - ``method`` ({"fifo", "lifo", "average"}): the lot that a closing fill takes first
    """

    def __init__(self, method: Method) -> None:
        self.method = method
        self.lots: deque[Lot] = deque()

    def set_position(self, position: int, key: int) -> None:
        """Replace all lots with one lot of unknown cost. If the position is 0, remove all lots."""
        self.lots.clear()
        if position:
            self.lots.append(Lot(1 if position > 0 else -1, abs(position), None, key))

    def buy_tokens(self, size: int, cost: int, key: int) -> None:
        """Add bought spot tokens; `cost` is in price units times size units."""
        if self.method == "average":
            for lot in self.lots:
                if lot.cost is not None:
                    lot.size += size
                    lot.cost += cost << GUARD_BITS
                    return
        self.lots.append(Lot(1, size, cost << GUARD_BITS, key))

    def sell_tokens(self, size: int, px: int) -> list[Match]:
        """Sell spot tokens and return the parts of lots that this closes.

        Tokens beyond the balance are of unknown cost.
        """
        parts = self.remove_tokens(size)
        missing = size - sum(part.size for part in parts)
        if missing:
            parts.append(Match(Lot(1, missing, None, -1), missing, None, None))
        return [
            part._replace(gain=((part.size * px) << GUARD_BITS) - part.cost)
            if part.cost is not None
            else part
            for part in parts
        ]

    def add_tokens(self, size: int, cost: int | None = None, key: int = -1) -> None:
        """Add spot tokens that came without a buy; `cost` is in the units of lots, or None."""
        if self.method == "average":
            for lot in self.lots:
                if (lot.cost is None) == (cost is None):
                    lot.size += size
                    if cost is not None and lot.cost is not None:
                        lot.cost += cost
                    return
        self.lots.append(Lot(1, size, cost, key))

    def remove_tokens(self, size: int) -> list[Match]:
        """Remove spot tokens without proceeds and return the parts of lots, without a gain."""
        size = min(size, sum(lot.size for lot in self.lots))
        if self.method == "average":
            total = sum(lot.size for lot in self.lots)
            shares = [lot.size * size // total for lot in self.lots] if total else []
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
        parts = [_close_part(lot, part, 0)._replace(gain=None) for lot, part in taken if part]
        self.lots = deque(lot for lot in self.lots if lot.size)
        return parts

    def correct_size(self, gap: int) -> None:
        """Correct the size by a rounding difference; the cost stays."""
        if self.lots:
            lot = max(self.lots, key=attrgetter("size"))
            lot.size += gap
            if lot.size <= 0:
                self.lots.remove(lot)

    def apply_fill(self, change: int, px: int, key: int) -> list[Match]:
        """Apply a fill and return the parts of lots that it closes.

        - ``change``: signed size, positive for a buy
        - ``px``: price
        - ``key``: the key of a lot that it opens
        """
        sign, left = (1 if change > 0 else -1), abs(change)
        matches = []
        while left and self.lots and self.lots[0].sign != sign:
            lot = self.lots[-1] if self.method == "lifo" else self.lots[0]
            matches.append(_close_part(lot, min(left, lot.size), px))
            left -= matches[-1].size
            if not lot.size:
                _ = self.lots.pop() if self.method == "lifo" else self.lots.popleft()
        if left:
            self._open_lot(sign, left, (left * px) << GUARD_BITS, key)
        return matches

    def _open_lot(self, sign: int, size: int, cost: int, key: int) -> None:
        if self.method == "average" and self.lots:
            lot = self.lots[0]
            lot.size += size
            lot.cost = None if lot.cost is None else lot.cost + cost
        else:
            self.lots.append(Lot(sign, size, cost, key))


def _close_part(lot: Lot, size: int, px: int) -> Match:
    cost = None
    if lot.cost is not None:
        # The remaining cost is rounded up; the closed part gets the rest, so that nothing is lost.
        left = -(-lot.cost * (lot.size - size) // lot.size)
        cost, lot.cost = lot.cost - left, left
    lot.size -= size
    gain = None if cost is None else lot.sign * (((size * px) << GUARD_BITS) - cost)
    return Match(lot, size, cost, gain)
