"""A local object store with the protocol of S3: moto, which answers one request at a time."""

import contextlib
import http.client
import json
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

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
class WriteLimit:
    """How many writes a store accepts, and with which status and code it refuses more."""

    writes: int | None = None
    status: str = ""
    code: str = ""


class StoreProcess:
    """A store in a process of its own, because deltalake may wait for it without releasing the GIL.

    Attributes
    ----------
    environment : dict of str to str
        The variables with its address and credentials.
    """

    def __init__(self, process):
        self._process = process
        port = int(self._read_line())
        _request(port, "PUT", "/bucket")
        self.environment = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "canary-name-51d2",
            "AWS_SECRET_ACCESS_KEY": SECRET,
        }

    def make(self, limit):
        """Limit the number of writes from now on."""
        assert self._process.stdin is not None
        print(json.dumps(asdict(limit)), file=self._process.stdin, flush=True)
        self._read_line()

    def _read_line(self):
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@contextlib.contextmanager
def running():
    """Run a store with an empty bucket until the end of the block."""
    command = [sys.executable, "-m", "tests.archive.bucket"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield StoreProcess(process)
        process.communicate(timeout=20)  # the process ends when its input is closed


def _serve():
    """Print the port; then read a limit per line, and confirm it."""
    limit = WriteLimit()
    application = _SequentialApp(DomainDispatcherApplication(create_backend_app), limit)
    server = make_server("127.0.0.1", 0, application, True, request_handler=_QuietHandler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    print(server.server_port, flush=True)
    for line in sys.stdin:
        for name, value in json.loads(line).items():
            setattr(limit, name, value)
        print("done", flush=True)
    server.shutdown()
    thread.join()
    server.server_close()


class _QuietHandler(MotoRequestHandler):
    """A handler without a log line per request."""

    def log_request(self, *_):
        pass


class _SequentialApp:
    """Answers one request after the other.

    Moto checks whether an object exists and writes it in two steps; S3 does so in one step.
    """

    def __init__(self, application, limit):
        self._application = application
        self._limit = limit
        self._lock = threading.Lock()

    def __call__(self, environ, start_response):
        with self._lock:
            if environ["REQUEST_METHOD"] in ("PUT", "POST") and self._limit.writes is not None:
                if not self._limit.writes:
                    return self._refuse(environ, start_response)
                self._limit.writes -= 1
            return list(self._application(environ, start_response))

    def _refuse(self, environ, start_response):
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        body = f"<Error><Code>{self._limit.code}</Code><Message>refused</Message></Error>".encode()
        start_response(self._limit.status, [("Content-Length", str(len(body)))])
        return [body]


def list_objects(environment, prefix):
    """Return every object below a prefix, by name."""
    import boto3

    client = boto3.client("s3", endpoint_url=environment["AWS_ENDPOINT_URL"])
    pages = client.get_paginator("list_objects_v2").paginate(Bucket="bucket", Prefix=prefix)
    names = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
    return {name: client.get_object(Bucket="bucket", Key=name)["Body"].read() for name in names}


def _request(port, method, path):
    signed = {"Authorization": "AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/s3/aws4_request"}
    connection = http.client.HTTPConnection("127.0.0.1", port)
    with contextlib.closing(connection):
        connection.request(method, path, headers=signed)
        return connection.getresponse().status


@contextlib.contextmanager
def run_echo_store():
    """Run a store that refuses everything and repeats the request in its answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = f"echoed {SECRET} {dict(self.headers)}".encode()
            self.send_response(403)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
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
