"""A failing network between a real client and a real service, drawn from a seed."""

import contextlib
import random
import socket
import socketserver
import struct
import threading
from collections import Counter

import httpx

from toolkit.client import open_session
from toolkit.local_service import InProcessTransport, application_of
from toolkit.service import AcceptedKey, KeyQuotas

SECRET = "a-secret"

_ANSWERS: dict[str, tuple[int, dict[str, str], str]] = {
    "429": (429, {}, "Rate limit exceeded"),
    "429 and when": (429, {"Retry-After": "1"}, "Rate limit exceeded"),
    "500": (500, {}, "An internal error occurred"),
    "502": (502, {}, "Timeout error"),
}
REFUSED = tuple(_ANSWERS)
BROKEN = ("reset", "lost", "cut", "short", "slow")


class Failing(httpx.BaseTransport):
    """A transport that forwards requests, and lets some of them fail.

    Parameters
    ----------
    inner : httpx.BaseTransport
        The way to the service.
    seed : int
        What the failures are drawn from.
    share : float
        How many of the requests fail.
    """

    def __init__(self, inner, *, seed, share):
        self._inner = inner
        self._draw = random.Random(seed)
        self._share = share
        self.failed: Counter[str] = Counter()

    def handle_request(self, request):
        if self._draw.random() >= self._share:
            return self._inner.handle_request(request)
        kind = self._draw.choice((*REFUSED, *BROKEN))
        self.failed[kind] += 1
        return self._fail(kind, request)

    def _fail(self, kind, request):
        if kind in REFUSED:
            status, headers, message = _ANSWERS[kind]
            return httpx.Response(status, json={"error": message}, headers=headers)
        match kind:
            case "reset":
                raise httpx.ConnectError("connection reset", request=request)
            case "lost":  # the service has answered, but the answer is lost
                self._inner.handle_request(request).read()
                raise httpx.ReadError("connection reset", request=request)
            case "cut":
                closed = httpx.RemoteProtocolError("peer closed the connection", request=request)
                return self._half(request, closed)
            case "short":  # cut by a proxy that states the shorter length
                content = self._inner.handle_request(request).read()
                return httpx.Response(200, content=content[: len(content) // 2])
            case _:
                return self._half(request, httpx.ReadTimeout("timed out", request=request))

    def _half(self, request, error):
        """Return the answer up to the middle of its body, and then raise the error."""
        answer = self._inner.handle_request(request)
        content = b"".join(answer.iter_raw())
        half = _Half(content[: len(content) // 2], error)
        return httpx.Response(answer.status_code, headers=answer.headers, stream=half)


def served(store, inclusive):
    """Return the service of a store."""
    return application_of(store, KeyQuotas([AcceptedKey("test", SECRET)]), inclusive=inclusive)


def failing(application, share):
    """Return a session on a service in this process, through a failing network."""
    network = Failing(InProcessTransport(application), seed=3, share=share)
    session = open_session(
        "http://service.test",
        SECRET,
        transport=network,
        simulated=True,
        attempts=12,
        default=False,
    )
    return session, network


class _Half(httpx.SyncByteStream):
    """A body that ends in the middle."""

    def __init__(self, content, error):
        self._content = content
        self._error = error

    def __iter__(self):
        yield self._content
        raise self._error


class FailingSocket:
    """An application on a real socket that resets, closes in the middle, or stalls.

    Parameters
    ----------
    application : Application
        Who answers.
    seed : int
        What the failures are drawn from.
    share : float
        How many of the requests fail.
    """

    def __init__(self, application, *, seed, share):
        self._application = application
        self._draw = random.Random(seed)
        self._share = share
        self._lock = threading.Lock()
        self.failed: Counter[str] = Counter()

    def answer(self, connection):
        """Answer one request or fail; a connection has one request."""
        headers, content = _request_on(connection)
        kind = self._drawn()
        if kind == "reset":  # to close with unread data is a reset
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        result = self._application.respond("POST", "/info", headers, content)
        lines = {
            **result.headers,
            "content-length": str(len(result.content)),
            "connection": "close",
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        connection.sendall(f"HTTP/1.1 {result.status} OK\r\n{head}\r\n".encode())
        whole = kind == "good"
        connection.sendall(result.content if whole else result.content[: len(result.content) // 2])
        if kind == "slow":  # nothing more comes until the client gives up
            with contextlib.suppress(OSError):
                connection.recv(1)

    def _drawn(self):
        with self._lock:
            if self._draw.random() >= self._share:
                return "good"
            kind = self._draw.choice(("reset", "cut", "slow"))
            self.failed[kind] += 1
            return kind

    @contextlib.contextmanager
    def running(self):
        """Run it in threads on a free port, and yield its address."""
        failing = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                failing.answer(self.request)

        with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_address[1]}"
            finally:
                server.shutdown()
                thread.join()


def _request_on(connection):
    """Return the headers of a request, with names in lower case, and its body."""
    read = b""
    while b"\r\n\r\n" not in read:
        read += connection.recv(65_536)
    head, _, content = read.partition(b"\r\n\r\n")
    lines = (line.split(":", 1) for line in head.decode().split("\r\n")[1:])
    headers = {name.lower(): value.strip() for name, value in lines}
    while len(content) < int(headers["content-length"]):
        content += connection.recv(65_536)
    return headers, content
