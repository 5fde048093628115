"""Tax lots: each closing is matched to its opening, by FIFO, LIFO or average."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from toolkit import prepare
from toolkit.arrays import Floats, Ints
from toolkit.pnl._lot_book import METHODS, LotBook, Match, Method
from toolkit.pnl._positions import MarkPrices, mark_prices, owner_columns
from toolkit.prepare import Fills
from toolkit.prepare.average import swap_groups
from toolkit.prepare.door import NO_TIME, Frame, utc_times
from toolkit.prepare.fills import check_chains
from toolkit.prepare.money import is_outcome
from toolkit.prepare.provenance import finish
from toolkit.prepare.steps import POSITION_COLUMNS, Steps, grid
from toolkit.rules.closed_pnl import GUARD_BITS

_DECIMALS = 12  # of prices, if they are small


class _LotParts(NamedTuple):
    """Parts of lots, one list per column; one tuple per part would slow the garbage collector."""

    step: list[int]  # a fill of the chain
    opened: list[int | None]  # the fill that opened it; None if before the history
    closed: list[int | None]  # the fill that closed it; None if it is open
    exit: list[int | None]  # the closing price; None if it is open or left without a sale
    sign: list[int]
    size: list[int]
    cost: list[int | None]
    gain: list[int | None]

    def add(self, step: int, closed: int | None, part: Match, px: int | None = None) -> None:
        lot, size, cost, gain = part
        self.step.append(step)
        self.opened.append(lot.key if lot.key >= 0 else None)
        self.closed.append(closed)
        self.exit.append(px)
        self.sign.append(lot.sign)
        self.size.append(size)
        self.cost.append(cost)
        self.gain.append(gain)


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
    table = fills.table
    check_chains(fills, tuple(name for name in POSITION_COLUMNS if name != "closed_pnl"))
    steps = fills.steps
    px, px_scale = _whole_prices(fills)
    parts = _match_perps(steps, px, method)
    _match_spot(parts, steps, px, method, swap_groups(table, steps, fills.roles.swap))
    parts = _sort_parts(parts, steps)
    at = np.array(parts.step, dtype=np.int64)
    size = np.array(parts.size, dtype=np.float64) / steps.scale[at]
    sign = np.array(parts.sign, dtype=np.float64)
    value = px_scale[at] * steps.scale[at]
    cost = _without_guard(parts.cost) / value
    closed = _times(steps, parts.closed)
    prices = {} if marks is None else mark_prices(marks)
    mark = np.array([prices.get(coin, np.nan) for coin in steps.coins])[steps.coin[at]]
    mark[closed != NO_TIME] = np.nan
    made = {
        **owner_columns(fills, at),
        "side": pd.Series(np.where(sign > 0, "long", "short"), dtype="str"),
        "opened": utc_times(_times(steps, parts.opened)),
        "closed": utc_times(closed),
        "size": size,
        "entry_px": cost / size,
        "exit_px": np.array(parts.exit, dtype=np.float64) / px_scale[at],
        "realised": _without_guard(parts.gain) / value,
        "unrealised": sign * (size * mark - cost),
    }
    facts = {"helper": "pnl.lots", "method": method}
    return finish(pd.DataFrame(made), {"fills": table.frame}, **facts)


def _whole_prices(fills: Fills) -> tuple[Ints, Floats]:
    """Return the price of each step in units of its chain, and the units in one USD."""
    steps, px = fills.steps, fills.table.number("px")[fills.steps.rows]
    heads = np.flatnonzero(steps.first)
    outcome = np.array([is_outcome(coin) for coin in steps.coins], dtype=bool)[steps.coin[heads]]
    scale = grid(px, heads, outcome, _DECIMALS)[steps.chain]
    return np.rint(px * scale).astype(np.int64), scale


def _times(steps: Steps, places: list[int | None]) -> Ints:
    found = np.array([-1 if place is None else place for place in places], dtype=np.int64)
    return np.where(found < 0, NO_TIME, steps.ms[found]) if len(steps) else found


def _without_guard(values: list[int | None]) -> Floats:
    unit = 1 << GUARD_BITS
    return np.array([np.nan if v is None else v / unit for v in values], dtype=np.float64)


def _match_perps(steps: Steps, px: Ints, method: Method) -> _LotParts:
    """Return the closed parts of perps, each chain followed by its open parts."""
    parts = _LotParts([], [], [], [], [], [], [], [])
    book, before = LotBook(method), -1
    places = np.flatnonzero(~steps.spot)
    columns = (steps.first, steps.first | steps.is_gap, steps.start, steps.change, px)
    walk = (values[places].tolist() for values in columns)
    for place, first, unknown, start, change, price in zip(places.tolist(), *walk, strict=True):
        if first:
            _add_open(parts, book, before)
        if unknown:
            # The cost of a position before the first fill, or after a gap, is not known.
            book.set_position(start, -1)
        before = place
        for match in book.apply_fill(change, price, place):
            parts.add(place, place, match, price)
    _add_open(parts, book, before)
    return parts


def _match_spot(
    parts: _LotParts, steps: Steps, px: Ints, method: Method, groups: dict[int, list[int]]
) -> None:
    """Add the parts of spot and outcome tokens.

    - ``groups``: the steps of each conversion that swaps tokens, by step
    """
    places = np.flatnonzero(steps.spot)
    if groups:  # a conversion connects chains, so all of them go on in the order of time
        places = places[np.argsort(steps.ms[places], kind="stable")]
    books: dict[int, LotBook] = {}
    last: dict[int, int] = {}
    done = set[int]()

    def arrive(place: int) -> LotBook:
        """Return the book of a fill's chain, adjusted to the balance before the fill."""
        chain, start = int(steps.chain[place]), int(steps.start[place])
        if chain not in books:
            books[chain] = LotBook(method)
            books[chain].set_position(start, -1)
        else:
            gap = start - sum(lot.size for lot in books[chain].lots)
            if gap and abs(gap) <= steps.tolerance[last[chain]] and start:
                books[chain].correct_size(gap)
            elif gap > 0:
                books[chain].add_tokens(gap)
            else:
                for part in books[chain].remove_tokens(-gap):
                    parts.add(place, place, part)
        last[chain] = place
        return books[chain]

    for place in places.tolist():
        if place in done:
            continue
        if place in groups:
            legs = groups[place]
            done.update(legs)
            _swap_cost(parts, steps, legs, [arrive(leg) for leg in legs])
            continue
        book, price = arrive(place), int(px[place])
        change, fee = int(steps.change[place]), int(steps.fee[place])
        if change > 0:
            book.buy_tokens(change - fee, change * price, place)
            continue
        for match in book.sell_tokens(-change, price):
            parts.add(place, place, match, price)
        if fee < 0:
            book.add_tokens(-fee, 0, place)
    for chain, book in books.items():
        _add_open(parts, book, last[chain])


def _swap_cost(parts: _LotParts, steps: Steps, legs: list[int], books: list[LotBook]) -> None:
    """Move the cost of the tokens that leave to the tokens that come in.

    The cost is unknown if no leg shows the tokens that leave, or if the cost of one is unknown.
    """
    changes = steps.change[legs].tolist()
    costs: list[int | None] = []
    for place, change, book in zip(legs, changes, books, strict=True):
        missing = max(0, -change)
        for part in book.remove_tokens(missing):
            parts.add(place, place, part)
            costs.append(part.cost)
            missing -= part.size
        if missing:
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


def _sort_parts(parts: _LotParts, steps: Steps) -> _LotParts:
    """Return the parts of perps and spot, by chain and in the order of closing."""
    if not steps.spot.any():
        return parts
    never = len(steps)
    closed = np.array([never if place is None else place for place in parts.closed], dtype=np.int64)
    order = np.lexsort((closed, steps.chain[np.array(parts.step, dtype=np.int64)])).tolist()
    return _LotParts(*([column[place] for place in order] for column in parts))


def _add_open(parts: _LotParts, book: LotBook, place: int) -> None:
    """Add the open lots of a chain, and clear its book."""
    for lot in book.lots:
        parts.add(place, None, Match(lot, lot.size, lot.cost, None))
    book.lots.clear()
