"""Specification, "Errors": 502; "What the service does": operations that mirror an upstream."""

import contextlib
import json
import socket
from collections.abc import Callable

import httpx
import pytest

from tests.conformance import mini
from tests.conformance.conftest import GOOD, Caller, application, read_error
from toolkit.contract.source_tables import Sources
from toolkit.service import build_store
from toolkit.service.http import run_server
from toolkit.service.mirror import Upstream

OWN = [  # "exist only in this service", and the metadata of these snapshots
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
def empty_store():
    store = build_store(Sources(start_ms=0, now_ms=mini.NOW, label="nothing", simulated=True))
    yield store
    store.close()


InFront = Callable[..., contextlib.AbstractContextManager[Caller]]


@pytest.fixture(scope="module")
def serve_in_front(empty_store, keys, client):
    """Run a service in front of an upstream; its own store is empty by default."""

    @contextlib.contextmanager
    def run(*address, store=empty_store, **how):
        upstream = Upstream(*address, **how)
        with run_server(application(store, keys, mini.NOW, upstream=upstream)) as front:
            yield Caller(client, front)
        upstream.close()

    return run


@pytest.fixture(scope="module")
def mirror(hand, serve_in_front):
    """A service in front of the exchange written by hand."""
    with serve_in_front(hand.address, "full-secret") as caller:
        yield caller


@pytest.fixture(scope="module")
def stalled_upstream(hand_store, serve_in_front):
    """The exchange written by hand, in front of an upstream that never responds."""
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        serve_in_front(address_of(silent), store=hand_store, timeout=0.1) as caller,
    ):
        yield caller


def address_of(listener):
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize("type", MIRRORED)
def test_general__mirrored_answers_equal_upstream(mirror, hand, type):
    assert mirror.ask(type, **GOOD[type]) == hand.ask(type, **GOOD[type])


def test_general_1__upstream_address_may_have_path(hand, serve_in_front):
    with serve_in_front(f"{hand.address}/info", "full-secret") as caller:
        assert caller.ask("meta") == mini.METAS[""]


@pytest.mark.parametrize("type", MIRRORED)
def test_errors__502_if_upstream_slow(stalled_upstream, type):
    assert stalled_upstream.refuse(type, **GOOD[type]) == (502, "Timeout error")


def test_errors__502_if_upstream_down(serve_in_front):
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        with serve_in_front(address_of(deaf), timeout=0.2) as caller:
            assert caller.refuse("meta") == (502, "Timeout error")


@pytest.mark.parametrize("type", OWN)
def test_general_7__own_operations_need_no_upstream(stalled_upstream, hand, type):
    body = {"type": type, **GOOD[type]}
    assert stalled_upstream.post(body).content == hand.post(body).content


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"type": "userFills", "user": "0x12"}, 400, "Invalid Ethereum address: 0x12"),
        ({"type": "slippageHistory"}, 400, "coin parameter is required"),
        ({"type": "meta", "dex": 5}, 400, "dex must be a string"),
    ],
)
def test_errors__same_messages_with_upstream(mirror, stalled_upstream, body, status, message):
    """A wrong request is not forwarded."""
    for caller in (mirror, stalled_upstream):
        assert read_error(caller.post(body)) == (status, message)


@pytest.mark.parametrize("key", [None, "no-key-of-the-upstream"])
def test_errors__unknown_upstream_key_is_401(hand, serve_in_front, key):
    with serve_in_front(hand.address, key) as caller:
        got = caller.post({"type": "meta"})
        assert read_error(got) == (401, "Invalid API key")
        assert "retry-after" not in got.headers


def test_errors__upstream_429_retry_after(hand_store, keys_file, serve_in_front):
    keys = keys_file('[[key]]\nname = "poor"\nsecret = "poor"\npoints_per_minute = 1\n')
    with (
        run_server(application(hand_store, keys, mini.NOW)) as behind,
        serve_in_front(behind, "poor") as caller,
    ):
        got = caller.post({"type": "meta"})
        assert read_error(got) == (429, "Rate limit exceeded")
        assert got.headers["retry-after"] == "30"


STRANGE = {
    "418": (httpx.Response(418, text="<html>"), 400),
    "503": (httpx.Response(503, text="<html>"), 502),
    "no JSON": (httpx.Response(200, text="<html>"), 502),
    "no message": (httpx.Response(500, json={"error": 5}), 500),
    "302": (httpx.Response(302), 502),
}


@pytest.fixture(scope="module")
def garbled_upstream(serve_in_front):
    """A service in front of an upstream with invalid answers; `dex` selects the answer."""
    strange = httpx.MockTransport(lambda request: STRANGE[json.loads(request.content)["dex"]][0])
    with serve_in_front("http://upstream", transport=strange) as caller:
        yield caller


@pytest.mark.parametrize("answer", STRANGE)
def test_errors__invalid_upstream_answer(garbled_upstream, answer):
    assert garbled_upstream.refuse("meta", dex=answer) == (STRANGE[answer][1], "Upstream error")


@pytest.mark.parametrize(
    "answer", [{"text": "Failed to deserialize"}, {"json": "Failed to deserialize"}]
)
def test_errors__upstream_422_is_forwarded(serve_in_front, answer):
    """The exchange refuses a body that it cannot read with 422 and a text."""
    transport = httpx.MockTransport(lambda _: httpx.Response(422, **answer))  # type: ignore[arg-type]
    with serve_in_front("http://upstream", transport=transport) as caller:
        assert caller.refuse("meta") == (422, "Failed to deserialize")


def test_authentication_3__key_before_upstream(stalled_upstream):
    assert read_error(stalled_upstream.post({"type": "meta"}, headers={})) == (
        401,
        "Invalid API key",
    )
