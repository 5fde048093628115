"""Mirror mode: another server answers the operations of the exchange's info API."""

import json
import time
from typing import Final
from urllib.parse import urlsplit

import httpx

from toolkit.contract.apis import EXCHANGE, api_of_host
from toolkit.contract.operations import Operation
from toolkit.errors import ServiceError
from toolkit.service.handler_messages import Response, error_response, json_response

_KNOWN_STATUSES: Final = (400, 401, 403, 404, 422, 429, 500, 502)
"""The error statuses of the specification, and 422, with which the exchange refuses a wrong body.

Any other status becomes the nearest of them.
"""

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
        end, size, parts = time.monotonic() + _MOST_SECONDS, 0, []
        try:
            with self._client.stream("POST", "/info", content=content) as received:
                for part in received.iter_bytes():
                    parts.append(part)
                    size += len(part)
                    if size > _MOST_BYTES or time.monotonic() > end:
                        raise httpx.ReadError("the response is too large or too slow")
        except httpx.HTTPError:
            # ASSUMED: If an upstream cannot be reached, the service returns the same error as for a
            # slow upstream (502).
            return error_response(ServiceError("Timeout error", status=502))
        kind, status = received.headers.get("content-type", ""), received.status_code
        if status == 200 and kind.startswith("application/json"):
            return json_response(b"".join(parts))
        if status not in _KNOWN_STATUSES:
            status = 400 if 400 <= status < 500 else 502
        error = ServiceError(_error_message(kind, b"".join(parts)), status=status)
        refused, wait = error_response(error), received.headers.get("retry-after")
        headers = {**refused.headers, "retry-after": wait} if wait else refused.headers
        return Response(status, headers, refused.content)

    def close(self) -> None:
        """Close all connections."""
        self._client.close()


def _error_message(kind: str, content: bytes) -> str:
    """Return the message of an error: of its JSON, or its text if that is plain."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        text = content[:_TEXT_LETTERS].decode("ascii", "replace").strip()
        is_sentence = text.isprintable() and text[:1].isalpha()  # and not a web page
        return text if kind.startswith("text/plain") and is_sentence else "Upstream error"
    message = found.get("error") if isinstance(found, dict) else found
    return message if isinstance(message, str) else "Upstream error"
