"""Simulated worlds, made once."""

import pytest

from toolkit.simulation import World, simulate, tiles


@pytest.fixture(scope="session")
def world() -> World:
    return simulate(seed=7, size="tiny")


@pytest.fixture(scope="session")
def demo() -> World:
    return simulate(seed=7, size="demo")


@pytest.fixture(scope="session", params=["seed 1", "seed 2", "tile 1 of seed 3"])
def any_world(request: pytest.FixtureRequest) -> World:
    if request.param.startswith("tile"):
        *_, tile = tiles(3, 2, "tiny")
        return tile
    return simulate(seed=int(request.param[-1]), size="tiny")


@pytest.fixture(scope="session", params=["tiny 1", "tiny 2", "tiny 7", "demo 7"])
def each_world(request: pytest.FixtureRequest) -> World:
    """Several small worlds, and the one that everybody looks at first."""
    size, seed = request.param.split()
    if int(seed) == 7:
        kept: World = request.getfixturevalue("demo" if size == "demo" else "world")
        return kept
    return simulate(seed=int(seed), size=size)
