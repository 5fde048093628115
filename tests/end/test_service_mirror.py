"""Mirror mode: one service in front of another."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from toolkit.contract.operations import OPERATIONS
from toolkit.contract.sources import Sources
from toolkit.local import site_of
from toolkit.service import Access, Key, Site, Store, Upstream, build
from toolkit.service.http import running
from toolkit.service.mirror import is_mirrored
from toolkit.simulation import World, simulate

KEY = {"authorization": "Bearer s3cret"}
EMPTY = Sources(start_ms=0, now_ms=0, label="nothing", simulated=False)


@pytest.fixture(scope="module")
def world() -> World:
    return simulate(seed=7, size="tiny")


@pytest.fixture(scope="module")
def behind(world: World) -> Iterator[str]:
    store = build(world.sources)
    access = Access([Key("front", "behind"), Key("poor", "poor", points_per_minute=9)])
    with running(site_of(store, access)) as address:
        yield address
    store.close()


@pytest.fixture(scope="module")
def own() -> Iterator[Store]:
    store = build(EMPTY)
    yield store
    store.close()


def in_front(own: Store, upstream: Upstream) -> Site:
    return site_of(own, Access([Key("all", "s3cret")]), upstream=upstream)


def ask(site: Site, **body: Any) -> tuple[int, Any]:
    got = site.respond("POST", "/info", KEY, json.dumps(body).encode())
    return got.status, json.loads(got.content)


def test_which_operations_are_mirrored() -> None:
    own = {type for type, operation in OPERATIONS.items() if not is_mirrored(operation)}
    assert own == {
        "currentDepth",
        "accountValueSnapshotTimestamp",
        "accountValueSnapshots",
        "perpTwapSnapshotTimestamp",
        "perpTwapSnapshots",
        "batchClearinghouseStates",
        "builderOrdersByTime",
        "builderApprovedFillsByTime",
        "builderApprovedFundingByTime",
    }


def test_mirrored_operations_are_forwarded_and_others_are_not(
    behind: str, own: Store, world: World
) -> None:
    upstream = Upstream(f"{behind}/info", "behind")
    site = in_front(own, upstream)
    status, meta = ask(site, type="meta")
    assert (status, meta["universe"][0]["name"]) == (200, "BTC")
    builder = {"builder": world.builders[0], "startTime": 0}
    assert ask(site, type="builderApprovedFillsByTime", **builder) == (200, [])
    assert ask(site, type="meta", dex=5) == (400, {"error": "dex must be a string"})
    upstream.close()


def test_errors_of_the_upstream_are_passed_on(behind: str, own: Store) -> None:
    for key, status, message in (
        (None, 401, "Invalid API key"),
        ("poor", 429, "Rate limit exceeded"),
    ):
        upstream = Upstream(behind, key)
        site = in_front(own, upstream)
        user = "0x" + "a" * 40
        got = site.respond(
            "POST", "/info", KEY, json.dumps({"type": "userFills", "user": user}).encode()
        )
        assert (got.status, json.loads(got.content)) == (status, {"error": message})
        assert ("retry-after" in got.headers) == (status == 429)
        upstream.close()


def test_an_upstream_that_does_not_answer_is_a_time_out(own: Store) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        refusing = Upstream(address, timeout=0.2)
        assert ask(in_front(own, refusing), type="meta") == (502, {"error": "Timeout error"})
        silent.listen()
        waiting = Upstream(address, timeout=0.2)
        assert ask(in_front(own, waiting), type="meta") == (502, {"error": "Timeout error"})
        refusing.close()
        waiting.close()


@pytest.mark.parametrize(
    ("got", "status"),
    [
        (httpx.Response(422, text="Failed to deserialize"), 400),
        (httpx.Response(503, text="<html>"), 502),
        (httpx.Response(200, text="<html>"), 502),
        (httpx.Response(500, json={"error": 5}), 500),
        (httpx.Response(302), 502),
    ],
)
def test_answers_that_are_none_become_errors(own: Store, got: httpx.Response, status: int) -> None:
    upstream = Upstream("http://elsewhere", transport=httpx.MockTransport(lambda _: got))
    assert ask(in_front(own, upstream), type="meta") == (status, {"error": "Upstream error"})
    upstream.close()


@pytest.mark.parametrize("address", ["", "host", "ftp://host", "http://"])
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(ValueError, match="is no address"):
        Upstream(address)
