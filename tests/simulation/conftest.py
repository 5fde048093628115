"""Simulated worlds, each drawn once."""

import pytest

from tests.worlds import ON_DEMO, world_of
from toolkit.simulation import draw_tiles


@pytest.fixture(scope="session")
def world():
    return world_of("tiny")


@pytest.fixture(scope="session")
def demo():
    return world_of("demo")


@pytest.fixture(scope="session", params=["seed 1", "seed 2", "tile 1 of seed 3"])
def any_world(request):
    if request.param.startswith("tile"):
        *_, tile = draw_tiles(3, 2, "tiny")
        return tile
    return world_of("tiny", int(request.param[-1]))


@pytest.fixture(
    scope="session", params=["tiny 1", "tiny 2", "tiny 7", pytest.param("demo 7", marks=ON_DEMO)]
)
def each_world(request):
    """Return one of several small worlds, or the demo world."""
    size, seed = request.param.split()
    return world_of(size, int(seed))
