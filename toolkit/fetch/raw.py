"""Answers as they are on the wire, without a frame."""

import json
import reprlib
from collections.abc import Callable, Mapping
from difflib import get_close_matches

import msgspec

from toolkit.client import RawAnswer, Session, current_session
from toolkit.client.wire import is_binary
from toolkit.contract.operations import EXTRA_OPERATIONS, OPERATIONS, Operation, known_operation
from toolkit.contract.requests import check_request, request_body
from toolkit.contract.response_errors import check_no_web_page
from toolkit.errors import AnswerInvalid, BadRequest, IncompleteWarning, unsent, warn_caller
from toolkit.fetch.pull import request_of
from toolkit.public_names import publish_as


@publish_as("toolkit")
def raw(fetch: Callable[..., object], *arguments: object, **named: object) -> object:
    """Return the first page as parsed JSON.

    Parameters
    ----------
    fetch : callable
        A fetch function.
    *arguments, **named
        The arguments of the fetch function.

    Returns
    -------
    object
        The parsed JSON of the first page, with its unknown fields; bytes for the binary
        snapshots.

    Examples
    --------
    >>> import toolkit as tk
    >>> _ = tk.local(seed=7, size="tiny")
    >>> sorted(tk.raw(tk.meta))[-1]
    'universe'
    """
    request = request_of(fetch, arguments, named)
    body = request_body(request.operation, request.parameters)
    return _parse_answer(request.operation, request.session.ask(request.operation, body))


@publish_as("toolkit")
def info(request: Mapping[str, object], *, session: Session | None = None) -> object:
    """Send a request body unchanged, and return the parsed answer.

    Every operation of the service can be requested, also one that this package does not know. The
    request has key, budget and retries like every other one. An unknown operation counts 2 points.
    `tk.frame` makes a frame of an answer whose rows are known.

    Parameters
    ----------
    request : mapping
        The JSON object, with ``type`` and wire names.
    session : Session, optional
        The session that sends the request; by default the one of `tk.connect` or `tk.local`.

    Returns
    -------
    object
        The parsed JSON; bytes for a binary answer.

    Raises
    ------
    BadRequest
        If there is no ``type`` or a parameter of one of the 22 operations is not legal: then
        nothing is sent, and ``error.status`` is None. Or if the service refuses the request.
    AnswerInvalid
        If the answer is neither JSON nor binary.

    Examples
    --------
    >>> import toolkit as tk
    >>> _ = tk.local(seed=7, size="tiny")
    >>> tk.info({"type": "meta"})["universe"][0]["name"]
    'BTC'
    >>> paid = {"type": "funding", "coin": "BTC", "usdc": "-2.9", "szi": "0.1"}
    >>> paid["fundingRate"] = "0.0003"
    >>> rows = [{"time": 1_750_000_000_000, "hash": "0x0", "delta": paid}]  # of userFunding
    >>> tk.frame("userFunding", rows)[["coin", "usdc", "n_samples"]]
      coin  usdc  n_samples
    0  BTC  -2.9       <NA>
    """
    is_mapping = isinstance(request, Mapping)  # callers need not check types
    type = request.get("type") if is_mapping else None
    if not isinstance(type, str) or not type:
        words = 'a request must be a mapping with a type, such as {"type": "meta"}'
        raise unsent(f"{words}, not {reprlib.repr(request)}")
    try:
        json.dumps(dict(request), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        words = "the request cannot be written as JSON"
        raise unsent(f"{type}: {words}: {error}. Use text, numbers and lists") from None
    session = current_session(session)
    operation, request = session.api.adapt_call(known_operation(type), request)
    if not operation.extra:
        check_request(operation, request)
    try:
        answer = session.ask(operation, request)
    except BadRequest as error:
        if near := get_close_matches(type, [*OPERATIONS, *EXTRA_OPERATIONS], n=1):
            error.hint = error.hint or (f"Did you mean {near[0]}?" if near[0] != type else "")
        raise
    return _parse_answer(operation, answer)


def _parse_answer(operation: Operation, answer: RawAnswer) -> object:
    if reason := answer.completeness.missing_reason:
        warn_caller(f"incomplete: {operation.type}: {reason}", IncompleteWarning)
    content = answer.content
    check_no_web_page(operation, answer.headers, content)
    if is_binary(operation, answer.headers):
        return content
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise AnswerInvalid(
            f"the answer cannot be read: {error}", operation=operation.type, value=content[:80]
        ) from None
