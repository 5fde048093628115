"""Simulated worlds; each is made once per process, and no test changes it."""

from functools import lru_cache

import pytest

from toolkit.simulation import simulate

__all__ = ["ON_DEMO", "SLIPPAGE_EXPONENT", "world_of"]

ON_DEMO = pytest.mark.xdist_group("demo")
"""Tests of the demo world run in one process, because the world takes half a minute to make."""

SLIPPAGE_EXPONENT = 2.0 / 3.0
"""In simulated books, the cost beyond the half spread grows like size to this power."""


def world_of(size, seed=7):
    """Return the world of a size and a seed."""
    return _made(size, seed)


@lru_cache
def _made(size, seed):
    return simulate(seed=seed, size=size)
