"""A folder of stores that take long to build: each is built once, by one process, and kept."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from toolkit.service.store import Store, StoreDamaged, open_store

__all__ = ["keep"]

_KEPT: Final = 8  # stores in the folder
_KEPT_BYTES: Final = 10 * 2**30  # of all but the newest
_HOUR: Final = 3_600  # seconds; no build takes longer


def keep(path: Path, make: Callable[[Path], Store], wait: Callable[[], None]) -> Store:
    """Open a store, or build it where it is not there yet, is damaged, or of another version.

    Of several processes one builds, and the others wait for it. When it is killed the next one
    begins; half a file is never seen.

    Parameters
    ----------
    path : Path
        The store's file; its name says all that it depends on.
    make : callable
        Builds the store at a path.
    wait : callable
        Called once, before waiting for another process that builds it.

    Returns
    -------
    Store

    Raises
    ------
    OSError
        If it can neither be opened nor written.
    """
    found = _found(path)
    if found is None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(path, wait):
            found = _found(path) or make(path)
        _forget_old(path.parent, path)
    return found


def _found(path: Path) -> Store | None:
    try:
        store = open_store(path)
    except StoreDamaged:  # or not there; whoever builds it puts a whole file in its place
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # used just now: what was not used for longest is forgotten first
    return store


@contextlib.contextmanager
def _alone(path: Path, wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of a file that is built; the system frees it when its holder dies.

    It only saves work: files are put in place whole, so two who build at once do no harm. So
    where there are no locks, and for a holder that has stopped, it is done without.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path.with_name(f".{path.name}.lock"))
    with contextlib.suppress(Timeout, NotImplementedError):
        try:
            lock.acquire(timeout=0)
        except Timeout:
            wait()
            lock.acquire(timeout=_HOUR)
    try:
        yield
    finally:
        if lock.is_locked:
            # Gone before it is released: who comes next makes a new one.
            Path(lock.lock_file).unlink(missing_ok=True)
            lock.release()


def _forget_old(folder: Path, kept: Path) -> None:
    """Remove what was used longest ago, and what a build that was killed left."""
    stores = [file for file in folder.glob("*.db") if file != kept]
    room = _KEPT_BYTES
    for place, file in enumerate(sorted(stores, key=_last_used, reverse=True), start=1):
        room -= _size(file)
        if place >= _KEPT or room < 0:
            file.unlink(missing_ok=True)
    for file in folder.glob(".*.db.*"):
        if _last_used(file) < time.time() - _HOUR:
            file.unlink(missing_ok=True)


def _last_used(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except FileNotFoundError:  # another process has removed it
        return 0.0


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0
