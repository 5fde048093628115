"""Tax lots: each closing is matched to its opening, by FIFO, LIFO or average."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple

import pyarrow as pa
from narwhals.typing import IntoFrameT

from toolkit.analysis.common import fill_kinds, frame_access, memory_frames, usd_values
from toolkit.analysis.common.account_batches import run_by_account
from toolkit.analysis.common.repeated_rows import drop_repeated_rows
from toolkit.analysis.pnl import execution_sequence
from toolkit.analysis.pnl.lot_book import METHODS, LotBook, Match, Method
from toolkit.analysis.pnl.positions import (
    MarkPrices,
    mark_prices,
    read_position_fills,
    sort_by_chain,
    take_rows,
)
from toolkit.analysis.pnl.spot_cost_basis import Swaps, find_swaps, spot_rows, take_legs
from toolkit.rules.closed_pnl import GUARD_BITS

_DECIMALS = 18  # of prices and gains: a split of costs has no exact decimal


class _LotParts(NamedTuple):
    """Parts of lots, one list per column; one tuple per part would slow the garbage collector."""

    row: list[int]  # a fill of the chain
    opened: list[int | None]  # the fill that opened it; None if before the history
    closed: list[int | None]  # the fill that closed it; None if it is open
    exit: list[int | None]  # the closing price; None if it is open or left without a sale
    sign: list[int]
    size: list[int]
    cost: list[int | None]
    gain: list[int | None]

    def add(self, row: int, closed: int | None, part: Match, px: int | None = None) -> None:
        lot, size, cost, gain = part
        self.row.append(row)
        self.opened.append(lot.key if lot.key >= 0 else None)
        self.closed.append(closed)
        self.exit.append(px)
        self.sign.append(lot.sign)
        self.size.append(size)
        self.cost.append(cost)
        self.gain.append(gain)


def lots(
    fills: IntoFrameT, method: Method = "fifo", *, marks: MarkPrices | None = None
) -> IntoFrameT:
    """Match each closing of a position to its opening.

    Parameters
    ----------
    fills : DataFrame
        Fills of one or several accounts in any order, as `tk.user_fills_by_time` returns them
        (pandas, Polars, DuckDB, PySpark; numbers float or exact). Columns ``coin, px,
        sz, side, time, start_position``; ``user`` if there are several accounts; ``tx_index`` if
        there are ties; ``fee`` and ``fee_token`` for spot, where a fee in the bought token makes
        the lot smaller and does not change its cost; ``dir`` for conversions of outcome tokens.
    method : {"fifo", "lifo", "average"}
        Which lot is closed first: the oldest one, the latest one, or the average of all.
    marks : mapping of coin to price, or DataFrame, optional
        Current prices, for open lots: a dict, or a frame of `tk.meta_and_asset_ctxs` (``name``,
        ``mark_px``).

    Returns
    -------
    DataFrame
        In the engine of `fills`: one row per part of a lot that was closed together, and one row
        per open lot. Rows are sorted by user and coin, in the order of closing, open lots last:

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
    the entry price. Results have at most 18 decimals. A lazy frame is read a few
    accounts at a time. Repeated rows count once.

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
    fills = drop_repeated_rows(fills, "fills")
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}; choose one of {', '.join(METHODS)}")
    known = marks if marks is None or isinstance(marks, Mapping) else memory_frames.to_pandas(marks)
    run = partial(lots, method=method, marks=known)
    if (divided := run_by_account(run, {"fills": fills})) is not None:
        all_accounts: IntoFrameT = divided
        return all_accounts
    frame, kind = read_position_fills(
        fills, [name for name in execution_sequence.NEEDED if name != "closed_pnl"]
    )
    if "closed_pnl" not in frame.columns:
        frame = frame.with_columns(closed_pnl=frame["px"] - frame["px"])
    usd_values.warn_missing_tokens(frame, "fills")
    fill_kinds.warn_missing_directions(frame, "fills", outcomes_alone=True)
    integers = execution_sequence.integer_fills(frame, {})
    rows = sort_by_chain(fills, frame, integers)
    parts = _match_perps(integers, rows, method)
    _match_spot(parts, integers, rows, method, find_swaps(frame, integers))
    parts = _sort_parts(parts, integers, rows)
    prices, decimals = ({}, 0) if known is None else mark_prices(known, 0)
    coins = take_rows(frame["coin"].to_list(), parts.row)
    mark = [
        prices.get(coin) if closed is None else None
        for coin, closed in zip(coins, parts.closed, strict=True)
    ]
    made = _identity_columns(frame, parts) | _amount_columns(parts, integers, mark, decimals, kind)
    facts = {"helper": "pnl.lots", "method": method}
    return memory_frames.result_from_table(pa.table(made), {"fills": fills}, **facts)


def _match_perps(
    integers: execution_sequence.IntegerFills, rows: Sequence[int], method: Method
) -> _LotParts:
    """Return the closed parts of perps, each chain followed by its open parts."""
    parts = _LotParts([], [], [], [], [], [], [], [])
    book, chains = LotBook(method), integers.chain.tolist()
    starts, ends, prices, spot = integers.start, integers.end, integers.px, integers.spot
    last, position, before = -1, 0, -1
    for row in rows:
        if spot[row]:
            continue
        start = starts[row]
        if chains[row] != last or start != position:
            if chains[row] != last:
                _add_open(parts, book, before)
            # The cost of a position before the first fill, or after a gap, is not known.
            book.set_position(start, -1)
            last = chains[row]
        before, position = row, ends[row]
        for match in book.apply_fill(position - start, prices[row], row):
            parts.add(row, row, match, prices[row])
    _add_open(parts, book, before)
    return parts


def _match_spot(
    parts: _LotParts,
    integers: execution_sequence.IntegerFills,
    rows: Sequence[int],
    method: Method,
    swaps: Swaps,
) -> None:
    """Add the parts of spot and outcome tokens."""
    if not any(integers.spot):
        return
    books: dict[int, LotBook] = {}
    last: dict[int, int] = {}
    chains, done = integers.chain.tolist(), set[int]()

    def arrive(row: int) -> LotBook:
        """Return the book of a fill's position chain, adjusted to the balance before the fill."""
        chain, start = chains[row], integers.start[row]
        if chain not in books:
            books[chain] = LotBook(method)
            books[chain].set_position(start, -1)
        else:
            before = last[chain]
            gap = start - sum(lot.size for lot in books[chain].lots)
            if gap and abs(gap) <= integers.tolerance[before] and start:
                books[chain].correct_size(gap)
            elif gap > 0:
                books[chain].add_tokens(gap)
            else:
                for part in books[chain].remove_tokens(-gap):
                    parts.add(row, row, part)
        last[chain] = row
        return books[chain]

    for row in spot_rows(integers, rows, swaps):
        if row in done:
            continue
        if row in swaps.groups:
            legs = list(take_legs(row, swaps, done))
            _swap_cost(parts, integers, legs, [arrive(leg) for leg in legs])
            continue
        book, change, px = arrive(row), integers.change[row], integers.px[row]
        if change > 0:
            book.buy_tokens(change - integers.token_fee[row], change * px, row)
        else:
            for match in book.sell_tokens(-change, px):
                parts.add(row, row, match, px)
    for chain, book in books.items():
        _add_open(parts, book, last[chain])


def _swap_cost(
    parts: _LotParts,
    integers: execution_sequence.IntegerFills,
    legs: Sequence[int],
    books: Sequence[LotBook],
) -> None:
    """Move the cost of the tokens that leave to the tokens that come in.

    The cost is unknown if no leg shows the tokens that leave, or if the cost of one is unknown.
    """
    costs: list[int | None] = []
    for row, book in zip(legs, books, strict=True):
        missing = max(0, -integers.change[row])
        for part in book.remove_tokens(missing):
            parts.add(row, row, part)
            costs.append(part.cost)
            missing -= part.size
        if missing:
            costs.append(None)
    known = [cost for cost in costs if cost is not None]
    cost = sum(known) if known and len(known) == len(costs) else None
    coming = sum(max(0, integers.change[row]) for row in legs)
    for row, book in zip(legs, books, strict=True):
        size = integers.change[row]
        if size > 0:
            share = None if cost is None else cost * size // coming
            cost = None if cost is None or share is None else cost - share
            coming -= size
            book.add_tokens(size, share, row)


def _sort_parts(
    parts: _LotParts, integers: execution_sequence.IntegerFills, rows: Sequence[int]
) -> _LotParts:
    """Return the parts of perps and spot, by chain and in the order of closing."""
    if not any(integers.spot):
        return parts
    chains = integers.chain.tolist()
    place = {row: number for number, row in enumerate(rows)}
    first: dict[int, int] = {}
    for row in rows:
        first.setdefault(chains[row], len(first))
    keys = [
        (first[chains[row]], closed is None, 0 if closed is None else place[closed])
        for row, closed in zip(parts.row, parts.closed, strict=True)
    ]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return _LotParts(*(take_rows(column, order) for column in parts))


def _add_open(parts: _LotParts, book: LotBook, row: int) -> None:
    """Add the open lots of a chain, and clear its book."""
    for lot in book.lots:
        parts.add(row, None, Match(lot, lot.size, lot.cost, None))
    book.lots.clear()


def _identity_columns(frame: Any, parts: _LotParts) -> dict[str, Any]:
    ms = memory_frames.series_ms(frame["time"])
    kept = {
        name: memory_frames.text_column(take_rows(frame[name].to_list(), parts.row))
        for name in ("user", "coin")
        if name in frame.columns
    }
    return kept | {
        "side": memory_frames.text_column(["long" if sign > 0 else "short" for sign in parts.sign]),
        "opened": memory_frames.utc_times(
            [None if row is None else ms[row] for row in parts.opened]
        ),
        "closed": memory_frames.utc_times(
            [None if row is None else ms[row] for row in parts.closed]
        ),
    }


def _amount_columns(
    parts: _LotParts,
    integers: execution_sequence.IntegerFills,
    mark: Sequence[int | None],
    decimals: int,
    kind: frame_access.NumberKind,
) -> dict[str, Any]:
    whole = integers.px_decimals + integers.size_decimals
    entry = _divide_rounded(parts.cost, _DECIMALS - integers.px_decimals, parts.size)
    realised = _divide_rounded(parts.gain, _DECIMALS - whole)
    gains = _open_gains(parts, mark, decimals, integers.px_decimals)
    unrealised = _divide_rounded(gains, _DECIMALS - whole - decimals)
    return {
        "size": memory_frames.number_column(parts.size, integers.size_decimals, kind),
        "entry_px": memory_frames.number_column(entry, _DECIMALS, kind),
        "exit_px": memory_frames.number_column(parts.exit, integers.px_decimals, kind),
        "realised": memory_frames.number_column(realised, _DECIMALS, kind),
        "unrealised": memory_frames.number_column(unrealised, _DECIMALS, kind),
    }


def _open_gains(
    parts: _LotParts, mark: Sequence[int | None], decimals: int, px_decimals: int
) -> list[int | None]:
    """Return the gains of open lots, in units of 10**-decimals of a unit of their cost."""
    of_value, of_cost = 10**px_decimals << GUARD_BITS, 10**decimals
    return [
        None if px is None or cost is None else sign * (size * px * of_value - cost * of_cost)
        for px, sign, size, cost in zip(mark, parts.sign, parts.size, parts.cost, strict=True)
    ]


def _divide_rounded(
    values: Sequence[int | None], decimals: int, over: Iterable[int] = repeat(1)
) -> list[int | None]:
    """Return values divided by `over`, without guard bits, rounded and `decimals` places finer."""
    finer, unit = 2 * 10 ** max(0, decimals), 10 ** max(0, -decimals) << GUARD_BITS
    return [
        None if value is None else (value * finer + share * unit) // (2 * share * unit)
        for value, share in zip(values, over, strict=False)
    ]
