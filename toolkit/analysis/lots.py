"""Tax lots: which opening a closing is set against, by FIFO, LIFO or average."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from toolkit.analysis import columns, engines, running
from toolkit.analysis.positions import by_chain, opened, pick, prices_of
from toolkit.rules.lots import GUARD_BITS, METHODS, Book, Method

__all__ = ["lots"]

_DECIMALS = 18  # of prices and gains, which a split of costs makes rational


class _Lot(NamedTuple):
    row: int  # a fill of the chain
    opened: int | None  # the fill that opened it; None: before the history
    closed: int | None  # the fill that closed it; None: still open
    sign: int
    size: int
    cost: int | None
    gain: int | None


def lots(fills: Any, method: Method = "fifo", *, marks: Any = None) -> Any:
    """Match what was closed to what was opened.

    Parameters
    ----------
    fills : DataFrame
        Fills of one or many accounts in any order, as `tk.user_fills_by_time` gives them
        (pandas, Polars eager or lazy, DuckDB relation; numbers float or exact). Columns ``coin,
        px, sz, side, time, start_position``; ``user`` and ``tx_index`` where there are several
        accounts or ties; ``fee`` and ``fee_token`` for spot, whose fees in the bought token
        make a lot smaller.
    method : {"fifo", "lifo", "average"}
        Which lot is closed first: the oldest, the latest, or the average of all.
    marks : mapping of coin to price, or DataFrame, optional
        Prices now, for lots that are open: a dict, or a frame of `tk.meta_and_asset_ctxs`
        (``name``, ``mark_px``).

    Returns
    -------
    DataFrame
        Of the engine of `fills`, one row for each part of a lot that was closed together, and
        one for each lot still open; by user and coin, in the order of closing, open ones last:

        - ``user`` (where the fills have it), ``coin``, ``side`` (``"long"``, ``"short"``);
        - ``opened``, ``closed``: times, UTC; ``opened`` is missing for what was held before the
          first fill, or since fills are missing (by average: when the first part was opened),
          ``closed`` for what is open;
        - ``size`` (positive), ``entry_px``, ``exit_px``: USD; missing where not known;
        - ``realised``: USD, of what is closed; ``unrealised``: USD, of what is open, at `marks`.
          Missing where the entry is not known; gross of fees and funding.

    Raises
    ------
    MissingColumns
        If a column is missing, holds text, or has missing values.
    ValueError
        If there is no such method.

    Notes
    -----
    Whatever the method, realised + unrealised is the same at every instant: the cash that the
    fills paid and got, plus what is held at its price. Methods differ in when a gain is taken.
    Gains here rest on the exact costs; the exchange's own closed PnL (`positions`, `audit`)
    truncates the entry price. Results have at most 18 decimals. Frames are read into memory. A
    row given twice breaks the chain: what is held then is of unknown cost.

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
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    frame, kind = opened(fills, [name for name in running.NEEDED if name != "closed_pnl"])
    if "closed_pnl" not in frame.columns:
        frame = frame.with_columns(closed_pnl=frame["px"] - frame["px"])
    read = running.read(frame, {})
    rows = by_chain(frame, read)
    prices, decimals = ({}, 0) if marks is None else prices_of(marks, 0)
    found = _matched(read, rows, method)
    coins = frame["coin"].to_list()
    mark = [None if lot.closed is not None else prices.get(coins[lot.row]) for lot in found]
    made = _identity(frame, found) | _money(found, read, mark, decimals, kind)
    facts = {"helper": "pnl.lots", "method": method}
    return engines.result(pa.table(made), {"fills": fills}, **facts)


def _matched(read: running.Fills, rows: Sequence[int], method: Method) -> list[_Lot]:
    """Walk along every chain: first what is closed, then what stays open."""
    found: list[_Lot] = []
    book, chains = Book(method), read.chain.tolist()
    last, position, row = -1, 0, -1
    for one in rows:
        if chains[one] != last or read.start[one] != position:
            if chains[one] != last:
                found += _left(book, row)
            # Of what is held before the first fill, or after a gap, nobody knows the cost.
            book.hold(read.start[one], -1)
            last = chains[one]
        row, position = one, read.end[one]
        for match in book.trade(position - read.start[row], read.px[row], row):
            key = match.lot.key if match.lot.key >= 0 else None
            found.append(_Lot(row, key, row, match.lot.sign, match.size, match.cost, match.gain))
    return found + _left(book, row)


def _left(book: Book, row: int) -> list[_Lot]:
    made = [
        _Lot(row, lot.key if lot.key >= 0 else None, None, lot.sign, lot.size, lot.cost, None)
        for lot in book.lots
    ]
    book.lots.clear()
    return made


def _identity(frame: Any, found: Sequence[_Lot]) -> dict[str, Any]:
    ms = engines.milliseconds(frame["time"])
    rows = [lot.row for lot in found]
    kept = {
        name: engines.texts(pick(frame[name].to_list(), rows))
        for name in ("user", "coin")
        if name in frame.columns
    }
    return kept | {
        "side": engines.texts(["long" if lot.sign > 0 else "short" for lot in found]),
        "opened": engines.times([None if (o := lot.opened) is None else ms[o] for lot in found]),
        "closed": engines.times([None if (c := lot.closed) is None else ms[c] for lot in found]),
    }


def _money(
    found: Sequence[_Lot],
    read: running.Fills,
    mark: Sequence[int | None],
    decimals: int,
    kind: columns.Numbers,
) -> dict[str, Any]:
    exits = [None if lot.closed is None else read.px[lot.closed] for lot in found]
    whole = read.px_decimals + read.size_decimals
    entry = [
        None if lot.cost is None else _down(lot.cost, _DECIMALS - read.px_decimals, lot.size)
        for lot in found
    ]
    realised = [None if (g := lot.gain) is None else _down(g, _DECIMALS - whole) for lot in found]
    unrealised = [
        None
        if m is None or lot.cost is None
        else _down(_gain(lot, m, decimals, read.px_decimals), _DECIMALS - whole - decimals)
        for lot, m in zip(found, mark, strict=True)
    ]
    return {
        "size": engines.numbers([lot.size for lot in found], read.size_decimals, kind),
        "entry_px": engines.numbers(entry, _DECIMALS, kind),
        "exit_px": engines.numbers(exits, read.px_decimals, kind),
        "realised": engines.numbers(realised, _DECIMALS, kind),
        "unrealised": engines.numbers(unrealised, _DECIMALS, kind),
    }


def _gain(lot: _Lot, mark: int, decimals: int, px_decimals: int) -> int:
    """Give what an open lot gains, in units of 10**-decimals of a unit of its cost."""
    assert lot.cost is not None
    value = (lot.size * mark * int(10**px_decimals)) << GUARD_BITS
    return lot.sign * (value - lot.cost * int(10**decimals))


def _down(value: int, decimals: int, share: int = 1) -> int:
    """Take the guard bits off, to the nearest unit `decimals` places finer."""
    unit = (share << GUARD_BITS) * int(10 ** max(0, -decimals))
    return (2 * value * int(10 ** max(0, decimals)) + unit) // (2 * unit)
