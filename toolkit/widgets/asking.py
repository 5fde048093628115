"""How views ask: one callable for every fetch function, and failures put in words."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from toolkit.client import Session
from toolkit.errors import ToolkitError
from toolkit.fetch import meta

__all__ = ["Fetch", "coins_of", "in_words", "quiet", "through"]


class Fetch(Protocol):
    """Asks: ``fetch(function, *arguments, **named)``, a fetch function without its session."""

    def __call__(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
        """Give what the function gives."""


def through(session: Session) -> Fetch:
    """Ask a session."""

    def fetch(function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
        return function(*arguments, session=session, **named)

    return fetch


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
