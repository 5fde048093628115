"""The service of a tiny simulated exchange, without HTTP."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from toolkit.contract.operations import OPERATIONS
from toolkit.service import AcceptedKey, Application, KeyQuotas, Response, Store, build_store
from toolkit.simulation import World, simulate

BEARER = {"authorization": "Bearer s3cret"}


@dataclass(frozen=True)
class Asker:
    """A client that sends request bodies to a store's service."""

    store: Store
    access: KeyQuotas
    now_ms: int

    def send(
        self, body: bytes, headers: dict[str, str] | None = None, *, at_ms: int = 0, **options: Any
    ) -> Response:
        headers = BEARER if headers is None else headers
        application = Application(
            self.store, self.access, now_ms=lambda: self.now_ms, at_ms=lambda: at_ms, **options
        )
        return application.respond("POST", "/info", headers, body)

    def ask(self, type: str, *, inclusive: bool = False, **fields: Any) -> Any:
        got = self.send(json.dumps({"type": type, **fields}).encode(), inclusive=inclusive)
        assert got.status == 200, got.content
        return json.loads(got.content)

    def refuse(self, type: str, **fields: Any) -> tuple[int, str]:
        got = self.send(json.dumps({"type": type, **fields}).encode())
        assert list(json.loads(got.content)) == ["error"]
        return got.status, json.loads(got.content)["error"]

    def pages(self, type: str, limit: int, inclusive: bool = False, **fields: Any) -> list[Any]:
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


def cursor(type: str, row: Any) -> str:
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
def world() -> World:
    return simulate(seed=7, size="tiny")


@pytest.fixture(scope="session")
def store(world: World) -> Iterator[Store]:
    store = build_store(world.sources, world=world.summary())
    yield store
    store.close()


@pytest.fixture
def asker(store: Store, world: World) -> Asker:
    return Asker(store, KeyQuotas([AcceptedKey("all", "s3cret")]), world.sources.now_ms)


@pytest.fixture(scope="session")
def asker_once(store: Store, world: World) -> Asker:
    """The same client for tests with many generated examples."""
    return Asker(store, KeyQuotas([AcceptedKey("all", "s3cret")]), world.sources.now_ms)
