"""Recompute the exchange's closed PnL from the fills themselves, and find missing fills."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from toolkit.analysis import columns, scaled
from toolkit.analysis.chains import walk
from toolkit.analysis.fees import is_bought
from toolkit.errors import MissingColumns
from toolkit.rules.closed_pnl import GUARD_BITS, price_decimals, step

NEEDED = ("coin", "px", "sz", "side", "time", "start_position", "closed_pnl")
_NUMBERS = ("px", "sz", "start_position", "closed_pnl", "fee")
_SIDES = {"B": 1, "A": -1}


class _Fills(NamedTuple):
    """What the audit reads, in whole numbers, row by row as given."""

    chain: npt.NDArray[np.int64]
    px: list[int]
    start: list[int]
    change: list[int]
    end: list[int]
    tick: list[int]  # 0 where the rule does not apply
    closed: list[int]
    unit: int  # of px * change, in units of closed
    decimals: int  # of closed


def audit(fills: Any, sz_decimals: Any) -> Any:
    """Recompute the closed PnL of every perp fill by the exchange's rule.

    Parameters
    ----------
    fills : DataFrame
        Fills of one or many accounts in any order, as `tk.user_fills_by_time` gives them
        (pandas or eager Polars; numbers float or exact). Columns ``coin, px, sz, side, time,
        start_position, closed_pnl``; ``user`` and ``tx_index`` where there are several accounts
        or ties; ``fee`` and ``fee_token`` for spot.
    sz_decimals : mapping of coin to int, or DataFrame
        Size decimals of the perps: a dict, or a frame of `tk.meta` (``name``, ``sz_decimals``).

    Returns
    -------
    DataFrame
        The same rows and index with three more columns:

        - ``expected_closed_pnl``: closed PnL in USD by the rule; missing where the history does
          not start flat, after a break until the position is flat again, for spot and outcome
          coins, and for coins without `sz_decimals`;
        - ``difference``: ``closed_pnl - expected_closed_pnl``;
        - ``chain_break``: True where a fill does not start from the position that the one
          before it (same account and coin) left, so that fills in between are missing. On spot
          a transfer does the same.

    Raises
    ------
    MissingColumns
        If a column is missing, holds text, or has missing values.

    Notes
    -----
    Rows are put in order by time, by ``tx_index`` where every row has one, and within such a
    tie by the chain of positions. Arithmetic is in whole numbers; a float price or size is read
    as the shortest decimal text that gives that float, which is the text of the wire.
    Rule: `toolkit.rules.closed_pnl`.

    Examples
    --------
    >>> import pandas as pd
    >>> fills = pd.DataFrame({
    ...     "coin": "BTC", "px": [100.0, 110.0], "sz": [2.0, 1.0], "side": ["B", "A"],
    ...     "time": pd.to_datetime([0, 1], unit="ms", utc=True), "start_position": [0.0, 2.0],
    ...     "closed_pnl": [0.0, 10.0]})
    >>> audit(fills, {"BTC": 5})[["expected_closed_pnl", "difference", "chain_break"]]
       expected_closed_pnl  difference  chain_break
    0                  0.0         0.0        False
    1                 10.0         0.0        False
    """
    frame = nw.from_native(fills, eager_only=True)
    columns.need(frame, NEEDED, "fills")
    kind = columns.numbers(frame, _NUMBERS, "fills")
    read = _read(frame, _sizes(sz_decimals))
    order = _order(frame, read)
    expected, broken = _replay(read, order)
    difference = [None if e is None else c - e for c, e in zip(read.closed, expected, strict=True)]
    return _with_columns(
        fills,
        {
            "expected_closed_pnl": _column(expected, read.decimals, kind),
            "difference": _column(difference, read.decimals, kind),
            "chain_break": np.array(broken, dtype=bool),
        },
    )


def _sizes(sz_decimals: Any) -> dict[str, int]:
    if isinstance(sz_decimals, Mapping):
        return {str(coin): int(decimals) for coin, decimals in sz_decimals.items()}
    meta = columns.opened(sz_decimals, "sz_decimals")
    columns.need(meta, ("name", "sz_decimals"), "sz_decimals")
    rows = meta.select("name", "sz_decimals").lazy().collect("pyarrow")
    return dict(zip(rows["name"].to_list(), rows["sz_decimals"].to_list(), strict=True))


def _read(frame: nw.DataFrame[Any], sizes: Mapping[str, int]) -> _Fills:
    coins, coin_codes = _codes(frame["coin"])
    users = _codes(frame["user"])[1] if "user" in frame.columns else np.zeros_like(coin_codes)
    # No price step may be coarser than a tick of the truncated entry price.
    px, px_decimals = scaled.whole(
        frame["px"], max((price_decimals(sizes[c]) for c in coins if c in sizes), default=0)
    )
    (sz, start, fee), size_decimals = _sizes_alike(frame)
    closed, closed_decimals = scaled.whole(frame["closed_pnl"])
    decimals = max(px_decimals + size_decimals, closed_decimals)
    change = [c * s for c, s in zip(sz, _signs(frame["side"]), strict=True)]
    ticks = [_tick(coin, sizes, px_decimals) for coin in coins]
    return _Fills(
        chain=users * max(1, len(coins)) + coin_codes,
        px=px,
        start=start,
        change=change,
        end=[s + c - f for s, c, f in zip(start, change, fee, strict=True)],
        tick=[ticks[code] for code in coin_codes.tolist()],
        closed=scaled.rescaled(closed, closed_decimals, decimals),
        unit=10 ** (decimals - px_decimals - size_decimals),
        decimals=decimals,
    )


def _codes(column: nw.Series[Any]) -> tuple[list[str], npt.NDArray[np.int64]]:
    codes, names = pd.factorize(column.to_arrow().to_pandas(), use_na_sentinel=False)
    return [str(name) for name in names], codes.astype(np.int64)


def _sizes_alike(frame: nw.DataFrame[Any]) -> tuple[list[scaled.Whole], int]:
    """Read size, start position and the fees paid in the bought token in one unit."""
    read = [scaled.whole(c) for c in (frame["sz"], frame["start_position"], _token_fee(frame))]
    finest = max(decimals for _, decimals in read)
    return [scaled.rescaled(*one, finest) for one in read], finest


def _token_fee(frame: nw.DataFrame[Any]) -> nw.Series[Any]:
    """Give what a spot buy pays in the bought token, 0 for every other fill."""
    if not {"fee", "fee_token"} <= set(frame.columns):
        return frame.select(fee=nw.col("sz") - nw.col("sz"))["fee"]
    token_fee = nw.when(is_bought()).then(nw.col("fee")).otherwise(nw.col("fee") - nw.col("fee"))
    return frame.select(fee=token_fee)["fee"]


def _signs(side: nw.Series[Any]) -> list[int]:
    try:
        return [_SIDES[one] for one in side.to_list()]
    except KeyError as error:
        raise MissingColumns(f"fills: column side holds {error}, not A or B") from error


def _tick(coin: str, sizes: Mapping[str, int], px_decimals: int) -> int:
    """Give the price units of one tick of the entry price; 0 where the rule does not apply."""
    if coin not in sizes or coin.startswith(("@", "#")) or "/" in coin:
        return 0
    return int(10 ** (px_decimals - price_decimals(sizes[coin])))


def _order(frame: nw.DataFrame[Any], read: _Fills) -> list[int]:
    """Put the rows in the order of execution, one chain after another."""
    time = frame["time"]
    ms = (time if time.dtype.is_integer() else time.dt.timestamp("ms")).to_numpy()
    tx = np.zeros(len(ms), dtype=np.int64)
    if "tx_index" in frame.columns and not frame["tx_index"].is_null().any():
        tx = frame["tx_index"].cast(nw.Int64()).to_numpy()
    order = np.lexsort((tx, ms, read.chain))
    changed = np.zeros(len(order), dtype=bool)
    for key in (read.chain, ms, tx):
        changed[1:] |= key[order][1:] != key[order][:-1]
    bounds = [*np.flatnonzero(changed).tolist(), len(order)] if len(order) else []
    return _untied(order.tolist(), [0, *bounds], read)


def _untied(order: list[int], bounds: Sequence[int], read: _Fills) -> list[int]:
    """Order the rows of each tie, from one bound to the next, by their chain of positions."""
    chain = read.chain.tolist()
    for number in range(len(bounds) - 1):
        low, high = bounds[number], bounds[number + 1]
        if high - low == 1:
            continue
        tie = order[low:high]
        same = low > 0 and chain[order[low - 1]] == chain[tie[0]]
        following = order[high : bounds[number + 2]] if number + 2 < len(bounds) else []
        steps = walk(
            [(read.start[row], read.end[row]) for row in tie],
            read.end[order[low - 1]] if same else None,
            {read.start[row] for row in following if chain[row] == chain[tie[0]]},
        )
        order[low:high] = [tie[one] for one in steps]
    return order


def _replay(read: _Fills, order: Sequence[int]) -> tuple[list[int | None], list[bool]]:
    """Walk along every chain; None where the entry price cannot be known."""
    expected: list[int | None] = [None] * len(order)
    broken = [False] * len(order)
    chains, starts, ends = read.chain.tolist(), read.start, read.end
    changes, prices, ticks, unit = read.change, read.px, read.tick, read.unit
    last, position, known, entry = -1, 0, False, 0
    for row in order:
        start = starts[row]
        if chains[row] != last or start != position:
            broken[row] = chains[row] == last
            last, known, entry = chains[row], start == 0, 0
        position = ends[row]
        if not ticks[row]:
            continue
        if known:
            gain, _, entry = step(start, entry, changes[row], prices[row], ticks[row])
            expected[row] = gain * unit
        elif position == 0 or (position > 0) != (start > 0):
            # Flat or through zero: whatever stands now was opened here.
            known, entry = True, (abs(position) * prices[row]) << GUARD_BITS
    return expected, broken


def _column(values: Sequence[int | None], decimals: int, kind: columns.Numbers) -> Any:
    return (scaled.to_decimal if kind == "exact" else scaled.to_float)(values, decimals)


def _with_columns(fills: Any, made: Mapping[str, Any]) -> Any:
    """Add columns by position, leaving rows, index and provenance as they are."""
    if isinstance(fills, pd.DataFrame):
        return fills.assign(**{name: _series(column) for name, column in made.items()})
    frame = nw.from_native(fills, eager_only=True)
    space = frame.implementation
    series = {
        name: nw.from_arrow(pa.table({name: column}), backend=space)[name]
        for name, column in made.items()
    }
    return frame.with_columns(**series).to_native()


def _series(column: Any) -> Any:
    if isinstance(column, pa.Array):
        return pd.array(column, dtype=pd.ArrowDtype(column.type))
    return column
