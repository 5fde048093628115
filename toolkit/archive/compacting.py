"""Many small files made few, beside readers and writers."""

import contextlib
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final

from toolkit.archive.freezing import frozen_manifests
from toolkit.archive.tables import Beaten, Tables, sizes, writer

__all__ = ["compact"]

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
