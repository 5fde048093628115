"""The socket: a `Site` behind Starlette and uvicorn."""

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

from toolkit.service.answer import LARGEST_BODY
from toolkit.service.site import Site

__all__ = ["application", "bind", "running", "server"]


def application(site: Site) -> Starlette:
    """Make the ASGI application of a site."""
    app = Starlette()
    app.mount("/", _Endpoint(site))
    return app


def bind(host: str, port: int) -> socket.socket:
    """Take an address; port 0 takes any that is free. It refuses connections until it listens.

    Raises
    ------
    OSError
        If it cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sends at once (TCP_NODELAY); else each answer on a
    # connection that is kept would wait 40 ms.
    taken = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((host, port))
    except OSError:
        taken.close()
        raise
    return taken


def server(site: Site) -> uvicorn.Server:
    """Make a server; ``run(sockets=[bind(host, port)])`` runs it until it is told to stop."""
    config = uvicorn.Config(
        application(site),
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=3,
    )
    return uvicorn.Server(config)


@contextlib.contextmanager
def running(site: Site) -> Iterator[str]:
    """Run a site in a thread, on a free port of this machine, and give its address."""
    taken = bind("127.0.0.1", 0)
    taken.listen()
    serves = server(site)
    thread = threading.Thread(target=serves.run, kwargs={"sockets": [taken]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"
    finally:
        serves.should_exit = True
        thread.join(timeout=10)
        taken.close()


class _Endpoint:
    """Reads a request as far as allowed, and answers it on a worker thread."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            content = await _body(request)
        except ClientDisconnect:
            return
        headers = {name: request.headers[name] for name in request.headers}
        answer = await run_in_threadpool(
            self._site.respond, request.method, request.url.path, headers, content
        )
        response = Response(answer.content, answer.status, dict(answer.headers))
        await response(scope, receive, send)


async def _body(request: Request) -> bytes:
    """Read a body, one byte beyond the largest at most: enough to see that it is too large."""
    parts, size = [], 0
    async for part in request.stream():
        parts.append(part)
        size += len(part)
        if size > LARGEST_BODY:
            break
    return b"".join(parts)
