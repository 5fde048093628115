"""The limits of the server, over real sockets. Shortened limits keep the tests fast."""

import contextlib
import json
import socket
import threading
from dataclasses import fields, replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from toolkit.contract.source_tables import Sources
from toolkit.service import AcceptedKey, Application, KeyQuotas, ServiceLimits, build_store
from toolkit.service.http import HttpServer, bind_socket, run_server

KEY = "Authorization: Bearer s3cret\r\n"
HOST = "Host: 127.0.0.1\r\n"
META = b'{"type":"userFills","user":"0x%040d"}' % 0
GOOD = f"POST /info HTTP/1.1\r\n{HOST}{KEY}Content-Length: {len(META)}\r\n\r\n".encode() + META
HEALTH = f"GET /healthz HTTP/1.1\r\n{HOST}\r\n".encode()


class Wire:
    """A raw connection to a server."""

    def __init__(self, address):
        parts = urlsplit(address)
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout=60)
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
        """Return status and message of a JSON error."""
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


# --- requests ---


def test_other_paths_and_malformed_requests_are_refused(address):
    _, _, rest = GOOD.partition(b"\r\n")
    for line, status in ((b"POST /info?x=1 HTTP/1.1", 200), (b"POST /nope HTTP/1.1", 404)):
        with Wire(address) as wire:
            got, headers, body = wire.send(line + b"\r\n" + rest).read_response()
        assert got == status
        assert headers["content-type"] == "application/json"
        assert body == [] if status == 200 else list(body) == ["error"]
    with Wire(address) as wire:
        twice = f"GET /healthz HTTP/1.1\r\n{HOST}{HOST}\r\n"
        for data in ("GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n", twice):
            assert wire.send(data).read_error()[0] == 400
        wire.send(b"nonsense\r\n\r\n")
        assert wire.reader.read().split()[1] == b"400"  # and the connection closes


def test_refused_body_is_skipped(address):
    """A client that sends on reads its refusal, and the connection goes on."""
    body = b" " * 2**22
    head = f"POST /info HTTP/1.1\r\n{HOST}Content-Length: {len(body)}\r\n".encode()
    with Wire(address) as wire:
        for key, status in ((b"", 401), (KEY.encode(), 413)):
            assert wire.send(head + key + b"\r\n" + body).read_error()[0] == status
        assert wire.send(GOOD).read_response()[0] == 200


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


def test_unfinished_body_is_refused(serve):
    with serve(body_seconds=0.05) as address, Wire(address) as wire:
        assert wire.send(GOOD[:-1]).read_error()[0] == 408
        assert wire.is_closed()


def test_idle_connection_is_closed(serve):
    with serve(idle_seconds=0) as address, Wire(address) as wire:
        assert wire.send(GOOD).read_response()[0] == 200
        assert wire.is_closed()


# --- the end ---


class SlowAccess(KeyQuotas):
    """Access whose charges wait for the test."""

    def __init__(self):
        super().__init__([AcceptedKey("all", "s3cret"), AcceptedKey("other", "guess")])
        self.admitted, self.started = threading.Semaphore(0), threading.Semaphore(0)
        self.go_on = threading.Event()
        self.order = []

    def charge(self, key, points, **facts):
        if not points:
            self.admitted.release()
            return
        self.order.append(key.name)
        self.started.release()
        assert self.go_on.wait(10)


def run_slow(empty, **limits):
    access = SlowAccess()
    listener = bind_socket("127.0.0.1", 0)
    listener.listen()
    server = HttpServer(make_application(empty, access, **limits), listener)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    return access, server, thread, f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_keys_take_turns(empty):
    access, server, thread, address = run_slow(empty, workers=1)
    with contextlib.ExitStack() as stack:
        wires = []
        for request in [*[GOOD] * 4, GOOD.replace(b"s3cret", b"guess")]:
            wires.append(stack.enter_context(Wire(address)).send(request))
            assert access.admitted.acquire(timeout=10)
        access.go_on.set()
        assert [wire.read_response()[0] for wire in wires] == [200] * 5
    assert access.order == ["all", "other", "all", "all", "all"]
    server.stop()
    thread.join(10)


def test_stop_finishes_running_answers(empty):
    access, server, thread, address = run_slow(empty)
    with Wire(address) as busy, Wire(address) as idle:
        assert idle.send(HEALTH).read_response()[0] == 200
        busy.send(GOOD)
        assert access.started.acquire(timeout=10)
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
            assert access.started.acquire(timeout=10)
        with Wire(address) as wire:
            assert wire.send(HEALTH).read_response()[0] == 200
        access.go_on.set()
        assert [wire.read_response()[0] for wire in busy] == [200] * 10
        server.stop()
        thread.join(10)
