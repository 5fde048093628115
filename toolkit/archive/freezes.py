"""Freezes: versions and digests of all tables, kept under a name."""

import contextlib
import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds

from toolkit.archive.errors import Beaten
from toolkit.archive.schemas import FREEZES, SCHEMAS
from toolkit.archive.storage import Tables, digest_of, identity, sizes, writer, written
from toolkit.errors import ArchiveError

__all__ = ["compact", "contents", "freeze", "frozen_manifests", "manifest_of"]


def contents(tables: Tables, name: str, progress: Callable[[int], object] | None = None) -> str:
    """Give a digest of a table's rows: the same in any order, in any files."""
    handle = tables.handle(name)
    if handle is None:
        return written(0)
    chosen = identity([one.name for one in handle.schema().fields])
    total = 0
    for batch in tables.batches(handle, list(chosen)):
        total += digest_of(batch)
        if progress is not None:
            progress(batch.num_rows)
    return written(total)


def freeze(tables: Tables, made_ms: int, progress: Callable[[int], object] | None = None) -> str:
    """Name the present versions; see `Archive.freeze`."""
    pinned = tables.pinned()
    versions = pinned.versions
    if not versions:
        raise ArchiveError(f"there is nothing in {tables.location} to freeze: refresh it first")
    held = {
        name: {"version": version, "digest": contents(pinned, name, progress)}
        for name, version in versions.items()
    }
    manifest = json.dumps({"tables": held}, sort_keys=True)
    name = f"f{hashlib.sha256(manifest.encode()).hexdigest()[:16]}"
    handle = tables.handle_to_write(FREEZES)
    if not tables.read(handle, ["id"], ds.field("id") == name).num_rows:
        row = {"id": name, "made_ms": made_ms, "manifest": manifest}
        tables.append(handle, pa.Table.from_pylist([row], schema=SCHEMAS[FREEZES]))
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


_SMALL: Final = 64 * 2**20  # bytes; larger files are left as they are


def compact(
    tables: Tables,
    forget_after_hours: int | None,
    progress: Callable[[int], object] | None = None,
) -> int:
    """Join small files; remove those that no kept version needs, if asked. See `Archive.compact`.

    Returns
    -------
    int
        How many files there are fewer.
    """
    kept: dict[str, list[int]] = defaultdict(list)
    for manifest in frozen_manifests(tables):
        for name, facts in manifest.items():
            kept[name].append(facts["version"])
    fewer = 0
    for name in tables.names():
        with contextlib.suppress(Beaten):  # another process compacts it
            fewer += _compact_one(tables, name, kept[name], forget_after_hours)
        if progress is not None:
            progress(1)
    return fewer


def _compact_one(tables: Tables, name: str, kept: list[int], forget_after: int | None) -> int:
    handle = tables.handle_to_write(name)
    with tables.speaking(handle.table_uri):
        before = sizes(handle)
        if sum(size < _SMALL for size in before) > 1:
            _join(handle)
        if forget_after is not None:
            handle.vacuum(
                retention_hours=forget_after,
                dry_run=False,
                enforce_retention_duration=False,
                keep_versions=kept,
            )
        return len(before) - len(sizes(handle))


def _join(handle: Any) -> None:
    # Rows of one subject come to stand together: reading one reads little else.
    if "_subject" in {one.name for one in handle.schema().fields}:
        handle.optimize.z_order(["_subject"], writer_properties=writer())
    else:
        handle.optimize.compact(writer_properties=writer())
    handle.create_checkpoint()
