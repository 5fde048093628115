"""The service as a whole: from a request in bytes to a response in bytes.

A socket (`toolkit.service.http`) and a transport in the same process
(`toolkit.local_service.InProcessTransport`) use the same `Application`. Clocks are arguments.
"""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import msgspec

from toolkit.completeness.headers import SourceStatement, write_source
from toolkit.contract.answers import encode
from toolkit.contract.apis import SERVICE, Api
from toolkit.contract.operations import find_operation
from toolkit.contract.requests import check_request, request_points, row_points
from toolkit.errors import BadRequest, NotPermitted, NotReady, ServiceDown, ServiceError
from toolkit.service.answers import HANDLERS
from toolkit.service.api_keys import AcceptedKey, KeyQuotas
from toolkit.service.encodings import choose_encoding, compress_response
from toolkit.service.handler_messages import (
    CheckedRequest,
    Response,
    error_response,
    json_response,
    parse_body,
)
from toolkit.service.limits import DEFAULT_LIMITS, ServiceLimits
from toolkit.service.live_documents import LiveDocuments
from toolkit.service.mirror import Upstream, is_mirrored
from toolkit.service.store import Store
from toolkit.times import DAY

_METHODS: Final[dict[str, tuple[str, ...]]] = {"/info": ("POST",), "/healthz": ("GET", "HEAD")}

_UNKNOWN_POINTS: Final = 2
# ASSUMED: A request with an unknown type that is forwarded to an upstream costs 2 points.

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Application:
    """A service that responds to HTTP requests, however their bytes arrive.

    Parameters
    ----------
    store : Store
        The store from which requests are answered.
    access : KeyQuotas
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
    limits : ServiceLimits
        What one request and one connection may take.
    api : Api
        The API that the service plays: its operations, pages, costs and errors.
    points_per_machine : int, optional
        The quota of each machine, if the API has no keys; by default there is none.
    """

    store: Store
    access: KeyQuotas
    now_ms: Callable[[], int]
    at_ms: Callable[[], int]
    inclusive: bool = False
    upstream: Upstream | None = None
    live: LiveDocuments | None = None
    limits: ServiceLimits = DEFAULT_LIMITS
    api: Api = SERVICE
    points_per_machine: int | None = None

    def respond(
        self, method: str, path: str, headers: Mapping[str, str], content: bytes
    ) -> Response:
        """Return the response to an HTTP request; names in `headers` are in lower case."""
        admitted = self.admit(method, path, headers)
        if isinstance(admitted, Response):
            return self.add_source_headers(admitted)
        return self.answer(admitted, headers, content)

    def admit(
        self, method: str, path: str, headers: Mapping[str, str], machine: str = ""
    ) -> AcceptedKey | Response:
        """Return the key of a request for ``/info``, or the response that needs no body.

        This is fast, and the server calls it before it reads the body. The checks run in this
        order: path (404), method (405), key (401), remaining points (429). If the API has no keys,
        the address of the machine that sends the request is its key.
        """
        methods = _METHODS.get(path)
        if methods is None:
            return self.refuse(ServiceError(f"There is nothing at {path[:80]}", status=404))
        if method not in methods:
            allowed = ", ".join(methods)
            message = f"Method {method[:16]} is not allowed; use {allowed}"
            refused = self.refuse(ServiceError(message, status=405))
            return replace(refused, headers={**refused.headers, "allow": allowed})
        if path == "/healthz":
            return json_response(b'{"status":"ok"}')
        try:
            if self.api.has_keys:
                key = self.access.find_key(headers)
            else:
                key = AcceptedKey(machine, points_per_minute=self.points_per_machine)
            self.access.charge(key, 0, at_ms=self.at_ms())
        except ServiceError as error:
            return self.refuse(error)
        return key

    def refuse(self, error: ServiceError) -> Response:
        """Return the response for an error, in the form of the API."""
        return error_response(error, is_plain=not self.api.has_keys)

    def answer(self, key: AcceptedKey, headers: Mapping[str, str], content: bytes) -> Response:
        """Return the answer to a request for ``/info``, ready to be sent.

        Parameters
        ----------
        key : AcceptedKey
            The key of the request.
        headers : mapping
            The headers; names are in lower case.
        content : bytes
            The body.

        Returns
        -------
        Response
            For every input, the status is one of the specification.
        """
        now_ms, encoding = self.now_ms(), choose_encoding(headers.get("accept-encoding", ""))
        try:
            response = self._answer_body(key, content, now_ms, encoding)
        except ServiceError as error:
            response = self.refuse(error)
        except Exception:  # no fault of a handler may leave a request without an answer
            _log.exception("a handler failed")
            response = self.refuse(ServiceError("An internal error occurred"))
        return self.add_source_headers(compress_response(response, encoding), now_ms)

    def _answer_body(
        self, key: AcceptedKey, content: bytes, now_ms: int, encoding: str
    ) -> Response:
        """Return the answer to a request body.

        The checks run in this order: size (413), JSON (400), type (400), points (429), parameters
        (400), permission (403).
        """
        body = parse_body(content, self.limits.body_bytes)
        is_strict, at_ms = self.store.about["strict"], self.at_ms()
        operation = find_operation(body["type"], strict=is_strict)
        if operation is None:
            if self.upstream is None or is_strict:
                raise BadRequest(f"Unknown type: {body['type'][:80]}")
            self.access.charge(key, _UNKNOWN_POINTS, at_ms=at_ms)
            return self.upstream.forward(content)
        whole, operation = operation, self.api.adapt(operation)
        points = operation.points
        if operation.user_points and not is_strict:  # the specification has fixed points
            dexes = len(json.loads(self.store.document("dexes") or b'[""]'))
            points = request_points(operation, body, dexes)
        limited = None if is_strict else operation  # it has no call limits either
        self.access.charge(key, points, at_ms=at_ms, operation=limited)
        # A parameter that the API does not have is ignored, as its serde does.
        defaults = {item.python: item.default for item in whole.parameters}
        parameters = defaults | check_request(operation, body)
        self.access.count_request(key, now_ms // DAY, operation.type)
        most = self.limits.list_entries
        for name, value in parameters.items():
            if isinstance(value, list | tuple) and len(value) > most:
                raise BadRequest(f"{name} must have at most {most} entries, not {len(value)}")
        if operation.add_on and key.add_ons != "all" and operation.type not in key.add_ons:
            raise NotPermitted("Permission denied", operation=operation.type)
        if self.upstream is not None and is_mirrored(operation):
            return self.upstream.forward(content)
        request = CheckedRequest(
            operation,
            parameters,
            now_ms,
            self.inclusive,
            self.live,
            # Rows of another API are counted before they are compressed.
            encoding if self.api is SERVICE else "identity",
            self.limits.answer_seconds,
            partial(self.access.requests_since, key),
        )
        replayed = None if self.store.replay is None else self.store.replay(request)
        response: Response = replayed or _answer_from_store(self.store, request)
        if self.api is SERVICE or response.status != 200:
            return response
        content = self.api.remove_fields(response.content)
        if operation.row_points:
            rows = msgspec.json.decode(content, type=list[msgspec.Raw])[: operation.most_rows]
            self.access.charge_rows(key, row_points(operation, len(rows)))
            content = encode(rows)
        return replace(response, content=content)

    def add_source_headers(self, response: Response, now_ms: int | None = None) -> Response:
        """Return the response with headers that name its source and the present.

        A client computes ages and labels figures from these headers.
        """
        now_ms = self.now_ms() if now_ms is None else now_ms
        facts = (self.store.about[name] for name in ("label", "simulated", "history"))
        source = write_source(SourceStatement(now_ms, self.live is not None, *facts))
        return Response(response.status, {**response.headers, **source}, response.content)


def _answer_from_store(store: Store, request: CheckedRequest) -> Response:
    """Return the answer of the operation's handler."""
    operation, about = request.operation, store.about
    if operation.extra and not operation.from_archive and not about["whole"]:
        raise BadRequest(
            f"{operation.type} cannot be answered: the data from which it is computed are not in "
            f"{about['label']}"
        )
    try:
        answer = HANDLERS[operation.type](store, request)
    except (NotReady, ServiceDown):
        if about["whole"]:
            raise
        raise BadRequest(  # recordings never change
            f"{operation.type} cannot be answered: no such data in {about['label']}"
        ) from None
    headers = {"content-type": "application/json"}
    return Response(200, headers, answer) if isinstance(answer, bytes) else answer
