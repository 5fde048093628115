"""Specification, "Errors": 502; "What the service does": operations that mirror an upstream."""

import contextlib
import json
import socket

import httpx
import pytest

from tests.conformance import mini
from tests.conformance.conftest import GOOD, Caller, application, read_error
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


def test_general__mirrored_answers_equal_upstream(mirror, hand, serve_in_front):
    """The address of the upstream may have a path."""
    for type in MIRRORED:
        assert mirror.ask(type, **GOOD[type]) == hand.ask(type, **GOOD[type]), type
    with serve_in_front(f"{hand.address}/info", "full-secret") as caller:
        assert caller.ask("meta") == mini.METAS[""]


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("https://upstream.test", "Bearer full-secret"),
        ("https://api.hyperliquid.xyz", None),
        ("https://API.hyperliquid-testnet.xyz./info", None),
    ],
)
def test_general__key_is_never_sent_to_the_exchange(address, key):
    sent = []

    def answer(request):
        sent.append(request.headers.get("authorization"))
        return httpx.Response(200, json=[])

    Upstream(address, "full-secret", transport=httpx.MockTransport(answer)).forward(b"{}")
    assert sent == [key]


def test_errors__invalid_upstream_address_is_refused():
    for wrong in ("", "host", "ftp://host", "http://"):
        with pytest.raises(ValueError, match=repr(wrong)):
            Upstream(wrong)


def test_errors__502_if_upstream_slow(stalled_upstream):
    got = {type: stalled_upstream.refuse(type, **GOOD[type]) for type in MIRRORED}
    assert got == dict.fromkeys(MIRRORED, (502, "Timeout error"))


def test_errors__502_if_upstream_down(serve_in_front):
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        with serve_in_front(address_of(deaf), timeout=0.2) as caller:
            assert caller.refuse("meta") == (502, "Timeout error")


def test_general_7__own_operations_need_no_upstream(stalled_upstream, hand):
    for type in OWN:
        body = {"type": type, **GOOD[type]}
        assert stalled_upstream.post(body).content == hand.post(body).content, type


def test_errors__wrong_request_is_not_forwarded(mirror, stalled_upstream):
    table = [
        ({"type": "userFills", "user": "0x12"}, 400, "Invalid Ethereum address: 0x12"),
        ({"type": "slippageHistory"}, 400, "coin parameter is required"),
        ({"type": "meta", "dex": 5}, 400, "dex must be a string"),
    ]
    for body, status, message in table:
        for caller in (mirror, stalled_upstream):
            assert read_error(caller.post(body)) == (status, message)
    assert read_error(stalled_upstream.post({"type": "meta"}, headers={}))[0] == 401


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
    "418": (httpx.Response(418, text="<html>"), (400, "Upstream error")),
    "503": (httpx.Response(503, text="<html>"), (502, "Upstream error")),
    "no JSON": (httpx.Response(200, text="<html>"), (502, "Upstream error")),
    "no message": (httpx.Response(500, json={"error": 5}), (500, "Upstream error")),
    "302": (httpx.Response(302), (502, "Upstream error")),
    # The exchange refuses a body that it cannot read with 422 and a text.
    "422": (httpx.Response(422, text="Failed to deserialize"), (422, "Failed to deserialize")),
    "422 JSON": (httpx.Response(422, json="Failed to deserialize"), (422, "Failed to deserialize")),
}


def test_errors__invalid_upstream_answer(serve_in_front):
    """`dex` selects the answer."""
    strange = httpx.MockTransport(lambda request: STRANGE[json.loads(request.content)["dex"]][0])
    with serve_in_front("http://upstream", transport=strange) as caller:
        got = {answer: caller.refuse("meta", dex=answer) for answer in STRANGE}
    assert got == {answer: wanted for answer, (_, wanted) in STRANGE.items()}
