"""Simulated worlds, each drawn once."""

import pytest

from tests.worlds import tiles_of_two, world_of


@pytest.fixture(scope="session")
def world():
    return world_of("tiny")


@pytest.fixture(scope="session", params=["seed 1", "a tile of seed 7"])
def any_world(request):
    return tiles_of_two()[1] if "tile" in request.param else world_of("tiny", 1)


@pytest.fixture(scope="session", params=[2, 7])
def each_world(request):
    """Return one of several worlds without tiles."""
    return world_of("tiny", request.param)
