"""Mirror mode: operations of the exchange's info API are forwarded to another server."""

import json
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import httpx

from toolkit.contract.answers import encode_error
from toolkit.contract.operations import Operation
from toolkit.service.asked import Answer, good

__all__ = ["Upstream", "is_mirrored"]

_PASSED_ON: Final = (400, 401, 403, 404, 429, 500, 502)
"""Statuses of the specification; others become the nearest of them."""


def is_mirrored(operation: Operation) -> bool:
    """Say whether an operation mirrors the exchange's info API.

    Specification, "What the service does", 6 and 7. Timestamps of snapshots belong to the
    snapshots, which are the service's own.

    Examples
    --------
    >>> from toolkit.contract.operations import get_operation
    >>> is_mirrored(get_operation("userFills")), is_mirrored(get_operation("currentDepth"))
    (True, False)
    """
    return not (operation.own or operation.add_on or operation.topic == "snapshots")


class Upstream:
    """Another server that answers mirrored operations.

    Parameters
    ----------
    base_url : str
        Its address, without ``/info``.
    key : str, optional
        Its API key, where it wants one.
    timeout : float, default 10
        Seconds after which it is given up.
    transport : httpx.BaseTransport, optional
        How bytes travel; by default over the network.

    Raises
    ------
    ValueError
        If the address is none.
    """

    def __init__(
        self,
        base_url: str,
        key: str | None = None,
        *,
        timeout: float = 10.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{base_url!r} is no address: give one such as https://host")
        headers = {"Content-Type": "application/json", "User-Agent": "exchange-toolkit"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        self._client = httpx.Client(
            base_url=base_url.rstrip("/").removesuffix("/info"),
            headers=headers,
            timeout=timeout,
            transport=transport,
        )

    def ask(self, content: bytes) -> Answer:
        """Forward the body of a request, and give what came back as our answer."""
        try:
            got = self._client.post("/info", content=content)
        except httpx.HTTPError:
            # ASSUMED: an upstream that cannot be reached is answered like one that is too slow.
            return _error(502, "Timeout error")
        if got.status_code == 200 and _is_json(got.headers):
            return good(got.content)
        headers = {"retry-after": again} if (again := got.headers.get("retry-after")) else {}
        return _error(_nearest(got.status_code), _message(got.content), headers)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _is_json(headers: Mapping[str, str]) -> bool:
    return headers.get("content-type", "").startswith("application/json")


def _nearest(status: int) -> int:
    if status in _PASSED_ON:
        return status
    return 400 if 400 <= status < 500 else 502


def _message(content: bytes) -> str:
    try:
        message = json.loads(content)["error"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return "Upstream error"
    return message if isinstance(message, str) else "Upstream error"


def _error(status: int, message: str, headers: Mapping[str, str] | None = None) -> Answer:
    kept = {"content-type": "application/json", **(headers or {})}
    return Answer(status, kept, encode_error(message))
