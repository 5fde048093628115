"""Tax lots: each closing is matched to its opening, by FIFO, LIFO or average."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal, get_args

import numpy as np
import pandas as pd

from toolkit import prepare
from toolkit.arrays import Ints
from toolkit.pnl._positions import MarkPrices, mark_prices
from toolkit.prepare import Fills
from toolkit.prepare.average import swap_groups
from toolkit.prepare.door import NO_TIME, Frame, utc_times
from toolkit.prepare.fills import check_chains, owner_columns
from toolkit.prepare.provenance import finish
from toolkit.prepare.steps import POSITION_COLUMNS, Steps, grid
from toolkit.rules.closed_pnl import GUARD_BITS

Method = Literal["fifo", "lifo", "average"]
METHODS: tuple[str, ...] = get_args(Method)
Match = tuple[int, int, int, int | None, int | None]
"""A part of a lot that was closed: key and sign of the lot, size, cost and gain; None: unknown."""

_DECIMALS = 12  # of prices, if they are small
_Part = tuple[float | None, ...]
"""A match after a fill of its chain, the fill that closed it (-1: open), and the closing price."""


def lots(
    fills: Frame | Fills, method: Method = "fifo", *, marks: MarkPrices | None = None
) -> pd.DataFrame:
    """Match each closing of a position to its opening.

    Parameters
    ----------
    fills : DataFrame
        Fills of one or several accounts in any order, as `tk.user_fills_by_time` returns them.
        Columns ``coin, px, sz, side, time, start_position``; ``user`` if there are several
        accounts; ``tx_index`` if there are ties; ``fee`` and ``fee_token`` for spot, where a fee in
        the base token makes the lot smaller and does not change its cost (a rebate is a lot without
        cost); ``dir`` for conversions of outcome tokens.
    method : {"fifo", "lifo", "average"}
        Which lot is closed first: the oldest one, the latest one, or the average of all.
    marks : mapping of coin to price, or DataFrame, optional
        Current prices, for open lots: a dict, or a frame of `tk.meta_and_asset_ctxs` (``name``,
        ``mark_px``).

    Returns
    -------
    DataFrame
        One row per part of a lot that was closed together, and one row per open lot. Rows are
        sorted by user and coin, in the order of closing, open lots last:

        - ``user``: the account, if the fills have this column
        - ``coin``: the coin
        - ``side`` text: ``"long"`` or ``"short"``
        - ``opened``: time of the opening, UTC. By average it is the time of the first opening. It
          is missing for a position before the first fill, or after missing fills
        - ``closed``: time of the closing, UTC; missing for open lots
        - ``size``: size of the part in units of the coin, positive
        - ``entry_px``: entry price in USD; missing if it is not known
        - ``exit_px``: exit price in USD; missing for open lots, and for spot tokens that left
          without a sale (transfer, staking, priority gas, swap of outcome tokens)
        - ``realised``: gain of a closed lot before fees and funding, in USD; missing if the entry
          price is not known
        - ``unrealised``: gain of an open lot at `marks` before fees and funding, in USD; missing if
          a price is not known

    Raises
    ------
    MissingColumns
        If a column is missing, contains text, or has missing values.
    ValueError
        If `method` is unknown.

    Notes
    -----
    realised + unrealised is the same for all methods at any time: the cash of the fills plus the
    value of the open position. The methods differ in the time at which a gain is realised. Gains
    are computed from exact costs; the exchange's own closed PnL (`positions`, `audit`) truncates
    the entry price. Repeated rows count once.

    Spot and outcome tokens (docs/live_service.md, sections 3 and 7): a buy costs px * sz and adds
    sz less the fee in the token. If the next fill starts from a smaller balance, the difference
    leaves the oldest lots (by average: all lots in proportion). If it starts from a larger balance,
    the difference is a lot of unknown cost. The cost of the remaining lots does not change.

    Examples
    --------
    >>> import pandas as pd
    >>> fills = pd.DataFrame({
    ...     "coin": "BTC", "px": [100.0, 104.0, 110.0], "sz": [2.0, 1.0, 2.0],
    ...     "side": ["B", "B", "A"], "time": pd.to_datetime([0, 1, 2], unit="ms", utc=True),
    ...     "start_position": [0.0, 2.0, 3.0]})
    >>> lots(fills, marks={"BTC": 110.0})[["size", "entry_px", "realised", "unrealised"]]
       size  entry_px  realised  unrealised
    0   2.0     100.0      20.0         NaN
    1   1.0     104.0       NaN         6.0
    >>> lots(fills, "lifo", marks={"BTC": 110.0})[["size", "entry_px", "realised", "unrealised"]]
       size  entry_px  realised  unrealised
    0   1.0     104.0       6.0         NaN
    1   1.0     100.0      10.0         NaN
    2   1.0     100.0       NaN        10.0
    """
    fills = prepare.fills(fills)
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}; choose one of {', '.join(METHODS)}")
    check_chains(fills, tuple(name for name in POSITION_COLUMNS if name != "closed_pnl"))
    table, steps = fills.table, fills.steps
    heads, px = steps.heads, table.number("px")[steps.rows]
    coins = [steps.coins[code] for code in steps.coin[heads].tolist()]
    px_scale = grid(px, heads, coins, _DECIMALS)[steps.chain]
    px_units = np.rint(px * px_scale).astype(np.int64)
    groups = swap_groups(fills)
    columns = np.array(_match_fills(steps, px_units, method, groups), dtype=np.float64)
    # By chain and in the order of closing; open lots are the last ones.
    columns = columns.reshape(-1, 8)
    chain, close = steps.chain[columns[:, 0].astype(np.int64)], columns[:, 1]
    columns = columns[np.lexsort((np.where(close < 0, len(steps), close), chain))]
    at, closed, opened = columns[:, [0, 1, 3]].astype(np.int64).T
    exit_px, sign, size = columns[:, [2, 4, 5]].T
    cost, gain = columns[:, 6:].T / (1 << GUARD_BITS)
    sizes, value = size / steps.scale[at], px_scale[at] * steps.scale[at]
    prices = {} if marks is None else mark_prices(marks)
    mark = np.array([prices.get(coin, np.nan) for coin in steps.coins])[steps.coin[at]]
    times = np.append(steps.ms, NO_TIME)  # the place -1 is the last one
    made = {
        **owner_columns(fills, at),
        "side": pd.Series(np.where(sign > 0, "long", "short"), dtype="str"),
        "opened": utc_times(times[opened]),
        "closed": utc_times(times[closed]),
        "size": sizes,
        "entry_px": cost / value / sizes,
        "exit_px": exit_px / px_scale[at],
        "realised": gain / value,
        "unrealised": sign * (sizes * np.where(closed < 0, mark, np.nan) - cost / value),
    }
    facts = {"helper": "pnl.lots", "method": method}
    return finish(pd.DataFrame(made), {"fills": table.frame}, **facts)


def _match_fills(
    steps: Steps, px: Ints, method: Method, groups: dict[int, list[int]]
) -> list[_Part]:
    """Return the closed and the open parts of all chains.

    - ``px``: the price of each step in units of its chain
    - ``groups``: the steps of each conversion that swaps tokens, by step
    """
    parts, books = list[_Part](), dict[int, LotBook]()
    # The cost of a position before the first fill, or after a gap, is not known.
    begins = steps.is_gap & ~steps.spot
    columns = (
        steps.chain, begins, steps.start, steps.change, steps.fee, steps.spot, px,
        np.roll(steps.tolerance, 1),
    )  # fmt: skip
    fills = list(zip(*(column.tolist() for column in columns), strict=True))
    # A conversion connects chains, so all of them go on in the order of time.
    order = np.argsort(steps.ms, kind="stable") if groups else np.arange(len(steps))
    for place in order.tolist():
        legs = groups.get(place) or [place]
        if place != legs[0]:
            continue
        for leg in legs:
            chain, is_new, start, change, fee, spot, price, rounding = fills[leg]
            if is_new or chain not in books:
                books[chain] = LotBook(method, start)
            elif spot:
                removed = books[chain].set_balance(start, rounding)
                parts += [(leg, leg, None, *match) for match in removed]
        book = books[chain]
        if place in groups:
            changes = [fills[leg][3] for leg in legs]
            _swap_cost(parts, legs, changes, [books[fills[leg][0]] for leg in legs])
        elif not spot:
            for match in book.apply_fill(change, price, place):
                parts.append((place, place, price, *match))
        elif change > 0:
            book.add_tokens(change - fee, (change * price) << GUARD_BITS, place)
        else:
            sold = book.sell_tokens(-change, price)
            parts += [(place, place, price, *match) for match in sold]
            if fee < 0:
                book.add_tokens(-fee, 0, place)
    tails = np.flatnonzero(steps.last).tolist()
    for chain, book in books.items():
        left = [(lot.key, lot.sign, lot.size, lot.cost, None) for lot in book.lots]
        parts += [(tails[chain], -1, None, *lot) for lot in left]
    return parts


def _swap_cost(
    parts: list[_Part], legs: Sequence[int], changes: Sequence[int], books: Sequence["LotBook"]
) -> None:
    """Move the cost of the tokens that leave to the tokens that come in.

    The cost is unknown if no leg shows the tokens that leave, or if the cost of one is unknown.
    """
    costs: list[int | None] = []
    for place, change, book in zip(legs, changes, books, strict=True):
        removed = book.remove_tokens(max(0, -change))
        parts += [(place, place, None, *match) for match in removed]
        costs += [match[3] for match in removed]
        if sum(match[2] for match in removed) < -change:
            costs.append(None)
    known = [cost for cost in costs if cost is not None]
    cost = sum(known) if known and len(known) == len(costs) else None
    coming = sum(max(0, change) for change in changes)
    for place, size, book in zip(legs, changes, books, strict=True):
        if size > 0:
            share = None if cost is None else cost * size // coming
            cost = None if cost is None or share is None else cost - share
            coming -= size
            book.add_tokens(size, share, place)


@dataclass(slots=True)
class Lot:
    """A part of a position that was opened together: sign, size, cost (None: unknown) and key."""

    sign: int
    size: int
    cost: int | None
    key: int


class LotBook:
    """The open lots of one account in one coin.

    - ``method`` ({"fifo", "lifo", "average"}): the lot that a closing fill takes first
    - ``start``: the position before the fills, as one lot of unknown cost

    Everything is a Python int: sizes and prices in whole units, costs in price units times size
    units times 2**GUARD_BITS. If a lot is split, its cost is split without a rest. Under every
    method, at every time and at any price,

        realised + unrealised = sum over all fills of -change * px, plus position * price.

    Methods differ only in the time at which they realise a gain. FIFO and LIFO have a lot for each
    opening fill; the average has one for all.

    Spot tokens (docs/live_service.md, section 3) are never short. They also come and leave without
    a trade: `add_tokens` and `remove_tokens`. The average method then has a separate lot for tokens
    of unknown cost, and takes from both lots in proportion.

    >>> book = LotBook("fifo")
    >>> fills = ((2, 100), (1, 104))
    >>> [book.apply_fill(change, px, number) for number, (change, px) in enumerate(fills)]
    [[], []]
    >>> [(key, size, gain >> GUARD_BITS) for key, _, size, _, gain in book.apply_fill(-3, 110, 2)]
    [(0, 2, 20), (1, 1, 6)]
    """

    def __init__(self, method: Method, start: int = 0) -> None:
        self.method = method
        self.lots: deque[Lot] = deque()
        if start:
            self.lots.append(Lot(1 if start > 0 else -1, abs(start), None, -1))

    def apply_fill(self, change: int, px: int, key: int) -> list[Match]:
        """Apply a fill of a perp and return the parts of lots that it closes.

        - ``change``: signed size, positive for a buy
        - ``px``: price
        - ``key``: the key of a lot that it opens
        """
        sign, left, lots = (1 if change > 0 else -1), abs(change), self.lots
        parts: list[Match] = []
        if lots and lots[0].sign != sign:
            parts = self.remove_tokens(left, px)
            left -= sum([part[2] for part in parts])
        if left:
            cost = (left * px) << GUARD_BITS
            if lots and self.method == "average":
                lot = lots[0]
                lot.size += left
                lot.cost = None if lot.cost is None else lot.cost + cost
            else:
                lots.append(Lot(sign, left, cost, key))
        return parts

    def add_tokens(self, size: int, cost: int | None = None, key: int = -1) -> None:
        """Add spot tokens; `cost` is in the units of lots, or None for tokens without a buy.

        By average they join a lot that has a cost, too, or that has none, too.
        """
        for lot in self.lots if self.method == "average" else ():
            if (lot.cost is None) == (cost is None):
                lot.size += size
                lot.cost = None if lot.cost is None or cost is None else lot.cost + cost
                return
        if size or self.method == "average":  # the fee of a buy may take all of its tokens
            self.lots.append(Lot(1, size, cost, key))

    def sell_tokens(self, size: int, px: int) -> list[Match]:
        """Sell spot tokens and return the parts of lots that this closes.

        Tokens beyond the balance are of unknown cost.
        """
        parts = self.remove_tokens(size, px)
        if missing := size - sum(part[2] for part in parts):
            parts.append((-1, 1, missing, None, None))
        return parts

    def remove_tokens(self, size: int, px: int | None = None) -> list[Match]:
        """Remove tokens and return the parts of lots, without a gain if there is no price."""
        lots, taken, parts = self.lots, list[tuple[Lot, int]](), list[Match]()
        if self.method == "average" and len(lots) > 1:
            total = sum(lot.size for lot in lots)
            size = min(size, total)
            shares = [lot.size * size // max(total, 1) for lot in lots]
            shares[0] += size - sum(shares)
            taken = [*zip(lots, shares, strict=True)]
            self.lots = deque(lot for lot, share in taken if share != lot.size)
        else:
            end = -1 if self.method == "lifo" else 0
            while size and lots:
                lot = lots[end]
                taken.append((lot, min(size, lot.size)))
                size -= taken[-1][1]
                if taken[-1][1] == lot.size:
                    del lots[end]
        for lot, share in taken:
            if not share:
                continue
            cost = gain = None
            if lot.cost is not None:
                # The remaining cost is rounded up; the closed part gets the rest, so that nothing
                # is lost.
                left = -(-lot.cost * (lot.size - share) // lot.size)
                cost, lot.cost = lot.cost - left, left
                if px is not None:
                    gain = lot.sign * (((share * px) << GUARD_BITS) - cost)
            lot.size -= share
            parts.append((lot.key, lot.sign, share, cost, gain))
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
