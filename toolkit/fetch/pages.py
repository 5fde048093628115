"""Fetching page by page, for answers larger than memory."""

from collections.abc import Callable, Iterator

import pandas as pd

from toolkit.completeness.certificate import Certificate, gap_remarks
from toolkit.errors import Incomplete, IncompleteWarning, warn_caller
from toolkit.fetch.pull import (
    check_one_frame,
    check_reach,
    publish_remarks,
    read_pages,
    request_facts,
    request_of,
    request_remarks,
)
from toolkit.frames import Collector
from toolkit.frames.answer_frames import cut_facts
from toolkit.public_names import publish_as

__all__ = ["pages"]


@publish_as("toolkit")
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
        At the first page, if the service states that rows are missing, for example because it
        serves an archive. At any page, if more rows have one key than a page can hold. At the last
        page, if the service keeps only the latest rows.

    Warns
    -----
    IncompleteWarning
        With the first page whose rows contradict each other or those before them. With
        ``on_incomplete="warn"`` also instead of the error. This page and all later ones say ``no``.

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
    publish_remarks(request.operation, request_remarks(request))
    certificate = Certificate(request.operation, request.parameters)
    counts = request.session.new_counts()
    is_warned = False
    rows = 0
    for page in read_pages(request, counts):
        collector = Collector(request.operation, request.numbers, request.extra)
        collector.add(page.tables)
        certificate.add_page(page, collector.last_page())
        facts = request_facts(request) | certificate.facts(counts.facts())
        missing, rows = certificate.completeness.missing_reason, rows + collector.rows
        if page.is_last and request.operation.reach:
            try:
                check_reach(request, certificate, rows, counts)
            except Incomplete as error:
                missing = str(error)
        cut = cut_facts(request.operation, rows) if request.operation.paging == "none" else {}
        breaks = "" if request.session.source.history else certificate.breaks.reason
        why = missing or cut.get("why") or breaks
        state = "one page, the last" if page.is_last else "one page"
        facts |= {"complete": "no", "why": why} if why else {"complete": state}
        (frame,) = collector.frames(facts)
        if missing and request.on_incomplete == "raise":
            raise Incomplete(missing, rows=frame)
        if why and not is_warned:
            is_warned = True
            words = why if missing else f"{request.operation.type}: {why}"
            warn_caller(f"incomplete: {words}", IncompleteWarning)
        if page.is_last:
            publish_remarks(request.operation, gap_remarks(facts.get("gaps", ())), [frame])
        yield frame
