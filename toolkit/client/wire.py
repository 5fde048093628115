"""What travels between client and service: the key goes out, and the bytes of answers come in.

The key goes into the header of a request, and nowhere else. A service, or a gateway in front of it,
may echo the key in an answer. So the key is removed from the headers and the errors of answers, and
from what httpx logs. An answer with rows that contain the key is refused, because its rows cannot
be changed.

Answers are read and decompressed as they come, up to limits of size and time.
The time-out of httpx counts from one received byte to the next. A service that sends a byte now and
then, or one ``100 Continue`` after the other, would be waited for without end. Therefore the
streams of a session also have a deadline for the complete answer.
"""

import hashlib
import html
import json
import logging
import re
import ssl
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import quote
from weakref import WeakSet

import httpcore
import httpx
import msgspec

from toolkit.contract.compression import decompress
from toolkit.contract.operations import Operation
from toolkit.errors import AnswerDamaged, AnswerInvalid

__all__ = [
    "LARGEST_JSON",
    "LARGEST_SNAPSHOTS",
    "PATIENCE",
    "ApiKey",
    "budget_file",
    "is_binary",
    "is_header_text",
    "limit_answer_time",
    "limit_stream_time",
    "read_body",
]

LARGEST_JSON: Final = 2**28
"""Bytes of the largest JSON answer that is read, after decompression."""

LARGEST_SNAPSHOTS: Final = 2**30
"""Bytes of the largest binary answer that is read; its decompressed size has another limit."""

PATIENCE: Final = 600.0
"""Seconds for one answer in all, from the connection to the last byte."""

_SHORTEST: Final = 6
_PART: Final = 1 << 24
_ROUNDS: Final = 20_000  # of the hash: a short key cannot be found by trying
_ESCAPE: Final = re.compile(rb"\\+(?:u00([2-7][0-9a-fA-F])|/)")
_LONGEST_ESCAPE: Final = 8  # bytes of one character, as an escape in a text inside a text
_LATE: Final = "the answer did not end in time"
_ENDS: Final = {b"[": b"]", b"{": b"}"}
_BINARY: Final = ("application/octet-stream", "application/msgpack", "application/x-msgpack")


class ApiKey(httpx.Auth):
    """Adds the API key to the header of a request; the key cannot be read or pickled."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        # A shorter key would be found by chance in any message.
        self._forms = _written_forms(secret) if len(secret) >= _SHORTEST else []
        _log_filter.keys.add(self)

    @property
    def is_sendable(self) -> bool:
        """Whether the key can be in a header."""
        return is_header_text(self._secret) and " " not in self._secret

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the key to a request."""
        request.headers["Authorization"] = f"Bearer {self._secret}"
        yield request

    def is_in(self, content: bytes | memoryview) -> bool:
        """Return whether bytes contain the key, also as JSON, HTML and addresses write it."""
        if isinstance(content, bytes):
            return self._is_in_part(content)
        longest = max(map(len, self._forms), default=0) * _LONGEST_ESCAPE
        return any(  # part by part, so that a large snapshot is not in memory twice
            self._is_in_part(bytes(content[at : at + _PART + longest]))
            for at in range(0, len(content), _PART)
        )

    def _is_in_part(self, content: bytes) -> bool:
        if any(form in content for form in self._forms):
            return True
        plain = _read_escapes(content)
        return plain is not content and any(form in plain for form in self._forms)

    def scrub(self, text: str) -> str:
        """Return a text with the key replaced by asterisks."""
        return self.scrub_bytes(text.encode(errors="surrogatepass")).decode(errors="surrogatepass")

    def scrub_bytes(self, content: bytes) -> bytes:
        """Return bytes with the key replaced by asterisks."""
        if self._is_in_part(content):
            content = _read_escapes(content)
            for form in self._forms:
                content = content.replace(form, b"***")
        return content

    def scrub_headers(self, headers: Mapping[str, str]) -> httpx.Headers:
        """Return headers without the key in their values; a name that contains it is left out."""
        names = [form.decode().lower() for form in self._forms]
        return httpx.Headers(
            [
                (name, self.scrub(value))
                for name, value in headers.items()
                if not any(form in name for form in names)
            ]
        )

    def budget_file(self, folder: Path, base_url: str) -> Path:
        """Return the file that counts the points of the key."""
        return budget_file(folder, base_url, self._secret)

    def __repr__(self) -> str:
        return "***"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an API key cannot be pickled. Set TOOLKIT_API_KEY in the other process")


def is_header_text(text: object) -> bool:
    """Return whether something can be the value of a header."""
    return isinstance(text, str) and text.isascii() and text.isprintable()


def _written_forms(secret: str) -> list[bytes]:
    """Return the forms in which an answer or a log may write a key; the longest first."""
    in_json = json.dumps(secret)[1:-1]
    forms = {secret, in_json, in_json.replace("/", "\\/"), quote(secret, safe=""), quote(secret)}
    forms |= {html.escape(secret), repr(secret.encode())[2:-1], repr(in_json.encode())[2:-1]}
    return sorted((form.encode() for form in forms), key=len, reverse=True)


def _read_escapes(content: bytes) -> bytes:
    r"""Return JSON with the ``\u`` escapes of printable ASCII, and escaped slashes, resolved.

    JSON may write any character of a key as an escape, also in JSON inside a text.
    """
    if b"\\" not in content or b"\\u00" not in content:  # the first search is much faster
        return content
    return _ESCAPE.sub(_read_escape, content)


def _read_escape(found: re.Match[bytes]) -> bytes:
    if found[1] is None:
        return b"/"
    character = bytes([int(found[1], 16)])
    return b"\\" + character if character in b'"\\' else character


class _LogFilter(logging.Filter):
    """Removes keys from log messages: httpcore logs the headers of answers at its debug level."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: WeakSet[ApiKey] = WeakSet()

    def filter(self, record: logging.LogRecord) -> bool:
        message = clean = record.getMessage()
        for key in list(self.keys):
            clean = key.scrub(clean)
        if clean != message:
            record.msg, record.args = clean, None
        return True


_log_filter: Final = _LogFilter()
for _name in ("httpx", *(f"httpcore.{part}" for part in ("connection", "http11", "proxy"))):
    logging.getLogger(_name).addFilter(_log_filter)


def budget_file(folder: Path, base_url: str, key: str) -> Path:
    """Return the file that counts the points of a key at a service; its name is a hash."""
    digest = hashlib.pbkdf2_hmac("sha256", key.encode(), base_url.encode(), _ROUNDS)
    return folder / f"{digest.hex()[:32]}.db"


def read_body(operation: Operation, response: httpx.Response, key: ApiKey | None = None) -> bytes:
    """Return the body of an answer, decompressed unless the operation is binary.

    Raises
    ------
    AnswerInvalid
        If the body is longer than the limit, or if a good answer contains the key.
    AnswerDamaged
        If the body of a good answer ends too early, or its compression is broken.
    httpx.HTTPError
        If the body does not come.
    """
    content = _receive_body(operation, response)
    if not operation.binary:
        content = bytes(decompress(content, LARGEST_JSON))
    if key is not None and _has_key(operation, response, content, key):
        if response.status_code == 200:
            del content  # tracebacks may show local variables
            raise AnswerInvalid(
                "the answer contains your API key. A correct answer never does. Tell the provider, "
                "and replace the key",
                operation=operation.type,
            )
        content = key.scrub_bytes(content)
    if response.status_code == 200 and not is_binary(operation, response.headers):
        _check_json_end(operation, content)
    return content


def _receive_body(operation: Operation, response: httpx.Response) -> bytes:
    """Return the bytes of a body as they came."""
    limit = LARGEST_SNAPSHOTS if operation.binary else LARGEST_JSON
    parts, size = [], 0
    # With a transport of its own, httpx may have read and decoded the body already.
    is_decoded = response.is_stream_consumed
    for part in [response.content] if is_decoded else response.iter_raw():
        size += len(part)
        parts.append(part)
        if size > limit:
            raise AnswerInvalid(
                f"the answer is longer than {limit:,} bytes. Request less data at a time",
                operation=operation.type,
            )
        if time.monotonic() > _deadline.at:  # of a transport without streams of ours
            raise httpx.ReadTimeout(_LATE)
    announced = response.headers.get("content-length", "")
    if not is_decoded and announced.isascii() and announced.isdigit() and size < int(announced):
        raise httpx.RemoteProtocolError(f"the answer broke off after {size} of {announced} bytes")
    return b"".join(parts)


def _has_key(operation: Operation, response: httpx.Response, content: bytes, key: ApiKey) -> bool:
    """Return whether an answer contains the key; snapshots are decompressed for this."""
    if key.is_in(content):
        return True
    if not operation.binary or response.status_code != 200:
        return False
    from toolkit.contract.snapshots import LIMIT, open_envelope

    try:
        return any(map(key.is_in, open_envelope(response.headers, content, LIMIT)))
    except AnswerInvalid:
        return False  # reading it reports what is wrong


def is_binary(operation: Operation, headers: Mapping[str, str]) -> bool:
    """Return whether an answer is binary, by the contract or, if it does not know, by headers."""
    if operation.tables:
        return operation.binary
    return headers.get("content-type", "").partition(";")[0].strip().lower() in _BINARY


def _check_json_end(operation: Operation, content: bytes) -> None:
    """Raise an error if JSON was cut off; `decode` refuses what is not JSON at all."""
    bare = content.strip()
    if not bare or bare[-1:] != _ENDS.get(bare[:1], bare[-1:]) or _is_truncated(bare):
        raise AnswerDamaged(
            "the answer cannot be read: it ends too early",
            operation=operation.type,
            value=content[:80],
        )


def _is_truncated(content: bytes) -> bool:
    """Return whether JSON ends too early, although its last byte fits its first one."""
    if content[:1] == b"[" and content.find(b"[", 1) == -1:
        return False  # a list of flat rows, as most answers: only its end has a bracket
    try:
        msgspec.json.decode(content, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError) as error:
        return "truncated" in str(error)
    return False


class _Deadline(threading.local):
    """When the answer that this thread reads must have come."""

    at: float = float("inf")


_deadline: Final = _Deadline()


@contextmanager
def limit_answer_time(seconds: float) -> Iterator[None]:
    """Let everything that this thread sends and reads end within some seconds."""
    _deadline.at = time.monotonic() + seconds
    try:
        yield
    finally:
        _deadline.at = float("inf")


def limit_stream_time(client: httpx.Client) -> None:
    """Let the streams of a client keep to the deadline of the thread that reads them."""
    # httpx has no public way to its connections, so pyproject.toml bounds its version. With another
    # one this raises an error; `tests/client/test_slow_services.py` tests the deadline.
    for transport in (client._transport, *client._mounts.values()):
        if isinstance(transport, httpx.HTTPTransport):
            pool: Any = transport._pool
            pool._network_backend = _BoundedBackend(pool._network_backend)


def _time_left(timeout: float | None) -> float:
    """Return the seconds for the next read or write; raise an error if the deadline has passed."""
    left = _deadline.at - time.monotonic()
    if left <= 0:
        raise httpcore.ReadTimeout(_LATE)
    return left if timeout is None else min(timeout, left)


class _BoundedStream(httpcore.NetworkStream):
    """A stream that keeps to the deadline of the thread."""

    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _time_left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _time_left(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        inner = self._inner.start_tls(ssl_context, server_hostname, _time_left(timeout))
        return _BoundedStream(inner)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _BoundedBackend(httpcore.NetworkBackend):
    """The network, with streams that keep to the deadline of the thread."""

    def __init__(self, inner: httpcore.NetworkBackend) -> None:
        self._inner = inner

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        inner = self._inner.connect_tcp(
            host, port, _time_left(timeout), local_address, socket_options
        )
        return _BoundedStream(inner)

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.NetworkStream:
        inner = self._inner.connect_unix_socket(path, _time_left(timeout), socket_options)
        return _BoundedStream(inner)

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)
