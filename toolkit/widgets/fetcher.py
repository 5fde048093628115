"""The fetcher of views: one callable for every fetch function, and errors as text."""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
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


def without_progress(session: Session) -> Session:
    """Return the session without progress bars: they cannot be shown on a widget's thread."""
    return replace(session, progress=False)


def list_coins(session: Session, fetch: Fetcher, chosen: str | None = None) -> list[str]:
    """Return the perps of a session, and the chosen coin.

    Perps of builder-deployed dexes are listed only if the source names its dexes.
    """
    dexes: Sequence[str] = (session.world or {}).get("dexes") or ("",)
    coins: list[str] = []
    for dex in dexes:
        coins += fetch(meta, dex=dex)["name"].tolist()
    return list(dict.fromkeys([*coins, chosen] if chosen else coins))


def as_list(coins: str | Sequence[str]) -> list[str]:
    """Return names as a list; one name is a list of one."""
    return [coins] if isinstance(coins, str) else list(coins)


def error_text(error: Exception) -> str:
    """Return the message of an error; an unexpected error is named with its type.

    >>> error_text(ToolkitError("no answer")), error_text(KeyError("coin"))
    ('no answer', "KeyError: 'coin'")
    """
    if isinstance(error, ToolkitError | ValueError):
        return str(error)
    return f"{type(error).__name__}: {error}"
