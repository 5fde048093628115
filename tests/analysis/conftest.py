"""The recordings, and a simulated exchange."""

import json
from pathlib import Path

import msgspec
import pytest

from tests.worlds import world_of
from toolkit.frames import frame

from .simulated import everybody

RECORDINGS = Path(__file__).parents[3] / "shared" / "recordings"


@pytest.fixture(scope="session")
def world():
    return world_of("tiny", 7)


@pytest.fixture(scope="session")
def tables(world):
    """Return the tables of all accounts, which no test changes."""
    return everybody(world)


@pytest.fixture(scope="session")
def rows_of(world):
    """Return an account's rows of one table, as the fetch function does."""
    kept = {}
    for name, rows in (
        ("userFillsByTime", world.sources.fills),
        ("userNonFundingLedgerUpdates", world.sources.ledger),
        ("builderApprovedFundingByTime", [(row.user, row) for row in world.sources.funding]),
    ):
        for user, row in rows:
            kept.setdefault((name, user), []).append(row)

    def make(name, user, numbers="exact"):
        wire = msgspec.json.decode(msgspec.json.encode(kept.get((name, user), [])))
        if name == "userFillsByTime":
            wire = [{k: v for k, v in row.items() if k != "builder"} for row in wire]
        return frame(name, wire, numbers=numbers)

    return make


@pytest.fixture
def recorded():
    """Return the recorded answer of an operation; skip if there are no recordings."""

    def read(name):
        path = RECORDINGS / f"{name}.json"
        if not path.exists():
            pytest.skip(f"no recording {name}")
        return json.loads(path.read_text())["response"]

    return read
