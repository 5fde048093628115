"""Connections to a service."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal

import httpx

from toolkit.client.budget import LEASE, Budget
from toolkit.client.proxies import address_problem, is_this_machine, warn_of_exposure
from toolkit.client.retry import Retry
from toolkit.client.session import DataSource, ProgressBar, Recipe, Session, use
from toolkit.client.wire import PATIENCE, ApiKey, is_header_text
from toolkit.contract.apis import EXCHANGE, SERVICE, Api, api_of_host, find_address
from toolkit.contract.source_tables import WorldFacts
from toolkit.errors import MissingExtra, NotConnected, warn_caller
from toolkit.frames.notebook_view import register_view
from toolkit.installation import package_version
from toolkit.public_names import publish_as

_MOST_ATTEMPTS: Final = 100
_CONNECTIONS: Final = 8  # beyond eight, httpcore's pool takes more time than the requests


@publish_as("toolkit")
def connect(
    base_url: str | None = None,
    api_key: str | None = None,
    *,
    exchange: str | None = None,
    points_per_minute: int | None = None,
    most_points: int | None = None,
    attempts: int = 6,
    timeout: float = 60.0,
    confirm_end: bool | None = None,
    user_agent: str | None = None,
    progress: bool | Callable[[str], ProgressBar] | None = None,
    default: bool = True,
) -> Session:
    """Connect to a query service, or to the exchange's own API, which needs no key.

    Nothing is sent yet. The session becomes the default for all fetch functions.

    Parameters
    ----------
    base_url : str, optional
        Address of the service, without ``/info``, or one of the names ``hydromancer``,
        ``hydromancer-testnet``, ``hyperliquid`` and ``hyperliquid-testnet``. By default
        ``TOOLKIT_BASE_URL`` of the environment; there is no other default.
    api_key : str, optional
        The key. By default ``TOOLKIT_API_KEY`` of the environment or, for the addresses of
        Hydromancer, ``HYDROMANCER_API_KEY``. It is never shown, and never sent to the exchange.
    exchange : {"hyperliquid", "hyperliquid-testnet"}, optional
        The exchange whose own API answers. Its operations, limits and weights apply, and no key is
        sent. Without `base_url`, its public address is used; with one, whatever answers there
        in its place.
    points_per_minute : int, optional
        The quota of the key. With a quota, requests wait and are not refused with 429. All threads
        and processes of this machine that use the key at this address share it. By default none,
        or 1,200 for the exchange's own API.
    most_points : int, optional
        Points that the session may spend altogether. A request beyond them raises `BudgetSpent`.
    attempts : int, default 6
        The most attempts of one request.
    timeout : float, default 60
        Seconds to wait for the next bytes of an answer. A complete answer may take 600 seconds
        (`Session.patience`).
    confirm_end : bool, optional
        Whether one more request confirms the end of a history: a page shorter than requested is the
        end only if nothing follows it. By default an end is confirmed

        - after two or more pages,
        - after one page that has a multiple of 100 rows, is more than 90 % full, or was requested
          with a filter (`builder`, `dex`, `venue` or `aggregate_by_time`),
        - after an empty answer of slippage samples or APR samples.

        True confirms every end, also of one page and of an empty history. False confirms none. If a
        service applies a filter after its limit and the first page is empty, no confirmation
        detects the missing rows.
    user_agent : str, optional
        Name of this client; some gateways refuse the default names of HTTP libraries.
    progress : bool or callable, optional
        Whether long pulls show a progress bar; by default only in a live kernel or terminal. Or a
        function that makes a bar from a title; the bar has ``update(rows)`` and ``close()``.
    default : bool, default True
        Whether the session becomes the default.

    Returns
    -------
    Session

    Raises
    ------
    NotConnected
        If there is no address, if the exchange is unknown, or if the proxy that the environment
        names is not valid.
    MissingExtra
        If the environment names a SOCKS proxy, and the library for it is not installed.
    ValueError
        If the address, the key, `user_agent` or a number is not allowed. The message never shows
        the key.
    TypeError
        If the key is not text.

    Warns
    -----
    KeyExposed
        If the key is sent without encryption to another machine, or through a proxy.

    Examples
    --------
    >>> import toolkit as tk
    >>> tk.connect("http://127.0.0.1:8787", "a-secret", default=False)
    <Session http://127.0.0.1:8787, with key, 0 requests, 0 points spent>
    >>> tk.connect("hyperliquid", default=False)
    <Session https://api.hyperliquid.xyz, without key, 0 requests, 0 points spent>
    """
    own = ("base_url", "api_key", "exchange", "own")
    options = {name: value for name, value in locals().items() if name not in own}
    address, key, api, problem = _read_access(base_url, api_key, exchange)
    del base_url, api_key  # tracebacks may show local variables, and the address may be the key
    if problem is not None:
        raise problem
    return open_session(address, key, api=api.name, **options)


def open_session(
    base_url: str | None = None,
    api_key: str | ApiKey | None = None,
    *,
    api: str = "",
    points_per_minute: int | None = None,
    most_points: int | None = None,
    attempts: int = 6,
    timeout: float = 60.0,
    confirm_end: bool | None = None,
    user_agent: str | None = None,
    progress: bool | Callable[[str], ProgressBar] | None = None,
    label: str = "",
    simulated: bool = False,
    world: WorldFacts | None = None,
    transport: httpx.BaseTransport | None = None,
    now_ms: Callable[[], int] | None = None,
    budget_folder: str | Path | Literal[False] | None = None,
    clock: Callable[[], float] | None = None,
    sleep: Callable[[float], None] | None = None,
    default: bool = False,
) -> Session:
    """Open a session, as `connect` does, with what a test or a service in this process replaces.

    Parameters
    ----------
    base_url, api_key, points_per_minute, most_points, attempts, timeout, confirm_end, user_agent
        As in `connect`.
    api : str, optional
        The name of the API that answers, of `toolkit.contract.apis`. By default the one whose own
        address this is, else that of the specification.
    progress, default
        As in `connect`; the session does not become the default by itself.
    label : str, optional
        Name of the source in provenance. By default the name that the service states, as
        ``toolkit serve`` does, or its address.
    simulated : bool, default False
        Whether the data is simulated; figures of it say so. The argument has no effect if the
        service itself states that its data is simulated.
    world : dict, optional
        What is in the source, for `Session.world`.
    transport : httpx.BaseTransport, optional
        The transport of httpx; by default the network.
    now_ms : callable, optional
        Returns the present in Unix milliseconds; ages such as ``"7d"`` count back from it. By
        default the present that the service states (`Session.now_ms`), else the wall clock's.
    budget_folder : path or False, optional
        Folder in which processes count the points of a key together; by default the user's cache
        folder. With False, or with a `transport`, each session counts only its own points.
    clock, sleep : callable, optional
        `clock` returns the present in seconds; all processes that share a budget must use the same
        clock. `sleep` waits for a number of seconds. By default, `clock` is that of the
        machine, and a wait ends at once if you interrupt `toolkit.many`.
    """
    base_url, key, found, problem = _read_access(base_url, api_key, api)
    del api_key  # tracebacks may show local variables
    if problem is not None:
        raise problem
    if key is not None and transport is None:
        warn_of_exposure(base_url)
    _check_numbers(attempts, timeout)
    if user_agent is not None and not is_header_text(user_agent):
        raise ValueError("user_agent must be printable ASCII text")
    if points_per_minute is None and transport is None:
        points_per_minute = found.points_per_minute
    if budget_folder is None and transport is None and points_per_minute is not None:
        try:
            budget_folder = find_cache_folder("budgets")
        except OSError as error:
            warn_caller(f"{error}. Points are counted in this session only", UserWarning)
    shared: Path | None = None
    if budget_folder:
        shared = (key or ApiKey("")).budget_file(Path(budget_folder), base_url)
    # Processes share only the time of day; for one session the steady clock is better.
    clock = clock or (time.monotonic if shared is None else time.time)
    limits, own_transport = httpx.Limits(max_connections=_CONNECTIONS), transport
    if transport is None and is_this_machine(base_url):
        own_transport = httpx.HTTPTransport(limits=limits)  # without the proxy of the environment
    try:
        client = httpx.Client(
            base_url=base_url,
            auth=key,
            headers={
                "User-Agent": user_agent or f"exchange-toolkit/{package_version()}",
                # What `decompress` accepts, the smaller first.
                "Accept-Encoding": "zstd, gzip;q=0.9",
            },
            timeout=httpx.Timeout(timeout, connect=min(timeout, 10.0)),
            limits=limits,
            transport=own_transport,
        )
    except ImportError:
        raise MissingExtra(
            "the environment names a SOCKS proxy (ALL_PROXY, HTTPS_PROXY or HTTP_PROXY), and the "
            "library for it is not installed. Run: pip install socksio. Or unset the variable, if "
            "the service can be reached without the proxy"
        ) from None
    except (ValueError, httpx.InvalidURL) as error:
        raise NotConnected(
            "the environment names a proxy (ALL_PROXY, HTTPS_PROXY or HTTP_PROXY) that is not "
            f"valid ({type(error).__name__}). Use an address such as http://host:8080, or unset "
            "the variable"
        ) from None
    session = Session(
        base_url=base_url,
        key=key,
        source=DataSource(label or base_url, simulated, bool(label), now_ms),
        world=world,
        api=found,
        progress=progress,
        budget=Budget(
            points_per_minute,
            most_points,
            clock=clock,
            sleep=sleep,
            path=shared,
            lease=max(LEASE, 4 * timeout),  # each of its steps may take as long as the time-out
        ),
        retry=Retry(attempts=attempts, clock=clock),
        confirm_end=confirm_end,
        client=client,
    )
    if transport is None:
        arguments = {
            "base_url": base_url, "api": found.name, "points_per_minute": points_per_minute,
            "most_points": most_points, "attempts": attempts, "timeout": timeout,
            "confirm_end": confirm_end, "user_agent": user_agent, "label": label,
            "simulated": simulated, "progress": False, "budget_folder": budget_folder,
        }  # fmt: skip
        session.set_recipe(Recipe(open_session, arguments, needs_key=key is not None))
    ipython = sys.modules.get("IPython")  # a notebook has imported it before us
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None:
        register_view(shell.display_formatter.formatters["text/html"])
    return use(session) if default else session


def _read_access(
    base_url: str | None, api_key: Any, name: str | None
) -> tuple[str, ApiKey | None, Api, Exception | None]:
    """Return the address, the key and the API, or an error that shows neither."""
    own = find_address(name) if name else None  # without an address, its own
    text = (base_url or (own[1] if own else os.environ.get("TOOLKIT_BASE_URL")) or "").strip()
    named = find_address(text)
    address = named[1] if named else text.rstrip("/").removesuffix("/info")
    try:
        url = httpx.URL(address)  # what is sent goes to the host that httpx reads in it
        is_exact = url.scheme == "https" and url.port is None
        at_home = api_of_host(url.raw_host.decode(), is_exact=is_exact)
    except (httpx.InvalidURL, TypeError):
        at_home = None
    api = own[0] if own else at_home or SERVICE
    secret = api_key
    if secret is None and api.has_keys:
        secret = os.environ.get("TOOLKIT_API_KEY")
        if not secret and at_home is SERVICE:
            secret = os.environ.get("HYDROMANCER_API_KEY")
    problem: Exception | None = None
    key = ApiKey(secret) if isinstance(secret, str) and secret else None
    if isinstance(secret, ApiKey):
        key = secret
    if not isinstance(secret, str | ApiKey | None):
        problem = TypeError(f"api_key must be text, not {type(secret).__name__}")
    elif key is not None and not (api.has_keys and (at_home or SERVICE).has_keys):
        problem = ValueError(f"{EXCHANGE.title} needs no key, and none is sent to it. Omit api_key")
    elif key is not None and not key.is_sendable:
        problem = ValueError(
            "the API key must be printable ASCII text without spaces. Pass the key alone, without "
            "the word Bearer"
        )
    elif name and own is None:
        problem = NotConnected(f"{name!r} is no known exchange. Use {EXCHANGE.name!r}")
    elif not address:
        problem = NotConnected(
            "there is no address. Call tk.connect(base_url, api_key), set TOOLKIT_BASE_URL, use "
            "the exchange's own API with tk.connect('hyperliquid'), or work offline with tk.local()"
        )
    elif words := address_problem(address):
        problem = ValueError(words)
    return ("" if problem else address), key, api, problem


def _check_numbers(attempts: Any, timeout: Any) -> None:
    is_whole = isinstance(attempts, int) and not isinstance(attempts, bool)
    if not is_whole or not 1 <= attempts <= _MOST_ATTEMPTS:
        raise ValueError(
            f"attempts, how often one request is sent, must be a whole number from 1 to "
            f"{_MOST_ATTEMPTS}, not {attempts!r}"
        )
    number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if not number or not 0 < timeout <= PATIENCE:
        raise ValueError(
            f"timeout, the seconds to wait for an answer, must be more than 0 and at most "
            f"{PATIENCE:.0f}, not {timeout!r}"
        )


def find_cache_folder(name: str) -> Path:
    """Return a folder of the user's cache. It need not exist.

    Raises
    ------
    OSError
        If the user has no home folder.
    """
    import platformdirs

    try:
        folder = platformdirs.user_cache_path("exchange-toolkit") / name
    except RuntimeError:  # no HOME, and no entry in the list of users
        folder = Path()
    if not folder.is_absolute():  # older versions of platformdirs return "~"
        raise OSError("this user has no home folder: set XDG_CACHE_HOME to a folder")
    return folder
