"""The composition root: simulation, recordings or archive -> store -> service -> session."""

import contextlib
import hashlib
import os
import sys
import time
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal

import httpx

from toolkit.client import Session, connect
from toolkit.service import Access, Key, Site, Store, StoreDamaged, Upstream, build, open_store
from toolkit.service.recordings import read_recordings

__all__ = ["InProcess", "archived_store", "local", "recorded_store", "simulated_store", "site_of"]

_KEY: Final = "local"  # nobody else can ask the service in this process
_DIGESTED: Final = ("simulation", "service", "contract", "rules")
_KEPT: Final = 8  # worlds in the cache
_HOUR: Final = 3_600  # seconds; no build takes longer


def local(
    seed: int = 7,
    size: str = "demo",
    *,
    recordings: str | Path | None = None,
    archive: str | Path | None = None,
    cursors: Literal["exclusive", "inclusive"] = "exclusive",
    clock: Literal["fixed", "live"] = "fixed",
    key: str | None = None,
    default: bool = True,
) -> Session:
    """Connect to the whole service in this process: no network, no port, no thread.

    The first call with a seed and a size simulates the exchange and keeps it on disk; later ones
    read it from there.

    Parameters
    ----------
    seed : int, default 7
        What the simulated exchange is drawn from.
    size : str, default "demo"
        ``tiny`` (40 accounts, 3 days) or ``demo`` (250 accounts, 30 days).
    recordings : path, optional
        A folder of recorded answers to serve instead of a simulation.
    archive : path, optional
        An archive of `tk.archive` to serve instead; ``"folder@id"`` serves one of its freezes.
    cursors : {"exclusive", "inclusive"}, default "exclusive"
        Whether a page begins after its cursor's rows or with them.
    clock : {"fixed", "live"}, default "fixed"
        Whether the present stands at the end of the history, or goes on from there.
    key : str, optional
        The only API key that the service takes, and that the session sends.
    default : bool, default True
        Whether the session becomes the default for all fetch functions.

    Returns
    -------
    Session
        Its ``world`` says what is in it: users, builders, coins, first and last time.

    Raises
    ------
    ValueError
        If there is no such size, clock or reading of cursors, or no recording.
    ArchiveError
        If there is no such archive or freeze, or it is damaged.

    Examples
    --------
    >>> session = local(seed=7, size="tiny", default=False)
    >>> len(session.world["users"]), session.simulated
    (40, True)
    """
    if cursors not in ("exclusive", "inclusive"):
        raise ValueError(f"cursors is 'exclusive' or 'inclusive', not {cursors!r}")
    if recordings is not None and archive is not None:
        raise ValueError("recordings and archive are two sources: give one of them")
    if archive is not None:
        store = archived_store(archive)
    elif recordings is not None:
        store = recorded_store(Path(recordings))
    else:
        store = simulated_store(seed, size)
    access = Access([Key("local", key or _KEY)])
    site = site_of(store, access, inclusive=cursors == "inclusive", clock=clock)
    return connect(
        "http://local",
        key or _KEY,
        transport=InProcess(site),
        label=store.about["label"],
        simulated=store.about["simulated"],
        world=store.about["world"],
        now_ms=site.now_ms,
        default=default,
    )


class InProcess(httpx.BaseTransport):
    """Carries requests to a `Site` in the same process: the same bytes as on a socket."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        answer = self._site.respond(request.method, request.url.path, headers, request.read())
        return httpx.Response(
            answer.status,
            headers=dict(answer.headers),
            stream=httpx.ByteStream(answer.content),
            request=request,
        )

    def close(self) -> None:
        """Close the store."""
        self._site.store.close()


def site_of(
    store: Store,
    access: Access,
    *,
    inclusive: bool = False,
    clock: Literal["fixed", "live"] = "fixed",
    upstream: Upstream | None = None,
) -> Site:
    """Make the service of a store; its present is the store's, or goes on from it."""
    if clock not in ("fixed", "live"):
        raise ValueError(f"clock is 'fixed' or 'live', not {clock!r}")
    end = store.about["now_ms"]
    present = _standing(end) if clock == "fixed" else _running(end)
    return Site(
        store, access, now_ms=present, at_ms=_wall_clock, inclusive=inclusive, upstream=upstream
    )


def simulated_store(seed: int, size: str, folder: Path | None = None) -> Store:
    """Give the store of a simulated exchange, from the cache where it is there.

    Parameters
    ----------
    seed : int
        What it is drawn from.
    size : str
        ``tiny`` or ``demo``.
    folder : Path, optional
        Where to keep it; by default the user's cache folder.

    Raises
    ------
    ValueError
        If there is no such size.
    """
    folder = folder or _cache_folder()
    path = folder / f"{size}-{seed}-{_digest()}.db"
    if path.exists():
        try:
            store = open_store(path)
        except StoreDamaged:
            path.unlink(missing_ok=True)
        else:
            _mark_used(path)
            return store
    from toolkit.simulation import simulate

    _announce(seed, size)
    world = simulate(seed, size)
    summary = {**world.summary(), "examples": world.examples}
    try:
        store = build(world.sources, path, world=summary)
    except OSError as error:
        warnings.warn(f"{folder} cannot keep the simulated exchange: {error}", stacklevel=2)
        return build(world.sources, world=summary)
    _forget_old(folder, path)
    return store


def recorded_store(folder: Path) -> Store:
    """Give a store of recorded answers; a file that is no recording is named in a warning.

    Recordings of operations that are not served are listed in ``world["not_served"]``.

    Raises
    ------
    ValueError
        If there is no recording to serve.
    """
    recordings = read_recordings(folder)
    if recordings.damaged:
        files = "; ".join(recordings.damaged)
        warnings.warn(f"these files are no recordings: {files}", stacklevel=3)
    return build(recordings.sources, world=recordings.world)


def archived_store(archive: str | Path) -> Store:
    """Give a store of what an archive holds; operations that it cannot serve are in ``world``.

    Raises
    ------
    ArchiveError
        If there is no such archive or freeze, or it is damaged.
    """
    from toolkit.archive import world_of

    sources, world = world_of(str(archive))
    return build(sources, world=world)


def _standing(end: int) -> Callable[[], int]:
    return lambda: end


def _running(end: int) -> Callable[[], int]:
    started = time.monotonic_ns()
    return lambda: end + (time.monotonic_ns() - started) // 1_000_000


def _wall_clock() -> int:
    return time.time_ns() // 1_000_000


def _cache_folder() -> Path:
    import platformdirs

    return platformdirs.user_cache_path("exchange-toolkit") / "worlds"


def _digest() -> str:
    """Name the code that makes a world and its store: other code, other file."""
    digest = hashlib.sha256()
    package = Path(__file__).parent
    for part in _DIGESTED:
        for file in sorted((package / part).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _forget_old(folder: Path, kept: Path) -> None:
    """Remove the worlds that were used longest ago, and what a build that was killed left."""
    aged = sorted((_last_used(file), file) for file in folder.glob("*.db") if file != kept)
    unfinished = [file for file in folder.glob(".*.db.*") if _last_used(file) < time.time() - _HOUR]
    for file in [*(file for _, file in aged[: -(_KEPT - 1)]), *unfinished]:
        file.unlink(missing_ok=True)


def _last_used(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except FileNotFoundError:  # another process has removed it
        return 0.0


def _mark_used(file: Path) -> None:
    with contextlib.suppress(OSError):
        os.utime(file)


def _announce(seed: int, size: str) -> None:
    """Say that it takes a moment, where somebody watches."""
    if size != "tiny" and sys.stderr is not None and sys.stderr.isatty():
        print(f"simulating the {size} exchange, seed {seed}: once, then kept", file=sys.stderr)


class _Callable(types.ModuleType):
    """Lets ``toolkit.local(...)`` work even where this module hides the function of its name."""

    def __call__(self, *args: Any, **kwargs: Any) -> Session:
        return local(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
