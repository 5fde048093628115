"""Mirror mode: another server answers the operations of the exchange's info API."""

import json
import time
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import httpx

from toolkit.contract.answers import encode_error
from toolkit.contract.apis import EXCHANGE, api_of_host
from toolkit.contract.operations import Operation
from toolkit.service.handler_messages import Response, json_response

__all__ = ["Upstream", "is_mirrored"]

_KNOWN_STATUSES: Final = (400, 401, 403, 404, 422, 429, 500, 502)
"""The error statuses of the specification, and 422, with which the exchange refuses a wrong body.

Any other status becomes the nearest of them.
"""

_HEADERS: Final = ("content-type", "retry-after")
"""The headers of a response that the service reads."""

_MOST_SECONDS: Final = 60.0
"""The longest time of a whole response, however it trickles."""

_MOST_BYTES: Final = 2**28
"""The most bytes of a response."""

_TEXT_LETTERS: Final = 300
"""Letters of a text without JSON that are forwarded as a message."""


def is_mirrored(operation: Operation) -> bool:
    """Return whether an operation mirrors the exchange's info API.

    Specification, "What the service does", 6 and 7. What the service publishes
    itself, such as a snapshot and its timestamp, is its own.

    Examples
    --------
    >>> from toolkit.contract.operations import OPERATIONS
    >>> is_mirrored(OPERATIONS["userFills"]), is_mirrored(OPERATIONS["currentDepth"])
    (True, False)
    """
    # Only the service's own operations have a status for data that is not published yet.
    return not (operation.own or operation.add_on or operation.unpublished)


class Upstream:
    """Another server that answers mirrored operations.

    Parameters
    ----------
    base_url : str
        The address, without ``/info``.
    key : str, optional
        The API key, if the server needs one. It is never sent to the exchange.
    timeout : float, default 10
        Seconds to wait for a response.
    transport : httpx.BaseTransport, optional
        The transport of requests; by default the network.

    Raises
    ------
    ValueError
        If the address is not valid.
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
            raise ValueError(f"{base_url!r} is not an address. Use one such as https://host")
        self._client = httpx.Client(
            base_url=base_url.rstrip("/").removesuffix("/info"),
            headers={"Content-Type": "application/json", "User-Agent": "exchange-toolkit"},
            timeout=timeout,
            transport=transport,
        )
        host = self._client.base_url.raw_host.decode()
        if key and api_of_host(host) is not EXCHANGE:
            self._client.headers["Authorization"] = f"Bearer {key}"

    def forward(self, content: bytes) -> Response:
        """Forward the body of a request, and return the server's response as ours."""
        try:
            received = self._read_response(content)
        except httpx.HTTPError:
            # ASSUMED: If an upstream cannot be reached, the service returns the same error as for a
            # slow upstream (502).
            return _error_response(502, "Timeout error")
        is_json = received.headers.get("content-type", "").startswith("application/json")
        if received.status_code == 200 and is_json:
            return json_response(received.content)
        wait = received.headers.get("retry-after")
        headers = {"retry-after": wait} if wait else {}
        status = _nearest_status(received.status_code)
        return _error_response(status, _error_message(received), headers)

    def _read_response(self, content: bytes) -> httpx.Response:
        """Return a response that is read in time and within the limit of its size."""
        end, size = time.monotonic() + _MOST_SECONDS, 0
        with self._client.stream("POST", "/info", content=content) as received:
            parts = []
            for part in received.iter_bytes():
                parts.append(part)
                size += len(part)
                if size > _MOST_BYTES or time.monotonic() > end:
                    raise httpx.ReadError("the response is too large or too slow")
        # The parts are decompressed, so the headers that describe the transfer are left out.
        kept = {name: received.headers[name] for name in _HEADERS if name in received.headers}
        return httpx.Response(received.status_code, headers=kept, content=b"".join(parts))

    def close(self) -> None:
        """Close all connections."""
        self._client.close()


def _nearest_status(status: int) -> int:
    if status in _KNOWN_STATUSES:
        return status
    return 400 if 400 <= status < 500 else 502


def _error_message(received: httpx.Response) -> str:
    """Return the message of an error: of its JSON, or its text if that is plain."""
    try:
        found = json.loads(received.content)
    except (ValueError, RecursionError):
        text = received.content[:_TEXT_LETTERS].decode("ascii", "replace").strip()
        is_plain = received.headers.get("content-type", "").startswith("text/plain")
        is_sentence = text.isprintable() and text[:1].isalpha()  # and not a web page
        return text if is_plain and is_sentence else "Upstream error"
    message = found.get("error") if isinstance(found, dict) else found
    return message if isinstance(message, str) else "Upstream error"


def _error_response(
    status: int, message: str, headers: Mapping[str, str] | None = None
) -> Response:
    all_headers = {"content-type": "application/json", **(headers or {})}
    return Response(status, all_headers, encode_error(message))
