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


def walk(edges: Sequence[Edge], before: int | None, after: set[int]) -> list[int]:
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
    pieces = _pieces(edges, before)
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


def _pieces(edges: Sequence[Edge], before: int | None) -> list[list[int]]:
    """Cover all edges with as few walks as possible (Hierholzer, with bridges cut again)."""
    leaving: dict[int, list[tuple[int, int]]] = defaultdict(list)
    surplus: dict[int, int] = defaultdict(int)
    for index in reversed(range(len(edges))):  # popped from the end: given order is kept
        start, end = edges[index]
        leaving[start].append((end, index))
        surplus[start] += 1
        surplus[end] -= 1
    starts = [node for node, count in surplus.items() for _ in range(count)]
    ends = [node for node, count in surplus.items() for _ in range(-count)]
    if before in leaving:
        starts.sort(key=lambda node: node != before)
    # A bridge leads from where a walk must end to where another must start.
    for end, start in zip(ends, starts[1:] + starts[:1], strict=True):
        leaving[end].insert(0, (start, -1))
    roots = [before] if before in leaving else []
    pieces: list[list[int]] = []
    for root in (*roots, *starts, *list(leaving)):
        if root is not None and leaving[root]:
            pieces.extend(_cut(_circuit(leaving, root)))
    return pieces


def _circuit(leaving: dict[int, list[tuple[int, int]]], root: int) -> list[int]:
    """Walk all edges that can be walked from `root` once; a bridge is -1."""
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


def _cut(circuit: list[int]) -> list[list[int]]:
    """Split a closed walk at its bridges, starting after the last one."""
    pieces: list[list[int]] = [[]]
    for edge in circuit:
        if edge < 0:
            pieces.append([])
        else:
            pieces[-1].append(edge)
    return [piece for piece in pieces if piece]
