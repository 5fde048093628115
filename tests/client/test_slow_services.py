"""Services that send a byte now and then, or break a connection: an error of ours ends a wait."""

import contextlib
import socket
import socketserver
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import stamina

import toolkit as tk
from toolkit.client import open_session

PATIENCE = 0.5
AT_ONCE = struct.pack("ii", 1, 0)  # closes without the rest
PAUSE = 0.02  # between two bytes; the time-out of a read is longer

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"


def trickle(head, drop):
    """Return a function that sends a head, and then the same drop for ever."""

    def respond(send):
        send(head)
        while True:
            send(drop)

    return respond


SLOW = {
    "body": trickle(HEAD + b"[", b" "),
    "chunks": trickle(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "silence": trickle(b"", b""),
}


BROKEN = {"cut": lambda send: send(HEAD + b"["), "reset": lambda send: "reset"}


class Slow(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.recv(65_536)

        def send(content):
            self.request.sendall(content)
            if self.server.ended.wait(PAUSE):
                raise OSError

        with contextlib.suppress(OSError):  # the client has closed the connection
            if self.server.respond(send) == "reset":
                self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
                self.request.close()


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


def failure_of(respond):
    """Return the cause of the error that a service leads to, and the seconds until then."""
    with Server(("127.0.0.1", 0), Slow) as server:
        server.respond, server.ended = respond, threading.Event()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        with open_session(address, timeout=2, now_ms=lambda: 0) as session:
            session.patience = PATIENCE
            begun = time.monotonic()
            with pytest.raises(tk.Unreachable) as caught:
                tk.meta(session=session)
            seconds = time.monotonic() - begun
        server.ended.set()
        server.shutdown()
    return caught.value.cause, seconds


def test_slow_answer_times_out():
    with stamina.set_testing(True, attempts=1), ThreadPoolExecutor(len(SLOW)) as pool:
        found = dict(zip(SLOW, pool.map(failure_of, SLOW.values()), strict=True))
    wrong = {name: item for name, item in found.items() if item[0] != "time-out" or item[1] > 10}
    assert wrong == {}


def test_broken_connection_is_named():
    with stamina.set_testing(True, attempts=1):
        found = {name: failure_of(respond)[0] for name, respond in BROKEN.items()}
    assert found == dict.fromkeys(BROKEN, "connection broken")
