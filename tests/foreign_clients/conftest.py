"""The local service on a port with its defaults, and the folder of the clients."""

import os
import sys
from pathlib import Path

import pytest

from toolkit.contract.apis import EXCHANGE, SERVICE
from toolkit.local_service import application_of, simulated_store
from toolkit.service import AcceptedKey, KeyQuotas
from toolkit.service.http import run_server
from toolkit.simulation import simulate

KEY = "s3cret"
INSTALLED = Path(sys.prefix) / "clients"
"""The folder into which .ci/clients installs them."""


@pytest.fixture(scope="session")
def world():
    return simulate(seed=7, size="tiny")


@pytest.fixture(scope="session", params=[SERVICE, EXCHANGE], ids=["service", "exchange"])
def api(request):
    """Return the API that the service plays; the exchange's own ignores the key of a client."""
    return request.param


@pytest.fixture(scope="session")
def address(api):
    store = simulated_store(7, "tiny")
    access = KeyQuotas([AcceptedKey("clients", KEY)])
    with run_server(application_of(store, access, api=api)) as address:
        yield address
    store.close()


@pytest.fixture(scope="session")
def accounts(world):
    """Return a whale, an account with an open order, and one that has deposited and withdrawn."""
    last = {(user, event.order.oid): event for user, event in world.sources.orders}
    resting = next(user for (user, _), event in last.items() if event.status == "open")
    leaving = next(user for user, update in world.sources.ledger if update.delta.type == "withdraw")
    return list(dict.fromkeys([world.examples["WHALE"], resting, leaving]))


def missing(client):
    """Skip the tests of a client that is not installed; fail in CI."""
    words = f"{client} is not installed in {INSTALLED}: run .ci/clients where its registry is"
    if os.environ.get("CI") == "true":
        pytest.fail(words)
    pytest.skip(words)
