"""Other ways to ask than one complete frame: page by page, raw, by hand."""

import json
import reprlib
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

import msgspec
import pandas as pd

from toolkit.client import Batch, Session, current_session
from toolkit.client.session import Answer, is_binary
from toolkit.completeness.headers import Completeness
from toolkit.contract.answers import check_no_web_page
from toolkit.contract.extra_operations import EXTRA_OPERATIONS, known_operation
from toolkit.contract.operations import OPERATIONS, Operation
from toolkit.contract.requests import check_request
from toolkit.errors import AnswerInvalid, BadRequest, Incomplete
from toolkit.fetch.certificate import Tally
from toolkit.fetch.describing import describe
from toolkit.fetch.history import announce, of_question, warn_caller
from toolkit.fetch.query import IncompleteWarning, batches, facts_of, one_frame, question_of
from toolkit.frames import Collector

__all__ = ["describe", "info", "pages", "raw"]


def pages(fetch: Callable[..., Any], *arguments: Any, **named: Any) -> Iterator[pd.DataFrame]:
    """Fetch page by page, for answers larger than memory.

    Parameters
    ----------
    fetch : callable
        A fetch function whose answer is one frame.
    *arguments, **named
        What it is called with.

    Yields
    ------
    DataFrame
        The rows of one page that are certain: every row comes once, in order. A frame may
        be empty. Provenance says ``one page``, or ``one page, the last`` where all have come;
        its counts are those of the pull so far.

    Raises
    ------
    Incomplete
        With the first page, if the service does not have all that was asked for, as an archive
        that is served; ``on_incomplete="warn"`` marks every page with ``no`` instead.

    Examples
    --------
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny")
    >>> user = session.world["users"][0]
    >>> parts = list(tk.pages(tk.user_fills_by_time, user, 0, page_size=50))
    >>> sum(map(len, parts)) == len(tk.user_fills_by_time(user, 0))
    True
    """
    question = question_of(fetch, arguments, named)
    one_frame(question.operation)
    announce(question.operation, of_question(question))
    tally = Tally(question.session.counting())
    for batch in batches(question, tally.counts):
        collector = Collector(question.operation, question.numbers, question.extra)
        collector.add(batch.tables)
        tally.add(question.operation, batch)
        facts = {**facts_of(question), **_of_page(batch), **tally.certificate()}
        (frame,) = collector.frames(facts)
        if batch.completeness.missing_reason and question.on_incomplete == "raise":
            raise Incomplete(batch.completeness.missing_reason, rows=frame)
        if tally.pages == 1:
            _warn_unproved(batch.completeness)
        yield frame


def raw(fetch: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Give one answer as it stands on the wire.

    Parameters
    ----------
    fetch : callable
        A fetch function.
    *arguments, **named
        What it is called with.

    Returns
    -------
    object
        The parsed JSON of the first page, unknown fields and all; bytes for the binary
        snapshots.

    Examples
    --------
    >>> import toolkit as tk
    >>> _ = tk.local(seed=7, size="tiny")
    >>> sorted(tk.raw(tk.meta))[-1]
    'universe'
    """
    question = question_of(fetch, arguments, named)
    answer = question.session.ask(question.operation, question.parameters)
    _warn_unproved(answer.completeness)
    return _parsed(question.operation, answer)


def info(request: Any, *, session: Session | None = None) -> Any:
    """Send a request body as it is, and return the parsed answer.

    Any operation of the service can be asked, also one that this package does not know. The
    request travels with key, budget and retries like every other. An operation that is not known
    is counted with 2 points. `tk.frame` makes a frame of an answer whose rows it knows.

    Parameters
    ----------
    request : mapping
        The JSON object, with ``type`` and wire names.
    session : Session, optional
        Whom to ask; the default session when not given.

    Returns
    -------
    object
        The parsed JSON; bytes for a binary answer.

    Raises
    ------
    BadRequest
        If there is no ``type``, if a parameter of one of the 22 operations is not legal (nothing
        is sent, and ``error.status`` is None), or if the service refuses the request.
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
    type = request.get("type") if isinstance(request, Mapping) else None
    if not isinstance(type, str) or not type:
        words = 'a request is a mapping with a type, such as {"type": "meta"}'
        raise _not_sent(f"{words}, not {reprlib.repr(request)}")
    try:
        json.dumps(dict(request), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        words = "the request cannot be written as JSON"
        raise _not_sent(f"{type}: {words}: {error}. Give texts, numbers and lists") from None
    operation = known_operation(type)
    if type in OPERATIONS:
        check_request(operation, request)
    try:
        answer = current_session(session).send(operation, request)
    except BadRequest as error:
        if near := get_close_matches(type, [*OPERATIONS, *EXTRA_OPERATIONS], n=1):
            error.hint = error.hint or (f"Did you mean {near[0]}?" if near[0] != type else "")
        raise
    _warn_unproved(answer.completeness)
    return _parsed(operation, answer)


def _not_sent(message: str) -> BadRequest:
    error = BadRequest(message)
    error.status = None  # nothing was sent
    return error


def _of_page(batch: Batch) -> dict[str, str]:
    if batch.completeness.missing_reason:
        return {"complete": "no", "why": batch.completeness.missing_reason}
    return {"complete": "one page, the last" if batch.last else "one page"}


def _warn_unproved(completeness: Completeness) -> None:
    if completeness.missing_reason:
        warn_caller(f"incomplete: {completeness.missing_reason}", IncompleteWarning)


def _parsed(operation: Operation, answer: Answer) -> Any:
    content = answer.content
    check_no_web_page(operation, answer.headers, content)
    if is_binary(operation, answer.headers):
        return content
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError) as error:
        raise AnswerInvalid(
            f"the answer cannot be read: {error}", operation=operation.type, value=content[:80]
        ) from None
