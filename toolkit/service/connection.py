"""One connection of a client: bytes become requests, and responses become bytes.

A connection is in one phase at a time, and every phase has a time limit: see `_Phase`.
"""

import asyncio
import enum
import http
import socket
import struct
from collections import deque
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import partial
from typing import TYPE_CHECKING, Final, cast

import httptools

from toolkit.errors import BadRequest, ServiceError
from toolkit.service.api_keys import AcceptedKey
from toolkit.service.application import Application
from toolkit.service.handler_messages import Response, error_response
from toolkit.service.hosts import check_host, split_target

if TYPE_CHECKING:
    from toolkit.service.http import HttpServer

__all__ = ["Connection"]

_JOINED_BYTES: Final = 65_536  # a smaller body is sent in one piece with its headers
_NO_LINGER: Final = struct.pack("ii", 1, 0)


_REASONS: Final = {status.value: status.phrase for status in http.HTTPStatus}


@dataclass(slots=True)
class ArrivingRequest:
    """A request while it arrives."""

    target: bytes = b""
    method: str = ""
    version: str = "1.1"
    headers: dict[str, str] = field(default_factory=dict)
    header_count: int = 0
    header_bytes: int = 0
    received_bytes: int = 0
    """Bytes of the pieces in which the headers arrive, before they are complete."""
    body: bytearray = field(default_factory=bytearray)
    body_bytes: int = 0
    key: AcceptedKey | None = None
    response: Response | None = None
    """The response, if the headers alone decide it. The body is then not kept."""
    is_last: bool = False
    """Whether the connection closes after the response."""

    def add_header(self, name: str, value: str) -> None:
        """Add a header; its name is in lower case. Values of the same name become a list."""
        if name not in self.headers:
            self.headers[name] = value
            return
        if name == "host":
            raise BadRequest("The request has two Host headers")
        self.headers[name] += ", " + value


def response_head(request: ArrivingRequest, response: Response) -> bytes:
    """Return the status line and the headers of a response."""
    status = response.status
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Error')}"]
    lines += [f"{name}: {value}" for name, value in response.headers.items()]
    lines.append(f"date: {formatdate(usegmt=True)}")
    lines.append(f"content-length: {len(response.content)}")
    if request.is_last:
        lines.append("connection: close")
    elif request.version == "1.0":
        lines.append("connection: keep-alive")
    return "\r\n".join([*lines, "\r\n"]).encode("latin-1")


class _Phase(enum.Enum):
    """What a connection waits for. The value names its time limit in `ServiceLimits`."""

    SILENT = "first_byte_seconds"
    HEADERS = "header_seconds"
    BODY = "body_seconds"
    ANSWER = ""  # the service computes; the store and the upstream have their own limits
    SEND = "send_seconds"
    IDLE = "idle_seconds"
    LINGER = "linger_seconds"


class Connection(asyncio.Protocol):
    """A connection from its first to its last byte.

    `data_received` parses. Each complete request goes to `_requests`; the first of them is
    answered, then the next.

    Parameters
    ----------
    server : HttpServer
        The server of this connection.
    """

    def __init__(self, server: "HttpServer") -> None:
        self._server = server
        self._application: Application = server.application
        self._limits = server.application.limits
        self._parser = httptools.HttpRequestParser(self)
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._incoming: ArrivingRequest | None = None
        self._requests: deque[ArrivingRequest] = deque()
        self._is_parsing = True
        self._has_eof = False
        self._has_completed = False
        self._unparsed_bytes = 0
        self._phase = _Phase.SILENT
        self._timer: asyncio.TimerHandle | None = None
        self.has_key = False
        """Whether a request with a valid key came on this connection."""

    @property
    def is_working(self) -> bool:
        """Whether the connection has a request that is answered."""
        return self._phase in (_Phase.ANSWER, _Phase.SEND)

    def rank(self) -> tuple[bool, bool]:
        """Return what the server compares if it has to close a connection; the least goes first."""
        return self.has_key, self.is_working

    # --- the transport calls these ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for the first byte."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=0)  # so that `resume_writing` means: all sent
        self._server.connections[self] = None
        self._address: str = (transport.get_extra_info("peername") or ("",))[0]
        self._enter(_Phase.SILENT)

    def connection_lost(self, error: Exception | None) -> None:
        """Forget the connection, and requests that nobody waits for."""
        self._is_parsing = False
        self._requests.clear()
        self._stop_timer()
        self._server.forget(self)

    def data_received(self, data: bytes) -> None:
        """Parse bytes of a client."""
        if not self._is_parsing:
            return
        self._has_completed = False
        try:
            self._feed(data)
            request = self._incoming
            if request is not None and not request.method and not self._has_completed:
                # The parser shows a header only when it is whole.
                request.received_bytes += len(data)
                self._check_header_bytes(request.received_bytes)
        except httptools.HttpParserCallbackError as error:
            cause = error.__context__
            if not isinstance(cause, ServiceError):
                self._server.log_seldom(f"a connection from {self._address} failed", cause)
                cause = ServiceError("An internal error occurred", status=500)
            self._refuse(cause)
        except httptools.HttpParserError as error:
            self._refuse(BadRequest(f"The request is not valid HTTP: {error}"))
        except ServiceError as error:
            self._refuse(error)
        if len(self._requests) > 1:
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        """Return whether to keep the connection: a client may wait for its last response."""
        self._is_parsing, self._has_eof = False, True
        if self._requests:
            self._requests[-1].is_last = True
        return self.is_working

    def resume_writing(self) -> None:
        """Go on after the last byte of a response."""
        if self._phase is _Phase.SEND:
            self._finish_response()

    # --- the parser calls these ---

    def on_message_begin(self) -> None:
        """Begin a request."""
        if not self._is_parsing:
            raise BadRequest("The connection closes")  # nobody receives this
        if len(self._requests) >= self._limits.pipelined_requests:
            raise BadRequest("Too many requests came before the first response was read")
        self._incoming = ArrivingRequest()
        if not self.is_working:
            self._enter(_Phase.HEADERS)

    def on_url(self, part: bytes) -> None:
        """Add a part of the request target."""
        request = self._require_incoming()
        request.target += part
        request.header_bytes += len(part)
        self._check_header_bytes(request.header_bytes)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header."""
        request = self._require_incoming()
        if request.method:
            return  # a trailer behind a chunked body has no meaning here
        request.header_bytes += len(name) + len(value)
        self._check_header_bytes(request.header_bytes)
        request.header_count += 1
        if request.header_count > self._limits.header_count:
            raise ServiceError(
                f"The request has more than {self._limits.header_count} headers", status=431
            )
        request.add_header(name.decode("latin-1").lower(), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        """Decide whether the body is read."""
        request = self._require_incoming()
        request.method = self._parser.get_method().decode()
        request.version = self._parser.get_http_version()
        request.is_last = not self._parser.should_keep_alive()
        try:
            self._admit(request)
        except ServiceError as error:
            request.response, request.is_last = error_response(error), True
        if int(request.headers.get("content-length", 0)) > self._limits.body_bytes:
            raise _body_too_large()
        if request.headers.get("expect", "").lower() == "100-continue" and request.version != "1.0":
            if request.response is not None:
                raise ServiceError("The body is not read")  # and the response is sent at once
            if not self._requests:
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if not self.is_working:
            self._enter(_Phase.BODY)

    def on_body(self, part: bytes) -> None:
        """Keep a part of the body, up to the largest body."""
        request = self._require_incoming()
        request.body_bytes += len(part)
        if request.body_bytes > self._limits.body_bytes:
            raise _body_too_large()
        if request.response is None:
            request.body += part

    def on_message_complete(self) -> None:
        """End a request, unless the parser left out its body."""
        if not self._parser.should_upgrade():
            self._complete_request()

    # --- the steps of a request ---

    def _feed(self, data: bytes) -> None:
        """Parse bytes; also the body of a request that offers another protocol.

        The service ignores such an offer. The parser leaves out the body of the request.
        """
        while data:
            if self._unparsed_bytes:
                part, data = data[: self._unparsed_bytes], data[self._unparsed_bytes :]
                self._unparsed_bytes -= len(part)
                self.on_body(part)
                if not self._unparsed_bytes:
                    self._complete_request()
                continue
            try:
                self._parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as upgrade:
                data = data[upgrade.args[0] :]
                headers = self._require_incoming().headers
                if "transfer-encoding" in headers:
                    raise BadRequest("Upgrade and Transfer-Encoding exclude each other") from None
                self._unparsed_bytes = int(headers.get("content-length", 0))
                if not self._unparsed_bytes:
                    self._complete_request()

    def _complete_request(self) -> None:
        """Answer a request, or let it wait for those before it."""
        request, self._incoming = self._require_incoming(), None
        self._has_completed = True
        self._requests.append(request)
        if not self.is_working:
            self._answer_next()

    def _check_header_bytes(self, count: int) -> None:
        if count > self._limits.header_bytes:
            raise ServiceError(
                f"The address and the headers have more than {self._limits.header_bytes} bytes",
                status=431,
            )

    def _require_incoming(self) -> ArrivingRequest:
        if self._incoming is None or not self._is_parsing:
            raise BadRequest("The request is not valid HTTP")
        return self._incoming

    def _admit(self, request: ArrivingRequest) -> None:
        """Find the key of a request, or the response that its headers decide."""
        path, host = split_target(request.target.decode("latin-1"))
        if request.method == "CONNECT":
            raise ServiceError("Method CONNECT is not allowed: this is no proxy", status=405)
        if host is None:
            host = request.headers.get("host")
            if host is None and request.version == "1.1":
                raise BadRequest("The request has no Host header")
        check_host(host, self._server.hosts)
        admitted = self._application.admit(request.method, path, request.headers)
        if isinstance(admitted, Response):
            request.response = admitted
            return
        request.key, self.has_key = admitted, True

    def _refuse(self, error: ServiceError) -> None:
        """Refuse what cannot be parsed, after the requests before it, and close."""
        if not self._is_parsing:  # the last response was sent while the same bytes were parsed
            return
        request = self._incoming or ArrivingRequest()
        request.is_last = True
        request.response = request.response or error_response(error)
        self._is_parsing, self._incoming = False, None
        self._requests.append(request)
        if not self.is_working:
            self._answer_next()

    def _answer_next(self) -> None:
        """Answer the first request that waits."""
        request = self._requests[0]
        self._enter(_Phase.ANSWER)
        if request.response is not None:
            self._plan_response(request, request.response)
            return
        assert request.key is not None
        compute = partial(self._compute, request.key, request)
        self._server.queue.add(request.key.name, compute, partial(self._deliver, request))

    def _plan_response(self, request: ArrivingRequest, response: Response) -> None:
        """Send a response that no worker has to compute.

        Delay a refusal if this address had many refusals.
        """
        response = self._application.add_source_headers(response, self._application.now_ms())
        wait: float | None = 0.0
        if response.status >= 400:
            wait = self._server.refusals.plan_refusal(self._address)
        loop = self._server.loop
        if wait is None:  # closed at once, the client would only connect again
            self._timer = loop.call_later(self._limits.refusal_wait_seconds, self.abort)
        elif wait:
            self._timer = loop.call_later(wait, self._deliver, request, response)
        else:
            self._send(request, response)

    def _compute(self, key: AcceptedKey, request: ArrivingRequest) -> Response | None:
        """Return the response to a request, on a worker thread; None if the client has gone."""
        if self._transport.is_closing():
            return None
        return self._application.answer(key, request.headers, bytes(request.body))

    def _deliver(self, request: ArrivingRequest, response: Response | None) -> None:
        """Send a computed response, if the client is still there."""
        if not self._requests or self._requests[0] is not request:
            return
        if response is None:
            self.abort()
        else:
            self._send(request, response)

    def _send(self, request: ArrivingRequest, response: Response) -> None:
        self._phase = _Phase.SEND
        request.is_last |= self._server.is_stopping or self._server.is_full
        head = response_head(request, response)
        content = b"" if request.method == "HEAD" else response.content
        if len(content) < _JOINED_BYTES:
            self._transport.write(head + content)
        else:
            self._transport.write(head)
            self._transport.write(content)
        if self._transport.get_write_buffer_size():
            self._enter(_Phase.SEND)  # until `resume_writing`
        else:
            self._finish_response()

    def _finish_response(self) -> None:
        """Close after the last response, or go on with the next request."""
        if not self._requests:  # the connection is lost
            return
        request = self._requests.popleft()
        if request.is_last:
            self._linger()
        elif self._requests:
            self._answer_next()
        else:
            self._transport.resume_reading()
            self._enter(self._arriving_phase())

    def _arriving_phase(self) -> _Phase:
        if self._incoming is None:
            return _Phase.IDLE
        return _Phase.BODY if self._incoming.method else _Phase.HEADERS

    # --- the end ---

    def _linger(self) -> None:
        """Close the sending side, and read on: otherwise unread bytes would reset the connection.

        The client may not have received the last response yet.
        """
        self._is_parsing = False
        self._requests.clear()
        if self._has_eof or self._server.is_stopping or not self._transport.can_write_eof():
            self._transport.close()
            return
        self._enter(_Phase.LINGER)
        self._transport.resume_reading()
        self._transport.write_eof()

    def stop(self) -> None:
        """Close the connection as soon as it has no request that is answered."""
        if self.is_working:
            self._requests[-1].is_last = True
        else:
            self._transport.close()

    def abort(self) -> None:
        """Close the connection at once, and discard what the client has not read.

        Without the option, the operating system would keep these bytes for many minutes, and
        the client would not notice that nobody reads its requests.
        """
        self._server.forget(self)
        if not self._transport.is_closing():
            connected = self._transport.get_extra_info("socket")
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self._transport.abort()

    def _enter(self, phase: _Phase) -> None:
        """Begin a phase, with its time limit."""
        self._phase = phase
        self._stop_timer()
        if phase.value:
            seconds = getattr(self._limits, phase.value)
            self._timer = self._server.loop.call_later(seconds, self._expire)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        """End a phase that takes too long."""
        if self._phase in (_Phase.HEADERS, _Phase.BODY):
            self._refuse(ServiceError("The request did not arrive in time", status=408))
        elif self._phase in (_Phase.SILENT, _Phase.IDLE):
            self._transport.close()
        else:
            self.abort()


def _body_too_large() -> ServiceError:
    return ServiceError("Request body is too large", status=413)
