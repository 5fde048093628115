"""The order of fills within a tie, from the positions they start from."""

import hypothesis.strategies as st
from hypothesis import given

from toolkit.prepare.steps import sort_tie

steps = st.lists(st.integers(-3, 3).filter(bool), min_size=1, max_size=12)


def edges_of(start, changes):
    parts = []
    for change in changes:
        parts.append((start, start + change))
        start += change
    return parts


def breaks(edges, order, before=None):
    ends = [before] + [edges[index][1] for index in order]
    starts = [edges[index][0] for index in order]
    return sum(e != s for e, s in zip(ends, starts, strict=False) if e is not None)


@given(st.integers(-5, 5), steps, st.randoms(use_true_random=False))
def test_shuffled_chain_is_restored(start, changes, luck):
    edges = edges_of(start, changes)
    luck.shuffle(edges)
    for before in (start, None):
        order = sort_tie(edges, before, set())
        assert sorted(order) == list(range(len(edges)))
        assert breaks(edges, order, before) == 0


@given(st.integers(-5, 5), steps, st.randoms(use_true_random=False), st.integers(0, 11))
def test_missing_fill_breaks_once(start, changes, luck, hole):
    edges = edges_of(start, changes)
    del edges[hole % len(edges)]
    if edges:
        luck.shuffle(edges)
        assert breaks(edges, sort_tie(edges, None, set())) <= 1


def test_broken_tie_keeps_first_and_last():
    """One fill is missing: what continues the past comes first, what the future needs last."""
    edges = [(7, 9), (0, 1), (4, 5), (1, 2)]
    assert sort_tie(edges, 0, {9}) == [1, 3, 2, 0]
    assert sort_tie(edges, 0, {5})[-1] == 2
