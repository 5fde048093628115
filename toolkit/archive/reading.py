"""What is archived, as frames with the dtypes of fetching."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pandas as pd
import pyarrow.compute as pc

from toolkit.archive.answers import latest_answer
from toolkit.archive.engines import between
from toolkit.archive.layout import table_of
from toolkit.archive.pulls import joined, pulls_of
from toolkit.archive.series import Series, is_history, key_columns, time_column
from toolkit.archive.tables import Tables, of_series
from toolkit.contract.answers import decode
from toolkit.contract.reading import Numbers
from toolkit.contract.shapes import rows as rows_of
from toolkit.errors import ArchiveError
from toolkit.frames import Collector
from toolkit.times import iso, to_ms

__all__ = ["frames", "texts_of"]

_CHUNK: Final = 50_000


def frames(
    tables: Tables,
    series: Series,
    start: Any,
    end: Any,
    numbers: Numbers,
) -> tuple[pd.DataFrame, ...]:
    """Make the frames that fetching gives, from what is archived.

    Raises
    ------
    ArchiveError
        If nothing is archived of the question.
    """
    collector = Collector(series.operation, numbers)
    if not is_history(series.operation):
        answer = latest_answer(tables, series)
        decoded = decode(
            series.operation,
            200,
            answer["_headers"],
            answer["_body"],
            numbers=numbers,
            parameters=series.parameters,
        )
        collector.add(_tables_of(series, decoded))
        return collector.frames(_provenance(tables, series, numbers, answer, {}, []))
    pulls = pulls_of(tables, series)
    if not pulls:
        raise ArchiveError(f"{tables.location} has nothing of {series.name}: refresh it first")
    now = max(one["until"] for one in pulls)
    first, last = (None if one is None else to_ms(one, now_ms=now) for one in (start, end))
    texts = texts_of(tables, series, first, last)
    for at in range(0, len(texts), _CHUNK):
        content = b"[%b]" % b",".join(texts[at : at + _CHUNK])
        decoded = decode(series.operation, 200, {}, content, numbers=numbers)
        collector.add(rows_of(series.operation, decoded, series.parameters))
    facts = {"start": first, "end": last}
    newest = max(pulls, key=lambda one: one["_fetched"])
    return collector.frames(_provenance(tables, series, numbers, newest, facts, joined(pulls)))


def texts_of(
    tables: Tables, series: Series, start: int | None = None, end: int | None = None
) -> list[bytes]:
    """Give the rows of a history as they came, in the order of the operation.

    Parameters
    ----------
    tables : Tables
        The archive.
    series : Series
        Whose.
    start, end : int, optional
        Range in milliseconds, both inclusive.
    """
    handle = tables.handle(table_of(series.operation))
    if handle is None:
        return []
    where = of_series(series.operation.type, series.subject)
    where = between(where, time_column(series.operation), start, end)
    order = [*key_columns(series.operation), "_part", "_row"]
    rows = tables.read(handle, [*order, "_json"], where)
    placed = pc.sort_indices(rows, [(name, "ascending") for name in order])
    return [one.encode() for one in rows["_json"].take(placed).to_pylist()]


def _tables_of(series: Series, decoded: Any) -> tuple[Any, ...]:
    if series.operation.binary:
        return (decoded,)
    return rows_of(series.operation, decoded, series.parameters)


def _provenance(
    tables: Tables,
    series: Series,
    numbers: Numbers,
    origin: Mapping[str, Any],
    facts: Mapping[str, Any],
    ranges: Sequence[tuple[int, int]],
) -> dict[str, Any]:
    start, end = facts.get("start"), facts.get("end")
    return {
        "operation": series.operation.type,
        "parameters": dict(series.parameters) | {k: v for k, v in facts.items() if v is not None},
        "numbers": numbers,
        "source": origin["_source"],
        "simulated": origin["_simulated"],
        "asked_at": iso(origin["_fetched"]),
        "complete": _completeness(series, ranges, start, end),
        "archive": tables.location,
        "covered": [(iso(one), iso(two)) for one, two in ranges],
    }


def _completeness(
    series: Series, ranges: Sequence[tuple[int, int]], start: int | None, end: int | None
) -> str:
    if series.operation.latest:
        return "latest"
    if not is_history(series.operation):
        return "yes"
    inside = [
        one
        for one in ranges
        if (start is None or one[0] <= start) and (end is None or end <= one[1])
    ]
    return "yes" if inside and (start is not None or len(ranges) == 1) else "no"
