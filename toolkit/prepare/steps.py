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

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from toolkit.arrays import Flags, Floats, Ints
from toolkit.prepare.door import NO_TIME, Table, filled
from toolkit.prepare.money import is_perp
from toolkit.rules.spot_cost import WEI

POSITION_COLUMNS = ("coin", "px", "sz", "side", "time", "start_position", "closed_pnl")

_DIGITS = 15  # of a float64 that are always exact


class Steps:
    """Fills in the order of execution, by user, coin and time; an array has one value per fill.

    A missing size or position counts as 0.

    - ``rows``: the row of the prepared table
    - ``chain``: the number of the chain, ascending
    - ``first``, ``last``: whether it is the first or the last fill of its chain
    - ``heads``: the first fill of each chain
    - ``ms``: the time
    - ``start``, ``change``, ``end``: the position before the fill, its change by px, and the
      position after it, in units of the chain
    - ``fee``: the fee in the base token, which leaves the balance, in units of the chain
    - ``scale``: units of the chain in one unit of the coin
    - ``spot``: whether it is a spot or outcome token
    - ``tolerance``: how far the next recorded balance may differ, in units; 0 for perps
    - ``gap``: what came (+) or left (-) before the fill without a fill, in units
    - ``is_gap``: whether it is not 0; ``same_start``: whether the tolerance of a spot balance
      explains it
    - ``users``, ``coins``: the names, sorted; a fill's own are at ``user`` and ``coin``
    """

    def __init__(self, table: Table, token_fee: Floats) -> None:
        users, coins = table.text("user", blank=True).sorted(), table.text("coin").sorted()
        chain, ms = users.codes * len(coins.values) + coins.codes, table.ms("time")
        if (missing := ms == NO_TIME).any():
            ms = np.where(missing, ms.max(initial=0) + 1, ms)
        begin = int(ms.min(initial=ms.max(initial=0)))
        bits = int(ms.max(initial=begin) - begin).bit_length()
        if int(chain.max(initial=0)).bit_length() + bits > 62:
            chain = np.unique(chain, return_inverse=True)[1].astype(np.int64)
        rows_key = (chain << bits) | (ms - begin)  # equal within a tie
        # Short numbers sort in linear time, and an account's rows are often in the order of time.
        is_short = int(chain.max(initial=0)) < 1 << 16
        order = np.argsort(chain.astype(np.uint16) if is_short else rows_key, kind="stable")
        key = rows_key[order]
        if is_short and (key[1:] < key[:-1]).any():
            order = np.argsort(rows_key, kind="stable")
            key = rows_key[order]
        tied, tx = key[1:] == key[:-1], table.number("tx_index", 0.0)
        if tied.any() and tx.any() and not np.isnan(tx).any():
            if (tied & (np.diff(tx[order]) < 0)).any():
                order = np.lexsort((tx, rows_key))
            tied &= np.diff(tx[order]) == 0
        self.first = first = np.diff(key >> bits, prepend=-1) != 0
        del rows_key, key, tx  # as long as the fills
        self.last = np.append(first[1:], True)[: len(first)]
        self.chain = number = np.cumsum(first) - 1
        self.heads = heads = np.flatnonzero(first)
        self.users, self.coins = users.values, coins.values
        self.user, self.coin = (each.codes[order[heads]][number] for each in (users, coins))
        names = [coins.values[code] for code in coins.codes[order[heads]].tolist()]
        self.spot = np.array([not is_perp(name) for name in names], dtype=bool)[number]
        stated, size = (filled(table.number(n))[order] for n in ("start_position", "sz"))
        signed = size * table.text("side").facts(lambda side: 1.0 if side == "B" else -1.0)[order]
        by_chain = grid(np.maximum(np.abs(stated), np.abs(stated + signed)), heads, names)
        self.scale = scale = by_chain[number]
        start, change = (np.rint(each * scale).astype(np.int64) for each in (stated, signed))
        fee = np.zeros(len(order), dtype=np.int64)
        if token_fee.any():
            fee = np.rint(filled(token_fee)[order] * scale).astype(np.int64)
        end = start + change - fee
        if tied.any() and (~first[1:] & (start[1:] != end[:-1])).any():
            place = _order_ties(tied, number, start, end)
            order, start, change, end, fee = (
                values[place] for values in (order, start, change, end, fee)
            )
        self.tolerance = np.zeros(len(order), dtype=np.int64)
        if self.spot.any():
            self.tolerance = self._find_tolerance(by_chain, start, change, end)
            # A sell of one unit more is rounding.
            end = np.where((end < 0) & (end >= -self.tolerance), 0, end)
        self.rows, self.ms, self.fee = order, ms[order], fee
        self.start, self.change, self.end = start, change, end
        self.gap = np.where(first, 0, start - np.roll(end, 1))
        self.is_gap, near = self.gap != 0, np.abs(self.gap) <= np.roll(self.tolerance, 1)
        self.same_start = self.spot & near & (start != 0)

    def _find_tolerance(self, by_chain: Floats, start: Ints, change: Ints, end: Ints) -> Ints:
        """Return how far the next recorded balance may differ.

        It may differ from the balance after the previous fill by one unit of the recorded precision
        (docs/live_service.md, section 3): 1e-8, or one unit of the decimals in which balances and
        sizes of the coin are written, if the computed balance has more decimals.
        """
        divisor = np.gcd(*(np.gcd.reduceat(each, self.heads) for each in (start, change)))
        written = np.ones(len(divisor), dtype=np.int64)
        for power in range(1, WEI + 1):
            written[(divisor % 10**power == 0) & (by_chain >= 10**power)] = 10**power
        unit = written[self.chain]
        return np.where(self.spot, np.where(end % unit == 0, 1, unit), 0)

    def __len__(self) -> int:
        return len(self.rows)

    def places(self) -> dict[tuple[str, str], int]:
        """Return the number of each chain by user and coin."""
        users, coins = (codes[self.heads].tolist() for codes in (self.user, self.coin))
        pairs = zip(users, coins, strict=True)
        return {(self.users[u], self.coins[c]): n for n, (u, c) in enumerate(pairs)}


def grid(values: Floats, heads: Ints, coins: Sequence[str], most: int = WEI) -> Floats:
    """Return for each chain a power of ten that turns its values into whole numbers.

    - ``values``: not negative, by chain
    - ``heads``, ``coins``: the first place and the coin of each chain; outcome tokens share one
      power of ten, because they are swapped for each other
    - ``most``: the largest number of decimals
    """
    if not len(heads):
        return np.zeros(0)
    largest = np.maximum.reduceat(values, heads)
    decimals = np.minimum(most, _DIGITS - np.ceil(np.log10(np.maximum(largest, 1e-12))))
    if (together := np.array([coin.startswith("#") for coin in coins])).any():
        decimals[together] = decimals[together].min()
    return np.asarray(np.power(10.0, decimals))


def _order_ties(tied: Flags, chain: Ints, start: Ints, end: Ints) -> Ints:
    """Return the places of fills with the rows of each tie in the order of their positions.

    Only a tie beside a break needs work.
    """
    breaks = _breaks(chain, start, end)
    head = np.append(True, ~tied)
    tie, low = np.cumsum(head) - 1, np.flatnonzero(head)
    high = np.append(low[1:], len(head))
    place, change = np.arange(len(head)), np.sign(end - start)
    inner = np.logical_or.reduceat(breaks & ~head, low)
    # Fills of one side have one order: by their positions.
    one_sided = np.abs(np.add.reduceat(change, low)) == high - low
    rows = np.flatnonzero((inner & one_sided)[tie])
    place[rows] = rows[np.lexsort((change[rows] * start[rows], tie[rows]))]
    # Answers that are newest first have each tie in reverse.
    back = np.append(False, tied & (start[:-1] != end[1:]))
    rows = np.flatnonzero((inner & ~one_sided & ~np.logical_or.reduceat(back, low))[tie])
    place[rows] = (low + high - 1)[tie[rows]] - rows
    breaks = _breaks(chain, start[place], end[place])
    left = np.flatnonzero((high - low > 1) & np.logical_or.reduceat(breaks, low)).tolist()
    # Sort each other tie, and the next one if the position before it has changed.
    left.reverse()
    while left:
        number = left.pop()
        begin, stop = int(low[number]), int(high[number])
        if stop - begin == 1:
            continue
        rows = place[begin:stop]
        before, following = None, set[int]()
        if begin and chain[begin - 1] == chain[begin]:
            before = int(end[place[begin - 1]])
        has_next = stop < len(place) and chain[stop] == chain[begin]
        if has_next:
            following = set(start[place[stop : high[number + 1]]].tolist())
        edges = list(zip(start[rows].tolist(), end[rows].tolist(), strict=True))
        steps = sort_tie(edges, before, following)
        place[begin:stop] = rows[steps]
        has_moved = edges[steps[-1]][1] != edges[-1][1]
        if has_next and has_moved and left[-1:] != [number + 1]:
            left.append(number + 1)
    return place


def _breaks(chain: Ints, start: Ints, end: Ints) -> Flags:
    """Return the fills that do not start from the position after the fill before them."""
    return np.append(False, (chain[1:] == chain[:-1]) & (start[1:] != end[:-1]))[: len(chain)]


def sort_tie(edges: Sequence[tuple[int, int]], before: int | None, after: set[int]) -> list[int]:
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
        begin = edges[order[0]][0] if before is None else before
        if [edges[n][0] for n in order] == [begin, *(edges[n][1] for n in order[:-1])]:
            return order
    # Paths that cover all edges, as few as possible (Hierholzer's algorithm). The edges are sorted,
    # so that the result does not depend on the given order.
    leaving: dict[int, list[tuple[int, int]]] = defaultdict(list)
    surplus = Counter[int]()
    for number in sorted(forward, key=edges.__getitem__)[::-1]:  # popped from the end
        start, end = edges[number]
        leaving[start].append((end, number))
        surplus[start] += 1
        surplus[end] -= 1
    # A bridge is an additional edge from the end of a path to the start of another one; bridges
    # have the numbers -1, -2, ... The circuit is opened at bridge -1: the path after it starts at
    # `before`, the path in front of it ends in `after`.
    starts = sorted((+surplus).elements(), key=lambda node: node != before)
    ends = sorted((-surplus).elements(), key=lambda node: node not in after)
    for number, (end, start) in enumerate(zip(ends, starts, strict=True), 1):
        leaving[end].insert(0, (start, -number))
    paths: list[list[int]] = []
    roots = [] if before is None else [before]
    for root in (*roots, *starts, *list(leaving)):
        circuit, stack = list[int](), [(root, 0)]
        while stack:
            if leaving[stack[-1][0]]:
                stack.append(leaving[stack[-1][0]].pop())
            else:
                circuit.append(stack.pop()[1])
        circuit = circuit[-2::-1]  # without the root
        opening = circuit.index(-1) + 1 if -1 in circuit else 0
        path: list[int] = []
        for number in (*circuit[opening:], *circuit[:opening], -1):
            if number >= 0:
                path.append(number)
            elif path:
                paths.append(path)
                path = []
    first = [path for path in paths if edges[path[0]][0] == before][:1]
    rest = [path for path in paths if path not in first]
    last = [path for path in rest if edges[path[-1]][1] in after][-1:]
    middle = [path for path in rest if path not in last]
    return [number for path in (*first, *middle, *last) for number in path]
