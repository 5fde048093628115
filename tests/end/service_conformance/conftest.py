"""A service of a tiny simulated exchange on a port, and who asks it.

The tests of this folder go through the specification clause by clause over real HTTP. They are
written from `specification.md` and `clarifications.md`, not from the code.
"""

from collections.abc import Iterator

import pytest

from tests.end.service_conformance.asking import Client
from toolkit.local import site_of
from toolkit.service import Access, Key, build
from toolkit.service.http import running
from toolkit.simulation import World, simulate


@pytest.fixture(scope="module")
def world() -> World:
    return simulate(seed=7, size="tiny")


@pytest.fixture(scope="module")
def base_url(world: World) -> Iterator[str]:
    keys = [
        Key("all", "all"),
        Key("plain", "plain", add_ons=frozenset()),
        Key("depth", "depth", add_ons=frozenset({"currentDepth"})),
        *(Key(f"poor{n}", f"poor{n}", points_per_minute=n) for n in (4, 5, 9, 10, 99, 100)),
    ]
    store = build(world.sources, world=world.summary())
    with running(site_of(store, Access(keys))) as address:
        yield address
    store.close()


@pytest.fixture(scope="module")
def client(base_url: str) -> Iterator[Client]:
    client = Client(base_url, "all")
    yield client
    client.http.close()


@pytest.fixture(scope="module")
def users(world: World) -> list[str]:
    """Every account with fills, busiest first."""
    counts: dict[str, int] = {}
    for user, _ in world.sources.fills:
        counts[user] = counts.get(user, 0) + 1
    return sorted(counts, key=lambda user: -counts[user])


@pytest.fixture(scope="module")
def builder(world: World) -> str:
    return world.builders[0]
