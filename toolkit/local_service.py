"""The local service: simulation, recordings or archive -> store -> service -> session."""

import hashlib
import os
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

from toolkit.client import Recipe, Session, find_cache_folder, open_session
from toolkit.contract.apis import EXCHANGE, SERVICE, Api
from toolkit.contract.dexes import canonical_dex
from toolkit.contract.seeds import check_seed
from toolkit.contract.source_tables import Sources
from toolkit.public_names import publish_as
from toolkit.service import (
    AcceptedKey,
    Application,
    KeyQuotas,
    LiveDocuments,
    Store,
    Upstream,
    build_store,
    read_last_state,
)
from toolkit.service.cache import cached_store
from toolkit.service.handler_messages import CheckedRequest, Response, json_response
from toolkit.service.recordings import read_recordings, request_key

if TYPE_CHECKING:
    from toolkit.simulation import World

_KEY: Final = "local"  # only this process can reach the service
_DIGESTED: Final = ("simulation", "service", "contract", "rules")
"""The packages whose code determines the content of a store."""
_SIZES: Final = ("tiny", "demo", "large")


@publish_as("toolkit")
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
    like: Literal["service", "exchange"] = "service",
    default: bool = True,
) -> Session:
    """Connect to a complete local service in this process: no network, no port, no thread.

    The first call with a seed and a size simulates the exchange and saves it on disk. Later calls
    read it from there.

    Parameters
    ----------
    seed : int, default 7
        The seed of the simulated exchange.
    size : str, default "demo"
        ``tiny`` (40 accounts, 3 days), ``demo`` (250 accounts, 30 days), or ``large``: ten
        million fills of 5,750 accounts, which take minutes and gigabytes of disk.
    recordings : path, optional
        A folder of recorded answers of the exchange's own info API, which the service uses
        instead of a simulation: JSON files with ``request``, ``status`` and ``response``. Files
        that cannot be served are listed in ``world["not_served"]``. The ``history`` of every
        frame notes that rows without a recording are missing.
    archive : path, optional
        An archive of `tk.archive`, which the service uses instead; ``"folder@id"`` selects one of
        its freezes. A fetch raises `Incomplete` if the archive does not prove that its rows are
        complete.
    cursors : {"exclusive", "inclusive"}, default "exclusive"
        Whether a page begins after the rows at its cursor, or with them.
    clock : {"fixed", "live"}, default "fixed"
        Whether the present stays at the end of the history, or goes on from there. On a live
        clock, depth changes every second; account values, TWAPs and their snapshot ids change
        every 20 seconds; auction prices fall. The changes depend only on the seed and the
        present. Only a simulated exchange has a live clock.
    key : str, optional
        The only API key that the service accepts. The session sends it.
    strict : bool, default False
        Whether the service answers exactly the specification and its 22 operations. By default
        it also has the known fields and operations that the live service adds.
    like : {"service", "exchange"}, default "service"
        The API that the service plays: the query service, or the exchange's own API, which has no
        keys, other pages and other costs (`tk.connect`). An archive plays only the query service.
    default : bool, default True
        Whether the session becomes the default for all fetch functions.

    Returns
    -------
    Session
        Its ``world`` is a summary of the data: users, builders, coins, first and last time.

    Raises
    ------
    ValueError
        If the size, the clock or `cursors` is unknown, there is no recording, the seed is
        negative or has more than 63 bits, or the clock of recordings or an archive is live.
    TypeError
        If the seed is not a whole number.
    ArchiveError
        If the archive or the freeze does not exist, or is damaged.

    Examples
    --------
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny", default=False)
    >>> len(session.world["users"]), session.simulated
    (40, True)
    """
    if cursors not in ("exclusive", "inclusive"):
        raise ValueError(f"cursors must be 'exclusive' or 'inclusive', not {cursors!r}")
    if like not in ("service", "exchange"):
        raise ValueError(f"like must be 'service' or 'exchange', not {like!r}")
    if like == "exchange" and archive is not None:
        raise ValueError("an archive plays only the query service: leave out like or archive")
    if recordings is not None and archive is not None:
        raise ValueError("recordings and archive are two sources: use only one of them")
    if archive is not None:
        from toolkit.archive.serve import archived_store

        store = archived_store(archive, strict=strict)
    elif recordings is not None:
        store = recorded_store(Path(recordings), strict=strict)
    else:
        store = simulated_store(seed, size, strict=strict)
    api = EXCHANGE if like == "exchange" else SERVICE
    secret = key or (_KEY if api.has_keys else None)
    access = KeyQuotas([AcceptedKey("local", secret or _KEY)])
    inclusive = cursors == "inclusive"
    application = application_of(store, access, inclusive=inclusive, clock=clock, api=api)
    session = open_session(
        "http://local",
        secret,
        api=api.name,
        transport=InProcessTransport(application),
        label=store.about["label"],
        simulated=store.about["simulated"],
        world=store.about["world"],
        now_ms=application.now_ms,
        default=default,
    )
    session.source.in_process = True
    session.source.has_fixed_clock = clock == "fixed"
    if isinstance(store.about["world"], Mapping) and "dexes" in store.about["world"]:
        session.dexes = len({"", *map(canonical_dex, store.about["world"]["dexes"])})
    source = {"seed": seed, "size": size, "recordings": recordings, "archive": archive}
    arguments = source | {"cursors": cursors, "clock": clock, "strict": strict, "like": like}
    session.set_recipe(Recipe(local, arguments, needs_key=False))
    return session


class InProcessTransport(httpx.BaseTransport):
    """A transport to an `Application` in this process; the bytes are the same as on a socket."""

    def __init__(self, application: Application) -> None:
        self._application = application

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the response of the application."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        response = self._application.respond(
            request.method, request.url.path, headers, request.read()
        )
        return httpx.Response(
            response.status,
            headers=dict(response.headers),
            stream=httpx.ByteStream(response.content),
            request=request,
        )

    def close(self) -> None:
        """Close the store."""
        self._application.store.close()


def application_of(
    store: Store,
    access: KeyQuotas,
    *,
    inclusive: bool = False,
    clock: Literal["fixed", "live"] = "fixed",
    upstream: Upstream | None = None,
    now_ms: Callable[[], int] | None = None,
    api: Api = SERVICE,
    points_per_machine: int | None = None,
) -> Application:
    """Return the service of a store.

    Parameters
    ----------
    store : Store
        The store from which requests are answered.
    access : KeyQuotas
        The API keys and their points.
    inclusive : bool, default False
        Whether a page begins with the rows at its cursor, or after them.
    clock : {"fixed", "live"}, default "fixed"
        Whether the present stays at the end of the store's history, or goes on from there.
    upstream : Upstream, optional
        The server that answers the operations of the exchange's info API.
    now_ms : callable, optional
        Returns the present of a live clock; by default the clock runs in real time.
    api, points_per_machine : Api, int
        As in `Application`.

    Raises
    ------
    ValueError
        If the clock is unknown, or it is live and the store is not a simulated exchange.
    """
    if clock not in ("fixed", "live"):
        raise ValueError(f"clock must be 'fixed' or 'live', not {clock!r}")
    present: int = store.about["now_ms"]
    started, live = time.monotonic_ns(), None
    clock_ms = now_ms or (lambda: present + (time.monotonic_ns() - started) // 1_000_000)
    if clock == "live":
        seed = (store.about["world"] or {}).get("seed")
        if seed is None:
            # Simulated rows after recorded ones could not be distinguished from them.
            raise ValueError(
                "clock='live' needs a simulated exchange: recordings and archives have no data "
                "after their end. Leave clock out"
            )
        from toolkit.simulation.output.live_state import LiveExchange

        live = LiveDocuments(LiveExchange(seed, read_last_state(store)))
    return Application(
        store,
        access,
        now_ms=(lambda: present) if live is None else clock_ms,
        at_ms=lambda: time.time_ns() // 1_000_000,
        inclusive=inclusive,
        upstream=upstream,
        live=live,
        api=api,
        points_per_machine=points_per_machine,
    )


def simulated_store(
    seed: int, size: str, folder: Path | None = None, *, strict: bool = False
) -> Store:
    """Return the store of a simulated exchange, from the cache if it is there.

    The file name contains seed, size, version, and the hash of the code that builds the store. A
    damaged file is built again. If several processes need the same store, one of them builds it.

    Parameters
    ----------
    seed : int
        The seed of the simulated exchange.
    size : str
        ``tiny``, ``demo`` or ``large``.
    folder : Path, optional
        The cache folder; by default the user's.
    strict : bool, default False
        Whether the store has nothing beyond the specification.

    Raises
    ------
    ValueError
        If the size is unknown, or the seed is negative or has more than 63 bits.
    TypeError
        If the seed is not a whole number.
    OSError
        If a large store cannot be written. A smaller one is then built in memory, with a warning.
    """
    seed = check_seed(seed)
    if size not in _SIZES:
        raise ValueError(f"unknown size {size!r}; choose one of {', '.join(_SIZES)}")
    mode = "-strict" if strict else ""
    name = f"{size}-{seed}{mode}-{_code_version()}.db"

    @cache
    def draw_world() -> "World":
        from toolkit.simulation import simulate

        if size != "tiny":  # that takes a second
            _announce(f"simulating the {size} exchange, seed {seed}: it is saved for the next time")
        return simulate(seed, size)

    def build(path: Path | None) -> Store:
        if size == "large" and path is not None:
            return tiled_store(seed, path, strict=strict)
        world = draw_world()
        return build_store(world.sources, path, world=world.session_facts(), strict=strict)

    try:
        folder = folder or find_cache_folder("worlds")
        waiting = partial(_announce, "another process simulates this exchange: waiting")
        return cached_store(folder / name, build, waiting)
    except OSError as error:
        message = f"cannot save the simulated exchange{f' in {folder}' if folder else ''}: {error}"
        if size == "large":  # it does not fit into memory either
            raise OSError(f"{message}; free 3 GB, or choose size='demo'") from error
        advice = "It will be simulated again. Set XDG_CACHE_HOME to a writable folder"
        warnings.warn(f"{message}. {advice}", stacklevel=3)
        return build(None)


def tiled_store(
    seed: int, path: Path, count: int = 23, size: str = "demo", *, strict: bool = False
) -> Store:
    """Build the store of a large exchange; at most one of its tiles is in memory.

    Parameters
    ----------
    seed, count, size : int, int, str
        The parameters of `toolkit.simulation.TiledExchange`; by default it has ten million
        fills.
    path : Path
        The file to write. It appears only when it is complete.
    strict : bool, default False
        Whether the store has nothing beyond the specification.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    from toolkit.simulation import TiledExchange

    if _has_viewer():
        print(
            f"simulating the large exchange, seed {seed}: this takes about ten minutes and 3 GB of "
            "disk, once",
            file=sys.stderr,
        )
    tiled = TiledExchange(seed, count, size)
    return build_store(_show_progress(tiled, count), path, world=tiled.summary, strict=strict)


def _show_progress(parts: Iterable[Sources], count: int) -> Iterator[Sources]:
    """Yield the parts, and show on a terminal or in a notebook how many tiles are done."""
    from tqdm.auto import tqdm

    silent = not _has_viewer() or bool(os.environ.get("TQDM_DISABLE"))
    with tqdm(total=count, unit="tile", disable=silent, leave=False) as bar:
        for part in parts:
            yield part
            del part  # this part must not be in memory while the next one is drawn
            bar.update(bar.n < count)  # the last part has the market's data and is not a tile


def recorded_store(folder: Path, *, strict: bool = False) -> Store:
    """Return a store of recorded answers, with a warning that names all damaged files.

    Recordings that no operation shows are listed in ``world["not_served"]``.

    Raises
    ------
    ValueError
        If there is no recording to serve.
    """
    recordings = read_recordings(folder)
    if recordings.damaged:
        files = "; ".join(recordings.damaged)
        warnings.warn(
            f"these files are not recordings: {files}. Remove or repair them", stacklevel=3
        )
    store = build_store(recordings.sources, world=recordings.world, strict=strict)

    def find_answer(request: CheckedRequest) -> Response | None:
        key = request_key(request.operation.type, request.parameters)
        answer = recordings.answers.get(key)
        return None if answer is None else json_response(answer)

    store.replay = find_answer
    return store


def _code_version() -> str:
    """Return the release and a hash of the code that makes a world and its store."""
    # NumPy does not promise the same draws in every version.
    digest = hashlib.sha256(np.__version__.encode())
    package = Path(__file__).parent
    files = [file for part in _DIGESTED for file in sorted((package / part).rglob("*.py"))]
    for file in [package / "times.py", *files]:
        digest.update(file.read_bytes())
    return f"{version('exchange-toolkit')}-{digest.hexdigest()[:16]}"


def _announce(message: str) -> None:
    if _is_terminal():
        print(message, file=sys.stderr)


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _has_viewer() -> bool:
    """Return whether somebody waits at a terminal or in a notebook."""
    return _is_terminal() or "ipykernel" in sys.modules
