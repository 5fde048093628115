"""The HTTP server: an `Application` behind a socket.

uvicorn reads and writes; worker threads compute responses. What only a proxy in front of it can
do is in SECURITY.md.
"""

import asyncio
import contextlib
import queue
import signal
import socket
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from typing import Any

import uvicorn

from toolkit.errors import ServiceError
from toolkit.service.api_keys import AcceptedKey
from toolkit.service.application import Application
from toolkit.service.handler_messages import Response, error_response
from toolkit.service.hosts import check_host, is_loopback

_Receive = Callable[[], Awaitable[Mapping[str, Any]]]
_Work = tuple[asyncio.Future[Response], tuple[AcceptedKey, Mapping[str, str], bytes]]
_Send = Callable[[dict[str, Any]], Awaitable[None]]


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


class HttpServer:
    """The server of an application on one socket.

    Each key computes at most `ServiceLimits.workers_per_key` responses at once, and the keys wait
    in one line. So a key with many requests delays each other key by at most one request.

    Parameters
    ----------
    application : Application
        The service. Its `limits` are those of the server.
    listener : socket.socket
        A socket of `bind_socket`. The server closes it.
    allowed_hosts : collection of str
        Names that a Host header may have besides those of this machine. They matter only if the
        socket is on loopback; otherwise every name is accepted.
    """

    def __init__(
        self,
        application: Application,
        listener: socket.socket,
        *,
        allowed_hosts: Collection[str] = (),
    ) -> None:
        limits = application.limits
        workers, for_key = limits.workers, limits.workers_per_key
        if application.upstream is not None:
            workers, for_key = limits.forwards, max(1, limits.forwards // 2)
        self._application = application
        self._listener = listener
        local = is_loopback(listener.getsockname()[0])
        self._hosts = frozenset(map(str.lower, allowed_hosts)) if local else None
        self._work: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._threads = workers
        self._workers = asyncio.Semaphore(workers)
        self._turns: defaultdict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(for_key)
        )
        config = uvicorn.Config(
            self._serve,
            interface="asgi3",
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",  # its warnings are about each client that sends no HTTP
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=limits.idle_seconds,
            timeout_graceful_shutdown=limits.stop_seconds,
        )
        self._server = uvicorn.Server(config)

    def run(self) -> None:
        """Serve until `stop`, SIGTERM or SIGINT; then finish the responses that are computed."""
        if threading.current_thread() is threading.main_thread():
            # After it has stopped, uvicorn raises the signal once more.
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        for _ in range(self._threads):
            # Less work than an executor, and a daemon does not keep the process alive.
            threading.Thread(target=self._compute, daemon=True).start()
        with contextlib.suppress(KeyboardInterrupt):
            self._server.run([self._listener])
        for _ in range(self._threads):
            self._work.put(None)

    def stop(self) -> None:
        """Begin to stop, from any thread."""
        self._server.should_exit = True

    async def _serve(self, scope: Mapping[str, Any], receive: _Receive, send: _Send) -> None:
        """Answer one request: the application of ASGI."""
        try:
            response = await self._respond(scope, receive)
        except ServiceError as error:
            response = self._application.add_source_headers(error_response(error))
        fields = {**response.headers, "content-length": str(len(response.content))}
        if response.status == 408:
            fields["connection"] = "close"
        pairs = [(name.encode(), value.encode()) for name, value in fields.items()]
        start = {"type": "http.response.start", "status": response.status, "headers": pairs}
        await send(start)
        await send({"type": "http.response.body", "body": response.content})

    async def _respond(self, scope: Mapping[str, Any], receive: _Receive) -> Response:
        application, limits = self._application, self._application.limits
        headers: dict[str, str] = {}
        for raw_name, raw_value in scope["headers"]:
            name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        check_host(headers.get("host"), self._hosts)
        machine = (scope.get("client") or [""])[0]
        key = application.admit(scope["method"], scope["path"], headers, machine)
        if isinstance(key, Response):
            return application.add_source_headers(key)
        content, more = b"", True
        try:
            async with asyncio.timeout(limits.body_seconds):
                while more and len(content) <= limits.body_bytes:  # a longer one is refused below
                    message = await receive()
                    content += message.get("body", b"")
                    more = message.get("more_body", False)
        except TimeoutError:
            raise ServiceError("The request did not arrive in time", status=408) from None
        async with self._turns[key.name], self._workers:
            waiting: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
            self._work.put((waiting, (key, headers, content)))
            return await waiting

    def _compute(self) -> None:
        """Compute one response after the other, on a worker thread."""
        for waiting, arguments in iter(self._work.get, None):
            response = self._application.answer(*arguments)
            with contextlib.suppress(RuntimeError):  # the loop has ended
                waiting.get_loop().call_soon_threadsafe(waiting.set_result, response)


@contextlib.contextmanager
def run_server(application: Application) -> Iterator[str]:
    """Run an application in a thread, on a free port of this machine, and yield its address."""
    listener = bind_socket("127.0.0.1", 0)
    listener.listen()
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = HttpServer(application, listener)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield address
    finally:
        server.stop()
        thread.join(timeout=10)
