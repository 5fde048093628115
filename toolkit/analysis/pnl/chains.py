"""Order of fills with equal times, found from their positions.

Fills with the same millisecond (and the same transaction, if its index is known) are a tie: no
column states their order, and answers are newest first, oldest first or unsorted. But each fill
starts from the position after the fill before it. So the fills of a tie are edges of a graph, from
start position to end position, and their order is a path along all edges. If rows are missing,
there are several paths, as few as possible, with a break between two of them.
"""

from collections import defaultdict
from collections.abc import Sequence

Edge = tuple[int, int]


def order_tie(edges: Sequence[Edge], before: int | None, after: set[int]) -> list[int]:
    """Return the order of the fills of one tie.

    - ``edges``: position before and after each fill, in any order
    - ``before``: position before the tie, if it is known
    - ``after``: start positions of the fills in the next tie

    Returns: indices into `edges`. In a chain, each fill starts from the position after the fill
    before it. The result is the given order, if it is a chain that starts at `before`. Otherwise it
    is the reverse order, if this is such a chain; otherwise any order that is a chain. If there is
    no chain of all fills, the result joins as few chains as possible.

    >>> order_tie([(4480, 731), (4623, 4480), (731, 0)], 4623, set())
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
