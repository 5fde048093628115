"""How views ask: one callable for every fetch function, and failures put in words."""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from toolkit.client import Session
from toolkit.errors import ToolkitError
from toolkit.fetch import meta
from toolkit.fetch.registry import operation_of

__all__ = ["Fetch", "coins_of", "in_words", "listed", "paced", "quiet", "through"]


class Fetch(Protocol):
    """Asks: ``fetch(function, *arguments, **named)``, a fetch function without its session."""

    def __call__(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
        """Give what the function gives."""


def through(session: Session) -> Fetch:
    """Ask a session."""

    def fetch(function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
        return function(*arguments, session=session, **named)

    return fetch


def paced(fetch: Fetch, clock: Callable[[], float] = time.monotonic) -> Fetch:
    """Return a way to ask that refuses what an operation's own limit forbids, without waiting.

    A widget shows why in words, and goes on with the rest.
    """
    asked: defaultdict[str, deque[float]] = defaultdict(deque)

    def ask(function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
        limit = operation_of(function).limit
        if limit is not None:
            times, now = asked[function.__name__], clock()
            while times and now - times[0] >= limit.seconds:
                times.popleft()
            if len(times) >= limit.calls:
                left = limit.seconds - (now - times[0])
                raise ToolkitError(
                    f"{function.__name__} may be asked {limit.calls} times in "
                    f"{limit.seconds // 60} minutes; again in {left:.0f} s"
                )
            times.append(now)
        return fetch(function, *arguments, **named)

    return ask


def quiet(session: Session) -> Session:
    """Give the session without progress bars, which have no place on a widget's thread."""
    return replace(session, progress=False)


def coins_of(session: Session, fetch: Fetch, named: str | None = None) -> list[str]:
    """List the perps that a session can be asked about, and the one that was named.

    Those of builder-deployed dexes are known of a local source alone.
    """
    dexes: Sequence[str] = (session.world or {}).get("dexes") or ("",)
    found: list[str] = []
    for dex in dexes:
        found += fetch(meta, dex=dex)["name"].tolist()
    return list(dict.fromkeys([*found, named] if named else found))


def listed(coins: str | Sequence[str]) -> list[str]:
    """Return names as a list; one name is a list of one."""
    return [coins] if isinstance(coins, str) else list(coins)


def in_words(error: Exception) -> str:
    """Say what went wrong; what nobody foresaw is named with its type.

    Examples
    --------
    >>> in_words(ToolkitError("no answer")), in_words(KeyError("coin"))
    ('no answer', "KeyError: 'coin'")
    """
    if isinstance(error, ToolkitError | ValueError):
        return str(error)
    return f"{type(error).__name__}: {error}"
