"""How another process makes a session like this one: everything but the key.

A session holds a key, sockets and locks, and does not travel. What travels is its recipe. In the
process where the session lives it gives that very session; elsewhere it makes one, once, with the
key that stands in the environment there.
"""

import os
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from toolkit.errors import NotConnected

if TYPE_CHECKING:
    from toolkit.client.session import Session

__all__ = ["Recipe"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """Makes a session where it is unpickled.

    Attributes
    ----------
    make : callable
        What makes one; it is pickled by its name.
    arguments : mapping
        What it is called with; never a key.
    needs_key : bool
        Whether the session has a key, so that the other process must have one too.
    """

    make: Callable[..., "Session"]
    arguments: Mapping[str, Any]
    needs_key: bool
    _token: str = field(default_factory=lambda: uuid.uuid4().hex, repr=False)

    def remember(self, session: "Session") -> None:
        """Note which session this is the recipe of, in this process."""
        _living[self._here()] = session

    def session(self) -> "Session":
        """Give the session of this recipe.

        Raises
        ------
        NotConnected
            If it has to be made, and there is no key in the environment.
        """
        living = _living.get(self._here())
        if living is not None:
            return living
        if self._here() not in _made:
            if self.needs_key and not os.environ.get("TOOLKIT_API_KEY"):
                raise NotConnected(
                    "the key is not sent to other processes: set TOOLKIT_API_KEY in the "
                    "environment of the workers, or use threads"
                )
            _made[self._here()] = self.make(**self.arguments, default=False)
        return _made[self._here()]

    def _here(self) -> tuple[str, int]:
        # A forked child has its parent's memory, but must not use its parent's sockets.
        return self._token, os.getpid()


_living: Final[WeakValueDictionary[tuple[str, int], "Session"]] = WeakValueDictionary()
_made: Final[dict[tuple[str, int], "Session"]] = {}
