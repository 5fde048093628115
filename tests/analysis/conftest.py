"""The recordings, and a simulated exchange."""

import json
from pathlib import Path

import pytest

from tests.worlds import world_of

from .simulated import everybody

RECORDINGS = Path(__file__).parents[3] / "shared" / "recordings"


@pytest.fixture(scope="session")
def world():
    return world_of("tiny", 7)


@pytest.fixture(scope="session")
def tables(world):
    """Return the tables of all accounts, which no test changes."""
    return everybody(world)


@pytest.fixture
def recorded():
    """Return the recorded answer of an operation; skip if there are no recordings."""

    def read(name):
        path = RECORDINGS / f"{name}.json"
        if not path.exists():
            pytest.skip(f"no recording {name}")
        return json.loads(path.read_text())["response"]

    return read
