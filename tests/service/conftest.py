"""The service of a tiny simulated exchange, without HTTP."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.worlds import world_of
from toolkit.contract.operations import OPERATIONS
from toolkit.service import AcceptedKey, Application, KeyQuotas, Store, build_store

BEARER = {"authorization": "Bearer s3cret"}


@dataclass(frozen=True)
class Asker:
    """A client that sends request bodies to a store's service."""

    store: Store
    access: KeyQuotas
    now_ms: int

    def send(self, body, headers=None, *, at_ms=0, **options):
        headers = BEARER if headers is None else headers
        application = Application(
            self.store, self.access, now_ms=lambda: self.now_ms, at_ms=lambda: at_ms, **options
        )
        return application.respond("POST", "/info", headers, body)

    def ask(self, type, *, inclusive=False, **fields):
        got = self.send(json.dumps({"type": type, **fields}).encode(), inclusive=inclusive)
        assert got.status == 200, got.content
        return json.loads(got.content)

    def refuse(self, type, **fields):
        got = self.send(json.dumps({"type": type, **fields}).encode())
        assert list(json.loads(got.content)) == ["error"]
        return got.status, json.loads(got.content)["error"]

    def pages(self, type, limit, inclusive=False, **fields):
        """Return all rows; each request continues after the key of the last row."""
        rows: list[Any] = []
        asked: dict[str, Any] = {"startTime": 0, **fields}
        while True:
            page = self.ask(type, limit=limit, inclusive=inclusive, **asked)
            rows += page
            if len(page) < limit:
                return rows
            last, asked = asked, {**fields, "cursor": cursor(type, page[-1])}
            assert asked != last, "one transaction fills a page: no cursor leads past it"


def asker_of(store):
    """Return a client with a key for everything, at the end of a store's history."""
    return Asker(store, KeyQuotas([AcceptedKey("all", "s3cret")]), store.about["now_ms"])


def cursor(type, row):
    """Return the cursor of a row, made as a client makes it."""
    wire = {"tx_index": "txIndex", "status_timestamp": "statusTimestamp"}
    parts = []
    for path in OPERATIONS[type].key:
        value = row
        for step in path.split("."):
            value = value[wire.get(step, step)]
        parts.append(str(value))
    return "_".join(parts)


@pytest.fixture(scope="session")
def world():
    return world_of("tiny")


@pytest.fixture(scope="session")
def store(world):
    store = build_store(world.sources, world=world.summary())
    yield store
    store.close()


@pytest.fixture(scope="session")
def asker(store):
    return asker_of(store)
