"""Small simulated worlds, made once."""

import pytest

from toolkit.simulation import World, simulate


@pytest.fixture(scope="session")
def world() -> World:
    return simulate(seed=7, size="tiny")


@pytest.fixture(scope="session", params=[1, 2, 3])
def any_world(request: pytest.FixtureRequest) -> World:
    return simulate(seed=request.param, size="tiny")
