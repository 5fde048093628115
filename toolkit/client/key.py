"""The API key: it goes into the header of a request, and nowhere else.

A service, or a gateway in front of it, may echo the key in an answer. So the key is removed from
the headers and the errors of answers, and from what httpx logs. An answer with rows that contain
the key is refused, because its rows cannot be changed.
"""

import hashlib
import html
import json
import logging
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Final, NoReturn
from urllib.parse import quote
from weakref import WeakSet

import httpx

__all__ = ["ApiKey", "budget_file"]

_SHORTEST: Final = 6
_PART: Final = 1 << 24
_ROUNDS: Final = 20_000  # of the hash: a short key cannot be found by trying


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
        return self._secret.isascii() and self._secret.isprintable()

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the key to a request."""
        request.headers["Authorization"] = f"Bearer {self._secret}"
        yield request

    def is_in(self, content: bytes | memoryview) -> bool:
        """Return whether bytes contain the key, also as JSON, HTML and addresses write it."""
        forms = [form.encode() for form in self._forms]
        if isinstance(content, bytes):
            return any(form in content for form in forms)
        longest = max(map(len, forms), default=0)
        return any(  # part by part, so that a large snapshot is not in memory twice
            form in part
            for at in range(0, len(content), _PART)
            for part in [bytes(content[at : at + _PART + longest])]
            for form in forms
        )

    def scrub(self, text: str) -> str:
        """Return a text with the key replaced by asterisks."""
        for form in self._forms:
            text = text.replace(form, "***")
        return text

    def scrub_bytes(self, content: bytes) -> bytes:
        """Return bytes with the key replaced by asterisks."""
        for form in self._forms:
            content = content.replace(form.encode(), b"***")
        return content

    def scrub_headers(self, headers: Mapping[str, str]) -> httpx.Headers:
        """Return headers without the key in their values; a name that contains it is left out."""
        names = [form.lower() for form in self._forms]
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
        raise TypeError("an API key is not pickled")


def _written_forms(secret: str) -> list[str]:
    """Return the forms in which an answer or a log may write a key; the longest first."""
    in_json = json.dumps(secret)[1:-1]
    forms = {secret, in_json, in_json.replace("/", "\\/"), quote(secret, safe=""), quote(secret)}
    forms |= {html.escape(secret), repr(secret.encode())[2:-1], repr(in_json.encode())[2:-1]}
    return sorted(forms, key=len, reverse=True)


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
