"""The service as a whole: from a request in bytes to a response in bytes.

A socket (`toolkit.service.http`) and a transport in the same process
(`toolkit.local_service.InProcess`) use the same `Site`. Clocks are arguments.
"""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from toolkit.completeness.headers import SourceStatement, write_completeness, write_source
from toolkit.contract.costs import request_points
from toolkit.contract.extra_operations import EXTRA_OPERATIONS, find_operation
from toolkit.contract.operations import Operation
from toolkit.contract.requests import check_request
from toolkit.errors import BadRequest, NotPermitted, NotReady, ServiceDown, ServiceError
from toolkit.service.access import Access, Key
from toolkit.service.answers import HANDLERS
from toolkit.service.encodings import compress_response
from toolkit.service.evidence import state_completeness
from toolkit.service.live import LiveDocuments
from toolkit.service.messages import CheckedRequest, Response, error_response, parse_request
from toolkit.service.mirror import Upstream, is_mirrored
from toolkit.service.store import Store

__all__ = ["Site"]

_METHODS: Final[dict[str, tuple[str, ...]]] = {"/info": ("POST",), "/healthz": ("GET", "HEAD")}

_UNKNOWN_POINTS: Final = 2
# ASSUMED: a request of unknown type that is forwarded to an upstream costs 2 points.

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Site:
    """A service that responds to HTTP requests, however their bytes arrive.

    Parameters
    ----------
    store : Store
        The store from which requests are answered.
    access : Access
        The API keys and their points.
    now_ms : callable
        Returns the present of the exchange, in Unix milliseconds.
    at_ms : callable
        Returns the time by which points are counted, in Unix milliseconds.
    inclusive : bool, default False
        Whether a page repeats the rows at its cursor.
    upstream : Upstream, optional
        The server that answers the operations of the exchange's info API.
    live : LiveDocuments, optional
        The documents that change while the clock runs. Without it nothing changes.
    """

    store: Store
    access: Access
    now_ms: Callable[[], int]
    at_ms: Callable[[], int]
    inclusive: bool = False
    upstream: Upstream | None = None
    live: LiveDocuments | None = None

    def respond(
        self, method: str, path: str, headers: Mapping[str, str], content: bytes
    ) -> Response:
        """Return the response to an HTTP request; names in `headers` are in lower case."""
        methods = _METHODS.get(path)
        if methods is None:
            return error_response(ServiceError(f"There is nothing at {path[:80]}", status=404))
        if method not in methods:
            allowed = ", ".join(methods)
            message = f"Method {method[:16]} is not allowed; use {allowed}"
            refusal = error_response(ServiceError(message, status=405))
            return Response(405, {**refusal.headers, "allow": allowed}, refusal.content)
        now_ms = self.now_ms()
        if path == "/healthz":
            response = Response(200, {"content-type": "application/json"}, b'{"status":"ok"}')
        else:
            response = self.answer_request(headers, content, now_ms)
            response = compress_response(response, headers.get("accept-encoding", ""))
        return self._add_source_headers(response, now_ms)

    def answer_request(self, headers: Mapping[str, str], content: bytes, now_ms: int) -> Response:
        """Return the answer to a request for ``/info``, without compression.

        The checks run in this order: key (401), remaining points (429), size (413), JSON (400),
        type (400), points (429), parameters (400), permission (403).

        Parameters
        ----------
        headers : mapping
            The headers; names are in lower case.
        content : bytes
            The body.
        now_ms : int
            The present of the exchange, in Unix milliseconds.

        Returns
        -------
        Response
            For every input, the status is one of the specification.
        """
        try:
            at_ms = self.at_ms()
            key = self.access.find_key(headers)
            self.access.charge(key, 0, at_ms=at_ms)
            body = parse_request(content)
            operation = find_operation(body["type"], strict=self.store.about["strict"])
            if operation is None:
                return self._forward_unknown(key, body, content, at_ms)
            self._charge_points(key, operation, body, at_ms)
            parameters = check_request(operation, body)
            if not key.may_use(operation):
                raise NotPermitted("Permission denied", operation=operation.type)
            if self.upstream is not None and is_mirrored(operation):
                return self.upstream.forward(content)
            request = CheckedRequest(operation, parameters, now_ms, self.inclusive, self.live)
            return _answer_from_store(self.store, request)
        except ServiceError as error:
            return error_response(error)
        except Exception:
            _log.exception("a handler failed")
            return error_response(ServiceError("An internal error occurred"))

    def _forward_unknown(
        self, key: Key, body: Mapping[str, Any], content: bytes, at_ms: int
    ) -> Response:
        """Forward a request of unknown type, or refuse it if there is no upstream."""
        if self.upstream is None or self.store.about["strict"]:
            raise BadRequest(f"Unknown type: {body['type'][:80]}")
        self.access.charge(key, _UNKNOWN_POINTS, at_ms=at_ms)
        return self.upstream.forward(content)

    def _charge_points(
        self, key: Key, operation: Operation, body: Mapping[str, Any], at_ms: int
    ) -> None:
        if self.store.about["strict"]:  # the specification has fixed points and no call limits
            self.access.charge(key, operation.points, at_ms=at_ms)
            return
        dexes = 1
        if operation.scale:  # only then the points depend on the number of dexes
            dexes = len(json.loads(self.store.document("dexes") or b'[""]'))
        points = request_points(operation, body, dexes)
        self.access.charge(key, points, at_ms=at_ms, operation=operation)

    def _add_source_headers(self, response: Response, now_ms: int) -> Response:
        """Return the response with headers that name its source and the present.

        A client computes ages and labels figures from these headers.
        """
        about = self.store.about
        source = SourceStatement(
            now_ms, self.live is not None, about["label"], about["simulated"], about["history"]
        )
        headers = {**response.headers, **write_source(source)}
        return Response(response.status, headers, response.content)


def _answer_from_store(store: Store, request: CheckedRequest) -> Response:
    """Return the answer of the operation's handler, and state how complete it is."""
    operation = request.operation
    handler = HANDLERS.get(operation.type)
    if handler is None:
        raise ServiceError(f"not implemented: {operation.type}", status=501)
    is_extra = operation.type in EXTRA_OPERATIONS
    if is_extra and not operation.from_archive and not store.about["whole"]:
        raise BadRequest(
            f"{operation.type} cannot be answered: {store.about['label']} does not contain "
            "the data from which it is computed"
        )
    try:
        response = handler(store, request)
    except (NotReady, ServiceDown) as error:
        if not store.about["whole"] and not store.about["partial"]:  # recordings never change
            raise BadRequest(
                f"{operation.type} cannot be answered: {store.about['label']} has no such data"
            ) from None
        response = error_response(error)
    completeness = write_completeness(state_completeness(store, request))
    return Response(response.status, {**response.headers, **completeness}, response.content)
