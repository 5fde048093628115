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
_LIKE_AN_ID: Final = re.compile(r"f[0-9a-fA-F]{7,}")
_ESCAPE: Final = re.compile(r"%[0-9a-fA-F]{2}")
_ADDRESS: Final = re.compile(r"(?P<scheme>[a-z0-9+]+)://[^@?#]+")
_SCHEMES: Final = ("s3", "s3a", "gs", "az", "abfs", "abfss", "file")


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
        If there is no such freeze, the path is of no folder and no store's, or credentials stand
        in the address.

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
    if not isinstance(path, str | Path):
        raise TypeError(f"an archive's path is a str or a Path, not {path!r}")
    location = str(path)
    if frozen is None and (named := _FROZEN.fullmatch(location)):
        location, frozen = named["location"], named["id"]
    _check_address(location) if "://" in location else _check_folder(location)
    tables = Tables(location, storage_options)
    if frozen is None:
        return Archive(tables)
    manifest = manifest_of(tables, frozen)
    versions = {name: one["version"] for name, one in manifest.items()}
    return Archive(Tables(location, storage_options, versions), frozen, manifest)


def existing(path: str | Path) -> Archive:
    """Open an archive that is there: one that is misspelt shall not pass for an empty one.

    Raises
    ------
    ArchiveError
        If there is none.
    """
    found = open(path)
    if not found.tables.any():
        raise ArchiveError(f"there is no archive in {found.tables.location}")
    return found


def _check_address(location: str) -> None:
    address = _ADDRESS.fullmatch(location)
    if address is None:
        raise ArchiveError(
            "an archive's address is scheme://bucket/prefix and nothing else: credentials belong "
            "into the environment (AWS_ACCESS_KEY_ID, ...) or storage_options"
        )
    if address["scheme"] not in _SCHEMES:
        known = ", ".join(f"{one}://" for one in _SCHEMES)
        raise ArchiveError(f"{location}: no archive lies there: an address begins with {known}")


def _check_folder(location: str) -> None:
    folder, _, wanted = location.rpartition("@")
    if not location:
        raise ArchiveError("an archive's path is empty: give its folder, or its address")
    if escape := _ESCAPE.search(str(Path(location).absolute())):
        raise ArchiveError(
            f"{location}: no archive can lie there: {escape[0]} in the name of a folder would be "
            "read as the sign that it stands for in an address; name it otherwise"
        )
    if Path(location).exists():
        if not Path(location).is_dir():
            raise ArchiveError(f"{location} is a file: an archive is a folder")
    elif _LIKE_AN_ID.fullmatch(wanted) and Path(folder).is_dir():
        raise ArchiveError(
            f"{folder} has no freeze {wanted!r}: the id of one is f and 16 hexadecimal digits, as "
            "Archive.freeze gives it"
        )
