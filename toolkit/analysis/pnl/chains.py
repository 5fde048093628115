"""The order in which fills happened, found from the positions they start from.

Fills that share a millisecond (and a transaction, where its index is known) have no order of
their own, and answers come newest first, oldest first or shuffled. But each fill starts from the
position that the one before it left: within such a tie the fills are edges from start to end
position, and an order is a walk along them. Where rows are missing there are several walks, as
few as possible; between two of them is a break.
"""

from collections import defaultdict
from collections.abc import Sequence

Edge = tuple[int, int]


def order_tie(edges: Sequence[Edge], before: int | None, after: set[int]) -> list[int]:
    """Order the fills of one tie.

    Parameters
    ----------
    edges : sequence of (start, end)
        Position before and after each fill, in any order.
    before : int or None
        Position before the tie, where it is known.
    after : set of int
        Positions that the next tie's fills start from.

    Returns
    -------
    list of int
        Indices into `edges`. The order given, or its reverse, if either is a chain from
        `before`; else a chain where there is one; else the fewest pieces of chains.

    Examples
    --------
    >>> walk([(4480, 731), (4623, 4480), (731, 0)], 4623, set())
    [1, 0, 2]
    """
    forward = list(range(len(edges)))
    for order in (forward, forward[::-1]):
        if _is_chain(edges, order, before):
            return order
    # Sorted, so that the order found does not depend on the order given.
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
    """Cover all edges with as few walks as possible (Hierholzer, with bridges cut again)."""
    leaving: dict[int, list[tuple[int, int]]] = defaultdict(list)
    surplus: dict[int, int] = defaultdict(int)
    for index in reversed(range(len(edges))):  # popped from the end, so the given order is kept
        start, end = edges[index]
        leaving[start].append((end, index))
        surplus[start] += 1
        surplus[end] -= 1
    starts = [node for node, count in surplus.items() for _ in range(count)]
    ends = [node for node, count in surplus.items() for _ in range(-count)]
    # A bridge, numbered from -1 down, leads from where a walk must end to where one must start.
    # The first one is where the circuit is opened: behind it stands `before`, in front `after`.
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
    """Walk every edge that can be reached from `root` once, back to `root`."""
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
    """Split a closed walk at its bridges, opened at the first bridge if it holds it."""
    opening = circuit.index(-1) + 1 if -1 in circuit else 0
    pieces: list[list[int]] = [[]]
    for edge in circuit[opening:] + circuit[:opening]:
        if edge < 0:
            pieces.append([])
        else:
            pieces[-1].append(edge)
    return [piece for piece in pieces if piece]
