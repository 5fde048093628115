"""The request that a handler receives, and the response that it returns."""

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from toolkit.contract.answers import encode_error
from toolkit.contract.operations import Operation
from toolkit.contract.requests import parse_cursor
from toolkit.errors import BadRequest, RateLimited, ServiceError
from toolkit.service.live_documents import LiveDocuments
from toolkit.service.store import Store

_Item = TypeVar("_Item")
_READ_AT_ONCE: Final = 2_000  # rows
_MESSAGE_LETTERS: Final = 500
"""Letters of an error message; a request can contain longer values."""


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response.

    Parameters
    ----------
    status : int
        The HTTP status.
    headers : mapping
        The headers; names are in lower case.
    content : bytes
        The body.
    """

    status: int
    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True, slots=True)
class CheckedRequest:
    """A request whose parameters are checked.

    Parameters
    ----------
    operation : Operation
        The requested operation.
    parameters : mapping
        Python name -> value, with every default filled in.
    now_ms : int
        The current time of the exchange, in Unix milliseconds.
    inclusive : bool
        Whether a page repeats the rows at its cursor.
    live : LiveDocuments, optional
        The documents that change while the clock runs. Without it nothing changes.
    encoding : str
        The content encoding that the client prefers. A handler may use it; otherwise its response
        is compressed afterwards.
    answer_seconds : float
        Time limit of `read_batches`, in seconds.
    requests_since : callable
        Returns day, type and number of the requests of this key from a day on.
    """

    operation: Operation
    parameters: Mapping[str, Any]
    now_ms: int
    inclusive: bool = False
    live: LiveDocuments | None = None
    encoding: str = "identity"
    answer_seconds: float = math.inf
    requests_since: Callable[[int], list[tuple[int, str, int]]] = lambda day: []

    def read_batches(self, rows: Iterator[_Item]) -> Iterator[list[_Item]]:
        """Yield rows by the thousands.

        Raises
        ------
        ServiceError
            If it takes too long.
        """
        begun = time.monotonic()
        while batch := list(itertools.islice(rows, _READ_AT_ONCE)):
            if time.monotonic() - begun > self.answer_seconds:
                # ASSUMED: If a search takes too long, the service returns the same error as for a
                # slow upstream (502).
                raise ServiceError("Timeout error", status=502)
            yield batch

    def find_document(self, store: Store, kind: str, key: str = "") -> bytes | None:
        """Return a document as it is now, or None if there is none."""
        live = None if self.live is None else self.live.documents(kind, self.now_ms)
        return store.document(kind, key) if live is None else live.get(key)

    def document_keys(self, store: Store, kind: str) -> list[str]:
        """Return the keys of the documents of a kind, as they are now."""
        live = None if self.live is None else self.live.documents(kind, self.now_ms)
        return store.document_keys(kind) if live is None else list(live)

    def __getitem__(self, name: str) -> Any:
        """Return a parameter by its Python name."""
        return self.parameters[name]

    @property
    def cursor(self) -> tuple[Any, ...] | None:
        """The row key that the cursor names, or None."""
        cursor = self.parameters["cursor"]
        return None if cursor is None else parse_cursor(self.operation, cursor)

    @property
    def page_start(self) -> tuple[str, tuple[Any, ...]]:
        """The SQL comparison and the row key with which a page begins."""
        if (cursor := self.parameters["cursor"]) is not None:
            return ">=" if self.inclusive else ">", parse_cursor(self.operation, cursor)
        # In SQLite, every text is greater than a number.
        return ">=", (self.parameters["start"], *[0] * (len(self.operation.key) - 1))

    @property
    def end(self) -> int:
        """The last time, inclusive; the current time if the request has none."""
        end: int | None = self.parameters["end"]
        return self.now_ms if end is None else end


def parse_body(content: bytes, most_bytes: int) -> dict[str, Any]:
    """Return the JSON object of a request body; its ``type`` is a string.

    Raises
    ------
    BadRequest
        If the body is not such an object.
    ServiceError
        If the body is too large.
    """
    if len(content) > most_bytes:
        raise ServiceError("Request body is too large", status=413)
    try:
        request = msgspec.json.decode(content)
    except (ValueError, RecursionError):
        raise BadRequest("Request body is not valid JSON") from None
    if not isinstance(request, dict):
        raise BadRequest("Request body must be a JSON object")
    if (type := request.get("type")) is None:
        raise BadRequest("type parameter is required")
    if not isinstance(type, str):
        raise BadRequest("type must be a string")
    return request


def json_response(content: bytes) -> Response:
    """Return a successful response with a JSON body."""
    return Response(200, {"content-type": "application/json"}, content)


def error_response(error: ServiceError, *, is_plain: bool = False) -> Response:
    """Return the response for an error, as plain text if the exchange's own API sends it.

    There, a request that cannot be read has the status 422, and a 429 has no body.
    """
    message = error.message
    if len(message) > _MESSAGE_LETTERS:
        message = message[:_MESSAGE_LETTERS] + "…"
    if not is_plain:
        headers = {"content-type": "application/json"}
        if isinstance(error, RateLimited) and error.retry_after is not None:
            headers["retry-after"] = str(int(error.retry_after))
        return Response(error.status or 400, headers, encode_error(message))
    if isinstance(error, RateLimited):
        return Response(429, {}, b"")
    status = error.status or 500
    if isinstance(error, BadRequest):
        status = 422
        message = f"Failed to deserialize the JSON body into the target type: {message}"
    return Response(status, {"content-type": "text/plain; charset=utf-8"}, message.encode())
