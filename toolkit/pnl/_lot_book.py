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
    - ``start``: the position before the fills, as one lot of unknown cost
    """

    def __init__(self, method: Method, start: int = 0) -> None:
        self.method = method
        self.lots: deque[Lot] = deque()
        if start:
            self.lots.append(Lot(1 if start > 0 else -1, abs(start), None, -1))

    def add_tokens(self, size: int, cost: int | None = None, key: int = -1) -> None:
        """Add spot tokens; `cost` is in the units of lots, or None for tokens without a buy."""
        self._open(Lot(1, size, cost, key), is_token=True)

    def sell_tokens(self, size: int, px: int) -> list[Match]:
        """Sell spot tokens and return the parts of lots that this closes.

        Tokens beyond the balance are of unknown cost.
        """
        parts = self.remove_tokens(size, px)
        if missing := size - sum(part.size for part in parts):
            parts.append(Match(Lot(1, missing, None, -1), missing, None, None))
        return parts

    def remove_tokens(self, size: int, px: int | None = None) -> list[Match]:
        """Remove tokens and return the parts of lots, without a gain if there is no price."""
        if self.method != "average" or (len(self.lots) == 1 and self.lots[0].size):
            parts = []
            while size and self.lots:
                lot = self.lots[-1 if self.method == "lifo" else 0]
                parts.append(_close_part(lot, min(size, lot.size), px))
                size -= parts[-1].size
                if not lot.size:
                    _ = self.lots.pop() if self.method == "lifo" else self.lots.popleft()
            return parts
        total = sum(lot.size for lot in self.lots)
        shares = [lot.size * min(size, total) // max(total, 1) for lot in self.lots]
        shares[:1] = [share + min(size, total) - sum(shares) for share in shares[:1]]
        taken = zip(self.lots, shares, strict=True)
        parts = [_close_part(lot, share, px) for lot, share in taken if share]
        self.lots = deque(lot for lot in self.lots if lot.size)
        return parts

    def set_balance(self, balance: int, rounding: int) -> list[Match]:
        """Add or remove tokens that came or left without a fill; return the parts that left.

        - ``rounding``: a difference up to this one is no movement
        """
        gap = balance - sum(lot.size for lot in self.lots)
        if gap and balance and abs(gap) <= rounding:
            if self.lots:  # the cost stays
                lot = max(self.lots, key=attrgetter("size"))
                lot.size += gap
                if lot.size <= 0:
                    self.lots.remove(lot)
        elif gap > 0:
            self.add_tokens(gap)
        elif gap:
            return self.remove_tokens(-gap)
        return []

    def apply_fill(self, change: int, px: int, key: int) -> list[Match]:
        """Apply a fill and return the parts of lots that it closes.

        - ``change``: signed size, positive for a buy
        - ``px``: price
        - ``key``: the key of a lot that it opens
        """
        sign, left = (1 if change > 0 else -1), abs(change)
        parts: list[Match] = []
        if self.lots and self.lots[0].sign != sign:
            parts = self.remove_tokens(left, px)
            left -= sum([part.size for part in parts])
        if left:
            self._open(Lot(sign, left, (left * px) << GUARD_BITS, key))
        return parts

    def _open(self, new: Lot, *, is_token: bool = False) -> None:
        """Add a lot; by average it joins the first one, of tokens only if that has a cost, too."""
        for lot in self.lots if self.method == "average" else ():
            if not is_token or (lot.cost is None) == (new.cost is None):
                lot.size += new.size
                lot.cost = None if lot.cost is None or new.cost is None else lot.cost + new.cost
                return
        if new.size or self.method == "average":  # the fee of a buy may take all of its tokens
            self.lots.append(new)


def _close_part(lot: Lot, size: int, px: int | None) -> Match:
    cost = gain = None
    if lot.cost is not None:
        # The remaining cost is rounded up; the closed part gets the rest, so that nothing is lost.
        left = -(-lot.cost * (lot.size - size) // lot.size)
        cost, lot.cost = lot.cost - left, left
        if px is not None:
            gain = lot.sign * (((size * px) << GUARD_BITS) - cost)
    lot.size -= size
    return Match(lot, size, cost, gain)
