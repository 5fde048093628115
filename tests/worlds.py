"""Simulated worlds; each is made once per process, and no test changes it.

To draw a tiny world takes as long as to read it from a file, so `made_once` would not help.
"""

from functools import cache

from toolkit.simulation import draw_tiles, simulate

__all__ = ["SLIPPAGE_EXPONENT", "tiles_of_two", "world_of"]

SLIPPAGE_EXPONENT = 2.0 / 3.0
"""In simulated books, the cost beyond the half spread grows like size to this power."""


def world_of(size, seed=7):
    """Return the world of a size and a seed."""
    return _made(size, seed)


@cache
def _made(size, seed):
    return simulate(seed=seed, size=size)


@cache
def tiles_of_two():
    """Return the two tiny tiles of seed 7."""
    return list(draw_tiles(7, 2, "tiny"))
