"""Fetching page by page, for answers larger than memory."""

from collections.abc import Callable, Iterator

import pandas as pd

from toolkit.completeness.certificate import Certificate
from toolkit.errors import Incomplete
from toolkit.fetch.pull import Page, announce, read_pages, warn_incomplete
from toolkit.fetch.request import check_one_frame, request_facts, request_of, request_remarks
from toolkit.frames import Collector

__all__ = ["pages"]


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
