"""Specification, "Errors": 502; "What the service does": operations that mirror an upstream."""

import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.conformance import mini
from tests.conformance.conftest import GOOD, Caller, refused, site
from toolkit.contract.sources import Sources
from toolkit.service import Store, build
from toolkit.service.http import running
from toolkit.service.mirror import Upstream

OWN = [  # "exist only in this service", and the metadata of those snapshots
    "currentDepth",
    "accountValueSnapshotTimestamp",
    "accountValueSnapshots",
    "perpTwapSnapshotTimestamp",
    "perpTwapSnapshots",
    "batchClearinghouseStates",
    "builderOrdersByTime",
    "builderApprovedFillsByTime",
    "builderApprovedFundingByTime",
]
MIRRORED = sorted(GOOD.keys() - set(OWN))


@pytest.fixture(scope="module")
def empty_store() -> Iterator[Store]:
    store = build(Sources(start_ms=0, now_ms=mini.NOW, label="nothing", simulated=True))
    yield store
    store.close()


@pytest.fixture(scope="module")
def mirror(hand: Caller, empty_store: Store, keys: Path, client: httpx.Client) -> Iterator[Caller]:
    """A service with nothing of its own in front of the exchange written by hand."""
    upstream = Upstream(hand.address, "full-secret")
    with running(site(empty_store, keys, mini.NOW, upstream=upstream)) as address:
        yield Caller(client, address)
    upstream.close()


@pytest.fixture(scope="module")
def stalled(hand_store: Store, keys: Path, client: httpx.Client) -> Iterator[Caller]:
    """The exchange written by hand in front of an upstream that takes calls and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        upstream = Upstream(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.1)
        with running(site(hand_store, keys, mini.NOW, upstream=upstream)) as address:
            yield Caller(client, address)
        upstream.close()


@pytest.mark.parametrize("type", MIRRORED)
def test_general__mirrored_operations_are_the_upstreams(
    mirror: Caller, hand: Caller, type: str
) -> None:
    assert mirror.ask(type, **GOOD[type]) == hand.ask(type, **GOOD[type])


@pytest.mark.parametrize("type", MIRRORED)
def test_errors__502_when_the_upstream_is_too_slow(stalled: Caller, type: str) -> None:
    assert stalled.refuse(type, **GOOD[type]) == (502, "Timeout error")


@pytest.mark.parametrize("type", OWN)
def test_general_7__own_operations_need_no_upstream(
    stalled: Caller, hand: Caller, type: str
) -> None:
    body = {"type": type, **GOOD[type]}
    assert stalled.post(body).content == hand.post(body).content


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"type": "userFills", "user": "0x12"}, 400, "Invalid Ethereum address: 0x12"),
        ({"type": "slippageHistory"}, 400, "coin parameter is required"),
    ],
)
def test_errors__the_same_words_in_front_of_an_upstream(
    mirror: Caller, body: dict[str, str], status: int, message: str
) -> None:
    assert refused(mirror.post(body)) == (status, message)


def test_errors__errors_of_the_upstream_are_passed_on(
    empty_store: Store, hand: Caller, keys: Path, client: httpx.Client
) -> None:
    upstream = Upstream(hand.address, "no-key-of-the-upstream")
    with running(site(empty_store, keys, mini.NOW, upstream=upstream)) as address:
        assert Caller(client, address).refuse("meta") == (401, "Invalid API key")
    upstream.close()


def test_authentication_3__the_key_is_checked_before_the_upstream_is_asked(
    stalled: Caller,
) -> None:
    assert refused(stalled.post({"type": "meta"}, headers={})) == (401, "Invalid API key")
