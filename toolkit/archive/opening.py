"""`open` an archive."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from toolkit.archive.archive import Archive
from toolkit.archive.freezing import manifest_of
from toolkit.archive.tables import Tables
from toolkit.errors import ArchiveError

__all__ = ["open"]

_FROZEN: Final = re.compile(r"(?P<location>.+)@(?P<id>f[0-9a-f]{16})")
_PLAIN: Final = re.compile(r"[a-z0-9]+://[^@?#]+")


def open(
    path: str | Path,
    *,
    frozen: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Archive:
    """Open an archive: a folder, or an address such as ``s3://bucket/prefix``.

    Nothing is written until it is refreshed; a folder that is not there is an empty archive.

    Parameters
    ----------
    path : str or Path
        Where it is, or shall be. ``<path>@<id>`` opens a freeze.
    frozen : str, optional
        The id of a freeze: exactly its rows are read, and nothing is written.
    storage_options : mapping of str to str, optional
        What an object store needs, by the names of `deltalake`; else the environment's, such as
        ``AWS_ACCESS_KEY_ID``. They are never shown, and not written into the archive.

    Returns
    -------
    Archive

    Raises
    ------
    ArchiveError
        If there is no such freeze, or credentials stand in the address.

    Examples
    --------
    >>> import tempfile
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny")
    >>> user = session.world["users"][0]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     archive = open(folder)
    ...     done = archive.refresh(tk.user_fills_by_time, user, 0)
    ...     fills = archive.frame(tk.user_fills_by_time, user)
    >>> fills.equals(tk.user_fills_by_time(user, 0))
    True
    """
    location = str(path)
    if frozen is None and (named := _FROZEN.fullmatch(location)):
        location, frozen = named["location"], named["id"]
    if "://" in location and not _PLAIN.fullmatch(location):
        raise ArchiveError(
            "an archive's address is scheme://bucket/prefix and nothing else: credentials belong "
            "into the environment (AWS_ACCESS_KEY_ID, ...) or storage_options"
        )
    tables = Tables(location, storage_options)
    if frozen is None:
        return Archive(tables)
    manifest = manifest_of(tables, frozen)
    versions = {name: one["version"] for name, one in manifest.items()}
    return Archive(Tables(location, storage_options, versions), frozen, manifest)
