"""The pages of a request: ask, prove, decode, until the answer is complete."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pandas as pd

from toolkit.client import Counts, Session
from toolkit.completeness.certificate import Certificate
from toolkit.completeness.headers import Completeness
from toolkit.contract.answers import decode
from toolkit.contract.dexes import ALL_DEXES
from toolkit.contract.operations import Operation
from toolkit.contract.paging import PageReader, page_reader
from toolkit.contract.rows import answer_rows
from toolkit.errors import Incomplete
from toolkit.fetch.notices import announce, request_remarks, warn_incomplete
from toolkit.fetch.request import Request, check_one_frame, request_facts, request_of
from toolkit.frames import Collector

__all__ = ["Page", "pages", "read_pages", "stop_at_next_page"]


@dataclass(frozen=True, slots=True)
class Page:
    """One page of an answer, with the rows of it that are certain.

    Attributes
    ----------
    tables : tuple
        For each table of the operation its rows, or its columns by name.
    reader : PageReader
        The position of the pull after this page.
    is_last : bool
        Whether all rows have come.
    completeness : Completeness
        What the service stated with the first page about the complete answer.
    content : bytes
        The body of the page as it came.
    first : int
        Position in the body of the first row that is certain.
    """

    tables: tuple[Any, ...]
    reader: PageReader
    is_last: bool
    completeness: Completeness
    content: bytes = field(default=b"[]", repr=False)
    first: int = 0

    def texts(self) -> list[bytes]:
        """Return the JSON text of each row, for an operation that answers with a list."""
        rows = msgspec.json.decode(self.content, type=list[msgspec.Raw])
        return [bytes(row) for row in rows[self.first : self.first + len(self.tables[0])]]


def read_pages(request: Request, counts: Counts | None = None) -> Iterator[Page]:
    """Send a request page by page until the answer is complete, or has `max_rows` rows.

    Parameters
    ----------
    request : Request
        The request.
    counts : Counts, optional
        Counts of this pull, as `Session.ask` takes them.

    Yields
    ------
    Page
        Rows in the order of the operation. Every row comes once.

    Raises
    ------
    ServiceError, Unreachable, AnswerInvalid, Incomplete, BudgetSpent
    """
    operation, session = request.operation, request.session
    parameters, left = dict(request.parameters), request.max_rows
    cursor_reader = page_reader(operation, parameters)
    completeness: Completeness | None = None
    while True:
        answer = session.ask(operation, parameters, counts)
        completeness = completeness or answer.completeness
        decoded = decode(
            operation,
            200,
            answer.headers,
            answer.content,
            numbers=request.numbers,
            parameters=parameters,
        )
        tables = (decoded,) if operation.binary else answer_rows(operation, decoded, parameters)
        _learn_dexes(session, operation, parameters, tables)
        cut = cursor_reader.read(tables[0])
        is_last = cut.after is None
        if operation.paging != "none":
            stop = cut.stop if left is None else min(cut.stop, cut.start + left)
            is_last = is_last and stop == cut.stop
            left = None if left is None else left - (stop - cut.start)
            tables = (_slice(tables[0], cut.start, stop),)
        if (stop_event := _stop.get()) is not None and stop_event.is_set():
            raise Incomplete("the call was interrupted")
        yield Page(tables, cursor_reader, is_last, completeness, answer.content, cut.start)
        if cut.after is None or left == 0:
            return
        parameters |= cut.after
        if cut.after.get("cursor") is not None:
            parameters.pop("start", None)


def _learn_dexes(
    session: Session, operation: Operation, parameters: Mapping[str, Any], tables: Sequence[Any]
) -> None:
    """Note how many dexes there are, if an answer shows it: costs depend on it."""
    scale = operation.scale
    if scale is not None and parameters.get(scale.dex) == ALL_DEXES and tables[0]:
        session.dexes = len({row.dex for row in tables[0]})


def _slice(rows: Sequence[Any], start: int, stop: int) -> Sequence[Any]:
    return rows if start == 0 and stop == len(rows) else rows[start:stop]


@contextmanager
def stop_at_next_page(stop: threading.Event) -> Iterator[None]:
    """End the pulls of this thread at the next page once `stop` is set."""
    token = _stop.set(stop)
    try:
        yield
    finally:
        _stop.reset(token)


_stop: ContextVar[threading.Event | None] = ContextVar("stop", default=None)


def pages(
    fetch: Callable[..., pd.DataFrame], *arguments: object, **named: object
) -> Iterator[pd.DataFrame]:
    """Fetch page by page, for answers larger than memory.

    Parameters
    ----------
    fetch : callable
        A fetch function whose answer is one frame.
    *arguments, **named
        The arguments of the fetch function.

    Yields
    ------
    DataFrame
        The rows of one page that are certain: every row comes once, in order. A frame may be
        empty. Its provenance says ``one page``, or ``one page, the last`` if all rows have come.
        Its counts are those of the pull so far.

    Raises
    ------
    Incomplete
        With the first page, if the service states that rows are missing, for example because it
        serves an archive. With ``on_incomplete="warn"`` every page says ``no`` instead.

    Examples
    --------
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny")
    >>> user = session.world["users"][0]
    >>> parts = list(tk.pages(tk.user_fills_by_time, user, 0, page_size=50))
    >>> sum(map(len, parts)) == len(tk.user_fills_by_time(user, 0))
    True
    """
    request = request_of(fetch, arguments, named)
    check_one_frame(request.operation)
    announce(request.operation, request_remarks(request))
    certificate, counts = Certificate(request.operation), request.session.new_counts()
    for page in read_pages(request, counts):
        collector = Collector(request.operation, request.numbers, request.extra)
        collector.add(page.tables)
        certificate.add_page(page)
        facts = request_facts(request) | _page_state(page) | certificate.facts(counts.facts())
        (frame,) = collector.frames(facts)
        reason = page.completeness.missing_reason
        if reason and request.on_incomplete == "raise":
            raise Incomplete(reason, rows=frame)
        if certificate.pages == 1:
            warn_incomplete(page.completeness)
        yield frame


def _page_state(page: Page) -> dict[str, str]:
    if page.completeness.missing_reason:
        return {"complete": "no", "why": page.completeness.missing_reason}
    return {"complete": "one page, the last" if page.is_last else "one page"}
