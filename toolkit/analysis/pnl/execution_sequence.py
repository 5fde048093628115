"""Fills as integers, in the order of execution.

Positions, entry prices, lots and round trips depend on all earlier fills. So their helpers read the
frame into memory, sort it (by time, by ``tx_index``, and within a tie by the chain of positions)
and process it once with integer arithmetic.

Fills with the same millisecond (and the same transaction, if its index is known) are a tie: no
column states their order, and answers are newest first, oldest first or unsorted. But each fill
starts from the position after the fill before it. So the fills of a tie are edges of a graph, from
start position to end position, and their order is a path along all edges. If rows are missing,
there are several paths, as few as possible, with a break between two of them.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import pandas as pd
from narwhals.typing import IntoFrame

from toolkit.analysis.common import fixed_point, frame_access
from toolkit.analysis.common.row_owners import lower_address
from toolkit.analysis.common.usd_values import is_in_bought_token
from toolkit.arrays import Flags, Ints
from toolkit.contract.dexes import is_perp_coin
from toolkit.display import count_text
from toolkit.errors import MissingColumns
from toolkit.rules.closed_pnl import price_decimals
from toolkit.rules.spot_cost import WEI

SizeDecimals = Mapping[str, int] | IntoFrame
"""Coin -> size decimals, or a frame of `tk.meta`."""

NEEDED = ("coin", "px", "sz", "side", "time", "start_position", "closed_pnl")
NUMBERS = ("px", "sz", "start_position", "closed_pnl", "fee")
_SIDES = {"B": 1, "A": -1}


class IntegerFills(NamedTuple):
    """Fills as integers, in the order of the frame."""

    chain: Ints
    px: list[int]
    start: list[int]
    change: list[int]
    end: list[int]
    tick: list[int]  # price units of one tick of the entry price; 0 if the rule does not apply
    closed: list[int]
    unit: int  # one unit of px * change, in units of `closed`
    decimals: int  # the decimals of `closed`
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
    meta = frame_access.open_frame(sz_decimals, "sz_decimals")
    frame_access.require_columns(meta, ("name", "sz_decimals"), "sz_decimals")
    rows = meta.select("name", "sz_decimals").lazy().collect("pyarrow")
    pairs = zip(rows["name"].to_list(), rows["sz_decimals"].to_list(), strict=True)
    # A coin with a missing value is left out: its size decimals are not known.
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
    if not all(map(is_perp_coin, coins)) and px_decimals + size_decimals < WEI:
        # The unit of px * sz may be coarser than 1e-8 USD, but the cost of a spot sell is not.
        px = fixed_point.rescale(px, px_decimals, WEI - size_decimals)
        px_decimals = WEI - size_decimals
    closed, closed_decimals = fixed_point.to_integers(frame["closed_pnl"])
    decimals = max(px_decimals + size_decimals, closed_decimals)
    change = [c * s for c, s in zip(sz, _side_signs(frame["side"]), strict=True)]
    ticks = [_price_unit(coin, sizes, px_decimals) for coin in coins]
    chain = users * max(1, len(coins)) + coin_codes
    end = [s + c - f for s, c, f in zip(start, change, fee, strict=True)]
    other = np.array([not is_perp_coin(coin) for coin in coins], dtype=bool)
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


def _tolerances(
    chain: Ints,
    spot: Flags,
    start: fixed_point.Integers,
    change: fixed_point.Integers,
    end: fixed_point.Integers,
    decimals: int,
) -> list[int]:
    """Return how far a recorded balance may differ from the computed balance.

    The computed balance is the balance after the previous fill.

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


def _category_codes(column: nw.Series[Any]) -> tuple[list[str], Ints]:
    codes, names = pd.factorize(column.to_arrow().to_pandas(), use_na_sentinel=False)
    return [str(name) for name in names], codes.astype(np.int64)


def _read_sizes(frame: nw.DataFrame[Any]) -> tuple[list[fixed_point.Integers], int]:
    """Return sizes, start positions and fees in the bought token, in one unit."""
    integers = [
        fixed_point.to_integers(c)
        for c in (frame["sz"], frame["start_position"], _token_fee(frame))
    ]
    finest = max(decimals for _, decimals in integers)
    return [fixed_point.rescale(*column, finest) for column in integers], finest


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
        wrong = count_text(sum(name not in _SIDES for name in side.to_list()), "row")
        raise MissingColumns(
            f"fills: column side is neither A nor B in {wrong}, for example {error}. Correct or "
            "remove these rows"
        ) from error


def _price_unit(coin: str, sizes: Mapping[str, int], px_decimals: int) -> int:
    """Return one tick of the entry price in price units; 0 if the rule does not apply."""
    if coin not in sizes or not is_perp_coin(coin):
        return 0
    return int(10 ** (px_decimals - price_decimals(sizes[coin])))


def execution_order(frame: nw.DataFrame[Any], integers: IntegerFills) -> list[int]:
    """Return the rows in the order of execution, chain by chain."""
    time = frame["time"]
    ms = (time if time.dtype.is_integer() else time.dt.timestamp("ms")).to_numpy()
    tx = np.zeros(len(ms), dtype=np.int64)
    if "tx_index" in frame.columns and not frame["tx_index"].is_null().any():
        tx = frame["tx_index"].cast(nw.Int64()).to_numpy()
    order = np.lexsort((tx, ms, integers.chain))
    changed = np.zeros(len(order), dtype=bool)
    for key in (integers.chain, ms, tx):
        changed[1:] |= key[order][1:] != key[order][:-1]
    bounds = [*np.flatnonzero(changed).tolist(), len(order)] if len(order) else []
    return _order_ties(order.tolist(), [0, *bounds], integers)


def _order_ties(order: list[int], bounds: Sequence[int], integers: IntegerFills) -> list[int]:
    """Return the order with the rows of each tie sorted by their chain of positions."""
    chain = integers.chain.tolist()
    for number in range(len(bounds) - 1):
        low, high = bounds[number], bounds[number + 1]
        if high - low == 1:
            continue
        tie = order[low:high]
        same = low > 0 and chain[order[low - 1]] == chain[tie[0]]
        following = order[high : bounds[number + 2]] if number + 2 < len(bounds) else []
        steps = sort_tie(
            [(integers.start[row], integers.end[row]) for row in tie],
            integers.end[order[low - 1]] if same else None,
            {integers.start[row] for row in following if chain[row] == chain[tie[0]]},
        )
        order[low:high] = [tie[index] for index in steps]
    return order


Edge = tuple[int, int]


def sort_tie(edges: Sequence[Edge], before: int | None, after: set[int]) -> list[int]:
    """Return the order of the fills of one tie.

    - ``edges``: position before and after each fill, in any order
    - ``before``: position before the tie, if it is known
    - ``after``: start positions of the fills in the next tie

    Returns: indices into `edges`. In a chain, each fill starts from the position after the fill
    before it. The result is the given order, if it is a chain that starts at `before`. Otherwise it
    is the reverse order, if this is such a chain; otherwise any order that is a chain. If there is
    no chain of all fills, the result joins as few chains as possible.

    >>> sort_tie([(4480, 731), (4623, 4480), (731, 0)], 4623, set())
    [1, 0, 2]
    """
    forward = list(range(len(edges)))
    for order in (forward, forward[::-1]):
        if _is_chain(edges, order, before):
            return order
    # Sorted, so that the result does not depend on the given order.
    sorting = sorted(forward, key=edges.__getitem__)
    found = _connected_pieces([edges[index] for index in sorting], before, after)
    pieces = [[sorting[index] for index in piece] for piece in found]
    first = [p for p in pieces if edges[p[0]][0] == before][:1]
    rest = [p for p in pieces if p not in first]
    last = [p for p in rest if edges[p[-1]][1] in after][-1:]
    middle = [p for p in rest if p not in last]
    return [index for piece in (*first, *middle, *last) for index in piece]


def _is_chain(edges: Sequence[Edge], order: Sequence[int], before: int | None) -> bool:
    position = edges[order[0]][0] if before is None else before
    for index in order:
        start, end = edges[index]
        if start != position:
            return False
        position = end
    return True


def _connected_pieces(
    edges: Sequence[Edge], before: int | None, after: set[int]
) -> list[list[int]]:
    """Return the smallest number of paths that cover all edges (Hierholzer's algorithm)."""
    leaving: dict[int, list[tuple[int, int]]] = defaultdict(list)
    surplus: dict[int, int] = defaultdict(int)
    for index in reversed(range(len(edges))):  # popped from the end, so the order is kept
        start, end = edges[index]
        leaving[start].append((end, index))
        surplus[start] += 1
        surplus[end] -= 1
    starts = [node for node, count in surplus.items() for _ in range(count)]
    ends = [node for node, count in surplus.items() for _ in range(-count)]
    # A bridge is an additional edge from the end of a path to the start of another one; bridges
    # have the numbers -1, -2, ... The circuit is opened at bridge -1: the path after it starts at
    # `before`, the path in front of it ends in `after`.
    starts.sort(key=lambda node: node != before)
    ends.sort(key=lambda node: node not in after)
    for number, (end, start) in enumerate(zip(ends, starts, strict=True), 1):
        leaving[end].insert(0, (start, -number))
    pieces: list[list[int]] = []
    roots = [before] if before is not None and leaving.get(before) else []
    for root in (*roots, *starts, *list(leaving)):
        if leaving[root]:
            pieces.extend(_split_circuit(_euler_circuit(leaving, root)))
    return pieces


def _euler_circuit(leaving: dict[int, list[tuple[int, int]]], root: int) -> list[int]:
    """Return a circuit from `root` along every edge that can be reached."""
    path: list[int] = []
    stack: list[tuple[int, int | None]] = [(root, None)]
    while stack:
        node, edge = stack[-1]
        if leaving[node]:
            stack.append(leaving[node].pop())
        else:
            stack.pop()
            if edge is not None:
                path.append(edge)
    return path[::-1]


def _split_circuit(circuit: list[int]) -> list[list[int]]:
    """Return the pieces of a circuit between its bridges, starting after bridge -1."""
    opening = circuit.index(-1) + 1 if -1 in circuit else 0
    pieces: list[list[int]] = [[]]
    for edge in circuit[opening:] + circuit[:opening]:
        if edge < 0:
            pieces.append([])
        else:
            pieces[-1].append(edge)
    return [piece for piece in pieces if piece]
