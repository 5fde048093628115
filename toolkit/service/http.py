"""The HTTP server: a `Site` behind Starlette and uvicorn."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from toolkit.service.messages import LARGEST_BODY
from toolkit.service.site import Site

__all__ = ["bind_socket", "make_application", "make_server", "run_server"]


def make_application(site: Site) -> Starlette:
    """Return the ASGI application of a site."""
    app = Starlette()
    app.mount("/", _Endpoint(site))
    return app


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address; port 0 selects a free port.

    The socket refuses connections until it listens.

    Raises
    ------
    OSError
        If the address is not available.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sets TCP_NODELAY. Without it, each response on a persistent
    # connection would wait 40 ms.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound


def make_server(site: Site) -> uvicorn.Server:
    """Return a server; ``run(sockets=[bind_socket(host, port)])`` runs it until it is stopped."""
    config = uvicorn.Config(
        make_application(site),
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=3,
    )
    return uvicorn.Server(config)


@contextlib.contextmanager
def run_server(site: Site) -> Iterator[str]:
    """Run a site in a thread, on a free port of this machine, and yield its address."""
    bound = bind_socket("127.0.0.1", 0)
    bound.listen()
    server = make_server(site)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        bound.close()


class _Endpoint:
    """Reads a request up to the largest allowed size, and responds on a worker thread."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            content = await _read_body(request)
        except ClientDisconnect:
            return
        headers = {name: request.headers[name] for name in request.headers}
        response = await run_in_threadpool(
            self._site.respond, request.method, request.url.path, headers, content
        )
        asgi_response = Response(response.content, response.status, dict(response.headers))
        await asgi_response(scope, receive, send)


async def _read_body(request: Request) -> bytes:
    """Return a body. Reading stops as soon as the body is larger than allowed."""
    parts, size = [], 0
    async for part in request.stream():
        parts.append(part)
        size += len(part)
        if size > LARGEST_BODY:
            break
    return b"".join(parts)
