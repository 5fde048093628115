"""Whole answers, of operations that show a state: kept as they came, and decoded when read."""

import json
from typing import Any

from toolkit.archive.layout import Series
from toolkit.client import Session
from toolkit.fetch.query import ask, batches

__all__ = ["whole_answer"]

_HEADERS = ("content-type", "content-encoding", "x-payload-format", "x-compression")


def whole_answer(series: Series, session: Session) -> dict[str, Any]:
    """Ask, and give body and headers as columns of the table of answers.

    An answer that comes in pages is joined: its rows as they came, in one array.
    """
    operation = series.operation
    if operation.paging != "none":
        question = ask(operation.type, session=session, **series.parameters)
        texts = [text for batch in batches(question) for text in batch.texts()]
        return {"_body": b"[%b]" % b",".join(texts), "_headers": "{}"}
    answer = session.ask(operation, series.parameters)
    kept = {name: answer.headers[name] for name in _HEADERS if name in answer.headers}
    return {"_body": answer.content, "_headers": json.dumps(kept)}
