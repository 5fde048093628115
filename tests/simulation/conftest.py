"""Small simulated worlds, made once."""

import pytest

from toolkit.simulation import World, simulate, tiles


@pytest.fixture(scope="session")
def world() -> World:
    return simulate(seed=7, size="tiny")


@pytest.fixture(scope="session", params=["seed 1", "seed 2", "tile 1 of seed 3"])
def any_world(request: pytest.FixtureRequest) -> World:
    if request.param.startswith("tile"):
        *_, tile = tiles(3, 2, "tiny")
        return tile
    return simulate(seed=int(request.param[-1]), size="tiny")
