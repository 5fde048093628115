"""What is in an archive."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.archive.layout import ANSWERS, PULLS, RECORDS, SCHEMAS, table_of
from toolkit.archive.pulls import Ranges, ranges_of
from toolkit.archive.tables import Tables, sizes
from toolkit.contract.operations import OPERATIONS
from toolkit.times import to_ms

__all__ = ["Span", "Spans", "histories", "present_ms", "spans_of", "status", "summary"]

_COLUMNS: Final = (
    "table",
    "operation",
    "subject",
    "rows",
    "first",
    "last",
    "covered_from",
    "covered_until",
    "gaps",
    "version",
    "bytes",
)
_TIMES: Final = ("first", "last", "covered_from", "covered_until")


Span = Mapping[str, Any]
"""How many ``rows``, and their ``first`` and ``last`` time in milliseconds."""
Spans = Mapping[tuple[str, str], Span]
"""Operation and subject -> span."""


def spans_of(tables: Tables, name: str) -> dict[tuple[str, str], Span]:
    """Give the span of each series of a record's table."""
    handle = tables.handle(name)
    if handle is None:
        return {}
    time = _time_of(name)
    rows = tables.read(handle, ["_operation", "_subject", time])
    grouped = rows.group_by(["_operation", "_subject"]).aggregate(
        [(time, "count"), (time, "min"), (time, "max")]
    )
    return {
        (one["_operation"], one["_subject"]): {
            "rows": one[f"{time}_count"],
            "first": to_ms(one[f"{time}_min"]),
            "last": to_ms(one[f"{time}_max"]),
        }
        for one in sorted(grouped.to_pylist(), key=lambda one: (one["_operation"], one["_subject"]))
    }


def status(tables: Tables) -> pd.DataFrame:
    """Say what is archived; see `Archive.status`."""
    tables = tables.pinned()
    ranges = ranges_of(tables)
    rows: list[dict[str, Any]] = []
    for name in (*RECORDS, ANSWERS):
        handle = tables.handle(name)
        if handle is None:
            continue
        found = list(
            _answers(tables, handle)
            if name == ANSWERS
            else histories(name, spans_of(tables, name), ranges)
        )
        # Rows of many subjects lie in one file: its bytes are shared out by rows.
        each = sum(sizes(handle)) / max(sum(one["rows"] for one in found), 1)
        for one in found:
            size = round(each * one["rows"])
            rows.append({"table": name, "version": handle.version(), "bytes": size} | one)
    made = pd.DataFrame(rows, columns=list(_COLUMNS))
    for column in _TIMES:
        made[column] = pd.to_datetime(made[column], utc=True, unit="ms").astype(
            "datetime64[ms, UTC]"
        )
    texts = ["table", "operation", "subject"]
    counts = ["rows", "gaps", "version", "bytes"]
    return made.astype(dict.fromkeys(texts, "str") | dict.fromkeys(counts, "int64"))


def summary(tables: Tables) -> pd.DataFrame:
    """Give rows, version, files and bytes of every table, from the logs alone."""
    found = []
    for name in SCHEMAS:
        handle = tables.handle(name)
        if handle is not None:
            files = pa.table(handle.get_add_actions(flatten=True))
            rows, size = (sum(files[one].to_pylist()) for one in ("num_records", "size_bytes"))
            found.append((name, rows, handle.version(), files.num_rows, size))
    return pd.DataFrame(found, columns=["table", "rows", "version", "files", "bytes"])


def histories(name: str, spans: Spans, ranges: Ranges) -> Iterator[dict[str, Any]]:
    """Give the series of a table, those without rows too, and of which range they are proved."""
    nothing = {"rows": 0, "first": None, "last": None}
    noted = {one for one in ranges if one[0] in OPERATIONS and table_of(OPERATIONS[one[0]]) == name}
    for operation, subject in sorted({*spans, *noted}):
        known = ranges.get((operation, subject), ())
        rows = spans.get((operation, subject), nothing)
        yield {
            "operation": operation,
            "subject": subject,
            **rows,
            "covered_from": known[0][0] if known else None,
            "covered_until": known[-1][1] if known else None,
            "gaps": _gaps(known, rows["first"], rows["last"]),
        }


def _gaps(ranges: Sequence[tuple[int, int]], first: int | None, last: int | None) -> int:
    """Count the stretches, up to the last row, that no refresh has proved complete."""
    if first is None or last is None:
        return max(len(ranges) - 1, 0)
    if not ranges:
        return 1
    return len(ranges) - 1 + (first < ranges[0][0]) + (ranges[-1][1] < last)


def _answers(tables: Tables, handle: Any) -> Iterator[dict[str, Any]]:
    rows = tables.read(handle, ["_operation", "_subject", "_fetched"])
    grouped = rows.group_by(["_operation", "_subject"]).aggregate(
        [("_fetched", "count"), ("_fetched", "min"), ("_fetched", "max")]
    )
    for one in sorted(grouped.to_pylist(), key=lambda one: (one["_operation"], one["_subject"])):
        yield {
            "operation": one["_operation"],
            "subject": one["_subject"],
            "rows": one["_fetched_count"],
            "first": one["_fetched_min"],
            "last": one["_fetched_max"],
            "covered_from": None,
            "covered_until": None,
            "gaps": 0,
        }


def present_ms(tables: Tables) -> int:
    """Give the archive's present: the last moment that anything was refreshed up to."""
    last = [0]
    for name, column in ((PULLS, "until"), (ANSWERS, "_fetched")):
        handle = tables.handle(name)
        if handle is not None:
            last.append(pc.max(tables.read(handle, [column])[column]).as_py() or 0)
    return max(last)


def _time_of(name: str) -> str:
    times = [one.name for one in SCHEMAS[name] if pa.types.is_timestamp(one.type)]
    return str(times[0])
