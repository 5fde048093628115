"""Steps: fills in the order of execution, with the positions before and after each one; legs.

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
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from toolkit.arrays import Flags, Floats, Ints
from toolkit.display import count_text
from toolkit.errors import MissingColumns
from toolkit.prepare.door import NO_TIME, Table, filled
from toolkit.prepare.money import is_outcome, is_perp
from toolkit.rules.spot_cost import WEI

POSITION_COLUMNS = ("coin", "px", "sz", "side", "time", "start_position", "closed_pnl")

_DIGITS = 15  # of a float64 that are always exact


@dataclass(frozen=True, eq=False, slots=True)
class Steps:
    """Fills in the order of execution, by user, coin and time; an array has one value per fill.

    - ``rows``: the row of the prepared table
    - ``chain``: the number of the chain, ascending
    - ``first``, ``last``: whether it is the first or the last fill of its chain
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

    rows: Ints
    chain: Ints
    first: Flags
    last: Flags
    ms: Ints
    start: Ints
    change: Ints
    end: Ints
    fee: Ints
    scale: Floats
    spot: Flags
    tolerance: Ints
    gap: Ints
    is_gap: Flags
    same_start: Flags
    user: Ints
    coin: Ints
    users: list[str]
    coins: list[str]

    def __len__(self) -> int:
        return len(self.rows)

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
    numbers = [name for name in ("px", "sz", "start_position", "closed_pnl") if name in needed]
    has_fee = "fee" in needed or (table.has("fee") and table.has("fee_token"))
    table.require_values([*numbers, *["fee"] * has_fee])
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
    users, coins = table.text("user", blank=True).sorted(), table.text("coin").sorted()
    chain, ms = users.codes * len(coins.values) + coins.codes, table.ms("time")
    ms = np.where(ms == NO_TIME, ms.max(initial=0) + 1, ms)
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
        sorted_tx = tx[order]
        if (tied & (sorted_tx[1:] < sorted_tx[:-1])).any():
            order = np.lexsort((tx, rows_key))
            sorted_tx = tx[order]
        tied &= sorted_tx[1:] == sorted_tx[:-1]

    first = np.diff(key >> bits, prepend=-1) != 0
    heads, number = np.flatnonzero(first), np.cumsum(first) - 1
    user, coin = (codes[order[heads]] for codes in (users.codes, coins.codes))
    names = [coins.values[code] for code in coin.tolist()]
    spot = np.array([not is_perp(name) for name in names], dtype=bool)[number]
    outcome = np.array(list(map(is_outcome, names)), dtype=bool)
    stated, size = (filled(table.number(name))[order] for name in ("start_position", "sz"))
    signed = np.where(table.text("side").facts("B".__eq__)[order], size, -size)
    by_chain = grid(np.maximum(np.abs(stated), np.abs(stated + signed)), heads, outcome)
    scale = by_chain[number]
    start, change = (np.rint(values * scale).astype(np.int64) for values in (stated, signed))
    fee = np.zeros(len(order), dtype=np.int64)
    if token_fee.any():
        fee = np.rint(filled(token_fee)[order] * scale).astype(np.int64)
    end = start + change - fee
    if tied.any() and _breaks(number, start, end).any():
        place = _order_ties(tied, number, start, end)
        order, start, change, end, fee = (
            values[place] for values in (order, start, change, end, fee)
        )
    # A recorded balance may differ from the balance after the previous fill by one unit of the
    # recorded precision (docs/live_service.md, section 3): 1e-8, or one unit of the decimals in
    # which balances and sizes of the coin are written, if the computed balance has more decimals.
    tolerance = np.zeros(len(order), dtype=np.int64)
    if spot.any():
        divisor = np.gcd(np.gcd.reduceat(start, heads), np.gcd.reduceat(change, heads))
        written = np.ones(len(heads), dtype=np.int64)
        for power in range(1, WEI + 1):
            written[(divisor % 10**power == 0) & (by_chain >= 10**power)] = 10**power
        unit = written[number]
        tolerance = np.where(spot, np.where(end % unit == 0, 1, unit), 0)
        # A sell of one unit more is rounding.
        end = np.where((end < 0) & (end >= -tolerance), 0, end)
    gap = np.where(first, 0, start - np.append(0, end[:-1])[: len(end)])
    near = np.abs(gap) <= np.append(0, tolerance[:-1])[: len(gap)]
    return Steps(
        rows=order,
        chain=number,
        first=first,
        last=np.append(first[1:], True)[: len(first)],
        ms=ms[order],
        start=start,
        change=change,
        end=end,
        fee=fee,
        scale=scale,
        spot=spot,
        tolerance=tolerance,
        gap=gap,
        is_gap=gap != 0,
        same_start=spot & near & (start != 0),
        user=user[number],
        coin=coin[number],
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
    decimals = np.minimum(most, _DIGITS - np.ceil(np.log10(np.maximum(largest, 1e-12))))
    if together.any():
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
    heapify(left)
    done = -1
    while left:
        number = heappop(left)
        begin, stop = int(low[number]), int(high[number])
        if number == done or stop - begin == 1:
            continue
        done, rows = number, place[begin:stop]
        before, following = None, set[int]()
        if begin and chain[begin - 1] == chain[begin]:
            before = int(end[place[begin - 1]])
        has_next = stop < len(place) and chain[stop] == chain[begin]
        if has_next:
            following = set(start[place[stop : high[number + 1]]].tolist())
        edges = list(zip(start[rows].tolist(), end[rows].tolist(), strict=True))
        steps = sort_tie(edges, before, following)
        place[begin:stop] = rows[steps]
        if has_next and edges[steps[-1]][1] != edges[-1][1]:
            heappush(left, number + 1)
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


@dataclass(frozen=True, eq=False, slots=True)
class Legs:
    """Legs of fills in the order of execution, and their trips; a flip has two legs.

    One value per leg:

    - ``step``: the number of the step
    - ``rows``: the row of the prepared table
    - ``closes``: whether it closes or opens
    - ``size``: its size, in units of the coin
    - ``share``: its share of the fill's size
    - ``is_first``: whether it is the first leg of its fill

    One value per trip:

    - ``heads``, ``tails``: the first and the last leg
    - ``sign``: 1 for long, -1 for short
    - ``opened``, ``closed``: whether a fill opened it, and whether a fill closed it
    - ``status``: ``closed``, ``open``, ``late``, ``broken`` or ``moved``
    - ``basis``: whether all opening prices are known
    - ``whole``: whether all that left was sold
    """

    step: Ints
    rows: Ints
    closes: Flags
    size: Floats
    share: Floats
    is_first: Flags
    heads: Ints
    tails: Ints
    sign: Ints
    opened: Flags
    closed: Flags
    status: list[str]
    basis: Flags
    whole: Flags

    def sums(self, values: Any, how: np.ufunc = np.add) -> Any:
        """Return the sum of values of legs by trip, or what another function makes of them."""
        return how.reduceat(values, self.heads) if len(self.heads) else values[:0]


def split_legs(steps: Steps, swaps: Flags) -> Legs:
    """Return the legs of fills, and the trips that they make.

    - ``swaps``: the rows of the table that swap outcome tokens without cash
    """
    start, change, spot = steps.start, steps.change, steps.spot
    size, end = np.abs(change), steps.end
    is_opposed = (start != 0) & ((start > 0) != (change > 0))
    closing = np.where(is_opposed, np.minimum(np.abs(start), size), 0)
    # A spot balance is never negative: a sell of one unit more is rounding and opens nothing.
    is_rest = spot & (closing > 0) & (size - closing <= steps.tolerance)
    opening = np.where(is_rest, 0, size - closing)
    before = np.append(0, end[:-1])[: len(end)]  # the position after the fill before
    rounding = steps.same_start
    gap = steps.is_gap & ~rounding
    is_new = steps.first | (gap & (~spot | (before == 0)))
    begins = is_new & (start != 0)  # a trip that no known fill opened
    alive = (start != 0) & ~(rounding & (before == 0) & ~steps.first)
    flip = (closing > 0) & (opening > 0) & alive
    lost = (closing > 0) & ~alive  # a rest of rounding, which no trip has

    step = np.repeat(np.arange(len(steps)), 1 + flip)
    is_first = np.append(True, np.diff(step) != 0)[: len(step)]
    closes = (closing > 0)[step] & is_first
    head = np.where(is_first, (begins | ~alive)[step], True)
    kept = ~lost[step]
    step, is_first, closes, head = (values[kept] for values in (step, is_first, closes, head))
    heads = np.flatnonzero(head)
    tails = np.append(heads[1:], len(step))[: len(heads)] - 1
    units = np.where(closes, closing[step], opening[step])
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(flip[step] & (size[step] > 0), units / size[step], 1.0)
    at, tail = step[heads], step[tails]
    opened = ~(begins[at] & is_first[heads])
    closed = closes[tails] & ((end[tail] == 0) | flip[tail])
    # What happens between the last fill of a trip and the next one of its chain.
    after = np.minimum(tail + 1, max(len(steps) - 1, 0))
    has_next = (tail + 1 < len(steps)) & ~steps.first[after]
    ends_in_gap = has_next & gap[after] & ~closed
    left = ends_in_gap & spot[at] & (start[after] == 0)
    inner = gap[step] & is_first & ~head
    moved, came = inner & spot[step], inner & (steps.gap[step] > 0)
    swap = swaps[steps.rows][step]

    def of_trip(flags: Flags) -> Flags:
        return np.asarray(np.logical_or.reduceat(flags, heads) if len(heads) else flags[:0])

    broken = ends_in_gap & ~spot[at]
    status = np.select(
        [
            broken,
            ~opened & steps.first[at],
            ~opened & spot[at],
            ~opened,
            of_trip(moved) | left,
            closed,
        ],
        ["broken", "late", "moved", "broken", "moved", "closed"],
        "open",
    )
    sign = np.where(opened, np.sign(change[at]), np.sign(start[at]))
    return Legs(
        step=step,
        rows=steps.rows[step],
        closes=closes,
        size=units / steps.scale[step],
        share=share,
        is_first=is_first,
        heads=heads,
        tails=tails,
        sign=sign,
        opened=opened,
        closed=closed,
        status=status.tolist(),
        basis=opened & ~of_trip(came) & ~of_trip(swap & ~closes),
        whole=~(of_trip(moved & (steps.gap[step] < 0)) | left) & ~of_trip(swap & closes),
    )
