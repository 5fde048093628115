"""The API key: it goes into a request's header, and has no other way out."""

import hashlib
from collections.abc import Generator
from pathlib import Path
from typing import Final, NoReturn

import httpx

__all__ = ["Key", "file_of"]

_ROUNDS: Final = 20_000  # of the hash: a short key is not found by trying


class Key(httpx.Auth):
    """Adds the API key to a request; it has no other way out."""

    def __init__(self, secret: str) -> None:
        self._secret = secret

    @property
    def is_sendable(self) -> bool:
        """Whether it can stand in a header."""
        return self._secret.isascii() and self._secret.isprintable()

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Put the key into a request."""
        request.headers["Authorization"] = f"Bearer {self._secret}"
        yield request

    def scrub(self, text: str) -> str:
        """Take the key out of a text."""
        # A shorter one would be found by chance in any message.
        return text.replace(self._secret, "***") if len(self._secret) >= 6 else text

    def file_in(self, folder: Path, base_url: str) -> Path:
        """Name the file that counts the key's points, by a hash."""
        return file_of(folder, base_url, self._secret)

    def __repr__(self) -> str:
        return "***"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an API key is not pickled")


def file_of(folder: Path, base_url: str, key: str) -> Path:
    """Name the file that counts for a key at a service."""
    digest = hashlib.pbkdf2_hmac("sha256", key.encode(), base_url.encode(), _ROUNDS)
    return folder / f"{digest.hex()[:32]}.db"
