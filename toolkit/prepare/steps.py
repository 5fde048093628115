"""Steps: fills in the order of execution, with the positions before and after each one.

Positions, entry prices, lots and round trips depend on all earlier fills. A chain is the fills of
one account in one coin. Fills are sorted by chain, time and ``tx_index``.

Fills with the same millisecond (and the same transaction, if its index is known) are a tie: no
column states their order, and answers are newest first, oldest first or unsorted. But each fill
starts from the position after the fill before it. So the fills of a tie are edges of a graph, from
start position to end position, and their order is a path along all edges. If rows are missing,
there are several paths, as few as possible, with a break between two of them.

Positions are whole numbers of a unit of their chain, so that they compare exactly. The unit is
1e-8, or coarser if the positions are so large that float64 has no more digits.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np

from toolkit.arrays import Flags, Floats, Ints
from toolkit.display import count_text
from toolkit.errors import MissingColumns
from toolkit.prepare.door import NO_TIME, Table, filled
from toolkit.prepare.markets import is_outcome, is_perp
from toolkit.rules.spot_cost import WEI

POSITION_COLUMNS = ("coin", "px", "sz", "side", "time", "start_position", "closed_pnl")

_DIGITS = 15  # of a float64 that are always exact


@dataclass(frozen=True, eq=False, slots=True)
class Steps:
    """Fills in the order of execution, by user, coin and time; an array has one value per fill.

    - ``rows``: the row of the prepared table
    - ``chain``: the number of the chain, ascending
    - ``first``: whether it is the first fill of its chain
    - ``ms``: the time
    - ``start``, ``change``, ``end``: the position before the fill, its change by px, and the
      position after it, in units of the chain
    - ``fee``: the fee in the base token, which leaves the balance, in units of the chain
    - ``scale``: units of the chain in one unit of the coin
    - ``spot``: whether it is a spot or outcome token
    - ``tolerance``: how far the next recorded balance may differ, in units; 0 for perps
    - ``gap``: what came (+) or left (-) before the fill without a fill, in units
    - ``users``, ``coins``: the names, sorted; a fill's own are at ``user`` and ``coin``
    """

    rows: Ints
    chain: Ints
    first: Flags
    ms: Ints
    start: Ints
    change: Ints
    end: Ints
    fee: Ints
    scale: Floats
    spot: Flags
    tolerance: Ints
    gap: Ints
    user: Ints
    coin: Ints
    users: list[str]
    coins: list[str]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def last(self) -> Flags:
        """Whether it is the last fill of its chain."""
        return np.asarray(np.append(self.first[1:], True)[: len(self)])

    @property
    def is_gap(self) -> Flags:
        """Whether the position before the fill is not the one after the fill before it."""
        return np.asarray(self.gap != 0)

    @property
    def same_start(self) -> Flags:
        """Whether the tolerance explains the gap of a spot balance."""
        before = np.append(0, self.tolerance[:-1])[: len(self)]
        return np.asarray(self.spot & (np.abs(self.gap) <= before) & (self.start != 0))

    def places(self) -> dict[tuple[str, str], int]:
        """Return the number of each chain by user and coin."""
        heads = np.flatnonzero(self.first)
        users, coins = self.user[heads].tolist(), self.coin[heads].tolist()
        pairs = zip(users, coins, strict=True)
        return {(self.users[u], self.coins[c]): n for n, (u, c) in enumerate(pairs)}

    def sizes(self, units: Ints) -> Floats:
        """Return sizes in units of the coin."""
        return np.asarray(units / self.scale)


def check_positions(table: Table, needed: tuple[str, ...] = POSITION_COLUMNS) -> None:
    """Raise `MissingColumns` if a column of positions is missing, no number, or has gaps."""
    table.require(needed)
    numbers: list[str] = [
        name for name in ("px", "sz", "start_position", "closed_pnl") if name in needed
    ]
    if "fee" in needed or (table.has("fee") and table.has("fee_token")):
        numbers.append("fee")
    table.require_values(numbers)
    table.known_ms()
    sides = table.text("side")
    wrong = sides.facts(lambda side: side not in ("A", "B"))
    if wrong.any():
        example = sides.values[int(sides.codes[wrong][0])] or None
        raise MissingColumns(
            f"fills: column side is neither A nor B in {count_text(int(wrong.sum()), 'row')}, for "
            f"example {example!r}. Correct or remove these rows"
        )


def sort_steps(table: Table, token_fee: Floats) -> Steps:
    """Return fills in the order of execution; a missing size or position counts as 0.

    - ``token_fee``: the fee of each fill in the base token
    """
    users = table.text("user", blank=True).sorted()
    coins = table.text("coin").sorted()
    chain = users.codes * len(coins.values) + coins.codes
    ms = table.ms("time")
    ms = np.where(ms == NO_TIME, ms.max(initial=0) + 1, ms) if (ms == NO_TIME).any() else ms
    order, key = _sort_rows(table, chain, ms)
    chain = chain[order]
    first = np.diff(chain, prepend=-1) != 0
    heads = np.flatnonzero(first)
    lengths = np.diff(heads, append=len(order))
    user, coin = (codes[order[heads]] for codes in (users.codes, coins.codes))
    spot, outcome = (
        np.array([of(name) for name in coins.values], dtype=bool)[coin]
        for of in (lambda name: not is_perp(name), is_outcome)
    )
    number = np.repeat(np.arange(len(heads)), lengths)
    start, size = (filled(table.number(name))[order] for name in ("start_position", "sz"))
    signed = np.where(table.text("side").facts("B".__eq__)[order], size, -size)
    by_chain = grid(np.maximum(np.abs(start), np.abs(start + signed)), heads, outcome)
    scale, spot = np.repeat(by_chain, lengths), np.repeat(spot, lengths)
    start_, change = (np.rint(values * scale).astype(np.int64) for values in (start, signed))
    fee_ = np.zeros(len(order), dtype=np.int64)
    if token_fee.any():
        fee_ = np.rint(filled(token_fee)[order] * scale).astype(np.int64)
    end = start_ + change - fee_
    place = _order_ties(key, number, start_, end)
    if place is not None:
        order, start_, change, end, fee_ = (
            values[place] for values in (order, start_, change, end, fee_)
        )
    tolerance = _tolerances(spot, number, heads, by_chain, start_, change, end)
    end = np.where((end < 0) & (end >= -tolerance), 0, end)  # a sell of one unit more is rounding
    gap = np.where(first, 0, start_ - np.append(0, end[:-1])[: len(end)])
    return Steps(
        rows=order,
        chain=number,
        first=first,
        ms=ms[order],
        start=start_,
        change=change,
        end=end,
        fee=fee_,
        scale=scale,
        spot=spot,
        tolerance=tolerance,
        gap=gap,
        user=np.repeat(user, lengths),
        coin=np.repeat(coin, lengths),
        users=users.values,
        coins=coins.values,
    )


def grid(values: Floats, heads: Ints, together: Flags, most: int = WEI) -> Floats:
    """Return for each chain a power of ten that turns its values into whole numbers.

    - ``values``: not negative, by chain
    - ``heads``: the first place of each chain
    - ``together``: chains that share one power of ten
    - ``most``: the largest number of decimals
    """
    if not len(heads):
        return np.zeros(0)
    largest = np.maximum.reduceat(values, heads)
    digits = np.ceil(np.log10(np.maximum(largest, 1e-12)))
    decimals = np.minimum(most, _DIGITS - digits)
    if together.any():
        decimals[together] = decimals[together].min()
    return np.asarray(np.power(10.0, decimals))


def _sort_rows(table: Table, chain: Ints, ms: Ints) -> tuple[Ints, Ints]:
    """Return rows by chain, time and transaction, and a key that is equal within a tie."""
    begin = int(ms.min()) if len(ms) else 0
    bits = int(ms.max(initial=begin) - begin).bit_length()
    if int(chain.max(initial=0)).bit_length() + bits > 62:
        chain = np.unique(chain, return_inverse=True)[1].astype(np.int64)
    key = (chain << bits) | (ms - begin)
    # Short numbers sort in linear time, and an account's rows are often in the order of time.
    is_short = int(chain.max(initial=0)) < 1 << 16
    order = np.argsort(chain.astype(np.uint16) if is_short else key, kind="stable")
    if is_short and (np.diff(key[order]) < 0).any():
        order = np.argsort(key, kind="stable")
    tx = table.number("tx_index") if table.has("tx_index") else np.zeros(len(table))
    if np.isnan(tx).any() or not tx.any():
        return order, key[order]
    same = np.diff(key[order]) == 0
    if (np.diff(tx[order])[same] < 0).any():
        order = np.lexsort((tx, key))
    is_new = (np.diff(key[order]) != 0) | (np.diff(tx[order]) != 0)
    return order, np.append(0, np.cumsum(is_new))[: len(order)]


def _order_ties(key: Ints, chain: Ints, start: Ints, end: Ints) -> Ints | None:
    """Return the places of fills with the rows of each tie in the order of their positions.

    Only a tie beside a break needs work. None if no tie does.
    """
    tied = key[1:] == key[:-1]
    breaks = _breaks(chain, start, end)
    if not tied.any() or not breaks.any():
        return None
    head = np.append(True, ~tied)
    tie = np.cumsum(head) - 1
    low = np.flatnonzero(head)
    high = np.append(low[1:], len(key))
    several = high - low > 1
    inner = np.logical_or.reduceat(breaks & ~head, low)
    place = np.arange(len(key))
    # Fills of one side have one order: by their positions.
    change = np.sign(end - start)
    one_sided = np.abs(np.add.reduceat(change, low)) == high - low
    sorts = (several & inner & one_sided)[tie]
    if sorts.any():
        found = np.flatnonzero(sorts)
        place[found] = found[np.lexsort((change[found] * start[found], tie[found]))]
    # Answers that are newest first have each tie in reverse.
    back = np.append(False, tied & (start[:-1] != end[1:]))
    turns = several & inner & ~one_sided & ~np.logical_or.reduceat(back, low)
    if turns.any():
        rows = np.flatnonzero(turns[tie])
        place[rows] = (low + high - 1)[tie[rows]] - rows
    left = np.flatnonzero(
        several & np.logical_or.reduceat(_breaks(chain, start[place], end[place]), low)
    )
    if len(left):
        _sort_ties(place, left.tolist(), low.tolist(), high.tolist(), chain, start, end)
    return place


def _breaks(chain: Ints, start: Ints, end: Ints) -> Flags:
    """Return the fills that do not start from the position after the fill before them."""
    made: Flags = np.append(False, (chain[1:] == chain[:-1]) & (start[1:] != end[:-1]))
    return made[: len(chain)]


def _sort_ties(
    place: Ints,
    left: list[int],
    low: list[int],
    high: list[int],
    chain: Ints,
    start: Ints,
    end: Ints,
) -> None:
    """Sort ties, and each next one if the position before it has changed."""
    heapify(left)
    done = -1
    while left:
        tie = heappop(left)
        if tie == done:
            continue
        done = tie
        begin, stop = low[tie], high[tie]
        rows = place[begin:stop].tolist()
        if len(rows) == 1:
            continue
        same = begin > 0 and chain[begin - 1] == chain[begin]
        following: set[int] = set()
        if stop < len(place) and chain[stop] == chain[begin]:
            following = set(start[place[stop : high[tie + 1]]].tolist())
        edges = list(zip(start[rows].tolist(), end[rows].tolist(), strict=True))
        before = int(end[place[begin - 1]]) if same else None
        steps = sort_tie(edges, before, following)
        place[begin:stop] = [rows[step] for step in steps]
        moved = edges[steps[-1]][1] != edges[-1][1]
        if moved and stop < len(place) and chain[stop] == chain[begin]:
            heappush(left, tie + 1)


def _tolerances(
    spot: Flags,
    chain: Ints,
    heads: Ints,
    scale: Floats,
    start: Ints,
    change: Ints,
    end: Ints,
) -> Ints:
    """Return how far a recorded balance may differ from the balance after the previous fill.

    This is one unit of the recorded precision (docs/live_service.md, section 3): 1e-8, or one unit
    of the decimals in which balances and sizes of the coin are written, if the computed balance
    has more decimals.
    """
    made = np.zeros(len(spot), dtype=np.int64)
    if not spot.any():
        return made
    divisor = np.gcd(np.gcd.reduceat(start, heads), np.gcd.reduceat(change, heads))
    written = np.ones(len(heads), dtype=np.int64)
    for power in range(1, WEI + 1):
        unit = 10**power
        written[(divisor % unit == 0) & (scale >= unit)] = unit
    unit_of_row = written[chain]
    tolerance = np.where(end % unit_of_row == 0, 1, unit_of_row)
    return np.where(spot, tolerance, made)


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
