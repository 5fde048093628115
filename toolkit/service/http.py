"""The HTTP server: an `Application` behind a socket.

The event loop reads and writes (`toolkit.service.connection`); worker threads compute responses
(`toolkit.service.request_queue`).
"""

import asyncio
import contextlib
import ipaddress
import logging
import signal
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from typing import Final

from toolkit.service.application import Application
from toolkit.service.connection import Connection
from toolkit.service.hosts import is_loopback
from toolkit.service.limits import ServiceLimits, connection_limit
from toolkit.service.request_queue import RequestQueue

__all__ = ["HttpServer", "bind_socket", "run_server"]

_BACKLOG: Final = 512
"""Connections that the system holds until the server accepts them."""

_LOG_SECONDS: Final = 60.0
"""The least time between two messages about failed connections."""

_ACCEPT_PAUSE: Final = 0.05
"""Seconds to wait if the system has no resources for another connection."""

_log = logging.getLogger(__name__)


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

    Parameters
    ----------
    application : Application
        The service. Its `limits` are those of the server.
    listener : socket.socket
        A socket of `bind_socket`. The server closes it.
    allowed_hosts : collection of str
        Names that a Host header may have besides those of this machine. They matter only if the
        socket is on loopback; otherwise every name is accepted.

    Attributes
    ----------
    connections : dict
        The open connections, the oldest first.
    is_stopping : bool
        Whether the server accepts no more requests.
    is_full : bool
        Whether a client waits for a connection. Connections then close after a response.
    refusals : RefusalSchedule
        When refusals are sent.
    """

    def __init__(
        self,
        application: Application,
        listener: socket.socket,
        *,
        allowed_hosts: Collection[str] = (),
    ) -> None:
        self.application = application
        self.connections: dict[Connection, None] = {}
        self.is_stopping = self.is_full = False
        self._listener = listener
        local = is_loopback(listener.getsockname()[0])
        self.hosts = frozenset(map(str.lower, allowed_hosts)) if local else None
        self.refusals = RefusalSchedule(application.limits, time.monotonic)
        self._most = connection_limit(application.limits)
        self._logged = -_LOG_SECONDS
        self._started = threading.Event()

    def run(self) -> None:
        """Serve until `stop`, SIGTERM or SIGINT; then finish the responses that are computed."""
        asyncio.run(self._serve())

    def stop(self) -> None:
        """Begin to stop, from any thread."""
        self._started.wait()
        with contextlib.suppress(RuntimeError):  # the server has ended
            self.loop.call_soon_threadsafe(self._stopped.set)

    def forget(self, connection: Connection) -> None:
        """Remove a connection that is closed."""
        self.connections.pop(connection, None)
        if self.is_stopping and not self.connections:
            self._all_closed.set()

    def log_seldom(self, message: str, error: BaseException | None) -> None:
        """Log an error, at most once a minute, so that clients cannot fill the log."""
        now = time.monotonic()
        if now - self._logged >= _LOG_SECONDS:
            self._logged = now
            _log.error("%s (such messages come at most once a minute)", message, exc_info=error)

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._stopped, self._all_closed = asyncio.Event(), asyncio.Event()
        limits = self.application.limits
        if self.application.upstream is None:
            self.queue = RequestQueue(self.loop, limits.workers, limits.workers_per_key)
        else:
            self.queue = RequestQueue(self.loop, limits.forwards, max(1, limits.forwards // 2))
        self._handle_signals()
        self._listener.setblocking(False)
        self._listener.listen(_BACKLOG)
        accepting = asyncio.create_task(self._accept_connections())
        self._started.set()
        await self._stopped.wait()
        accepting.cancel()
        await asyncio.wait([accepting])
        self._listener.close()
        await self._finish_connections()
        self.queue.close()

    async def _accept_connections(self) -> None:
        """Accept one connection after the other; make room if there are too many."""
        while True:
            try:
                client, _ = await self.loop.sock_accept(self._listener)
            except OSError as error:  # such as too many open files of the whole system
                self.log_seldom(f"cannot accept a connection: {error}", None)
                self._close_least_needed()
                await asyncio.sleep(_ACCEPT_PAUSE)
                continue
            while len(self.connections) >= self._most and not self._close_least_needed():
                self.is_full = True  # every connection is busy and has sent a valid key
                await asyncio.sleep(_ACCEPT_PAUSE)
            self.is_full = False
            await self.loop.connect_accepted_socket(lambda: Connection(self), client)

    def _close_least_needed(self) -> bool:
        """Close the oldest connection without a key, or else the oldest that waits for a request.

        Return whether there is one.
        """
        least = min(self.connections, key=Connection.rank, default=None)
        if least is None or (least.has_key and least.is_working):
            return False
        least.abort()
        return True

    async def _finish_connections(self) -> None:
        """Let the responses that are computed finish, then close all connections."""
        self.is_stopping = True
        for connection in list(self.connections):
            connection.stop()
        if self.connections:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.application.limits.stop_seconds):
                    await self._all_closed.wait()
        for connection in list(self.connections):
            connection.abort()

    def _handle_signals(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C raises instead
                self.loop.add_signal_handler(number, self._stopped.set)


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


_MOST_ADDRESSES: Final = 10_000
"""Addresses in memory. Beyond them, the one with the oldest refusal is forgotten."""


class RefusalSchedule:
    """The times at which refusals are sent; a few come at once, further ones at a constant rate.

    Requests with a valid key are never delayed, so clients that share an address with a flood, for
    example behind a proxy, are not harmed.

    Parameters
    ----------
    limits : ServiceLimits
        Rate, number at once and longest wait.
    now : callable
        Returns a time in seconds, such as `time.monotonic`.

    Examples
    --------
    >>> limits = ServiceLimits(refusals_at_once=2, refusals_per_second=1, refusal_wait_seconds=2)
    >>> schedule = RefusalSchedule(limits, now=lambda: 0.0)
    >>> [schedule.plan_refusal("192.0.2.1") for _ in range(5)]
    [0.0, 0.0, 1.0, 2.0, None]
    """

    def __init__(self, limits: ServiceLimits, now: Callable[[], float]) -> None:
        self._now = now
        self._interval = 1 / limits.refusals_per_second
        self._at_once = limits.refusals_at_once
        self._longest = limits.refusal_wait_seconds
        self._due: OrderedDict[str, float] = OrderedDict()

    def plan_refusal(self, address: str) -> float | None:
        """Return the seconds until the next refusal for an address, or None if they are too many.

        They are too many if the refusal would wait longer than `refusal_wait_seconds`. Then it is
        dropped, and it does not delay later refusals.
        """
        group, now = _address_group(address), self._now()
        due = max(self._due.get(group, now), now)
        wait = max(0.0, due - now - (self._at_once - 1) * self._interval)
        if wait > self._longest:
            return None
        self._due[group] = due + self._interval
        self._due.move_to_end(group)
        if len(self._due) > _MOST_ADDRESSES:
            self._due.popitem(last=False)
        return wait


def _address_group(address: str) -> str:
    """Return the part of an address that a client cannot change at will.

    Of an IPv6 address this is the network: its first 64 bits.
    """
    if ":" not in address:
        return address
    ip = ipaddress.IPv6Address(address.partition("%")[0])
    return str(ip.ipv4_mapped) if ip.ipv4_mapped else f"{int(ip) >> 64:x}"
