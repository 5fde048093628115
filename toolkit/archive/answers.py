"""Whole answers, of operations that show a state: kept as they came, and decoded when read."""

import contextlib
import json
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds

from toolkit.archive.layout import ANSWERS, SCHEMAS, Origin
from toolkit.archive.pulls import Refreshed, note
from toolkit.archive.series import Series
from toolkit.archive.tables import Beaten, Tables, of_series
from toolkit.client import Session
from toolkit.errors import ArchiveError
from toolkit.fetch.query import ask, batches

__all__ = ["append_answer", "latest_answer", "whole_answer"]

_HEADERS: Final = ("content-type", "content-encoding", "x-payload-format", "x-compression")
_TRIES: Final = 50


def whole_answer(series: Series, session: Session) -> tuple[bytes, dict[str, str]]:
    """Ask, and give the body and the headers that tell how to read it.

    An answer that comes in pages is joined: its rows as they came, in one array.
    """
    operation = series.operation
    if operation.paging != "none":
        question = ask(operation.type, session=session, **series.parameters)
        texts: list[bytes] = []
        for batch in batches(question):
            batch.completeness.check_complete()
            texts += batch.texts()
        return b"[%b]" % b",".join(texts), {}
    answer = session.ask(operation, series.parameters)
    answer.completeness.check_complete()
    headers = {name: answer.headers[name] for name in _HEADERS if name in answer.headers}
    return answer.content, headers


def append_answer(
    tables: Tables, series: Series, body: bytes, headers: Mapping[str, str], origin: Origin
) -> int:
    """Keep one answer, and note that it is kept; once. Give how many are new: 1 or 0.

    Raises
    ------
    ArchiveError
        If it cannot be written.
    """
    for _ in range(_TRIES):
        with contextlib.suppress(Beaten):
            return _append_once(tables, series, body, headers, origin)
    raise ArchiveError(f"{series.name}: other processes keep writing to the archive; try again")


def _append_once(
    tables: Tables, series: Series, body: bytes, headers: Mapping[str, str], origin: Origin
) -> int:
    """Append an answer that is not there; of two writers at once the second is refused."""
    handle = tables.handle_to_write(ANSWERS)
    at = origin.fetched_ms
    where = of_series(series.operation.type, series.subject) & (ds.field("_fetched") == at)
    if body in tables.read(handle, ["_body"], where)["_body"].to_pylist():
        return 0
    row = {
        "_operation": series.operation.type,
        "_subject": series.subject,
        "_body": body,
        "_headers": json.dumps(dict(headers)),
        "_source": origin.source,
        "_simulated": origin.simulated,
        "_fetched": origin.fetched_ms,
    }
    count = (handle.transaction_version(series.name) or 0) + 1
    rows = pa.Table.from_pylist([row], schema=SCHEMAS[ANSWERS])
    tables.append(handle, rows, counts={series.name: count})
    note(tables, Refreshed(series.operation.type, series.subject, 1, 1, at, at), origin)
    return 1


def latest_answer(tables: Tables, series: Series) -> dict[str, Any]:
    """Give the last archived answer to a question.

    Raises
    ------
    ArchiveError
        If there is none.
    """
    handle = tables.handle(ANSWERS)
    found = []
    if handle is not None:
        where = of_series(series.operation.type, series.subject)
        found = tables.read(handle, where=where).sort_by("_fetched").to_pylist()
    if not found:
        raise ArchiveError(f"{tables.location} has no answer to {series.name}: refresh it first")
    answer: dict[str, Any] = found[-1]
    return answer | {"_headers": json.loads(answer["_headers"])}
