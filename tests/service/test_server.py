"""The limits of the server, over real sockets. Shortened limits keep the tests fast."""

import asyncio
import contextlib
import itertools
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.contract.source_tables import Sources
from toolkit.service import AcceptedKey, Application, KeyQuotas, ServiceLimits, build_store
from toolkit.service.http import HttpServer, RefusalSchedule, bind_socket, run_server
from toolkit.service.request_queue import RequestQueue

KEY = "Authorization: Bearer s3cret\r\n"
HOST = "Host: 127.0.0.1\r\n"
META = b'{"type":"userFills","user":"0x%040d"}' % 0
GOOD = f"POST /info HTTP/1.1\r\n{HOST}{KEY}Content-Length: {len(META)}\r\n\r\n".encode() + META
HEALTH = f"GET /healthz HTTP/1.1\r\n{HOST}\r\n".encode()
SHORT = 0.05  # seconds


class Wire:
    """A raw connection to a server."""

    def __init__(self, address, *, receive_bytes=None):
        parts = urlsplit(address)
        self.socket = socket.socket()
        if receive_bytes is not None:  # before the connection: a window may not shrink later
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(60)
        try:
            self.socket.connect((parts.hostname, parts.port))
        except OSError:
            self.socket.close()
            raise
        self.reader = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.reader.close()
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data.encode() if isinstance(data, str) else data)
        return self

    def read_response(self):
        """Return status, headers and the JSON of one response."""
        status = int(self.reader.readline().split()[1])
        headers = {}
        while line := self.reader.readline().decode().strip():
            name, _, value = line.partition(": ")
            headers[name] = value
        body = self.reader.read(int(headers.get("content-length", 0)))
        return status, headers, json.loads(body) if body else None

    def read_error(self):
        """Return status and message of a JSON error, after which the connection closes."""
        status, headers, body = self.read_response()
        assert headers["content-type"] == "application/json"
        assert list(body) == ["error"]
        return status, body["error"]

    def is_closed(self):
        """Return whether the server closes the connection; wait for it."""
        with contextlib.suppress(ConnectionResetError):
            return self.reader.read() == b""
        return True


@pytest.fixture(scope="module")
def empty():
    store = build_store(Sources(start_ms=0, now_ms=10**12, label="nothing", simulated=True))
    yield store
    store.close()


@pytest.fixture(scope="module")
def serve(empty):
    """Run a server with changed limits."""

    def run(**limits):
        return run_server(make_application(empty, **limits))

    return run


def make_application(store, access=None, **limits):
    return Application(
        store,
        access or KeyQuotas([AcceptedKey("all", "s3cret")]),
        now_ms=lambda: 10**12,
        at_ms=lambda: 0,
        limits=replace(ServiceLimits(), **limits),
    )


@pytest.fixture(scope="module")
def address(serve):
    with serve() as address:
        yield address


def test_limits_are_documented():
    page = (Path(__file__).parents[2] / "docs/service.md").read_text("utf-8")
    for limit in fields(ServiceLimits):
        assert f"| `{limit.name}` | {limit.default:g} |" in page.replace("1048576", "1.04858e+06")


# --- floods of refusals ---

STRANGER = f"POST /info HTTP/1.1\r\n{HOST}Content-Length: 0\r\n\r\n"


def test_refusals_beyond_limit_are_dropped(serve):
    limits = {"refusals_at_once": 3, "refusals_per_second": 1e-3, "refusal_wait_seconds": 0}
    wrong = GOOD.replace(b"s3cret", b"guess")
    with serve(**limits) as address, Wire(address) as known, Wire(address) as stranger:
        assert known.send(GOOD).read_response()[0] == 200
        for data in (STRANGER, wrong, "GET /nope HTTP/1.1\r\n" + HOST + "\r\n"):
            assert stranger.send(data).read_response()[0] in (401, 404)
        for data in (STRANGER, wrong, "nonsense\r\n\r\n"):
            with Wire(address) as another:
                assert another.send(data).is_closed()
        assert known.send(GOOD).read_response()[0] == 200
        assert known.send(HEALTH).read_response()[0] == 200


@given(
    steps=st.lists(st.floats(0, 3), max_size=60),
    rate=st.sampled_from([0.5, 1.0, 7.0]),
    at_once=st.integers(1, 5),
    longest=st.sampled_from([0.0, 2.0]),
)
def test_refusal_rate_is_bounded(steps, rate, at_once, longest):
    now = 0.0
    limits = ServiceLimits(
        refusals_per_second=rate, refusals_at_once=at_once, refusal_wait_seconds=longest
    )
    schedule = RefusalSchedule(limits, lambda: now)
    sent = []
    for step in steps:
        now += step
        wait = schedule.plan_refusal("192.0.2.1")
        if wait is not None:
            assert wait <= longest
            sent.append(now + wait)
    assert sent == sorted(sent)
    for first, last in itertools.combinations(range(len(sent)), 2):
        assert last - first <= at_once + rate * (sent[last] - sent[first]) + 1e-6


def test_refusals_are_counted_by_network():
    schedule = RefusalSchedule(ServiceLimits(refusals_at_once=1, refusal_wait_seconds=0), lambda: 0)
    neighbours = ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1", "fe80::1%eth0", "192.0.2.1")
    plans = [schedule.plan_refusal(address) for address in neighbours]
    assert plans == [0.0, None, 0.0, 0.0, 0.0]
    mapped = ("::ffff:192.0.2.7", "::ffff:192.0.2.8", "::ffff:192.0.2.7")
    assert [schedule.plan_refusal(address) for address in mapped] == [0.0, 0.0, None]


# --- requests ---


def test_other_paths_and_malformed_requests_are_refused(address):
    """Each refusal is JSON; after a malformed request the connection closes."""
    _, _, rest = GOOD.partition(b"\r\n")
    for line, status in ((b"POST /info?x=1 HTTP/1.1", 200), (b"POST /nope HTTP/1.1", 404)):
        with Wire(address) as wire:
            got, headers, body = wire.send(line + b"\r\n" + rest).read_response()
        assert got == status
        assert headers["content-type"] == "application/json"
        assert body == [] if status == 200 else list(body) == ["error"]
    for data in (b"nonsense\r\n\r\n", b"GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n"):
        with Wire(address) as wire:
            assert wire.send(data).read_error()[0] == 400
            assert wire.is_closed()


def test_long_values_are_shortened(address):
    for name, value in (("type", "x" * 9_000), ("cursor", "7" * 9_000)):
        body = {"type": "userFillsByTime", "user": f"0x{1:040x}", "startTime": 0, name: value}
        content = json.dumps(body).encode()
        head = f"POST /info HTTP/1.1\r\n{HOST}{KEY}Content-Length: {len(content)}\r\n\r\n"
        with Wire(address) as wire:
            status, _, got = wire.send(head.encode() + content).read_response()
        assert (status, len(got["error"]) < 200) == (400, True)


# --- the Host header ---


def test_foreign_host_is_refused(empty):
    """DNS rebinding: a page of another site lets its own name point to 127.0.0.1."""
    here = "localhost LOCALHOST:8787 localhost. app.localhost:1 127.0.0.1:8787 127.1.2.3 [::1]"
    here += " [::1]:8787 proxy.example:443"
    foreign = "example.org 127.0.0.1.example.org localhost.example.org:8787 [2001:db8::1] 10.0.0.1"
    table = [(host, 200) for host in here.split()]
    table += [(host, 421) for host in ["", "other.proxy.example", *foreign.split()]]
    with serve_named(empty, "127.0.0.1", ["Proxy.example"]) as address:
        for host, status in table:
            with Wire(address) as wire:
                wire.send(f"GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n")
                got, _, body = wire.read_response()
            assert got == status, host
            assert status == 200 or "--allow-host" in body["error"]


def test_public_address_accepts_any_host(empty):
    with serve_named(empty, "0.0.0.0") as address, Wire(address) as wire:
        request = "GET /healthz HTTP/1.1\r\nHost: example.org\r\n\r\n"
        assert wire.send(request).read_response()[0] == 200


@contextlib.contextmanager
def serve_named(store, host, allowed=()):
    """Run a server on an address of this machine, with further names."""
    listener = bind_socket(host, 0)
    listener.listen()
    server = HttpServer(make_application(store), listener, allowed_hosts=allowed)
    thread = threading.Thread(target=server.run, daemon=True)
    port = listener.getsockname()[1]
    thread.start()
    yield f"http://127.0.0.1:{port}"
    server.stop()
    thread.join(10)


# --- sizes ---


def test_large_body_is_refused(serve):
    with serve(body_bytes=1_000) as address:
        for more, status in ((-len(META), 200), (1 - len(META), 413)):
            body = META + b" " * (1_000 + more)
            chunk = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
            for length, content in (
                (f"Content-Length: {len(body)}", body),
                ("Transfer-Encoding: chunked", chunk),
            ):
                head = f"POST /info HTTP/1.1\r\n{HOST}{KEY}{length}\r\n\r\n".encode()
                with Wire(address) as wire:
                    assert wire.send(head + content).read_response()[0] == status


def test_long_lists_are_refused(serve):
    with serve(list_entries=10) as address, Wire(address) as wire:
        for entries, status in ((10, 404), (11, 400)):
            body = json.dumps({"type": "perpTwapSnapshots", "market_names": ["BTC"] * entries})
            wire.send(f"POST /info HTTP/1.1\r\n{HOST}{KEY}Content-Length: {len(body)}\r\n\r\n")
            assert wire.send(body).read_response()[0] == status


# --- times ---


def test_slow_connections_are_closed(serve):
    for limit, data in [
        ("first_byte_seconds", b""),
        ("header_seconds", b"POST /info HTTP/1.1\r\nHo"),
        ("body_seconds", GOOD[:-1]),
        ("idle_seconds", GOOD),
    ]:
        with serve(**{limit: SHORT, "linger_seconds": SHORT}) as address, Wire(address) as wire:
            wire.send(data)
            if limit in ("header_seconds", "body_seconds"):
                assert wire.read_error()[0] == 408
            elif data:
                assert wire.read_response()[0] == 200
            assert wire.is_closed()


def test_connection_with_unread_responses_is_closed(serve):
    with (
        serve(send_seconds=SHORT) as address,
        Wire(address, receive_bytes=4_096) as wire,
        contextlib.suppress(ConnectionError),
    ):
        for _ in range(100_000):  # the client only sends, until the service gives up
            wire.send(HEALTH * 1_000)
        pytest.fail("the service sends without end")


# --- many connections ---


def test_silent_connections_are_closed_for_new_ones(serve, caplog):
    with serve(connections=20) as address, contextlib.ExitStack() as stack:
        keyed = stack.enter_context(Wire(address))
        assert keyed.send(GOOD).read_response()[0] == 200
        for number in range(60):
            wire = stack.enter_context(Wire(address))
            if number % 2:
                wire.send(b"POST /info HTTP/1.1\r\nx")
        with Wire(address) as wire:
            assert wire.send(HEALTH).read_response()[0] == 200
        assert keyed.send(GOOD).read_response()[0] == 200  # a key is better than silence
    assert caplog.records == []


def test_keys_take_turns():
    async def run():
        order: list[str] = []
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        queue = RequestQueue(loop, workers=1, workers_per_key=1)

        def deliver(name):
            order.append(name)
            if len(order) == 7:
                done.set()

        names = [f"greedy {number}" for number in range(4)]
        names += ["modest 0", "modest 1", " 0"]  # a key may have no name
        for name in names:
            queue.add(name.partition(" ")[0], lambda name=name: name, deliver)
        await asyncio.wait_for(done.wait(), 10)
        queue.close()
        return order

    # A thread of its own, because tests in a browser leave an event loop on this one. The first
    # request begins before the others come.
    with ThreadPoolExecutor(1) as pool:
        order = pool.submit(asyncio.run, run()).result()
    turns = ["greedy", "greedy", "modest", "", "greedy", "modest", "greedy"]
    assert [name.partition(" ")[0] for name in order] == turns


# --- the end ---


class SlowAccess(KeyQuotas):
    """Access whose charges wait for the test."""

    def __init__(self):
        super().__init__([AcceptedKey("all", "s3cret")])
        self.arrived, self.go_on = threading.Semaphore(0), threading.Event()

    def charge(self, key, points, **facts):
        if points:
            self.arrived.release()
            assert self.go_on.wait(10)


def run_slow(empty, **limits):
    access = SlowAccess()
    listener = bind_socket("127.0.0.1", 0)
    listener.listen()
    server = HttpServer(make_application(empty, access, **limits), listener)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    return access, server, thread, f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_stop_finishes_running_answers(empty):
    access, server, thread, address = run_slow(empty)
    with Wire(address) as busy, Wire(address) as idle:
        assert idle.send(HEALTH).read_response()[0] == 200
        busy.send(GOOD)
        assert access.arrived.acquire(timeout=10)
        server.stop()
        assert idle.is_closed()
        with pytest.raises(ConnectionRefusedError):
            Wire(address)
        access.go_on.set()
        status, headers, _ = busy.read_response()
        assert (status, headers["connection"]) == (200, "close")
        assert busy.is_closed()
    thread.join(10)
    assert not thread.is_alive()


def test_health_answers_beside_slow_requests(empty):
    access, server, thread, address = run_slow(empty, workers=2, workers_per_key=2)
    with contextlib.ExitStack() as stack:
        busy = [stack.enter_context(Wire(address)).send(GOOD) for _ in range(10)]
        for _ in range(2):
            assert access.arrived.acquire(timeout=10)
        with Wire(address) as wire:
            assert wire.send(HEALTH).read_response()[0] == 200
        access.go_on.set()
        assert [wire.read_response()[0] for wire in busy] == [200] * 10
        server.stop()
        thread.join(10)
