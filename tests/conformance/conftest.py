"""Tests of the service against the specification, one for each clause.

The tests send real HTTP requests to servers on loopback ports. They use only httpx and json, and
compare the answers with the words of the specification, not with the code. The servers are:

- `hand`, an exchange written by hand (`mini`): every row and its order are known
- `tiny`, the simulated exchange, which has every field and every branch
- `inclusive`, `later`, `empty`: another reading of cursors, a later clock, an empty store
- `mirror` and others in `test_mirror`: services in front of an upstream

The servers have the known additions of the live service (`shapes.BEYOND`), which is the default.
`test_strict` tests the servers that are restricted to the specification.

Clauses that cannot be tested over HTTP, and why:

- the base addresses of the main and the test network, HTTPS: one server has one address
- which operations must be bought, and how keys are issued: a test only sees what a key may do
- which headers real gateways refuse (User-Agent): this concerns clients
- "refreshed every second", "about 1 ms", "recomputed once per day": tests do not sleep; the age
  of the depth is tested with a later clock
- the data availability dates: this exchange is simulated
- the behaviour of clients: retrying 500, polling the metadata, reading old TWAP tuples, both forms
  of account values, unknown fields
- slippage of *all* perp markets that are not delisted, depth "with no minimum liquidity filter":
  tested as far as the metadata of the same server allows
- Events, Versioning, transitions of order states: "not shown"
"""

import contextlib
import dataclasses
import json
from typing import Any

import httpx
import pytest

from tests.conformance import mini
from tests.conformance.rows import cursor
from tests.worlds import world_of
from toolkit.contract.source_tables import Sources
from toolkit.local_service import application_of
from toolkit.service import Application, KeyQuotas, build_store, read_keys
from toolkit.service.http import run_server

ADD_ONS = ("currentDepth", "accountValueSnapshotTimestamp", "accountValueSnapshots")
GOOD: dict[str, dict[str, Any]] = {
    "spotPairDeployAuctionStatus": {},
    "perpDeployAuctionStatus": {},
    "currentDepth": {},
    "slippageHistory": {"coin": "BTC", "amount": 1000, "startTime": 0},
    "meta": {},
    "metaAndAssetCtxs": {},
    "perpDexLimits": {"dex": "eqx"},
    "accountValueSnapshotTimestamp": {},
    "accountValueSnapshots": {"collateral_tokens": ["ALL"]},
    "perpTwapSnapshotTimestamp": {},
    "perpTwapSnapshots": {"market_names": ["ALL"]},
    "userFills": {"user": mini.ALICE},
    "userFillsByTime": {"user": mini.ALICE, "startTime": 0},
    "builderApprovedFillsByTime": {"builder": mini.B1, "startTime": 0},
    "builderApprovedFundingByTime": {"builder": mini.B1, "startTime": 0},
    "builderOrdersByTime": {"builder": mini.B1, "startTime": 0},
    "historicalOrders": {"user": mini.ALICE},
    "userNonFundingLedgerUpdates": {"user": mini.ALICE, "startTime": 0},
    "batchClearinghouseStates": {"users": [mini.ALICE]},
    "borrowLendUserState": {"user": mini.ALICE},
    "delegations": {"user": mini.ALICE},
    "validatorAprHistory": {"validator": mini.V1},
}
"""A request of every operation that the exchange written by hand can answer."""

OPTIONAL = {
    "currentDepth": "dex",
    "slippageHistory": "endTime limit",
    "meta": "dex",
    "metaAndAssetCtxs": "dex",
    "userFills": "builder aggregateByTime dex limit",
    "userFillsByTime": "endTime cursor builder aggregateByTime dex venue limit",
    "builderApprovedFillsByTime": "endTime cursor limit",
    "builderApprovedFundingByTime": "endTime cursor limit",
    "builderOrdersByTime": "endTime cursor",
    "historicalOrders": "limit",
    "userNonFundingLedgerUpdates": "endTime",
    "batchClearinghouseStates": "dex",
    "validatorAprHistory": "startTime endTime limit",
}
"""The request fields that an operation has besides."""

KEYS = """
[[key]]
name = "full"
secret = "full-secret"
add_ons = "all"

[[key]]
name = "bare"
secret = "bare-secret"
add_ons = []

[[key]]
name = "depth"
secret = "depth-secret"
add_ons = ["currentDepth"]
"""


@dataclasses.dataclass(frozen=True)
class Caller:
    """A client of one server."""

    client: httpx.Client
    address: str
    secret: str = "full-secret"

    def post(self, body=None, **how):
        """Send a body, as JSON unless it is bytes; `headers` replace those with the key."""
        headers = how.pop("headers", {"Authorization": f"Bearer {self.secret}"})
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **headers}
        return self.client.post(f"{self.address}/info", content=content, headers=headers, **how)

    def ask(self, type, **fields):
        got = self.post({"type": type, **fields})
        assert got.status_code == 200, got.text
        assert got.headers["content-type"] == "application/json"
        return json.loads(got.content)

    def refuse(self, type, **fields):
        return read_error(self.post({"type": type, **fields}))

    def raw(self, body, **headers):
        """Return the received bytes without decoding Content-Encoding."""
        headers = {"Authorization": f"Bearer {self.secret}", **headers}
        with self.client.stream(
            "POST", f"{self.address}/info", json=body, headers=headers
        ) as answer:
            return answer.status_code, answer.headers, b"".join(answer.iter_raw())

    def using(self, secret):
        return dataclasses.replace(self, secret=secret)

    def pages(self, type, limit, **fields):
        """Return all pages; the last one is shorter than the limit."""
        first = {"startTime": 0, **fields}
        pages = [self.ask(type, limit=limit, **first)]
        fields.pop("startTime", None)
        while len(pages[-1]) == limit:
            after = cursor(pages[-1][-1])
            pages.append(self.ask(type, limit=limit, cursor=after, **fields))
            assert len(pages) < 500, "no end"
        return pages


def read_error(got):
    """Return status and message of an error, whose body is ``{error: <message string>}``."""
    body = json.loads(got.content)
    assert got.headers["content-type"] == "application/json"
    assert list(body) == ["error"], body
    assert isinstance(body["error"], str), body
    assert body["error"]
    return got.status_code, body["error"]


@pytest.fixture(scope="session")
def client():
    with httpx.Client(trust_env=False, timeout=30) as client:
        yield client


@pytest.fixture(scope="session")
def keys_file(tmp_path_factory):
    def write(text):
        path = tmp_path_factory.mktemp("keys") / "keys.toml"
        path.write_text(text, "utf-8")
        return path

    return write


def application(store, keys, now_ms, at_ms=30_000, **how):
    """Return a service whose clocks do not move."""
    return Application(
        store, KeyQuotas(read_keys(keys)), now_ms=lambda: now_ms, at_ms=lambda: at_ms, **how
    )


@pytest.fixture(scope="session")
def keys(keys_file):
    return keys_file(KEYS)


@pytest.fixture(scope="session")
def world():
    """The tiny simulated exchange."""
    return world_of("tiny")


@pytest.fixture(scope="session")
def summary(world):
    return world.summary()


@pytest.fixture(scope="session")
def serve(keys, client):
    """Return a function that runs a service until the end, with clocks that do not move."""
    with contextlib.ExitStack() as stack:

        def run(store, now_ms=mini.NOW, keys=keys, **how):
            service = application(store, keys, now_ms, **how)
            return Caller(client, stack.enter_context(run_server(service)))

        yield run


@pytest.fixture(scope="session")
def tiny(world, keys, client):
    """The service of the tiny simulated exchange, built as for users."""
    store = build_store(world.sources)
    with run_server(application_of(store, KeyQuotas(read_keys(keys)))) as address:
        yield Caller(client, address)
    store.close()


@pytest.fixture(scope="session")
def traders(world):
    """The accounts of the simulated exchange that have fills."""
    return list(dict.fromkeys(user for user, _ in world.sources.fills))


@pytest.fixture(scope="session")
def latest_of(tiny, traders):
    """The latest fills of each account."""
    return {user: tiny.ask("userFills", user=user) for user in traders}


@pytest.fixture(scope="session")
def by_time_of(tiny, traders):
    """The first page of the fills of each account."""
    return {user: tiny.ask("userFillsByTime", user=user, startTime=0) for user in traders}


@pytest.fixture(scope="session")
def hand_store():
    store = build_store(mini.sources())
    yield store
    store.close()


@pytest.fixture(scope="session")
def hand(hand_store, serve):
    """The service of the exchange written by hand."""
    return serve(hand_store)


@pytest.fixture(scope="session")
def inclusive(hand_store, serve):
    """The same service with inclusive cursors: a page repeats the rows at its cursor."""
    return serve(hand_store, inclusive=True)


@pytest.fixture(scope="session")
def empty_store():
    store = build_store(Sources(start_ms=0, now_ms=mini.NOW, label="nothing", simulated=True))
    yield store
    store.close()
