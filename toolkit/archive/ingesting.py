"""What was fetched before there was an archive: recorded answers, and frames."""

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import msgspec
import pandas as pd
import pyarrow as pa

from toolkit.archive.layout import (
    ANSWERS,
    SCHEMAS,
    Origin,
    Series,
    is_history,
    operation_named,
    series_of,
)
from toolkit.archive.refreshing import Refreshed, append_known
from toolkit.archive.tables import Tables
from toolkit.contract.answers import decode
from toolkit.contract.columns import Column, table_columns
from toolkit.contract.operations import OPERATIONS, Operation
from toolkit.errors import ArchiveError, ToolkitError
from toolkit.frames import provenance
from toolkit.times import to_ms

__all__ = ["ingest_frame", "ingest_recordings"]

_FACTS: Final = frozenset({"start", "end", "cursor", "page_size"})


def ingest_recordings(tables: Tables, path: Path) -> dict[str, dict[str, Any]]:
    """Keep recorded answers; see `Archive.ingest`."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    kept: dict[str, int] = {}
    left: dict[str, str] = {}
    for file in files:
        try:
            kept[file.name] = _ingest_file(tables, file)
        except (ToolkitError, TypeError, KeyError, OSError, msgspec.DecodeError) as error:
            left[file.name] = str(error) or type(error).__name__
    return {"kept": kept, "left": left}


class _Recording(msgspec.Struct):
    request: dict[str, Any]
    response: msgspec.Raw
    status: int = 200


def _ingest_file(tables: Tables, file: Path) -> int:
    recording = msgspec.json.decode(file.read_bytes(), type=_Recording)
    operation = operation_named(str(recording.request.get("type")))
    if recording.status != 200 or operation.binary:
        raise ArchiveError(f"it is no answer of {operation.type} in JSON")
    named = _parameters(operation, recording.request)
    body, at = bytes(recording.response), file.stat().st_mtime_ns // 1_000_000
    origin = Origin(f"recording {file.name}", False, at)
    if not is_history(operation):
        return _keep_answer(tables, series_of(operation, (), named), body, origin)
    start = named.pop("start", None)
    kept = {name: value for name, value in named.items() if name not in _FACTS}
    texts = [bytes(one) for one in msgspec.json.decode(body, type=list[msgspec.Raw])]
    return append_known(tables, series_of(operation, (), kept), texts, start, origin).rows


def _parameters(operation: Operation, request: dict[str, Any]) -> dict[str, Any]:
    return {
        operation.by_wire[name].python: value
        for name, value in request.items()
        if name in operation.by_wire and value is not None
    }


def _keep_answer(tables: Tables, series: Series, body: bytes, origin: Origin) -> int:
    decode(series.operation, 200, {}, body, parameters=series.parameters)  # it can be read again
    row = {
        "_operation": series.operation.type,
        "_subject": series.subject,
        "_body": body,
        "_headers": "{}",
        "_source": origin.source,
        "_simulated": origin.simulated,
        "_fetched": origin.fetched_ms,
    }
    handle = tables.handle_to_write(ANSWERS)
    tables.append(handle, pa.Table.from_pylist([row], schema=SCHEMAS[ANSWERS]))
    return 1


def ingest_frame(tables: Tables, frame: pd.DataFrame) -> Refreshed:
    """Keep a fetched history; see `Archive.ingest`."""
    facts = provenance(frame)
    operation = OPERATIONS[facts["operation"]]
    if not is_history(operation) or facts.get("complete") != "yes":
        raise ArchiveError(
            f"{operation.type}: only complete histories are ingested from frames, since a frame "
            "of anything else does not say what was left out: refresh instead"
        )
    given = facts["parameters"]
    named = {
        one.python: given[one.python]
        for one in operation.parameters
        if one.python in given and one.python not in _FACTS
    }
    series = series_of(operation, (), named)
    columns = table_columns(operation.tables[0])
    texts = [msgspec.json.encode(row) for row in _wire_rows(operation, columns, frame)]
    origin = Origin(facts["source"], facts["simulated"], to_ms(facts["asked_at"]))
    return append_known(tables, series, texts, given.get("start"), origin)


def _wire_rows(
    operation: Operation, columns: Sequence[Column], frame: pd.DataFrame
) -> list[dict[str, Any]]:
    """Write rows as the wire has them; what is missing in the frame is left out."""
    rows: list[dict[str, Any]] = [{} for _ in range(len(frame))]
    for column in columns:
        values = pa.Array.from_pandas(frame[column.name]).to_pylist()
        for row, value in zip(rows, values, strict=True):
            if value is None or value == []:
                continue
            if column.kind.family == "nested":
                raise ArchiveError(
                    f"{operation.type}: {column.name} holds records inside a cell, which cannot "
                    "be written as they came: refresh instead"
                )
            *outer, last = column.wire.split(".")
            for name in outer:
                row = row.setdefault(name, {})
            row[last] = _wire(column, value)
    return rows


def _wire(column: Column, value: Any) -> Any:
    if column.kind.family == "time":
        return pd.Timestamp(value).value // 1_000_000
    if column.kind.family == "number" and column.type is str:
        if isinstance(value, Decimal):
            return f"{value.normalize():f}"
        return value if isinstance(value, str) else repr(value)
    return float(value) if column.kind.family == "number" else value
