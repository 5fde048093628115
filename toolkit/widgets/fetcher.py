"""The fetcher of views: one callable for every fetch function, and errors as text."""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from toolkit.client import Session
from toolkit.errors import ToolkitError
from toolkit.fetch.market import meta
from toolkit.fetch.registry import operation_of


class Fetcher(Protocol):
    """Calls a fetch function without its session: ``fetch(function, *arguments, **options)``."""

    def __call__(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
        """Return the result of the function."""


def bind_session(session: Session) -> Fetcher:
    """Return a fetcher over a session."""

    def fetch(function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
        return function(*arguments, session=session, **options)

    return fetch


def limit_calls(fetch: Fetcher, clock: Callable[[], float] = time.monotonic) -> Fetcher:
    """Return a fetcher that raises ToolkitError where an operation's own limit forbids a call.

    It does not wait. A widget shows the message and continues with its other parts.
    """
    calls: defaultdict[str, deque[float]] = defaultdict(deque)

    def fetch_within_limit(function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
        limit = operation_of(function).limit
        if limit is not None:
            times, now = calls[function.__name__], clock()
            while times and now - times[0] >= limit.seconds:
                times.popleft()
            if len(times) >= limit.calls:
                left = limit.seconds - (now - times[0])
                raise ToolkitError(
                    f"{function.__name__} may be called {limit.calls} times in "
                    f"{limit.seconds // 60} minutes; the next call is possible in {left:.0f} s"
                )
            times.append(now)
        return fetch(function, *arguments, **options)

    return fetch_within_limit


def list_choices(
    session: Session, coins: str | Sequence[str] | None, chosen: str
) -> dict[str, None]:
    """Return the coins to choose from, each once, with the chosen one.

    - ``coins``: one or several names; by default the perps of the session. Perps of
      builder-deployed dexes are listed only if the source names its dexes.
    """
    if coins is None:
        dexes: Sequence[str] = (session.world or {}).get("dexes") or ("",)
        perps = (meta(dex=dex, session=session)["name"] for dex in dexes)
        coins = [coin for names in perps for coin in names]
    return dict.fromkeys([*([coins] if isinstance(coins, str) else coins), chosen])


def error_text(error: Exception) -> str:
    """Return the message of an error; an unexpected error is named with its type.

    >>> error_text(ToolkitError("no answer")), error_text(KeyError("coin"))
    ('no answer', "KeyError: 'coin'")
    """
    if isinstance(error, ToolkitError | ValueError):
        return str(error)
    return f"{type(error).__name__}: {error}"
