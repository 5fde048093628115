"""A cache folder of stores: one process builds a store, and all processes reuse its file."""

import contextlib
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Final

from toolkit.service.store import Store, StoreDamaged, open_store

_MOST_STORES: Final = 8  # in the folder
_MOST_BYTES: Final = 10 * 2**30  # of all stores but the newest
_HOUR: Final = 3_600  # seconds; no build takes longer


def cached_store(path: Path, build: Callable[[Path], Store], on_wait: Callable[[], None]) -> Store:
    """Open a store, or build it if the file is missing, damaged, or of another version.

    A warning states that a damaged file is built again.

    If several processes need the same store, one builds it and the others wait. If that process is
    killed, the next one builds. No process ever sees an incomplete file.

    Parameters
    ----------
    path : Path
        The file of the store. Its name contains everything that the store depends on.
    build : callable
        Builds the store at a path.
    on_wait : callable
        Called once before this process waits for another one.

    Returns
    -------
    Store

    Raises
    ------
    OSError
        If the file can neither be opened nor written.
    """
    if store := _open_cached(path):
        return store
    from filelock import FileLock, Timeout

    path.parent.mkdir(parents=True, exist_ok=True)
    # The lock only saves work. A finished file replaces the old one in one step, so two builds at
    # the same time do no harm. The build goes on without a lock if the file system has none, or if
    # the owner of the lock has stopped. The system releases the lock if its owner dies.
    lock = FileLock(path.with_name(f".{path.name}.lock"))
    with contextlib.suppress(Timeout, NotImplementedError):
        try:
            lock.acquire(timeout=0)
        except Timeout:
            on_wait()
            lock.acquire(timeout=_HOUR)
    try:
        store = _open_cached(path, warns=True) or build(path)
    finally:
        if lock.is_locked:
            # Remove the file before the release: the next process creates a new one.
            Path(lock.lock_file).unlink(missing_ok=True)
            lock.release()
    with contextlib.suppress(FileNotFoundError):  # another process removes files, too
        stores = [file for file in path.parent.glob("*.db") if file != path]
        stores.sort(key=lambda file: file.stat().st_mtime, reverse=True)
        free_bytes = _MOST_BYTES  # those that were not used for the longest time are removed
        for place, file in enumerate(stores, start=1):
            free_bytes -= file.stat().st_size
            if place >= _MOST_STORES or free_bytes < 0:
                file.unlink(missing_ok=True)
        for file in path.parent.glob(".*.db.*"):  # of killed builds
            if file.stat().st_mtime < time.time() - _HOUR:
                file.unlink(missing_ok=True)
    return store


def _open_cached(path: Path, *, warns: bool = False) -> Store | None:
    """Return a store from its file, or None if the file is missing or damaged."""
    if not path.exists():
        return None
    try:
        store = open_store(path)
    except StoreDamaged as error:  # the next build replaces the file
        if warns:
            warnings.warn(f"{error}. It is built again", stacklevel=2)
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # the stores that were not used for the longest time are removed first
    return store
