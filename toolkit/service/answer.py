"""One request answered: bytes in, bytes out. No clock, no sleep, no chance inside.

In this order: key (401), points left (429), size (413), JSON (400), type (400), points (429),
parameters (400), permission (403), then the operation's own handler.
"""

import json
import logging
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from toolkit.contract.answers import encode_error
from toolkit.contract.costs import request_points
from toolkit.contract.extra_operations import EXTRA_OPERATIONS, find_operation
from toolkit.contract.operations import Operation
from toolkit.contract.requests import check_request
from toolkit.errors import (
    BadRequest,
    NotPermitted,
    NotReady,
    RateLimited,
    ServiceDown,
    ServiceError,
)
from toolkit.service.access import Access
from toolkit.service.answers import HANDLERS
from toolkit.service.asked import Answer, Asked
from toolkit.service.mirror import Upstream, is_mirrored
from toolkit.service.moving import Moving
from toolkit.service.proving import proof_headers
from toolkit.service.store import Store

__all__ = ["LARGEST_BODY", "answer", "refusal"]

LARGEST_BODY: Final = 2**20
"""Bytes of the largest request that is read."""

_FROM_EVERYTHING: Final = EXTRA_OPERATIONS.keys() - {
    "clearinghouseState",
    "allMids",
    "openOrders",
    "frontendOpenOrders",
    "orderStatus",
    "userFunding",
    "userTwapSliceFills",
    "exchangeStatus",
    "l2Book",
}
"""Operations that only a source which holds everything can answer truly."""

_UNKNOWN_POINTS: Final = 2
# ASSUMED: a request of unknown type that is forwarded to an upstream costs 2 points, as most do.

_log = logging.getLogger(__name__)


def answer(
    store: Store,
    access: Access,
    headers: Mapping[str, str],
    content: bytes,
    *,
    now_ms: int,
    at_ms: int = 0,
    inclusive: bool = False,
    upstream: Upstream | None = None,
    moving: Moving | None = None,
) -> Answer:
    """Answer one request.

    Parameters
    ----------
    store : Store
        What to answer from.
    access : Access
        Who may ask.
    headers : mapping
        Header names in lower case.
    content : bytes
        The body.
    now_ms : int
        The present of the exchange, in milliseconds.
    at_ms : int, default 0
        The time by which points are counted, in milliseconds.
    inclusive : bool, default False
        Whether a cursor's own rows come again.
    upstream : Upstream, optional
        Who answers the operations that mirror the exchange's info API.
    moving : Moving, optional
        What moves while the clock runs; without it everything is as the store has it.

    Returns
    -------
    Answer
        Its status is one of the specification, whatever the input.
    """
    try:
        key = access.key_of(headers)
        access.charge(key, 0, at_ms=at_ms)
        request = _read(content)
        operation = find_operation(request["type"], strict=store.about["strict"])
        if operation is None:
            if upstream is None or store.about["strict"]:
                raise BadRequest(f"Unknown type: {request['type'][:80]}")
            access.charge(key, _UNKNOWN_POINTS, at_ms=at_ms)
            return upstream.ask(content)
        if store.about["strict"]:  # the specification has one figure, and no limit of calls
            access.charge(key, operation.points, at_ms=at_ms)
        else:
            points = request_points(operation, request, _number_of_dexes(store, operation))
            access.charge(key, points, at_ms=at_ms, operation=operation)
        parameters = check_request(operation, request)
        if not key.may(operation):
            raise NotPermitted("Permission denied", operation=operation.type)
        if upstream is not None and is_mirrored(operation):
            return upstream.ask(content)
        return _handled(store, Asked(operation, parameters, now_ms, inclusive, moving))
    except ServiceError as error:
        return refusal(error)
    except Exception:
        _log.exception("a handler failed")
        return refusal(ServiceError("An internal error occurred"))


def _number_of_dexes(store: Store, operation: Operation) -> int:
    """Return how many dexes there are; it is looked up only if the cost depends on it."""
    return len(json.loads(store.document("dexes") or b'[""]')) if operation.scale else 1


def _handled(store: Store, asked: Asked) -> Answer:
    """Answer from the store, and say whether that is all there is."""
    handler = HANDLERS.get(asked.operation.type)
    if handler is None:
        raise ServiceError(f"not implemented: {asked.operation.type}", status=501)
    if not store.about["whole"] and asked.operation.type in _FROM_EVERYTHING:
        raise BadRequest(
            f"{asked.operation.type} cannot be answered: {store.about['label']} does not hold "
            "what it is computed from"
        )
    try:
        given = handler(store, asked)
    except (NotReady, ServiceDown) as error:
        if not store.about["whole"] and not store.about["partial"]:  # it will not come later
            raise BadRequest(
                f"{asked.operation.type} cannot be answered: {store.about['label']} has none of it"
            ) from None
        given = refusal(error)
    return Answer(given.status, {**given.headers, **proof_headers(store, asked)}, given.content)


def refusal(error: ServiceError) -> Answer:
    """Turn an error into its answer."""
    headers = {"content-type": "application/json"}
    if isinstance(error, RateLimited) and error.retry_after is not None:
        headers["retry-after"] = str(int(error.retry_after))
    return Answer(error.status or 400, headers, encode_error(error.message))


def _read(content: bytes) -> dict[str, Any]:
    """Return the JSON object of a request, whose ``type`` is text."""
    if len(content) > LARGEST_BODY:
        raise ServiceError("Request body is too large", status=413)
    request = _parse(content)
    kind = request.get("type")
    if kind is None:
        raise BadRequest("type parameter is required")
    if not isinstance(kind, str):
        raise BadRequest("type must be a string")
    return request


def _parse(content: bytes) -> dict[str, Any]:
    try:
        # The first reader refuses NaN, lone surrogates and numbers out of range; the second
        # one sees names that stand twice.
        msgspec.json.decode(content)
        request = json.loads(content, object_pairs_hook=_no_name_twice)
    except (ValueError, RecursionError):
        raise BadRequest("Request body is not valid JSON") from None
    if not isinstance(request, dict):
        raise BadRequest("Request body must be a JSON object")
    return request


def _no_name_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    named = dict(pairs)
    if len(named) < len(pairs):
        raise ValueError("a name stands twice")
    return named
