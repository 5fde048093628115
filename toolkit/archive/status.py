"""What is in an archive, and which versions of it are kept by name."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from toolkit.archive.layout import ANSWERS, FREEZES, PULLS, RECORDS, SCHEMAS, Series
from toolkit.archive.reading import covered
from toolkit.archive.tables import Beaten, Tables
from toolkit.contract.operations import OPERATIONS
from toolkit.errors import ArchiveError
from toolkit.times import to_ms

__all__ = [
    "contents",
    "freeze",
    "frozen_manifests",
    "manifest_of",
    "present_ms",
    "series_in",
    "status",
]

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
    "table_bytes",
)
_TRIES: Final = 20


def series_in(tables: Tables, name: str) -> Iterator[dict[str, Any]]:
    """Give each series of a record's table, with its rows, first and last time in milliseconds."""
    handle = tables.handle(name)
    if handle is None:
        return
    time = _time_of(name)
    rows = tables.read(handle, ["_operation", "_subject", time])
    grouped = rows.group_by(["_operation", "_subject"]).aggregate(
        [(time, "count"), (time, "min"), (time, "max")]
    )
    for one in sorted(grouped.to_pylist(), key=lambda one: (one["_operation"], one["_subject"])):
        yield {
            "operation": one["_operation"],
            "subject": one["_subject"],
            "rows": one[f"{time}_count"],
            "first": one[f"{time}_min"],
            "last": one[f"{time}_max"],
        }


def status(tables: Tables) -> pd.DataFrame:
    """Say what is archived; see `Archive.status`."""
    rows: list[dict[str, Any]] = []
    for name in (*RECORDS, ANSWERS):
        handle = tables.handle(name)
        if handle is None:
            continue
        facts = {"table": name, "version": handle.version(), "table_bytes": _bytes(handle)}
        found = _answers(tables, handle) if name == ANSWERS else _histories(tables, name)
        rows += [facts | one for one in found]
    made = pd.DataFrame(rows, columns=list(_COLUMNS))
    for column in ("first", "last", "covered_from", "covered_until"):
        made[column] = pd.to_datetime(made[column], utc=True, unit="ms").astype(
            "datetime64[ms, UTC]"
        )
    return made


def _histories(tables: Tables, name: str) -> Iterator[dict[str, Any]]:
    """Give the series of a table, those without rows too."""
    found = {(one["operation"], one["subject"]): one for one in series_in(tables, name)}
    for operation, subject in sorted({*found, *_pulled(tables, name)}):
        ranges = covered(tables, Series(OPERATIONS[operation], subject, {}))
        rows = found.get((operation, subject), {"rows": 0, "first": None, "last": None})
        yield {
            "operation": operation,
            "subject": subject,
            "rows": rows["rows"],
            "first": None if rows["first"] is None else _ms(rows["first"]),
            "last": None if rows["last"] is None else _ms(rows["last"]),
            "covered_from": ranges[0][0] if ranges else None,
            "covered_until": ranges[-1][1] if ranges else None,
            "gaps": max(len(ranges) - 1, 0),
        }


def _pulled(tables: Tables, name: str) -> set[tuple[str, str]]:
    handle = tables.handle(PULLS)
    if handle is None:
        return set()
    rows = tables.read(handle, ["_operation", "_subject"]).to_pylist()
    return {
        (one["_operation"], one["_subject"])
        for one in rows
        if OPERATIONS[one["_operation"]].tables[0].record is RECORDS[name]
    }


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


def contents(tables: Tables, name: str) -> str:
    """Give a digest of a table's rows: the same in any order, in any files."""
    handle = tables.handle(name)
    total = 0
    if handle is not None:
        chosen = [one.name for one in SCHEMAS[name]] if name not in RECORDS else _IDENTITY
        for batch in tables.batches(handle, chosen):
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                text = "\0".join(map(_written, row))
                total += int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")
    return f"{total % 2**256:064x}"


_IDENTITY: Final = ["_operation", "_subject", "_json"]


def freeze(tables: Tables, made_ms: int) -> str:
    """Name the present versions; see `Archive.freeze`."""
    held = {}
    for name in tables.names():
        if name != FREEZES:
            handle = tables.handle(name)
            pinned = Tables(tables.location, tables.options, {name: handle.version()})
            held[name] = {"version": handle.version(), "digest": contents(pinned, name)}
    if not held:
        raise ArchiveError(f"there is nothing in {tables.location} to freeze: refresh it first")
    manifest = json.dumps({"tables": held}, sort_keys=True)
    name = f"f{hashlib.sha256(manifest.encode()).hexdigest()[:16]}"
    for _ in range(_TRIES):
        handle = tables.handle_to_write(FREEZES)
        if tables.read(handle, ["id"], ds.field("id") == name).num_rows:
            break
        row = {"id": name, "made_ms": made_ms, "manifest": manifest}
        try:
            tables.append(handle, pa.Table.from_pylist([row], schema=SCHEMAS[FREEZES]))
            break
        except Beaten:
            continue
    return name


def manifest_of(tables: Tables, name: str) -> Mapping[str, Any]:
    """Give the versions and digests that a freeze names, by table.

    Raises
    ------
    ArchiveError
        If there is no such freeze.
    """
    handle = tables.handle(FREEZES)
    found = []
    if handle is not None:
        found = tables.read(handle, where=ds.field("id") == name)["manifest"].to_pylist()
    if not found:
        raise ArchiveError(f"{tables.location} has no freeze {name!r}")
    manifest: Mapping[str, Any] = json.loads(found[0])["tables"]
    return manifest


def frozen_manifests(tables: Tables) -> list[Mapping[str, Any]]:
    """Give what every freeze names."""
    handle = tables.handle(FREEZES)
    rows = [] if handle is None else tables.read(handle, ["manifest"])["manifest"].to_pylist()
    return [json.loads(one)["tables"] for one in rows]


def _time_of(name: str) -> str:
    times = [one.name for one in SCHEMAS[name] if pa.types.is_timestamp(one.type)]
    return str(times[0])


def _bytes(handle: Any) -> int:
    return sum(pa.table(handle.get_add_actions(flatten=True))["size_bytes"].to_pylist())


def _ms(moment: Any) -> int:
    return to_ms(moment)


def _written(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
