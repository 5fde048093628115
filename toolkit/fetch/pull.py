"""The steps of every fetch function, from a call to its complete frames.

1. `prepare_request` checks the call; nothing is sent.
2. `request_remarks` says what the service cannot have.
3. `read_pages` sends the request page by page; a `Collector` turns the rows into columns.
4. A `Certificate` counts the pages and keeps the evidence that they are complete.
5. The frames are returned with their certificate and the remarks as provenance.
"""

from typing import Any

import pandas as pd

from toolkit.client import Counts, Progress
from toolkit.completeness.certificate import Certificate
from toolkit.errors import Incomplete, ServiceError, ToolkitError
from toolkit.fetch.notices import (
    IncompleteWarning,
    announce,
    answer_remarks,
    is_quiet,
    request_remarks,
    warn_caller,
)
from toolkit.fetch.pages import read_pages
from toolkit.fetch.request import Request, prepare_request, request_facts
from toolkit.frames import Collector

__all__ = ["fetch_frame", "fetch_frames"]

Frames = tuple[pd.DataFrame, ...]


def fetch_frame(operation: str, **arguments: Any) -> pd.DataFrame:
    """Return the frame of a call whose answer is one frame; `prepare_request` has the arguments."""
    (frame,) = fetch_frames(operation, **arguments)
    return frame


def fetch_frames(operation: str, **arguments: Any) -> Frames:
    """Return the frames of a call, one per kind of record; `prepare_request` has the arguments."""
    return _answer_request(prepare_request(operation, **arguments))


def _answer_request(request: Request) -> Frames:
    """Return the frames of a request, with certificate and remarks in their provenance."""
    remarks = request_remarks(request)
    frames = _pull_frames(request)
    try:
        announce(request.operation, [*remarks, *answer_remarks(request, frames)], frames)
    except KeyboardInterrupt as interrupt:
        _attach_rows(interrupt, frames)
        raise
    return frames


def _pull_frames(request: Request) -> Frames:
    """Read every page of a request into frames."""
    collector = Collector(request.operation, request.numbers, request.extra)
    certificate, counts = Certificate(request.operation), request.session.new_counts()
    try:
        with Progress(request.session, request.operation.type, hidden=is_quiet()) as progress:
            for page in read_pages(request, counts):
                rows_before = collector.rows
                collector.add(page.tables)
                certificate.add_page(page)
                progress.add(collector.rows - rows_before)
        certificate.completeness.check_complete()  # only now: all rows that there are have come
        return collector.frames(_provenance(request, certificate, counts))
    except ToolkitError as error:
        if certificate.pages == 0 and not isinstance(error, Incomplete):
            raise
        return _incomplete_frames(request, collector, certificate, counts, error)
    except KeyboardInterrupt as interrupt:
        facts = _provenance(request, certificate, counts)
        _attach_rows(interrupt, collector.frames(facts | {"complete": "no", "why": "interrupted"}))
        raise


def _provenance(request: Request, certificate: Certificate, counts: Counts) -> dict[str, Any]:
    """Return where the rows of a request come from, and whether they are complete."""
    if request.operation.latest:
        complete = "latest"
    else:
        complete = "yes" if certificate.is_at_end else f"first {request.max_rows} rows"
    return request_facts(request) | {"complete": complete} | certificate.facts(counts.facts())


def _incomplete_frames(
    request: Request,
    collector: Collector,
    certificate: Certificate,
    counts: Counts,
    error: ToolkitError,
) -> Frames:
    """Return the rows so far with a warning, or raise Incomplete with these rows."""
    why = error.args[0] if isinstance(error, ServiceError) else str(error)
    facts = _provenance(request, certificate, counts) | {"complete": "no", "why": why}
    frames = collector.frames(facts)
    if request.on_incomplete == "warn":
        warn_caller(f"incomplete: {error}", IncompleteWarning)
        return frames
    cursor = (error.cursor if isinstance(error, Incomplete) else None) or certificate.resume_cursor
    resume = f"; continue with cursor={cursor!r}" if cursor else ""
    raise Incomplete(
        f"{error} [error.rows has the {collector.rows} rows that came before{resume}]",
        rows=frames[0] if len(frames) == 1 else frames,
        cursor=cursor,
    ) from error


def _attach_rows(interrupt: KeyboardInterrupt, frames: Frames) -> None:
    interrupt.rows = frames[0] if len(frames) == 1 else frames  # type: ignore[attr-defined]
    interrupt.add_note(f"error.rows has the {len(frames[0])} rows that came before")
