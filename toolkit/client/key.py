"""The API key: it goes into the header of a request, and nowhere else."""

import hashlib
from collections.abc import Generator
from pathlib import Path
from typing import Final, NoReturn

import httpx

__all__ = ["ApiKey", "budget_file"]

_ROUNDS: Final = 20_000  # of the hash: a short key cannot be found by trying


class ApiKey(httpx.Auth):
    """Adds the API key to the header of a request; the key cannot be read or pickled."""

    def __init__(self, secret: str) -> None:
        self._secret = secret

    @property
    def is_sendable(self) -> bool:
        """Whether the key can be in a header."""
        return self._secret.isascii() and self._secret.isprintable()

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the key to a request."""
        request.headers["Authorization"] = f"Bearer {self._secret}"
        yield request

    def scrub(self, text: str) -> str:
        """Return a text with the key replaced by asterisks."""
        # A shorter key would be found by chance in any message.
        return text.replace(self._secret, "***") if len(self._secret) >= 6 else text

    def budget_file(self, folder: Path, base_url: str) -> Path:
        """Return the file that counts the points of the key."""
        return budget_file(folder, base_url, self._secret)

    def __repr__(self) -> str:
        return "***"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an API key is not pickled")


def budget_file(folder: Path, base_url: str, key: str) -> Path:
    """Return the file that counts the points of a key at a service; its name is a hash."""
    digest = hashlib.pbkdf2_hmac("sha256", key.encode(), base_url.encode(), _ROUNDS)
    return folder / f"{digest.hex()[:32]}.db"
