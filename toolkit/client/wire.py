"""What travels between client and service: the key goes out, and the bytes of answers come in.

The key goes into the header of a request, and nowhere else. A service, or a gateway in front of it,
may echo the key in an answer. So `ApiKey.hide` removes it from whatever a service says: headers,
errors, and what httpx logs. An answer with rows that contain the key is refused, because its rows
cannot be changed.

Answers are read and decompressed as they come, up to limits of size and time.
"""

import hashlib
import html
import logging
import re
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn
from urllib.parse import unquote
from weakref import WeakSet

import httpx
import msgspec

from toolkit.contract.compression import decompress
from toolkit.contract.operations import Operation
from toolkit.errors import AnswerDamaged, AnswerInvalid

LARGEST_JSON: Final = 2**28
"""Bytes of the largest JSON answer that is read, after decompression."""

LARGEST_SNAPSHOTS: Final = 2**30
"""Bytes of the largest binary answer that is read; its decompressed size has another limit."""

PATIENCE: Final = 600.0
"""Seconds for the body of one answer in all, from the request to the last byte."""

_SHORTEST: Final = 6
_NESTED: Final = 3  # how many ways of writing the key can be inside each other
_ROUNDS: Final = 20_000  # of the hash: a short key cannot be found by trying
_ESCAPE: Final = re.compile(r"""\\+(?:u([0-9a-fA-F]{4})|(["'/]))""")
_ENDS: Final = {b"[": b"]", b"{": b"}"}
_BINARY: Final = ("application/octet-stream", "application/msgpack", "application/x-msgpack")


_DECODINGS: Final[tuple[Callable[[str], str], ...]] = (
    unquote,
    html.unescape,
    # The escapes of JSON, such as \u0041 and \/.
    lambda text: (
        _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else found[2], text)
        if "\\" in text
        else text
    ),
    lambda text: text.replace("\\\\", "\\"),
)


class ApiKey(httpx.Auth):
    """Adds the API key to the header of a request; the key cannot be read or pickled."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        _keys.add(self)

    @property
    def is_sendable(self) -> bool:
        """Whether the key can be in a header."""
        return is_header_text(self._secret) and " " not in self._secret

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the key to a request."""
        request.headers["Authorization"] = f"Bearer {self._secret}"
        yield request

    def hide(self, text: str) -> str:
        """Return a text with the key replaced by asterisks.

        The key is found as it is, and as JSON, HTML or an address may write it. Then the result is
        the decoded text. A key of fewer than 6 characters would be found by chance in any message,
        and stays.
        """
        if len(self._secret) < _SHORTEST:
            return text
        readings = [text]
        for _ in range(_NESTED + 1):
            for reading in readings:
                if self._secret in reading:
                    return self.hide(reading.replace(self._secret, "***"))
            plain = (decode(reading) for reading in readings for decode in _DECODINGS)
            readings = [text for text in dict.fromkeys(plain) if text not in readings]
        return text

    def clean(self, response: httpx.Response) -> httpx.Headers:
        """Remove the key from the headers of an answer, and the names that contain it."""
        response.extensions.pop("reason_phrase", None)  # the repr of a response shows it
        secret = self._secret.lower()
        response.headers = httpx.Headers(
            [
                (name, self.hide(value))
                for name, value in response.headers.items()
                if len(secret) < _SHORTEST or secret not in unquote(name).lower()
            ]
        )
        return response.headers

    def is_in_snapshots(self, headers: Mapping[str, str], content: bytes) -> bool:
        """Return whether a binary answer contains the key."""
        from toolkit.contract.snapshots import LIMIT, open_envelope

        find = re.compile(re.escape(self._secret.encode())).search
        with suppress(AnswerInvalid):  # reading it reports what is wrong
            parts = open_envelope(headers, content, LIMIT)
            return len(self._secret) >= _SHORTEST and any(map(find, parts))
        return False

    def budget_file(self, folder: Path, base_url: str) -> Path:
        """Return the file that counts the points of the key at a service; its name is a hash."""
        secret, salt = self._secret.encode(), base_url.encode()
        digest = hashlib.pbkdf2_hmac("sha256", secret, salt, _ROUNDS)
        return folder / f"{digest.hex()[:32]}.db"

    def __repr__(self) -> str:
        return "***"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an API key cannot be pickled. Set TOOLKIT_API_KEY in the other process")


def is_header_text(text: object) -> bool:
    """Return whether something can be the value of a header."""
    return isinstance(text, str) and text.isascii() and text.isprintable()


_keys: Final[WeakSet[ApiKey]] = WeakSet()


def _hide_keys(record: logging.LogRecord) -> bool:
    """Remove keys from a log message: httpcore logs the headers of answers at its debug level."""
    message = clean = record.getMessage()
    for key in list(_keys):
        clean = key.hide(clean)
    if clean != message:
        record.msg, record.args = clean, None
    return True


for _name in ("httpx", *(f"httpcore.{part}" for part in ("connection", "http11", "proxy"))):
    logging.getLogger(_name).addFilter(_hide_keys)


def read_body(
    operation: Operation,
    response: httpx.Response,
    key: ApiKey | None = None,
    deadline: float = float("inf"),
) -> bytes:
    """Return the body of an answer, decompressed unless the operation is binary.

    `deadline` is the time of `time.monotonic` at which it must have come.

    Raises
    ------
    AnswerInvalid
        If the body is longer than the limit, or if a good answer contains the key.
    AnswerDamaged
        If the body of a good answer ends too early, or its compression is broken.
    httpx.HTTPError
        If the body does not come.
    """
    content, is_good = _receive_body(operation, response, deadline), response.status_code == 200
    if not operation.binary:
        content = bytes(decompress(content, LARGEST_JSON))
    if key is not None:
        is_snapshots = operation.binary and is_good
        text = "" if is_snapshots else content.decode(errors="replace")
        hidden = key.hide(text)
        has_key = is_snapshots and key.is_in_snapshots(response.headers, content)
        if has_key or (is_good and hidden != text):
            del content, text  # tracebacks may show local variables
            raise AnswerInvalid(
                "the answer contains your API key. A correct answer never does. Tell the provider, "
                "and replace the key",
                operation=operation.type,
            )
        content = content if hidden == text else hidden.encode()
    if not is_good or is_binary(operation, response.headers):
        return content
    bare = content.strip()
    is_cut = not bare or bare[-1:] != _ENDS.get(bare[:1], bare[-1:])
    # In a list of flat rows, as most answers are, only the end has a bracket.
    if not is_cut and not (bare[:1] == b"[" and bare.find(b"[", 1) == -1):
        try:
            msgspec.json.decode(bare, type=msgspec.Raw)
        except (msgspec.DecodeError, RecursionError) as error:
            is_cut = "truncated" in str(error)  # `decode` refuses what is not JSON at all
    if is_cut:
        raise AnswerDamaged(
            "the answer cannot be read: it ends too early",
            operation=operation.type,
            value=content[:80],
        )
    return content


def count_rows(content: bytes) -> int:
    """Return how many rows a JSON list has; 0 for anything else."""
    try:
        return len(msgspec.json.decode(content, type=list[msgspec.Raw]))
    except (msgspec.DecodeError, RecursionError):
        return 0  # reading it reports what is wrong


def _receive_body(operation: Operation, response: httpx.Response, deadline: float) -> bytes:
    """Return the bytes of a body as they came: no traceback through `read_body` has them."""
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
        if time.monotonic() > deadline:
            raise httpx.ReadTimeout("the answer did not end in time")
    announced = response.headers.get("content-length", "")
    if not is_decoded and announced.isascii() and announced.isdigit() and size < int(announced):
        raise httpx.RemoteProtocolError(f"the answer broke off after {size} of {announced} bytes")
    return b"".join(parts)


def is_binary(operation: Operation, headers: Mapping[str, str]) -> bool:
    """Return whether an answer is binary, by the contract or, if it does not know, by headers."""
    if operation.tables:
        return operation.binary
    return headers.get("content-type", "").partition(";")[0].strip().lower() in _BINARY
