"""An object store on this machine, as S3 speaks: moto, answering one request at a time."""

import contextlib
import http.client
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server

from tests.archive.processes import ROOT

SECRET = "canary-secret-0f3c9a7b"
BUCKET = "s3://bucket"


@dataclass
class Room:
    """How many writes a store takes, and with which status and code it refuses more."""

    writes: int | None = None
    status: str = ""
    code: str = ""


class Served:
    """A store in a process of its own, as stores are: deltalake may wait for it with the GIL held.

    Attributes
    ----------
    environment : dict of str to str
        What leads there.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        port = int(self._said())
        _request(port, "PUT", "/bucket")
        self.environment = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "canary-name-51d2",
            "AWS_SECRET_ACCESS_KEY": SECRET,
        }

    def make(self, room: Room) -> None:
        """Let it take so many writes from here on."""
        assert self._process.stdin is not None
        print(json.dumps(asdict(room)), file=self._process.stdin, flush=True)
        self._said()

    def _said(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@contextlib.contextmanager
def running() -> Iterator[Served]:
    """Run it with an empty bucket, until the end of the block."""
    command = [sys.executable, "-m", "tests.archive.bucket"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Served(process)
        process.communicate(timeout=20)  # it ends with its input


def _serve() -> None:
    """Say the port; then take a room a line, and say when it counts."""
    room = Room()
    application = _OneByOne(DomainDispatcherApplication(create_backend_app), room)
    server = make_server("127.0.0.1", 0, application, True, request_handler=_Quiet)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    print(server.server_port, flush=True)
    for line in sys.stdin:
        for name, value in json.loads(line).items():
            setattr(room, name, value)
        print("done", flush=True)
    server.shutdown()
    thread.join()
    server.server_close()


class _Quiet(MotoRequestHandler):
    """Writes no line for each request."""

    def log_request(self, *_: Any) -> None:
        pass


class _OneByOne:
    """Answers one request after the other.

    Moto looks whether an object is there and writes it in two steps; S3 does it in one.
    """

    def __init__(self, application: Any, room: Room) -> None:
        self._application = application
        self._room = room
        self._lock = threading.Lock()

    def __call__(self, environ: Any, start_response: Any) -> list[bytes]:
        with self._lock:
            if environ["REQUEST_METHOD"] in ("PUT", "POST") and self._room.writes is not None:
                if not self._room.writes:
                    return self._refused(environ, start_response)
                self._room.writes -= 1
            return list(self._application(environ, start_response))

    def _refused(self, environ: Any, start_response: Any) -> list[bytes]:
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        said = f"<Error><Code>{self._room.code}</Code><Message>refused</Message></Error>".encode()
        start_response(self._room.status, [("Content-Length", str(len(said)))])
        return [said]


def objects(environment: dict[str, str], prefix: str) -> dict[str, bytes]:
    """Give every object below a prefix, by name."""
    import boto3

    client = boto3.client("s3", endpoint_url=environment["AWS_ENDPOINT_URL"])
    pages = client.get_paginator("list_objects_v2").paginate(Bucket="bucket", Prefix=prefix)
    names = [one["Key"] for page in pages for one in page.get("Contents", [])]
    return {name: client.get_object(Bucket="bucket", Key=name)["Body"].read() for name in names}


def put(environment: dict[str, str], name: str, content: bytes, *, if_none: bool) -> int:
    """Write an object, only where there is none if asked; give the status."""
    port = int(environment["AWS_ENDPOINT_URL"].rpartition(":")[2])
    headers = {"If-None-Match": "*"} if if_none else {}
    return _request(port, "PUT", f"/bucket/{name}", content, headers)


def _request(
    port: int, method: str, path: str, content: bytes = b"", headers: dict[str, str] | None = None
) -> int:
    signed = {"Authorization": "AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/s3/aws4_request"}
    connection = http.client.HTTPConnection("127.0.0.1", port)
    with contextlib.closing(connection):
        connection.request(method, path, content, signed | (headers or {}))
        return connection.getresponse().status


@contextlib.contextmanager
def echoing() -> Iterator[str]:
    """Run a store that refuses everything, and repeats what it was told; give its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            said = f"echoed {SECRET} {dict(self.headers)}".encode()
            self.send_response(403)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


if __name__ == "__main__":
    _serve()
