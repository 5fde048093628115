"""Freezes and compaction.

A freeze is a manifest under an id: the version and the digest of each table. Compaction joins
small files, and never removes a version that a freeze names.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds

from toolkit.archive.schemas import FREEZES, SCHEMAS
from toolkit.archive.storage import (
    ArchiveTables,
    digest_rows,
    file_sizes,
    format_digest,
    identity_columns,
    writer_properties,
)
from toolkit.errors import ArchiveError

__all__ = ["compact_table", "frozen_versions", "read_manifest", "table_digest", "write_manifest"]

_SMALL_FILE: Final = 64 * 2**20  # bytes; larger files are not joined


def table_digest(
    tables: ArchiveTables, name: str, progress: Callable[[int], object] | None = None
) -> str:
    """Return the digest of a table's rows. It does not depend on their order or their files."""
    handle = tables.open_table(name)
    if handle is None:
        return format_digest(0)
    columns = identity_columns([field.name for field in handle.schema().fields])
    total = 0
    for batch in tables.read_batches(handle, list(columns)):
        total += digest_rows(batch)
        if progress is not None:
            progress(batch.num_rows)
    return format_digest(total)


def write_manifest(
    tables: ArchiveTables, manifest: Mapping[str, Mapping[str, Any]], made_ms: int
) -> str:
    """Store the versions and digests of all tables, and return the id of the freeze.

    The id is a hash of the manifest, so freezing the same version twice gives the same id.
    """
    text = json.dumps({"tables": manifest}, sort_keys=True)
    freeze_id = f"f{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    handle = tables.open_for_append(FREEZES)
    if not tables.read_rows(handle, ["id"], ds.field("id") == freeze_id).num_rows:
        row = {"id": freeze_id, "made_ms": made_ms, "manifest": text}
        tables.append_rows(handle, pa.Table.from_pylist([row], schema=SCHEMAS[FREEZES]))
    return freeze_id


def read_manifest(tables: ArchiveTables, freeze_id: str) -> Mapping[str, Any]:
    """Return the manifest of a freeze: table -> its ``version`` and ``digest``.

    Raises
    ------
    ArchiveError
        If there is no such freeze.
    """
    handle = tables.open_table(FREEZES)
    texts = []
    if handle is not None:
        rows = tables.read_rows(handle, condition=ds.field("id") == freeze_id)
        texts = rows["manifest"].to_pylist()
    if not texts:
        raise ArchiveError(f"{tables.location} has no freeze {freeze_id!r}")
    manifest: Mapping[str, Any] = json.loads(texts[0])["tables"]
    return manifest


def frozen_versions(tables: ArchiveTables) -> dict[str, list[int]]:
    """Return the versions of each table that freezes name."""
    handle = tables.open_table(FREEZES)
    versions: dict[str, list[int]] = defaultdict(list)
    if handle is not None:
        for text in tables.read_rows(handle, ["manifest"])["manifest"].to_pylist():
            for name, entry in json.loads(text)["tables"].items():
                versions[name].append(entry["version"])
    return versions


def compact_table(
    tables: ArchiveTables, name: str, frozen: Sequence[int], forget_after_hours: int | None
) -> int:
    """Join the small files of a table, and return how many fewer files there are.

    Parameters
    ----------
    tables : ArchiveTables
        The archive.
    name : str
        The table.
    frozen : sequence of int
        Versions whose files must stay.
    forget_after_hours : int or None
        If given, files that no version needs are removed after so many hours.

    Raises
    ------
    CommitConflict
        If another process compacts the table.
    """
    handle = tables.open_for_append(name)
    with tables.translate_errors(handle.table_uri):
        before = file_sizes(handle)
        if sum(size < _SMALL_FILE for size in before) > 1:
            # Ordering by subject puts the rows of a subject next to each other: reading one
            # subject then reads little else.
            if "_subject" in {field.name for field in handle.schema().fields}:
                handle.optimize.z_order(["_subject"], writer_properties=writer_properties())
            else:
                handle.optimize.compact(writer_properties=writer_properties())
            handle.create_checkpoint()
        if forget_after_hours is not None:
            handle.vacuum(
                retention_hours=forget_after_hours,
                dry_run=False,
                enforce_retention_duration=False,
                keep_versions=list(frozen),
            )
        return len(before) - len(file_sizes(handle))
