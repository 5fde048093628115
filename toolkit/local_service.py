"""The composition root: simulation, recordings or archive -> store -> service -> session."""

import hashlib
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import httpx
import numpy as np

from toolkit.client import Recipe, Session, connect
from toolkit.contract.dexes import canonical_dex
from toolkit.contract.sources import Sources
from toolkit.contract.worlds import checked_seed
from toolkit.service import Access, Key, Moving, Site, Store, Upstream, build, latest_of
from toolkit.service.keeping import keep
from toolkit.service.recordings import read_recordings

if TYPE_CHECKING:
    from toolkit.simulation import World

__all__ = [
    "InProcess",
    "archived_store",
    "local",
    "recorded_store",
    "simulated_store",
    "site_of",
    "tiled_store",
]

_KEY: Final = "local"  # nobody else can ask the service in this process
_DIGESTED: Final = ("simulation", "service", "contract", "rules")
_SIZES: Final = ("tiny", "demo", "large")


def local(
    seed: int = 7,
    size: str = "demo",
    *,
    recordings: str | Path | None = None,
    archive: str | Path | None = None,
    cursors: Literal["exclusive", "inclusive"] = "exclusive",
    clock: Literal["fixed", "live"] = "fixed",
    key: str | None = None,
    strict: bool = False,
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
        ``tiny`` (40 accounts, 3 days), ``demo`` (250 accounts, 30 days), or ``large``: ten
        million fills of 5,750 accounts, which take minutes and gigabytes of disk.
    recordings : path, optional
        A folder of recorded answers of the exchange's own info API to serve instead of a
        simulation: JSON files with ``request``, ``status`` and ``response``. What cannot be
        served is listed in ``world["not_served"]``; that what was not recorded is missing stands
        in the ``history`` of every frame.
    archive : path, optional
        An archive of `tk.archive` to serve instead; ``"folder@id"`` serves one of its freezes.
        What it does not prove to be all there is, is `Incomplete`.
    cursors : {"exclusive", "inclusive"}, default "exclusive"
        Whether a page begins after its cursor's rows or with them.
    clock : {"fixed", "live"}, default "fixed"
        Whether the present stands at the end of the history, or goes on from there: depth moves
        every second, account values, TWAPs and their snapshot's id every 20 seconds, auctions
        fall. It depends on seed and present alone; a simulated exchange only.
    key : str, optional
        The only API key that the service takes, and that the session sends.
    strict : bool, default False
        Whether the service answers exactly the specification and its 22 operations. By default
        it also has the fields and operations that the live service is known to add.
    default : bool, default True
        Whether the session becomes the default for all fetch functions.

    Returns
    -------
    Session
        Its ``world`` says what is in it: users, builders, coins, first and last time.

    Raises
    ------
    ValueError
        If there is no such size, clock or reading of cursors, or no recording; if the seed is
        negative or has more than 63 bits; or if recordings or an archive shall run on.
    TypeError
        If the seed is no whole number.
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
        store = archived_store(archive, strict=strict)
    elif recordings is not None:
        store = recorded_store(Path(recordings), strict=strict)
    else:
        store = simulated_store(seed, size, strict=strict)
    access = Access([Key("local", key or _KEY)])
    site = site_of(store, access, inclusive=cursors == "inclusive", clock=clock)
    session = connect(
        "http://local",
        key or _KEY,
        transport=InProcess(site),
        label=store.about["label"],
        simulated=store.about["simulated"],
        world=store.about["world"],
        now_ms=site.now_ms,
        default=default,
    )
    session.source.in_process = True
    if isinstance(store.about["world"], Mapping) and "dexes" in store.about["world"]:
        session.dexes = len({"", *map(canonical_dex, store.about["world"]["dexes"])})
    source = {"seed": seed, "size": size, "recordings": recordings, "archive": archive}
    session.set_recipe(
        Recipe(local, source | {"cursors": cursors, "clock": clock, "strict": strict}, False)
    )
    return session


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
    now_ms: Callable[[], int] | None = None,
) -> Site:
    """Make the service of a store.

    Parameters
    ----------
    store : Store
        What to answer from.
    access : Access
        Who may ask.
    inclusive : bool, default False
        Whether a page begins with its cursor's rows, or after them.
    clock : {"fixed", "live"}, default "fixed"
        Whether the present stands at the end of the store's history, or goes on from there.
    upstream : Upstream, optional
        Who answers the operations that mirror the exchange's info API.
    now_ms : callable, optional
        Gives the present of a live clock, for those who move it by hand.

    Raises
    ------
    ValueError
        If there is no such clock, or the store does not hold a simulated exchange to run on.
    """
    if clock not in ("fixed", "live"):
        raise ValueError(f"clock is 'fixed' or 'live', not {clock!r}")
    end = store.about["now_ms"]
    present = _standing(end) if clock == "fixed" else now_ms or _running(end)
    return Site(
        store,
        access,
        now_ms=present,
        at_ms=_wall_clock,
        inclusive=inclusive,
        upstream=upstream,
        moving=None if clock == "fixed" else _moving(store),
    )


def simulated_store(
    seed: int, size: str, folder: Path | None = None, *, strict: bool = False
) -> Store:
    """Give the store of a simulated exchange, from the cache where it is there.

    The file's name says seed, size, version, and the hash of the code that made it. A damaged
    file is built anew; of several processes that want the same, one builds it.

    Parameters
    ----------
    seed : int
        What it is drawn from.
    size : str
        ``tiny``, ``demo`` or ``large``.
    folder : Path, optional
        Where to keep it; by default the user's cache folder.
    strict : bool, default False
        Whether it holds nothing beyond the specification.

    Raises
    ------
    ValueError
        If there is no such size, or the seed is negative or has more than 63 bits.
    TypeError
        If the seed is no whole number.
    OSError
        If a large one cannot be written; a smaller one is then kept in memory, with a warning.
    """
    seed = checked_seed(seed)
    if size not in _SIZES:
        raise ValueError(f"there is no size {size!r}: choose one of {', '.join(_SIZES)}")
    folder = folder or _cache_folder()
    mode = "-strict" if strict else ""
    path = folder / f"{size}-{seed}{mode}-{_version()}.db"
    draw = cache(partial(_draw, seed, size))

    def make(path: Path) -> Store:
        if size == "large":
            return tiled_store(seed, path, strict=strict)
        return _build(draw(), path, strict)

    try:
        return keep(path, make, _announce_waiting)
    except OSError as error:
        words = f"{folder} cannot keep the simulated exchange: {error}"
        if size == "large":  # nor can memory
            raise OSError(f"{words}; it takes 3 GB") from error
        warnings.warn(words, stacklevel=2)
        return _build(draw(), None, strict)


def _draw(seed: int, size: str) -> "World":
    from toolkit.simulation import simulate

    _announce(seed, size)
    return simulate(seed, size)


def _build(world: "World", path: Path | None, strict: bool) -> Store:
    return build(world.sources, path, world=world.about(), strict=strict)


def tiled_store(
    seed: int, path: Path, count: int = 23, size: str = "demo", *, strict: bool = False
) -> Store:
    """Build the store of a large exchange, of which no more than one tile is ever in memory.

    Parameters
    ----------
    seed, count, size : int, int, str
        As `toolkit.simulation.Tiled` takes them; by default it holds ten million fills.
    path : Path
        The file to write; it appears only when it is complete.
    strict : bool, default False
        Whether it holds nothing beyond the specification.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    from toolkit.simulation import Tiled

    _announce(seed, "large")
    tiled = Tiled(seed, count, size)
    return build(_watched(tiled, count), path, world=tiled.summary, strict=strict)


def _watched(parts: Iterable[Sources], count: int) -> Iterator[Sources]:
    """Show how many tiles are done, where somebody watches."""
    from tqdm import tqdm

    with tqdm(total=count, unit="tile", disable=not _is_watched(), leave=False) as bar:
        for part in parts:
            yield part
            del part  # while the next one is drawn, this one shall not be in memory
            bar.update(bar.n < count)  # the last part, the market's, is no tile


def recorded_store(folder: Path, *, strict: bool = False) -> Store:
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
    return build(recordings.sources, world=recordings.world, strict=strict)


def archived_store(archive: str | Path, *, strict: bool = False) -> Store:
    """Give a store of what an archive holds; operations that it cannot serve are in ``world``.

    Raises
    ------
    ArchiveError
        If there is no such archive or freeze, or it is damaged.
    """
    from toolkit.archive import world_of

    sources, world = world_of(str(archive))
    return build(sources, world=world, strict=strict)


def _moving(store: Store) -> Moving:
    """Give what moves on from the end of a store's history."""
    seed = (store.about["world"] or {}).get("seed")
    if seed is None:
        # What was recorded ends where it ends; inventing what came next would not be told apart.
        raise ValueError(
            "clock='live' runs a simulated exchange on; recordings and archives stand at their "
            "end: leave clock out"
        )
    from toolkit.simulation.live import LiveExchange

    return Moving(LiveExchange(seed, latest_of(store)))


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


def _version() -> str:
    """Name the release, and the code that makes a world and its store: other code, other file."""
    # NumPy does not promise the same draws in every version.
    digest = hashlib.sha256(np.__version__.encode())
    package = Path(__file__).parent
    files = [file for part in _DIGESTED for file in sorted((package / part).rglob("*.py"))]
    for file in [package / "times.py", *files]:
        digest.update(file.read_bytes())
    return f"{version('exchange-toolkit')}-{digest.hexdigest()[:16]}"


def _announce(seed: int, size: str) -> None:
    """Say that it takes a moment, where somebody watches."""
    if size != "tiny":
        _say(f"simulating the {size} exchange, seed {seed}: once, then kept")


def _announce_waiting() -> None:
    _say("another process is simulating the same exchange: waiting for it")


def _say(words: str) -> None:
    if _is_watched():
        print(words, file=sys.stderr)


def _is_watched() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()
