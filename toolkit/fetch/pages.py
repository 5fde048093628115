"""Fetching page by page, for answers larger than memory."""

from collections.abc import Callable, Iterator

import pandas as pd

from toolkit.errors import Incomplete, IncompleteWarning, warn_caller
from toolkit.fetch.pull import Pull, publish_remarks, request_of
from toolkit.fetch.remarks import gap_remarks, request_remarks
from toolkit.frames import Collector
from toolkit.frames.answer_frames import cut_facts
from toolkit.public_names import publish_as


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
        page, if the service keeps only the latest rows, or seems to ignore a filter.

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
    operation, has_history = request.operation, bool(request.session.source.history)
    if len(operation.tables) > 1:
        names = ", ".join(table.name for table in operation.tables)
        raise TypeError(
            f"{operation.function} returns several frames ({names}): call it directly, for each "
            "subject"
        )
    publish_remarks(operation, request_remarks(request))
    pull, is_warned = Pull(request), False
    for _ in pull.read():
        pull.check_rows()
        missing, is_last = pull.page.completeness.missing_reason, pull.page.is_last
        if is_last:
            try:
                pull.check_source()
            except Incomplete as error:
                missing = str(error)
        cut = cut_facts(operation, pull.rows) if operation.paging == "none" else {}
        why = missing or cut.get("why") or ("" if has_history else pull.breaks.reason)
        facts = {"complete": "one page, the last" if is_last else "one page"}
        (frame,) = pull.frames(**({"complete": "no", "why": why} if why else facts))
        pull.collector = Collector(operation, request.numbers, request.extra)
        if missing and request.on_incomplete == "raise":
            raise Incomplete(missing, rows=frame)
        if why and not is_warned:
            is_warned = True
            words = why if missing else f"{operation.type}: {why}"
            warn_caller(f"incomplete: {words}", IncompleteWarning)
        if is_last:
            publish_remarks(operation, gap_remarks(frame.attrs["toolkit"]), [frame])
        yield frame
