"""Freezes: a manifest under an id, with the version and the digest of each table.

Compaction never removes a version that a freeze names.
"""

import contextlib
import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from toolkit.archive.errors import CommitConflict
from toolkit.archive.pulls import present_ms
from toolkit.archive.schemas import FREEZES, SCHEMAS
from toolkit.archive.storage import ArchiveTables, digest_rows, format_digest, identity_columns
from toolkit.errors import ArchiveError

__all__ = [
    "frozen_versions",
    "make_freeze",
    "read_manifest",
    "table_digest",
    "unconfirmed_freezes",
]


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


def make_freeze(tables: ArchiveTables, progress: Callable[[int], object] | None = None) -> str:
    """Store the versions and digests of all tables, and return the id of the freeze.

    The id is a hash of the manifest, so freezing the same version twice gives the same id.

    Raises
    ------
    ArchiveError
        If the archive is empty.
    """
    made_ms, pinned = present_ms(tables), tables.pin_versions()
    if not pinned.versions:
        raise ArchiveError(f"there is nothing in {tables.location} to freeze: refresh it first")
    manifest = {
        name: {"version": version, "digest": table_digest(pinned, name, progress)}
        for name, version in pinned.versions.items()
    }
    text = json.dumps({"tables": manifest}, sort_keys=True)
    freeze_id = f"f{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    row = {"id": freeze_id, "made_ms": made_ms, "manifest": text}
    rows = pa.Table.from_pylist([row], schema=SCHEMAS[FREEZES])
    # Delta finds a missing entry between two others, but not the last one. So a second commit
    # follows, without rows: `unconfirmed_freezes` finds it missing, and Delta the first.
    for commit, content in ((1, rows), (2, rows.slice(0, 0))):
        handle = tables.open_for_append(FREEZES)
        is_known = ds.field("id") == freeze_id
        if commit == 1 and tables.read_rows(handle, ["id"], is_known).num_rows:
            continue
        if (handle.transaction_version(_freeze_transaction(freeze_id)) or 0) < commit:
            with contextlib.suppress(CommitConflict):  # another process makes the same freeze
                tables.append_rows(handle, content, counts={_freeze_transaction(freeze_id): commit})
    return freeze_id


def unconfirmed_freezes(tables: ArchiveTables) -> list[str]:
    """Return the ids of freezes whose second entry in the log is missing."""
    handle = tables.open_table(FREEZES)
    ids = [] if handle is None else tables.read_rows(handle, ["id"])["id"].to_pylist()
    # Older versions made one commit without a transaction.
    return [id for id in ids if handle.transaction_version(_freeze_transaction(id)) == 1]


def _freeze_transaction(freeze_id: str) -> str:
    return f"freeze {freeze_id}"


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
