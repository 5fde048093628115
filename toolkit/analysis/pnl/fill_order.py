"""Fills as integers, in the order of execution.

Positions, entry prices, lots and round trips depend on all earlier fills. So their helpers read the
frame into memory, sort it (by time, by ``tx_index``, and within a tie by the chain of positions)
and process it once with integer arithmetic.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd
from narwhals.typing import IntoFrame

from toolkit.analysis.common import columns, fixed_point
from toolkit.analysis.common.owners import lower_address
from toolkit.analysis.common.usd_values import is_in_bought_token
from toolkit.analysis.pnl.chains import order_tie
from toolkit.errors import MissingColumns
from toolkit.rules.closed_pnl import price_decimals

WEI = 8
"""Spot balances and spot money have at most this many decimals."""

SizeDecimals = Mapping[str, int] | IntoFrame
"""Coin -> size decimals, or a frame of `tk.meta`."""

NEEDED = ("coin", "px", "sz", "side", "time", "start_position", "closed_pnl")
NUMBERS = ("px", "sz", "start_position", "closed_pnl", "fee")
_SIDES = {"B": 1, "A": -1}


class IntegerFills(NamedTuple):
    """Fills as integers, in the order of the frame."""

    chain: npt.NDArray[np.int64]
    px: list[int]
    start: list[int]
    change: list[int]
    end: list[int]
    tick: list[int]  # price units of one tick of the entry price; 0 if the rule does not apply
    closed: list[int]
    unit: int  # of px * change, in units of closed
    decimals: int  # of closed
    px_decimals: int
    size_decimals: int
    token_fee: list[int]  # fee of a spot buy in the bought token, in size units
    spot: list[bool]  # whether it is a spot or outcome market
    tolerance: list[int]  # one unit of the recorded precision of the balance
    coins: int  # number of coins: a chain is coins * user + coin

    @property
    def money_unit(self) -> int:
        """Unit of spot money of the exchange, 1e-8 USD, in units of px * change."""
        return int(10 ** max(0, self.px_decimals + self.size_decimals - WEI))


def size_decimals(sz_decimals: SizeDecimals) -> dict[str, int]:
    """Return size decimals by coin, from a mapping or a frame of `tk.meta`."""
    if isinstance(sz_decimals, Mapping):
        return {str(coin): int(decimals) for coin, decimals in sz_decimals.items()}
    meta = columns.open_frame(sz_decimals, "sz_decimals")
    columns.require_columns(meta, ("name", "sz_decimals"), "sz_decimals")
    rows = meta.select("name", "sz_decimals").lazy().collect("pyarrow")
    pairs = zip(rows["name"].to_list(), rows["sz_decimals"].to_list(), strict=True)
    # If size decimals are missing, those of the coin are not known.
    return {coin: int(decimals) for coin, decimals in pairs if decimals is not None}


def integer_fills(frame: nw.DataFrame[Any], sizes: Mapping[str, int]) -> IntegerFills:
    """Return fills as integers."""
    coins, coin_codes = _category_codes(frame["coin"])
    users = np.zeros_like(coin_codes)
    if "user" in frame.columns:
        users = _category_codes(frame.select(user=lower_address("user"))["user"])[1]
    # The price unit must be at least as fine as a tick of the truncated entry price.
    px, px_decimals = fixed_point.to_integers(
        frame["px"], max((price_decimals(sizes[c]) for c in coins if c in sizes), default=0)
    )
    (sz, start, fee), size_decimals = _read_sizes(frame)
    if any(_is_other(coin) for coin in coins) and px_decimals + size_decimals < WEI:
        # The unit of px * sz may be coarser than 1e-8 USD, but the cost of a spot sell is not.
        px = fixed_point.rescale(px, px_decimals, WEI - size_decimals)
        px_decimals = WEI - size_decimals
    closed, closed_decimals = fixed_point.to_integers(frame["closed_pnl"])
    decimals = max(px_decimals + size_decimals, closed_decimals)
    change = [c * s for c, s in zip(sz, _side_signs(frame["side"]), strict=True)]
    ticks = [_price_unit(coin, sizes, px_decimals) for coin in coins]
    chain = users * max(1, len(coins)) + coin_codes
    end = [s + c - f for s, c, f in zip(start, change, fee, strict=True)]
    other = np.array([_is_other(coin) for coin in coins], dtype=bool)
    spot = other[coin_codes]
    return IntegerFills(
        chain=chain,
        px=px,
        start=start,
        change=change,
        end=end,
        tick=[ticks[code] for code in coin_codes.tolist()],
        closed=fixed_point.rescale(closed, closed_decimals, decimals),
        unit=10 ** (decimals - px_decimals - size_decimals),
        decimals=decimals,
        px_decimals=px_decimals,
        size_decimals=size_decimals,
        token_fee=fee,
        spot=spot.tolist(),
        tolerance=_tolerances(chain, spot, start, change, end, size_decimals),
        coins=max(1, len(coins)),
    )


def _is_other(coin: str) -> bool:
    """Return whether a coin is a spot pair or an outcome, not a perp."""
    return coin.startswith(("@", "#")) or "/" in coin


def _tolerances(
    chain: npt.NDArray[np.int64],
    spot: npt.NDArray[np.bool_],
    start: fixed_point.Integers,
    change: fixed_point.Integers,
    end: fixed_point.Integers,
    decimals: int,
) -> list[int]:
    """Return how far a recorded balance may differ from the balance after the fill before it.

    This is one unit of the recorded precision (docs/live_service.md, section 3): 1e-8, or one unit
    of the decimals in which balances and sizes of the coin are written, if the computed balance
    has more decimals.
    """
    least = int(10 ** (decimals - WEI)) if decimals >= WEI else 0
    made = [0] * len(start)
    written: dict[int, int] = {}
    rows = np.flatnonzero(spot).tolist()
    codes = chain[rows].tolist()
    for row, code in zip(rows, codes, strict=True):
        unit = written.get(code, int(10**decimals))
        while unit > 1 and (start[row] % unit or change[row] % unit):
            unit //= 10
        written[code] = unit
    for row, code in zip(rows, codes, strict=True):
        made[row] = least if end[row] % written[code] == 0 else max(least, written[code])
    return made


def _category_codes(column: nw.Series[Any]) -> tuple[list[str], npt.NDArray[np.int64]]:
    codes, names = pd.factorize(column.to_arrow().to_pandas(), use_na_sentinel=False)
    return [str(name) for name in names], codes.astype(np.int64)


def _read_sizes(frame: nw.DataFrame[Any]) -> tuple[list[fixed_point.Integers], int]:
    """Return sizes, start positions and fees in the bought token, in one unit."""
    read = [
        fixed_point.to_integers(c)
        for c in (frame["sz"], frame["start_position"], _token_fee(frame))
    ]
    finest = max(decimals for _, decimals in read)
    return [fixed_point.rescale(*column, finest) for column in read], finest


def _token_fee(frame: nw.DataFrame[Any]) -> nw.Series[Any]:
    """Return the fee of a spot buy in the bought token; 0 for every other fill."""
    if not {"fee", "fee_token"} <= set(frame.columns):
        return frame.select(fee=nw.col("sz") - nw.col("sz"))["fee"]
    token_fee = (
        nw.when(is_in_bought_token()).then(nw.col("fee")).otherwise(nw.col("fee") - nw.col("fee"))
    )
    return frame.select(fee=token_fee)["fee"]


def _side_signs(side: nw.Series[Any]) -> list[int]:
    try:
        return [_SIDES[name] for name in side.to_list()]
    except KeyError as error:
        raise MissingColumns(f"fills: column side has {error}; only A and B are known") from error


def _price_unit(coin: str, sizes: Mapping[str, int], px_decimals: int) -> int:
    """Return one tick of the entry price in price units; 0 if the rule does not apply."""
    if coin not in sizes or _is_other(coin):
        return 0
    return int(10 ** (px_decimals - price_decimals(sizes[coin])))


def execution_order(frame: nw.DataFrame[Any], read: IntegerFills) -> list[int]:
    """Return the rows in the order of execution, chain by chain."""
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
    return _order_ties(order.tolist(), [0, *bounds], read)


def _order_ties(order: list[int], bounds: Sequence[int], read: IntegerFills) -> list[int]:
    """Return the order with the rows of each tie sorted by their chain of positions."""
    chain = read.chain.tolist()
    for number in range(len(bounds) - 1):
        low, high = bounds[number], bounds[number + 1]
        if high - low == 1:
            continue
        tie = order[low:high]
        same = low > 0 and chain[order[low - 1]] == chain[tie[0]]
        following = order[high : bounds[number + 2]] if number + 2 < len(bounds) else []
        steps = order_tie(
            [(read.start[row], read.end[row]) for row in tie],
            read.end[order[low - 1]] if same else None,
            {read.start[row] for row in following if chain[row] == chain[tie[0]]},
        )
        order[low:high] = [tie[index] for index in steps]
    return order
